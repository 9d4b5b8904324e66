"""Solvers against programs that share no code with them."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from bisvm.kernels import RBF
from bisvm.losses import Logistic, Quartic, SquaredHinge, get_loss
from bisvm.machines import KernelMachine, LinearMachine
from bisvm.solvers import Newton
from tests.covering import crossed
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
        value, slope, _ = get_loss(loss).evaluate(M @ z, LABELS[:, 0])
        gradient = Q @ z + C * M.T @ slope
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


def checkerboard(n, squares=5):
    """Squares without noise: with a large C all points are fitted."""
    points = np.random.default_rng(4).uniform(0.0, squares, (n, 2))
    colours = np.floor(points).sum(axis=1) % 2
    return points, (2.0 * colours - 1.0)[:, None]


def board_machine(n, C, gamma, loss):
    points, labels = checkerboard(n)
    kernel = RBF(gamma)
    weights = np.full(labels.shape, C)
    gram = kernel.gram(points)
    return KernelMachine(labels, weights, loss, "free", kernel, points, gram)


@pytest.mark.parametrize(
    "C, gamma", crossed([1e3, 1e5, 1e7], [0.5, 1.0, 4.0], strength=1)
)
def test_a_large_C_is_solved_from_any_start(C, gamma):
    machine = board_machine(300, C, gamma, Quartic())
    far = 3.0 * np.random.default_rng(0).normal(size=machine.labels.shape)
    ends = [Newton().solve(machine, start, 1e-8) for start in (None, far)]
    for end in ends:
        assert end.status != "max_iter"
        assert end.residual.max() <= 1e-6
    # A residual is relative to C: within it E is what agrees.
    np.testing.assert_allclose(
        *(machine.value(end.x, end.tangent) for end in ends), rtol=1e-7
    )


@pytest.mark.parametrize("C", [1e2, 1e5])
def test_a_large_C_is_that_of_a_trust_region_method(C):
    """E in w with K = L L', f = L w + b, from scipy's start at zero."""
    loss = Quartic()
    machine = board_machine(60, C, 1.0, loss)
    n = len(machine.labels)
    L = np.linalg.cholesky(machine.gram + 1e-12 * np.eye(n))
    signed = machine.labels * np.column_stack([L, np.ones(n)])
    ridge = np.diag([*np.ones(n), 0.0])

    def value(z):
        return 0.5 * z @ ridge @ z + C * loss.value(signed @ z, 1.0).sum()

    def gradient(z):
        return ridge @ z + C * signed.T @ loss.evaluate(signed @ z, 1.0)[1]

    def hessian(z):
        return ridge + C * (signed.T * loss.evaluate(signed @ z, 1.0)[2]) @ signed

    z = np.zeros(n + 1)
    options = {"gtol": 1e-6 * C, "maxiter": 5000}
    expected = minimize(
        value, z, jac=gradient, hess=hessian, method="trust-exact", options=options
    )
    found = Newton().solve(machine, None, 1e-10)
    least = machine.value(found.x, found.tangent)[0]
    assert least <= expected.fun * (1.0 + 1e-9)
    np.testing.assert_allclose(least, expected.fun, rtol=1e-5)


def test_a_large_C_is_that_of_a_quadratic_program():
    """The squared hinge: 1/2 a'K a + sum a^2 / 4C - sum a in a >= 0, y'a = 0."""
    clarabel = pytest.importorskip("clarabel")
    C = 1e5
    machine = board_machine(150, C, 1.0, SquaredHinge())
    y = machine.labels[:, 0]
    n = len(y)
    Q = machine.gram * np.outer(y, y) + np.eye(n) / (2.0 * C)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    A = sparse.csc_matrix(np.vstack([y, -np.eye(n)]))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    upper = sparse.csc_matrix(np.triu(Q))
    answer = clarabel.DefaultSolver(
        upper, -np.ones(n), A, np.zeros(n + 1), cones, settings
    ).solve()
    a = np.array(answer.x)
    found = Newton().solve(machine, None, 1e-9)
    least = machine.value(found.x, found.tangent)[0]
    np.testing.assert_allclose(least, a.sum() - 0.5 * a @ Q @ a, rtol=1e-6)
    np.testing.assert_allclose(found.x.coef[:, 0], y * a, atol=1e-3 * a.max())


@pytest.mark.parametrize("gamma", [4.0, 16.0])
def test_a_large_C_with_all_points_fitted_is_that_of_libsvm(gamma):
    """Where no point may err, the corner's end 1 + eps stands for the hinge's 1."""
    points, labels = checkerboard(150)
    svc = SVC(C=1e5, gamma=gamma, tol=1e-8).fit(points, labels[:, 0])
    eps = 0.125
    machine = board_machine(150, 1e5, gamma, Quartic(eps))
    found = Newton().solve(machine, None, 1e-8)
    assert found.status == "converged"
    expected = svc.decision_function(points)
    np.testing.assert_allclose(found.fitted[:, 0] / (1 + eps), expected, atol=0.01)
