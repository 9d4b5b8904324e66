"""What every optimizer promises, whatever its method."""

import numpy as np
import pytest
from scipy.optimize import OptimizeResult
from sklearn.base import clone

from bisvm.optimizers import LBFGS, OPTIMIZERS, Grid, Scan, get_optimizer
from bisvm.published import RPROP

# A constant step has to suit the objective: it is tried on its own, below.
# Others see more than the objective, and have tests of their own.
OTHERS = (
    "grid",
    "scan",
    "gradient",
    "nesterov",
    "sgd-dcd",
    "bilevel-sgd",
    "fold-newton",
    "slp-filter",
    "ipopt",
)
ADAPTIVE = [name for name in OPTIMIZERS if name not in OTHERS]
DESCENTS = [OPTIMIZERS[name]() for name in ADAPTIVE]
DESCENTS.append(LBFGS(transform="log"))
EVERY = [*DESCENTS, Grid(points=7), Scan()]
every = pytest.mark.parametrize("optimizer", EVERY, ids=repr)
descents = pytest.mark.parametrize("optimizer", DESCENTS, ids=repr)

BOUNDS = np.array([[-4.0, 4.0], [-3.0, 5.0]])


def bowl(x):
    """0.2 + 0.1 |x - (1, -1)|^2."""
    r = x - np.array([1.0, -1.0])[: x.size]
    return 0.2 + 0.1 * r @ r, 0.2 * r


class Recorder:
    """An objective that remembers where it was evaluated."""

    def __init__(self, fun=bowl):
        self.fun, self.points, self.values = fun, [], []

    def __call__(self, x):
        value, gradient = self.fun(x)
        self.points.append(x.copy())
        self.values.append(value)
        return value, gradient


@every
def test_result_has_one_form(optimizer):
    fun = Recorder()
    result = optimizer.minimize(fun, [-2.0, 3.0], BOUNDS)
    assert isinstance(result, OptimizeResult)
    assert result.success is (result.status == 0) is True
    assert result.x.shape == result.jac.shape == (2,)
    assert isinstance(result.fun, float)
    assert isinstance(result.message, str) and result.message
    assert result.nfev == len(fun.points)
    assert result.nit >= 1


@every
def test_the_best_point_evaluated_is_returned(optimizer):
    rng = np.random.default_rng(0)

    def noisy(x):
        value, gradient = bowl(x)
        return value + 0.05 * rng.standard_normal(), gradient

    fun = Recorder(noisy)
    result = optimizer.minimize(fun, [-2.0, 3.0], BOUNDS)
    best = int(np.argmin(fun.values))
    assert result.fun == fun.values[best]
    np.testing.assert_array_equal(result.x, fun.points[best])
    np.testing.assert_array_equal(result.jac, bowl(result.x)[1])


@every
def test_every_point_is_within_the_bounds(optimizer):
    fun = Recorder()
    bounds = np.array([[-2.0, 0.5], [0.0, 5.0]])
    result = optimizer.minimize(fun, [-2.0, 3.0], bounds)
    points = np.array(fun.points)
    assert (points >= bounds[:, 0]).all() and (points <= bounds[:, 1]).all()
    np.testing.assert_allclose(result.x, [0.5, 0.0], atol=1e-12)


@descents
def test_a_start_outside_is_brought_inside(optimizer):
    fun = Recorder()
    optimizer.minimize(fun, [-100.0, 100.0], BOUNDS)
    np.testing.assert_array_equal(fun.points[0], [-4.0, 5.0])


@every
def test_arguments_stay_as_they_are(optimizer):
    def vandal(x):
        value, gradient = bowl(x)
        x[:] = np.nan
        return value, gradient

    x0, bounds = np.array([-9.0, 3.0]), BOUNDS.copy()
    result = optimizer.minimize(vandal, x0, bounds)
    np.testing.assert_array_equal(x0, [-9.0, 3.0])
    np.testing.assert_array_equal(bounds, BOUNDS)
    assert np.isfinite(result.x).all()


@every
def test_exceptions_pass_through_untouched(optimizer):
    class OutOfTime(Exception):
        pass

    def fun(x):
        if len(recorder.points) == 2:
            raise OutOfTime("after two")
        return bowl(x)

    recorder = Recorder(fun)
    with pytest.raises(OutOfTime, match="after two"):
        optimizer.minimize(recorder, [-2.0, 3.0], BOUNDS)


@pytest.mark.parametrize("exception", [StopIteration, KeyboardInterrupt, ValueError])
@every
def test_exceptions_with_a_meaning_of_their_own_pass_too(optimizer, exception):
    def fun(x):
        if len(recorder.points) == 2:
            raise exception("mine")
        return bowl(x)

    recorder = Recorder(fun)
    with pytest.raises(exception, match="mine"):
        optimizer.minimize(recorder, [-2.0, 3.0], BOUNDS)


def treacherous(bad):
    """The bowl with a region around a far corner where it has no finite value."""

    def fun(x):
        value, gradient = bowl(x)
        if x[0] > 1.2 or x[1] < -1.2:
            return (bad, gradient) if bad != "gradient" else (value, gradient * np.inf)
        return value, gradient

    return fun


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, "gradient"])
@descents
def test_values_that_are_not_finite_are_steps_too_far(optimizer, bad):
    result = optimizer.minimize(treacherous(bad), [-3.0, 4.5], BOUNDS)
    assert result.status == 0
    assert np.isfinite(result.fun)
    np.testing.assert_allclose(result.x, [1.0, -1.0], atol=5e-3)


@descents
def test_stuck_at_values_that_are_not_finite(optimizer):
    """The lowest values lie along the edge of a region without any."""

    def cliff(x):
        value = 2.0 - 0.1 * x[0]
        return (value if x[0] < 1.0 else np.nan), np.array([-0.1])

    result = optimizer.minimize(cliff, [0.2], [[-5.0, 5.0]])
    assert result.status == 3 and not result.success
    assert result.x[0] < 1.0 and result.fun < 2.0 - 0.1 * 0.2
    assert "not finite" in result.message


@every
def test_no_finite_value_at_all_is_an_error(optimizer):
    with pytest.raises(ValueError, match="not finite at"):
        optimizer.minimize(lambda x: (np.nan, x), [0.0, 0.0], BOUNDS)


@every
def test_a_start_that_is_not_finite_is_an_error(optimizer):
    with pytest.raises(ValueError, match="x0 must be finite; got"):
        optimizer.minimize(bowl, [0.0, np.nan], BOUNDS)


@every
def test_bad_bounds_are_named(optimizer):
    with pytest.raises(ValueError, match=r"bounds\[1\] = \(2, 1\): the lower bound"):
        optimizer.minimize(bowl, [0.0, 0.0], [[0.0, 1.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match=r"bounds\[0\] = \(nan, 1\)"):
        optimizer.minimize(bowl, [0.0, 0.0], [[np.nan, 1.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match=r"shape \(2, 2\).*got shape \(1, 2\)"):
        optimizer.minimize(bowl, [0.0, 0.0], [[0.0, 1.0]])


@every
def test_bad_gradients_and_starts_are_refused(optimizer):
    with pytest.raises(ValueError, match=r"gradient of shape \(3,\); expected \(2,\)"):
        optimizer.minimize(lambda x: (1.0, np.ones(3)), [0.0, 0.0], BOUNDS)
    with pytest.raises(ValueError, match="x0 must be a vector"):
        optimizer.minimize(bowl, 0.0, [[0.0, 1.0]])


@every
def test_fixed_coordinates_stay(optimizer):
    result = optimizer.minimize(bowl, [0.0, 0.0], [[-4.0, 4.0], [0.5, 0.5]])
    assert result.x[1] == 0.5
    assert result.status == 0


@every
def test_nothing_to_learn(optimizer):
    result = optimizer.minimize(lambda x: (0.3, np.empty(0)), [], np.empty((0, 2)))
    assert result.fun == 0.3 and result.x.shape == (0,)
    assert result.status == 0 and result.nfev == 1


@descents
def test_a_minimum_as_start_takes_one_evaluation(optimizer):
    result = optimizer.minimize(bowl, [1.0, -1.0], BOUNDS)
    assert (result.status, result.nfev) == (0, 1)
    at_corner = optimizer.minimize(bowl, [0.5, 0.0], [[-2.0, 0.5], [0.0, 5.0]])
    assert (at_corner.status, at_corner.nfev) == (0, 1)


@descents
def test_unbounded_problems(optimizer):
    result = optimizer.minimize(bowl, [-2.0, 3.0])
    np.testing.assert_allclose(result.x, [1.0, -1.0], atol=2e-3)
    half = optimizer.minimize(bowl, [-2.0, 3.0], [[-np.inf, 0.5], [-np.inf, np.inf]])
    np.testing.assert_allclose(half.x, [0.5, -1.0], atol=2e-3)


@descents
def test_the_units_of_the_objective_do_not_matter(optimizer):
    def scaled(unit):
        def fun(x):
            value, gradient = bowl(x)
            return unit * value, unit * gradient

        return optimizer.minimize(fun, [-2.0, 3.0], BOUNDS)

    reference = scaled(1.0)
    for unit in (2.0**-40, 2.0**40):
        result = scaled(unit)
        assert result.nfev == reference.nfev
        np.testing.assert_allclose(result.x, reference.x, rtol=1e-9)


@descents
def test_the_iteration_limit(optimizer):
    result = optimizer.replace(max_iter=2).minimize(bowl, [-3.0, 4.5], BOUNDS)
    assert result.status in (0, 1) and result.nit <= 2
    result = optimizer.replace(max_iter=1).minimize(bowl, [-3.0, 4.5], BOUNDS)
    assert result.status == 1 and not result.success
    assert "limit" in result.message
    assert result.fun < bowl(np.array([-3.0, 4.5]))[0]


@every
def test_optimizers_are_value_objects(optimizer):
    assert clone(optimizer) == optimizer
    assert optimizer.replace(**optimizer.get_params()) == optimizer
    assert type(optimizer).__name__ in repr(optimizer)


def test_equality_and_repr():
    assert RPROP(step=0.2) != RPROP()
    assert LBFGS() != RPROP()
    assert repr(RPROP(step=0.2)) == "RPROP(step=0.2)"


def test_get_optimizer():
    assert all(get_optimizer(name) == make() for name, make in OPTIMIZERS.items())
    optimizer = RPROP(step=0.3)
    assert get_optimizer(optimizer) is optimizer
    with pytest.raises(ValueError, match="'lbfg': .*'lbfgs', 'rprop', 'grid'.*mean"):
        get_optimizer("lbfg")
    with pytest.raises(TypeError, match="optimizer must be one of .*'lbfgs'"):
        get_optimizer(3)
    with pytest.raises(TypeError, match=r"pass an object, LBFGS\(\)"):
        get_optimizer(LBFGS)


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        (LBFGS(max_iter=0), "max_iter must be an integer of at least 1; got 0"),
        (LBFGS(ftol=-1.0), "ftol must be a positive, finite number; got -1.0"),
        (LBFGS(transform="sqrt"), r"transform must be one of .*'log'.*got 'sqrt'"),
        (RPROP(step="big"), "step must be a positive, finite number; got 'big'"),
        (RPROP(decrease=1.5), "decrease < 1 <= increase"),
        (RPROP(step=2.0), "min_step <= step <= max_step"),
        (RPROP(tol=1e-7), "tol must exceed min_step"),
        (RPROP(max_iter=1.5), "max_iter must be an integer"),
        (Grid(points=0), "points must be an integer of at least 1; got 0"),
        (Grid(points=[3, 2.5]), "points must be an integer of at least 1; got 2.5"),
        (Grid(max_points=True), "max_points must be an integer"),
    ],
    ids=lambda p: repr(p) if not isinstance(p, str) else "",
)
def test_bad_parameters_are_refused(optimizer, message):
    with pytest.raises(ValueError, match=message):
        get_optimizer(optimizer)
    with pytest.raises(ValueError, match=message):
        optimizer.minimize(bowl, [0.0, 0.0], BOUNDS)
