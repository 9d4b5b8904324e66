"""Intercepts that no point determines.

E(x, b) is constant along a free intercept b where all points are on linear parts of the
loss and their slopes sum to zero, as for two classes of the same weight with a small C.
Then the intercept with the smallest |b| is taken, which the ridge on b
(`machines.base.INTERCEPT_RIDGE`) would find too, if residuals were that small. So the
solution does not depend on where a solver has started.
"""

from __future__ import annotations

import numpy as np

from bisvm.core.types import Array
from bisvm.machines import Coefficients, Machine, Tangent

# Curvature of a point, as a share of the largest one, up to which it is not active; the
# sum of slopes, as a share of all weights, up to which an intercept is optimal.
_BARELY = 1e-3
_BALANCED = 1e-6
# Where the smallest optimal intercept is looked for, beyond the one found, and its
# accuracy, in halvings of its size.
_BEYOND = 1e-3
_HALVINGS = 45
# Rounding error of a sum of slopes, as a share of all weights.
_ROUNDING = 1e-14


def smallest_intercept(
    machine: Machine, x: Coefficients, tangent: Tangent
) -> tuple[Coefficients, Tangent]:
    """Where several intercepts are optimal, take the smallest, whatever the start.

    So it is for two classes of the same weight with a small C: all points are on the
    linear part of the loss, and stay there if the intercept moves a little.
    """
    free = np.flatnonzero(_free_to_move(machine, tangent))
    if not len(free):
        return x, tangent
    part, fitted, b = machine.select(free), tangent.fitted[:, free], x.intercept[free]
    # From a little beyond the intercept found to zero, as far as E falls.
    far, near = b + _BEYOND * np.sign(b), np.zeros_like(b)
    new = near
    for _ in range(_HALVINGS):
        slope = part.tangent(fitted + (new - b)).slope.sum(axis=0)
        slope += part.intercept_precision * new
        falls = np.sign(b) * slope >= -_ROUNDING * part.total_weight
        far, near = np.where(falls, new, far), np.where(falls, near, new)
        new = 0.5 * (far + near)
    moved = Coefficients(np.zeros_like(x.coef), np.zeros_like(x.intercept))
    moved.intercept[free] = far - b
    x = x.step(moved, np.ones(machine.n_columns))
    return x, machine.tangent(tangent.fitted + moved.intercept)


def _free_to_move(machine: Machine, tangent: Tangent) -> Array:
    """Columns whose intercept is optimal, and determined by no point."""
    if machine.intercept != "free":
        return np.zeros(machine.n_columns, dtype=bool)
    free: Array = np.abs(tangent.total_slope) <= _BALANCED * machine.total_weight
    if free.any():
        barely = _BARELY * machine.loss.max_curvature * machine.weights
        free &= np.all(tangent.curvature <= barely, axis=0)
    return free
