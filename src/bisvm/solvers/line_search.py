"""Exact step lengths along a direction, for all columns at once."""

from __future__ import annotations

import numpy as np

from bisvm.losses.pointwise import MAX_ITER, MAX_STEP
from bisvm.machines import Coefficients, Machine, Tangent


def exact_step(
    machine: Machine,
    x: Coefficients,
    tangent: Tangent,
    direction: Coefficients,
    direction_values: np.ndarray,
    *,
    accept: float = 0.1,
) -> np.ndarray:
    """t that makes phi(t) = E(x + t d) stationary, one a column; `tangent` is at x.

    phi is convex and piecewise smooth: a bracketed Newton iteration on phi'(t) = 0,
    started at t = 1 and ended when |phi'(t)| <= accept |phi'(0)|.
    """
    linear = machine.inner(x, direction, direction_values)
    quadratic = machine.inner(direction, direction, direction_values)

    def derivatives(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first, second = machine.derivatives_along(tangent.fitted, direction_values, t)
        return linear + t * quadratic + first, quadratic + second

    start = linear + _column_dots(tangent.slope, direction_values)
    target = np.maximum(accept * np.abs(start), _rounding(machine, x, tangent))
    found = machine.step_lengths(
        tangent.fitted, direction_values, linear, quadratic, start, target
    )
    if found is not None:
        return found
    t = np.ones(machine.n_columns)
    low, high = np.zeros_like(t), np.full_like(t, np.inf)
    for _ in range(MAX_ITER):
        slope, curvature = derivatives(t)
        pending = (np.abs(slope) > target) & (start < 0) & (t < MAX_STEP)
        if not pending.any():
            break
        high = np.where(slope > 0, t, high)
        low = np.where(slope <= 0, t, low)
        newton = t - slope / np.where(curvature > 0, curvature, 1e-300)
        inside = np.isfinite(high)
        width = np.where(inside, high - low, 0.0)
        safe = (newton > low + 0.02 * width) & (newton < high - 0.02 * width)
        bisected = low + 0.5 * width
        expanded = np.clip(newton, 1.5 * t, 4.0 * t)
        update = np.where(inside, np.where(safe, newton, bisected), expanded)
        t = np.where(pending, np.minimum(update, MAX_STEP), t)
    return t


def _rounding(machine: Machine, x: Coefficients, tangent: Tangent) -> np.ndarray:
    """Where phi' is rounding error: it is a difference of sums of this size.

    A Newton step that short is as exact as it can be, and taken in full.
    """
    size = _column_dots(np.abs(tangent.slope), np.abs(tangent.fitted))
    return 1e-14 * (machine.inner(x, x, tangent.fitted) + size)


def _column_dots(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.einsum("ik,ik->k", A, B)
