"""Dual coordinate descent for the hinge, without an intercept:

    min over alpha of  1/2 |w|^2 - sum_i alpha_i,   w = sum_i alpha_i y_i x_i,

0 <= alpha_i <= c_i. The derivative by alpha_i is G_i = y_i w'x_i - 1, and alpha is
optimal if and only if all projected gradients are zero:

    REST      alpha_i = 0           min(G_i, 0)
    MARGIN    0 < alpha_i < c_i     G_i
    ERROR     alpha_i = c_i         max(G_i, 0).

A step minimises over one alpha_i and says in which of the sets it ends: they are a
state, never read off alpha. An intercept is the weight of a constant column.

This is the dual (6) of Jiang and Siddiqui 2020, the lower level of (18), with c_i = C;
the three cases are (22).

C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, "A dual
coordinate descent method for large-scale linear SVM", ICML 2008, algorithms 1 and 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bisvm.core.compiling import njit
from bisvm.core.types import Array, ArrayLike, UserData
from bisvm.hinge.active_set import ERROR, MARGIN, REST
from bisvm.solvers.rows import (
    GramRows,
    Rows,
    as_matrix,
    as_rows,
    axpy,
    check_finite,
    dot,
    squares,
)


@dataclass(frozen=True)
class DualDescent:
    """Where a descent stopped.

    alpha : (n,)
    state : (n,), REST, MARGIN or ERROR for every point
    w : sum_i alpha_i y_i x_i; for a kernel, the fitted values K (y alpha)
    sweeps : passes over the points
    violation : largest less smallest projected gradient, zero among them
    converged : whether violation <= tol
    """

    alpha: Array
    state: Array
    w: Array
    sweeps: int
    violation: float
    converged: bool


def dual_coordinate_descent(
    X: UserData,
    y: Array,
    c: ArrayLike,
    *,
    precomputed: bool = False,
    tol: float = 1e-3,
    max_sweeps: int = 1000,
    seed: int = 0,
) -> DualDescent:
    """Minimise 1/2 |sum_i alpha_i y_i x_i|^2 - sum_i alpha_i over 0 <= alpha_i <= c_i.

    Linear machines leave out points at a bound that hold to it by more than any
    violation of the last sweep, until the others are solved; then all are checked.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    y : array of shape (n,), +1 or -1
    c : array of shape (n,), or one number for all
        Upper bounds; a point with c_i = 0 takes no part.
    precomputed : bool
        Whether X is the whole Gram matrix K, and the first term
        1/2 (y alpha)'K (y alpha). A step then reads one fitted value and, where alpha_i
        moves, adds row i of K to all.
    tol : float
        Stop when the largest less the smallest projected gradient is at most this.
    max_sweeps : int
        Passes over the points, each in a new random order.
    seed : int
        Draws the orders. One seed, one answer.
    """
    X = as_matrix(X)
    check_finite("X", X)
    rows = GramRows(X, X.diagonal().copy()) if precomputed else as_rows(X)
    n, y = len(y), np.ascontiguousarray(y, dtype=np.float64)
    # A copy, never a read-only view: that would be another type to compile for.
    c = np.broadcast_to(np.asarray(c, dtype=np.float64), n).copy()
    alpha, state, w = np.zeros(n), np.full(n, REST, np.int8), np.zeros(X.shape[1])
    noise = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    sweeps, violation = descend(
        rows, y, c, alpha, state, w, float(tol), max_sweeps, noise, not precomputed
    )
    return DualDescent(alpha, state, w, sweeps, violation, violation <= tol)


@njit(nogil=True, error_model="numpy")
def _minimum(
    G: float, alpha: float, size: float, c: float, state: int
) -> tuple[float, float, int]:
    """The projected gradient at alpha, the best alpha between 0 and c, and its set."""
    found = _projected(G, state)
    if found == 0.0 or c == 0.0:
        return 0.0, alpha, state
    # A row of zeros has G = -1 for every w: its alpha grows to c.
    target = alpha - G / size if size > 0.0 else math.inf
    if target <= 0.0:
        return found, 0.0, REST
    if target >= c:
        return found, c, ERROR
    return found, target, MARGIN


@njit(nogil=True)
def _projected(G: float, state: int) -> float:
    if state == REST:
        return min(G, 0.0)
    return max(G, 0.0) if state == ERROR else G


@njit(cache=True, nogil=True)
def descend(
    rows: Rows,
    y: Array,
    c: Array,
    alpha: Array,
    state: Array,
    w: Array,
    tol: float,
    max_sweeps: int,
    noise: Array,
    shrinking: bool,
) -> tuple[int, float]:
    """Sweep until no projected gradients are more than tol apart.

    The extremes of a sweep belong to points that still move; when they are small, all
    points are checked.
    """
    sizes = squares(rows, len(y))
    order = np.flatnonzero(c > 0.0)
    n_active, highest, lowest = len(order), math.inf, -math.inf
    violation, sweeps = _recompute(rows, y, c, alpha, state, w), 0
    while violation > tol and sweeps < max_sweeps:
        _shuffle(order[:n_active], noise)
        n_active, high, low = _sweep(
            rows, y, sizes, c, alpha, state, w, order, n_active, highest, lowest
        )
        sweeps += 1
        if high - low <= tol or sweeps == max_sweeps:
            violation = _recompute(rows, y, c, alpha, state, w)
            n_active, highest, lowest = len(order), math.inf, -math.inf
        elif shrinking:
            highest = high if high > 0.0 else math.inf
            lowest = low if low < 0.0 else -math.inf
    return sweeps, violation


@njit(nogil=True)
def _sweep(
    rows: Rows,
    y: Array,
    sizes: Array,
    c: Array,
    alpha: Array,
    state: Array,
    w: Array,
    order: Array,
    n_active: int,
    highest: float,
    lowest: float,
) -> tuple[int, float, float]:
    """Update the first n_active points of `order`; return how many stay, and extremes.

    Points that are held at their bound by more than `highest` or `lowest` move behind
    them and are left out.
    """
    k, high, low = 0, 0.0, 0.0
    while k < n_active:
        i = order[k]
        G = y[i] * dot(rows, i, w) - 1.0
        if (state[i] == REST and G > highest) or (state[i] == ERROR and G < lowest):
            n_active -= 1
            order[k], order[n_active] = order[n_active], i
            continue
        found, target, state[i] = _minimum(G, alpha[i], sizes[i], c[i], state[i])
        if found != 0.0:
            change, alpha[i] = target - alpha[i], target
            axpy(rows, i, change * y[i], w)
        high, low = max(high, found), min(low, found)
        k += 1
    return n_active, high, low


@njit(nogil=True)
def _recompute(
    rows: Rows, y: Array, c: Array, alpha: Array, state: Array, w: Array
) -> float:
    """Recompute w without the rounding errors of the steps; return the violation."""
    w[:] = 0.0
    for i in range(len(y)):
        if state[i] != REST:
            axpy(rows, i, alpha[i] * y[i], w)
    high, low = 0.0, 0.0
    for i in range(len(y)):
        if c[i] > 0.0:
            found = _projected(y[i] * dot(rows, i, w) - 1.0, state[i])
            high, low = max(high, found), min(low, found)
    return high - low


@njit(nogil=True)
def _shuffle(order: Array, noise: Array) -> None:
    """Fisher-Yates shuffle by Knuth's MMIX generator, whose state is `noise`."""
    factor, term = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
    half = np.uint64(32)
    for k in range(len(order) - 1, 0, -1):
        noise[0] = noise[0] * factor + term
        other = np.int64(((noise[0] >> half) * np.uint64(k + 1)) >> half)
        order[k], order[other] = order[other], order[k]
