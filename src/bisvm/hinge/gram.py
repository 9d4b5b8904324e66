"""The Gram matrix, as far as the path between breakpoints needs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from scipy import sparse

from bisvm.core.compiling import njit
from bisvm.core.types import Array, Matrix


class Gram(ABC):
    """K_ij = k(x_i, x_j) of n points: symmetric, positive semidefinite, not changed."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def diagonal(self) -> Array:
        """Return k(x_i, x_i), (n,)."""

    @abstractmethod
    def block(self, rows: Array, columns: Array) -> Array:
        """Return k(x_i, x_j) for i in rows and j in columns."""

    @abstractmethod
    def functions(self, rows: Array, beta: Array) -> Array:
        """Return sum_j beta_j k(x_j, .) over these rows, at all points, (n,)."""

    @abstractmethod
    def values(self, points: Array, rows: Array, beta: Array) -> Array:
        """Return sum_j beta_j k(x_j, x_i) over j in rows, for i in points."""

    @abstractmethod
    def restricted(self, points: Array) -> Self:
        """Return the Gram matrix of these points alone, a copy."""

    def scale(self) -> float:
        """Return the mean size of the diagonal, or 1 if that is zero."""
        size = float(np.mean(np.abs(self.diagonal()))) if len(self) else 0.0
        return size if size > 0 else 1.0


class DenseGram(Gram):
    """An array (n, n); it is not copied. A function costs O(n) for every row in it."""

    def __init__(self, array: Array):
        array = np.asarray(array, dtype=float)
        self.array = np.ascontiguousarray(
            array.T if array.flags.f_contiguous else array
        )

    def __len__(self) -> int:
        return len(self.array)

    def diagonal(self) -> Array:
        return self.array.diagonal()

    def block(self, rows: Array, columns: Array) -> Array:
        out: Array = self.array[np.ix_(rows, columns)]
        return out

    def functions(self, rows: Array, beta: Array) -> Array:
        f = np.zeros(len(self))
        add_rows(self.array, rows, np.asarray(beta, dtype=float), f)
        return f

    def values(self, points: Array, rows: Array, beta: Array) -> Array:
        out: Array = self.array[points] @ np.bincount(rows, beta, len(self))
        return out

    def restricted(self, points: Array) -> DenseGram:
        return DenseGram(self.block(points, points))


class LinearGram(Gram):
    """k(x, z) = x'z for the rows of X (n, d), dense or sparse; no (n, n) array.

    A function is f(x) = w'x with w = sum_j beta_j x_j. At all points it costs O(n d),
    or the number of nonzero entries of X, however many rows are in it.
    """

    def __init__(self, X: Matrix):
        self._sparse = sparse.issparse(X)
        if self._sparse:
            self._X = sparse.csr_array(X, dtype=float)
            self._square: Array = self._X.multiply(self._X).sum(axis=1)
        else:
            self._X = np.asarray(X, dtype=float)
            self._square = np.einsum("ij,ij->i", self._X, self._X)

    def __len__(self) -> int:
        return len(self._square)

    def diagonal(self) -> Array:
        return self._square

    def block(self, rows: Array, columns: Array) -> Array:
        if not self._sparse:
            out: Array = self._X[rows] @ self._X[columns].T
            return out
        out, w = np.empty((len(rows), len(columns))), np.zeros(self._X.shape[1])
        sparse_products(*self._arrays(), rows, columns, w, out)
        return out

    def functions(self, rows: Array, beta: Array) -> Array:
        f: Array = self._X @ self._total(rows, beta)
        return f

    def values(self, points: Array, rows: Array, beta: Array) -> Array:
        f: Array = self._X[points] @ self._total(rows, beta)
        return f

    def restricted(self, points: Array) -> LinearGram:
        return LinearGram(self._X[points])

    def _total(self, rows: Array, beta: Array) -> Array:
        """Return w; sparse rows are summed without extracting them."""
        if not self._sparse:
            w: Array = beta @ self._X[rows]
            return w
        w = np.zeros(self._X.shape[1])
        add_sparse_rows(*self._arrays(), rows, beta, w)
        return w

    def _arrays(self) -> tuple[Array, Array, Array]:
        return self._X.data, self._X.indices, self._X.indptr


class RepeatedGram(Gram):
    """The Gram matrix of points that occur several times, as those of two hinges do.

    rows : (m,), which point of `gram` each one is
    """

    def __init__(self, gram: Gram, rows: Array):
        self._gram, self._rows = gram, rows

    def __len__(self) -> int:
        return len(self._rows)

    def diagonal(self) -> Array:
        own: Array = self._gram.diagonal()[self._rows]
        return own

    def block(self, rows: Array, columns: Array) -> Array:
        return self._gram.block(self._rows[rows], self._rows[columns])

    def functions(self, rows: Array, beta: Array) -> Array:
        f: Array = self._gram.functions(self._rows[rows], beta)[self._rows]
        return f

    def values(self, points: Array, rows: Array, beta: Array) -> Array:
        return self._gram.values(self._rows[points], self._rows[rows], beta)

    def restricted(self, points: Array) -> RepeatedGram:
        once, rows = np.unique(self._rows[points], return_inverse=True)
        return RepeatedGram(self._gram.restricted(once), rows)


def as_gram(gram: Gram | Array) -> Gram:
    """Return a Gram object as it is, and an array (n, n) as a DenseGram."""
    return gram if isinstance(gram, Gram) else DenseGram(gram)


@njit(cache=True, fastmath={"reassoc", "contract"})
def add_rows(array: Array, rows: Array, beta: Array, f: Array) -> None:
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


@njit(cache=True)
def add_sparse_rows(
    data: Array, indices: Array, indptr: Array, rows: Array, beta: Array, w: Array
) -> None:
    """w += sum_j beta_j x_j over rows of a CSR matrix."""
    for j in range(len(rows)):
        for k in range(indptr[rows[j]], indptr[rows[j] + 1]):
            w[indices[k]] += beta[j] * data[k]


@njit(cache=True)
def sparse_products(
    data: Array,
    indices: Array,
    indptr: Array,
    rows: Array,
    others: Array,
    w: Array,
    out: Array,
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
