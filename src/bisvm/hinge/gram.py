"""The Gram matrix, as much of it as a path of breakpoints needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numba import njit
from scipy import sparse


class Gram(ABC):
    """K_ij = k(x_i, x_j) of n points: symmetric, positive semidefinite, not changed."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """k(x_i, x_i), (n,)."""

    @abstractmethod
    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """k(x_i, x_j) for i in rows and j in columns."""

    @abstractmethod
    def functions(self, rows: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """sum_j beta_j k(x_j, .) over these rows, at all points, (n,)."""

    @abstractmethod
    def values(
        self, points: np.ndarray, rows: np.ndarray, beta: np.ndarray
    ) -> np.ndarray:
        """The same at these points only."""

    @abstractmethod
    def restricted(self, points: np.ndarray) -> Self:
        """The Gram matrix of these points alone, a copy."""

    def scale(self) -> float:
        """The size of the diagonal, a positive number."""
        size = float(np.mean(np.abs(self.diagonal()))) if len(self) else 0.0
        return size if size > 0 else 1.0


class DenseGram(Gram):
    """An array (n, n); it is not copied. A function is O(n) for every row in it."""

    def __init__(self, array: np.ndarray):
        array = np.asarray(array, dtype=float)
        self.array = np.ascontiguousarray(
            array.T if array.flags.f_contiguous else array
        )

    def __len__(self) -> int:
        return len(self.array)

    def diagonal(self) -> np.ndarray:
        return self.array.diagonal()

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        out = np.empty((len(rows), len(columns)))
        take_block(self.array, rows, columns, out)
        return out

    def functions(self, rows: np.ndarray, beta: np.ndarray) -> np.ndarray:
        f = np.zeros(len(self))
        add_rows(self.array, rows, np.asarray(beta, dtype=float), f)
        return f

    def values(
        self, points: np.ndarray, rows: np.ndarray, beta: np.ndarray
    ) -> np.ndarray:
        spread, out = np.zeros(len(self)), np.empty(len(points))
        np.add.at(spread, rows, beta)
        row_products(self.array, points, spread, out)
        return out

    def restricted(self, points: np.ndarray) -> DenseGram:
        return DenseGram(self.block(points, points))


class LinearGram(Gram):
    """k(x, z) = x'z for the rows of X (n, d), dense or sparse; no (n, n) array.

    A function is f(x) = w'x with w = sum_j beta_j x_j: O(n d) at all points, however
    many rows are in it, or the number of nonzero entries of X.
    """

    def __init__(self, X: Any):
        self._rows = _SparseRows(X) if sparse.issparse(X) else _DenseRows(X)

    def __len__(self) -> int:
        return len(self._rows.square)

    def diagonal(self) -> np.ndarray:
        return self._rows.square

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self._rows.products(rows, columns)

    def functions(self, rows: np.ndarray, beta: np.ndarray) -> np.ndarray:
        return self._rows.X @ self._rows.total(rows, beta)

    def values(
        self, points: np.ndarray, rows: np.ndarray, beta: np.ndarray
    ) -> np.ndarray:
        return self._rows.X[points] @ self._rows.total(rows, beta)

    def restricted(self, points: np.ndarray) -> LinearGram:
        return LinearGram(self._rows.X[points])


class _DenseRows:
    """Sums and products of rows of X; square_i = x_i'x_i."""

    def __init__(self, X: Any):
        self.X = np.asarray(X, dtype=float)
        self.square = np.einsum("ij,ij->i", self.X, self.X)

    def total(self, rows: np.ndarray, beta: np.ndarray) -> np.ndarray:
        return beta @ self.X[rows]

    def products(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        return self.X[rows] @ self.X[others].T


class _SparseRows:
    """The same for a sparse X; to take rows out of it would cost more than to sum."""

    def __init__(self, X: Any):
        self.X = sparse.csr_array(X, dtype=float)
        self.square = self.X.multiply(self.X).sum(axis=1)
        self._arrays = self.X.data, self.X.indices, self.X.indptr

    def total(self, rows: np.ndarray, beta: np.ndarray) -> np.ndarray:
        w = np.zeros(self.X.shape[1])
        add_sparse_rows(*self._arrays, rows, beta, w)
        return w

    def products(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        out = np.empty((len(rows), len(others)))
        sparse_products(*self._arrays, rows, others, np.zeros(self.X.shape[1]), out)
        return out


def as_gram(gram: Any) -> Gram:
    """A Gram object as it is; an array (n, n) as a DenseGram."""
    return gram if isinstance(gram, Gram) else DenseGram(gram)


@njit(cache=True, fastmath={"reassoc", "contract"})
def add_rows(
    array: np.ndarray, rows: np.ndarray, beta: np.ndarray, f: np.ndarray
) -> None:
    """f += sum_j beta_j array[rows_j], without a copy of the rows.

    Four rows at a time, and so many columns that f stays in the cache.
    """
    width, m = 4096, len(rows)
    for start in range(0, len(f), width):
        stop = min(start + width, len(f))
        for j in range(0, m - 3, 4):
            r0, r1 = array[rows[j]], array[rows[j + 1]]
            r2, r3 = array[rows[j + 2]], array[rows[j + 3]]
            b0, b1, b2, b3 = beta[j], beta[j + 1], beta[j + 2], beta[j + 3]
            for i in range(start, stop):
                f[i] += b0 * r0[i] + b1 * r1[i] + b2 * r2[i] + b3 * r3[i]
        for j in range(m - m % 4, m):
            for i in range(start, stop):
                f[i] += beta[j] * array[rows[j], i]


@njit(cache=True, fastmath={"reassoc", "contract"})
def row_products(
    array: np.ndarray, rows: np.ndarray, w: np.ndarray, out: np.ndarray
) -> None:
    """out_i = array[rows_i]'w, four rows at a time."""
    m = len(rows)
    for i in range(0, m - 3, 4):
        r0, r1 = array[rows[i]], array[rows[i + 1]]
        r2, r3 = array[rows[i + 2]], array[rows[i + 3]]
        s0 = s1 = s2 = s3 = 0.0
        for j in range(len(w)):
            s0 += r0[j] * w[j]
            s1 += r1[j] * w[j]
            s2 += r2[j] * w[j]
            s3 += r3[j] * w[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = s0, s1, s2, s3
    for i in range(m - m % 4, m):
        row, total = array[rows[i]], 0.0
        for j in range(len(w)):
            total += row[j] * w[j]
        out[i] = total


@njit(cache=True)
def take_block(
    array: np.ndarray, rows: np.ndarray, columns: np.ndarray, out: np.ndarray
) -> None:
    """out = array[rows][:, columns], row by row: a row stays in the cache."""
    for i in range(len(rows)):
        row, target = array[rows[i]], out[i]
        for j in range(len(columns)):
            target[j] = row[columns[j]]


@njit(cache=True)
def add_sparse_rows(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    rows: np.ndarray,
    beta: np.ndarray,
    w: np.ndarray,
) -> None:
    """w += sum_j beta_j x_j over rows of a CSR matrix."""
    for j in range(len(rows)):
        for k in range(indptr[rows[j]], indptr[rows[j] + 1]):
            w[indices[k]] += beta[j] * data[k]


@njit(cache=True)
def sparse_products(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    rows: np.ndarray,
    others: np.ndarray,
    w: np.ndarray,
    out: np.ndarray,
) -> None:
    """out_ij = x_i'x_j over rows of a CSR matrix; w (d,) is zero before and after."""
    for i in range(len(rows)):
        own = range(indptr[rows[i]], indptr[rows[i] + 1])
        for k in own:
            w[indices[k]] += data[k]
        for j in range(len(others)):
            total = 0.0
            for k in range(indptr[others[j]], indptr[others[j] + 1]):
                total += w[indices[k]] * data[k]
            out[i, j] = total
        for k in own:
            w[indices[k]] = 0.0
