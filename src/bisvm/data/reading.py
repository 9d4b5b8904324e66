"""Reading a source of chunks again and again, and holding it to its first reading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

# Rows of a chunk that are compared in later readings.
_MARKS = 32
SAME_ROWS = (
    "Every reading must give the same rows in the same order; a function must return a "
    "new iterator at every call."
)


class Layout(NamedTuple):
    """What all chunks have in common."""

    width: int
    sparse: bool
    names: tuple[str, ...] | None
    labelled: bool


class Reader:
    """Iterates over the chunks of a source, as often as it is asked to.

    The first reading, at construction, counts and checks; whatever differs from it in a
    later one is an error. Some rows of every chunk are compared by the sum of their
    entries, and all labels: the answers of a source that shuffles would be wrong.

    Parameters
    ----------
    source : a function that returns a new iterator over chunks, or an iterable
    steady : whether the source cannot change, so that one check is enough

    Attributes
    ----------
    n_rows, layout, labels : counted, seen and collected in the first reading
    head : the first row as it was given
    """

    head: Any
    layout: Layout

    def __init__(self, source: Any, *, steady: bool = False):
        self._source = source
        self._steady = steady
        self.n_rows = 0
        labels: list[np.ndarray] = []
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
    """One chunk and its place: the rows from `first` on, in chunk `number`.

    X is an array of numbers of any type (a memory map stays one, unread) or CSR.
    """

    number: int
    first: int
    given: Any
    X: Any
    y: np.ndarray | None

    @classmethod
    def of(cls, given: Any, number: int, first: int) -> Chunk:
        name = f"Chunk {number} (from row {first} on)"
        y = None
        if isinstance(given, tuple):
            if len(given) != 2:
                raise ValueError(
                    f"{name} is a tuple of {len(given)}, expected X or a pair (X, y)."
                )
            given, y = given
        chunk = cls(number, first, given, matrix(given, name), _labels(y))
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
        return self.X.shape[0]

    @property
    def head(self) -> Any:
        """A copy of the first row: a view would keep the chunk in memory."""
        return self.given[:1].copy()

    @property
    def layout(self) -> Layout:
        columns = getattr(self.given, "columns", None)
        return Layout(
            self.X.shape[1],
            sparse.issparse(self.X),
            None if columns is None else tuple(columns),
            self.y is not None,
        )

    def marked(self) -> list[int]:
        """Rows that are compared in later readings."""
        if not self.n_rows:
            return []
        return np.unique(np.linspace(0, self.n_rows - 1, _MARKS).astype(int)).tolist()

    def mark(self, row: int) -> float:
        return float(self.X[row : row + 1].sum())

    def check_layout(self, expected: Layout) -> None:
        found = self.layout
        if found.width != expected.width:
            raise ValueError(
                f"{self.name} has {found.width} columns, expected {expected.width} as "
                "in chunk 0. All chunks must have the same columns."
            )
        if found.names != expected.names:
            raise ValueError(
                f"{self.name} has other names of columns than chunk 0: "
                f"{_brief(found.names)} instead of {_brief(expected.names)}. Select "
                "the same columns, in the same order, in all chunks."
            )
        if found.sparse != expected.sparse:
            kinds = {True: "sparse", False: "dense"}
            raise ValueError(
                f"{self.name} is {kinds[found.sparse]} and chunk 0 "
                f"{kinds[expected.sparse]}. Give all chunks in the same form."
            )
        if found.labelled != expected.labelled:
            raise ValueError(
                f"{self.name} comes {_with(found.labelled)} labels and chunk 0 "
                f"{_with(expected.labelled)}. Give X throughout, or pairs (X, y)."
            )

    def check_finite(self) -> None:
        entries = self.X.data if sparse.issparse(self.X) else self.X
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


def _chunks(source: Any) -> Iterator[Chunk]:
    """The chunks of one reading; none is kept while the next one is made."""
    number = first = 0
    for given in _opened(source):
        chunk = Chunk.of(given, number, first)
        number, first = number + 1, first + chunk.n_rows
        del given
        yield chunk
        del chunk


def _opened(source: Any) -> Iterator[Any]:
    """A new iterator over the source, or an error that says why there is none."""
    made = source
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


def matrix(given: Any, name: str) -> Any:
    """Rows as numbers, without a copy where there is a choice."""
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


def _labels(y: Any) -> np.ndarray | None:
    return None if y is None else np.asarray(y)


def _with(labelled: bool) -> str:
    return "with" if labelled else "without"


def _brief(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "none"
    return ", ".join(map(str, names[:5])) + (", ..." if len(names) > 5 else "")
