"""bisvm.SVC against scikit-learn's SVC."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn import svm
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from bisvm import SVC, BilevelLinearSVC, BilevelSVC, load, save

pytestmark = pytest.mark.usefixtures("brief_searches")

HELD = [
    {"C": 0.5, "gamma": "scale"},
    {"C": 3.0, "gamma": "auto", "class_weight": "balanced"},
    {"C": 1.0, "kernel": "linear"},
    {"C": 1.0, "kernel": "poly", "degree": 2, "gamma": 0.3, "coef0": 0.0},
    {"C": 1.0, "kernel": "poly", "gamma": 0.1, "coef0": 1.5},
    {"C": 1.0, "kernel": laplacian_kernel},
]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X)[::2], load_wine().target_names[y][::2]


def named(value):
    """The same name in every process: functions by theirs, not by their address."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={named(one)}" for key, one in value.items())
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize("given", HELD, ids=named)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_all_arguments_given_it_is_the_machine_of_scikit_learn(
    wine, given, n_classes
):
    X, y = wine
    kept = np.isin(y, np.unique(y)[:n_classes])
    X, y = X[kept], y[kept]
    shape = {"decision_function_shape": "ovo"}
    ours = SVC(**given, **shape).fit(X, y)
    stock = svm.SVC(**given, **shape, tol=1e-9).fit(X, y)
    close = {"atol": 2e-4, "rtol": 1e-3}
    np.testing.assert_allclose(
        ours.decision_function(X), stock.decision_function(X), **close
    )
    np.testing.assert_array_equal(ours.support_, stock.support_)
    np.testing.assert_array_equal(ours.n_support_, stock.n_support_)
    np.testing.assert_array_equal(ours.support_vectors_, stock.support_vectors_)
    np.testing.assert_allclose(ours.dual_coef_, stock.dual_coef_, **close)
    np.testing.assert_allclose(ours.intercept_, stock.intercept_, **close)
    np.testing.assert_allclose(ours.class_weight_, stock.class_weight_)
    np.testing.assert_array_equal(ours.predict(X), stock.predict(X))
    assert ours.shape_fit_ == stock.shape_fit_ and ours.fit_status_ == 0
    assert ours.tuned_ is None
    if given.get("kernel") == "linear":
        np.testing.assert_allclose(ours.coef_, stock.coef_, **close)
    else:
        assert not hasattr(ours, "coef_")


def test_one_value_per_class_is_that_of_scikit_learn(wine):
    X, y = wine
    given = {"C": 1.0, "gamma": 0.1, "break_ties": True}
    ours, stock = SVC(**given).fit(X, y), svm.SVC(**given, tol=1e-9).fit(X, y)
    values = ours.decision_function(X)
    np.testing.assert_allclose(values, stock.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), stock.predict(X))


@pytest.mark.parametrize(
    "given, learned",
    [
        ({}, ["C_", "gamma_"]),
        ({"C": 2.0}, ["gamma_"]),
        ({"gamma": 0.1}, ["C_"]),
        ({"kernel": "linear"}, ["C_"]),
        ({"kernel": laplacian_kernel}, ["C_"]),
        ({"kernel": "poly", "C": 1.0, "degree": 2}, ["gamma_", "coef0_"]),
    ],
    ids=named,
)
def test_arguments_that_are_left_out_are_learned(wine, given, learned):
    X, y = wine
    kept = y != "class_2"
    model = SVC(**given, random_state=0).fit(X[kept], y[kept])
    for name in ("C", "gamma"):
        if name in given:
            assert getattr(model, f"{name}_") == given[name]
    assert all(getattr(model, name) > 0 for name in learned)
    assert model.tuned_.C_ == model.C_
    # The values are arguments of scikit-learn's SVC, whose machine is the same.
    values = {"C": model.C_, "gamma": model.gamma_, "coef0": model.coef0_}
    values = given | {name: one for name, one in values.items() if one is not None}
    stock = svm.SVC(**values, tol=1e-9).fit(X[kept], y[kept])
    found = model.decision_function(X), stock.decision_function(X)
    np.testing.assert_allclose(*found, atol=1e-3, rtol=1e-3)


def test_probabilities_are_asked_for(wine):
    X, y = wine
    model = SVC(C=1.0, gamma=0.1, probability=True, random_state=0).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean(model.classes_[p.argmax(axis=1)] == y) > 0.95
    model = SVC(C=1.0, gamma=0.1).fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(NotFittedError, match="probability=True"):
        model.set_params(probability=True).predict_proba(X)


def test_a_grid_over_C_holds_it(wine):
    X, y = wine
    grid = GridSearchCV(SVC(gamma=0.1), {"C": [0.1, 1.0]}, cv=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grid.fit(X, y)
    assert grid.best_estimator_.C_ == grid.best_params_["C"]


def test_what_is_no_kernel_is_refused(wine):
    with pytest.raises(ValueError, match="sigmoid.*not a kernel"):
        SVC(kernel="sigmoid").fit(*wine)
    with pytest.raises(ValueError, match=r"shape \(89, 13\), expected \(89, 89\)"):
        SVC(kernel=lambda X, Z: X).fit(*wine)
    with pytest.raises(ValueError, match="no decision value per class"):
        model = SVC(C=1.0, break_ties=True, decision_function_shape="ovo", gamma=1.0)
        model.fit(*wine).predict(wine[0])


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_it_can_be_saved_and_pickled_in_a_pipeline(kernel, tmp_path):
    X, y = load_iris(return_X_y=True)
    svc = SVC(C=1.0, kernel=kernel, gamma="scale", coef0=0.0)
    model = make_pipeline(StandardScaler(), svc).fit(X, y)
    save(model, tmp_path / "model.skops")
    for again in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model.skops")):
        values = again.decision_function(X)
        np.testing.assert_array_equal(values, model.decision_function(X))


@pytest.mark.parametrize("make", [BilevelSVC, BilevelLinearSVC])
def test_estimators_that_learn_C_warn_of_a_grid_over_it(make):
    with pytest.warns(UserWarning, match="C is learned.*grid"):
        make().set_params(C=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make().set_params(C="scale", tol=1e-2)
        make(learn=()).set_params(C=1.0)
        make().set_params(C=1.0, learn=None)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_grid_search_shows_the_warning(wine):
    X, y = wine
    model = BilevelLinearSVC(starts=1, max_iter=1)
    with pytest.warns(UserWarning, match="C is learned"):
        GridSearchCV(model, {"C": [1.0]}, cv=2).fit(X, y)


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks([SVC(C=1.0, gamma=0.1)])
def test_it_is_an_estimator_of_scikit_learn(estimator, check):
    check(estimator)
