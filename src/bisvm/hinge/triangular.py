"""A Cholesky factor L L' = A to which rows are added, and from which they are taken.

L is the leading (m, m) part of an array in Fortran order with room to grow, so that
columns are contiguous and nothing is copied when m changes. Only the lower triangle
is read or written. Loops go over four columns at a time: what they wait for is memory.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract"}


@njit(cache=True, fastmath=_FAST)
def forward(L: np.ndarray, z: np.ndarray) -> None:
    """z (m,) becomes the solution of L x = z."""
    m = len(z)
    whole = m - m % 4
    for j in range(0, whole, 4):
        l0, l1, l2, l3 = L[:, j], L[:, j + 1], L[:, j + 2], L[:, j + 3]
        x0 = z[j] / l0[j]
        x1 = (z[j + 1] - x0 * l0[j + 1]) / l1[j + 1]
        x2 = (z[j + 2] - x0 * l0[j + 2] - x1 * l1[j + 2]) / l2[j + 2]
        x3 = (z[j + 3] - x0 * l0[j + 3] - x1 * l1[j + 3] - x2 * l2[j + 3]) / l3[j + 3]
        z[j], z[j + 1], z[j + 2], z[j + 3] = x0, x1, x2, x3
        for i in range(j + 4, m):
            z[i] -= x0 * l0[i] + x1 * l1[i] + x2 * l2[i] + x3 * l3[i]
    for j in range(whole, m):
        z[j] /= L[j, j]
        for i in range(j + 1, m):
            z[i] -= z[j] * L[i, j]


@njit(cache=True, fastmath=_FAST)
def backward(L: np.ndarray, z: np.ndarray) -> None:
    """z (m,) becomes the solution of L'x = z."""
    m = len(z)
    whole = m - m % 4
    for j in range(m - 1, whole - 1, -1):
        for i in range(j + 1, m):
            z[j] -= L[i, j] * z[i]
        z[j] /= L[j, j]
    for j in range(whole - 4, -1, -4):
        l0, l1, l2, l3 = L[:, j], L[:, j + 1], L[:, j + 2], L[:, j + 3]
        s0 = s1 = s2 = s3 = 0.0
        for i in range(j + 4, m):
            s0 += l0[i] * z[i]
            s1 += l1[i] * z[i]
            s2 += l2[i] * z[i]
            s3 += l3[i] * z[i]
        x3 = (z[j + 3] - s3) / l3[j + 3]
        x2 = (z[j + 2] - s2 - x3 * l2[j + 3]) / l2[j + 2]
        x1 = (z[j + 1] - s1 - x2 * l1[j + 2] - x3 * l1[j + 3]) / l1[j + 1]
        x0 = (z[j] - s0 - x1 * l0[j + 1] - x2 * l0[j + 2] - x3 * l0[j + 3]) / l0[j]
        z[j], z[j + 1], z[j + 2], z[j + 3] = x0, x1, x2, x3


@njit(cache=True, fastmath=_FAST)
def delete_row(L: np.ndarray, z: np.ndarray, k: int) -> None:
    """Take row k out of the factor; rotations of columns make it triangular again.

    Rows below move up by one and reach one column too far. The rotation of columns j
    and j + 1 clears entry (j, j + 1), for j from k on. Where L z = r was, it is again
    for r without r_k: rows of z (q, m) are rotated too, and lose their last entry.
    """
    m = z.shape[1]
    for j in range(k):
        column = L[:, j]
        for i in range(k, m - 1):
            column[i] = column[i + 1]
    for j in range(k, m - 1):
        left, right = L[:, j], L[:, j + 1]
        length = np.hypot(left[j + 1], right[j + 1])
        cos, sin = left[j + 1] / length, right[j + 1] / length
        left[j] = length
        for i in range(j + 2, m):
            low, high = left[i], right[i]
            left[i - 1] = cos * low + sin * high
            right[i] = cos * high - sin * low
        for q in range(len(z)):
            low, high = z[q, j], z[q, j + 1]
            z[q, j], z[q, j + 1] = cos * low + sin * high, cos * high - sin * low
