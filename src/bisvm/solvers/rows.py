"""Rows x_i of a matrix in compiled loops: w'x_i, w + factor x_i and |x_i|^2.

One loop serves every storage. Their numbers of arrays tell them apart, in branches of
which the compiler keeps one.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from bisvm.core.compiling import njit
from bisvm.core.types import Array, Matrix, UserData


class Dense(NamedTuple):
    """Rows of an array."""

    X: Array


class GramRows(NamedTuple):
    """Rows of a Gram matrix: w holds fitted values, and w'x_i is w_i."""

    K: Array
    diagonal: Array


class CSR(NamedTuple):
    """Rows of a matrix in compressed sparse row format."""

    data: Array
    indices: Array
    indptr: Array


# One of the above. Compiled code tells them apart by their number of fields.
Rows: TypeAlias = Any


def as_matrix(X: UserData) -> Matrix:
    """Return X in float64: an array in C order, or CSR without duplicate entries."""
    if not sparse.issparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    rows = X.tocsr().astype(np.float64, copy=False)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def as_rows(X: Matrix) -> Dense | CSR:
    """Return the rows of what `as_matrix` returns."""
    if isinstance(X, np.ndarray):
        return Dense(X)
    return CSR(X.data, X.indices, X.indptr)


@njit(nogil=True)
def dot(rows: Rows, i: int, w: Array) -> float:
    """w'x_i."""
    if len(rows) == 1:
        return _dense_dot(rows.X, i, w)
    if len(rows) == 2:
        return w[i]  # type: ignore[no-any-return]
    return _sparse_dot(rows.data, rows.indices, rows.indptr, i, w)


@njit(nogil=True, fastmath={"reassoc", "nsz", "contract"})
def _dense_dot(X: Array, i: int, w: Array) -> float:
    total = 0.0
    for j in range(len(w)):  # in any order, so that terms are added in parallel
        total += w[j] * X[i, j]
    return total


@njit(nogil=True)
def _sparse_dot(data: Array, indices: Array, indptr: Array, i: int, w: Array) -> float:
    total = 0.0
    # Unsigned: no index has to be tested for its sign.
    for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        total += w[np.uint64(indices[k])] * data[k]
    return total


@njit(nogil=True)
def axpy(rows: Rows, i: int, factor: float, w: Array) -> None:
    """w <- w + factor x_i."""
    if len(rows) <= 2:
        for j in range(len(w)):
            w[j] += factor * rows[0][i, j]
    else:
        indptr = rows.indptr
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            w[np.uint64(rows.indices[k])] += factor * rows.data[k]


@njit(nogil=True)
def square(rows: Rows, i: int) -> float:
    """|x_i|^2."""
    total = 0.0
    if len(rows) == 1:
        for j in range(rows.X.shape[1]):
            total += rows.X[i, j] * rows.X[i, j]
    elif len(rows) == 2:
        total = rows.diagonal[i]
    else:
        indptr = rows.indptr
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += rows.data[k] * rows.data[k]
    return total


@njit(cache=True, nogil=True)
def squares(rows: Rows, n: int) -> Array:
    """|x_i|^2 of all n rows."""
    return np.array([square(rows, i) for i in range(n)])


def check_labels(shape: tuple[int, ...], y: Array) -> None:
    """Refuse labels that do not fit a matrix of this shape."""
    if len(shape) != 2 or y.shape != shape[:1]:
        raise ValueError(
            f"X must be a matrix and y have one entry per row; got shapes {shape} and "
            f"{y.shape}."
        )
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError("y must hold +1 and -1 only; map the classes to them first.")


def check_finite(name: str, given: Matrix) -> None:
    """Refuse NaN and infinity."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = given.sum()  # not finite if an entry is not
    entries = given.data if sparse.issparse(given) else given
    if not np.isfinite(total) and not np.isfinite(entries).all():
        raise ValueError(f"{name} must be finite; it holds NaN or infinity: clean it.")
