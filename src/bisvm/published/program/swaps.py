"""Points that change places while the program is solved (seed 004, algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bisvm.data.splits import Columns
from bisvm.hinge.exchange import exchange
from bisvm.hinge.solution import solve
from bisvm.published.program.bilevel import BilevelProgram, ProgramPoint


@dataclass
class Swaps:
    """The partitions of a `SwapHoldout`, one after the other. Changed by `advance`.

    columns : of all partitions, each a split of its own
    every : accepted iterations between two exchanges
    """

    columns: Columns
    every: int
    _passed: int = 0

    @property
    def current(self) -> Columns:
        numbers = np.unique(self.columns.split)
        return self.columns.of_split(numbers[self._passed % len(numbers)])

    def advance(self) -> Columns:
        """The columns after the next exchange; after the last come the first again."""
        self._passed += 1
        return self.current


def carried(
    old: BilevelProgram, new: BilevelProgram, point: ProgramPoint
) -> ProgramPoint:
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
