"""The contracts of losses and criteria."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from bisvm.core.types import Array
from bisvm.criteria import Criterion, Points
from bisvm.losses import Loss, ResidualLoss
from bisvm.testing.basics import (
    GRADIENT_RTOL,
    central_difference,
    check_gradient,
    check_part,
    require,
    require_close,
)

# Shifted from round numbers, so that no kink of a loss is within a step of one of them.
MARGINS = np.linspace(-3.0, 4.0, 157) + np.pi / 1000
STEP = 1e-5
# Where exponentials overflow.
FAR = np.array([-1e8, -1e4, 1e4, 1e8])

NAMES = ("value", "slope", "curvature")


def check_loss(loss: Loss) -> None:
    """Check that a loss is convex, with right derivatives.

    A loss of the margin u = y f must decrease; one of the residual r = y - f, a
    `ResidualLoss`, must grow with |r|. Derivatives are checked at margins from -3 to
    4, the curvature only if the loss is `twice_differentiable`, and those by the
    hyperparameters of the loss. Margins up to 1e8 must give finite results.

    Parameters
    ----------
    loss : Loss

    Examples
    --------
    >>> from bisvm.losses import Quartic
    >>> check_loss(Quartic(0.5))
    """
    check_part(loss)
    loss.validate()
    _check_shapes(loss)
    _check_convexity(loss)
    of_residuals = isinstance(loss, ResidualLoss)
    (_check_residuals if of_residuals else _check_labels)(loss)
    _check_derivatives(loss)
    _check_parameters(loss)
    _check_far_out(loss)
    _check_curvature_bound(loss)


def _check_shapes(loss: Loss) -> None:
    for u in (np.float64(0.3), MARGINS[:6].reshape(2, 3), np.empty((0, 2))):
        given = np.copy(u)
        for name, out in zip(NAMES, loss.evaluate(u, 1.0), strict=True):
            require(
                np.shape(out) == np.shape(u),
                f"{name} has shape {np.shape(out)} for margins of shape {np.shape(u)}.",
            )
        require(np.array_equal(u, given), "evaluate changes the margins it is given.")
    single = loss.evaluate(MARGINS.astype(np.float32), 1.0)
    kept = all(out.dtype == np.float32 for out in single)
    require(kept, "evaluate does not keep float32.")


def _check_convexity(loss: Loss) -> None:
    value, slope, curvature = loss.evaluate(MARGINS, 1.0)
    require(np.all(value >= 0), "the loss is negative somewhere.")
    require(np.all(np.diff(slope) >= -1e-12), "the slope decreases: not convex.")
    require(np.all(curvature >= 0), "the curvature is negative somewhere.")
    require(np.abs(slope).max() > 1e-3, "the loss is flat.")
    message = "value() is not evaluate()[0]"
    require_close(loss.value(MARGINS, 1.0), value, message, rtol=1e-14)


def _check_labels(loss: Loss) -> None:
    """The loss depends on y f only, and decreases: its slope has the label's sign."""
    value, slope, curvature = loss.evaluate(MARGINS, 1.0)
    require(np.all(slope <= 0), "the loss increases with the margin somewhere.")
    opposite = loss.evaluate(-MARGINS, -1.0)
    expected = value, -slope, curvature
    for name, one, other in zip(NAMES, expected, opposite, strict=True):
        message = f"the {name} for y = -1 is not that of -f"
        require_close(other, one, message, rtol=1e-12)


def _check_residuals(loss: Loss) -> None:
    """The loss depends on y - f only, grows with |r|, and l(a f, a y) scales."""
    expected = loss.evaluate(-MARGINS, 0.0)
    for name, one, other in zip(
        NAMES, expected, loss.evaluate(2.0 - MARGINS, 2.0), strict=True
    ):
        message = f"the {name} is not a function of y - f"
        # Where the curvature is steep, 2 - (2 - r) is not quite r.
        require_close(other, one, message, rtol=1e-9, atol=1e-9)
    low, high = loss.evaluate([-10.0, 10.0], 0.0)[1]
    require(low < 0 < high, "the loss does not grow with |r| on both sides.")
    half = {p.name: p.value for p in loss.parameters()}
    scaled = loss.with_values(half, 0.5).evaluate(-2.0 * MARGINS, 0.0)[0]
    message = f"l(2 f, 2 y) is not {2**loss.degree} l(f, y)"
    usual = loss.with_values(half).value(-MARGINS, 0.0)
    require_close(scaled, 2.0**loss.degree * usual, message, rtol=1e-12)


def _check_parameters(loss: Loss) -> None:
    """Compare derivatives by logarithms of hyperparameters with differences."""
    values = {p.name: float(p.natural()) for p in loss.parameters()}
    one = np.ones_like(MARGINS)
    value, slope, curvature = loss.evaluate(MARGINS, one)
    by_value = loss.value_by_parameters(MARGINS, one, value, slope)
    by_slope = loss.slope_by_parameters(MARGINS, one, slope, curvature)
    for k, name in enumerate(values):
        for number, found in ((0, by_value[k]), (1, by_slope[k])):

            def moved(t: Array, name: str = name, number: int = number) -> Array:
                other = {**values, name: values[name] * float(np.exp(t))}
                return loss.with_values(other).evaluate(MARGINS, 1.0)[number]

            expected = central_difference(moved, np.zeros(()), STEP)
            message = f"the derivative of the {NAMES[number]} by log {name} is wrong"
            require_close(found, expected, message, rtol=GRADIENT_RTOL)


def _check_derivatives(loss: Loss) -> None:
    def derivative(f: Callable[[Array], Array]) -> Array:
        return central_difference(lambda t: f(MARGINS + t), np.zeros(()), STEP)

    _, slope, curvature = loss.evaluate(MARGINS, 1.0)
    by_value = derivative(lambda u: loss.evaluate(u, 1.0)[0])
    require_close(slope, by_value, "the slope is not dl/df", rtol=GRADIENT_RTOL)
    if loss.twice_differentiable:
        by_slope = derivative(lambda u: loss.evaluate(u, 1.0)[1])
        message = "the curvature is not d2l/df2"
        require_close(curvature, by_slope, message, rtol=GRADIENT_RTOL)


def _check_far_out(loss: Loss) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            outputs = loss.evaluate(FAR, 1.0)
        except RuntimeWarning as warning:
            raise AssertionError(f"evaluate warns at {FAR}: {warning}.") from None
    for name, out in zip(NAMES, outputs, strict=True):
        require(np.all(np.isfinite(out)), f"the {name} at {FAR} is not finite: {out}.")


def _check_curvature_bound(loss: Loss) -> None:
    if not loss.twice_differentiable:
        return
    bound = loss.max_curvature
    highest = loss.evaluate(MARGINS, 1.0)[2].max()
    require(
        highest <= bound * (1 + 1e-12),
        f"the curvature reaches {highest:.6g}, above max_curvature = {bound:.6g}.",
    )
    at_peak = float(loss.evaluate(loss.most_curved(np.ones(())), 1.0)[2])
    require(
        abs(at_peak - bound) <= 1e-6 * bound,
        f"the curvature at peak = {loss.peak} is {at_peak:.6g}, not max_curvature.",
    )


def check_criterion(criterion: Criterion) -> None:
    """Check the slopes of a criterion, and its losses as influences of the points.

    It may be one of margins or of residuals. Weights, the order of the points and
    duplicates are checked too.

    Parameters
    ----------
    criterion : Criterion

    Examples
    --------
    >>> from bisvm.criteria import get_criterion
    >>> check_criterion(get_criterion("logistic"))
    """
    check_part(criterion)
    criterion.validate()
    rng = np.random.default_rng(0)
    u = rng.normal(0.6, 1.0, size=42)
    weights = rng.uniform(0.2, 1.0, size=42)
    weights /= weights.sum()
    points = _three_classes(14)
    _check_value(criterion, u, weights, points)
    _check_at_zero(criterion)
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


def _three_classes(n_rows: int) -> Points:
    """Rows of three classes, each against the rest, in two splits."""
    row, task = np.divmod(np.arange(3 * n_rows), 3)
    labels = np.where(row // 2 % 3 == task, 1.0, -1.0)
    return Points(labels, task, 3 * (row % 2) + task, row)


def _check_value(
    criterion: Criterion, u: Array, weights: Array, points: Points
) -> None:
    given = u.copy()
    value, losses, slopes = criterion.evaluate(u, weights, points)
    for name, out in (("losses", losses), ("slopes", slopes)):
        require(out.shape == u.shape, f"{name} have shape {out.shape}, not {u.shape}.")
    require(np.array_equal(u, given), "evaluate changes the margins it is given.")
    again = criterion.evaluate(u, weights, points).value
    require(value == again, "it is not reproducible.")
    require(value > 0, "H is negative.")
    right, _ = criterion.variable(points.labels, points.labels)
    better = criterion.evaluate(right, weights, points).value
    require(better < value, "decision values y are not better than any others.")


def _check_at_zero(criterion: Criterion) -> None:
    """Compare at_zero with H of zero values, with equal shares of two classes."""
    row, task = np.arange(80), np.zeros(80, dtype=int)
    both = Points(np.repeat([1.0, -1.0], 40), task, row % 2, row)
    zeros, _ = criterion.variable(np.zeros(80), both.labels)
    found = criterion.evaluate(zeros, np.full(80, 1.0 / 80), both).value
    message = "at_zero is not the value at zero"
    require_close(criterion.at_zero(2), found, message, rtol=1e-9)


def _check_weights(
    criterion: Criterion, u: Array, weights: Array, points: Points
) -> None:
    value, _, slopes = criterion.evaluate(u, weights, points)
    order = np.random.default_rng(1).permutation(len(u))
    shuffled = criterion.evaluate(u[order], weights[order], points.at(order))
    double = np.repeat(np.arange(len(u)), 2)
    twice = criterion.evaluate(u[double], 0.5 * weights[double], points.at(double))
    more = points.at(np.append(np.arange(len(u)), 0))
    more.row[-1] = points.row.max() + 1
    silent = criterion.evaluate(np.append(u, -1e9), np.append(weights, 0.0), more)
    for found, message in (
        (shuffled.value, "the order of the points matters"),
        (twice.value, "a point is not two of half its weight"),
        (silent.value, "a point of weight zero counts"),
    ):
        require_close(found, value, message, rtol=1e-12)
    message = "the order changes the slopes"
    require_close(shuffled.slopes, slopes[order], message, rtol=1e-8)
    require(silent.slopes[-1] == 0.0, "a point of weight zero has a slope.")


def _check_influence(
    criterion: Criterion, u: Array, weights: Array, points: Points
) -> None:
    """Losses minus their mean are the derivatives of H by the weights."""

    def value(factors: Array) -> float:
        moved = weights * factors
        return criterion.evaluate(u, moved / moved.sum(), points).value

    found, losses, _ = criterion.evaluate(u, weights, points)
    # Up to a small ridge term.
    require_close(weights @ losses, found, "losses do not add up to H", rtol=1e-2)
    check_gradient(
        weights * (losses - weights @ losses),
        value,
        np.ones_like(u),
        step=1e-4,
        what="losses, as influences of the points",
    )
