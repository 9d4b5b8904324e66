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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.bilevel.objective import Objective, WarmStart
from bisvm.data.splits import Columns
from bisvm.optimizers.base import CONVERGED, LIMIT_REACHED, NOT_FINITE
from bisvm.published.both_levels import BothLevels
from bisvm.published.levels import Levels, descend_on_both_levels
from bisvm.published.program import Swaps
from bisvm.search.descent import (
    Descent,
    Search,
    Trace,
    descend,
    evaluate,
    found_at,
    with_landmarks,
)
from bisvm.search.questions import StopSearch, better
from bisvm.search.views import View

# Partitions whose first values are compared with those of as many before.
WINDOW = 5
NOISE = "The gain from partition to partition is within their noise."
LIMIT = "The last partition was reached."

Stops = tuple[list[np.ndarray], OptimizeResult, str]


class _Enough(Exception):
    """A search that cannot be told to stop is interrupted by this."""


@dataclass(frozen=True)
class Walk:
    """Descents that go from partition to partition.

    Evaluations of the search itself, and so its best point, are means over all
    partitions: they compare, and the search on one partition counts for none of them.
    Optimizers without iterations to interrupt (grids, scans, single loops) see that
    mean.

    The answer is the lower in that mean of two points: the last stop, and the mean of
    the later half of them. `converged` says that the walk came to its end, and not that
    the gradient of the mean vanishes: `upper_gradient` says how large it is.

    every : iterations on each partition
    """

    every: int = 2
    on_all_splits = False

    def __call__(
        self,
        search: Search,
        trace: Trace,
        theta: np.ndarray,
        stage: str,
        previous: OptimizeResult | None = None,
        *,
        tied: bool = False,
        groups_apart: bool = False,
        tentative: bool = False,
    ) -> tuple[Descent, Trace]:
        how = {"tied": tied, "groups_apart": groups_apart}
        both = isinstance(search.optimizer, BothLevels)
        exchanges = both and search.optimizer.exchanges  # type: ignore[attr-defined]
        if not (exchanges or search.optimizer.resumes):
            plain = descend_on_both_levels if both else descend
            return plain(
                search, trace, theta, stage, previous, **how, tentative=tentative
            )
        view = search.view(**how)
        trace = with_landmarks(search, trace, theta)
        try:
            stops, result, reason = (
                self._stops_of_both(search, trace, theta, stage, view)
                if exchanges
                else self._stops(search, trace, theta, stage, previous, **how)
            )
        except StopSearch as stop:
            raise _stopped(search, trace, stage, stop, tentative) from None
        middle = view.expand(view.reduce(np.mean(stops[len(stops) // 2 :], axis=0)))
        # Both ends are compared on landmarks for where the walk has led to.
        trace = with_landmarks(search, trace, np.maximum(middle, stops[-1]))
        ends = []
        for x in (middle, stops[-1]):
            end, trace = evaluate(search, trace, x, stage, tentative=tentative)
            ends.append(end)
        best = min(ends, key=lambda evaluation: evaluation.value)
        result.x = view.reduce(best.theta)
        result.fun, result.jac = best.value, view.pullback(best.theta, best.gradient)
        result.message, result.success = reason, result.status == CONVERGED
        return found_at(best, view, result), trace

    def _stops(
        self,
        search: Search,
        trace: Trace,
        theta: np.ndarray,
        stage: str,
        previous: OptimizeResult | None,
        **how: bool,
    ) -> Stops:
        """Where it left every partition, the last result, and why it stopped."""
        stops: list[np.ndarray] = []
        first_values: list[float] = []
        nit = nfev = 0
        result = OptimizeResult()
        own = Trace()
        for number in self._partitions(search):
            part, warm = search.objective.on_split(number, trace.warm)
            own = Trace(_taken_over(warm, own.warm, part))
            on_part = self._on_partition(search, part, number)
            at, own = evaluate(on_part, own, theta, stage)
            first = at.value
            if stops and not np.isfinite(first):
                reason = f"H is not finite on partition {number}."
                return stops, _ended(result, NOT_FINITE, nit, nfev), reason
            found, own = descend(on_part, own, theta, stage, previous, **how)
            theta, result = found.best.theta, found.result or OptimizeResult()
            stops.append(theta)
            previous, nit, nfev = result, nit + result.nit, nfev + result.nfev
            first_values.append(first)
            if within_noise(first_values):
                return stops, _ended(result, CONVERGED, nit, nfev), NOISE
        return stops, _ended(result, LIMIT_REACHED, nit, nfev), LIMIT

    def _stops_of_both(
        self, search: Search, trace: Trace, theta: np.ndarray, stage: str, view: View
    ) -> Stops:
        """The same of a method that keeps the training problems solved on its way."""
        assert isinstance(search.optimizer, BothLevels)
        swaps = Swaps(search.objective.problem.columns, self.every)
        stops, first_values, last = [theta], [], -1

        def at_partition(x: np.ndarray, columns: Columns) -> float:
            nonlocal last
            number, at = int(columns.split[0]), view.expand(x)
            part, warm = search.objective.on_columns(columns, trace.warm)
            on_part, own = self._on_partition(search, part, number), Trace(warm)
            if number != last:
                last = number
                first, own = evaluate(on_part, own, stops[-1], stage)
                first_values.append(first.value)
                if within_noise(first_values):
                    raise _Enough
                stops.append(at)
            stops[-1] = at
            return evaluate(on_part, own, at, stage)[0].value

        first, warm = search.objective.on_columns(swaps.current, trace.warm)
        levels = Levels(first, view, at_partition, search.seed, swaps, warm.landmarks)
        try:
            result = search.optimizer.search(levels, view.reduce(theta))
        except _Enough:
            steps = len(stops) - 1
            return stops[1:], _ended(OptimizeResult(), CONVERGED, steps, steps), NOISE
        # It may have moved on since it looked at H.
        return [*stops[1:], view.expand(result.x)], result, str(result.message)

    def _partitions(self, search: Search) -> np.ndarray:
        """Numbers of those that the optimizer's limit leaves time for."""
        every = np.unique(search.objective.problem.columns.split)
        return every[: max(1, _limit(search.optimizer) // self.every)]

    def _on_partition(self, search: Search, part: Objective, number: int) -> Search:
        optimizer = search.optimizer
        steps = min(self.every, _limit(optimizer))
        return replace(
            search,
            objective=part,
            optimizer=optimizer.replace(max_iter=steps),
            method=None,
            partition=int(number),
        )


def _taken_over(warm: WarmStart, before: WarmStart, part: Objective) -> WarmStart:
    """Fitted values of the partition before, if they are of the same columns."""
    fitted = before.fitted
    if fitted is None or fitted.shape != part.problem.columns.labels.shape:
        return warm
    return replace(warm, fitted=fitted)


def _stopped(
    search: Search, trace: Trace, stage: str, stop: StopSearch, tentative: bool
) -> StopSearch:
    """The stop, with H at its theta as the mean over all partitions."""
    last, after = evaluate(search, trace, stop.theta, stage, tentative=True, final=True)
    if tentative:
        return StopSearch(str(stop), stop.theta, trace)
    best = last if better(last, trace.best) else trace.best
    end = best or last
    return StopSearch(str(stop), end.theta, replace(after, best=best))


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
