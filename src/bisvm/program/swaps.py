"""Points that change places while the program is solved (seed 004, algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bisvm.incremental.exchange import exchange
from bisvm.incremental.solution import solve
from bisvm.program.bilevel import BilevelProgram, Point
from bisvm.splits import Columns, row_kinds, split_columns
from bisvm.swapping import SwapHoldout


class Exchanges(Protocol):
    """Partitions of the points, one after the other.

    every : accepted iterations between two of them
    advance : the columns of the next
    """

    @property
    def every(self) -> int: ...

    def advance(self) -> Columns: ...


@dataclass
class Chain:
    """Partitions that were drawn before, all in one batch of columns."""

    columns: Columns
    every: int
    _passed: int = 0

    @property
    def current(self) -> Columns:
        numbers = np.unique(self.columns.split)
        return self.columns.of_split(numbers[self._passed % len(numbers)])

    def advance(self) -> Columns:
        """The next one; after the last comes the first again."""
        self._passed += 1
        return self.current


@dataclass
class Swaps:
    """The partition of a hold-out, and its exchanges. Changed by `advance`.

    columns : one split of every class task
    sample_weight : (n,), of the points, wherever they are
    """

    holdout: SwapHoldout
    columns: Columns
    sample_weight: np.ndarray
    seed: int = 0

    def __post_init__(self) -> None:
        counted = (self.columns.train > 0) | (self.columns.validation > 0)
        self._tasks = np.where(counted, self.columns.labels, 0.0)
        held_out = (self.columns.validation > 0).any(axis=1)
        trained = (self.columns.train > 0).any(axis=1)
        if np.any(held_out & trained):
            raise ValueError(
                "Points change places in one split of the data, and these columns are "
                "several: a point is trained on in one and held out in another. Use "
                "cv=SwapHoldout(...), or leave the swaps out."
            )
        self._split = np.flatnonzero(trained), np.flatnonzero(held_out)
        self._kinds = row_kinds(self._tasks)
        self._rng = np.random.RandomState(self.seed)

    @property
    def every(self) -> int:
        """Accepted iterations between two exchanges."""
        return self.holdout.every

    def advance(self) -> Columns:
        """The columns after the next exchange."""
        self._split = self.holdout.swapped(self._split, self._kinds, self._rng)
        self.columns = split_columns(self._tasks, [self._split], self.sample_weight)
        return self.columns


def carried(old: BilevelProgram, new: BilevelProgram, point: Point) -> Point:
    """The point of the exact SVMs of a new partition, by way of those of the old one.

    theta stays; alpha and b follow along the path on which points leave and come (the
    incremental SVM), and xi and mu are the hinges there.
    """
    values = old.evaluate(point)
    before, after = old.columns, new.columns
    target = new.weights_at(point.x)
    alpha, b = np.zeros(before.labels.shape), np.empty(len(point.b))
    for k in range(len(b)):
        near = np.abs(values.beta[:, k])
        sets, _ = solve(values.gram, before.labels[:, k], values.weights[:, k], near)
        was, is_ = before.train[:, k] > 0, after.train[:, k] > 0
        come = np.flatnonzero(is_ & ~was)
        exchange(sets, np.flatnonzero(was & ~is_), come, target[come, k])
        alpha[:, k], b[k] = sets.alpha, sets.b
    return new.completed(point.x, alpha, b, values.gram)
