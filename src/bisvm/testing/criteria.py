"""The contract of a criterion."""

from __future__ import annotations

import numpy as np

from bisvm.criteria import Criterion, Points
from bisvm.testing.differences import check_gradient
from bisvm.testing.parts import check_part
from bisvm.testing.requirements import require, require_close


def check_criterion(criterion: Criterion) -> None:
    """A criterion is what it says of held-out points: its slopes, their influence."""
    check_part(criterion)
    criterion.validate()
    rng = np.random.default_rng(0)
    u = rng.normal(0.6, 1.0, size=40)
    weights = rng.uniform(0.2, 1.0, size=40)
    weights /= weights.sum()
    column = np.arange(40) % 4
    points = Points(np.where(np.arange(40) % 8 < 3, 1.0, -1.0), column % 2, column)
    _check_value(criterion, u, weights, points)
    _check_at_zero(criterion, points)
    _check_weights(criterion, u, weights, points)
    _check_influence(criterion, u, weights, points)
    check_gradient(
        criterion.evaluate(u, weights, points).slopes,
        lambda v: criterion.evaluate(v, weights, points).value,
        u,
        step=1e-4,
        what="slopes",
    )
    far = criterion.evaluate(1e8 * u, weights, points)
    require(np.isfinite(far.value), "the value of margins near 1e8 is not finite.")
    require(np.all(np.isfinite(far.slopes)), "slopes near 1e8 are not finite.")


def _check_value(
    criterion: Criterion, u: np.ndarray, weights: np.ndarray, points: Points
) -> None:
    given = u.copy()
    value, losses, slopes = criterion.evaluate(u, weights, points)
    require(
        losses.shape == u.shape, f"losses have shape {losses.shape}, not {u.shape}."
    )
    require(
        slopes.shape == u.shape, f"slopes have shape {slopes.shape}, not {u.shape}."
    )
    require(np.array_equal(u, given), "evaluate changes the margins it is given.")
    again = criterion.evaluate(u, weights, points).value
    require(value == again, "it is not reproducible.")
    require(value > 0, "H is negative.")
    better = criterion.evaluate(np.ones_like(u), weights, points).value
    require(better < value, "margins of one are not better than margins of all sizes.")


def _check_at_zero(criterion: Criterion, points: Points) -> None:
    """Labels in equal shares in every column, and so in every task."""
    both = Points(np.repeat([1.0, -1.0], 40), *(np.tile(p, 2) for p in points[1:]))
    weights = np.full(80, 1.0 / 80)
    found = criterion.evaluate(np.zeros(80), weights, both).value
    require_close(
        criterion.at_zero, found, "at_zero is not the value at zero", rtol=1e-9
    )


def _check_weights(
    criterion: Criterion, u: np.ndarray, weights: np.ndarray, points: Points
) -> None:
    def of(places: np.ndarray) -> Points:
        return Points(*(part[places] for part in points))

    value, _, slopes = criterion.evaluate(u, weights, points)
    order = np.random.default_rng(1).permutation(len(u))
    shuffled = criterion.evaluate(u[order], weights[order], of(order))
    require_close(shuffled.value, value, "the order of the points matters", rtol=1e-12)
    require_close(
        shuffled.slopes, slopes[order], "the order changes the slopes", rtol=1e-8
    )
    double = np.repeat(np.arange(len(u)), 2)
    twice = criterion.evaluate(u[double], 0.5 * weights[double], of(double))
    require_close(
        twice.value, value, "a point is not two of half its weight", rtol=1e-12
    )
    more = np.append(np.arange(len(u)), 0)
    silent = criterion.evaluate(np.append(u, -1e9), np.append(weights, 0.0), of(more))
    require_close(silent.value, value, "a point of weight zero counts", rtol=1e-12)
    require(silent.slopes[-1] == 0.0, "a point of weight zero has a slope.")


def _check_influence(
    criterion: Criterion, u: np.ndarray, weights: np.ndarray, points: Points
) -> None:
    """Losses, but for their mean, are what weights do to H."""

    def value(factors: np.ndarray) -> float:
        moved = weights * factors
        return criterion.evaluate(u, moved / moved.sum(), points).value

    found, losses, _ = criterion.evaluate(u, weights, points)
    # Up to a ridge that is small beside it.
    require_close(weights @ losses, found, "losses do not add up to H", rtol=1e-2)
    check_gradient(
        weights * (losses - weights @ losses),
        value,
        np.ones_like(u),
        step=1e-4,
        what="losses, as influences of the points",
    )
