"""What kernels of the form exp(-distance) have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from bisvm.kernels.base import Factors


def dense(X: Any) -> np.ndarray:
    """X as an array in C order, for compiled loops."""
    return np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=float)


def dense_pair(X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both arguments dense, of as many columns: compiled loops do not look.

    Y = None stands for X.
    """
    A = dense(X)
    B = A if Y is None else dense(Y)
    if A.ndim != 2 or B.ndim != 2 or A.shape[1] != B.shape[1]:
        raise ValueError(
            f"X has shape {A.shape} and Y has shape {B.shape}: a kernel is of points "
            "with the same number of columns."
        )
    return A, B


def dot_with_logarithm(gram: np.ndarray, weights: Factors) -> float:
    """sum_ij W_ij K_ij log K_ij, with 0 log 0 = 0.

    With K = exp(-gamma D) it is the derivative by log gamma, and needs no distances.
    """
    total = 0.0
    tiny = np.finfo(float).tiny
    for rows, V in weights.blocks():
        block = gram[rows]
        V *= block
        total += float(np.vdot(V, np.log(np.maximum(block, tiny))))
    return total
