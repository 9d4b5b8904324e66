"""A search whose hold-out changes: from partition to partition, towards their mean.

    min over theta of  H(theta) = 1/L sum_k H_k(theta),

H_k the validation loss on partition k of a chain (`SwapHoldout`). Only one H_k is
searched at a time, for a few iterations; then the next takes over, from the same theta
and with what is known of the curvature. That is an incremental gradient method: near
the minimum theta wanders with the partitions, and the mean of its last stops is nearer
to the minimum than they are (Polyak and Juditsky 1992).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.levels import Levels
from bisvm.objective import BilevelObjective
from bisvm.optimizers import BothLevels
from bisvm.optimizers.base import CONVERGED, LIMIT_REACHED, NOT_FINITE
from bisvm.problem import Problem
from bisvm.program import Swaps
from bisvm.splits import Columns
from bisvm.swapping import SwapHoldout
from bisvm.tuning import Descent, Run, StopTuning, View, upper_gradient

# Partitions whose first values are compared with those of as many before.
WINDOW = 5
NOISE = "The gain from partition to partition is within their noise."
LIMIT = "The last partition was reached."


class _Enough(Exception):
    """A search that cannot be told to stop is interrupted by this."""


@dataclass
class Walk(Run):
    """A run whose descents go from partition to partition.

    Evaluations of the run itself, and so its best point, are means over all partitions:
    they compare, and the search on one partition counts for none of them. Optimizers
    without iterations to interrupt (grids, scans, single loops) see that mean.

    The answer is the lower in that mean of two points: the last stop, and the mean of
    the later half of them. `converged` says that the walk came to its end, and not that
    the gradient of the mean vanishes: `upper_gradient` says how large it is.

    every : iterations on each partition
    """

    every: int = 2

    def descend(
        self,
        theta: np.ndarray,
        stage: str,
        like: OptimizeResult | None = None,
        *,
        tied: bool = False,
        groups_apart: bool = False,
        tentative: bool = False,
    ) -> Descent:
        how = {"tied": tied, "groups_apart": groups_apart}
        both = isinstance(self.optimizer, BothLevels) and self.optimizer.exchanges
        if not (both or self.optimizer.resumes):
            return super().descend(theta, stage, like, **how, tentative=tentative)
        view = self.view(**how)
        self.settle(theta)
        try:
            stops, result, reason = (
                self._stops_of_both(theta, stage, view)
                if both
                else self._stops(theta, stage, like, **how)
            )
        except StopTuning as stop:
            last = self.finish(stop.theta, stage)
            if tentative:
                raise
            self.accept(last)
            raise StopTuning(str(stop), (self.best or last).theta) from None
        middle = view.expand(view.reduce(np.mean(stops[len(stops) // 2 :], axis=0)))
        # Both ends are compared on landmarks for where the walk has led to.
        self.settle(np.maximum(middle, stops[-1]))
        best = min(
            (self.evaluate(x, stage, tentative=tentative) for x in (middle, stops[-1])),
            key=lambda evaluation: evaluation.value,
        )
        result.x = view.reduce(best.theta)
        result.fun, result.jac = best.value, view.pullback(best.theta, best.gradient)
        result.message, result.success = reason, result.status == CONVERGED
        return Descent(best, upper_gradient(best, view), result.success, reason, result)

    def _stops(
        self, theta: np.ndarray, stage: str, like: OptimizeResult | None, **how: bool
    ) -> tuple[list[np.ndarray], OptimizeResult, str]:
        """Where it left every partition, the last result, and why it stopped."""
        stops: list[np.ndarray] = []
        first_values: list[float] = []
        nit = nfev = 0
        result = OptimizeResult()
        part: BilevelObjective | None = None
        for number in self._partitions():
            part = self.objective.on_split(number, part)
            run = self._on_partition(part, number)
            first = run.evaluate(theta, stage).value
            if stops and not np.isfinite(first):
                reason = f"H is not finite on partition {number}."
                return stops, _ended(result, NOT_FINITE, nit, nfev), reason
            found = run.descend(theta, stage, like, **how)
            theta, result = found.best.theta, found.result or OptimizeResult()
            stops.append(theta)
            like, nit, nfev = result, nit + result.nit, nfev + result.nfev
            first_values.append(first)
            if within_noise(first_values):
                return stops, _ended(result, CONVERGED, nit, nfev), NOISE
        return stops, _ended(result, LIMIT_REACHED, nit, nfev), LIMIT

    def _stops_of_both(
        self, theta: np.ndarray, stage: str, view: View
    ) -> tuple[list[np.ndarray], OptimizeResult, str]:
        """The same of a method that keeps the training problems solved on its way."""
        assert isinstance(self.optimizer, BothLevels)
        swaps = Swaps(self.objective.problem.columns, self.every)
        stops, first_values, last = [theta], [], -1

        def evaluate(x: np.ndarray, columns: Columns) -> float:
            nonlocal last
            number, at = int(columns.split[0]), view.expand(x)
            part = self._on_partition(self.objective.on_columns(columns), number)
            if number != last:
                last = number
                first_values.append(part.evaluate(stops[-1], stage).value)
                if within_noise(first_values):
                    raise _Enough
                stops.append(at)
            stops[-1] = at
            return part.evaluate(at, stage).value

        first = self.objective.on_columns(swaps.current)
        levels = Levels(first, view, evaluate, self.seed, swaps)
        try:
            result = self.optimizer.search(levels, view.reduce(theta))
        except _Enough:
            steps = len(stops) - 1
            return stops[1:], _ended(OptimizeResult(), CONVERGED, steps, steps), NOISE
        # It may have moved on since it looked at H.
        return [*stops[1:], view.expand(result.x)], result, str(result.message)

    def _partitions(self) -> np.ndarray:
        """Numbers of those that the optimizer's limit leaves time for."""
        every = np.unique(self.objective.problem.columns.split)
        return every[: max(1, _limit(self.optimizer) // self.every)]

    def _on_partition(self, part: BilevelObjective, number: int) -> Run:
        return Run(
            part,
            self.optimizer.replace(max_iter=min(self.every, _limit(self.optimizer))),
            deadline=self.deadline,
            callback=self.callback,
            verbose=self.verbose,
            model=self.model,
            task=self.task,
            seed=self.seed,
            accuracy=self.accuracy,
            began=self.began,
            history=self.history,
            partition=int(number),
            journal=self.journal,
        )


def within_noise(first_values: Sequence[float], window: int = WINDOW) -> bool:
    """Whether the search has stopped to gain.

    The value on a partition that was not searched yet is hardly biased by the search.
    The last of them are compared with as many before: their mean has to be lower by
    more than its standard error.
    """
    if len(first_values) < 2 * window:
        return False
    old, new = np.split(np.asarray(first_values[-2 * window :]), 2)
    error = np.sqrt((old.var(ddof=1) + new.var(ddof=1)) / window)
    return bool(old.mean() - new.mean() <= error)


def _ended(result: OptimizeResult, status: int, nit: int, nfev: int) -> OptimizeResult:
    """The last partition's result as that of the whole walk."""
    result.status, result.nit, result.nfev = status, nit, nfev
    return result


def _limit(optimizer: Any) -> int:
    return int(optimizer.max_iter)


def run_for(cv: Any, problem: Problem) -> tuple[type[Run], dict[str, Any]]:
    """The kind of run that suits a `cv`, and what it needs besides."""
    swaps = isinstance(cv, SwapHoldout) and cv.n_partitions > 1
    if swaps and not problem.criterion.on_training:
        return Walk, {"every": cv.every}
    return Run, {}
