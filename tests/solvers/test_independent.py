"""Solvers against programs that share no code with them."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from bisvm.kernels import RBF
from bisvm.losses import Logistic, Quartic, SquaredHinge, get_loss
from bisvm.machines import KernelMachine, LinearMachine
from bisvm.solvers import Newton
from tests.problems import INTERCEPTS, SMOOTH_LOSSES, toy_data

NEARLY_HINGE = Quartic(1e-3)
X, y = toy_data(200, seed=3)
LABELS = (2.0 * y - 1.0)[:, None]


def linear_fit(C, loss, intercept, X=X):
    weights = np.full(LABELS.shape, C)
    machine = LinearMachine(LABELS, weights, loss, intercept, X, np.ones(X.shape[1]))
    return Newton().solve(machine, None, 1e-10)


def kernel_fit(C, gamma, loss, intercept="free"):
    kernel = RBF(gamma)
    weights = np.full(LABELS.shape, C)
    machine = KernelMachine(LABELS, weights, loss, intercept, kernel, X, kernel.gram(X))
    return Newton().solve(machine, None, 1e-10)


def assert_same_decisions(found, expected, atol=1e-2):
    np.testing.assert_allclose(found, expected, atol=atol)
    assert np.mean(np.sign(found) == np.sign(expected)) >= 0.995


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("gamma", [0.1, 1.0])
def test_a_nearly_hinge_kernel_machine_is_that_of_libsvm(C, gamma):
    svc = SVC(C=C, gamma=gamma, tol=1e-6).fit(X, y)
    found = kernel_fit(C, gamma, NEARLY_HINGE)
    assert_same_decisions(found.fitted[:, 0], svc.decision_function(X))


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_a_nearly_hinge_linear_machine_is_that_of_libsvm(C):
    svc = SVC(kernel="linear", C=C, tol=1e-6).fit(X, y)
    found = linear_fit(C, NEARLY_HINGE, "free")
    assert_same_decisions(found.fitted[:, 0], svc.decision_function(X))


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_a_penalised_intercept_is_that_of_liblinear(C):
    svc = LinearSVC(loss="hinge", C=C, tol=1e-8, max_iter=10**6, random_state=0)
    svc.fit(X, y)
    found = linear_fit(C, NEARLY_HINGE, "penalized")
    assert_same_decisions(found.fitted[:, 0], svc.decision_function(X))


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_squared_hinge_is_that_of_liblinear(C):
    svc = LinearSVC(loss="squared_hinge", C=C, dual=False, tol=1e-10, max_iter=10**5)
    svc.fit(X, y)
    found = linear_fit(C, SquaredHinge(), "penalized")
    np.testing.assert_allclose(found.fitted[:, 0], svc.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(found.x.coef[:, 0], svc.coef_[0], atol=1e-4)
    np.testing.assert_allclose(found.x.intercept, svc.intercept_, atol=1e-4)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_logistic_loss_is_logistic_regression(C):
    for intercept in ("free", "none"):
        model = LogisticRegression(C=C, fit_intercept=intercept == "free", tol=1e-12)
        model.set_params(solver="newton-cholesky").fit(X, y)
        found = linear_fit(C, Logistic(), intercept)
        np.testing.assert_allclose(
            found.fitted[:, 0], model.decision_function(X), atol=1e-6
        )


def explicit_objective(M, Q, C, loss):
    """E and dE/dz of 1/2 z'Q z + C sum loss(Y M z)."""

    def objective(z):
        value, slope, _ = get_loss(loss).evaluate(LABELS[:, 0] * (M @ z))
        gradient = Q @ z + C * M.T @ (LABELS[:, 0] * slope)
        return 0.5 * z @ Q @ z + C * value.sum(), gradient

    return objective


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", SMOOTH_LOSSES)
def test_a_general_minimiser_finds_nothing_lower(loss, intercept):
    """SciPy on the explicit objective, in w = (w, b) and in alpha's square root."""
    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-9}
    gram = RBF(0.5).gram(X)
    s, U = np.linalg.eigh(gram)
    root = U * np.sqrt(np.maximum(s, 0.0))
    column = np.full((len(X), 1), intercept != "none")
    for features, found in (
        (X, linear_fit(1.5, get_loss(loss), intercept)),
        (root, kernel_fit(1.5, 0.5, get_loss(loss), intercept)),
    ):
        M = np.hstack([features, column])
        precision = np.ones(M.shape[1])
        precision[-1] = intercept == "penalized"
        objective = explicit_objective(M, np.diag(precision), 1.5, loss)
        result = minimize(
            objective,
            np.zeros(M.shape[1]),
            jac=True,
            method="L-BFGS-B",
            options=options,
        )
        np.testing.assert_allclose(found.fitted[:, 0], M @ result.x, atol=1e-4)
