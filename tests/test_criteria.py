"""Criteria: slopes against differences, the calibrated scale, extreme margins."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.base import clone

from bisvm.criteria import (
    CRITERIA,
    VALIDATION,
    CalibratedLogistic,
    CalibratedSquaredError,
    MeanHinge,
    MeanLogistic,
    MeanSquaredError,
    MeanSquaredHinge,
    get_criterion,
)

EVERY = [kind() for kind in VALIDATION.values()] + [CalibratedLogistic(1e-2, 0.5)]


def sample(n=60, shift=0.8, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 1.0, n)
    return rng.normal(shift, 1.0, n), weights / weights.sum()


def numerical_slopes(criterion, u, weights, h):
    """Fourth-order central differences, with steps relative to each margin."""
    slopes = np.empty_like(u)
    for i, step in enumerate(h * np.maximum(np.abs(u), 1e-2 * np.abs(u).max())):

        def value(k, i=i, step=step):
            moved = u.copy()
            moved[i] += k * step
            return criterion.evaluate(moved, weights).value

        near, far = value(1) - value(-1), value(2) - value(-2)
        slopes[i] = (8.0 * near - far) / (12.0 * step)
    return slopes


def profile(t, u, weights, criterion):
    with np.errstate(over="ignore"):
        loss = weights @ np.logaddexp(0.0, -math.exp(t) * u)
    return loss + 0.5 * criterion.ridge * (t - math.log(criterion.center)) ** 2


def lowest(u, weights, criterion):
    """Minimum over t by a fine grid and SciPy's bounded search around its best."""
    grid = np.linspace(-60.0, 160.0, 2201)
    values = [profile(t, u, weights, criterion) for t in grid]
    best = grid[int(np.argmin(values))]
    found = minimize_scalar(
        profile,
        args=(u, weights, criterion),
        bounds=(best - 0.1, best + 0.1),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return found.fun, found.x


@pytest.mark.parametrize("criterion", EVERY, ids=repr)
def test_slopes_are_the_derivatives_of_the_value(criterion):
    u, weights = sample()
    u[np.abs(u - 1.0) < 0.02] = 1.1  # differences must not straddle a kink
    result = criterion.evaluate(u, weights)
    expected = numerical_slopes(criterion, u, weights, 1e-3)
    error = np.linalg.norm(result.slopes - expected)
    assert error < 5e-6 * np.linalg.norm(expected)
    assert np.linalg.norm(result.slopes) > 1e-2


@pytest.mark.parametrize("criterion", EVERY, ids=repr)
def test_value_is_the_weighted_mean_of_the_losses(criterion):
    u, weights = sample()
    result = criterion.evaluate(u, weights)
    ridge = 0.0
    logistic = get_criterion(getattr(criterion, "first", criterion))
    if isinstance(logistic, CalibratedLogistic):
        scale = logistic.scale(u, weights)
        ridge = 0.5 * logistic.ridge * math.log(scale / logistic.center) ** 2
    assert result.value == pytest.approx(weights @ result.losses + ridge, rel=1e-14)
    assert isinstance(result.value, float)
    assert result.losses.shape == result.slopes.shape == u.shape


def test_calibrated_squared_error_is_least_over_the_scale():
    u, weights = sample()
    criterion = CalibratedSquaredError()
    for scale in (1.0, 1e-9, 1e9):
        value = criterion.evaluate(scale * u, weights).value
        brute = minimize_scalar(
            lambda a: weights @ (1.0 - a * u) ** 2, bounds=(0, 10), method="bounded"
        )
        assert value == pytest.approx(brute.fun, rel=1e-8)
    assert criterion.evaluate(-np.abs(u), weights).value == pytest.approx(1.0)
    assert criterion.evaluate(np.zeros(5), np.full(5, 0.2)).value == 1.0


def test_formulas():
    u, weights = np.array([-1.0, 0.5, 1.0, 2.0]), np.full(4, 0.25)

    def losses(criterion):
        return criterion.evaluate(u, weights).losses

    np.testing.assert_allclose(losses(MeanSquaredError()), [4.0, 0.25, 0.0, 1.0])
    np.testing.assert_allclose(losses(MeanSquaredHinge()), [4.0, 0.25, 0.0, 0.0])
    np.testing.assert_allclose(losses(MeanHinge()), [2.0, 0.5, 0.0, 0.0])
    np.testing.assert_allclose(losses(MeanLogistic()), np.log1p(np.exp(-u)))
    slopes = MeanHinge().evaluate(u, weights).slopes
    np.testing.assert_array_equal(slopes, [-0.25, -0.25, 0.0, 0.0])


def test_mean_squared_error_is_that_of_the_decision_values():
    rng = np.random.default_rng(0)
    f, y = rng.normal(size=30), rng.choice([-1.0, 1.0], 30)
    value = MeanSquaredError().evaluate(y * f, np.full(30, 1 / 30)).value
    assert value == pytest.approx(np.mean((f - y) ** 2))


@pytest.mark.parametrize("criterion", EVERY, ids=repr)
def test_at_zero_is_the_loss_of_a_silent_machine(criterion):
    result = criterion.evaluate(np.zeros(5), np.full(5, 0.2))
    assert result.value == pytest.approx(criterion.at_zero, rel=1e-15)


@pytest.mark.parametrize("criterion", EVERY, ids=repr)
def test_points_without_weight_do_not_count(criterion):
    u, weights = sample()
    longer = np.append(u, [-np.inf, np.inf, 1e300, 0.0])
    result = criterion.evaluate(longer, np.append(weights, np.zeros(4)))
    expected = criterion.evaluate(u, weights)
    assert result.value == pytest.approx(expected.value, rel=1e-13)
    np.testing.assert_allclose(result.slopes[:-4], expected.slopes, rtol=1e-10)
    assert not result.slopes[-4:].any()


@pytest.mark.parametrize("criterion", EVERY, ids=repr)
def test_margins_that_are_not_numbers_show_in_the_value(criterion):
    u, weights = sample()
    u[3] = np.nan
    assert math.isnan(criterion.evaluate(u, weights).value)
    u[3] = -np.inf
    assert criterion.evaluate(u, weights).value == math.inf


RNG = np.random.default_rng(1)
ORDERED, SPREAD = RNG.uniform(0.5, 2.0, 50), RNG.normal(1.0, 1.0, 50)
MARGINS = {
    "overlapping": SPREAD,
    "separated": ORDERED,
    "all wrong": -ORDERED,
    "mostly wrong": -SPREAD,
    "useless": RNG.normal(0.0, 1.0, 50),
    "one point": np.array([0.7]),
    "some zero": np.append(SPREAD, [0.0, 0.0]),
    "tiny": 1e-8 * SPREAD,
    "tiny separated": 1e-8 * ORDERED,
    "tiny wrong": -1e-8 * ORDERED,
    "vanishing": 1e-300 * SPREAD,
    "huge": 1e8 * SPREAD,
    "huge separated": 1e8 * ORDERED,
    "huge wrong": -1e8 * ORDERED,
    "two sizes": np.repeat([1.0, 1e-6], 25),
    "all sizes": RNG.choice([-1, 1, 1, 1], 50) * 10.0 ** RNG.uniform(-300, 8, 50),
}


@pytest.mark.parametrize("criterion", [CalibratedLogistic(), EVERY[-1]], ids=repr)
@pytest.mark.parametrize("name", MARGINS)
@pytest.mark.filterwarnings("error")
def test_calibration_finds_the_lowest_minimum(name, criterion):
    u = MARGINS[name]
    weights = np.full(u.size, 1.0 / u.size)
    expected, _ = lowest(u, weights, criterion)
    with np.errstate(all="raise"):
        result = criterion.evaluate(u, weights)
    assert result.value == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert np.isfinite(result.slopes).all()


@pytest.mark.parametrize("name", [n for n in MARGINS if n != "all sizes"])
def test_calibrated_scale_is_stationary(name):
    """d/dt of the profile is zero: it is what makes the slopes exact."""
    u, criterion = MARGINS[name], CalibratedLogistic()
    weights = np.full(u.size, 1.0 / u.size)
    scale = criterion.scale(u, weights)
    with np.errstate(over="ignore"):
        pull = weights @ (scale * u / (1.0 + np.exp(scale * u)))
    slope = criterion.ridge * math.log(scale / criterion.center) - pull
    assert abs(slope) < 1e-14


@pytest.mark.parametrize(
    "name", ["overlapping", "separated", "all wrong", "tiny", "tiny separated", "huge"]
)
def test_calibrated_slopes_at_every_scale(name):
    u, criterion = MARGINS[name], CalibratedLogistic()
    weights = np.full(u.size, 1.0 / u.size)
    slopes = criterion.evaluate(u, weights).slopes
    expected = numerical_slopes(criterion, u, weights, 1e-3)
    floor = 1e-5 / np.abs(u).max()
    assert np.linalg.norm(slopes) > floor
    assert np.linalg.norm(slopes - expected) < 5e-6 * np.linalg.norm(expected)


def test_calibration_forgives_the_size_of_the_margins():
    u, weights = sample(400)
    criterion = CalibratedLogistic(ridge=1e-12)
    values = [criterion.evaluate(c * u, weights).value for c in (1e-6, 1.0, 1e6)]
    np.testing.assert_allclose(values, values[0], rtol=1e-8)


def test_calibration_has_no_memory():
    u, weights = sample()
    criterion = CalibratedLogistic()
    first = criterion.evaluate(u, weights)
    criterion.evaluate(1e5 * np.abs(u), weights)
    second = criterion.evaluate(u, weights)
    assert first.value == second.value
    np.testing.assert_array_equal(first.slopes, second.slopes)


def test_calibrated_value_is_continuous_where_the_minimum_changes():
    """Shrinking separated margins: the lowest minimum jumps, its value does not."""
    _, weights = sample(50)
    criterion = CalibratedLogistic()
    sizes = np.exp(np.linspace(math.log(1e-60), 0.0, 2001))
    values = np.array([criterion.evaluate(c * ORDERED, weights).value for c in sizes])
    assert np.abs(np.diff(values)).max() < 1e-3
    assert (np.diff(values) <= 1e-15).all()


def test_criteria_are_value_objects():
    criterion = CalibratedLogistic(ridge=1e-3)
    assert clone(criterion) == criterion != CalibratedLogistic()
    assert criterion.get_params() == {"ridge": 1e-3, "center": 1.5}
    assert repr(criterion) == "CalibratedLogistic(ridge=0.001)"
    assert MeanHinge() != MeanSquaredHinge()


def test_get_criterion():
    assert {name: type(get_criterion(name)) for name in CRITERIA} == CRITERIA
    criterion = CalibratedLogistic(center=2.0)
    assert get_criterion(criterion) is criterion
    with pytest.raises(ValueError, match="Unknown criterion 'msee': .*'mse'.*'hinge'"):
        get_criterion("msee")
    with pytest.raises(ValueError, match="ridge must be a positive.*got 0"):
        get_criterion(CalibratedLogistic(ridge=0))
    with pytest.raises(ValueError, match="center must be a positive.*got -1"):
        get_criterion(CalibratedLogistic(center=-1))
