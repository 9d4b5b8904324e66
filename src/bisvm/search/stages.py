"""The stages of one search: where to start, shared values, separate values.

The validation loss has several minima, and the lowest of many minima over-fits. `tune`
descends from the given starts, or chooses its own (starts="auto"). It first learns few
hyperparameters, and adds more only if they lower the held-out loss by more than its
noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, Protocol

import numpy as np
from numpy.random import RandomState

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Evaluation
from bisvm.core.types import Array
from bisvm.optimizers import Optimizer, Scan, Simplex
from bisvm.search.baselines import (
    Baseline,
    baselines,
    better_of,
    gain_over_constant,
)
from bisvm.search.descent import (
    LOOSER,
    ROUGH_ACCURACY,
    AllCoordinates,
    Descent,
    Search,
    SharedValues,
    clipped,
    evaluate,
    upper_gradient,
    with_landmarks,
)
from bisvm.search.history import CONSTANT_ERRORS
from bisvm.search.observer import StopSearch, Trace
from bisvm.search.reasons import NOTHING_TO_LEARN, TIME_STOP, Reason
from bisvm.search.refinement import refine
from bisvm.search.settings import Starts
from bisvm.search.starts import (
    NEARLY,
    PLATEAU,
    Start,
    best_starts,
    first_starts,
    grid_of_starts,
    has_levelled_off,
    is_scanned,
    largest_C_starts,
    lowest,
    nearby_starts,
    other_valleys,
    starts_between,
    tried_starts,
)
from bisvm.search.subsamples import (
    by_sample,
    next_level,
    on_other_machines,
    sample_sizes,
    sampled_rows,
)
from bisvm.solvers import get_solver

# A subsample is used if local averages of its rows have this part of the skill that
# those of all rows have: with less, structure is finer than the subsample shows.
ENOUGH_SKILL = 0.5
# From this many starts on they are evaluated roughly.
MANY_STARTS = 4
# Starts at which machines could not be solved, after which no more are evaluated.
UNSOLVED_STARTS = 3
# How often a lower minimum is looked for near the one found.
NEARBY_ROUNDS = 4
# Relative decrease of H that is worth another descent: that at which a descent stops
# (docs/defaults.md, tolerance).
WORTH = 1e-4
# The same where H is not to be trusted to more: on a subsample, whose minima are not
# those of all rows, and where a descent has not converged.
ROUGH_WORTH = 1e-2
# How an H with kinks is scanned beyond a minimum: kinks have no natural scale, so that
# steps grow.
SCAN_NEARBY = Scan(spacing=0.25, growth=4.0, ftol=WORTH)
# With kinks in several coordinates, but no more than FEW_COORDINATES, a simplex is the
# method: a wide one first, over the ridges between shallow minima, then small ones on
# either side until H falls by less than SIMPLEX_TOL, relatively.
SIMPLEXES = (Simplex(edge=1.5), Simplex(edge=-0.4), Simplex(edge=0.4))
SIMPLEX_ROUNDS = 6
FEW_COORDINATES = 5
SIMPLEX_TOL = 1e-3

SHARED, SUBSAMPLE = "shared values", "subsample"

ChoosePoints = Callable[[Objective], list[Array]]


class ChooseStarts(Protocol):
    """Where H is evaluated before a descent."""

    def __call__(self, objective: Objective, known: list[Baseline]) -> list[Array]: ...


def tune(
    search: Search,
    starts: Starts,
    random_state: RandomState,
    only: int | None = None,
) -> tuple[Descent | None, Trace]:
    """Find the hyperparameters of one search.

    Parameters
    ----------
    search : Search
    starts : "auto", number of starts, or list of dicts
    random_state : RandomState
    only : number of the one start that is taken where starts are independent; None for
        all

    Returns
    -------
    descent : Descent or None
        Its best evaluation is the answer; None if H is not finite at the one start of
        several.
    trace : Trace
    """
    try:
        descent, trace = _tune(search, Trace(), starts, random_state, only)
    except StopSearch as stop:
        theta = search.objective.theta0 if stop.theta is None else stop.theta
        descent, trace = _end_at(
            search, stop.trace, theta, stop.reason, converged=False
        )
    if descent is None:
        return None, trace
    objective, fitted = search.objective, descent.fitted
    if fitted is None:
        fitted = objective.mean_fitted(trace.warm)
    on_training = objective.problem.criterion.on_training
    known = np.isfinite(descent.best.value) and not on_training
    gain = gain_over_constant(objective, descent.best) if known else None
    return replace(descent, fitted=fitted, over_constant=gain), trace


def n_independent_starts(starts: Starts, optimizer: Optimizer) -> int:
    """Return how many starts can be searched independently of one another."""
    if not optimizer.uses_start or isinstance(starts, str):
        return 1
    return starts if isinstance(starts, int) else len(starts)


def _tune(
    search: Search,
    trace: Trace,
    starts: Starts,
    random_state: RandomState,
    only: int | None,
) -> tuple[Descent | None, Trace]:
    objective, theta0 = search.objective, search.objective.theta0
    if not len(theta0):
        return _end_at(search, trace, theta0, NOTHING_TO_LEARN, converged=True)
    rule = objective.problem.approximation
    if rule is not None and rule.in_blocks:

        def on_sample(level: Search) -> tuple[Descent | None, Trace]:
            return _tune(level, Trace(), starts, random_state, only)

        return by_sample(search, trace, rule.sample_rows, random_state, on_sample)
    if not search.optimizer.uses_start:
        return search.descend(trace, theta0, "search")
    if isinstance(starts, str):
        if objective.problem.criterion.on_training:
            # No held-out points that could tell one start from another.
            return search.descend(trace, theta0, "descent")
        known = baselines(objective, random_state)
        found, trace = _auto(search, trace, random_state, known)
        return _with_baselines(objective, found, known), trace
    known = baselines(objective, RandomState(search.seed))
    thetas = _given_starts(objective, starts, random_state, known)
    numbers = range(len(thetas)) if only is None else [only]
    descents, trace = _descents(search, trace, thetas, numbers)
    best = min(descents, key=lambda descent: descent.best.value, default=None)
    if best is None:
        return None, trace
    return _with_baselines(objective, best, known), trace


def _with_baselines(
    objective: Objective, found: Descent, known: list[Baseline]
) -> Descent:
    """The answer, with the names of the baselines that are right more often."""
    better = [one.words for one in known if one.beats(objective, found.best)]
    return replace(found, beaten_by=tuple(better))


def _descents(
    search: Search, trace: Trace, thetas: list[Array], numbers: Iterable[int]
) -> tuple[list[Descent], Trace]:
    """A descent from every start that has a finite H, independent of the others."""
    found = []
    for number in numbers:
        theta, stage = thetas[number], f"start {number + 1}"
        cold = search.objective.cold(trace.warm)
        trace = with_landmarks(search, replace(trace, warm=cold, remembered={}), theta)
        begins = len(thetas) == 1
        if not begins:
            first, trace = evaluate(search, trace, theta, stage)
            begins = bool(np.isfinite(first.value))
        if begins:
            descent, trace = search.descend(trace, theta, stage)
            fitted = search.objective.mean_fitted(trace.warm)
            found.append(replace(descent, fitted=fitted))
    return found, trace


def _given_starts(
    objective: Objective,
    starts: int | Sequence[Mapping[str, Any]],
    random_state: RandomState,
    known: list[Baseline],
) -> list[Array]:
    """The starts that are asked for: a number of them, or their values.

    The first is theta0, the second what baselines propose; others lie at random about
    the first.
    """
    if not isinstance(starts, int):
        return [objective.space.theta(values, start=True) for values in starts]
    theta0 = objective.theta0
    scatter = random_state.normal(size=(starts - 1, len(theta0)))
    scatter *= 1.5 * objective.space.sizes()
    proposed = [one.start for one in known if one.start is not None]
    at_random = [clipped(objective, theta0 + step) for step in scatter]
    return [theta0, *proposed, *at_random][:starts]


def _end_at(
    search: Search, trace: Trace, theta: Array, reason: Reason, *, converged: bool
) -> tuple[Descent, Trace]:
    """The answer where no descent came to an end.

    Without time for a single evaluation, no held-out row has judged it.
    """
    best = trace.best
    if best is None and reason == TIME_STOP:
        best = search.objective.not_evaluated(theta)
    if best is None:
        trace = with_landmarks(search, trace, theta)
        best, trace = evaluate(search, trace, theta, "last", final=True)
    gradient = upper_gradient(best, AllCoordinates(search.objective.space))
    return Descent(best, gradient, converged, reason), trace


# --- starts="auto" --------------------------------------------------------------------


def _auto(
    search: Search,
    trace: Trace,
    random_state: RandomState,
    known: list[Baseline],
) -> tuple[Descent, Trace]:
    """Shared values, by way of subsamples if n is large; then separate values.

    Groups of samples get their own C before that, without a comparison.
    """
    objective = search.objective
    shared, trace = _shared_values(search, trace, random_state, known)
    shared, trace = _checked(search, trace, shared, known, random_state)
    if search.optimizer.expects_kinks and len(objective.theta0) == 1:
        shared, trace = _scan_nearby(search, trace, shared)
    if any(vector.of_groups for vector in objective.space.vectors):
        by_group, trace = search.descend(
            trace,
            shared.best.theta,
            "one C per group",
            shared=True,
            separate_groups=True,
        )
        shared = replace(by_group, tried_starts=shared.tried_starts)
    if not (search.separate and objective.space.has_many):
        return shared, trace
    if trace.warm.landmarks is not None and not objective.problem.approximated:
        # Few landmarks are enough for one width, and not for many.
        trace = on_other_machines(trace, objective.unrestricted(trace.warm))
        whole, trace = search.descend(
            trace, shared.best.theta, SHARED, shared.result, shared=True
        )
        shared = replace(whole, tried_starts=shared.tried_starts)
    return refine(search, trace, shared, random_state)


def _checked(
    search: Search,
    trace: Trace,
    shared: Descent,
    known: list[Baseline],
    random_state: RandomState,
) -> tuple[Descent, Trace]:
    """The answer, if it is better than a constant and no worse than other baselines.

    Where it is not, the descent may have been in the wrong basin: H is evaluated on a
    grid over the whole range, on a subsample if that shows as much, and the better of
    both answers counts.
    """
    gain = gain_over_constant(search.objective, shared.best)
    beaten = any(one.beats(search.objective, shared.best) for one in known)
    good = gain.exceeds(CONSTANT_ERRORS) and not beaten
    if good or not known or not _is_of_use(search, shared):
        return shared, trace
    try:
        mapped, trace = _shared_values(
            search, trace, random_state, known, "from the grid", grid_of_starts
        )
    except StopSearch as stop:
        raise stop.with_trace(_keeping(stop.trace, shared.best)) from None
    better = _better(search.objective, shared, mapped)
    trace = replace(trace, best=better.best)
    return replace(better, tried_starts=mapped.tried_starts), trace


def _is_of_use(search: Search, found: Descent) -> bool:
    """Whether H is below its target, or near enough for a further look."""
    return found.best.value < NEARLY * search.target


def _better(objective: Objective, one: Descent, other: Descent) -> Descent:
    """The one that ended at the better point: the lower, if only one has converged."""
    if one.converged != other.converged:
        return min(one, other, key=lambda descent: descent.best.value)
    best = better_of(objective, one.best, other.best)
    return one if best is one.best else other


def _keeping(trace: Trace, best: Evaluation) -> Trace:
    """The trace with the lower of its best evaluation and this one."""
    lower = trace.best is None or best.value < trace.best.value
    return replace(trace, best=best) if lower else trace


def _shared_values(
    search: Search,
    trace: Trace,
    random_state: RandomState,
    known: list[Baseline],
    stage: str = SHARED,
    choose: ChooseStarts = first_starts,
) -> tuple[Descent, Trace]:
    """The optimum with one shared value for each vector, by way of subsamples.

    Each is a few times as large as the one before and starts from its optimum: where a
    step is expensive, few are left to be taken. A subsample that shows too little of
    the structure is left out.
    """
    problem = search.objective.problem
    n = len(problem.sample_weight)
    below: tuple[Search, Trace, Descent] | None = None
    for size in sample_sizes(n):
        rows = sampled_rows(search.objective, size, random_state)
        if rows is None:
            continue
        level = search.on(Objective(problem.subsample(rows)), loosened=LOOSER)
        here: list[Baseline] = []
        if below is None:
            here = baselines(level.objective, random_state, size / n)
            pairs = zip(here, known, strict=True)
            if any(few.skill < ENOUGH_SKILL * every.skill for few, every in pairs):
                continue
        try:
            found, level_trace = (
                _from_starts(
                    level,
                    Trace(),
                    SUBSAMPLE,
                    partial(choose, known=here),
                    worth=ROUGH_WORTH,
                )
                if below is None
                else next_level(level, Trace(), *below, SUBSAMPLE)
            )
        except StopSearch as stop:
            # On the first subsample nothing is known of other values before its end.
            theta = None if below is None and stop.reason == TIME_STOP else stop.theta
            if theta is not None:
                theta = clipped(search.objective, theta)
            raise StopSearch(stop.reason, theta, trace) from None
        below = level, level_trace, found
    if below is None:
        return _from_starts(search, trace, stage, partial(choose, known=known))
    return next_level(search, trace, *below, SHARED)


def _from_starts(
    search: Search,
    trace: Trace,
    stage: str,
    choose: ChoosePoints,
    worth: float = WORTH,
) -> tuple[Descent, Trace]:
    """Shared values: evaluate H at some starts, descend from the best of them.

    From two, if they are far apart and nearly as good. With kinks, the starts are those
    of a smooth problem.
    """
    if _has_kinks(search):
        return _with_kinks(search, trace, stage, choose)
    objective = search.objective
    points = choose(objective)
    accuracy = None if len(points) < MANY_STARTS else ROUGH_ACCURACY
    plateau = max(worth, PLATEAU)
    scanned = len(points) >= MANY_STARTS and is_scanned(objective)
    starts, trace = _evaluated(search, trace, points, accuracy, scanned=scanned)
    if starts[-1].solved:
        between = starts_between(objective, lowest(starts, plateau).theta)
        further, trace = _evaluated(search, trace, between, None)
        starts += further
    ends = []
    for start in best_starts(starts, plateau):
        end, trace = search.descend(trace, start.theta, stage, shared=True)
        ends.append(end)
    best = reduce(partial(_better, objective), ends)
    if _is_of_use(search, best):
        best, trace = _from_nearby(search, trace, best, stage, worth)
        best, trace = _from_largest_C(search, trace, best, stage)
    tried = tried_starts(objective, starts, best.best)
    return replace(best, tried_starts=tried), trace


def _from_nearby(
    search: Search, trace: Trace, found: Descent, stage: str, worth: float = WORTH
) -> tuple[Descent, Trace]:
    """The lowest minimum near the one found, as far as a few evaluations tell."""
    for _ in range(NEARBY_ROUNDS):
        points = nearby_starts(search.objective, found.best.theta)
        starts, trace = _evaluated(search, trace, points, None)
        lower = [one for one in starts if one.value < (1 - worth) * found.best.value]
        if not lower:
            break
        start = min(lower, key=lambda one: one.value)
        found, trace = search.descend(trace, start.theta, stage, shared=True)
    return found, trace


def _from_largest_C(
    search: Search, trace: Trace, found: Descent, stage: str
) -> tuple[Descent, Trace]:
    """The lower of a minimum and of another in the valley of the largest C.

    H is rough there, since few rows decide: a descent that does not converge must end
    lower by `ROUGH_WORTH`. So must one from which separate values are learned: with the
    largest C they are stuck where kernels are nearly linear.
    """
    many = search.objective.space.has_many
    points = largest_C_starts(search.objective, found.best.theta)
    starts, trace = _evaluated(search, trace, points, ROUGH_ACCURACY)
    for start in other_valleys(found.best, starts):
        end, trace = search.descend(trace, start.theta, stage, shared=True)
        sure = (end.converged or not found.converged) and not many
        worth = WORTH if sure else ROUGH_WORTH
        if end.best.value < (1 - worth) * found.best.value:
            found, trace = _from_nearby(search, trace, end, stage)
    return found, trace


def _evaluated(
    search: Search,
    trace: Trace,
    points: list[Array],
    accuracy: float | None,
    *,
    scanned: bool = False,
) -> tuple[list[Start], Trace]:
    """H at these points, or at the first of them.

    No more are evaluated once machines could not be solved at several, as with features
    whose units are many powers of ten apart, nor in a scan that has levelled off.
    """
    starts: list[Start] = []
    for theta in points:
        trace = with_landmarks(search, trace, theta)
        at, trace = evaluate(search, trace, theta, "start", accuracy=accuracy)
        starts.append(Start(theta, at.value, at.converged))
        if sum(not start.solved for start in starts) >= UNSOLVED_STARTS:
            break
        if scanned and has_levelled_off(starts):
            break
    return starts, trace


# --- H with kinks ---------------------------------------------------------------------


def _scan_nearby(search: Search, trace: Trace, found: Descent) -> tuple[Descent, Trace]:
    """The lowest minimum nearby, where there are many along one line.

    Kinks make shallow minima side by side, and which one a descent meets is chance. A
    scan looks over their edges; while it finds a lower point, a descent goes on there.
    """
    scan = replace(search, optimizer=SCAN_NEARBY)
    while True:
        beyond, trace = scan.descend(trace, found.best.theta, "scan nearby")
        if not beyond.best.value < (1.0 - WORTH) * found.best.value:
            return found, trace
        further, trace = search.descend(trace, beyond.best.theta, "after the scan")
        found = replace(further, tried_starts=found.tried_starts)


def _has_kinks(search: Search) -> bool:
    """Whether H has kinks in several coordinates, as with the exact hinge.

    Where a point comes to the margin or leaves it, the slope of H jumps. Optimizers for
    kinks, on both levels, or on batches of rows deal with them on their own.
    """
    model, optimizer = search.objective.problem.model, search.optimizer
    on_its_own = (
        optimizer.expects_kinks
        or not optimizer.any_machine
        or optimizer.batch_size is not None
    )
    several = 1 < len(SharedValues(search.objective.space).sizes) <= FEW_COORDINATES
    return several and not model.loss.twice_differentiable and not on_its_own


def _with_kinks(
    search: Search, trace: Trace, stage: str, choose: ChoosePoints
) -> tuple[Descent, Trace]:
    """The lowest point near the minimum of a smooth problem, by values alone."""
    try:
        smooth, _ = _from_starts(_smooth(search), Trace(), "smooth", choose)
    except StopSearch as stop:
        raise stop.with_trace(trace) from None
    points = [search.objective.theta0, smooth.best.theta]
    starts, trace = _evaluated(search, trace, points, None)
    end, trace = _by_simplex(search, trace, lowest(starts).theta, stage)
    tried = tried_starts(search.objective, starts, end.best)
    return replace(end, tried_starts=tried), trace


def _smooth(search: Search) -> Search:
    """The search on the same problem with the corners of the loss rounded.

    Its H has no kinks, and its basins are those of the exact loss.
    """
    problem = search.objective.problem
    model = replace(problem.model, loss=problem.model.loss.rounded())
    smooth = replace(problem, model=model, solver=get_solver("auto", model.loss))
    return search.on(Objective(smooth), loosened=LOOSER)


def _by_simplex(
    search: Search, trace: Trace, theta: Array, stage: str
) -> tuple[Descent, Trace]:
    """The lowest point near theta, by values alone: gradients end at the first kink.

    It is a minimum once a simplex that starts again finds next to nothing lower.
    """
    value = np.inf
    for number in range(SIMPLEX_ROUNDS):
        simplex = replace(search, optimizer=SIMPLEXES[number % len(SIMPLEXES)])
        end, trace = simplex.descend(trace, theta, stage, shared=True)
        still = value - end.best.value <= SIMPLEX_TOL * abs(end.best.value)
        found = replace(end, converged=end.converged and still)
        theta, value = end.best.theta, end.best.value
        if found.converged:
            break
    return found, trace
