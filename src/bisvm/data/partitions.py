"""Rows on the workers of a Dask cluster: no computer holds all of them.

A pass over the matrix is one task per partition, on the worker that holds it. Sums are
also computed there, along a tree whose shape depends on the number of partitions only.
So rounding errors are reproducible, whichever worker is first, and if a worker dies and
others compute its partitions again. Vectors of n entries stay with the caller, which
sends each partition its part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import partial
from operator import iadd
from typing import Any, TypeAlias

import dask
import numpy as np
from dask.base import compute
from dask.delayed import Delayed, delayed
from scipy import sparse

from bisvm.core.threads import one_blas_thread
from bisvm.core.types import Array, Matrix, UserData, UserVector
from bisvm.data.chunks import Chunk, Layout, matrix
from bisvm.data.matrices import Result, RowBlocks

# Results that one task adds up. With few columns the caller adds up the last ones: they
# are small, and this saves a round trip.
FAN_IN = 8
NARROW = 200
# Seconds between checks for workers while waiting, and seconds without any worker after
# which the fit fails.
LOOK = 2.0
NO_WORKERS = 30.0
LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"

# A value that a worker holds, as a future of Dask's, or the value itself.
Held: TypeAlias = Any


class Partitions(RowBlocks):
    """A Dask array or data frame, as machines read it.

    The rows are computed once, checked, and kept by the workers as long as this object
    exists; workers that are short of memory write them to disk. Without a cluster,
    Dask's own scheduler does the same in this process.

    Parameters
    ----------
    X : dask array or dask data frame of shape (n_samples, n_features)
        With chunks of any size, known or not; its blocks may be sparse matrices.
    """

    y = None

    def __init__(self, X: UserData):
        self._cluster = cluster = Cluster()
        blocks = cluster.keep(
            delayed(_as_rows, pure=False)(parts, number)
            for number, parts in enumerate(_grid(X))
        )
        seen = cluster.collect(cluster.map(_look, blocks))
        ends = np.cumsum([n_rows for n_rows, _, _ in seen]).tolist()
        if not ends or not ends[-1]:
            raise ValueError(f"The Dask collection has no rows: {X!r}.")
        layout: Layout = seen[0][1]
        numbers, same = range(len(blocks)), [layout] * len(blocks)
        cluster.collect(cluster.map(_check, blocks, numbers, ends, same))
        self._blocks = blocks
        self._ends = ends
        self._width = layout.width
        self.is_sparse = layout.sparse
        self.head = _named(next(head for n_rows, _, head in seen if n_rows), X)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        n = self._ends[-1] if self._rows is None else len(self._rows)
        return int(n), self._width

    def reduce(
        self,
        function: Callable[..., Result],
        *operands: Array,
        combine: Callable[[Result, Result], Result] = iadd,
    ) -> Result:
        parts = self._tasks(function, operands)
        if not parts:
            return function(self._no_rows(), *operands)
        few = FAN_IN if self._width <= NARROW else 1
        while len(parts) > few:
            groups = [parts[k : k + FAN_IN] for k in range(0, len(parts), FAN_IN)]
            parts = self._cluster.map(_merge, [combine] * len(groups), groups)
        total: Result = _merge(combine, self._cluster.collect(parts))
        return total

    def stack(self, function: Callable[[Matrix], Array]) -> Array:
        parts = self._cluster.collect(self._tasks(function))
        return np.concatenate(parts) if parts else function(self._no_rows())

    def _in_memory(self) -> list[Matrix]:
        return self._cluster.collect(self._tasks(_itself))

    def _tasks(
        self, function: Callable[..., object], operands: tuple[Array, ...] = ()
    ) -> list[Held]:
        """function(block, rows of the operands) of every partition that has rows."""
        places = list(self._places())
        if not places:
            return []
        blocks, sizes, rows, where = zip(*places, strict=True)
        # Dask would take a tuple of functions for a task.
        chain = partial(_in_turn, (*self._functions, function))
        parts = ([operand[place] for place in where] for operand in operands)
        chains = [chain] * len(places)
        return self._cluster.map(_apply, blocks, sizes, rows, chains, *parts)

    def _places(self) -> Iterator[tuple[Held, int, Array | None, slice]]:
        """Partitions, their sizes, the rows that are kept (None: all), and where."""
        for block, first, end in zip(
            self._blocks, [0, *self._ends], self._ends, strict=False
        ):
            where, rows = self._kept(first, end)
            if where.start < where.stop:
                yield block, end - first, rows, where


def vector(y: UserVector) -> Array:
    """A Dask array or series of n entries, in memory."""
    cluster = Cluster()
    parts = cluster.collect(cluster.keep(row[0] for row in _grid(y)))
    return np.concatenate([np.asarray(part) for part in parts])


# --- what workers do ------------------------------------------------------------------


def _as_rows(parts: list[UserData], number: int) -> Matrix:
    """Blocks side by side as one matrix of numbers."""
    name = f"Chunk {number}"
    found = [matrix(part, name) for part in parts]
    if len(found) == 1:
        return found[0]
    return (sparse.hstack if sparse.issparse(found[0]) else np.hstack)(found)


def _look(block: Matrix) -> tuple[int, Layout, Matrix]:
    chunk = Chunk(0, 0, block, block, None)
    return chunk.n_rows, chunk.layout, chunk.head


def _check(block: Matrix, number: int, end: int, expected: Layout) -> None:
    chunk = Chunk(number, end - block.shape[0], block, block, None)
    chunk.check_layout(expected)
    chunk.check_finite()


def _in_turn(
    functions: tuple[Callable[..., Held], ...], block: Matrix, *operands: Array
) -> Held:
    """Apply functions one after the other; operands belong to the last."""
    *before, last = functions
    for function in before:
        block = function(block)
    return last(block, *operands)


def _apply(
    block: Matrix,
    n_rows: int,
    rows: Array | None,
    function: Callable[..., Held],
    *operands: Array,
) -> Held:
    if block.shape[0] != n_rows:
        raise ValueError(
            f"A chunk of {n_rows} rows has {block.shape[0]} now that it was computed "
            "again. Every computation of the Dask collection must give the same rows."
        )
    block = (block if rows is None else block[rows]).astype(np.float64, copy=False)
    with one_blas_thread():
        return function(block, *operands)


def _merge(combine: Callable[[Result, Result], Result], parts: list[Result]) -> Result:
    """Combine from the first to the last, without changing the parts.

    If the sum is lost with its worker, it is computed from them again.
    """
    total = deepcopy(parts[0])
    for part in parts[1:]:
        total = combine(total, part)
    return total


def _itself(block: Matrix) -> Matrix:
    return block


# --- what the caller does -------------------------------------------------------------


def _grid(X: UserData) -> list[list[Held]]:
    """The blocks of every partition, side by side."""
    # A Delayed answers to any name.
    if isinstance(X, Delayed) or not hasattr(X, "to_delayed"):
        raise ValueError(
            "Expected a Dask array or data frame, with rows and columns, and got a "
            f"{type(X).__name__}."
        )
    blocks = X.to_delayed()
    if isinstance(blocks, list):
        return [[block] for block in blocks]
    grid: list[list[Held]] = blocks.reshape(len(blocks), -1).tolist()
    return grid


def _named(head: Matrix, X: UserData) -> UserData:
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

            self.client = default_client()  # type: ignore[no-untyped-call]
        except (ImportError, ValueError):
            self.client = None

    def keep(self, lazy: Iterable[Held]) -> list[Held]:
        """Compute values once; Dask can compute them again if a worker dies."""
        if self.client is None:
            return list(compute(*lazy))  # type: ignore[no-untyped-call]
        futures: list[Held] = self.client.compute(list(lazy))
        return futures

    def map(
        self, function: Callable[..., object], *columns: Sequence[object]
    ) -> list[Held]:
        """Call with one entry of each column, on the workers that hold these.

        Other entries are sent with the call by the scheduler, which still has them if
        the worker dies.
        """
        if self.client is None:
            return list(map(function, *columns))
        if self.client.status != "running":
            raise RuntimeError(
                "The Dask cluster that holds the rows cannot be reached: its client is "
                f"{self.client.status}. Connect again, with "
                "distributed.Client(address), and pass the data again."
            )
        # No warning about their size: vectors of n entries are large.
        with dask.config.set({LARGE_GRAPH: "1 TB"}):
            futures: list[Held] = self.client.map(function, *columns, pure=False)
        return futures

    def collect(self, values: list[Held]) -> list[Held]:
        if self.client is None or not values:
            return values
        self._wait(values)
        with _told():
            found: list[Held] = self.client.gather(values)
        return found

    def _wait(self, futures: list[Held]) -> None:
        """Wait until all are done; fail if there are no workers left."""
        from distributed import wait

        seen = time.monotonic()
        while True:
            with _told(), suppress(TimeoutError):
                wait(futures, timeout=LOOK)  # type: ignore[no-untyped-call]
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
    """Explain errors that mean that the cluster is gone."""
    lost: tuple[type[Exception], ...] = (CancelledError, *errors)
    try:
        yield
    except lost as error:
        raise RuntimeError(
            "The Dask cluster has lost what it cannot compute again: its scheduler is "
            "gone, or rows that were put on a worker by hand (`scatter`) died with it. "
            f"Its own words: {error}"
        ) from error
