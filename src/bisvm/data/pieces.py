"""Matrices that come in pieces of rows: what a linear machine asks of its data.

A machine in w touches the (n, d) matrix X of its inputs in few ways,

    X B,   X'A,   |X|'A,   [X 1]' diag(D) [X 1],   moments of the columns,   some rows,

and all but the last are either *stacked* over pieces of rows (one result a row) or
*reduced* over them (sums, mostly). So X need not be in memory as a whole. `Pieces` is
the protocol; `bisvm.data.chunks.Chunks` reads the pieces one after the other, and an
array that is spread over many computers is the same with another reduction. The
functions of this module take both kinds of matrix: one in memory is a single piece.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from operator import iadd
from typing import Any, Self

import numpy as np
from scipy import sparse


class Pieces(ABC):
    """An (n, d) matrix of which only pieces are ever in memory.

    A subclass says how pieces are walked through, of the rows that are kept and after
    the functions applied to them; products follow from that. Vectors of length n are
    ordinary arrays.

    shape : (n, d)
    sparse : whether pieces are CSR arrays; they are dense otherwise
    head : the first row as it was given, a data frame if the columns have names
    y : labels that came with the rows, or None
    """

    shape: tuple[int, int]
    sparse: bool
    head: Any
    y: np.ndarray | None
    ndim = 2
    dtype = np.dtype(np.float64)
    # Rows that are kept (None: all), and functions that pieces go through.
    _rows: np.ndarray | None = None
    _functions: tuple[Callable[[Any], Any], ...] = ()
    # An array on the left leaves an operation to us.
    __array_ufunc__ = None
    # `for row in X` would read all pieces for every row.
    __iter__ = None

    @abstractmethod
    def reduce(
        self,
        function: Callable[..., Any],
        *operands: np.ndarray,
        combine: Callable[[Any, Any], Any] = iadd,
    ) -> Any:
        """All function(piece, rows of the operands that belong to it), combined.

        In the order of the rows, so that rounding errors are always the same ones. What
        `function` returns belongs to the reduction, which may sum it up in its place.
        """

    @abstractmethod
    def stack(self, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        """function(piece), which has a row for every row, below one another."""

    @abstractmethod
    def _in_memory(self) -> list[Any]:
        """All pieces, in the order of their rows."""

    def each(self, function: Callable[[Any], Any]) -> Self:
        """The matrix function(X), row by row, applied to pieces as they are read."""
        other = copy(self)
        other._functions = (*self._functions, function)
        return other

    def keep(self, rows: np.ndarray) -> Self:
        """These rows alone, in ascending order; still in pieces."""
        other = copy(self)
        other._rows = rows if self._rows is None else self._rows[rows]
        return other

    def __getitem__(self, rows: Any) -> Any:
        """Some rows (indices, slice or mask) in memory, dense or CSR."""
        if np.ndim(rows) == 0 and not isinstance(rows, slice):
            raise IndexError("Rows are taken by indices, a slice or a mask: X[[3]].")
        rows = np.arange(self.shape[0])[rows]
        wanted, place = np.unique(rows, return_inverse=True)
        parts = self.keep(wanted)._in_memory()
        if not parts:
            return self._no_rows()
        found = (
            sparse.csr_array(sparse.vstack(parts)) if self.sparse else np.vstack(parts)
        )
        return found if np.array_equal(rows, wanted) else found[place]

    def _no_rows(self) -> Any:
        nothing = np.empty((0, self.shape[1]))
        return sparse.csr_array(nothing) if self.sparse else nothing

    def __matmul__(self, B: np.ndarray) -> np.ndarray:
        return self.stack(lambda piece: piece @ B)

    def __abs__(self) -> Self:
        return self.each(abs)

    @property
    def T(self) -> _Transposed:
        return _Transposed(self)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError(
            f"{self!r} is read in pieces and never becomes one array. Linear machines "
            "(BilevelLinearSVC) take it as it is; X[rows] gives some of its rows."
        )

    def __repr__(self) -> str:
        n, d = self.shape
        kind = "sparse" if self.sparse else "dense"
        return f"<{type(self).__name__} of {n} x {d}, {kind}>"


class _Transposed:
    """X', which multiplies from the left: X'A = sum over the pieces of X_p' A_p."""

    def __init__(self, X: Pieces):
        self.X = X
        self.shape = X.shape[::-1]

    def __matmul__(self, A: np.ndarray) -> np.ndarray:
        if len(A) != self.shape[1]:
            raise ValueError(f"X has {self.shape[1]} rows, and X'A an A of {len(A)}.")
        return self.X.reduce(lambda piece, rows: piece.T @ rows, A)


def reduce(
    function: Callable[..., Any],
    X: Any,
    *operands: np.ndarray,
    combine: Callable[[Any, Any], Any] = iadd,
) -> Any:
    """function(X, operands), combined over the pieces if X comes in pieces."""
    if isinstance(X, Pieces):
        return X.reduce(function, *operands, combine=combine)
    return function(X, *operands)


def each(function: Callable[[Any], Any], X: Any) -> Any:
    """function(X), which works row by row: now, or as pieces are read."""
    return X.each(function) if isinstance(X, Pieces) else function(X)


def stack(function: Callable[[Any], np.ndarray], X: Any) -> np.ndarray:
    """function(X), which has a row for every row of X, from its pieces if need be."""
    return X.stack(function) if isinstance(X, Pieces) else function(X)


def keep(X: Any, rows: np.ndarray) -> Any:
    """Rows of X in ascending order: a copy, or still in pieces; X itself if all."""
    if len(rows) == X.shape[0]:
        return X
    return X.keep(rows) if isinstance(X, Pieces) else X[rows]


def is_sparse(X: Any) -> bool:
    return X.sparse if isinstance(X, Pieces) else sparse.issparse(X)


def weighted_squares(X: Any, D: np.ndarray) -> np.ndarray:
    """[X 1]' diag(D_k) [X 1] for every column of D (n, q), D >= 0: (q, d + 1, d + 1).

    Rows with D = 0 are not touched; one reading of X serves all columns.
    """
    if isinstance(X, Pieces):
        active = np.flatnonzero((D > 0).any(axis=1))
        return X.keep(active).reduce(_weighted_squares, D[active])
    return _weighted_squares(X, D)


def _weighted_squares(X: Any, D: np.ndarray) -> np.ndarray:
    d = X.shape[1]
    out = np.empty((D.shape[1], d + 1, d + 1))
    for H, D_k in zip(out, D.T, strict=True):
        active = np.flatnonzero(D_k > 0)
        X_k, D_k = X[active], D_k[active]
        H[:d, :d] = _weighted_square(X_k, D_k)
        H[:d, d] = H[d, :d] = X_k.T @ D_k
        H[d, d] = D_k.sum()
    return out


def _weighted_square(X: Any, D: np.ndarray) -> np.ndarray:
    """X' diag(D) X."""
    if sparse.issparse(X):
        return (X.T @ X.multiply(D[:, None]).tocsr()).toarray()
    root = X * np.sqrt(D)[:, None]
    return root.T @ root
