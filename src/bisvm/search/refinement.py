"""From one shared value for each vector of hyperparameters to separate values.

Separate values are taken if they lower the held-out loss by enough standard errors of
the paired difference. They were chosen by the same held-out points, so this gain is too
optimistic. Nested cross-validation of the last part of the search (Varma and Simon
2006) shows how much of it remains: theta_k is chosen by a few steps on the other rows
and splits alone, so that the rows of split k neither train nor validate, and is then
evaluated on split k.

The steps do not begin at theta, which depends on all rows, but where the search for
separate values began. If that start depends on all rows as well, it is chosen again by
the other rows. If the steps end at a higher H than that of the shared values (H may be
flat at the start), they begin again at the shared values. If there was no search for
separate values, they begin at the better of two points that hardly depend on single
rows: the initial values of all hyperparameters, and the shared values nearest to theta.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.random import RandomState

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Evaluation
from bisvm.core.types import Array
from bisvm.data.matrices import RowBlocks
from bisvm.optimizers import BFGS
from bisvm.search.descent import (
    LOOSER,
    Descent,
    Plan,
    Refitted,
    Search,
    SeparateStart,
    SharedValues,
    clipped,
    descend,
    evaluate,
)
from bisvm.search.history import Comparison, PairedDifference
from bisvm.search.observer import StopSearch, Trace
from bisvm.search.promises import SEPARATE, promise_of_sample, refused_by_split
from bisvm.search.single_features import single_feature_start
from bisvm.search.starts import FAR

# Standard errors by which richer models must lower the paired held-out losses: separate
# values at all, and a weaker prior that holds them together. Thresholds of 2, 3 and 4
# for the first gave test errors of 18.6, 18.4 and 17.6% (heart, docs/defaults.md).
SEPARATE_ERRORS = 4.0
WEAKER_PRIOR_ERRORS = 2.0
# In nested cross-validation less is enough, since theta is then chosen by fewer rows,
# in fewer steps, and evaluated on some of the splits.
NESTED_ERRORS = 0.5
# Factors of the prior's first strength that are tried in turn: 0.1, then 0.03, 0.01.
PRIOR_FACTORS = (0.3, 0.1)
# Widths of the second start, relative to their natural size (docs/defaults.md).
NARROW = 0.3
# Splits of the nested cross-validation, and steps of BFGS on each: enough to find what
# there is, and to over-fit as a search does.
NESTED_SPLITS = 3
NESTED_STEPS = 10
# Largest factor of the nested standard error where hyperparameters are many: with it,
# NESTED_ERRORS means two plain standard errors.
MOST_NOISE = 4.0
# Hyperparameters that do not over-fit any rows.
FEW_HYPERPARAMETERS = 3

WEAKER_PRIOR, NESTED = "weaker prior", "nested"
# Starts of the search for separate values.
SHARED, NARROW_WIDTHS = "shared values", "narrow widths"
FIRST, SINGLE_FEATURES = "first values", "single features"


def refine(
    search: Search, trace: Trace, shared: Descent, random_state: RandomState
) -> tuple[Descent, Trace]:
    """Go on from shared to separate values, if held-out points gain by it.

    It has several starts (`separate_starts`). Whether a richer model is worth it shows
    at loose tolerances, and only the last one is searched to the end. It must pass the
    nested cross-validation. What a sample of many rows, or one split of many machines,
    refuses is not tried on all of them (`promises`); of several starts a sample leaves
    the best.
    """
    objective = search.objective
    starts = separate_starts(objective, shared.best)
    loose = search.on(objective.for_many(), loosened=LOOSER)
    promise = promise_of_sample(search, trace, starts, random_state)
    if promise.refused is not None:
        return replace(shared, steps=(promise.refused,)), trace
    try:
        found, step, many = _separate(loose, trace, objective, shared, promise.starts)
    except StopSearch as stop:
        raise stop.with_trace(replace(trace, warm=stop.trace.warm)) from None
    trace = replace(many, best=trace.best, remembered=trace.remembered)
    if found is None or not step.taken:
        return replace(shared, steps=(step,)), trace
    # H under different priors does not compare: the richer model is the better one.
    trace = replace(trace, best=objective.judged(found.best))
    found = replace(found, steps=(step,))
    last, many, found = _weaken_prior(objective, loose, many, trace, found)
    end, trace = _finish(search, trace, last, many, found)
    end = replace(
        end, start=found.start, steps=found.steps, tried_starts=shared.tried_starts
    )
    end, confirmed = _confirm(search, trace, shared, end)
    if not confirmed:
        return replace(shared, steps=end.steps), replace(trace, best=shared.best)
    return replace(end, best=objective.judged(end.best)), trace


def _separate(
    loose: Search,
    trace: Trace,
    judge: Objective,
    shared: Descent,
    starts: Mapping[str, Array],
) -> tuple[Descent | None, Comparison, Trace]:
    """The best of the descents from all starts, or None, and its comparison.

    judge : with the criterion by which models are compared

    May raise StopSearch.
    """
    many = replace(trace, remembered={})
    refused, many = refused_by_split(loose, many, judge, shared.best, starts)
    if refused is not None:
        return None, refused, many
    tries = []
    for name, theta in starts.items():
        found, many = loose.descend(many, theta, SEPARATE, tentative=True)
        tries.append(replace(found, start=SeparateStart(name, shared.best.theta)))
    best = min(tries, key=lambda descent: descent.best.value)
    difference = _difference(judge, shared, best)
    return best, Comparison(SEPARATE, difference, SEPARATE_ERRORS), many


def separate_starts(objective: Objective, shared: Evaluation) -> dict[str, Array]:
    """Return where the search for separate values begins, by name.

    - The shared optimum. From it alone, features that matter little on their own are
      missed.
    - Narrow widths at C's start, which find them.
    - theta0, if the optimum is far from it: where the kernel is so wide that machines
      are nearly linear, H hardly depends on a single width.
    - Narrow widths in the features that the residuals depend on, and wide ones in the
      others, if the optimum is far from these.
    """
    theta0: Array = objective.theta0
    vectors = [
        vector
        for vector in objective.space.vectors
        if vector.tied and not vector.of_groups
    ]
    tied = np.concatenate([vector.entries for vector in vectors])
    narrow = theta0.copy()
    narrow[tied] = np.log(NARROW) + np.concatenate([v.log_unit for v in vectors])
    starts = {SHARED: shared.theta, NARROW_WIDTHS: clipped(objective, narrow)}
    if np.abs(theta0 - shared.theta)[tied].max() >= FAR:
        starts[FIRST] = theta0
    single = single_feature_start(objective, shared)
    if single is not None and (single - shared.theta)[tied].max() >= FAR:
        starts[SINGLE_FEATURES] = single
    return starts


def _difference(
    objective: Objective, simple: Descent, rich: Descent
) -> PairedDifference:
    """By the criterion of the whole search, whatever the richer model has minimised."""
    return PairedDifference.between(
        objective.judged(simple.best), objective.judged(rich.best)
    )


def _weaken_prior(
    objective: Objective, loose: Search, many: Trace, trace: Trace, found: Descent
) -> tuple[Search, Trace, Descent]:
    """Weaken the prior for as long as held-out points gain.

    Returns the last search, with its prior, its trace, and where it ended.
    """
    last, prior = loose, loose.objective.problem.prior
    if prior is None:
        return last, many, found
    for factor in PRIOR_FACTORS:
        weaker, warm = loose.objective.with_prior(prior.weakened(factor), trace.warm)
        search, later = loose.on(weaker), Trace(warm, best=found.best)
        try:
            further, later = search.descend(
                later, found.best.theta, WEAKER_PRIOR, found.result, tentative=True
            )
        except StopSearch as stop:
            kept = replace(trace, best=objective.judged(found.best))
            raise stop.with_trace(kept) from None
        difference = _difference(objective, found, further)
        step = Comparison(WEAKER_PRIOR, difference, WEAKER_PRIOR_ERRORS)
        steps = (*found.steps, step)
        if not step.taken:
            return last, many, replace(found, steps=steps)
        last, many = search, later
        found = replace(further, start=found.start, steps=steps)
    return last, many, found


def _finish(
    search: Search, trace: Trace, last: Search, many: Trace, found: Descent
) -> tuple[Descent, Trace]:
    """Descend to the end of the richer model, at the usual tolerances."""
    last = replace(last, optimizer=search.optimizer)
    many = replace(many, best=found.best)
    # Machines under a weaker prior have their own warm starts.
    same = last.objective.problem.prior is search.objective.problem.prior
    try:
        end, many = last.descend(many, found.best.theta, "final descent", found.result)
    except StopSearch as stop:
        best = stop.trace.best
        best = None if best is None else search.objective.judged(best)
        warm = stop.trace.warm if same else trace.warm
        raise stop.with_trace(replace(trace, best=best, warm=warm)) from None
    kept = many if same else trace
    return end, replace(trace, best=found.best, warm=kept.warm, n_solved=kept.n_solved)


# --- nested cross-validation ----------------------------------------------------------


def _confirm(
    search: Search, trace: Trace, shared: Descent, found: Descent
) -> tuple[Descent, bool]:
    """Whether separate values still gain if other rows choose them."""
    if not can_refit(search, found):
        return found, True
    try:
        refitted = list(
            refit_without_splits(search, trace, found, NESTED_SPLITS, NESTED_STEPS)
        )
        if not refitted:
            return found, True
        difference = nested_difference(search, trace, shared, refitted)
    except StopSearch as stop:
        # What was found stands, unconfirmed: there is no time left.
        return replace(found, converged=False, reason=stop.reason), True
    step = Comparison(NESTED, difference, NESTED_ERRORS)
    steps = (*found.steps, step)
    return replace(found, refitted=tuple(refitted), steps=steps), step.taken


def can_refit(search: Search, descent: Descent) -> bool:
    """Whether rows may have been over-fitted, and it can be tested."""
    problem = search.objective.problem
    moved = 0 if descent.result is None else len(descent.result.x)
    # So many rows are hardly over-fitted, and fewer might need a whole Gram matrix.
    large = problem.approximated or isinstance(problem.X, RowBlocks)
    several = len(np.unique(search.objective.parts.split)) >= 3
    mean = search.method is None or search.method.on_all_splits
    late = search.observer.is_late
    return moved > FEW_HYPERPARAMETERS and several and mean and not (late or large)


def refit_without_splits(
    search: Search, trace: Trace, descent: Descent, n_splits: int, steps: int
) -> Iterator[Refitted]:
    """Choose theta without each of the first splits, where machines can be trained.

    With leave-one-out, without each of the first parts of the rows. May raise
    StopSearch.
    """
    numbers = np.unique(search.objective.parts.split)[:n_splits]
    found = (_without(search, trace, descent, int(k), steps) for k in numbers)
    return (one for one in found if one is not None)


def nested_difference(
    search: Search, trace: Trace, simple: Descent, refitted: list[Refitted]
) -> PairedDifference:
    """How much lower the loss is than a simpler model's, on rows that did not choose.

    The simpler one was chosen by all rows: it is favoured, by little. The spread of the
    rows does not tell how a choice of p hyperparameters by n of them varies, since all
    splits share most rows: the standard error grows by sqrt(1 + p^2 / n), at most by
    MOST_NOISE. Without this, labels by chance (30 rows, 20 features) had one width per
    feature in 8% of draws.
    """
    pairs = []
    for one in refitted:
        at = _on_split(search, trace, one.split, simple.best.theta)
        pairs.append((at.shares, one.at.shares, at.share_weights))
    # Splits drawn at random hold out some rows again: each is still one observation.
    difference = PairedDifference.of(
        *(np.mean(part, axis=0) for part in zip(*pairs, strict=True))
    )
    p, n = len(simple.best.theta), len(simple.best.shares)
    factor = min(np.sqrt(1.0 + p**2 / n), MOST_NOISE)
    return replace(difference, standard_error=difference.standard_error * factor)


def _without(
    search: Search, trace: Trace, descent: Descent, number: int, steps: int
) -> Refitted | None:
    """theta after some steps without the rows that a split holds out; its H there.

    With the prior that the search began with: all rows decided to weaken it.
    """
    objective = search.objective
    part = (objective if descent.start is None else objective.for_many()).without(
        number, trace.warm
    )
    if part is None:
        return None
    again, own = _nested(search, part[0], steps), Trace(part[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        starts, own = _nested_starts(again, own, objective, descent)
        if not starts:
            return None
        for start in starts:
            end = descend(again, own, Plan(start.theta, NESTED))[0].best
            if end.value < starts[-1].value:
                break
        at = _on_split(search, trace, number, end.theta)
    return Refitted(number, at.theta, at) if np.isfinite(at.value) else None


def _nested_starts(
    search: Search, trace: Trace, objective: Objective, descent: Descent
) -> tuple[list[Evaluation], Trace]:
    """Where a nested search begins; at the next one if it ends above the last.

    search, trace : of the nested search
    objective : of the whole search

    None if H is not finite there.
    """
    view, start = SharedValues(objective.space), descent.start
    thetas = (
        [objective.theta0, view.expand(view.reduce(descent.best.theta))]
        if start is None
        else [start.shared]
    )
    simple, trace = _evaluations(search, trace, thetas)
    if not simple:
        return [], trace
    lowest = min(simple, key=lambda one: one.value)
    others = []
    if start is not None and start.name != SHARED:
        own = separate_starts(search.objective, lowest)
        others = [own[start.name]] if start.name in own else []
    found, trace = _evaluations(search, trace, others)
    return [*found, lowest], trace


def _evaluations(
    search: Search, trace: Trace, thetas: list[Array]
) -> tuple[list[Evaluation], Trace]:
    """H at these points, where it is finite."""
    found = []
    for theta in thetas:
        at, trace = evaluate(search, trace, theta, NESTED)
        found.append(at)
    return [one for one in found if np.isfinite(one.value)], trace


def _on_split(search: Search, trace: Trace, number: int, theta: Array) -> Evaluation:
    """H at theta on one split."""
    objective, warm = search.objective.on_split(number, trace.warm)
    return evaluate(_nested(search, objective), Trace(warm), theta, NESTED)[0]


def _nested(search: Search, objective: Objective, steps: int = 1) -> Search:
    """A search of few steps at loose tolerances, with the limits of the whole one."""
    return Search(
        objective,
        BFGS(max_iter=steps, ftol=1e-3, gtol=0.1),
        search.observer,
        accuracy=LOOSER * search.accuracy,
        nested=True,
    )
