"""What every solver promises, and hard cases that all must survive."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from bisvm.kernels import RBF
from bisvm.losses import Hinge, ModifiedLog, Quartic, get_loss
from bisvm.machines import KernelMachine, LinearMachine, linear
from bisvm.solvers import FISTA, SOLVERS, Auto, Newton, NewtonCG, get_solver
from bisvm.testing import check_solver
from tests.covering import crossed
from tests.problems import INTERCEPTS, SMOOTH_LOSSES, sparse_twin, toy_data, within


def linear_machine(X, y, *, C=1.0, loss="quartic", intercept="free", **settings):
    shape = (X.shape[0], 1)
    labels = np.reshape(2.0 * np.asarray(y) - 1.0, shape)
    weights = C * np.ones(shape)
    parts = (labels, weights, get_loss(loss), intercept)
    return LinearMachine(*parts, X, np.ones(X.shape[1]), **settings)


def kernel_machine(
    X, y, *, C=1.0, gamma=0.5, loss="quartic", intercept="free", **settings
):
    shape = (X.shape[0], 1)
    labels = np.reshape(2.0 * np.asarray(y) - 1.0, shape)
    kernel = RBF(gamma)
    parts = (labels, C * np.ones(shape), get_loss(loss), intercept)
    return KernelMachine(*parts, kernel, X, kernel.gram(X), **settings)


BOTH = pytest.mark.parametrize("build", [linear_machine, kernel_machine])


def true_residual(machine, solution):
    return machine.residual(solution.x, machine.tangent(machine.fit_values(solution.x)))


@pytest.mark.parametrize("solver", [Newton(), FISTA()], ids=repr)
def test_every_solver_keeps_the_contract(solver):
    check_solver(solver)


@BOTH
@pytest.mark.parametrize("loss", SMOOTH_LOSSES)
def test_fista_and_newton_meet(build, loss):
    X, y = toy_data(40)
    for intercept in INTERCEPTS:
        machine = build(X, y, loss=loss, intercept=intercept)
        newton = Newton().solve(machine, None, 1e-12)
        fista = FISTA().solve(machine, None, 1e-8)
        np.testing.assert_allclose(fista.fitted, newton.fitted, atol=1e-5)
        assert fista.status == newton.status == "converged"


@BOTH
@pytest.mark.parametrize("solver", [Newton(), FISTA()], ids=repr)
def test_a_warm_start_changes_the_work_and_not_the_answer(build, solver):
    X, y = toy_data(60)
    machine = build(X, y, C=1.0)
    before = solver.solve(build(X, y, C=1.1), None, 1e-9)
    cold, warm = (solver.solve(machine, start, 1e-9) for start in (None, before.fitted))
    np.testing.assert_allclose(warm.fitted, cold.fitted, atol=1e-6)
    assert warm.iterations < cold.iterations


@BOTH
def test_a_hopeless_start_changes_nothing(build):
    X, y = toy_data(60)
    machine = build(X, y)
    cold = Newton().solve(machine, None, 1e-10)
    for start in (np.full((60, 1), 1e6), -50.0 * machine.labels, np.zeros((60, 1))):
        warm = Newton().solve(machine, start, 1e-10)
        np.testing.assert_allclose(warm.fitted, cold.fitted, atol=1e-7)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_conjugate_gradients_and_factors_solve_one_problem(intercept):
    X, y = toy_data(60)
    for data, build in (
        (X, linear_machine),
        (sparse_twin(X), linear_machine),
        (X, kernel_machine),
    ):
        direct = build(data, y, intercept=intercept)
        by_action = replace(direct, direct_limit=0)
        a, b = (Newton().solve(machine, None, 1e-11) for machine in (direct, by_action))
        np.testing.assert_allclose(b.fitted, a.fitted, atol=1e-8)


@pytest.mark.parametrize(
    "C, loss, intercept",
    crossed([1e-2, 1.0, 1e3], SMOOTH_LOSSES, INTERCEPTS, strength=1),
)
def test_steps_that_stop_early_end_where_exact_ones_do(C, loss, intercept):
    X, y = toy_data(60)
    wide = np.random.default_rng(0).normal(size=(60, 150))
    for data in (X, sparse_twin(X), wide, sparse_twin(wide)):
        exact = linear_machine(data, y, C=C, loss=loss, intercept=intercept)
        by_action = replace(exact, direct_limit=0)
        expected = Newton().solve(exact, None, 1e-11)
        found = NewtonCG().solve(by_action, None, 1e-11)
        assert found.residual.max() <= 1e-9
        # Large C leaves a valley that is flat to rounding: there E is what agrees.
        values = [exact.value(s.x, s.tangent) for s in (found, expected)]
        np.testing.assert_allclose(*values, rtol=1e-9)
        if C <= 1.0:
            np.testing.assert_allclose(found.fitted, expected.fitted, atol=1e-7)


def test_sparse_rows_of_many_features_are_multiplied_not_squared(monkeypatch):
    """The machine of scikit-learn, without any Hessian; hopeless systems get one."""
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(900, 300)) * (rng.random((900, 300)) < 0.05)
    y = (dense[:, :5].sum(axis=1) + 0.3 * rng.normal(size=900) > 0).astype(int)
    settings = {"loss": "squared_hinge", "intercept": "none"}
    machine = linear_machine(sparse.csr_array(dense), y, **settings)
    assert machine.by_action
    expected = LinearSVC(fit_intercept=False, dual=False, tol=1e-10).fit(dense, y)
    for patience in (linear.PATIENCE, 1):
        monkeypatch.setattr(linear, "PATIENCE", patience)
        found = Auto().solve(machine, None, 1e-10)
        assert found.residual.max() <= 1e-9
        np.testing.assert_allclose(found.x.coef.T, expected.coef_, atol=1e-6)


@BOTH
@pytest.mark.parametrize("loss", SMOOTH_LOSSES)
def test_the_residual_that_is_reported_is_the_true_one(build, loss):
    X, y = toy_data(60)
    for C in 10.0 ** np.arange(-4, 6):
        for intercept in INTERCEPTS:
            machine = build(X, y, C=C, loss=loss, intercept=intercept)
            solution = Newton().solve(machine, None, 1e-8)
            true = true_residual(machine, solution)
            np.testing.assert_allclose(solution.residual, true, atol=1e-14)
            assert true.max() <= 1e-6, f"C={C:g}, {intercept}: {solution.status}"
            assert solution.status != "max_iter"


@BOTH
def test_a_limit_on_the_iterations_is_reported(build):
    X, y = toy_data(60)
    machine = build(X, y, C=1e3, loss=Quartic(1e-3))
    for solver in (Newton(max_iter=1), FISTA(max_iter=3)):
        solution = solver.solve(machine, machine.cold_start(), 1e-12)
        assert solution.status == "max_iter"
        true = true_residual(machine, solution)
        np.testing.assert_allclose(solution.residual, true)
        assert true.max() > 1e-12


@BOTH
def test_a_tolerance_below_rounding_stalls_and_says_so(build):
    X, y = toy_data(60)
    solution = Newton().solve(build(X, y, C=1e4), None, 1e-30)
    assert solution.status == "stalled"
    assert solution.residual.max() < 1e-8


@pytest.mark.parametrize("eps", [1e-3, 0.125])
@pytest.mark.parametrize("surplus", [0, 1, 2, 10])
@BOTH
def test_an_intercept_that_no_point_holds_finds_its_place(build, surplus, eps):
    """Small C: every point is inside the margin, and only the class sizes pull."""
    X, y = toy_data(400)
    half = 100
    rows = np.r_[np.flatnonzero(y == 0)[:half], np.flatnonzero(y)[: half - surplus]]
    for C in (1e-3, 0.02, 0.05):
        machine = build(X[rows], y[rows], C=C, loss=Quartic(eps))
        solution = Newton().solve(machine, None, 1e-8)
        assert solution.residual.max() <= 1e-6, f"C={C:g}: {solution.status}"


@pytest.mark.parametrize("seed", [11, 78, 89, 112, 149])
def test_a_sharp_loss_is_solved_on_separated_classes(seed):
    """On the way hardly any point has curvature, and E must fall all the same."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, int(rng.integers(1, 4))))
    y = X[:, 0] + 0.1 * rng.normal(size=60) * rng.integers(0, 2) > 0.8
    for C in (1e3, 1e4, 1e5):
        machine = linear_machine(X, y, C=C, loss=ModifiedLog(100.0))
        solution = Newton().solve(machine, None, 1e-8)
        assert solution.residual.max() <= 1e-6, f"C={C:g}: {solution.status}"


@BOTH
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_two_points_are_enough(build, intercept):
    machine = build(np.array([[0.0], [1.0]]), [0, 1], intercept=intercept, C=10.0)
    solution = Newton().solve(machine, None, 1e-10)
    assert solution.residual.max() <= 1e-9
    assert solution.fitted[1, 0] > solution.fitted[0, 0]
    if intercept == "free":
        assert solution.fitted.sum() == pytest.approx(0.0, abs=1e-6)


@BOTH
@pytest.mark.parametrize("loss", SMOOTH_LOSSES)
def test_duplicated_rows_with_opposite_labels_cancel(build, loss):
    X, _ = toy_data(10)
    machine = build(np.vstack([X, X]), np.repeat([0, 1], 10), loss=loss, C=10.0)
    solution = Newton().solve(machine, None, 1e-10)
    assert solution.residual.max() <= 1e-8
    np.testing.assert_allclose(solution.fitted, 0.0, atol=1e-6)


@BOTH
@pytest.mark.parametrize("loss", SMOOTH_LOSSES)
def test_points_of_weight_zero_are_as_good_as_absent(build, loss):
    X, y = toy_data(60)
    few = np.array([3, 17, 20, 41, 55])
    assert len(np.unique(y[few])) == 2
    machine = build(X, y, loss=loss)
    weights = np.zeros_like(machine.weights)
    weights[few] = 1.0
    whole = Newton().solve(replace(machine, weights=weights), None, 1e-10)
    alone = Newton().solve(build(X[few], y[few], loss=loss), None, 1e-10)
    np.testing.assert_allclose(whole.fitted[few], alone.fitted, atol=1e-6)
    np.testing.assert_allclose(whole.x.intercept, alone.x.intercept, atol=1e-6)


@BOTH
def test_a_point_of_weight_two_is_two_points(build):
    X, y = toy_data(20)
    machine = build(X, y)
    doubled = replace(machine, weights=np.where(np.arange(20) < 5, 2.0, 1.0)[:, None])
    repeated = build(np.vstack([X, X[:5]]), np.append(y, y[:5]))
    a, b = (Newton().solve(one, None, 1e-12) for one in (doubled, repeated))
    np.testing.assert_allclose(a.fitted, b.fitted[:20], atol=1e-8)


@BOTH
def test_columns_of_all_difficulties_go_through_one_solve(build):
    X, y = toy_data(40)
    machine = build(X, y)
    C = 10.0 ** np.arange(-4, 5)
    batch = replace(
        machine,
        labels=np.tile(machine.labels, (1, len(C))),
        weights=np.tile(machine.weights, (1, len(C))) * C,
    )
    together = Newton().solve(batch, None, 1e-10)
    for k, one in enumerate(C):
        alone = Newton().solve(build(X, y, C=one), None, 1e-10)
        np.testing.assert_allclose(together.fitted[:, [k]], alone.fitted, atol=1e-5)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
@pytest.mark.parametrize("data", ["dense", "sparse"])
def test_features_on_absurd_scales_leave_everything_finite(scale, intercept, data):
    """C is the natural one, 1 / variance: the machine is the same on any scale."""
    X, y = toy_data(40)
    X = X if data == "dense" else sparse_twin(X)
    machine = linear_machine(X * scale, y, C=scale**-2, intercept=intercept)
    solution = Newton().solve(machine, None, 1e-8)
    assert np.all(np.isfinite(solution.fitted))
    if intercept == "none":
        same = Newton().solve(linear_machine(X, y, intercept=intercept), None, 1e-8)
        np.testing.assert_allclose(solution.fitted, same.fitted, atol=1e-5)


def test_features_on_different_scales_stand_side_by_side():
    X, y = toy_data(40)
    scales = np.array([1e-150, 1.0, 1e150])
    plain = linear_machine(X, y)
    skewed = replace(plain, X=X * scales, precision=scales**2)
    a, b = (Newton().solve(machine, None, 1e-10) for machine in (plain, skewed))
    np.testing.assert_allclose(b.fitted, a.fitted, atol=1e-6)


def test_constant_columns_do_no_harm():
    X, y = toy_data(40)
    padded = np.hstack([X, np.zeros((40, 1)), np.full((40, 1), 7.0)])
    for intercept in INTERCEPTS:
        machine = linear_machine(padded, y, intercept=intercept)
        solution = Newton().solve(machine, None, 1e-10)
        assert solution.residual.max() <= 1e-8
        assert solution.x.coef[3, 0] == 0.0


@BOTH
def test_fista_comes_to_an_end_on_the_hinge(build):
    """Either it refuses a loss whose slope jumps, or it says how far it got."""
    X, y = toy_data(20)
    with within(600):
        try:
            solution = FISTA(max_iter=50).solve(build(X, y, loss=Hinge()), None, 1e-8)
        except ValueError as refusal:
            assert "Hinge" in str(refusal)
        else:
            assert solution.status in ("converged", "max_iter")


def test_newton_refuses_a_loss_without_curvature():
    X, y = toy_data(20)
    with pytest.raises(ValueError, match="twice differentiable.*Hinge.*'quartic'"):
        Newton().solve(kernel_machine(X, y, loss=Hinge()))


def test_names_stand_for_solvers():
    assert get_solver("auto") == Auto()
    assert get_solver("newton") == Newton()
    assert get_solver("newton-cg") == NewtonCG()
    assert get_solver("fista") == FISTA()
    assert get_solver(Newton(max_iter=3)) == Newton(max_iter=3)
    with pytest.raises(ValueError, match="'auto', 'newton', 'newton-cg', 'fista'"):
        get_solver("smoo")
    assert set(SOLVERS) >= {"auto", "newton", "fista"}
