"""From one size for each vector of hyperparameters to all of them apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bisvm.bilevel.objective import Objective
from bisvm.search import nested
from bisvm.search.descent import Descent, Search, Trace
from bisvm.search.gains import Gain, Step
from bisvm.search.questions import StopSearch

# Standard errors by which a step up must lower the paired validation losses: to let the
# entries of a vector differ at all, and to weaken the prior that holds them together.
APART_ERRORS = 4.0
WEAKEN_ERRORS = 2.0
# On rows that had no say some gain must be left: less, since theta is then chosen by
# fewer rows, in fewer steps, and judged by some of the splits.
LAST_ERRORS = 0.5
WEAKER = (0.3, 0.1)
# By how much tolerances are wider while it is open whether a step up is taken.
ROUGHLY = 10.0
# Widths of the second start, relative to their natural size.
NARROW = 0.3


def climb(search: Search, trace: Trace, common: Descent) -> tuple[Descent, Trace]:
    """From one size for each vector of hyperparameters to all of them apart.

    From the common optimum alone features that matter little on their own are missed;
    narrow widths at C's start find them. Whether a step up is worth it shows before it
    is taken to its end: only the last one is. Then it must last: chosen again without
    the rows of some splits, many hyperparameters must still gain on them.
    """
    rough = search.on(search.objective.for_many(), loosened=ROUGHLY)
    tries, own = [], replace(trace, seen={})
    for start in (common.best.theta, _narrow_start(search.objective)):
        try:
            found, own = rough.descend(own, start, "one for each", tentative=True)
        except StopSearch as stop:
            kept = replace(trace, warm=stop.trace.warm)
            raise StopSearch(str(stop), stop.theta, kept) from None
        tries.append(replace(found, start=start))
    apart = min(tries, key=lambda descent: descent.best.value)
    gain = _gain(search.objective, common, apart)
    up = Step("one for each", gain, APART_ERRORS)
    trace = replace(own, best=trace.best, seen=trace.seen)
    if not up.taken:
        return replace(common, steps=(up,)), trace
    # H under different priors does not compare: the richer model is the better one.
    trace = replace(trace, best=search.objective.judged(apart.best))
    apart = replace(apart, steps=(up,))
    last, own, found = _weaken(search.objective, rough, own, trace, apart)
    end, trace = _to_the_end(search, trace, last, own, found)
    end = replace(end, start=found.start, steps=found.steps, looks=common.looks)
    end, proved = _lasting(search, trace, common, end)
    if not proved:
        return replace(common, steps=end.steps), replace(trace, best=common.best)
    return replace(end, best=search.objective.judged(end.best)), trace


def _narrow_start(objective: Objective) -> np.ndarray:
    narrow = objective.theta0
    for vector in objective.space.vectors:
        if vector.tied and not vector.of_groups:
            narrow[vector.entries] = vector.log_unit + np.log(NARROW)
    return np.clip(narrow, *objective.bounds.T)


def _gain(judge: Objective, simple: Descent, rich: Descent) -> Gain:
    """By the criterion of the whole search, whatever the richer model has minimised."""
    return Gain.between(judge.judged(simple.best), judge.judged(rich.best))


def _weaken(
    judge: Objective, rough: Search, own: Trace, trace: Trace, found: Descent
) -> tuple[Search, Trace, Descent]:
    """Trust the data more and the prior less, for as long as held-out points gain.

    The answer comes with the search, and so the prior, that it belongs to.
    """
    last, objective = rough, rough.objective
    prior = objective.problem.prior
    if prior is None:
        return last, own, found
    for factor in WEAKER:
        weaker, warm = objective.with_prior(prior.weakened(factor), trace.warm)
        search, later = rough.on(weaker), Trace(warm, best=found.best)
        start = found.best.theta, "weaker prior", found.result
        try:
            further, later = search.descend(later, *start, tentative=True)
        except StopSearch as stop:
            kept = replace(trace, best=judge.judged(found.best))
            raise StopSearch(str(stop), stop.theta, kept) from None
        gain = _gain(judge, found, further)
        step = Step("weaker prior", gain, WEAKEN_ERRORS)
        steps = (*found.steps, step)
        if not step.taken:
            return last, own, replace(found, steps=steps)
        last, own = search, later
        found = replace(further, start=found.start, steps=steps)
    return last, own, found


def _to_the_end(
    search: Search, trace: Trace, last: Search, own: Trace, found: Descent
) -> tuple[Descent, Trace]:
    """The last steps of the richer model, at the usual tolerances."""
    last = replace(last, optimizer=search.optimizer)
    own = replace(own, best=found.best)
    # Machines under a weaker prior have warm starts of their own.
    same = last.objective.problem.prior is search.objective.problem.prior
    try:
        end, own = last.descend(own, found.best.theta, "last steps", found.result)
    except StopSearch as stop:
        best = search.objective.judged(stop.trace.best)
        warm = stop.trace.warm if same else trace.warm
        stopped = replace(trace, best=best, warm=warm)
        raise StopSearch(str(stop), stop.theta, stopped) from None
    warm = own.warm if same else trace.warm
    n_solved = own.n_solved if same else trace.n_solved
    return end, replace(trace, best=found.best, warm=warm, n_solved=n_solved)


def _lasting(
    search: Search, trace: Trace, common: Descent, found: Descent
) -> tuple[Descent, bool]:
    """Whether the gain of many hyperparameters lasts, with what was seen of it."""
    if not nested.possible(search, found):
        return found, True
    try:
        refitted = list(
            nested.refit_without_splits(
                search, trace, found, nested.SPLITS, nested.STEPS
            )
        )
        if not refitted:
            return found, True
        gain = nested.lasting_gain(search, trace, common, refitted)
    except StopSearch as stop:
        # What was found stands, unproved: no time is left to ask whether it lasts.
        return replace(found, converged=False, reason=str(stop)), True
    last = Step("chosen without the judges", gain, LAST_ERRORS)
    steps = (*found.steps, last)
    return replace(found, refitted=tuple(refitted), steps=steps), last.taken
