"""Cheap checks whether separate values are worth a search on all rows and splits.

- On a sample of many rows: the search on all rows is left out if the gain on the sample
  would be less than `PROMISING_ERRORS` standard errors on all rows.
- On one of several splits: its held-out rows choose theta, and the loss on those of the
  other splits, which were not used, must fall. The search on all splits nevertheless
  starts again from the beginning: started at the theta of one split, it missed moons
  among 40 noise features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

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
# Standard errors on all rows that a sample must promise for separate values: half of
# what is needed there, since with more rows they are also found more precisely. A
# sample has this many rows for each value: with 16 for each width, samples of moons
# among noise refused what twice as many rows confirmed.
PROMISING_ERRORS = 2.0
ROWS_PER_VALUE = 25
# Rows times machines of an evaluation from which on those of one split save time.
# Below, an evaluation takes about as long whatever the number of machines.
LARGE = 5000


def refused_on_sample(
    search: Search,
    trace: Trace,
    starts: Sequence[Array],
    random_state: RandomState,
) -> Comparison | None:
    """What a sample says against separate values; None if it leaves them open.

    trace : of the search on all rows, where a stop leaves it

    A gain on m of n rows has a standard error larger by sqrt(n / m) than the same gain
    on all of them. Where it would not come to PROMISING_ERRORS there, it is
    not looked for. May raise StopSearch.
    """
    objective, n = search.objective, len(search.objective.problem.sample_weight)
    size = max(SAMPLE_ROWS, ROWS_PER_VALUE * len(objective.theta0))
    rows = None if n < 2 * size else sampled_rows(objective, size, random_state)
    if rows is None:
        return None
    part = Objective(objective.problem.subsample(rows))
    stage, many = f"{SEPARATE} of a sample", search.on(part.for_many())
    with _stops_at(trace):
        one, own = evaluate(search.on(part), Trace(), starts[0], stage, tentative=True)
        best = _best_end(many, replace(own, remembered={}), starts, stage)
    gain = PairedDifference.between(part.judged(one), part.judged(best))
    needed = PROMISING_ERRORS * (size / n) ** 0.5
    step = Comparison(SEPARATE, gain, needed, n_rows=size)
    return None if step.taken else step


def refused_by_split(
    search: Search,
    trace: Trace,
    judge: Objective,
    shared: Evaluation,
    starts: Sequence[Array],
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
        found = _best_end(
            search.on(part), Trace(warm), starts, f"{SEPARATE} of a split"
        )
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


def _best_end(
    search: Search, trace: Trace, starts: Sequence[Array], stage: str
) -> Evaluation:
    """The lowest end of the descents from all starts."""
    ends = []
    for start in starts:
        found, trace = search.descend(trace, start, stage, tentative=True)
        ends.append(found.best)
    return min(ends, key=lambda end: end.value)


def _gain_on(rows: Array, simple: Evaluation, rich: Evaluation) -> PairedDifference:
    """The paired difference on some of the observations, a mask."""
    weights = simple.share_weights[rows]
    return PairedDifference.of(
        simple.shares[rows], rich.shares[rows], weights / weights.sum()
    )
