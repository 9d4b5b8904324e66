"""Criteria: slopes against differences, the calibrated scale, extreme margins."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import f1_score
from sklearn.model_selection import RepeatedStratifiedKFold

from bisvm import BilevelObjective, BilevelSVC
from bisvm.criteria import (
    CRITERIA,
    VALIDATION,
    Blend,
    CalibratedLogistic,
    CalibratedSquaredError,
    Criterion,
    CriterionValue,
    MeanHinge,
    MeanLogistic,
    MeanSquaredError,
    MeanSquaredHinge,
    PairwiseRanking,
    Points,
    SmoothedError,
    SmoothedF1,
    Weighted,
    get_criterion,
)
from bisvm.testing import check_gradient

EVERY = [kind() for kind in VALIDATION.values()] + [CalibratedLogistic(1e-2, 0.5)]


def points(n):
    """Two of three classes against the rest, in two splits; all have both labels."""
    row, task = np.divmod(np.arange(n), 2)
    labels = np.where(row // 2 % 3 == task, 1.0, -1.0)
    return Points(labels, task, 2 * (row % 2) + task, row)


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
            return criterion.evaluate(moved, weights, points(len(u))).value

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
    result = criterion.evaluate(u, weights, points(len(u)))
    expected = numerical_slopes(criterion, u, weights, 1e-3)
    error = np.linalg.norm(result.slopes - expected)
    assert error < 5e-6 * np.linalg.norm(expected)
    assert np.linalg.norm(result.slopes) > 1e-2


@pytest.mark.parametrize("criterion", EVERY, ids=repr)
def test_value_is_the_weighted_mean_of_the_losses(criterion):
    u, weights = sample()
    result = criterion.evaluate(u, weights, points(len(u)))
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
    labels = np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    one = np.zeros(5, dtype=int)
    weights = np.array([0.1, 0.4, 0.1, 0.1, 0.3])
    result = criterion.evaluate(
        np.zeros(5), weights, Points(labels, one, one, np.arange(5))
    )
    assert result.value == pytest.approx(criterion.at_zero(), rel=1e-14)


@pytest.mark.parametrize("criterion", EVERY, ids=repr)
def test_points_without_weight_do_not_count(criterion):
    u, weights = sample()
    longer = np.append(u, [-np.inf, np.inf, 1e300, 0.0])
    weights = np.append(weights, np.zeros(4))
    result = criterion.evaluate(longer, weights, points(len(longer)))
    expected = criterion.evaluate(u, weights[:-4], points(len(u)))
    assert result.value == pytest.approx(expected.value, rel=1e-13)
    np.testing.assert_allclose(result.slopes[:-4], expected.slopes, rtol=1e-10)
    assert not result.slopes[-4:].any()


@pytest.mark.parametrize("criterion", EVERY, ids=repr)
def test_margins_that_are_not_numbers_show_in_the_value(criterion):
    u, weights = sample()
    u[3] = np.nan
    whose = points(len(u))
    assert math.isnan(criterion.evaluate(u, weights, whose).value)
    u[3] = -np.inf
    assert criterion.evaluate(u, weights, whose).value == math.inf


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
    assert all(get_criterion(name) == make() for name, make in CRITERIA.items())
    criterion = CalibratedLogistic(center=2.0)
    assert get_criterion(criterion) is criterion
    with pytest.raises(ValueError, match="Unknown criterion 'msee': .*'mse'.*'hinge'"):
        get_criterion("msee")
    with pytest.raises(ValueError, match="ridge must be a positive.*got 0"):
        get_criterion(CalibratedLogistic(ridge=0))
    with pytest.raises(ValueError, match="center must be a positive.*got -1"):
        get_criterion(CalibratedLogistic(center=-1))
    with pytest.raises(ValueError, match="width must be a positive.*got 0"):
        get_criterion(SmoothedError(width=0))


@pytest.mark.parametrize("name", VALIDATION)
def test_every_criterion_has_a_balanced_version(name):
    assert get_criterion("balanced_" + name) == Weighted(name, "balanced")
    u, weights = sample()
    plain = get_criterion(name).evaluate(u, weights, points(60))
    # Weights of classes are in the weights: there is nothing left to do.
    balanced = get_criterion("balanced_" + name).evaluate(u, weights, points(60))
    assert balanced.value == plain.value


def test_what_cannot_be_weighted_or_blended_is_refused():
    with pytest.raises(ValueError, match="Unknown criterion 'blnd'.*mean 'blend'"):
        get_criterion("balanced_blnd")
    with pytest.raises(ValueError, match="StructuralRisk.* cannot be weighted"):
        get_criterion("balanced_structural_risk")
    with pytest.raises(ValueError, match="cannot be weighted"):
        get_criterion(Weighted(Weighted("mse")))
    with pytest.raises(ValueError, match="cannot be a part of a blend"):
        get_criterion(Blend(Weighted("mse")))
    for given in ("equal", {"a": -1.0}, {"a": 0.0}, {"a": math.nan}, None, 3.0):
        with pytest.raises(ValueError, match="class_weight=.*'balanced', or a dict"):
            get_criterion(Weighted("mse", given))
    with pytest.raises(ValueError, match="needs their labels.*Points"):
        SmoothedF1().evaluate([0.5, 1.0], [0.5, 0.5])


# --- counts and pairs -----------------------------------------------------------------


def test_smoothed_errors_become_errors_as_their_width_shrinks():
    u, weights = sample()
    whose, wrong = points(60), u < 0
    error = SmoothedError(width=1e-6).evaluate(u, weights).value
    assert error == pytest.approx(weights @ wrong, rel=1e-9)
    f1 = SmoothedF1(width=1e-6).evaluate(u, weights, whose).value
    said = np.where(wrong, -whose.labels, whose.labels)
    scores, shares = [], []
    for task in (0, 1):
        own = whose.task == task
        given = (whose.labels[own], said[own])
        scores.append(f1_score(*given, sample_weight=weights[own]))
        shares.append(weights[own].sum())
    assert f1 == pytest.approx(1.0 - np.dot(shares, scores), rel=1e-9)


@pytest.mark.parametrize("kind", [SmoothedError, SmoothedF1, PairwiseRanking])
@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1e9, 1e200])
def test_the_size_of_decision_values_does_not_count(kind, scale):
    u, weights = sample()
    one, other = (kind().evaluate(c * u, weights, points(60)) for c in (1.0, scale))
    assert other.value == pytest.approx(one.value, rel=1e-12)
    np.testing.assert_allclose(scale * other.slopes, one.slopes, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(other.losses, one.losses, rtol=1e-10)


def pairwise(a, u, weights, whose):
    """The mean over all pairs, one by one; columns without pairs do not count."""
    f, total, mass = whose.labels * u, 0.0, 0.0
    for column in np.unique(whose.column):
        own = (whose.column == column) & (weights > 0)
        plus, minus = own & (whose.labels > 0), own & (whose.labels < 0)
        if not plus.any() or not minus.any():
            continue
        loss = np.maximum(1.0 - a * (f[plus][:, None] - f[minus]), 0.0) ** 2
        mean = weights[plus] @ loss @ weights[minus]
        mean /= weights[plus].sum() * weights[minus].sum()
        total += weights[own].sum() * mean
        mass += weights[own].sum()
    return total / mass


@pytest.mark.parametrize("shift", [-1.0, -0.1, 0.2, 0.8, 2.0, 5.0])
@pytest.mark.parametrize("n", [8, 60, 401])
def test_ranking_is_the_least_mean_over_pairs(shift, n):
    u, weights = sample(n, shift)
    u[:2] = u[2]  # ties
    whose = points(n)
    found = PairwiseRanking().evaluate(u, weights, whose).value
    brute = minimize_scalar(
        pairwise,
        args=(u, weights, whose),
        bounds=(0.0, 50.0),
        method="bounded",
        options={"xatol": 1e-12},
    )
    expected = min(brute.fun, pairwise(0.0, u, weights, whose))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_ranking_is_zero_where_all_pairs_are_in_order():
    whose = points(24)
    u = 10.0 ** np.random.default_rng(0).uniform(-3, 3, 24)
    value, losses, slopes = PairwiseRanking().evaluate(u, np.full(24, 1 / 24), whose)
    assert value == pytest.approx(0.0, abs=1e-12)
    assert np.abs(losses).max() < 1e-12 and np.abs(slopes).max() < 1e-6


def test_ranking_does_not_know_where_zero_is():
    u, weights = sample()
    whose = points(60)
    f = whose.labels * u
    moved = f + np.array([0.0, 3.0, -2.0, 0.7])[whose.column]
    one, other = (
        PairwiseRanking().evaluate(whose.labels * g, weights, whose).value
        for g in (f, moved)
    )
    assert other == pytest.approx(one, rel=1e-12)


def test_ranking_ignores_splits_with_one_label():
    u, weights = sample()
    whose = points(60)
    own = whose.column != 3
    kept = whose.at(own)
    expected = PairwiseRanking().evaluate(u[own], weights[own], kept).value
    one_sided = whose._replace(labels=np.where(own, whose.labels, 1.0))
    result = PairwiseRanking().evaluate(u, weights, one_sided)
    assert result.value == pytest.approx(expected, rel=1e-13)
    assert not result.slopes[~own].any()
    np.testing.assert_allclose(result.losses[~own], result.value, rtol=1e-13)
    unpaired = whose._replace(labels=np.where(whose.column % 2, 1.0, -1.0))
    value, losses, slopes = PairwiseRanking().evaluate(u, weights, unpaired)
    assert value == 1.0 and np.all(losses == 1.0) and not slopes.any()
    for criterion in ("auc", "balanced_auc", Blend("auc", "mse")):
        get_criterion(criterion).check(one_sided)
        with pytest.raises(ValueError, match="no split holds out points of both"):
            get_criterion(criterion).check(unpaired)


def test_the_noise_of_a_ranking_is_that_of_delong():
    """Spread of the influences against the variance over samples drawn anew."""
    criterion, n = PairwiseRanking(), 200
    rng = np.random.default_rng(0)
    column = np.zeros(n, dtype=int)
    labels = np.where(np.arange(n) < 40, 1.0, -1.0)
    whose, weights = Points(labels, column, column, np.arange(n)), np.full(n, 1 / n)
    values, stated = [], []
    for _ in range(400):
        done = criterion.evaluate(rng.normal(0.5, 1.0, n), weights, whose)
        values.append(done.value)
        stated.append(np.sqrt(np.sum((weights * (done.losses - done.value)) ** 2)))
    assert np.std(values) == pytest.approx(np.mean(stated), rel=0.15)


class Multinomial(Criterion):
    """-log softmax of a row's decision values at its class, averaged over rows."""

    def _evaluate(self, u, w, points):
        order = np.lexsort((points.task, points.row))
        n_tasks = int(points.task.max()) + 1
        f, labels, weight = (
            part[order].reshape(-1, n_tasks)
            for part in (points.labels * u, points.labels, w)
        )
        p = softmax(f, axis=1)
        own, share = labels > 0, weight.sum(axis=1)
        losses, slopes = np.empty_like(u), np.empty_like(u)
        by_row = -np.log(p[own])
        losses[order] = np.repeat(by_row, n_tasks)
        slopes[order] = (share[:, None] * (p - own) * labels).ravel()
        return CriterionValue(float(share @ by_row), losses, slopes)


def test_a_criterion_may_see_all_decision_values_of_a_row():
    X, y = load_iris(return_X_y=True)
    X, y = X[::2], y[::2]
    splits = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    model = BilevelSVC("rbf", loss="logistic", criterion=Multinomial(), cv=splits)
    objective = BilevelObjective(model, X, y)
    theta = objective.theta0
    value, gradient = objective(theta)
    assert 0.0 < value < np.log(3.0)
    check_gradient(gradient, lambda x: objective(x)[0], theta, step=1e-3)
