"""Data that do not fit in memory, read chunk by chunk as often as they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import iadd
from typing import Any

import numpy as np
from scipy import sparse

from bisvm.data.pieces import Pieces
from bisvm.data.reading import Reader

# Bytes of a block, as float64, into which an array is cut.
BLOCK_BYTES = 32 * 2**20
# Bytes that are worked on at a time: little enough to stay in a processor's cache, and
# for temporary arrays to use the same memory again.
PIECE_BYTES = 4 * 2**20


class Chunks(Pieces):
    """Rows of data, with their labels, that are read in chunks, not held in memory.

    For `fit`, `predict`, `decision_function` and `score` of linear machines. The answer
    is that of the same data in memory, up to rounding errors. A fit reads all rows some
    dozens of times, so that a fast source pays: a memory-mapped array
    (`Chunks.of(array, y)`) is faster than text that is parsed anew each time.

    Chunks are arrays, data frames or sparse matrices, of any number of rows, or pairs
    (X, y) of them with their labels, which end up in the attribute `y`. Every reading
    must give the same rows in the same order. Chunks and rows are counted from 0 in
    messages.

    Parameters
    ----------
    source : callable or iterable
        A function that returns a new iterator over the chunks every time it is called
        (a generator function is one), or an object over which one can iterate again and
        again. A generator itself is not: it can be read only once.

    Examples
    --------
    Text in a file, a few thousand lines at a time:

    >>> import pandas as pd
    >>> from bisvm import BilevelLinearSVC, Chunks
    >>> def read():
    ...     for frame in pd.read_csv("measurements.csv", chunksize=10_000):
    ...         yield frame.drop(columns="label"), frame["label"]
    >>> data = Chunks(read)  # doctest: +SKIP
    >>> model = BilevelLinearSVC().fit(data)  # doctest: +SKIP
    >>> model.score(data, data.y)  # doctest: +SKIP

    An array on disk:

    >>> import numpy as np
    >>> X = np.load("X.npy", mmap_mode="r")  # doctest: +SKIP
    >>> model = BilevelLinearSVC().fit(Chunks.of(X), y)  # doctest: +SKIP
    """

    def __init__(self, source: Any):
        if hasattr(source, "shape"):
            raise ValueError(
                f"Chunks takes a source of chunks, and got a {type(source).__name__} "
                f"of shape {source.shape}; use Chunks.of(array, y)."
            )
        self._reader = Reader(source, steady=isinstance(source, _Blocks))

    @classmethod
    def of(cls, array: Any, y: Any = None, *, rows: int | None = None) -> Chunks:
        """An array cut into blocks of rows.

        Parameters
        ----------
        array : memory-mapped array, sparse matrix, or whatever has a shape and can be
            sliced by rows, such as a data set of h5py
        y : array of shape (n_samples,), optional
        rows : int, optional
            Rows of a block; about 32 MB of them by default.
        """
        return cls(_Blocks(array, y, rows))

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        reader = self._reader
        n = reader.n_rows if self._rows is None else len(self._rows)
        return n, reader.layout.width

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        return self._reader.layout.sparse

    @property
    def head(self) -> Any:  # type: ignore[override]
        return self._reader.head

    @property
    def y(self) -> np.ndarray | None:  # type: ignore[override]
        y = self._reader.labels
        return y if y is None or self._rows is None else y[self._rows]

    def reduce(
        self,
        function: Callable[..., Any],
        *operands: np.ndarray,
        combine: Callable[[Any, Any], Any] = iadd,
    ) -> Any:
        total = None
        for where, piece in self._pieces():
            part = function(piece, *(operand[where] for operand in operands))
            total = part if total is None else combine(total, part)
        if total is None:
            return function(self._no_rows(), *operands)
        return total

    def stack(self, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        out = None
        for where, piece in self._pieces():
            part = function(piece)
            if out is None:
                out = np.empty((self.shape[0], *part.shape[1:]), part.dtype)
            out[where] = part
        return function(self._no_rows()) if out is None else out

    def _in_memory(self) -> list[Any]:
        return [piece for _, piece in self._pieces()]

    def _pieces(self) -> Iterator[tuple[slice, Any]]:
        """Pieces as float64, and which of our rows they hold."""
        for chunk in self._reader:
            X, where = chunk.X, slice(chunk.first, chunk.first + chunk.n_rows)
            if self._rows is not None:
                where = slice(*np.searchsorted(self._rows, (where.start, where.stop)))
                # Before anything else is done: what is left out is not read.
                if where.stop - where.start < chunk.n_rows:
                    X = X[self._rows[where] - chunk.first]
            if where.start == where.stop:
                continue
            yield from self._mapped(X, where.start)

    def _mapped(self, X: Any, first: int) -> Iterator[tuple[slice, Any]]:
        step = _rows_in(PIECE_BYTES, X)
        for start in range(0, X.shape[0], step):
            piece = X[start : start + step].astype(np.float64, copy=False)
            where = slice(first + start, first + start + piece.shape[0])
            for function in self._functions:
                piece = function(piece)
            yield where, piece


class _Blocks:
    """An array as a source: its blocks of rows, one after the other."""

    def __init__(self, array: Any, y: Any, rows: int | None):
        if len(getattr(array, "shape", ())) != 2:
            raise ValueError(
                "Chunks.of takes an array with rows and columns, got "
                + (
                    f"one of shape {array.shape}."
                    if hasattr(array, "shape")
                    else f"a {type(array).__name__}; for a source of chunks use Chunks."
                )
            )
        if rows is not None and rows < 1:
            raise ValueError(f"rows={rows}: a block has at least one row.")
        n = array.shape[0]
        if y is not None and len(y) != n:
            raise ValueError(f"X has {n} rows and y {len(y)} labels.")
        if sparse.issparse(array):
            array = sparse.csr_array(array)
        self.array = array
        self.y = None if y is None else np.asarray(y)
        self.rows = rows or _rows_in(BLOCK_BYTES, array)

    def __iter__(self) -> Iterator[Any]:
        for first in range(0, self.array.shape[0], self.rows):
            block = slice(first, first + self.rows)
            rows = self.array[block]
            yield rows if self.y is None else (rows, self.y[block])


def _rows_in(n_bytes: int, X: Any) -> int:
    """Rows that take so many bytes as float64, with their indices if X is sparse."""
    n, d = X.shape
    in_row = 16 * X.nnz / max(n, 1) if sparse.issparse(X) else 8 * d
    return max(1, int(n_bytes / max(in_row, 1)))
