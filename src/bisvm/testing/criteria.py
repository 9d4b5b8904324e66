"""The contract of a criterion."""

from __future__ import annotations

import numpy as np

from bisvm.criteria import Criterion
from bisvm.testing.differences import check_gradient
from bisvm.testing.parts import check_part
from bisvm.testing.requirements import require, require_close


def check_criterion(criterion: Criterion) -> None:
    """A criterion is a weighted mean over margins, with the slopes it says."""
    check_part(criterion)
    criterion.validate()
    rng = np.random.default_rng(0)
    u = rng.normal(0.6, 1.0, size=40)
    weights = rng.uniform(0.2, 1.0, size=40)
    weights /= weights.sum()
    _check_value(criterion, u, weights)
    _check_at_zero(criterion, weights)
    _check_weights(criterion, u, weights)
    check_gradient(
        criterion.evaluate(u, weights).slopes,
        lambda v: criterion.evaluate(v, weights).value,
        u,
        step=1e-4,
        what="slopes",
    )
    far = criterion.evaluate(1e8 * u, weights)
    require(np.isfinite(far.value), "the value of margins near 1e8 is not finite.")
    require(np.all(np.isfinite(far.slopes)), "slopes near 1e8 are not finite.")


def _check_value(criterion: Criterion, u: np.ndarray, weights: np.ndarray) -> None:
    given = u.copy()
    value, losses, slopes = criterion.evaluate(u, weights)
    require(
        losses.shape == u.shape, f"losses have shape {losses.shape}, not {u.shape}."
    )
    require(
        slopes.shape == u.shape, f"slopes have shape {slopes.shape}, not {u.shape}."
    )
    require(np.array_equal(u, given), "evaluate changes the margins it is given.")
    require(value == criterion.evaluate(u, weights).value, "it is not reproducible.")
    require(value > 0 and np.all(losses >= 0), "a loss is negative.")
    better = criterion.evaluate(np.ones_like(u), weights).value
    require(better < value, "margins of one are not better than margins of all sizes.")


def _check_at_zero(criterion: Criterion, weights: np.ndarray) -> None:
    found = criterion.evaluate(np.zeros_like(weights), weights).value
    require_close(
        criterion.at_zero, found, "at_zero is not the value at zero", rtol=1e-9
    )


def _check_weights(criterion: Criterion, u: np.ndarray, weights: np.ndarray) -> None:
    value, _, slopes = criterion.evaluate(u, weights)
    order = np.random.default_rng(1).permutation(len(u))
    shuffled = criterion.evaluate(u[order], weights[order])
    require_close(shuffled.value, value, "the order of the points matters", rtol=1e-12)
    require_close(
        shuffled.slopes, slopes[order], "the order changes the slopes", rtol=1e-8
    )
    twice = criterion.evaluate(np.repeat(u, 2), np.repeat(0.5 * weights, 2))
    require_close(
        twice.value, value, "a point is not two of half its weight", rtol=1e-12
    )
    silent = criterion.evaluate(np.append(u, -1e9), np.append(weights, 0.0))
    require_close(silent.value, value, "a point of weight zero counts", rtol=1e-12)
    require(silent.slopes[-1] == 0.0, "a point of weight zero has a slope.")
