"""The exact line search: how far every column goes along its direction.

    phi(t) = E(x + t d)
           = 1/2 |x + t d|^2 + rho/2 (b + t b_d)^2 + sum_i W_i l(F_i + t V_i, Y_i)

is convex and piecewise smooth. A Newton iteration on phi'(t) = 0 starts at t = 1, stays
within a bracket, and stops when |phi'(t)| <= 0.1 |phi'(0)|.
"""

from __future__ import annotations

import math

import numpy as np

from bisvm.core.compiling import njit
from bisvm.core.types import Array
from bisvm.losses import Loss
from bisvm.losses.pointwise import Formula, as_compiled, at
from bisvm.machines import Coefficients, Machine, Tangent

# The search stops when the slope along the direction has fallen to this share, or to
# this multiple of the terms it is a difference of, which is its rounding error.
_ACCEPT = 0.1
_SLOPE_ROUNDING = 1e-14
_ROUNDS = 80
_LONGEST = 1e3
# Without a bracket t grows by factors in this range; within one it keeps this share of
# the bracket away from both ends.
_LEAST_GROWTH, _LARGEST_GROWTH = 1.5, 4.0
_MARGIN = 0.02
# Instead of a curvature that is not positive: the step is as long as it may be.
_TINY = 1e-300


def step_lengths(
    machine: Machine,
    x: Coefficients,
    tangent: Tangent,
    direction: Coefficients,
    direction_values: Array,
) -> Array:
    """Minimise phi(t) = E(x + t d) for every column: (q,).

    A full step whose phi' is rounding error is as exact as it can be.

    Parameters
    ----------
    machine : Machine
    x : Coefficients
    tangent : Tangent
        The losses at x.
    direction : Coefficients
    direction_values : array of shape (n, q)
        Fitted values of `direction`.
    """
    linear, quadratic, start, size = machine.along(
        x, tangent, direction, direction_values
    )
    target = np.maximum(_ACCEPT * np.abs(start), _SLOPE_ROUNDING * size)
    # Where E does not fall, any slope will do.
    target = np.where(start < 0, target, np.inf)
    lines = as_compiled(linear, quadratic, target)
    points = tangent.fitted, direction_values, machine.labels, machine.weights
    if not machine.loss.compiled:
        return _by_numpy(machine.loss, points, *lines)
    t, bracket = _first(machine.n_columns)
    given = *as_compiled(*points), *lines, t, bracket, np.zeros_like(bracket)
    search(machine.loss.formula, *given)
    return t


def _first(q: int) -> tuple[Array, Array]:
    """Return t = 1 and its bracket from 0 to infinity, for every column."""
    bracket = np.zeros((2, q))
    bracket[1] = np.inf
    return np.ones(q), bracket


def _by_numpy(
    loss: Loss,
    points: tuple[Array, Array, Array, Array],
    linear: Array,
    quadratic: Array,
    target: Array,
) -> Array:
    """`search` for a loss that is written in NumPy."""
    t, (low, high) = _first(len(target))
    for _ in range(_ROUNDS):
        first, second = loss.derivatives_along(*points, t)
        slope, curvature = linear + t * quadratic + first, quadratic + second
        before = t.copy()
        for k in range(len(t)):
            at_t = slope[k], curvature[k], target[k]
            t[k], low[k], high[k] = advance(t[k], low[k], high[k], *at_t)
        if np.array_equal(t, before, equal_nan=True):
            break
    return t


@njit(cache=True, nogil=True, error_model="numpy")
def advance(
    t: float, low: float, high: float, slope: float, curvature: float, target: float
) -> tuple[float, float, float]:
    """Return the next t and its bracket; the same t if |phi'(t)| <= target."""
    if not abs(slope) > target or t >= _LONGEST:
        return t, low, high
    if slope > 0.0:
        high = t
    else:
        low = t
    newton = t - slope / (curvature if curvature > 0.0 else _TINY)
    if high == math.inf:
        # Comparisons are compiled faster than functions of Python for them.
        least, largest = _LEAST_GROWTH * t, _LARGEST_GROWTH * t
        new = newton if newton > least else least
        new = new if new < largest else largest
    else:
        width = high - low
        safe = low + _MARGIN * width < newton < high - _MARGIN * width
        new = newton if safe else low + 0.5 * width
    return (new if new < _LONGEST else _LONGEST), low, high


# The fewer entries of arrays are named, the sooner it is compiled.
@njit(cache=True, nogil=True, error_model="numpy")
def search(
    formula: Formula,
    F: Array,
    V: Array,
    Y: Array,
    W: Array,
    linear: Array,
    quadratic: Array,
    target: Array,
    t: Array,
    bracket: Array,
    sums: Array,
) -> None:
    """Change t to where |phi'(t)| <= target, for a loss that is compiled.

    F, V, Y, W : (n, q), the losses at t are those of F + t V
    linear, quadratic, target : (q,), phi' without losses is linear + t quadratic
    bracket, sums : (2, q), 0 and inf in every column, and zeros: both are changed
    """
    n, q = F.shape
    for _ in range(_ROUNDS):
        for i in range(n):
            for k in range(q):
                weight, v = W[i, k], V[i, k]
                if weight == 0.0:
                    continue
                _, s, c = at(formula, F[i, k] + t[k] * v, Y[i, k])
                sums[0, k] += weight * s * v
                sums[1, k] += weight * c * v * v
        moved = False
        for k in range(q):
            old, curvature = t[k], quadratic[k]
            slope = linear[k] + old * curvature + sums[0, k]
            curvature += sums[1, k]
            new, low, high = advance(
                old, bracket[0, k], bracket[1, k], slope, curvature, target[k]
            )
            t[k], bracket[0, k], bracket[1, k] = new, low, high
            sums[0, k] = sums[1, k] = 0.0
            moved = moved or new != old
        if not moved:
            return
