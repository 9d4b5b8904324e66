"""Cheap checks whether separate values are worth a search on all rows and splits.

- On a sample, if there are many rows: the search on all rows is left out if the gain
  expected from the sample is less than `PROMISING_ERRORS` standard errors on all rows.
  Otherwise the sample decides which of several starts are worth a search on all rows.
- On one of several splits: theta is chosen by its held-out rows, and must lower the
  loss on the held-out rows of the other splits, which were not used. The search on all
  splits does not continue from this theta. It starts again: from there it missed moons
  among 40 noise features.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import RandomState

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Evaluation
from bisvm.core.types import Array
from bisvm.search.descent import Search, evaluate
from bisvm.search.history import Comparison, PairedDifference
from bisvm.search.observer import StopSearch, Trace
from bisvm.search.subsamples import SAMPLE_ROWS, sampled_rows

SEPARATE = "separate values"
# Gain of separate values on all rows, in standard errors, that a sample must promise:
# half of what is needed there, because more rows also determine the values more
# precisely. And rows of a sample for each value: with 16 for each width, samples of
# moons among noise refused separate widths that twice as many rows confirmed.
PROMISING_ERRORS = 2.0
ROWS_PER_VALUE = 25
# Rows times machines of an evaluation from which on those of one split save time.
# Below, an evaluation takes about as long whatever the number of machines.
LARGE = 5000
# Starts whose searches on the sample end at H this near to the lowest, relative to it,
# are equally good: the first of them is taken.
ALIKE = 1e-3


@dataclass(frozen=True)
class Promise:
    """What a cheap check says of separate values.

    refused : the comparison that speaks against them; None if they are left open
    starts : from where a search on all rows is worth its time, by name
    """

    refused: Comparison | None
    starts: Mapping[str, Array]


def promise_of_sample(
    search: Search,
    trace: Trace,
    starts: Mapping[str, Array],
    random_state: RandomState,
) -> Promise:
    """Search for separate values on a sample, if there are many rows.

    trace : of the search on all rows, where a stop leaves it

    A gain on m of n rows has a standard error larger by sqrt(n / m) than the same gain
    on all of them. Where it would not come to PROMISING_ERRORS there, it is
    not looked for. May raise StopSearch.
    """
    objective, n = search.objective, len(search.objective.problem.sample_weight)
    size = max(SAMPLE_ROWS, ROWS_PER_VALUE * len(objective.theta0))
    rows = None if n < 2 * size else sampled_rows(objective, size, random_state)
    if rows is None:
        return Promise(None, starts)
    part = Objective(objective.problem.subsample(rows))
    stage, many = f"{SEPARATE} of a sample", search.on(part.for_many())
    first = next(iter(starts.values()))
    with _stops_at(trace):
        one, own = evaluate(search.on(part), Trace(), first, stage, tentative=True)
        ends = _ends(many, replace(own, remembered={}), starts, stage)
    lowest = min(ends.values(), key=lambda end: end.value)
    gain = PairedDifference.between(part.judged(one), part.judged(lowest))
    needed = PROMISING_ERRORS * (size / n) ** 0.5
    step = Comparison(SEPARATE, gain, needed, n_rows=size)
    limit = lowest.value + ALIKE * abs(lowest.value)
    best = next(name for name, end in ends.items() if end.value <= limit)
    return Promise(None if step.taken else step, {best: starts[best]})


def refused_by_split(
    search: Search,
    trace: Trace,
    judge: Objective,
    shared: Evaluation,
    starts: Mapping[str, Array],
) -> tuple[Comparison | None, Trace]:
    """What other splits say against values that one split chose; None if nothing.

    search, trace : on all splits; the end of the search on one is evaluated there
    judge : with the criterion by which models are compared
    shared : the simpler model

    May raise StopSearch.
    """
    if not _worth_a_split(search):
        return None, trace
    first = int(judge.problem.columns.split.min())
    part, warm = search.objective.on_split(first, trace.warm)
    with _stops_at(trace):
        ends = _ends(search.on(part), Trace(warm), starts, f"{SEPARATE} of a split")
    found = min(ends.values(), key=lambda end: end.value)
    at, trace = evaluate(search, trace, found.theta, SEPARATE, tentative=True)
    others = part.share_weights == 0
    gain = _gain_on(others, judge.judged(shared), judge.judged(at))
    step = Comparison(SEPARATE, gain, 0.0)
    return None if step.taken else step, trace


def _worth_a_split(search: Search) -> bool:
    """Whether one split saves time, and others hold out other rows to judge."""
    problem = search.objective.problem
    columns = problem.columns
    held_out = columns.validation > 0
    own = held_out[:, columns.split == columns.split.min()].any(axis=1)
    others = bool(np.any(held_out[~own]))
    large = columns.labels.size >= LARGE and not problem.approximated
    mean = search.method is None or search.method.on_all_splits
    return others and large and mean


@contextmanager
def _stops_at(trace: Trace) -> Iterator[None]:
    """A search on other machines: where it stops, the whole one is as it was."""
    try:
        yield
    except StopSearch as stop:
        raise stop.with_trace(trace) from None


def _ends(
    search: Search, trace: Trace, starts: Mapping[str, Array], stage: str
) -> dict[str, Evaluation]:
    """Where the descents from all starts end, by the name of the start."""
    ends = {}
    for name, start in starts.items():
        found, trace = search.descend(trace, start, stage, tentative=True)
        ends[name] = found.best
    return ends


def _gain_on(rows: Array, simple: Evaluation, rich: Evaluation) -> PairedDifference:
    """The paired difference on some of the observations, a mask."""
    weights = simple.share_weights[rows]
    return PairedDifference.of(
        simple.shares[rows], rich.shares[rows], weights / weights.sum()
    )
