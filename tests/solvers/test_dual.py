"""The exact hinge: duals, sets and hypergradients."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC
from bisvm.criteria import StructuralRisk
from bisvm.kernels import RBF, Linear, Polynomial
from bisvm.losses import Hinge, Quartic
from bisvm.machines import KernelMachine, LinearMachine
from bisvm.published import Pegasos
from bisvm.solvers import DCD, SMO, Auto, Dual, Sharpening, get_solver
from bisvm.testing import central_difference, check_part
from tests.covering import crossed
from tests.problems import three_classes, toy_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

X, y = toy_data(50)
RNG = np.random.default_rng(0)


def machine(kernel, C=1.0, X=X, y=y, seed=0):
    """Two columns: all points, and all but some, with weights."""
    labels = np.where(y == 1, 1.0, -1.0)
    rng = np.random.default_rng(seed)
    weights = np.stack([np.ones(len(y)), rng.uniform(0.2, 2.0, len(y))], axis=1)
    weights[::7, 1] = 0.0
    columns = np.stack([labels, labels], axis=1)
    return KernelMachine(
        columns, C * weights, Hinge(), "free", kernel, X, kernel.gram(X)
    )


def dual(one, k, beta):
    """sum alpha - 1/2 beta'K beta."""
    return one.labels[:, k] @ beta - 0.5 * beta @ one.gram @ beta


@pytest.mark.parametrize(
    "kernel, C",
    crossed(
        [RBF(0.5), Linear(), Polynomial(2, gamma=0.3)], [1e-2, 1.0, 1e3], strength=1
    ),
)
def test_the_solution_is_that_of_svc_to_the_last_digits(kernel, C):
    one = machine(kernel, C)
    solution = SMO().solve(one)
    assert solution.status == "converged" and solution.residual.max() < 1e-6
    for k in range(2):
        svc = SVC(kernel="precomputed", C=1.0, tol=1e-10)
        svc.fit(one.gram, one.labels[:, k], one.weights[:, k] + 1e-300)
        # At C = 1000 LIBSVM itself stops a little short of the optimum.
        np.testing.assert_allclose(
            solution.fitted[:, k],
            svc.decision_function(one.gram),
            atol=1e-5 if C < 100 else 1e-2,
        )
        beta = np.zeros(len(y))
        beta[svc.support_] = svc.dual_coef_[0]
        assert dual(one, k, solution.x.coef[:, k]) >= dual(one, k, beta) * (1 - 1e-9)
    alpha = one.labels * solution.x.coef
    assert np.all(alpha >= -1e-12 * one.weights)
    assert np.all(alpha <= one.weights * (1 + 1e-9))
    np.testing.assert_allclose(solution.x.coef.sum(axis=0), 0.0, atol=1e-8 * C)


def test_the_sets_are_carried_by_the_tangent():
    one = machine(RBF(0.5))
    solution = SMO().solve(one)
    free = np.isinf(solution.tangent.curvature)
    u = one.labels * solution.fitted
    np.testing.assert_allclose(u[free], 1.0, atol=1e-9)
    np.testing.assert_array_equal(solution.tangent.slope, -solution.x.coef)
    assert 0 < free.sum() < free.size


@pytest.mark.parametrize(
    "kernel, criterion",
    crossed(
        [
            RBF(0.4),
            RBF(0.4, per_feature=True),
            Polynomial(2, gamma=0.3),
            RBF(0.3).on([0, 1]) + Linear().on([2]),
        ],
        ["mse", "logistic", StructuralRisk()],
        strength=1,
    ),
)
def test_hypergradients_through_the_free_vectors(kernel, criterion):
    model = BilevelSVC(
        kernel, C=1.3, loss="hinge", criterion=criterion, prior=None, random_state=0
    )
    H = BilevelObjective(model, X, y)
    theta = H.theta0 + 0.1 * np.random.default_rng(1).normal(size=len(H.theta0))
    expected = central_difference(lambda t: H(t)[0], theta, step=1e-5)
    found = H(theta)[1]
    assert np.linalg.norm(found) > 1e-4
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.linalg.norm(expected))


def test_duplicated_rows_and_weights_are_the_same_machine():
    twice = np.concatenate([X, X[:10]])
    labels = np.concatenate([y, y[:10]])
    weight = np.ones(len(y))
    weight[:10] = 2.0
    fixed = {"loss": "hinge", "learn": None, "C": 0.8, "cv": 2}
    doubled = BilevelSVC(RBF(0.4), **fixed).fit(twice, labels)
    weighted = BilevelSVC(RBF(0.4), **fixed).fit(X, y, weight)
    np.testing.assert_allclose(
        doubled.decision_function(X), weighted.decision_function(X), atol=1e-7
    )


def test_the_gradient_is_defined_with_duplicates_and_without_free_vectors():
    twice, labels = np.concatenate([X, X]), np.concatenate([y, y])
    for C in (1e-6, 1.0):
        model = BilevelSVC(RBF(0.4), C=C, loss="hinge", criterion="mse", prior=None)
        value, gradient = BilevelObjective(model, twice, labels)(np.log([C, 0.4]))
        assert np.isfinite(value) and np.all(np.isfinite(gradient))


@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_an_estimator_with_the_exact_hinge_is_the_svc_it_exports():
    settings = {"starts": 1, "max_iter": 5, "random_state": 0}
    model = BilevelSVC("rbf", loss="hinge", **settings).fit(X, y)
    twin = model.to_sklearn().set_params(svc__tol=1e-8).fit(X, y)
    # LIBSVM keeps its kernel in single precision: its error grows with C.
    atol = max(1e-5, 2e-7 * model.C_)
    np.testing.assert_allclose(
        model.decision_function(X), twin.decision_function(X), atol=atol
    )
    assert set(model.support_) == set(twin[-1].support_)
    assert model.certificate_.final_residual < 1e-8


def test_several_classes_and_the_linear_kernel():
    X3, y3 = three_classes(60)
    model = BilevelSVC("linear", loss="hinge", random_state=0).fit(X3, y3)
    assert model.score(X3, y3) > 0.6 and model.coef_.shape == (3, 2)


def test_a_search_lowers_the_validation_loss():
    model = BilevelSVC("ard", loss="hinge", criterion="mse", prior=None, random_state=0)
    H = BilevelObjective(model, X, y)
    found = minimize(H, H.theta0, jac=True, bounds=H.bounds, options={"maxiter": 15})
    assert found.fun < 0.9 * H(H.theta0)[0]


# --- linear machines, and machines without a free intercept -------------------------


def linear_machine(intercept, C=1.0, X=X, precision=None):
    """Two columns: all points, and all but some, with weights."""
    twin = machine(Linear(), C)
    precision = np.ones(X.shape[1]) if precision is None else precision
    return LinearMachine(twin.labels, twin.weights, Hinge(), intercept, X, precision)


def objective(one, solution):
    """The primal and the dual optimum of every column."""
    u = one.labels * solution.fitted
    losses = one.weights * np.maximum(0.0, 1.0 - u)
    size = one.inner(solution.x, solution.x, solution.fitted)
    beta = -solution.tangent.slope
    return 0.5 * size + losses.sum(axis=0), (one.labels * beta).sum(axis=0) - 0.5 * size


SOLVERS = {
    "free": [Sharpening(), Pegasos(), Pegasos(projection=False), Dual()],
    "penalized": [Sharpening(), DCD(), Pegasos(), Dual()],
    "none": [Sharpening(), DCD(max_sweeps=3), Pegasos(epochs=2), Dual()],
}
CASES = [(intercept, solver) for intercept in SOLVERS for solver in SOLVERS[intercept]]


@pytest.mark.parametrize("case, C", crossed(CASES, [1e-3, 1.0, 1e2], strength=1))
def test_every_way_near_ends_at_the_exact_linear_machine(case, C):
    intercept, solver = case
    one = linear_machine(intercept, C)
    solution = solver.solve(one)
    primal, dual_value = objective(one, solution)
    np.testing.assert_allclose(primal, dual_value, rtol=1e-9)
    assert solution.residual.max() < 1e-8
    csr = LinearMachine(
        one.labels,
        one.weights,
        Hinge(),
        intercept,
        sparse.csr_array(X),
        np.ones(X.shape[1]),
    )
    np.testing.assert_allclose(solver.solve(csr).fitted, solution.fitted, atol=1e-8)


@pytest.mark.parametrize("C", [1e-3, 0.1, 1e2])
def test_the_linear_machines_are_those_of_scikit_learn(C):
    """Objective to 1e-8, decision values to 1e-4; for large C LIBLINEAR stops short."""
    for intercept in ("free", "penalized", "none"):
        one = linear_machine(intercept, C)
        solution = Dual().solve(one)
        for k in range(2):
            labels, weights = one.labels[:, k], one.weights[:, k] + 1e-300
            if intercept == "free":
                twin = SVC(kernel="linear", C=1.0, tol=1e-12)
            else:
                twin = LinearSVC(
                    C=1.0,
                    loss="hinge",
                    tol=1e-12,
                    max_iter=10**7 if C < 1 else 10**5,
                    fit_intercept=intercept == "penalized",
                )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                twin.fit(X, labels, weights)
            f = twin.decision_function(X)
            if C < 1:
                np.testing.assert_allclose(solution.fitted[:, k], f, atol=1e-4)
            w, b = twin.coef_.ravel(), float(np.ravel(twin.intercept_)[0])
            theirs = 0.5 * w @ w + (0.5 * b * b if intercept == "penalized" else 0.0)
            theirs += one.weights[:, k] @ np.maximum(0.0, 1.0 - labels * f)
            ours = objective(one, solution)[0][k]
            assert ours <= theirs * (1 + 1e-8)
            assert ours >= theirs * (1 - 1e-8) or C > 1


@pytest.mark.parametrize(
    "fit_intercept, kind",
    crossed(
        [True, "penalized", False],
        ["linear", "csr", "per_feature", "rbf"],
        strength=1,
    ),
)
def test_hypergradients_with_every_intercept(fit_intercept, kind):
    settings = {
        "loss": "hinge",
        "criterion": "mse",
        "prior": None,
        "cv": 3,
        "fit_intercept": fit_intercept,
        "random_state": 0,
    }
    data = sparse.csr_array(X) if kind == "csr" else X
    if kind == "rbf":
        model = BilevelSVC(RBF(0.4), C=1.3, **settings)
    else:
        regularization = "per_feature" if kind == "per_feature" else "shared"
        model = BilevelLinearSVC(C=0.03, regularization=regularization, **settings)
    H = BilevelObjective(model, data, y)
    theta = H.theta0 + 0.05 * np.random.default_rng(3).normal(size=len(H.theta0))
    expected = central_difference(lambda t: H(t)[0], theta, step=1e-5)
    found = H(theta)[1]
    assert np.linalg.norm(found) > 1e-5
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.linalg.norm(expected))


@pytest.mark.parametrize("kernel", [RBF(0.4), Linear()], ids=repr)
def test_with_no_vector_on_the_margin_the_intercept_follows_its_ends(kernel):
    """Every point is in error, and b in the middle of an interval."""
    model = BilevelSVC(
        kernel, C=1e-3, loss="hinge", criterion="mse", prior=None, random_state=0
    )
    even = np.concatenate([np.flatnonzero(y == 0)[:20], np.flatnonzero(y == 1)[:20]])
    H = BilevelObjective(model, X[even], y[even])
    theta = H.theta0
    expected = central_difference(lambda t: H(t)[0], theta, step=1e-5)
    np.testing.assert_allclose(
        H(theta)[1], expected, atol=1e-6 * np.linalg.norm(expected)
    )


def test_weights_of_groups_have_gradients():
    """dH/d log C_g for a C of every group of points, the rows' own gradients summed."""
    one = machine(RBF(0.4), 1.1)
    group = np.arange(len(y)) % 3
    target = np.random.default_rng(0).normal(size=one.labels.shape)

    def value(log_C):
        weighted = KernelMachine(
            one.labels,
            one.weights * np.exp(log_C)[group][:, None],
            Hinge(),
            "free",
            one.kernel,
            X,
            one.gram,
        )
        solution = SMO().solve(weighted)
        return 0.5 * np.sum((solution.fitted - target) ** 2), weighted, solution

    log_C = np.array([0.1, -0.2, 0.3])
    _, weighted, solution = value(log_C)
    adjoint = weighted.linearize(solution.tangent).adjoint(solution.fitted - target)
    sensitivity = weighted.sensitivity(
        solution.x, solution.tangent, adjoint, solution.fitted - target
    )
    found = np.bincount(group, sensitivity.weights.sum(axis=1))
    expected = central_difference(lambda t: value(t)[0], log_C, step=1e-5)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.linalg.norm(expected))


def test_the_published_jacobian_leaves_the_margin_out():
    """Equation 23: dw/dC is the sum over the bound vectors, nothing else."""
    one = linear_machine("none", 0.05)
    solution = Dual(jacobian="published").solve(one)
    P = np.random.default_rng(0).normal(size=one.labels.shape)
    adjoint = one.linearize(solution.tangent).adjoint(P)
    found = one.sensitivity(solution.x, solution.tangent, adjoint, P).weights
    exact = Dual().solve(one)
    bound = (exact.tangent.slope != 0) & (exact.tangent.curvature == 0)
    assert np.isinf(exact.tangent.curvature).any()
    expected = np.einsum("ik,ik->k", P, X @ (X.T @ (bound * one.labels * one.weights)))
    np.testing.assert_allclose(found.sum(axis=0), expected, rtol=1e-10)
    with pytest.raises(ValueError, match="without a free intercept"):
        Dual(jacobian="published").solve(linear_machine("free"))


def test_bad_data_are_solved_or_refused():
    labels = np.where(y == 1, 1.0, -1.0)[:, None]
    rows = {
        "all rows equal": np.ones_like(X),
        "separable": X + 100.0 * labels,
        "rows of zeros": np.where(np.arange(len(y))[:, None] % 2, X, 0.0),
    }
    for data in rows.values():
        for intercept in ("free", "penalized", "none"):
            for C in (1e-6, 1.0, 1e6):
                weights = np.full(labels.shape, C)
                one = LinearMachine(
                    labels, weights, Hinge(), intercept, data, np.ones(X.shape[1])
                )
                solution = Dual().solve(one)
                primal, dual_value = objective(one, solution)
                # C times what rounding leaves of a loss.
                np.testing.assert_allclose(
                    primal, dual_value, rtol=1e-8, atol=1e-14 * C * len(y)
                )
    with pytest.raises(ValueError, match="C must be positive"):
        BilevelLinearSVC(loss="hinge", C=0.0).fit(X, y)
    single = np.where(np.arange(len(y)) == 3, 1, 0)
    with pytest.warns(UserWarning, match="has one member only"):
        model = BilevelLinearSVC(loss="hinge", starts=1, max_iter=2).fit(X, single)
    assert np.isfinite(model.decision_function(X)).all()


def test_what_they_cannot_train_is_refused():
    for solver in (SMO(), DCD(), Pegasos(), Sharpening(), Dual()):
        check_part(solver)
    assert get_solver("auto", Hinge()) == Dual()
    assert get_solver("auto", Quartic()) == Auto()
    with pytest.raises(ValueError, match="dual of the exact hinge.*Quartic"):
        BilevelSVC("rbf", solver="smo").fit(X, y)
    with pytest.raises(ValueError, match="free intercept.*'auto'"):
        BilevelSVC("rbf", loss="hinge", solver="smo", fit_intercept=False).fit(X, y)
    with pytest.raises(ValueError, match="no free intercept.*'penalized'"):
        BilevelLinearSVC(loss="hinge", solver="dcd").fit(X, y)
    with pytest.raises(ValueError, match="Pegasos trains linear machines"):
        BilevelSVC("rbf", loss="hinge", solver="pegasos").fit(X, y)
    with pytest.raises(ValueError, match="jacobian='eaxct' is not known"):
        BilevelSVC("rbf", loss="hinge", solver=SMO(jacobian="eaxct")).fit(X, y)


@pytest.mark.usefixtures("usual_searches")
def test_one_C_of_the_exact_hinge_is_scanned():
    """H has flat stretches and kinks, where a descent may stay."""
    X, y = toy_data(60)
    settings = {"loss": "hinge", "criterion": "hinge", "random_state": 0}
    scanned = BilevelLinearSVC(**settings).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stayed = BilevelLinearSVC(optimizer="bfgs", **settings).fit(X, y)
    assert scanned.criterion_value_ <= 1.001 * stayed.criterion_value_
    assert scanned.certificate_.converged and len(scanned.history_) < 40


@pytest.mark.parametrize("scale", [1e3, 1e7])
def test_columns_of_very_different_size_are_solved_or_owned_up_to(scale):
    wild = X * np.append(np.ones(X.shape[1] - 1), scale)
    model = BilevelLinearSVC(loss="hinge", learn=None, C=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(wild, y)
    exact = model.certificate_.final_residual < 1e-4
    assert exact or not model.certificate_.converged
    assert exact or scale > 1e3


def test_the_residual_is_that_of_the_solution_returned():
    """Points that are nearly there twice: gaps carried along would lose digits."""
    rng = np.random.default_rng(0)
    twice = np.concatenate([X, X + 1e-8 * rng.normal(size=X.shape)])
    labels = np.where(np.concatenate([y, y]) == 1, 1.0, -1.0)[:, None]
    for C in (1.0, 100.0):
        kernel = RBF(0.3)
        weights = np.full(labels.shape, C)
        one = KernelMachine(
            labels, weights, Hinge(), "free", kernel, twice, kernel.gram(twice)
        )
        solution = SMO().solve(one)
        primal, dual_value = objective(one, solution)
        np.testing.assert_allclose(primal, dual_value, rtol=1e-7)
        free = np.isinf(solution.tangent.curvature)
        worst = np.abs(1.0 - (labels * solution.fitted)[free]).max(initial=0.0)
        assert worst <= solution.residual.max() < 1e-6
