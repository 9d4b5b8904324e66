"""`to_sklearn()`: with the exact hinge, the stock pipeline is the same machine."""

import io

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from bisvm import BilevelLinearSVC, BilevelSVC
from bisvm.kernels import (
    KERNELS,
    RBF,
    Chi2,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
)
from bisvm.transforms import Nonlinearity, Projection, Scale

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

X, Y = load_iris(return_X_y=True)
X, Y = X[50::2], Y[50::2]
QUICK = dict(C=1.0, loss="hinge", cv=3, max_iter=2, starts=1, random_state=0)
MAP = np.random.default_rng(0).normal(size=(2, 4))

SAME = {
    **{name: name for name in KERNELS},
    "laplacian, each its own": Laplacian(per_feature=True),
    "matern, each its own": Matern(2.5, per_feature=True),
    "products": RBF() * Matern(1.5) + Polynomial(2),
    "sums of chi2": Chi2() + Laplacian(),
    "columns": RBF().on([0, 3]) + 0.3 * Matern().on([1]),
    "columns, each its own": RBF(per_feature=True).on([3, 0]) + Linear(),
    "columns alone": Polynomial(2).on([3, 1]),
    "scaled": RBF() @ Scale(per_feature=True),
    "projected": RBF() @ Projection(MAP),
    "projected, linear": Linear() @ Projection(MAP),
    "twice": (RBF(per_feature=True) @ Projection(MAP)) @ Scale(2.0),
}


@pytest.mark.filterwarnings("ignore:Tuning stopped early")
@pytest.mark.parametrize("name", SAME)
def test_the_stock_pipeline_is_the_same_machine(name):
    learn = () if "projected" in name or name == "twice" else "all"
    model = BilevelSVC(SAME[name], **{**QUICK, "learn": learn}).fit(X, Y)
    stock = model.to_sklearn()
    stock = clone(stock).set_params(svc__tol=1e-9).fit(X, Y)
    expected = model.decision_function(X)
    np.testing.assert_allclose(
        stock.decision_function(X), expected, atol=2e-5 * np.abs(expected).max()
    )


@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_a_precomputed_kernel_and_several_classes():
    Z, labels = load_iris(return_X_y=True)
    gram = Polynomial(2, gamma=0.1).gram(Z)
    model = BilevelSVC("precomputed", **QUICK).fit(gram[:, :], labels)
    stock = model.to_sklearn().set_params(svc__estimator__tol=1e-9).fit(gram, labels)
    expected = model.decision_function(gram)
    np.testing.assert_allclose(
        stock.decision_function(gram), expected, atol=2e-5 * np.abs(expected).max()
    )


@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_a_stock_pipeline_loads_without_this_library():
    model = BilevelSVC("mkl", **QUICK).fit(X, Y)
    buffer = io.BytesIO()
    joblib.dump(model.to_sklearn(), buffer)
    assert b"bisvm" not in buffer.getvalue()


@pytest.mark.filterwarnings("ignore:Tuning stopped early")
@pytest.mark.parametrize(
    ("kernel", "settings", "reason"),
    [
        (RBF() @ Nonlinearity("tanh"), {}, "is not a linear map of the columns"),
        (Laplacian().on([0]) + RBF(), {}, "on some of the columns, next to other"),
        (RBF() @ Projection(MAP) + Linear(), {}, "in a sum or product of kernels"),
        (RBF(), dict(fit_intercept=False), "SVC always has a free intercept"),
        (RBF(), dict(shared=False), "hyperparameters of its own"),
    ],
)
def test_what_it_cannot_express_is_refused_with_the_reason(kernel, settings, reason):
    labels = (X[:, 0] > np.median(X[:, 0])) + 2 * (Y == 2)
    model = BilevelSVC(
        kernel, **{**QUICK, "loss": "quartic", "learn": ("C",), **settings}
    ).fit(X, labels if "shared" in settings else Y)
    reason = reason.replace("others", "other kernels")
    with pytest.raises(ValueError, match=f"cannot express this model: .*{reason}"):
        model.to_sklearn()


@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_row_numbers_have_no_counterpart():
    rows = np.arange(len(X), dtype=float)[:, None]
    model = BilevelSVC(Precomputed(X @ X.T), **QUICK).fit(rows, Y)
    with pytest.raises(ValueError, match="Precomputed.* has no counterpart"):
        model.to_sklearn()


@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_sparse_columns():
    S = sparse.csr_array(X)
    linear = BilevelLinearSVC(**{**QUICK, "loss": "quartic"}).fit(S, Y)
    assert linear.to_sklearn().fit(S, Y).score(S, Y) > 0.8
    model = BilevelSVC("ard", **QUICK).fit(S, Y)
    with pytest.raises(ValueError, match="columns of a sparse matrix"):
        model.to_sklearn()


# --- fitted ---------------------------------------------------------------------------

THREE = load_iris(return_X_y=True)


@pytest.mark.filterwarnings("ignore:Tuning stopped early")
@pytest.mark.parametrize("loss", ["quartic", "hinge"])
@pytest.mark.parametrize("kernel", ["rbf", "ard", "linear", "poly", "laplacian", "mkl"])
def test_a_fitted_pipeline_has_the_same_decision_values(kernel, loss):
    brief = dict(cv=3, max_iter=2, starts=1, loss=loss, random_state=0)
    model = BilevelSVC(kernel, **brief).fit(X, Y)
    stock = model.to_sklearn(fitted=True)
    expected = model.decision_function(X)
    found = stock.decision_function(X)
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())
    assert np.array_equal(stock.predict(X), model.predict(X))
    again = joblib.load(io.BytesIO(_dumped(stock)))
    assert np.array_equal(again.decision_function(X), found)


def _dumped(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    return file.getvalue()


@pytest.mark.filterwarnings("ignore:Tuning stopped early")
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_fitted_pipeline_of_several_classes(kernel):
    brief = dict(cv=3, max_iter=2, starts=1, random_state=0)
    model = BilevelSVC(kernel, multi_class="ovr", **brief).fit(*THREE)
    stock = model.to_sklearn(fitted=True)
    expected = model.decision_function(THREE[0])
    np.testing.assert_allclose(stock.decision_function(THREE[0]), expected, atol=1e-6)
    assert np.array_equal(stock.predict(THREE[0]), model.predict(THREE[0]))
    pairs = BilevelSVC(kernel, multi_class="ovo", **brief).fit(*THREE)
    with pytest.raises(ValueError, match="pooled here"):
        pairs.to_sklearn(fitted=True)


@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_fitted_linear_machines():
    brief = dict(cv=3, max_iter=2, starts=1, random_state=0)
    for given in (
        dict(regularization="per_feature"),
        dict(fit_intercept="penalized"),
        dict(fit_intercept=False, loss="squared_hinge"),
    ):
        model = BilevelLinearSVC(**brief, **given).fit(X, Y)
        stock = model.to_sklearn(fitted=True)
        expected = model.decision_function(X)
        np.testing.assert_allclose(stock.decision_function(X), expected, rtol=1e-6)


# --- arguments and attributes of SVC --------------------------------------------------


@pytest.mark.parametrize(
    "given, said",
    [
        (dict(gamma="scale"), r"RBF\(gamma=0.1\)"),
        (dict(degree=2), r"Polynomial\(3\)"),
        (dict(coef0=1.0), "offset"),
        (dict(probability=True), "predict_proba is always there"),
        (dict(decision_function_shape="ovo"), "one column for every class"),
        (dict(break_ties=True), "highest decision value"),
    ],
)
def test_arguments_of_svc_are_refused_with_what_to_write(given, said):
    with pytest.raises(TypeError, match=said):
        BilevelSVC(**given)


def test_kernels_of_svc_are_refused_with_what_to_write():
    with pytest.raises(ValueError, match="negative eigenvalues"):
        BilevelSVC("sigmoid").fit(X, Y)
    with pytest.raises(TypeError, match="kernel='precomputed'"):
        BilevelSVC(lambda A, B: A @ B.T).fit(X, Y)


def test_attributes_of_svc():
    held = dict(loss="hinge", learn=(), cv=3, C=2.0, class_weight="balanced")
    model = BilevelSVC(RBF(gamma=0.5), **held).fit(X[:40], Y[:40])
    stock = SVC(C=2.0, gamma=0.5, class_weight="balanced", tol=1e-9)
    stock.fit(X[:40], Y[:40])
    assert np.allclose(model.class_weight_, stock.class_weight_)
    assert model.shape_fit_ == stock.shape_fit_
    assert model.fit_status_ == stock.fit_status_ == 0
    assert np.array_equal(model.n_support_, stock.n_support_)
    expected = stock.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-5)
