"""Columns that stay relevant when rows are drawn anew."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import bisvm
from bisvm import BilevelLinearSVC, BilevelSVC, FeatureSelector
from bisvm.criteria import Weighted
from bisvm.datasets import (
    make_moons_with_noise,
    make_xor,
)
from bisvm.selection.selector import halves, limited, with_shadows
from tests.covering import full

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = make_moons_with_noise(300, n_noise=6, random_state=0)
QUICK = dict(n_pairs=2, random_state=0)
ONE_START = BilevelSVC("ard", cv=3, starts=1)
# Where the interface is at stake, and not what is found.
FEW, LABELS = X[:120], Y[:120]
MACHINE = BilevelSVC("ard", cv=2, starts=1, max_iter=2, multi_class="ovr")
BRIEF = dict(estimator=MACHINE, n_pairs=1, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return FeatureSelector(**QUICK).fit(X, Y)


@pytest.fixture(scope="module")
def brief():
    return FeatureSelector(**BRIEF).fit(FEW, LABELS)


# --- halves and shadows ---------------------------------------------------------------


def test_halves_are_complementary_and_hold_every_class():
    y = np.repeat([0, 1, 2], [60, 21, 9])
    first, second = halves(y, None, 1000, np.random.RandomState(0))
    assert sorted([*first, *second]) == list(range(90))
    for half in (first, second):
        np.testing.assert_allclose(np.bincount(y[half]), [30, 10.5, 4.5], atol=0.6)
    again, _ = halves(y, None, 1000, np.random.RandomState(1))
    assert not np.array_equal(first, again)


def test_halves_are_limited_and_keep_rare_classes():
    y = np.repeat([0, 1, 2], [900, 90, 3])
    first, second = halves(y, None, 50, np.random.RandomState(0))
    assert len(first) == len(second) == 50
    assert np.bincount(y[first]).min() >= 2 and np.bincount(y[second]).min() >= 2
    shared = np.intersect1d(first, second)
    assert np.all(y[shared] == 2)
    assert 3 <= np.bincount(y[first])[1] <= 7


def test_halves_do_not_part_groups():
    groups = np.repeat(np.arange(20), 5)
    first, second = halves(groups % 2, groups, 1000, np.random.RandomState(0))
    assert not set(groups[first]) & set(groups[second])
    assert len(first) == len(second) == 50


def test_few_rows_are_all_taken():
    y = np.arange(20) % 2
    assert np.array_equal(limited(np.arange(20), y, 30, None), np.arange(20))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_shadows_are_the_columns_in_another_order(make):
    both = with_shadows(make(X), np.random.RandomState(0))
    both = both.toarray() if sparse.issparse(both) else both
    # Eight columns have three copies, 24 shadows.
    own, *copies = np.split(both, 4, axis=1)
    assert np.array_equal(own, X)
    for shadows in copies:
        assert not np.array_equal(shadows, X)
        np.testing.assert_allclose(np.cov(shadows.T), np.cov(X.T))
    assert not np.array_equal(copies[0], copies[1])


# --- what is kept ---------------------------------------------------------------------


def test_the_moons_are_kept_and_nothing_else(fitted):
    assert fitted.get_support(indices=True).tolist() == [0, 1]
    assert fitted.chosen_.shape == (4, 8) and fitted.chosen_.dtype == bool
    np.testing.assert_allclose(fitted.shares_, fitted.chosen_.mean(axis=0))
    assert fitted.relevance_[:2].min() > 5 * fitted.relevance_[2:].max()
    assert fitted.stability_.value > 0.3 and fitted.false_bound_ > 0.0
    assert np.array_equal(fitted.transform(X), X[:, :2])


@pytest.mark.parametrize("n_pairs", [1, *full(4)])
def test_columns_that_tell_nothing_alone_are_found(n_pairs):
    inputs, labels = make_xor(300, n_noise=6, random_state=5)
    machine = ONE_START if n_pairs == 1 else None
    selector = FeatureSelector(machine, n_pairs=n_pairs, random_state=0)
    selector.fit(inputs, labels)
    assert selector.get_support(indices=True).tolist() == [0, 1]


def signal_among_noise(n, n_noise):
    """Classes whose means differ by three deviations along the first two features."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 2
    inputs = rng.normal(size=(n, 2 + n_noise))
    inputs[:, :2] += 3.0 / np.sqrt(2.0) * labels[:, None]
    return inputs, labels


@pytest.mark.full
def test_linear_machines_choose_too():
    inputs, labels = signal_among_noise(300, 8)
    machine = BilevelLinearSVC(regularization="per_feature")
    selector = FeatureSelector(machine, **QUICK).fit(inputs, labels)
    assert selector.get_support(indices=True).tolist() == [0, 1]


@pytest.mark.parametrize(
    "machine",
    [BilevelSVC("ard", cv=2, starts=1, max_iter=5), *full(None)],
    ids=["quick", "usual"],
)
def test_labels_by_chance_keep_nothing(machine):
    rng = np.random.default_rng(0)
    inputs, labels = rng.normal(size=(200, 8)), rng.integers(0, 2, 200)
    selector = FeatureSelector(machine, n_pairs=4, random_state=0, min_features=0)
    assert not selector.fit(inputs, labels).support_.any()
    with pytest.warns(UserWarning, match="No features were selected"):
        assert selector.transform(inputs).shape == (200, 0)
    with pytest.warns(UserWarning, match="min_features=1 keeps") as warned:
        selector.set_params(min_features=1).fit(inputs, labels)
    assert warned[0].filename == __file__
    assert selector.support_.sum() == 1
    assert selector.shares_[selector.support_] == selector.shares_.max()


@pytest.mark.parametrize("n_pairs", full(1, 4))
def test_three_classes(n_pairs):
    rng = np.random.default_rng(0)
    labels = np.arange(240) % 3
    centres = np.array([[0, 2], [2, 0], [-2, -2]])
    inputs = np.hstack(
        [centres[labels] + rng.normal(size=(240, 2)), rng.normal(size=(240, 4))]
    )
    names = np.array(["a", "b", "c"])[labels]
    selector = FeatureSelector(n_pairs=n_pairs, random_state=0).fit(inputs, names)
    assert selector.get_support(indices=True).tolist() == [0, 1]


def test_units_of_columns_do_not_matter(brief):
    scaled = FEW * np.logspace(-2, 2, 8)
    again = FeatureSelector(**BRIEF).fit(scaled, LABELS)
    assert np.array_equal(again.chosen_, brief.chosen_)
    np.testing.assert_allclose(again.relevance_, brief.relevance_, rtol=1e-6, atol=1e-9)


@pytest.mark.full
def test_units_of_columns_and_their_order_do_not_matter(fitted):
    scaled = X * np.logspace(-2, 2, 8)
    again = FeatureSelector(**QUICK).fit(scaled, Y)
    assert np.array_equal(again.support_, fitted.support_)
    turned = FeatureSelector(**QUICK).fit(X[:, ::-1], Y)
    assert np.array_equal(turned.support_, fitted.support_[::-1])


@pytest.mark.parametrize(
    ("selector", "n_rows"),
    [("brief", 120), pytest.param("fitted", 300, marks=pytest.mark.full)],
)
def test_sparse_inputs_are_the_same_inputs(selector, n_rows, request):
    dense = request.getfixturevalue(selector)
    inputs = sparse.csr_array(X[:n_rows])
    other = clone(dense).fit(inputs, Y[:n_rows])
    assert np.array_equal(other.support_, dense.support_)
    assert sparse.issparse(other.transform(inputs))


def test_threads_change_nothing(brief):
    other = clone(brief).set_params(n_jobs=2).fit(FEW, LABELS)
    assert np.array_equal(other.chosen_, brief.chosen_)
    assert np.array_equal(other.relevance_, brief.relevance_)


def test_rows_without_weight_are_no_rows(brief):
    rng = np.random.default_rng(0)
    more = np.vstack([FEW, rng.normal(size=(60, 8))])
    labels = np.append(LABELS, (more[120:, 5] > 0).astype(int))
    weight = np.repeat([1.0, 0.0], [120, 60])
    other = clone(brief).fit(more, labels, sample_weight=weight)
    assert np.array_equal(other.chosen_, brief.chosen_)


@pytest.mark.full  # halves do not part groups, above
def test_groups_stay_together():
    groups = np.arange(300) // 5
    selector = FeatureSelector(**QUICK).fit(X, Y, groups=groups)
    assert selector.get_support(indices=True).tolist() == [0, 1]


# --- with others ----------------------------------------------------------------------


def test_names_of_columns_and_pipelines(brief):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(FEW, columns=[f"column {k}" for k in range(8)])
    model = make_pipeline(StandardScaler(), clone(brief), clone(MACHINE))
    model.set_output(transform="pandas").fit(table, LABELS)
    kept = [f"column {k}" for k in model[1].get_support(indices=True)]
    assert 0 < len(kept) < 8
    assert list(model[:-1].get_feature_names_out()) == kept
    assert list(model[:-1].transform(table).columns) == kept
    assert list(model[-1].feature_names_in_) == kept
    assert model.score(table, LABELS) > 0.8


def test_files_hold_a_selector(brief, tmp_path):
    pytest.importorskip("skops")
    machine = clone(MACHINE).fit(brief.transform(FEW), LABELS)
    model = make_pipeline(brief, machine)
    again = bisvm.load(bisvm.save(model, tmp_path / "model.skops"))
    assert np.array_equal(again.decision_function(FEW), model.decision_function(FEW))
    assert again[0].stability_ == model[0].stability_


@pytest.mark.parametrize("kept", [[0], [0, 1], [6, 1]])
def test_onnx_takes_the_columns(brief, kept):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    selector = clone(brief)
    vars(selector).update(vars(brief))
    selector.support_ = np.isin(np.arange(8), kept)
    machine = clone(MACHINE).fit(selector.transform(FEW), LABELS)
    model = make_pipeline(selector, machine)
    session = runtime.InferenceSession(bisvm.to_onnx(model).SerializeToString())
    _, scores, _ = session.run(None, {"X": X})
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("kernel", ["ard", *full("rbf", "linear")])
def test_scikit_learns_selectors_take_our_relevances(kernel):
    machine = BilevelSVC(kernel, tol=1e-2, starts=1, random_state=0)
    inputs, labels = signal_among_noise(200, 4)
    for getter in ("auto", "relevance_"):
        given = dict(importance_getter=getter)
        chosen = SelectFromModel(machine, **given).fit(inputs, labels)
        assert chosen.get_support(indices=True).tolist() == [0, 1]
    few = RFE(machine, n_features_to_select=2, step=2).fit(inputs, labels)
    assert few.get_support(indices=True).tolist() == [0, 1]


def test_importances_are_relevances():
    model = BilevelSVC("ard", starts=1, max_iter=2, random_state=0)
    assert not hasattr(model, "feature_importances_")
    model.fit(X, Y)
    assert model.feature_importances_ is model.relevance_
    alone = BilevelSVC("precomputed", learn=(), random_state=0).fit(X @ X.T, Y)
    assert not hasattr(alone, "feature_importances_")


# --- bad input ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(n_pairs=0), "'n_pairs' parameter .* must be an int"),
        (dict(max_rows=2.5), "'max_rows' parameter .* must be an int"),
        (dict(min_features=-1), "'min_features' parameter .* must be an int"),
        (
            dict(threshold=0.5),
            "'threshold' parameter .* in the range .0.5, 1",
        ),
        (
            dict(threshold="all"),
            "'threshold' parameter .* in the range .0.5, 1",
        ),
        (
            dict(quantile=1.5),
            "'quantile' parameter .* in the range .0.5, 1",
        ),
        (dict(estimator=BilevelSVC("precomputed")), "no features to choose from"),
        (dict(estimator=BilevelSVC(cv=[([0], [1])])), "index pairs of all rows"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        FeatureSelector(**settings).fit(X, Y)


def test_other_machines_are_refused():
    with pytest.raises(TypeError, match="BilevelSVC or a BilevelLinearSVC"):
        FeatureSelector(SVC()).fit(X, Y)


def test_bad_rows_are_refused():
    with pytest.raises(ValueError, match="one class only"):
        FeatureSelector().fit(X, np.zeros(300))
    with pytest.raises(ValueError, match="groups has 3 labels for 300"):
        FeatureSelector().fit(X, Y, groups=[1, 2, 3])


@pytest.mark.parametrize(
    "settings",
    [
        {"class_weight": {2: 30.0}},
        {"criterion": Weighted("blend", {2: 30.0})},
        {"threshold": {2: 30.0}},
    ],
    ids=str,
)
def test_costs_are_those_of_the_labels_that_they_name(settings):
    """Labels 1 and 2: 2 is the second of them, and no third."""
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    machine = BilevelSVC("ard", cv=cv, starts=1, max_iter=3, **settings)
    few = dict(n_pairs=1, random_state=0)
    by_number = FeatureSelector(machine, **few).fit(X, Y + 1)
    name = next(iter(settings))
    named = Weighted("blend", {"b": 30.0}) if name == "criterion" else {"b": 30.0}
    machine = clone(machine).set_params(**{name: named})
    by_name = FeatureSelector(machine, **few).fit(X, np.where(Y == 1, "b", "a"))
    np.testing.assert_array_equal(by_name.relevance_, by_number.relevance_)


def test_a_kernel_that_does_not_see_the_shadows_is_refused():
    from bisvm.kernels import RBF

    machine = BilevelSVC(RBF().on([0, 1, 2]))
    with pytest.raises(ValueError, match="does not see"):
        FeatureSelector(machine, **QUICK).fit(X, Y)


def test_splitters_and_constant_columns_are_welcome():
    inputs = np.hstack([X, np.ones((300, 1))])
    cv = KFold(3, shuffle=True, random_state=0)
    machine = BilevelSVC("ard", cv=cv)
    selector = FeatureSelector(machine, n_pairs=1, random_state=0).fit(inputs, Y)
    assert selector.get_support(indices=True).tolist() == [0, 1]


# Rows are drawn, as in scikit-learn's bagging: one of weight two is not two rows.
DRAWN = {
    f"check_sample_weight_equivalence_on_{kind}_data": "rows are drawn at random"
    for kind in ("dense", "sparse")
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [FeatureSelector(**BRIEF)],
    expected_failed_checks=lambda estimator: DRAWN,
)
def test_the_selector_is_one_of_scikit_learns(estimator, check):
    check(estimator)


def test_numbers_are_refused_with_what_to_use_instead():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="for regression use relevance_"):
        FeatureSelector().fit(X, X[:, 0])
