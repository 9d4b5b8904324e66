"""Losses of all points in one compiled pass, and the line search along a direction.

A pass in NumPy takes a dozen small steps, and a solver makes hundreds of passes: on a
few hundred points that is most of the time. A loss that names its compiled twin
(`Loss.compiled`: its kind, and its width) is evaluated here; others go the usual way.

    F, V : (n, q) fitted values and a direction of them; Y, W : labels and weights
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

# Kind, width and shift of a loss.
Twin = tuple[int, float, float]
QUARTIC, SOFTPLUS, SQUARED_HINGE = 0, 1, 2

# Steps of a line search, and the longest it goes.
MAX_ITER = 80
MAX_STEP = 1e3


@njit(cache=True, nogil=True, inline="always")
def point(
    kind: int, width: float, shift: float, u: float
) -> tuple[float, float, float]:
    """Value, slope and curvature of a loss at the margin u."""
    if kind == QUARTIC:
        p = (1.0 + width) - u
        if p <= 0.0:
            return 0.0, 0.0, 0.0
        if p >= 2.0 * width:
            return p - width, -1.0, 0.0
        p /= width
        return (
            width * p * p * p * (4.0 - p) / 16.0,
            0.25 * p * p * (p - 3.0),
            0.75 / width * p * (2.0 - p),
        )
    if kind == SQUARED_HINGE:
        r = 1.0 - u
        if r > 0.0:
            return r * r, -2.0 * r, 2.0
        return 0.0, 0.0, 0.0
    r = shift - u
    t = math.exp(-width * abs(r))
    q = 1.0 / (1.0 + t)
    slope = -q if r > 0.0 else -t * q
    return max(r, 0.0) + math.log1p(t) / width, slope, width * t * q * q


@njit(cache=True, nogil=True)
def losses(
    twin: Twin, F: np.ndarray, Y: np.ndarray, W: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """sum_i W loss (q,), S = W Y loss' and D = W loss'' (n, q)."""
    kind, width, shift = twin
    n, q = F.shape
    value, slope, curvature = np.zeros(q), np.zeros((n, q)), np.zeros((n, q))
    for i in range(n):
        for k in range(q):
            weight = W[i, k]
            if weight == 0.0:
                continue
            v, s, c = point(kind, width, shift, Y[i, k] * F[i, k])
            value[k] += weight * v
            slope[i, k] = weight * Y[i, k] * s
            curvature[i, k] = weight * c
    return value, slope, curvature


@njit(cache=True, nogil=True)
def derivatives_along(
    twin: Twin,
    F: np.ndarray,
    V: np.ndarray,
    Y: np.ndarray,
    W: np.ndarray,
    k: int,
    t: float,
) -> tuple[float, float]:
    """sum_i S_i V_i and sum_i D_i V_i^2 of column k at F + t V."""
    kind, width, shift = twin
    first, second = 0.0, 0.0
    for i in range(len(F)):
        if W[i, k] == 0.0:
            continue
        y, v = Y[i, k], V[i, k]
        _, s, c = point(kind, width, shift, y * (F[i, k] + t * v))
        first += W[i, k] * y * s * v
        second += W[i, k] * c * v * v
    return first, second


@njit(cache=True, nogil=True)
def step_lengths(
    twin: Twin,
    F: np.ndarray,
    V: np.ndarray,
    Y: np.ndarray,
    W: np.ndarray,
    linear: np.ndarray,
    quadratic: np.ndarray,
    start: np.ndarray,
    target: np.ndarray,
) -> np.ndarray:
    """The bracketed Newton iteration of `solvers.line_search`, column by column."""
    lengths = np.ones(len(linear))
    for k in range(len(linear)):
        t, low, high = 1.0, 0.0, np.inf
        for _ in range(MAX_ITER):
            first, second = derivatives_along(twin, F, V, Y, W, k, t)
            slope = linear[k] + t * quadratic[k] + first
            if not (abs(slope) > target[k] and start[k] < 0.0 and t < MAX_STEP):
                break
            t, low, high = next_length(t, slope, quadratic[k] + second, low, high)
        lengths[k] = t
    return lengths


@njit(cache=True, nogil=True)
def next_length(
    t: float, slope: float, curvature: float, low: float, high: float
) -> tuple[float, float, float]:
    """A Newton step on phi'(t) = 0 that stays inside the bracket, and the bracket."""
    if slope > 0.0:
        high = t
    else:
        low = t
    newton = t - slope / (curvature if curvature > 0.0 else 1e-300)
    if high == np.inf:
        longer = min(max(newton, 1.5 * t), 4.0 * t)
        return min(longer, MAX_STEP), low, high
    width = high - low
    if low + 0.02 * width < newton < high - 0.02 * width:
        return newton, low, high
    return low + 0.5 * width, low, high
