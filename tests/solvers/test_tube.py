"""The exact epsilon-insensitive loss: the SVR, and its hypergradients."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import make_friedman1
from sklearn.svm import SVR

from bisvm import BilevelLinearSVR, BilevelObjective, BilevelSVR
from bisvm.criteria import StructuralRisk
from bisvm.hinge.gram import DenseGram, LinearGram, RepeatedGram
from bisvm.hinge.solution import solve
from bisvm.kernels import RBF, Linear, Polynomial
from bisvm.losses import EpsilonInsensitive, Hinge
from bisvm.machines import KernelMachine, LinearMachine
from bisvm.solvers import DCD, SMO, Dual, Sharpening
from bisvm.testing import central_difference, check_loss
from tests.covering import crossed

X, y = make_friedman1(60, n_features=5, noise=1.0, random_state=0)
X = (X - 0.5) * 3.0
UNIT = (y - y.mean()) / y.std()


def machine(kernel, C=1.0, epsilon=0.2, intercept="free"):
    """Two columns: all points, and all but some, with weights."""
    rng = np.random.default_rng(0)
    weights = np.stack([np.ones(len(y)), rng.uniform(0.2, 2.0, len(y))], axis=1)
    weights[::7, 1] = 0.0
    labels = np.stack([UNIT, UNIT**3], axis=1)
    loss = EpsilonInsensitive(epsilon)
    # LIBSVM holds its kernel in single precision.
    gram = kernel.gram(X).astype(np.float32).astype(float)
    return KernelMachine(labels, C * weights, loss, intercept, kernel, X, gram)


def test_the_loss_is_two_hinges():
    loss = EpsilonInsensitive(0.3)
    check_loss(loss)
    f = np.linspace(-2.0, 2.0, 41)
    target = np.full(41, 0.25)
    signs, targets = loss.hinges(target)
    total = np.maximum(targets - signs * f, 0.0).sum(axis=0)
    np.testing.assert_allclose(loss.value(f, target), total, atol=1e-15)
    smooth = loss.rounded(1e-9).value(f, target)
    np.testing.assert_allclose(loss.value(f, target), smooth, atol=1e-9)


@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
@pytest.mark.parametrize("kernel", [RBF(0.2), Polynomial(2, gamma=0.3)])
def test_the_solution_is_that_of_svr(kernel, C):
    one = machine(kernel, C)
    solution = SMO().solve(one)
    assert solution.status == "converged" and solution.residual.max() < 1e-9
    for k in range(2):
        rows = np.flatnonzero(one.weights[:, k])
        svr = SVR(kernel="precomputed", C=1.0, epsilon=0.2, tol=1e-10)
        svr.fit(one.gram[np.ix_(rows, rows)], one.labels[rows, k], one.weights[rows, k])
        np.testing.assert_allclose(
            solution.fitted[:, k],
            svr.predict(one.gram[:, rows]),
            atol=1e-6,
        )


@pytest.mark.parametrize("solver", [SMO(), Dual(), Sharpening()], ids=repr)
def test_every_solver_and_every_tube_is_optimal(solver):
    for epsilon in (0.01, 1.0, 10.0):
        one = machine(RBF(0.3), 3.0, epsilon)
        solution = solver.solve(one)
        r, beta = one.labels - solution.fitted, solution.x.coef
        assert np.all(np.abs(beta) <= one.weights)
        on_margin = np.isinf(solution.tangent.curvature)
        np.testing.assert_allclose(np.abs(r[on_margin]), epsilon, atol=1e-8)
        inside = (beta == 0) & (one.weights > 0)
        assert np.all(np.abs(r[inside]) <= epsilon + 1e-8)
        beyond = (np.abs(beta) == one.weights) & (one.weights > 0)
        assert np.all((np.sign(beta) * r)[beyond] >= epsilon - 1e-8)
        np.testing.assert_allclose(beta.sum(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_a_linear_machine_is_its_kernel_machine(stored, intercept):
    precision = np.array([1.0, 0.5, 2.0, 1.0, 3.0])
    kernel = machine(Linear(), 0.4, 0.3, intercept)
    scaled = X / np.sqrt(precision)
    kernel = KernelMachine(
        kernel.labels,
        kernel.weights,
        kernel.loss,
        intercept,
        Linear(),
        scaled,
        scaled @ scaled.T,
    )
    linear = LinearMachine(
        kernel.labels, kernel.weights, kernel.loss, intercept, stored(X), precision
    )
    first, second = Dual().solve(kernel), Dual().solve(linear)
    np.testing.assert_allclose(first.fitted, second.fitted, atol=1e-8)
    assert max(first.residual.max(), second.residual.max()) < 1e-9


def test_no_other_function_is_better():
    one = machine(RBF(0.3), 2.0).select([0])
    solution = Dual().solve(one)
    best = float(one.value(solution.x, solution.tangent)[0])

    def energy(v):
        f = one.gram @ v[:-1] + v[-1]
        loss = np.maximum(np.abs(one.labels[:, 0] - f) - 0.2, 0.0)
        return 0.5 * v[:-1] @ one.gram @ v[:-1] + one.weights[:, 0] @ loss

    at = np.append(solution.x.coef[:, 0], solution.x.intercept)
    assert energy(at) == pytest.approx(best, rel=1e-12)
    found = minimize(energy, at, method="L-BFGS-B", options={"maxiter": 200}).fun
    assert found >= best - 1e-9
    rng = np.random.default_rng(0)
    assert all(energy(at + 1e-3 * rng.normal(size=61)) > best for _ in range(50))


def test_dual_coordinate_descent_says_what_to_use():
    with pytest.raises(ValueError, match="2 corners; use solver='auto'"):
        DCD().solve(machine(RBF(0.3), intercept="none"))
    with pytest.raises(ValueError, match="'epsilon_insensitive'"):
        SMO().check(EpsilonInsensitive().rounded())


@pytest.mark.parametrize("kind", [DenseGram, LinearGram])
def test_repeated_points_have_the_gram_matrix_of_copies(kind):
    rows, rng = np.array([0, 3, 1, 3, 3, 2, 0]), np.random.default_rng(0)
    once = kind(X @ X.T) if kind is DenseGram else kind(X)
    gram, full = RepeatedGram(once, rows), DenseGram((X @ X.T)[np.ix_(rows, rows)])
    beta, some = rng.normal(size=3), np.array([1, 4, 6])
    for ours, expected in (
        (gram.diagonal(), full.diagonal()),
        (gram.block(some, some[:2]), full.block(some, some[:2])),
        (gram.functions(some, beta), full.functions(some, beta)),
        (gram.values(some, some, beta), full.values(some, some, beta)),
        (
            gram.restricted(some).block(np.arange(3), np.arange(3)),
            full.block(some, some),
        ),
    ):
        np.testing.assert_allclose(ours, expected, atol=1e-12)
    assert len(gram) == 7 and len(gram.restricted(some)) == 3


def test_the_path_from_nothing_has_targets_too():
    signs, targets = EpsilonInsensitive(0.2).hinges(UNIT)
    gram = DenseGram(RBF(0.3).gram(X) + 1.0)
    repeated = RepeatedGram(gram, np.tile(np.arange(60), 2))
    given = repeated, signs.ravel(), np.full(120, 0.7)
    grown, _ = solve(*given, bias=False, p=targets.ravel())
    started, _ = solve(*given, np.zeros(120), bias=False, p=targets.ravel())
    np.testing.assert_allclose(grown.alpha, started.alpha, atol=1e-9)


# --- hypergradients -------------------------------------------------------------------

KERNELS = [
    RBF(0.2),
    RBF(0.2, per_feature=True),
    Polynomial(2, gamma=0.3),
    RBF(0.2).on([0, 1]) + Linear().on([2, 3]),
]


def check_gradient(model, seed=1):
    H = BilevelObjective(model, X, y)
    theta = H.theta0 + 0.1 * np.random.default_rng(seed).normal(size=len(H.theta0))
    expected = central_difference(lambda t: H(t)[0], theta, step=1e-5)
    found = H(theta)[1]
    assert np.linalg.norm(found) > 1e-4
    if "epsilon" in H.names:
        assert abs(found[H.names.index("epsilon")]) > 1e-5
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.linalg.norm(expected))


@pytest.mark.parametrize(
    ("kernel", "criterion", "intercept"),
    crossed(KERNELS, ["mse", "gaussian", StructuralRisk()], [True, False, "penalized"]),
    ids=str,
)
def test_hypergradients_of_C_epsilon_and_kernel(kernel, criterion, intercept):
    model = BilevelSVR(
        kernel,
        C=2.0,
        epsilon=0.8,
        loss="epsilon_insensitive",
        criterion=criterion,
        fit_intercept=intercept,
        prior=None,
        random_state=0,
    )
    check_gradient(model)


@pytest.mark.parametrize(
    ("regularization", "intercept"),
    [
        ("shared", True),
        ("shared", False),
        ("shared", "penalized"),
        ("per_feature", True),
    ],
)
def test_hypergradients_of_linear_machines(regularization, intercept):
    model = BilevelLinearSVR(
        epsilon=0.8,
        loss="epsilon_insensitive",
        criterion="mse",
        regularization=regularization,
        fit_intercept=intercept,
        prior=None,
        random_state=0,
    )
    check_gradient(model)


def test_the_intercept_moves_between_its_ends():
    """With a tiny C all points beyond the tube are at their bound: none on a corner."""
    model = BilevelSVR(
        RBF(0.2),
        C=1e-6,
        epsilon=0.8,
        loss="epsilon_insensitive",
        criterion="mse",
        prior=None,
        random_state=0,
    )
    H = BilevelObjective(model, X, y)
    theta = H.theta0
    expected = central_difference(lambda t: H(t)[0], theta, step=1e-5)
    found = H(theta)[1]
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.linalg.norm(expected))


# --- the estimator --------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_an_estimator_is_the_svr_it_exports(scale):
    model = BilevelSVR(
        RBF(0.2),
        loss="epsilon_insensitive",
        epsilon=0.5 * scale,
        C=2.0 * scale,
        learn=None,
        random_state=0,
    ).fit(X, scale * y)
    twin = SVR(gamma=0.2, C=2.0 * scale, epsilon=0.5 * scale, tol=1e-10)
    expected = twin.fit(X, scale * y).predict(X)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-6 * scale)
    exported = model.to_sklearn().set_params(svr__tol=1e-10).fit(X, scale * y)
    np.testing.assert_allclose(exported.predict(X), expected, atol=1e-6 * scale)
    assert set(model.support_) == set(twin.support_)


SETTINGS = {"loss": "epsilon_insensitive", "random_state": 0, "cv": 3}


@pytest.mark.parametrize(
    "learn",
    [
        "epsilon",
        pytest.param(("C", "epsilon", "gamma"), marks=pytest.mark.full),
    ],
)
@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_a_search_finds_a_good_machine(learn):
    model = BilevelSVR(RBF(0.15), C=10.0, learn=learn, **SETTINGS).fit(X, y)
    new, truth = make_friedman1(300, n_features=5, noise=1.0, random_state=1)
    assert model.score((new - 0.5) * 3.0, truth) > 0.7
    assert model.certificate_.final_residual < 1e-8
    assert set(model.hyperparameters_) == {"C", "epsilon", "gamma"}
    assert model.epsilon_ != pytest.approx(0.1 * y.std())


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_a_search_for_a_linear_machine():
    linear = BilevelLinearSVR(**SETTINGS).fit(X, y)
    assert linear.score(X, y) > 0.5 and linear.coef_.shape == (1, 5)


def test_the_hinge_is_one_hinge():
    labels = np.array([1.0, -1.0])
    signs, targets = Hinge().hinges(labels)
    np.testing.assert_array_equal(signs, [labels])
    np.testing.assert_array_equal(targets, [[1.0, 1.0]])
