"""Matrices whose rows may not all be in memory: products, moments and scales.

A linear machine uses the (n, d) matrix X of its inputs in few ways,

    X B,   X'A,   |X|'A,   [X 1]' diag(D) [X 1],   moments of the columns,   some rows,

and all but the last are *stacked* over blocks of rows (one result per row) or *reduced*
over them (mostly sums). So X need not be in memory as a whole. `RowBlocks` is the base
of such matrices: `Chunks` reads its blocks one after the other, and `Partitions` leaves
them to the workers of a cluster. The features of a landmark machine are such a matrix
as well (`machines.features`). The functions of this module also take a matrix in
memory, which is a single block.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from operator import iadd
from typing import Any, Self, TypeAlias, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from bisvm.core.types import Array, Matrix, UserData, UserVector

# Interquartile range of the standard normal distribution.
NORMAL_IQR = 1.349

# Entries up to which sparse rows are faster as an array: SciPy's calls take longer than
# the products. On 400 rows of a9a, 123 features, an evaluation took 0.07 s, now 0.03.
FEW_ENTRIES = 200_000

# What a reduction over blocks computes: an array, or moments.
Result = TypeVar("Result")


class RowBlocks(ABC):
    """An (n, d) matrix of which only blocks of rows are ever in memory.

    A subclass says how to go through the blocks, with the rows that are kept and after
    the functions applied to them; products follow from that. Vectors of length n are
    ordinary arrays.

    Attributes
    ----------
    shape : (n, d)
    is_sparse : bool
        Whether blocks are CSR arrays; otherwise they are dense.
    head : array or data frame
        The first row as it was given; a data frame if the columns have names.
    y : array or None
        Labels that came with the rows.
    """

    shape: tuple[int, int]
    is_sparse: bool
    head: UserData
    y: UserVector | None
    ndim = 2
    dtype = np.dtype(np.float64)
    # Inputs that are kept (None: all), and functions that are applied to blocks.
    _rows: Array | None = None
    _functions: tuple[Callable[[Matrix], Matrix], ...] = ()
    # An array on the left leaves an operation to this class.
    __array_ufunc__ = None
    # `for row in X` would read all blocks for every row.
    __iter__ = None

    @abstractmethod
    def reduce(
        self,
        function: Callable[..., Result],
        *operands: Array,
        combine: Callable[[Result, Result], Result] = iadd,
    ) -> Result:
        """Combine function(block, its rows of the operands) over all blocks.

        In the order of the rows, so that rounding errors are reproducible. The result
        of `function` belongs to the reduction, which may add to it in place.
        """

    @abstractmethod
    def stack(self, function: Callable[[Matrix], Array]) -> Array:
        """Stack function(block), which has a row for every row of the block."""

    @abstractmethod
    def _in_memory(self) -> list[Matrix]:
        """All blocks, in the order of their rows."""

    def _kept(self, first: int, end: int) -> tuple[slice, Array | None]:
        """Which of the kept rows are among rows `first` to `end` as they were given.

        Also their places in that block; None for the whole block.
        """
        if self._rows is None:
            return slice(first, end), None
        where = slice(*np.searchsorted(self._rows, (first, end)))
        whole = where.stop - where.start == end - first
        return where, None if whole else self._rows[where] - first

    def each(self, function: Callable[[Matrix], Matrix]) -> Self:
        """The matrix function(X), row by row, applied to blocks as they are read."""
        other = copy(self)
        other._functions = (*self._functions, function)
        return other

    def keep(self, rows: Array) -> Self:
        """These rows alone, in ascending order; still in blocks."""
        other = copy(self)
        other._rows = rows if self._rows is None else self._rows[rows]
        return other

    def __getitem__(self, rows: Sequence[int] | Array | slice) -> Matrix:
        """Some rows (indices, slice or mask) in memory, dense or CSR."""
        if not isinstance(rows, slice) and np.ndim(rows) == 0:
            raise IndexError("Inputs are taken by indices, a slice or a mask: X[[3]].")
        numbers = np.arange(self.shape[0])[rows]
        wanted, place = np.unique(numbers, return_inverse=True)
        parts = self.keep(wanted)._in_memory()
        if not parts:
            return self._no_rows()
        found: Matrix = (
            sparse.csr_array(sparse.vstack(parts))
            if self.is_sparse
            else np.vstack(parts)
        )
        return found if np.array_equal(numbers, wanted) else found[place]

    def _no_rows(self) -> Matrix:
        nothing = np.empty((0, self.shape[1]))
        return sparse.csr_array(nothing) if self.is_sparse else nothing

    def __matmul__(self, B: Array) -> Array:
        return self.stack(lambda block: block @ B)

    def __abs__(self) -> Self:
        return self.each(abs)

    @property
    def T(self) -> _Transposed:
        return _Transposed(self)

    def __array__(self, *_: object, **__: object) -> Array:
        raise TypeError(
            f"{self!r} is read in blocks and never becomes one array. Estimators take "
            "it as it is; X[rows] gives some of its rows."
        )

    def __repr__(self) -> str:
        n, d = self.shape
        kind = "sparse" if self.is_sparse else "dense"
        return f"<{type(self).__name__} of {n} x {d}, {kind}>"


# Validated inputs: in memory, or in blocks of rows.
Inputs: TypeAlias = Matrix | RowBlocks


class _Transposed:
    """X', which multiplies from the left: X'A = sum over blocks of X_b' A_b."""

    def __init__(self, X: RowBlocks):
        self.X = X
        self.shape = X.shape[::-1]

    def __matmul__(self, A: Array) -> Array:
        if len(A) != self.shape[1]:
            raise ValueError(f"X has {self.shape[1]} rows, and X'A an A of {len(A)}.")
        product: Callable[..., Array] = lambda block, rows: block.T @ rows  # noqa: E731
        return self.X.reduce(product, A)


def reduce(
    function: Callable[..., Result],
    X: Inputs,
    *operands: Array,
    combine: Callable[[Result, Result], Result] = iadd,
) -> Result:
    """function(X, operands), combined over the blocks if X comes in blocks."""
    if isinstance(X, RowBlocks):
        return X.reduce(function, *operands, combine=combine)
    return function(X, *operands)


def each(function: Callable[[Matrix], Matrix], X: Inputs) -> Any:
    """function(X), which works row by row: now, or as blocks are read."""
    return X.each(function) if isinstance(X, RowBlocks) else function(X)


def stack(function: Callable[[Matrix], Array], X: Inputs) -> Array:
    """function(X), which has a row for every row of X, stacked over its blocks."""
    return X.stack(function) if isinstance(X, RowBlocks) else function(X)


def keep(X: Any, rows: Array) -> Any:
    """Inputs of X in ascending order: a copy, or still in blocks; X itself if all."""
    if len(rows) == X.shape[0]:
        return X
    return X.keep(rows) if isinstance(X, RowBlocks) else X[rows]


def is_sparse(X: Inputs) -> TypeGuard[sparse.csr_array]:
    """Whether a matrix, or its blocks, are sparse."""
    return X.is_sparse if isinstance(X, RowBlocks) else bool(sparse.issparse(X))


def weighted_squares(X: Inputs, D: Array) -> Array:
    """[X 1]' diag(D_k) [X 1] for every column of D (n, q), D >= 0: (q, d + 1, d + 1).

    Inputs with D = 0 are not used; X is read once for all columns.
    """
    if isinstance(X, RowBlocks):
        active = np.flatnonzero((D > 0).any(axis=1))
        return X.keep(active).reduce(_weighted_squares, D[active])
    return _weighted_squares(X, D)


def _weighted_squares(X: Matrix, D: Array) -> Array:
    d = X.shape[1]
    out = np.empty((D.shape[1], d + 1, d + 1))
    for H, D_k in zip(out, D.T, strict=True):
        active = np.flatnonzero(D_k > 0)
        X_k, D_k = X[active], D_k[active]
        H[:d, d] = H[d, :d] = X_k.T @ D_k
        H[d, d] = D_k.sum()
        H[:d, :d] = _weighted_square(X_k, D_k)
    return out


def _weighted_square(X: Matrix, D: Array) -> Array:
    """X' diag(D) X; an array X is overwritten."""
    out: Array
    if not isinstance(X, np.ndarray):
        out = (X.T @ X.multiply(D[:, None]).tocsr()).toarray()
        return out
    X *= np.sqrt(D)[:, None]
    out = X.T @ X
    return out


# --- matrices in memory, dense or sparse ----------------------------------------------


def dense(X: Matrix) -> Array:
    """Return X as an array; an array is not copied."""
    out: Array = X.toarray() if is_sparse(X) else X
    return out


def dense_if_small(X: Matrix) -> Matrix:
    """Return X, as an array if it has few entries."""
    return dense(X) if math.prod(X.shape) <= FEW_ENTRIES else X


def flat(X: Matrix) -> Matrix:
    """Return X as a matrix with one row per sample."""
    if is_sparse(X):
        return X.tocsr()
    X = np.asarray(X, dtype=float)
    return X.reshape(len(X), math.prod(X.shape[1:]))


def row_dots(A: Matrix) -> Array:
    """|a_i|^2 for every row i."""
    if is_sparse(A):
        return np.asarray(A.multiply(A).sum(axis=1)).ravel()
    out: Array = np.einsum("ij,ij->i", A, A)
    return out


def column_dots(A: Matrix, B: Array) -> Array:
    """sum_i A_id B_id for every column d."""
    if is_sparse(A):
        return np.asarray(A.multiply(B).sum(axis=0)).ravel()
    out: Array = np.einsum("id,id->d", A, B)
    return out


def scale_columns(X: Matrix, factors: ArrayLike) -> Matrix:
    """x_id factors_d; a sparse matrix stays sparse."""
    if is_sparse(X):
        diagonal = sparse.diags_array(np.broadcast_to(factors, X.shape[1]))
        return sparse.csr_array(X @ diagonal)
    return X * np.asarray(factors)


# --- the natural scale of features, in which starts and bounds are expressed ----------


@dataclass(frozen=True)
class Moments:
    """Weighted mean and variance, smallest and largest entry of every column."""

    weight: float
    mean: Array
    variance: Array
    low: Array
    high: Array

    def merge(self, other: Moments) -> Moments:
        """Moments of both sets of rows together, with shares a + b = 1 of the weight:

        mean = mean_1 + b (mean_2 - mean_1),
        variance = a variance_1 + b variance_2 + a b (mean_2 - mean_1)^2

        (Chan, Golub and LeVeque 1983): one pass, and no cancellation.
        """
        weight = self.weight + other.weight
        a, b = self.weight / weight, other.weight / weight
        apart = other.mean - self.mean
        return Moments(
            weight,
            self.mean + b * apart,
            a * self.variance + b * other.variance + a * b * apart**2,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


def column_moments(X: Inputs, sample_weight: ArrayLike | None = None) -> Moments:
    """Moments of every column, by one pass over X.

    Variances that are only rounding errors become 0.
    """
    weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight)
    found = reduce(_moments, X, weight, combine=Moments.merge)
    # Without centring (sparse columns) rounding errors are larger.
    rounding = 1e3 * np.finfo(float).eps
    level = rounding if is_sparse(X) else rounding**2
    largest = np.maximum(np.abs(found.low), np.abs(found.high))
    if not is_sparse(X):
        largest = np.maximum(largest, _reach(found.mean, found.low, found.high))
    constant = found.variance <= level * largest**2
    variance = np.where(constant, 0.0, found.variance)
    return Moments(found.weight, found.mean, variance, found.low, found.high)


def column_variance(X: Inputs, sample_weight: ArrayLike | None = None) -> Array:
    """Weighted variance of every column; 1 for a constant column.

    A constant column has no scale and no effect: any positive number will do.
    """
    return positive(column_moments(X, sample_weight).variance)


def column_scale(X: Inputs, sample_weight: ArrayLike | None = None) -> Array:
    """Usual size of a column's differences: min(standard deviation, IQR / 1.349).

    Both are the same for a normal distribution; the interquartile range ignores a
    few outliers (Silverman 1986, section 3.4.2). The standard deviation
    alone where half of the entries are equal; 1 for a constant column.
    """
    deviation: Array = np.sqrt(column_variance(X, sample_weight))
    if isinstance(X, RowBlocks):
        return deviation
    robust = _interquartile_range(X, sample_weight) / NORMAL_IQR
    scale: Array = np.where(robust > 0, np.minimum(deviation, robust), deviation)
    return scale


def n_varying(X: Inputs) -> int:
    """Number of columns that are not constant; at least one."""
    return max(int(np.count_nonzero(column_moments(X).variance)), 1)


def _interquartile_range(X: Matrix, sample_weight: ArrayLike | None) -> Array:
    """Of every column; 0 for sparse columns that are zero in three quarters of rows."""
    n, d = X.shape
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight)
    if not is_sparse(X):
        return _dense_range(X, weight)
    stored = sparse.csr_array((np.ones(len(X.data)), X.indices, X.indptr), (n, d))
    often = np.flatnonzero(stored.T @ weight >= 0.25 * weight.sum())
    found = np.zeros(d)
    found[often] = _dense_range(X[:, often].toarray(), weight)
    return found


def _dense_range(X: Array, weight: Array) -> Array:
    """From the first to the third quartile; a row of weight two counts as two rows."""
    order = np.argsort(X, axis=0, kind="stable")
    ordered = np.take_along_axis(X, order, axis=0)
    below = np.cumsum(weight[order], axis=0) / weight.sum()

    def entry(after: Array) -> Array:
        """The first entry of every column after which `after` holds."""
        place = np.argmax(after, axis=0)[None]
        return np.asarray(np.take_along_axis(ordered, place, axis=0)[0])

    # If a share of the weight is reached exactly, up to rounding, the quartile lies
    # midway between two entries.
    low, high = (
        0.5 * (entry(below >= share - 1e-9) + entry(below >= share + 1e-9))
        for share in (0.25, 0.75)
    )
    spread: Array = high - low
    return spread


def mean_variance(X: Inputs, sample_weight: ArrayLike | None = None) -> float:
    """Mean of the columns' variances, constant columns counting as 0; 1 if all are."""
    return float(positive(np.mean(column_moments(X, sample_weight).variance)))


def mean_deviation(X: Inputs, sample_weight: ArrayLike | None = None) -> float:
    """Mean of the columns' standard deviations, likewise."""
    return float(positive(np.mean(np.sqrt(column_moments(X, sample_weight).variance))))


def positive(size: ArrayLike) -> Array:
    """1 where a size is zero."""
    return np.where(np.asarray(size) > 0, size, 1.0)


def _moments(X: Matrix, weight: Array) -> Moments:
    """Moments of rows in memory."""
    total = float(weight.sum())
    weight = weight / total
    low, high = X.min(axis=0), X.max(axis=0)
    if not isinstance(X, np.ndarray):
        low, high = low.toarray().ravel(), high.toarray().ravel()
        mean = X.T @ weight
        variance = np.maximum(X.power(2).T @ weight - mean**2, 0.0)
        return Moments(total, mean, variance, low, high)
    mean = weight @ X
    safe = positive(_reach(mean, low, high))
    variance = safe**2 * (weight @ ((X - mean) / safe) ** 2)
    return Moments(total, mean, variance, low, high)


def _reach(mean: Array, low: Array, high: Array) -> Array:
    """Largest distance of an entry from its column's mean."""
    reach: Array = np.maximum(high - mean, mean - low)
    return reach
