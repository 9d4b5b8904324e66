"""Data that do not fit in memory, read chunk by chunk in every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import iadd
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from bisvm.core.types import Array, Matrix, UserData, UserVector
from bisvm.data.matrices import Result, RowBlocks

# Bytes of a block, as float64, into which an array is cut.
BLOCK_BYTES = 32 * 2**20
# Bytes that are processed at a time: they stay in a processor's cache, and temporary
# arrays reuse the same memory.
PART_BYTES = 4 * 2**20
# Rows of a chunk that are compared in later readings.
_MARKS = 32
SAME_ROWS = (
    "Every reading must give the same rows in the same order; a function must return a "
    "new iterator at every call."
)

# Something that gives the chunks again and again.
Source: TypeAlias = Callable[[], Iterable[UserData]] | Iterable[UserData]


class Chunks(RowBlocks):
    """Rows of data, with their labels, that are read in chunks and not held in memory.

    Pass it to `fit`, `predict`, `decision_function` or `score`. A linear machine gives
    the same result as with the data in memory, up to rounding errors; a kernel machine
    has landmarks if there are many rows. A fit reads all rows dozens of times, so use a
    fast source: a memory-mapped array (`Chunks.of(array, y)`) is faster than text that
    is parsed every time.

    A chunk is an array, a data frame or a sparse matrix with any number of rows, or a
    pair (X, y) with labels; the attribute `y` holds the labels of all chunks. Every
    pass must give the same rows in the same order. Messages count chunks and rows from
    0.

    Parameters
    ----------
    source : callable or iterable
        A function that returns a new iterator over the chunks every time it is called,
        such as a generator function; or an iterable that can be iterated repeatedly. A
        generator can be read only once, and is refused.

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

    def __init__(self, source: Source):
        if hasattr(source, "shape"):
            raise ValueError(
                f"Chunks takes a source of chunks, and got a {type(source).__name__} "
                f"of shape {source.shape}; use Chunks.of(array, y)."
            )
        self._reader = Reader(source, steady=isinstance(source, _ArraySource))

    @classmethod
    def of(
        cls, array: UserData, y: UserVector = None, *, rows: int | None = None
    ) -> Chunks:
        """Return the chunks of an array, cut into blocks of rows.

        Parameters
        ----------
        array : memory-mapped array, sparse matrix, or whatever has a shape and can be
            sliced by rows, such as a data set of h5py
        y : array of shape (n_samples,), optional
        rows : int, optional
            Rows of a block; about 32 MB of them by default.

        Returns
        -------
        chunks : Chunks
        """
        return cls(_ArraySource(array, y, rows))

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Number of rows and features, after a first reading."""
        reader = self._reader
        n = reader.n_rows if self._rows is None else len(self._rows)
        return n, reader.layout.width

    @property
    def is_sparse(self) -> bool:  # type: ignore[override]
        """Whether the chunks are sparse matrices."""
        return self._reader.layout.sparse

    @property
    def head(self) -> UserData:
        """The first row, in the form in which the source gives chunks."""
        return self._reader.head

    @property
    def y(self) -> Array | None:  # type: ignore[override]
        """Labels of all rows, (n_samples,); None if the source gives none."""
        y = self._reader.labels
        return y if y is None or self._rows is None else y[self._rows]

    def reduce(
        self,
        function: Callable[..., Result],
        *operands: Array,
        combine: Callable[[Result, Result], Result] = iadd,
    ) -> Result:
        total = None
        for where, block in self._blocks():
            part = function(block, *(operand[where] for operand in operands))
            total = part if total is None else combine(total, part)
        if total is None:
            return function(self._no_rows(), *operands)
        return total

    def stack(self, function: Callable[[Matrix], Array]) -> Array:
        out = None
        for where, block in self._blocks():
            part = function(block)
            if out is None:
                out = np.empty((self.shape[0], *part.shape[1:]), part.dtype)
            out[where] = part
        return function(self._no_rows()) if out is None else out

    def _in_memory(self) -> list[Matrix]:
        return [block for _, block in self._blocks()]

    def _blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """Blocks as float64, and which of our rows they hold."""
        for chunk in self._reader:
            kept, rows = self._kept(chunk.first, chunk.first + chunk.n_rows)
            # First of all, so that rows that are left out are not read.
            X = chunk.X if rows is None else chunk.X[rows]
            step = _rows_in(PART_BYTES, X)
            for start in range(0, X.shape[0], step):
                block = X[start : start + step].astype(np.float64, copy=False)
                first = kept.start + start
                where = slice(first, first + block.shape[0])
                for function in self._functions:
                    block = function(block)
                yield where, block


class _ArraySource:
    """An array as a source: its blocks of rows, one after the other."""

    def __init__(self, array: UserData, y: UserVector, rows: int | None):
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
        labels = None if y is None else np.asarray(y)
        if labels is not None and len(labels) != n:
            raise ValueError(f"X has {n} rows and y {len(labels)} labels.")
        if sparse.issparse(array):
            array = sparse.csr_array(array)
        self.array = array
        self.y = labels
        self.rows = rows or _rows_in(BLOCK_BYTES, array)

    def __iter__(self) -> Iterator[UserData]:
        for first in range(0, self.array.shape[0], self.rows):
            block = slice(first, first + self.rows)
            rows = self.array[block]
            yield rows if self.y is None else (rows, self.y[block])


def _rows_in(n_bytes: int, X: UserData) -> int:
    """Number of rows that take `n_bytes` as float64, with indices if X is sparse."""
    n, d = X.shape
    in_row = 16 * X.nnz / max(n, 1) if sparse.issparse(X) else 8 * d
    return max(1, int(n_bytes / max(in_row, 1)))


# --- reading a source again and again, and comparing with the first reading -----------


class Layout(NamedTuple):
    """What all chunks have in common."""

    width: int
    names: tuple[str, ...] | None
    sparse: bool
    labelled: bool

    def in_words(self) -> tuple[str, ...]:
        named = "no names" if self.names is None else ", ".join(map(str, self.names))
        return (
            f"{self.width} columns",
            f"the columns {named if len(named) <= 80 else named[:77] + '...'}",
            "sparse rows" if self.sparse else "dense rows",
            "labels" if self.labelled else "no labels",
        )


class Reader:
    """Iterates over the chunks of a source, as often as it is asked to.

    The first pass, at construction, counts and checks the rows; a difference in a later
    pass is an error. All labels are compared, and some rows of every chunk by the sum
    of their entries, since a source that shuffles would give wrong results.

    Parameters
    ----------
    source : a function that returns a new iterator over chunks, or an iterable
    steady : whether the source cannot change, so that one check is enough

    Attributes
    ----------
    n_rows, layout, labels : counted, seen and collected in the first reading
    head : the first row as it was given
    """

    head: UserData
    layout: Layout

    def __init__(self, source: Source, *, steady: bool = False):
        self._source = source
        self._steady = steady
        self.n_rows = 0
        labels: list[Array] = []
        marks: list[tuple[int, float]] = []
        for chunk in _chunks(source):
            if chunk.number == 0:
                self.layout = chunk.layout
            if self.n_rows == 0:
                self.head = chunk.head
            chunk.check_layout(self.layout)
            chunk.check_finite()
            if chunk.y is not None:
                labels.append(chunk.y)
            for row in chunk.marked():
                marks.append((chunk.first + row, chunk.mark(row)))
            self.n_rows += chunk.n_rows
        if not self.n_rows:
            raise ValueError(
                "The source of chunks gave no rows: there is nothing in it."
            )
        self.labels = np.concatenate(labels) if labels else None
        self._marked = np.array([row for row, _ in marks])
        self._marks = np.array([mark for _, mark in marks])

    def __iter__(self) -> Iterator[Chunk]:
        read = 0
        for chunk in _chunks(self._source):
            read = chunk.first + chunk.n_rows
            if not self._steady:
                self._check_again(chunk)
            yield chunk
        if read < self.n_rows:
            raise ValueError(
                f"The source of chunks ended after {read} rows; the first reading had "
                f"{self.n_rows}. {SAME_ROWS}"
            )

    def _check_again(self, chunk: Chunk) -> None:
        chunk.check_layout(self.layout)
        chunk.check_finite()
        if chunk.first + chunk.n_rows > self.n_rows:
            raise ValueError(
                f"{chunk.name} goes beyond the {self.n_rows} rows of the first "
                f"reading. {SAME_ROWS}"
            )
        bounds = (chunk.first, chunk.first + chunk.n_rows)
        for k in range(*np.searchsorted(self._marked, bounds)):
            row = self._marked[k]
            if chunk.mark(row - chunk.first) != self._marks[k]:
                raise ValueError(
                    f"{chunk.name} has changed: row {row} is not what it was in the "
                    f"first reading. {SAME_ROWS}"
                )
        if self.labels is not None and np.any(chunk.y != self.labels[slice(*bounds)]):
            raise ValueError(
                f"{chunk.name} has changed: its labels are not those of the first "
                f"reading. {SAME_ROWS}"
            )


@dataclass(frozen=True)
class Chunk:
    """Chunk `number`, whose first row is row `first` of the data.

    X is an array of numbers of any type (a memory map stays one, unread) or CSR.
    """

    number: int
    first: int
    given: UserData
    X: Matrix
    y: Array | None

    @classmethod
    def of(cls, given: UserData, number: int, first: int) -> Chunk:
        name = f"Chunk {number} (from row {first} on)"
        y = None
        if isinstance(given, tuple):
            if len(given) != 2:
                raise ValueError(
                    f"{name} is a tuple of {len(given)}, expected X or a pair (X, y)."
                )
            given, y = given
        labels = None if y is None else np.asarray(y)
        chunk = cls(number, first, given, matrix(given, name), labels)
        if chunk.y is not None and len(chunk.y) != chunk.n_rows:
            raise ValueError(
                f"{chunk.name} has {chunk.n_rows} rows in X and {len(chunk.y)} labels "
                "in y; expected a label for every row."
            )
        return chunk

    @property
    def name(self) -> str:
        return (
            f"Chunk {self.number} (rows {self.first} to {self.first + self.n_rows - 1})"
        )

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def head(self) -> UserData:
        """A copy of the first row: a view would keep the chunk in memory."""
        return self.given[:1].copy()

    @property
    def layout(self) -> Layout:
        columns = getattr(self.given, "columns", None)
        names = None if columns is None else tuple(columns)
        return Layout(
            self.X.shape[1], names, sparse.issparse(self.X), self.y is not None
        )

    def marked(self) -> list[int]:
        """Rows that are compared in later readings."""
        if not self.n_rows:
            return []
        rows = np.linspace(0, self.n_rows - 1, _MARKS).astype(int)
        return [int(row) for row in np.unique(rows)]

    def mark(self, row: int) -> float:
        return float(self.X[row : row + 1].sum())

    def check_layout(self, expected: Layout) -> None:
        for k, (found, wanted) in enumerate(zip(self.layout, expected, strict=True)):
            if found != wanted:
                raise ValueError(
                    f"{self.name} has {self.layout.in_words()[k]}, and chunk 0 has "
                    f"{expected.in_words()[k]}. All chunks must have the same columns "
                    "in the same order, in the same form: dense or sparse, X or (X, y)."
                )

    def check_finite(self) -> None:
        entries: Array = self.X.data if sparse.issparse(self.X) else self.X  # type: ignore[assignment]
        # The sum takes no memory; it is not finite if any entry is not.
        with np.errstate(over="ignore", invalid="ignore"):
            suspicious = not np.isfinite(entries.sum(dtype=np.float64))
        if not suspicious or np.isfinite(entries).all():
            return
        X = sparse.coo_array(self.X)
        bad = np.flatnonzero(~np.isfinite(X.data))[0]
        raise ValueError(
            f"{self.name} holds {X.data[bad]} in row {self.first + X.row[bad]}, "
            f"column {X.col[bad]}; expected finite numbers. Fill such entries in, or "
            "leave their rows out."
        )


def _chunks(source: Source) -> Iterator[Chunk]:
    """The chunks of one pass; none is kept while the next one is read."""
    number = first = 0
    for given in _opened(source):
        chunk = Chunk.of(given, number, first)
        number, first = number + 1, first + chunk.n_rows
        del given
        yield chunk
        del chunk


def _opened(source: Source) -> Iterator[UserData]:
    """A new iterator over the source, or an error that says why there is none."""
    made: UserData = source
    if callable(source) and not hasattr(source, "__iter__"):
        made = source()
    elif hasattr(source, "__next__"):
        raise ValueError(
            f"The source of chunks is a {type(source).__name__}, which can be read "
            "only once, and the rows are read many times. Pass the function that makes "
            "it, Chunks(read) instead of Chunks(read()), or an object over which one "
            "can iterate again and again."
        )
    try:
        return iter(made)
    except TypeError:
        raise ValueError(
            "Expected a source of chunks, a function that returns an iterator or an "
            f"iterable, and got {made!r}"
            + ("." if made is source else f" from {source!r}.")
        ) from None


def matrix(given: UserData, name: str) -> Matrix:
    """Rows as numbers, copied only if needed."""
    X = sparse.csr_array(given) if sparse.issparse(given) else np.asarray(given)
    if X.ndim != 2:
        raise ValueError(
            f"{name} has shape {X.shape}, expected two dimensions: rows and columns."
        )
    if X.dtype.kind in "biuf":
        return X
    try:
        if X.dtype.kind != "O":
            raise TypeError(f"entries are of type {X.dtype}")
        return X.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} does not consist of numbers: {error}. Encode its columns before."
        ) from None
