"""A kernel that is given as a matrix."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

from bisvm.core.parts import Parameter
from bisvm.kernels.base import Factors, Kernel, KernelGradient

# Largest |K - K'| that rounding excuses, relative to the largest entry.
SYMMETRY_RTOL = 1e-8
# Rows on which its definiteness is checked.
DEFINITE_ROWS = 300


class Precomputed(Kernel):
    """k(i, j) = matrix[i, j], where the inputs are row numbers, X of shape (n, 1).

    The matrix holds all points, those to be predicted as well::

        model = BilevelSVC(Precomputed(K)).fit(train[:, None], y[train])
        model.predict(test[:, None])

    As a part of a sum or product it takes its row numbers from a column:
    `Precomputed(K).on([0]) + RBF().on([1, 2])`. It has no parameters, its scale is C's,
    and its derivative by a row number is zero.

    Parameters
    ----------
    matrix : array of shape (N, N)
        Symmetric, finite, and positive semidefinite, which is checked on some of the
        rows.
    """

    def __init__(self, matrix: Any):
        self.matrix = matrix

    def validate(self) -> Self:
        matrix = self._square()
        if not np.all(np.isfinite(matrix)):
            i, j = np.argwhere(~np.isfinite(matrix))[0]
            raise ValueError(
                f"Precomputed: matrix[{i}, {j}] is {matrix[i, j]}, expected finite "
                "numbers."
            )
        asymmetry = np.max(np.abs(matrix - matrix.T), initial=0.0)
        if asymmetry > SYMMETRY_RTOL * np.max(np.abs(matrix), initial=0.0):
            raise ValueError(
                "Precomputed: the matrix must be symmetric, but entries differ from "
                f"their mirror images by up to {asymmetry:.3g}. If that is rounding, "
                "pass (K + K.T) / 2; if K is k(test, train), pass the matrix of all "
                "points and give row numbers as X."
            )
        some = matrix[:DEFINITE_ROWS, :DEFINITE_ROWS]
        least, most = np.linalg.eigvalsh(some)[[0, -1]] if some.size else (0.0, 0.0)
        if least < -1e-6 * max(most, abs(least)):
            raise ValueError(
                "Precomputed: the matrix is no kernel, it must be positive "
                f"semidefinite, but has an eigenvalue of {least:.3g} (the largest is "
                f"{most:.3g}). Add a multiple of the identity, or square it."
            )
        return self

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        self.validate()
        return ()

    def gram(self, X: Any, Y: Any = None) -> np.ndarray:
        matrix = self._square()
        rows = _row_numbers(X, len(matrix))
        columns = rows if Y is None else _row_numbers(Y, len(matrix))
        return matrix[np.ix_(rows, columns)]

    def diagonal(self, X: Any) -> np.ndarray:
        matrix = self._square()
        return matrix.diagonal()[_row_numbers(X, len(matrix))]

    def pullback(
        self,
        X: Any,
        Y: Any,
        gram: np.ndarray,
        weights: Factors,
        *,
        inputs: bool = False,
    ) -> KernelGradient:
        if not inputs:
            return KernelGradient(np.empty(0))
        Y = X if Y is None else Y
        return KernelGradient(np.empty(0), np.zeros(X.shape), np.zeros(Y.shape))

    def _square(self) -> np.ndarray:
        matrix = np.asarray(self.matrix, dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                f"Precomputed: the matrix must be square, got shape {matrix.shape}. "
                "Pass the matrix of all points, and give row numbers as X."
            )
        return matrix


def _row_numbers(X: Any, size: int) -> np.ndarray:
    """The only column of X as integers below `size`, or a ValueError."""
    numbers = X.toarray() if sparse.issparse(X) else np.asarray(X)
    if numbers.ndim != 2 or numbers.shape[1] != 1:
        raise ValueError(
            "Precomputed takes row numbers of its matrix, X of shape (n, 1); got shape "
            f"{numbers.shape}. Use rows[:, None], or Precomputed(K).on([column]) if a "
            "column of X holds them."
        )
    numbers = numbers[:, 0]
    wrong = (numbers != np.floor(numbers)) | (numbers < 0) | (numbers >= size)
    if np.any(wrong):
        row = int(np.argmax(wrong))
        raise ValueError(
            f"Precomputed: X[{row}, 0] = {numbers[row]:.6g} is no row number of the "
            f"matrix; expected whole numbers from 0 to {size - 1}, not scaled."
        )
    return numbers.astype(np.intp)
