"""The contract of a loss."""

from __future__ import annotations

import warnings

import numpy as np

from bisvm.losses import Loss
from bisvm.testing.differences import central_difference
from bisvm.testing.parts import check_part
from bisvm.testing.requirements import require, require_close

# Uneven numbers: no corner of a loss is likely to sit within a step of one of them.
MARGINS = np.linspace(-3.0, 4.0, 157) + np.pi / 1000
FAR = np.array([-1e8, -1e4, 1e4, 1e8])
STEP = 1e-5


def check_loss(loss: Loss) -> None:
    """A loss is convex and decreasing, with the derivatives it says, and safe far out.

    Derivatives are checked at margins from -3 to 4. The curvature of a loss that does
    not call itself `twice_differentiable` is not.
    """
    check_part(loss)
    loss.validate()
    _check_shapes(loss)
    _check_convexity(loss)
    _check_derivatives(loss)
    _check_far_out(loss)
    _check_curvature_bound(loss)
    for wide in loss.relaxed():
        require(
            wide.max_curvature < loss.max_curvature,
            f"relaxed() gives {wide!r}, which is not less curved than {loss!r}.",
        )


def _check_shapes(loss: Loss) -> None:
    for u in (np.float64(0.3), MARGINS[:6].reshape(2, 3), np.empty((0, 2))):
        given = np.copy(u)
        for name, out in zip(
            ("value", "slope", "curvature"), loss.evaluate(u), strict=True
        ):
            require(
                np.shape(out) == np.shape(u),
                f"{name} has shape {np.shape(out)} for margins of shape {np.shape(u)}.",
            )
        require(np.array_equal(u, given), "evaluate changes the margins it is given.")
    single = loss.evaluate(MARGINS.astype(np.float32))
    require(
        all(out.dtype == np.float32 for out in single),
        "evaluate does not keep float32.",
    )


def _check_convexity(loss: Loss) -> None:
    value, slope, curvature = loss.evaluate(MARGINS)
    require(np.all(value >= 0), "the loss is negative somewhere.")
    require(np.all(slope <= 0), "the loss increases with the margin somewhere.")
    require(np.all(np.diff(slope) >= -1e-12), "the slope decreases: not convex.")
    require(np.all(curvature >= 0), "the curvature is negative somewhere.")
    require(slope.min() < -1e-3, "the loss is flat.")
    require_close(
        loss.value(MARGINS), value, "value() is not evaluate()[0]", rtol=1e-14
    )


def _check_derivatives(loss: Loss) -> None:
    _, slope, curvature = loss.evaluate(MARGINS)
    by_value = _pointwise(lambda u: loss.evaluate(u)[0])
    require_close(slope, by_value, "the slope is not dl/du", rtol=5e-6)
    if loss.twice_differentiable:
        by_slope = _pointwise(lambda u: loss.evaluate(u)[1])
        require_close(curvature, by_slope, "the curvature is not d2l/du2", rtol=5e-6)


def _pointwise(f):  # type: ignore[no-untyped-def]
    return central_difference(lambda t: f(MARGINS + t), np.zeros(()), STEP)


def _check_far_out(loss: Loss) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            outputs = loss.evaluate(FAR)
        except RuntimeWarning as warning:
            raise AssertionError(f"evaluate warns at {FAR}: {warning}.") from None
    for name, out in zip(("value", "slope", "curvature"), outputs, strict=True):
        require(np.all(np.isfinite(out)), f"the {name} at {FAR} is not finite: {out}.")


def _check_curvature_bound(loss: Loss) -> None:
    if not loss.twice_differentiable:
        return
    bound = loss.max_curvature
    highest = loss.evaluate(MARGINS)[2].max()
    require(
        highest <= bound * (1 + 1e-12),
        f"the curvature reaches {highest:.6g}, above max_curvature = {bound:.6g}.",
    )
    at_peak = float(loss.evaluate(loss.peak)[2])
    require(
        abs(at_peak - bound) <= 1e-6 * bound,
        f"the curvature at peak = {loss.peak} is {at_peak:.6g}, not max_curvature.",
    )
