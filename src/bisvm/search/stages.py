"""Where to start, and how far to climb.

The validation loss has several minima, and the lowest of many over-fits it. `tune`
takes the starts that it is given, or chooses its own ("auto"): from few hyperparameters
to many, going up a step only where the held-out points show a gain beyond their noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bisvm.bilevel.objective import Objective
from bisvm.core.parts import PENALTY
from bisvm.losses import Quartic
from bisvm.optimizers import Optimizer, Scan, Simplex
from bisvm.search import survey
from bisvm.search.climb import climb
from bisvm.search.descent import (
    ROUGH,
    Descent,
    Search,
    Trace,
    evaluate,
    with_landmarks,
)
from bisvm.search.gains import Gain
from bisvm.search.questions import StopSearch
from bisvm.search.survey import Look, Reference
from bisvm.search.views import Tied, Whole, upper_gradient
from bisvm.solvers import get_solver

# By how much tolerances are wider on a sample of the rows.
ROUGHLY = 10.0
# With twice as many rows or more, subsamples find the way first: one of this size, and
# others that grow by no more than this ratio.
COARSE_ROWS = 400
LADDER_RATIO = 10.0
# Points of each sign that every training problem of the subsample must have.
COARSE_MEMBERS = 5
# The best C of a sample shrinks with its size about like size^-0.2.
C_EXPONENT = 0.2
# Of what local averages of all rows show, what a sample must show to be of use.
ENOUGH_SEEN = 0.5
# From this many looks on they are rough ones.
MANY_LOOKS = 4
# Looks at which machines could not be solved, after which no more are taken.
UNSOLVED_LOOKS = 3
# How often a lower minimum is looked for near the one found.
NEIGHBOUR_ROUNDS = 4
# Where a kinked H is looked at beyond the minimum found: kinks have no scale of their
# own, and steps grow. WORTH is the decrease, relatively, that pays another descent.
WORTH = 1e-4
AROUND = Scan(spacing=0.25, growth=4.0, ftol=WORTH)
# Of several coordinates, but no more than FEW_COORDINATES, a simplex is the method: a
# wide one first, over the ridges between shallow minima, then small ones on either side
# until that is in vain: when H falls by less than STILL, relatively.
SIMPLEXES = (Simplex(edge=1.5), Simplex(edge=-0.4), Simplex(edge=0.4))
SIMPLEX_ROUNDS = 6
FEW_COORDINATES = 5
STILL = 1e-3

WhereToLook = Callable[[Objective, list[Reference]], list[np.ndarray]]


def tune(
    search: Search,
    starts: Any,
    random_state: np.random.RandomState,
    only: int | None = None,
) -> tuple[Descent | None, Trace]:
    """The descent whose best evaluation is the answer, and what is known at its end.

    only : number of the one start that is taken where starts are apart; None for all.
        The answer is None if H is not finite at this one of several.
    """
    try:
        descent, trace = _tune(search, Trace(), starts, random_state, only)
    except StopSearch as stop:
        descent, trace = _at(
            search, stop.trace or Trace(), stop.theta, str(stop), converged=False
        )
    if descent is None:
        return None, trace
    fitted = descent.fitted
    if fitted is None:
        fitted = search.objective.mean_fitted(trace.warm)
    over_guess = _over_guess(search.objective, descent)
    return replace(descent, fitted=fitted, over_guess=over_guess), trace


def _over_guess(objective: Objective, descent: Descent) -> Gain | None:
    """The gain over a constant; None without held-out points."""
    if objective.problem.criterion.on_training:
        return None
    return survey.gain_over_guess(objective, descent.best)


def n_apart(starts: Any, optimizer: Optimizer) -> int:
    """How many starts can be taken apart from one another."""
    if not optimizer.uses_start or isinstance(starts, str):
        return 1
    if isinstance(starts, (int, np.integer)):
        return max(int(starts), 1)
    return max(len(starts), 1) if isinstance(starts, (list, tuple)) else 1


def _tune(
    search: Search,
    trace: Trace,
    starts: Any,
    random_state: np.random.RandomState,
    only: int | None,
) -> tuple[Descent | None, Trace]:
    theta0 = search.objective.theta0
    if not len(theta0):
        reason = "There is nothing to learn."
        return _at(search, trace, theta0, reason, converged=True)
    if not search.optimizer.uses_start:
        return search.descend(trace, theta0, "search")
    if isinstance(starts, str) and starts == "auto":
        if search.objective.problem.criterion.on_training:
            # No held-out points that could tell one start from another.
            return search.descend(trace, theta0, "descent")
        known = survey.references(search.objective, random_state)
        found, trace = _auto(search, trace, random_state, known)
        return _with_rules(search.objective, found, known), trace
    known = survey.references(search.objective, np.random.RandomState(search.seed))
    thetas = _starts(search.objective, starts, random_state, known)
    numbers = range(len(thetas)) if only is None else [only]
    descents, trace = _descents(search, trace, thetas, numbers)
    best = min(descents, key=lambda descent: descent.best.value, default=None)
    if best is None:
        return None, trace
    return _with_rules(search.objective, best, known), trace


def _with_rules(
    objective: Objective, found: Descent, known: list[Reference]
) -> Descent:
    """The answer, with the names of the simple rules that are right more often."""
    better = [one.words for one in known if one.beats(objective, found.best)]
    return replace(found, beaten_by=tuple(better))


def _descents(
    search: Search, trace: Trace, thetas: list[np.ndarray], numbers: Iterable[int]
) -> tuple[list[Descent], Trace]:
    """A descent from every start that has a finite H, whatever the others do."""
    found = []
    for number in numbers:
        theta, stage = thetas[number], f"start {number + 1}"
        cold = search.objective.cold(trace.warm)
        trace = with_landmarks(search, replace(trace, warm=cold, seen={}), theta)
        begins = len(thetas) == 1
        if not begins:
            first, trace = evaluate(search, trace, theta, stage)
            begins = bool(np.isfinite(first.value))
        if begins:
            descent, trace = search.descend(trace, theta, stage)
            fitted = search.objective.mean_fitted(trace.warm)
            found.append(replace(descent, fitted=fitted))
    return found, trace


def _at(
    search: Search, trace: Trace, theta: np.ndarray, reason: str, *, converged: bool
) -> tuple[Descent, Trace]:
    """The answer where no descent came to an end."""
    best = trace.best
    if best is None:
        trace = with_landmarks(search, trace, theta)
        best, trace = evaluate(search, trace, theta, "last", final=True)
    gradient = upper_gradient(best, Whole(search.objective.space))
    return Descent(best, gradient, converged, reason), trace


def _auto(
    search: Search,
    trace: Trace,
    random_state: np.random.RandomState,
    known: list[Reference],
) -> tuple[Descent, Trace]:
    """One size for all, by way of a subsample if n is large; then the climb to many.

    Groups of samples get their own C before the climb, and without its proof of gain.
    """
    objective: Objective = search.objective
    common, trace = _common(search, trace, random_state, known)
    common, trace = _believed(search, trace, common, known, random_state)
    if search.optimizer.expects_kinks and len(objective.theta0) == 1:
        common, trace = _around(search, trace, common)
    vectors = objective.space.vectors
    if any(vector.of_groups for vector in vectors):
        apart, trace = search.descend(
            trace, common.best.theta, "one C per group", tied=True, groups_apart=True
        )
        common = replace(apart, looks=common.looks)
    if not objective.space.has_many:
        return common, trace
    if trace.warm.landmarks is not None and not objective.problem.approximated:
        # Few landmarks for one width do not serve many.
        trace = _on_other_machines(trace, objective.unrestricted(trace.warm))
        whole, trace = search.descend(
            trace, common.best.theta, "one for all", common.result, tied=True
        )
        common = replace(whole, looks=common.looks)
    return climb(search, trace, common)


def _on_other_machines(trace: Trace, warm: Any) -> Trace:
    """What was seen, and the best of it, belong to other machines."""
    return replace(trace.with_landmarks_of(warm), best=None)


def _common(
    search: Search,
    trace: Trace,
    random_state: np.random.RandomState,
    known: list[Reference],
    stage: str = "one for all",
    looks: WhereToLook = survey.first_looks,
) -> tuple[Descent, Trace]:
    """The optimum with one size for each vector, by way of subsamples if there are any.

    Each is a few times as large as the one before and starts from its optimum: where a
    step is expensive, few are left to be taken. A sample that sees too little of what
    all rows show is left out.
    """
    problem = search.objective.problem
    n = len(problem.sample_weight)
    below: tuple[Search, Trace, Descent, int] | None = None
    # Linear machines cost no more than their rows: the first sample is enough for them.
    for size in ladder(n)[: 1 if problem.model.linear else None]:
        rows = _coarse_rows(search.objective, size, random_state)
        if rows is None:
            continue
        level = search.on(Objective(problem.subsample(rows)), loosened=ROUGHLY)
        own: list[Reference] = []
        if below is None:
            own = survey.references(level.objective, random_state)
            if not _sees_enough(own, known):
                continue
        try:
            found, level_trace = (
                _from_looks(level, Trace(), own, "sketch", looks)
                if below is None
                else _next_level(level, Trace(), *below, size, "sketch")
            )
        except StopSearch as stop:
            theta = _grown(search.objective, stop.theta, n / size)
            raise StopSearch(str(stop), theta, trace) from None
        below = level, level_trace, found, size
    if below is None:
        return _from_looks(search, trace, known, stage, looks)
    return _next_level(search, trace, *below, n, "one for all")


def _sees_enough(own: list[Reference], known: list[Reference]) -> bool:
    """Whether a sample shows what all rows show."""
    pairs = zip(own, known, strict=True)
    return all(few.seen >= ENOUGH_SEEN * every.seen for few, every in pairs)


def _next_level(
    search: Search,
    trace: Trace,
    below: Search,
    trace_below: Trace,
    found: Descent,
    size_below: int,
    size: int,
    stage: str,
) -> tuple[Descent, Trace]:
    """A descent from the optimum of a smaller sample, and from its functions."""
    objective: Objective = search.objective
    theta = _grown(objective, found.best.theta, size / size_below)
    fitted = below.objective.values_at(objective.problem.X, trace_below.warm)
    warm = objective.restricted(replace(trace.warm, fitted=fitted, number=0), theta)
    trace = _on_other_machines(trace, warm)
    further, trace = search.descend(trace, theta, stage, found.result, tied=True)
    return replace(further, looks=found.looks), trace


def ladder(n: int) -> list[int]:
    """Sizes of the samples on the way to n, in equal ratios of at most LADDER_RATIO."""
    if n < 2 * COARSE_ROWS:
        return []
    steps = int(np.ceil(np.log(n / COARSE_ROWS) / np.log(LADDER_RATIO)))
    ratio = (n / COARSE_ROWS) ** (1.0 / steps)
    return [round(COARSE_ROWS * ratio**k) for k in range(steps)]


def _coarse_rows(
    objective: Objective, size: int, random_state: np.random.RandomState
) -> np.ndarray | None:
    """Rows of a sample with the shares of folds, classes and groups of samples.

    None if a class is so rare that the sample would not tell of it.
    """
    columns = objective.problem.columns
    n = len(columns.labels)
    fold = columns.validation.argmax(axis=1)
    kind = objective.problem.row_kinds
    order = np.lexsort((random_state.permutation(n), kind, fold))
    places = np.linspace(0, n - 1, size).round().astype(int)
    rows = np.sort(order[places])
    trained = columns.labels[rows] * (columns.train[rows] > 0)
    members = np.minimum((trained > 0).sum(axis=0), (trained < 0).sum(axis=0))
    return rows if members.min() >= COARSE_MEMBERS else None


def _grown(objective: Objective, theta: np.ndarray, ratio: float) -> np.ndarray:
    """theta for a sample `ratio` times as large."""
    shrink = C_EXPONENT * np.log(ratio) * objective.space.has_role(PENALTY)
    return _within(objective, theta - shrink)


def _starts(
    objective: Objective,
    starts: Any,
    random_state: np.random.RandomState,
    known: list[Reference],
) -> list[np.ndarray]:
    """The starts that are asked for: a number of them, or their values.

    The first is that of the hyperparameters, the second where local averages of the
    labels are best; others lie at random about the first.
    """
    if isinstance(starts, (int, np.integer)) and not isinstance(starts, bool):
        if starts < 1:
            raise ValueError(f"starts={starts}: at least one start is needed.")
        theta0 = objective.theta0
        scatter = random_state.normal(size=(starts - 1, len(theta0)))
        scatter *= 1.5 * objective.space.sizes()
        told = [one.start for one in known if one.start is not None]
        at_random = [_within(objective, theta0 + step) for step in scatter]
        return [theta0, *told, *at_random][:starts]
    if isinstance(starts, (list, tuple)) and starts:
        if all(isinstance(values, Mapping) for values in starts):
            return [objective.space.theta(values, start=True) for values in starts]
    raise ValueError(
        f"starts={starts!r} is not understood; expected 'auto', a number, or a list of "
        "dicts such as [{'C': 1.0, 'gamma': 0.1}]."
    )


def _within(objective: Objective, theta: np.ndarray) -> np.ndarray:
    return np.clip(theta, *objective.bounds.T)


def _from_looks(
    search: Search,
    trace: Trace,
    known: list[Reference],
    stage: str,
    looks: WhereToLook,
) -> tuple[Descent, Trace]:
    """One size for each vector: look at some points, descend from the best of them.

    From two, if they are far apart and nearly as good. An H with kinks is looked at
    where its smooth twin is lowest.
    """
    if _has_kinks(search):
        return _with_kinks(search, trace, known, stage, looks)
    points = looks(search.objective, known)
    accuracy = None if len(points) < MANY_LOOKS else ROUGH
    seen, trace = _look_at(search, trace, points, accuracy)
    if seen[-1].solved:
        closer = survey.closer_looks(search.objective, survey.lowest(seen).theta)
        further, trace = _look_at(search, trace, closer, None)
        seen += further
    ends = []
    for begin in survey.basins(seen):
        end, trace = search.descend(trace, begin.theta, stage, tied=True)
        ends.append(end)
    lowest = min(ends, key=lambda descent: descent.best.value)
    lowest, trace = _neighbours(search, trace, lowest, stage)
    looked = survey.looks_of(search.objective, seen, lowest.best)
    return replace(lowest, looks=looked), trace


def _neighbours(
    search: Search, trace: Trace, found: Descent, stage: str
) -> tuple[Descent, Trace]:
    """The lowest minimum near the one found, as far as a few looks tell."""
    for _ in range(NEIGHBOUR_ROUNDS):
        points = survey.neighbours(search.objective, found.best.theta)
        looks, trace = _look_at(search, trace, points, None)
        lower = [look for look in looks if look.value < (1 - WORTH) * found.best.value]
        if not lower:
            break
        begin = min(lower, key=lambda look: look.value)
        found, trace = search.descend(trace, begin.theta, stage, tied=True)
    return found, trace


def _look_at(
    search: Search, trace: Trace, points: list[np.ndarray], accuracy: float | None
) -> tuple[list[Look], Trace]:
    """H at these points; no more of them once machines could not be solved at several.

    So it is with columns whose units are many powers of ten apart.
    """
    seen: list[Look] = []
    for theta in points:
        trace = with_landmarks(search, trace, theta)
        at, trace = evaluate(search, trace, theta, "start", accuracy=accuracy)
        seen.append(Look(theta, at.value, at.converged))
        if sum(not look.solved for look in seen) >= UNSOLVED_LOOKS:
            break
    return seen, trace


def _believed(
    search: Search,
    trace: Trace,
    common: Descent,
    known: list[Reference],
    random_state: np.random.RandomState,
) -> tuple[Descent, Trace]:
    """The answer, if it is no worse than simple rules on the same splits.

    Where it is, the descent was in the wrong basin: the whole range is mapped, on a
    sample if that shows as much, and the better of both answers counts.
    """
    if not any(one.beats(search.objective, common.best) for one in known):
        return common, trace
    mapped, trace = _common(
        search, trace, random_state, known, "from the map", survey.whole_map
    )
    lower = min(common, mapped, key=lambda descent: descent.best.value)
    return replace(lower, looks=mapped.looks), trace


def _around(search: Search, trace: Trace, found: Descent) -> tuple[Descent, Trace]:
    """The lowest minimum nearby, where there are many along one line.

    Kinks make shallow minima beside each other, and which one a descent meets is
    chance. A scan looks over their edges; while it finds a lower place, a descent goes
    on from there.
    """
    scan = replace(search, optimizer=AROUND)
    while True:
        beyond, trace = scan.descend(trace, found.best.theta, "around")
        if not beyond.best.value < (1.0 - WORTH) * found.best.value:
            return found, trace
        further, trace = search.descend(trace, beyond.best.theta, "beyond")
        found = replace(further, looks=found.looks)


def _has_kinks(search: Search) -> bool:
    """Whether H has kinks in several coordinates: with the exact hinge it has.

    Where a point comes to the margin or leaves it, the slope of H jumps. Methods for
    kinks, on both levels, or on samples of the rows, have their own way with them.
    """
    model, optimizer = search.objective.problem.model, search.optimizer
    own_way = (
        optimizer.expects_kinks
        or not optimizer.any_machine
        or optimizer.batch_size is not None
    )
    several = 1 < len(Tied(search.objective.space).sizes) <= FEW_COORDINATES
    return several and not model.loss.twice_differentiable and not own_way


def _with_kinks(
    search: Search,
    trace: Trace,
    known: list[Reference],
    stage: str,
    looks: WhereToLook,
) -> tuple[Descent, Trace]:
    """The lowest place near the minimum of the smooth twin, by values alone."""
    try:
        twin, _ = _from_looks(_smooth(search), Trace(), known, "smooth", looks)
    except StopSearch as stop:
        raise StopSearch(str(stop), stop.theta, trace) from None
    points = [search.objective.theta0, twin.best.theta]
    seen, trace = _look_at(search, trace, points, None)
    end, trace = _over_kinks(search, trace, survey.lowest(seen).theta, stage)
    looked = survey.looks_of(search.objective, seen, end.best)
    return replace(end, looks=looked), trace


def _smooth(search: Search) -> Search:
    """The search on the same problem with a rounded corner in place of the hinge's.

    Its H has no kinks, and its basins are those of the hinge.
    """
    problem = search.objective.problem
    model = replace(problem.model, loss=Quartic())
    smooth = replace(problem, model=model, solver=get_solver("auto", model.loss))
    return search.on(Objective(smooth), loosened=ROUGHLY)


def _over_kinks(
    search: Search, trace: Trace, theta: np.ndarray, stage: str
) -> tuple[Descent, Trace]:
    """The lowest place near theta, by values alone: gradients end at the first kink.

    Once a simplex that starts again finds next to nothing that is lower, it is a
    minimum.
    """
    value = np.inf
    for number in range(SIMPLEX_ROUNDS):
        simplex = replace(search, optimizer=SIMPLEXES[number % len(SIMPLEXES)])
        near, trace = simplex.descend(trace, theta, stage, tied=True)
        still = value - near.best.value <= STILL * abs(near.best.value)
        found = replace(near, converged=near.converged and still)
        theta, value = near.best.theta, near.best.value
        if found.converged:
            break
    return found, trace
