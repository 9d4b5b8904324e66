"""`to_sklearn()`: with the exact hinge, the stock pipeline is the same machine."""

import io

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris

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
        (RBF() @ Nonlinearity("tanh"), {}, "is no linear map of the columns"),
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
