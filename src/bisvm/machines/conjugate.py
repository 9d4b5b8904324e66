"""Conjugate gradients on several systems side by side.

Systems that share a matrix X, such as R + X' D_k X for the columns k of a machine, are
solved in step: one product with X serves all of them, and costs little more than it
would for one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Relative residual above which a solve has failed.
ACCEPTABLE = 1e-6

# Q_k v_k for the columns v_k of V, k the numbers given beside it.
Action = Callable[[np.ndarray, np.ndarray], np.ndarray]


def conjugate_gradients(
    action: Action,
    rhs: np.ndarray,
    diagonal: np.ndarray,
    rtol: float,
    patience: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """x_k with Q_k x_k = rhs_k, preconditioned by the diagonals of the Q_k: (m, q).

    Column k is done when its residual, measured by r' M^-1 r with M the diagonal, is
    below rtol^2 times that of rhs, and is not multiplied any further.

    Parameters
    ----------
    patience : (q,), iterations after which a column is given up without an error; by
        default, and where it is infinite, all are solved.

    Returns
    -------
    x : (m, q)
    given_up : numbers of the columns that were given up
    """
    found = np.zeros_like(rhs)
    size = _dots(rhs, rhs / diagonal)
    target, failed = rtol**2 * size, ACCEPTABLE**2 * size
    limit = np.full(len(size), np.inf) if patience is None else patience
    # Columns that are done leave: what follows is of those that are left.
    left = np.flatnonzero(~(size <= target))
    x, r, M = found[:, left], rhs[:, left], diagonal[:, left]
    p, rr = r / M, size[left]
    for iteration in range(10 * len(rhs) + 100):
        done = (rr <= target[left]) | (limit[left] <= iteration)
        if done.any():
            found[:, left[done]], size[left[done]] = x[:, done], rr[done]
            left, rr = left[~done], rr[~done]
            x, r, M, p = (A[:, ~done] for A in (x, r, M, p))
        if not len(left):
            return found, np.flatnonzero(~(size <= target))
        image = action(p, left)
        length = rr / _dots(p, image)
        x += length * p
        image *= length
        r -= image
        z = np.divide(r, M, out=image)
        last, rr = rr, _dots(r, z)
        p *= rr / last
        p += z
        if not np.isfinite(rr).all():
            break
    if not np.all(rr <= failed[left]):
        raise np.linalg.LinAlgError("conjugate gradients did not converge")
    found[:, left] = x
    return found, np.array([], dtype=int)


def _dots(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.einsum("ik,ik->k", A, B)
