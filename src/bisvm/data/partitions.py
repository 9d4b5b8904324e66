"""Rows that the workers of a Dask cluster hold: no machine has all of them.

Every reading of the matrix is one task a partition, on the worker that holds it. What
is summed is summed there too, along a tree whose shape depends on the number of
partitions alone: rounding errors are always the same ones, whoever is done first, and
whoever dies and has its partitions computed again by others. Vectors of n entries stay
with the caller, who sends each partition its part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from copy import deepcopy
from operator import iadd
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed
from scipy import sparse

from bisvm.core.threads import one_blas_thread
from bisvm.data.pieces import Pieces
from bisvm.data.reading import Chunk, Layout, matrix

# Results that one task of a sum takes together. With few columns the caller takes the
# last of them together: they are small, and there is one way less to go.
FAN_IN = 8
NARROW = 200
# Seconds between looks at a cluster that takes its time, and seconds without any worker
# after which none is expected any more.
LOOK = 2.0
NO_WORKERS = 30.0
LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"


class Partitions(Pieces):
    """A Dask array or data frame, as linear machines read it.

    The rows are computed once, checked, and kept by the workers for as long as this
    object lives; workers that are short of memory put them on their disks. Without a
    cluster, Dask's own scheduler does the same in this process.

    Parameters
    ----------
    X : dask array or dask data frame of shape (n_samples, n_features)
        Of any chunks, also of unknown size; its blocks may be sparse matrices.
    """

    y = None

    def __init__(self, X: Any):
        self._cluster = cluster = Cluster()
        blocks = cluster.keep(
            dask.delayed(_as_rows, pure=False)(parts, number)
            for number, parts in enumerate(_grid(X))
        )
        seen = cluster.collect(cluster.map(_look, blocks))
        ends = np.cumsum([look.n_rows for look in seen]).tolist()
        if not ends or not ends[-1]:
            raise ValueError(f"The Dask collection has no rows: {X!r}.")
        layout = seen[0].layout
        numbers, same = range(len(blocks)), [layout] * len(blocks)
        cluster.collect(cluster.map(_check, blocks, numbers, ends, same))
        self._blocks = blocks
        self._ends = ends
        self._width = layout.width
        self.sparse = layout.sparse
        self.head = _named(next(look.head for look in seen if look.n_rows), X)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        n = self._ends[-1] if self._rows is None else len(self._rows)
        return int(n), self._width

    def reduce(
        self,
        function: Callable[..., Any],
        *operands: np.ndarray,
        combine: Callable[[Any, Any], Any] = iadd,
    ) -> Any:
        parts = self._tasks(function, operands)
        if not parts:
            return function(self._no_rows(), *operands)
        few = FAN_IN if self._width <= NARROW else 1
        while len(parts) > few:
            groups = [parts[k : k + FAN_IN] for k in range(0, len(parts), FAN_IN)]
            parts = self._cluster.map(_merge, [combine] * len(groups), groups)
        return _merge(combine, self._cluster.collect(parts))

    def stack(self, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        parts = self._cluster.collect(self._tasks(function))
        return np.concatenate(parts) if parts else function(self._no_rows())

    def _in_memory(self) -> list[Any]:
        return self._cluster.collect(self._tasks(_itself))

    def _tasks(
        self, function: Callable[..., Any], operands: tuple[np.ndarray, ...] = ()
    ) -> list[Any]:
        """function(piece, rows of the operands) of every partition that has rows."""
        places = list(self._places())
        if not places:
            return []
        blocks, sizes, rows, where = zip(*places, strict=True)
        chains = [_Chain((*self._functions, function))] * len(places)
        parts = ([operand[place] for place in where] for operand in operands)
        return self._cluster.map(_apply, blocks, sizes, rows, chains, *parts)

    def _places(self) -> Iterator[tuple[Any, int, np.ndarray | None, slice]]:
        """Partitions, their size, which of their rows count (None: all), and where."""
        first = 0
        for block, end in zip(self._blocks, self._ends, strict=True):
            where, rows = slice(first, end), None
            if self._rows is not None:
                where = slice(*np.searchsorted(self._rows, (first, end)))
                if where.stop - where.start < end - first:
                    rows = self._rows[where] - first
            if where.start < where.stop:
                yield block, end - first, rows, where
            first = end


def vector(y: Any) -> np.ndarray:
    """A Dask array or series of n entries, in memory."""
    cluster = Cluster()
    parts = cluster.collect(cluster.keep(row[0] for row in _grid(y)))
    return np.concatenate([np.asarray(part) for part in parts])


# --- what workers do ------------------------------------------------------------------


class _Look(NamedTuple):
    n_rows: int
    layout: Layout
    head: Any


class _Chain:
    """Functions one after the other; operands belong to the last."""

    def __init__(self, functions: tuple[Callable[..., Any], ...]):
        self.functions = functions

    def __call__(self, piece: Any, *operands: np.ndarray) -> Any:
        *before, last = self.functions
        for function in before:
            piece = function(piece)
        return last(piece, *operands)


def _as_rows(parts: list[Any], number: int) -> Any:
    """Blocks beside one another as one matrix of numbers."""
    name = f"Chunk {number}"
    found = [matrix(part, name) for part in parts]
    if len(found) == 1:
        return found[0]
    return (sparse.hstack if sparse.issparse(found[0]) else np.hstack)(found)


def _look(block: Any) -> _Look:
    chunk = Chunk(0, 0, block, block, None)
    return _Look(chunk.n_rows, chunk.layout, chunk.head)


def _check(block: Any, number: int, end: int, expected: Layout) -> None:
    chunk = Chunk(number, end - block.shape[0], block, block, None)
    chunk.check_layout(expected)
    chunk.check_finite()


def _apply(
    block: Any, n_rows: int, rows: np.ndarray | None, chain: _Chain, *operands: Any
) -> Any:
    if block.shape[0] != n_rows:
        raise ValueError(
            f"A chunk of {n_rows} rows has {block.shape[0]} now that it was computed "
            "again. Every computation of the Dask collection must give the same rows."
        )
    piece = (block if rows is None else block[rows]).astype(np.float64, copy=False)
    with one_blas_thread():
        return chain(piece, *operands)


def _merge(combine: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    """Combined from the first to the last, without a change to the parts.

    If the sum is lost with its worker it is made of them once more.
    """
    total = deepcopy(parts[0])
    for part in parts[1:]:
        total = combine(total, part)
    return total


def _itself(piece: Any) -> Any:
    return piece


# --- what the caller does -------------------------------------------------------------


def _grid(X: Any) -> list[list[Any]]:
    """The blocks of every partition, beside one another."""
    # A Delayed answers to any name.
    if isinstance(X, Delayed) or not hasattr(X, "to_delayed"):
        raise ValueError(
            "Expected a Dask array or data frame, with rows and columns, and got a "
            f"{type(X).__name__}."
        )
    blocks = X.to_delayed()
    if isinstance(blocks, list):
        return [[block] for block in blocks]
    return blocks.reshape(len(blocks), -1).tolist()


def _named(head: Any, X: Any) -> Any:
    """The first row, with the names of its columns where X has some."""
    if not hasattr(X, "columns"):
        return head
    import pandas as pd

    return pd.DataFrame(head, columns=list(X.columns))


class Cluster:
    """Calls of functions on values that workers hold.

    Where there is no cluster, values are held, and functions called, in this process.
    """

    def __init__(self) -> None:
        try:
            from distributed import default_client

            self.client = default_client()
        except (ImportError, ValueError):
            self.client = None

    def keep(self, delayed: Iterable[Any]) -> list[Any]:
        """Values that Dask is to compute once, and can compute again."""
        if self.client is None:
            return list(dask.compute(*delayed))
        return self.client.compute(list(delayed))

    def map(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Calls with one entry of each column, on the workers that hold these.

        Other entries travel with the call by way of the scheduler, which has them still
        if the worker dies.
        """
        if self.client is None:
            return list(map(function, *columns))
        if self.client.status != "running":
            raise RuntimeError(
                "The Dask cluster that holds the rows cannot be reached: its client is "
                f"{self.client.status}. Connect again, with "
                "distributed.Client(address), and pass the data anew."
            )
        # Not a word about their size: vectors of n entries are large.
        with dask.config.set({LARGE_GRAPH: "1 TB"}):
            return self.client.map(function, *columns, pure=False)

    def collect(self, values: list[Any]) -> list[Any]:
        if self.client is None or not values:
            return values
        self._wait(values)
        with _told():
            return self.client.gather(values)

    def _wait(self, futures: list[Any]) -> None:
        """Until all are done; an error if there is nobody left to do them."""
        from distributed import wait

        seen = time.monotonic()
        while True:
            with _told(), suppress(TimeoutError):
                wait(futures, timeout=LOOK)
                return
            with _told(OSError):
                seen = time.monotonic() if self.client.nthreads() else seen
            if time.monotonic() - seen > NO_WORKERS:
                raise RuntimeError(
                    f"The Dask cluster at {self.client.scheduler.address} has had no "
                    f"workers for {NO_WORKERS:.0f} seconds, and nobody else holds the "
                    "rows. Start workers that can reach its scheduler, and fit again."
                )


@contextmanager
def _told(*errors: type[Exception]) -> Iterator[None]:
    """What a cluster that is no more leads to, in plain words."""
    lost: tuple[type[Exception], ...] = (CancelledError, *errors)
    try:
        yield
    except lost as error:
        raise RuntimeError(
            "The Dask cluster has lost what it cannot compute again: its scheduler is "
            "gone, or rows that were put on a worker by hand (`scatter`) died with it. "
            f"Its own words: {error}"
        ) from error
