"""A kernel that is given as a matrix."""

from __future__ import annotations

from typing import Self

import numpy as np

from bisvm.core.parts import Parameters
from bisvm.core.types import Array, ArrayLike, Matrix
from bisvm.data.matrices import dense
from bisvm.kernels.base import Factors, Kernel, KernelGradient

# Largest |K - K'| relative to the largest entry that may be rounding: about the square
# root of the machine precision.
SYMMETRY_RTOL = 1e-8
# Rows whose eigenvalues are checked, in some 20 ms, and the most negative eigenvalue
# relative to the largest one that may be rounding in K's own computation.
DEFINITE_ROWS, DEFINITE_RTOL = 300, 1e-6


class Precomputed(Kernel):
    """k(i, j) = matrix[i, j], where the inputs are row numbers, X of shape (n, 1).

    The matrix holds all points, including those to be predicted. In a sum or product
    the kernel takes its row numbers from one column: `Precomputed(K).on([0]) +
    RBF().on([1, 2])`. It has no parameters; C takes the place of a scale. Its
    derivative with respect to a row number is zero.

    Parameters
    ----------
    matrix : array of shape (N, N)
        Symmetric, finite, and positive semidefinite, which is checked on its first 300
        rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from bisvm import BilevelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> rows = np.arange(len(X))[:, None]
    >>> model = BilevelSVC(Precomputed(X @ X.T), random_state=0)
    >>> model.fit(rows[::2], y[::2]).score(rows[1::2], y[1::2]) > 0.9
    True
    """

    def __init__(self, matrix: ArrayLike):
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
        if least < -DEFINITE_RTOL * max(most, abs(least)):
            raise ValueError(
                "Precomputed: the matrix is not a kernel, it must be positive "
                f"semidefinite, but has an eigenvalue of {least:.3g} (the largest is "
                f"{most:.3g}). Add a multiple of the identity, or square it."
            )
        return self

    def parameters(self, X: Matrix, sample_weight: Array | None = None) -> Parameters:
        self.validate()
        return ()

    def gram(self, X: Matrix, Y: Matrix | None = None) -> Array:
        matrix = self._square()
        rows = _row_numbers(X, len(matrix))
        columns = rows if Y is None else _row_numbers(Y, len(matrix))
        out: Array = matrix[np.ix_(rows, columns)]
        return out

    def diagonal(self, X: Matrix) -> Array:
        matrix = self._square()
        out: Array = matrix.diagonal()[_row_numbers(X, len(matrix))]
        return out

    def pullback(
        self, X: Matrix, Y: Matrix | None, gram: Array, W: Factors, inputs: bool = False
    ) -> KernelGradient:
        """Return zeros: row numbers cannot be varied."""
        by_X = np.zeros(X.shape) if inputs else None
        by_Y = np.zeros((X if Y is None else Y).shape) if inputs else None
        return KernelGradient(np.empty(0), by_X, by_Y)

    def _square(self) -> Array:
        matrix = np.asarray(self.matrix, dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                f"Precomputed: the matrix must be square, got shape {matrix.shape}. "
                "Pass the matrix of all points, and give row numbers as X."
            )
        return matrix


def _row_numbers(X: Matrix, size: int) -> Array:
    """The only column of X as integers below `size`."""
    numbers = np.asarray(dense(X))
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
            f"Precomputed: X[{row}, 0] = {numbers[row]:.6g} is not a row number of the "
            f"matrix; expected whole numbers from 0 to {size - 1}, not scaled."
        )
    return numbers.astype(np.intp)
