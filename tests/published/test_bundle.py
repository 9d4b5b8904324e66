"""Bundle methods: kinks, errors, bounds, and the quadratic subproblem."""

import numpy as np
import pytest

from bisvm import BilevelLinearSVC, BilevelObjective
from bisvm.optimizers import BFGS, LBFGS, get_optimizer
from bisvm.optimizers.base import is_oracle
from bisvm.published import Bundle, GradientDescent, VariableMetricBundle
from bisvm.published.bundle_model import Planes, dual_active_set, solve_subproblem
from bisvm.testing import check_optimizer
from tests.covering import crossed, full
from tests.problems import toy_data
from tests.published.nonsmooth import (
    FERRIER,
    Inexact,
    ferrier_sum,
    max_of_quadratics,
    rosenbrock,
)

BOTH = [Bundle(), VariableMetricBundle()]
both = pytest.mark.parametrize("optimizer", BOTH, ids=repr)
BOX = np.array([[-4.0, 4.0], [-3.0, 5.0]])


def bowl(x):
    """0.2 + 0.1 |x - (1, -1)|^2."""
    r = x - np.array([1.0, -1.0])[: x.size]
    return 0.2 + 0.1 * r @ r, 0.2 * r


@both
def test_the_contract(optimizer):
    check_optimizer(optimizer)


# --- kinks ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "optimizer, name, n", crossed(BOTH, list(FERRIER), [2, 3, 5, 10], strength=1)
)
def test_ferrier_polynomials(optimizer, name, n):
    fun, start = FERRIER[name], np.ones(n)
    result = optimizer.minimize(fun, start)
    assert result.status == 0 and result.nfev <= 150
    if result.fun > 1e-6 * fun(start)[0]:
        # A polynomial of ten variables has minima beside that at zero.
        rng = np.random.default_rng(0)
        around = result.x + 1e-3 * rng.standard_normal((2000, n))
        assert n == 10 and min(fun(x)[0] for x in around) >= result.fun


@both
def test_ferrier_polynomials_with_bounds(optimizer):
    bounds = [[0.2, 2.0], [-1.0, 1.0]]
    result = optimizer.minimize(ferrier_sum, [1.0, 1.0], bounds)
    grid = np.stack(
        np.meshgrid(np.linspace(0.2, 2.0, 401), np.linspace(-1.0, 1.0, 401)), -1
    ).reshape(-1, 2)
    near = np.array([ferrier_sum(x)[0] for x in grid[::7]])
    assert result.fun <= near.min() + 1e-3
    assert result.x[0] >= 0.2


@both
def test_nonsmooth_rosenbrock(optimizer):
    result = optimizer.replace(max_iter=500).minimize(rosenbrock, [-1.2, 1.0])
    assert result.fun < 1e-5
    np.testing.assert_allclose(result.x, [1.0, 1.0], atol=5e-3)


@pytest.mark.parametrize(("n", "pieces"), [(2, 3), (5, 6), (10, 5)])
@both
def test_max_of_quadratics(optimizer, n, pieces):
    fun = max_of_quadratics(n, pieces)
    result = optimizer.replace(max_iter=400).minimize(fun, np.full(n, 2.0))
    assert result.status == 0
    assert 0.0 <= result.fun < 1e-7


@both
def test_a_bundle_of_three_planes_will_do(optimizer):
    fun = max_of_quadratics(5, 6)
    few = optimizer.replace(max_planes=3, max_iter=600).minimize(fun, np.full(5, 2.0))
    assert few.fun < 1e-3


@both
def test_concave_pieces(optimizer):
    """A minimum between two concave stretches: the model has to be made convex."""

    def fun(x):
        slope = np.sign(x) * 0.5 / np.sqrt(np.abs(x) + 0.01)
        return 1.0 + float(np.sqrt(np.abs(x) + 0.01).sum()), slope

    result = optimizer.minimize(fun, [0.9, -0.7], [[-2.0, 2.0]] * 2)
    assert result.fun == pytest.approx(1.2, abs=1e-4)


# --- errors of the oracle -------------------------------------------------------------

NOISE = 1e-2
STARTS = {
    "ferrier": (ferrier_sum, np.ones(5)),
    "quadratics": (max_of_quadratics(5, 6), np.full(5, 2.0)),
}
problems = pytest.mark.parametrize("problem", STARTS)
told = pytest.mark.parametrize("told", [None, 0.0], ids=["honest", "silent"])


@told
@problems
@both
def test_a_constant_error_of_the_value_is_no_error(optimizer, problem, told):
    """The gradient errs too, by as much; slopes at the kinks are larger than that."""
    fun, start = STARTS[problem]
    oracle = Inexact(fun, lambda asked, size: NOISE, sign=1.0, told=told)
    result = optimizer.minimize(oracle, start)
    assert fun(result.x)[0] < 1e-4


seeds = pytest.mark.parametrize("seed", [0, *full(1, 2, 3, 4)])


@told
@problems
@both
@seeds
def test_random_errors_limit_the_answer(optimizer, problem, told, seed):
    fun, start = STARTS[problem]
    oracle = Inexact(fun, lambda asked, size: NOISE, told=told, seed=seed)
    result = optimizer.minimize(oracle, start)
    assert fun(result.x)[0] <= 4 * NOISE


@told
@both
@seeds
def test_random_errors_along_a_bent_valley(optimizer, told, seed):
    """A step of r along the valley gains 2 (1 - x) r and loses 8 r^2: (1 - x)^2 / 8.

    Where that is below two errors no method can tell it from noise.
    """
    oracle = Inexact(rosenbrock, lambda asked, size: NOISE, told=told, seed=seed)
    result = optimizer.minimize(oracle, [-1.2, 1.0])
    assert rosenbrock(result.x)[0] <= 8 * 4 * NOISE


@pytest.mark.parametrize("sign", [-1.0, None, 1.0])
@problems
@both
def test_errors_that_vanish_as_asked(optimizer, problem, sign):
    fun, start = STARTS[problem]
    # Above zero, so that an error relative to the value can be reached.
    lifted = lambda x: (fun(x)[0] + 1.0, fun(x)[1])  # noqa: E731
    oracle = Inexact(lifted, lambda asked, size: asked * size, sign=sign)
    result = optimizer.minimize(oracle, start)
    assert result.status == 0
    # Planes of rough answers stay in the bundle for a while.
    assert fun(result.x)[0] <= 20 * optimizer.tol
    assert oracle.asked[0] == optimizer.loose
    assert min(oracle.asked) < 1e-2 * max(oracle.asked)
    assert result.accuracy <= optimizer.tol


@both
def test_an_accuracy_worse_than_promised_is_told(optimizer):
    """It errs by a tenth of a thousandth whatever it is asked for, and says so."""
    oracle = Inexact(bowl, lambda asked, size: 1e-4 * size)
    result = optimizer.minimize(oracle, [-2.0, 3.0], BOX)
    assert result.status == 2 and not result.success
    assert "was asked for" in result.message or "less accurate" in result.message
    assert result.accuracy == pytest.approx(1e-4)
    assert bowl(result.x)[0] < 0.2 * (1 + 1e-3)


@pytest.mark.parametrize("reached", [np.nan, -1.0])
@both
def test_an_accuracy_that_is_no_number_counts_as_none(optimizer, reached):
    result = optimizer.minimize(lambda x, a: (*bowl(x), reached), [-2.0, 3.0], BOX)
    assert result.status == 2 and result.accuracy == np.inf
    assert bowl(result.x)[0] < 0.2 * (1 + 1e-3)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@both
def test_oracles_that_fail_here_and_there(optimizer, bad):
    def oracle(x, accuracy):
        value, gradient = rosenbrock(x)
        return (bad if x[0] > 1.1 else value + 1.0), gradient, 0.0

    result = optimizer.replace(max_iter=400).minimize(oracle, [-1.2, 1.0])
    assert result.fun < 1.0 + 1e-3


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@both
def test_oracles_that_fail_at_the_start_are_told(optimizer, bad):
    with pytest.raises(ValueError, match="not finite at the start.*Start elsewhere"):
        optimizer.minimize(lambda x, accuracy: (bad, x, 0.0), [1.0, 2.0])
    with pytest.raises(ValueError, match="not finite at the start"):
        optimizer.minimize(lambda x, accuracy: (1.0, bad * x, 0.0), [1.0, 2.0])


@both
def test_oracles_that_fail_all_around_end_the_search(optimizer):
    def oracle(x, accuracy):
        value, gradient = bowl(x)
        away = not np.array_equal(x, [0.0, 0.0])
        return value, np.full(2, np.nan) if away else gradient, 0.0

    result = optimizer.minimize(oracle, [0.0, 0.0], BOX)
    assert result.status == 3 and "not finite" in result.message
    np.testing.assert_array_equal(result.x, [0.0, 0.0])


# --- bounds and starts ----------------------------------------------------------------


@both
def test_bounds_that_fix_a_variable(optimizer):
    result = optimizer.minimize(ferrier_sum, [1.0, 1.0], [[0.5, 0.5], [-1.0, 1.0]])
    assert result.x[0] == 0.5 and result.status == 0
    everything = optimizer.minimize(bowl, [0.0, 0.0], [[0.5, 0.5], [0.1, 0.1]])
    assert (everything.status, everything.nfev) == (0, 1)


@both
def test_a_start_outside_the_bounds(optimizer):
    result = optimizer.minimize(rosenbrock, [50.0, -50.0], [[-2.0, 2.0], [-1.0, 0.5]])
    assert result.status == 0
    assert -1.0 <= result.x[1] <= 0.5
    np.testing.assert_allclose(result.x, [np.sqrt(0.5), 0.5], atol=2e-3)


@both
def test_a_start_at_a_minimum(optimizer):
    assert optimizer.minimize(bowl, [1.0, -1.0], BOX).nfev == 1
    kink = optimizer.minimize(
        lambda x: (1.0 + np.abs(x).sum(), np.sign(x) + 0.0), [0.0]
    )
    assert kink.status == 0 and kink.x[0] == 0.0
    # The gradient one happens to be given at a kink need not vanish.
    sided = optimizer.minimize(
        lambda x: (1.0 + abs(x[0]), np.where(x >= 0, 1.0, -1.0)), [0.0]
    )
    assert sided.status == 0 and abs(sided.x[0]) < 1e-4 and sided.nfev > 1


@both
def test_a_flat_start_is_left(optimizer):
    """delta is below tol at once; one step shows that there is more to gain."""

    def fun(x):
        e = np.exp(-((x[0] - 6.0) ** 2) / 2.0)
        return 1.0 - 0.9 * e, np.array([0.9 * e * (x[0] - 6.0)])

    result = optimizer.minimize(fun, [1.2], [[-10.0, 10.0]])
    assert result.fun == pytest.approx(0.1, rel=1e-4)


# --- in an estimator ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bundle", "variable-metric-bundle"])
def test_machines_are_solved_loosely_at_first(name):
    X, y = toy_data(n=120, d=4)
    settings = dict(C=1e-3, starts=1, random_state=0, prior=None, tol=1e-2)
    fitted = BilevelLinearSVC(optimizer=name, **settings).fit(X, y)
    residuals = np.array([record.residual for record in fitted.history_])
    # What is asked follows delta; a solver that converges quickly gives more.
    assert 1e-4 < residuals.max() <= 1e-2 and residuals[-1] < 1e-4
    best = BilevelLinearSVC(**settings).set_params(tol=1e-4).fit(X, y)
    assert fitted.criterion_value_ == pytest.approx(best.criterion_value_, rel=1e-3)


@pytest.mark.parametrize("name", ["bundle", *full("variable-metric-bundle")])
@seeds
def test_one_hyperparameter_is_looked_at_beyond_its_minimum(name, seed):
    """A hinge on both levels has minima side by side."""
    X, y = toy_data(n=80, seed=seed)
    settings = dict(
        loss="hinge",
        criterion="hinge",
        fit_intercept="penalized",
        optimizer=name,
        random_state=0,
    )
    model = BilevelLinearSVC(**settings).fit(X, y)
    stages = [record.stage for record in model.history_]
    # The range of C is scanned first.
    assert "scan nearby" in stages and len(stages) - stages.count("start") <= 80
    first = min(r.value for r in model.history_ if r.stage == "shared values")
    assert model.criterion_value_ <= first
    objective = BilevelObjective(BilevelLinearSVC(**settings), X, y)
    beside = np.log(model.C_) + np.array([-1.0, -0.5, 0.5, 1.0])
    lowest = min(objective(theta)[0] for theta in beside[:, None])
    assert model.criterion_value_ <= (1.0 + 1e-3) * lowest


def test_a_schedule_and_an_oracle_meet_in_the_problem():
    asked = []

    def oracle(x, accuracy):
        asked.append(accuracy)
        return *bowl(x), 0.0

    GradientDescent(step=1.0, loose=0.1, tighten=0.5, max_iter=3).minimize(
        oracle, [0.0, 0.0], BOX
    )
    assert asked[:3] == [0.1, 0.05, 0.025]
    asked.clear()
    BFGS(ftol=1e-3).minimize(oracle, [0.0, 0.0], BOX)
    assert asked[0] == min(asked) == 1e-4 and max(asked) <= 0.03
    asked.clear()
    LBFGS().minimize(oracle, [0.0, 0.0], BOX)
    assert set(asked) == {None}


def test_what_is_an_oracle():
    class Callable:
        def __call__(self, x, accuracy):
            return 0.0

    assert is_oracle(lambda x, accuracy: 0.0) and is_oracle(Callable())
    assert not is_oracle(lambda x: 0.0) and not is_oracle(lambda x, scale=1.0: 0.0)
    assert not is_oracle(lambda *args: 0.0) and not is_oracle(max)


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        (Bundle(m=1.5), "m must be below 1"),
        (Bundle(gamma=0.0), "gamma must be a positive"),
        (Bundle(shrink=1.1), "shrink < 1 <= grow"),
        (VariableMetricBundle(max_planes=2), "max_planes must be at least 3"),
        (VariableMetricBundle(loose=np.inf), "loose must be a positive, finite"),
    ],
    ids=repr,
)
def test_bad_parameters(optimizer, message):
    with pytest.raises(ValueError, match=message):
        get_optimizer(optimizer)


# --- the bundle -----------------------------------------------------------------------


def test_planes_move_with_their_centre():
    """After a move they are what they would have been, made there at once."""
    rng = np.random.default_rng(0)
    points, gradients = rng.standard_normal((2, 4, 3))
    values = rng.standard_normal(4)
    x, new = points[0], points[3]
    planes = Planes.of(gradients[0])
    for point, value, gradient in zip(
        points[1:3], values[1:3], gradients[1:3], strict=True
    ):
        planes = planes.with_trial(point - x, value - values[0], gradient)
    moved = planes.moved(new - x, values[3] - values[0], gradients[3])
    for k, j in enumerate([3, 0, 1, 2]):
        error = values[3] - values[j] - gradients[j] @ (new - points[j])
        assert moved.errors[k] == pytest.approx(error, abs=1e-12)
        assert moved.halves[k] == pytest.approx(0.5 * np.sum((points[j] - new) ** 2))
        np.testing.assert_allclose(moved.offsets[k], points[j] - new, atol=1e-12)
    eta = moved.convexity() + 1e-9
    assert (moved.errors + eta * moved.halves >= -1e-12).all()


def test_planes_above_the_centre_go():
    planes = Planes(
        np.arange(8.0).reshape(4, 2),
        np.array([0.0, -0.3, 0.2, -0.01]),
        np.ones((4, 2)),
        np.ones(4),
    )
    kept = planes.below(0.02)
    np.testing.assert_array_equal(kept.errors, [0.0, 0.2, -0.01])
    np.testing.assert_array_equal(kept.gradients[:, 0], [0.0, 4.0, 6.0])


@both
def test_a_badly_scaled_valley_takes_few_steps(optimizer):
    """Convexity beyond what is needed must not be large against a flat curvature."""
    sizes = np.array([1.0, 0.1, 0.01])

    def fun(x):
        r = x - 1.0
        return 1.0 + 0.5 * float(sizes @ r**2), sizes * r

    result = optimizer.minimize(fun, np.full(3, -1.0))
    assert result.fun <= 1.0 + 1e-4 and result.nfev <= 40


def test_an_aggregate_takes_the_same_step():
    rng = np.random.default_rng(1)
    slopes, errors = rng.standard_normal((8, 3)), np.append(0.0, rng.random(7))
    planes = Planes(slopes, errors, np.zeros((8, 3)), np.zeros(8))
    bounds = np.full(3, -np.inf), np.full(3, np.inf)
    step = solve_subproblem(slopes, errors, np.eye(3), *bounds)
    few = planes.reduced(step.multipliers, 3)
    assert len(few) == 3
    again = solve_subproblem(few.gradients, few.errors, np.eye(3), *bounds)
    np.testing.assert_allclose(again.d, step.d, atol=1e-10)


# --- the subproblem -------------------------------------------------------------------


def subproblem(rng, n, planes):
    root = rng.standard_normal((n, n))
    slopes, errors = rng.standard_normal((planes, n)), rng.random(planes)
    slopes[planes // 2] = slopes[0]
    errors[0] = 0.0
    lower, upper = -rng.random(n), rng.random(n)
    lower[rng.random(n) < 0.3], upper[rng.random(n) < 0.3] = -np.inf, np.inf
    lower[rng.random(n) < 0.2] = 0.0
    scale = 10.0 ** rng.uniform(-6, 6)
    return (
        slopes * scale,
        errors * scale,
        root @ root.T / n + 0.1 * np.eye(n),
        lower,
        upper,
    )


@pytest.mark.parametrize(("n", "planes"), [(1, 2), (1, 12), (3, 8), (10, 30), (20, 50)])
def test_subproblem_is_optimal(n, planes):
    """Lagrange's conditions, which are sufficient."""
    rng = np.random.default_rng(n)
    for _ in range(50):
        slopes, errors, metric, lower, upper = subproblem(rng, n, planes)
        d, weights = solve_subproblem(slopes, errors, metric, lower, upper)
        heights = slopes @ d - errors
        size = np.abs(slopes).max()
        assert weights.min() >= 0.0 and weights.sum() == pytest.approx(1.0)
        assert (lower <= d).all() and (d <= upper).all()
        assert weights @ (heights.max() - heights) <= 1e-9 * size
        pull = metric @ d + weights @ slopes
        free = (d > lower + 1e-12) & (d < upper - 1e-12)
        assert np.abs(pull[free]).max(initial=0.0) <= 1e-8 * size
        assert (pull[d <= lower + 1e-12] >= -1e-8 * size).all()
        assert (pull[d >= upper - 1e-12] <= 1e-8 * size).all()


def test_subproblem_against_an_interior_point_method():
    clarabel = pytest.importorskip("clarabel")
    from scipy import sparse

    rng = np.random.default_rng(5)
    for _ in range(20):
        slopes, errors, metric, lower, upper = subproblem(rng, 4, 10)
        size = np.abs(slopes).max()
        slopes, errors = slopes / size, errors / size
        low, high, eye = np.isfinite(lower), np.isfinite(upper), np.eye(5)[:4]
        A = np.vstack([np.column_stack([slopes, -np.ones(10)]), -eye[low], eye[high]])
        b = np.concatenate([errors, -lower[low], upper[high]])
        P = sparse.csc_matrix(np.triu(np.pad(metric, (0, 1))))
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        cone = [clarabel.NonnegativeConeT(len(b))]
        solver = clarabel.DefaultSolver(
            P, np.eye(5)[4], sparse.csc_matrix(A), b, cone, settings
        )
        d = solve_subproblem(slopes, errors, metric, lower, upper).d
        np.testing.assert_allclose(d, np.array(solver.solve().x)[:4], atol=1e-5)


@pytest.mark.full
def test_the_compiled_loop_is_its_python():
    rng = np.random.default_rng(3)
    for _ in range(20):
        slopes, errors, metric, *_ = subproblem(rng, 3, 7)
        size = np.abs(slopes).max()
        K = (slopes / size) @ np.linalg.solve(metric, slopes.T / size)
        compiled = dual_active_set(K, -errors / size, 7)
        plain = dual_active_set.py_func(K, -errors / size, 7)
        np.testing.assert_allclose(compiled, plain, atol=1e-9)
