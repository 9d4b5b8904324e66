"""Samples of the rows: how many, which ones, and the step from one to a larger one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.random import RandomState

from bisvm.bilevel.objective import Objective, WarmStart
from bisvm.core.types import Array
from bisvm.optimizers import BFGS
from bisvm.search.descent import LOOSER, Descent, Plan, Search, clipped, evaluate
from bisvm.search.observer import StopSearch, Trace
from bisvm.search.reasons import converged_on_sample

# Rows of the first subsample, which is used if there are twice as many or more. Gram
# matrices of this size cost next to nothing. Further ones grow by at most this ratio.
SAMPLE_ROWS = 400
SAMPLE_RATIO = 10.0
# Rows from which on an evaluation is so expensive that more subsamples save time, and
# that a descent stops at the noise of H: a step that lowers H by less than NOISE_SHARE
# of its standard error is not taken. USUAL_FTOL is the decrease at which others stop.
# The gradient's tolerance grows by a factor of GENTLER at most: a carried curvature may
# promise little where a long slope still lowers H by much.
MANY_ROWS = 5000
SMALL_RATIO = 3.0
NOISE_SHARE = 0.1
USUAL_FTOL = 1e-4
GENTLER = 3.0
# Points of each sign that every training problem of a subsample must have.
SAMPLE_MEMBERS = 5
# Steps on all rows that come in blocks, after a search on a sample. With a million rows
# 0.2% of H is about half a standard error.
BLOCK_STEPS = BFGS(max_iter=4, ftol=2e-3, gtol=0.1)

ALL_ROWS = "all rows"


def on_other_machines(trace: Trace, warm: WarmStart) -> Trace:
    """Forget evaluations of other machines, the best of them too."""
    return replace(trace.on_other_machines(warm), best=None)


def next_level(
    search: Search,
    trace: Trace,
    below: Search,
    trace_below: Trace,
    found: Descent,
    stage: str,
    *,
    about: bool = False,
) -> tuple[Descent, Trace]:
    """A descent from the optimum of a smaller subsample, and from its functions.

    about : whether it keeps the differences of widths that were found there
    """
    objective = search.objective
    theta = clipped(objective, found.best.theta)
    fitted = below.objective.values_at(objective.problem.X, trace_below.warm)
    warm = replace(trace.warm, fitted=fitted, rough=True, number=0)
    if about:
        # How residuals change H is much the same: no machine is solved twice.
        warm = replace(warm, leverage=trace_below.warm.leverage)
    warm = objective.restricted(warm, theta)
    trace = on_other_machines(trace, warm)
    kept = theta if about else None
    plan = Plan(theta, stage, found.result, shared=True, about=kept)
    if len(objective.problem.sample_weight) > MANY_ROWS and not about:
        search, trace = _at_noise(search, trace, plan)
    further, trace = search.follow(trace, plan)
    return replace(further, tried_starts=found.tried_starts), trace


def _at_noise(search: Search, trace: Trace, plan: Plan) -> tuple[Search, Trace]:
    """The search with tolerances no tighter than its rows support."""
    accuracy = search.optimizer.loosened(LOOSER).accuracy(0)
    at, trace = evaluate(search, trace, plan.theta, plan.stage, accuracy=accuracy)
    factor = NOISE_SHARE * at.relative_error / USUAL_FTOL
    wider = max(factor, 1.0) if np.isfinite(factor) else 1.0
    optimizer = search.optimizer.loosened(wider, min(wider, GENTLER))
    return replace(search, optimizer=optimizer), trace


def sample_sizes(n: int) -> list[int]:
    """Return sizes of subsamples on the way to n rows, in equal ratios."""
    if n < 2 * SAMPLE_ROWS:
        return []
    longest = SAMPLE_RATIO if n <= MANY_ROWS else SMALL_RATIO
    steps = int(np.ceil(np.log(n / SAMPLE_ROWS) / np.log(longest)))
    ratio = (n / SAMPLE_ROWS) ** (1.0 / steps)
    return [round(SAMPLE_ROWS * ratio**k) for k in range(steps)]


def sampled_rows(
    objective: Objective, size: int, random_state: RandomState
) -> Array | None:
    """Return rows with the shares of folds, classes and groups of samples.

    None if a class is too rare to be represented.
    """
    columns = objective.problem.columns
    n = len(columns.labels)
    fold = columns.validation.argmax(axis=1)
    kind = objective.problem.row_kinds
    order = np.lexsort((random_state.permutation(n), kind, fold))
    places = np.linspace(0, n - 1, size).round().astype(int)
    rows = np.sort(order[places])
    members = columns.targets.members(columns.labels[rows], columns.train[rows])
    return rows if members.min() >= SAMPLE_MEMBERS else None


def by_sample(
    search: Search,
    trace: Trace,
    size: int,
    random_state: RandomState,
    tune: Callable[[Search], tuple[Descent | None, Trace]],
) -> tuple[Descent | None, Trace]:
    """Tune on a sample in memory, then take few steps on all rows, which are in blocks.

    An evaluation on all rows takes some passes over blocks of them. From the optimum of
    the sample, and from its functions, C and a common factor of all widths are left to
    be moved.
    """
    problem = search.objective.problem
    n = len(problem.sample_weight)
    size = min(size, n)
    rows = sampled_rows(search.objective, size, random_state)
    if rows is None:
        raise ValueError(
            f"A class is too rare for a sample of {size} rows, on which a search on "
            "blocks begins. Use more rows of that class, or fewer of the others."
        )
    level = search.on(Objective(problem.subsample(rows)))
    try:
        found, below = tune(level)
    except StopSearch as stop:
        best = stop.trace.best
        theta = stop.theta if best is None else best.theta
        if theta is not None:
            theta = clipped(search.objective, theta)
        raise StopSearch(stop.reason, theta, trace) from None
    if found is None:
        return None, trace
    few = replace(search, optimizer=BLOCK_STEPS, method=None)
    end, trace = next_level(few, trace, level, below, found, ALL_ROWS, about=True)
    reason = end.reason
    if found.converged and not end.converged:
        reason = converged_on_sample(size)
    return replace(
        end,
        converged=end.converged and found.converged,
        reason=reason,
        steps=found.steps,
        beaten_by=found.beaten_by,
    ), trace
