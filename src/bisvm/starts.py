"""Where to start, and how far to climb.

The validation loss has several minima, and the lowest of many over-fits it. `tune`
takes the starts it is told to take, or its own way up ("auto"): from few
hyperparameters to many, going up a step only where the held-out points show a gain
beyond their noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bisvm import nested, survey
from bisvm.gains import Gain, Step
from bisvm.losses import Quartic
from bisvm.objective import BilevelObjective
from bisvm.optimizers import BothLevels, Optimizer, Scan, Simplex
from bisvm.parts import PENALTY
from bisvm.solvers import get_solver
from bisvm.survey import Look, Reference
from bisvm.tuning import ROUGH, Descent, Run, StopTuning, Tie, Whole, upper_gradient

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

WhereToLook = Callable[[BilevelObjective, list[Reference]], list[np.ndarray]]


def tune(
    run: Run,
    starts: Any,
    random_state: np.random.RandomState,
    only: int | None = None,
) -> Descent | None:
    """The descent whose best evaluation is the answer.

    only : number of the one start that is taken where starts are apart; None for all.
        The answer is None if H is not finite at this one of several.
    """
    try:
        descent = _tune(run, starts, random_state, only)
    except StopTuning as stop:
        descent = _at(run, stop.theta, str(stop), converged=False)
    if descent is None:
        return None
    near = run.objective.mean_fitted() if descent.near is None else descent.near
    return replace(descent, near=near, over_guess=_over_guess(run, descent))


def _over_guess(run: Run, descent: Descent) -> Gain | None:
    """The gain over a constant; None without held-out points."""
    if run.objective.problem.criterion.on_training:
        return None
    return survey.gain_over_guess(run.objective, descent.best)


def n_apart(starts: Any, optimizer: Optimizer) -> int:
    """How many starts can be taken apart from one another."""
    if not optimizer.uses_start or isinstance(starts, str):
        return 1
    if isinstance(starts, (int, np.integer)):
        return max(int(starts), 1)
    return max(len(starts), 1) if isinstance(starts, (list, tuple)) else 1


def _tune(
    run: Run, starts: Any, random_state: np.random.RandomState, only: int | None
) -> Descent | None:
    theta0 = run.objective.theta0
    if not len(theta0):
        return _at(run, theta0, "There is nothing to learn.", converged=True)
    if not run.optimizer.uses_start:
        return run.descend(theta0, "search")
    if isinstance(starts, str) and starts == "auto":
        if run.objective.problem.criterion.on_training:
            # No held-out points that could tell one start from another.
            return run.descend(theta0, "descent")
        known = survey.references(run.objective, random_state)
        return _with_rules(run, _auto(run, random_state, known), known)
    known = survey.references(run.objective, np.random.RandomState(run.seed))
    thetas = _starts(run.objective, starts, random_state, known)
    numbers = range(len(thetas)) if only is None else [only]
    descents = _descents(run, thetas, numbers)
    best = min(descents, key=lambda descent: descent.best.value, default=None)
    return None if best is None else _with_rules(run, best, known)


def _with_rules(run: Run, found: Descent, known: list[Reference]) -> Descent:
    """The answer, with the names of the simple rules that are right more often."""
    better = [one.words for one in known if one.beats(run.objective, found.best)]
    return replace(found, beaten_by=tuple(better))


def _descents(
    run: Run, thetas: list[np.ndarray], numbers: Iterable[int]
) -> list[Descent]:
    """A descent from every start that has a finite H, whatever the others do."""
    found = []
    for number in numbers:
        theta, stage = thetas[number], f"start {number + 1}"
        run.forget()
        run.settle(theta)
        alone = len(thetas) == 1
        if alone or np.isfinite(run.evaluate(theta, stage).value):
            descent = run.descend(theta, stage)
            found.append(replace(descent, near=run.objective.mean_fitted()))
    return found


def _at(run: Run, theta: np.ndarray, reason: str, *, converged: bool) -> Descent:
    """The answer where no descent came to an end."""
    if run.best is None:
        run.settle(theta)
    best = run.best or run.finish(theta, "last")
    gradient = upper_gradient(best, Whole(run.objective))
    return Descent(best, gradient, converged, reason)


def _auto(
    run: Run, random_state: np.random.RandomState, known: list[Reference]
) -> Descent:
    """One size for all, by way of a subsample if n is large; then the climb to many.

    Groups of samples get their own C before the climb, and without its proof of gain.
    """
    common = _coarse(run, random_state, known) or _common(run, known)
    common = _believed(run, common, known, random_state)
    if run.optimizer.expects_kinks and len(run.objective.theta0) == 1:
        common = _around(run, common)
    vectors = run.objective.space.vectors
    if any(kin.of_groups for kin in vectors):
        apart = run.descend(
            common.best.theta, "one C per group", tied=True, groups_apart=True
        )
        common = replace(apart, looks=common.looks)
    if not any(kin.tied and not kin.of_groups for kin in vectors):
        return common
    if run.objective.problem.landmarks and not run.objective.problem.approximated:
        # Few landmarks for one width do not serve many.
        run.release()
        whole = run.descend(common.best.theta, "one for all", common.result, tied=True)
        common = replace(whole, looks=common.looks)
    return climb(run, common)


def _coarse(
    run: Run,
    random_state: np.random.RandomState,
    known: list[Reference],
    looks: WhereToLook = survey.first_looks,
) -> Descent | None:
    """The common optimum by way of subsamples; None if there are none to take.

    Each is a few times as large as the one before and starts from its optimum: where a
    step is expensive, few are left to be taken. A sample that sees too little of what
    all rows show is left out.
    """
    problem = run.objective.problem
    n = len(problem.sample_weight)
    below: tuple[Run, Descent, int] | None = None
    # Linear machines cost no more than their rows: the first sample is enough for them.
    for size in ladder(n)[: 1 if problem.model.linear else None]:
        rows = _coarse_rows(run.objective, size, random_state)
        if rows is None:
            continue
        part = problem.subsample(rows)
        level = run.on(BilevelObjective.from_problem(part), loosened=ROUGHLY)
        own: list[Reference] = []
        if below is None:
            own = survey.references(level.objective, random_state)
            if any(
                few.seen < ENOUGH_SEEN * every.seen
                for few, every in zip(own, known, strict=True)
            ):
                continue
        try:
            found = (
                _common(level, own, "sketch", looks)
                if below is None
                else _next_level(level, *below, size, "sketch")
            )
        except StopTuning as stop:
            theta = _grown(run.objective, stop.theta, n / size)
            raise StopTuning(str(stop), theta) from None
        below = level, found, size
    return None if below is None else _next_level(run, *below, n, "one for all")


def _next_level(
    run: Run, below: Run, found: Descent, size_below: int, size: int, stage: str
) -> Descent:
    """A descent from the optimum of a smaller sample, and from its functions."""
    theta = _grown(run.objective, found.best.theta, size / size_below)
    run.objective.warm_up(below.objective)
    run.restrict(theta)
    further = run.descend(theta, stage, found.result, tied=True)
    return replace(further, looks=found.looks)


def ladder(n: int) -> list[int]:
    """Sizes of the samples on the way to n, in equal ratios of at most LADDER_RATIO."""
    if n < 2 * COARSE_ROWS:
        return []
    steps = int(np.ceil(np.log(n / COARSE_ROWS) / np.log(LADDER_RATIO)))
    ratio = (n / COARSE_ROWS) ** (1.0 / steps)
    return [round(COARSE_ROWS * ratio**k) for k in range(steps)]


def _coarse_rows(
    objective: BilevelObjective, size: int, random_state: np.random.RandomState
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


def _grown(objective: BilevelObjective, theta: np.ndarray, ratio: float) -> np.ndarray:
    """theta for a sample `ratio` times as large."""
    shrink = C_EXPONENT * np.log(ratio) * objective.space.has_role(PENALTY)
    return _within(objective, theta - shrink)


def _starts(
    objective: BilevelObjective,
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


def _within(objective: BilevelObjective, theta: np.ndarray) -> np.ndarray:
    return np.clip(theta, *objective.bounds.T)


def _common(
    run: Run,
    known: list[Reference],
    stage: str = "one for all",
    looks: WhereToLook = survey.first_looks,
) -> Descent:
    """One size for each vector: look at some points, descend from the best of them.

    From two, if they are far apart and nearly as good. An H with kinks is looked at
    where its smooth twin is lowest.
    """
    if _kinked(run):
        twin = _common(_smooth(run), known, "smooth", looks)
        points = [run.objective.theta0, twin.best.theta]
        seen = _looks(run, points, None)
        end = _over_kinks(run, survey.lowest(seen).theta, stage)
        return replace(end, looks=survey.looks_of(run.objective, seen, end.best))
    points = looks(run.objective, known)
    accuracy = None if len(points) < MANY_LOOKS else ROUGH
    seen = _looks(run, points, accuracy)
    if seen[-1].solved:
        closer = survey.closer_looks(run.objective, survey.lowest(seen).theta)
        seen += _looks(run, closer, None)
    ends = [run.descend(begin.theta, stage, tied=True) for begin in survey.basins(seen)]
    lowest = min(ends, key=lambda descent: descent.best.value)
    lowest = _neighbours(run, lowest, stage)
    return replace(lowest, looks=survey.looks_of(run.objective, seen, lowest.best))


def _neighbours(run: Run, found: Descent, stage: str) -> Descent:
    """The lowest minimum near the one found, as far as a few looks tell."""
    for _ in range(NEIGHBOUR_ROUNDS):
        points = survey.neighbours(run.objective, found.best.theta)
        looks = _looks(run, points, None)
        lower = [look for look in looks if look.value < (1 - WORTH) * found.best.value]
        if not lower:
            break
        begin = min(lower, key=lambda look: look.value)
        found = run.descend(begin.theta, stage, tied=True)
    return found


def _looks(run: Run, points: list[np.ndarray], accuracy: float | None) -> list[Look]:
    """H at these points; no more of them once machines could not be solved at several.

    So it is with columns whose units are many powers of ten apart.
    """
    seen: list[Look] = []
    for theta in points:
        run.settle(theta)
        at = run.evaluate(theta, "start", accuracy=accuracy)
        seen.append(Look(theta, at.value, at.converged))
        if sum(not look.solved for look in seen) >= UNSOLVED_LOOKS:
            break
    return seen


def _believed(
    run: Run,
    common: Descent,
    known: list[Reference],
    random_state: np.random.RandomState,
) -> Descent:
    """The answer, if it is no worse than simple rules on the same splits.

    Where it is, the descent was in the wrong basin: the whole range is mapped, on a
    sample if that shows as much, and the better of both answers counts.
    """
    best = run.objective, common.best
    if not any(one.beats(*best) for one in known):
        return common
    mapped = _coarse(run, random_state, known, survey.whole_map) or _common(
        run, known, "from the map", survey.whole_map
    )
    lower = min(common, mapped, key=lambda descent: descent.best.value)
    return replace(lower, looks=mapped.looks)


def _around(run: Run, found: Descent) -> Descent:
    """The lowest minimum nearby, where there are many along one line.

    Kinks make shallow minima beside each other, and which one a descent meets is
    chance. A scan looks over their edges; while it finds a lower place, a descent goes
    on from there.
    """
    scan = replace(run, optimizer=AROUND)
    while True:
        beyond = scan.descend(found.best.theta, "around")
        if not beyond.best.value < (1.0 - WORTH) * found.best.value:
            return found
        further = run.descend(beyond.best.theta, "beyond")
        found = replace(further, looks=found.looks)


def _kinked(run: Run) -> bool:
    """Whether H has kinks in several coordinates: with the exact hinge it has.

    Where a point comes to the margin or leaves it, the slope of H jumps. Methods for
    kinks, on both levels, or on samples of the rows, have their own way with them.
    """
    model, optimizer = run.objective.problem.model, run.optimizer
    own_way = (
        isinstance(optimizer, BothLevels)
        or optimizer.expects_kinks
        or optimizer.batch_size is not None
    )
    several = 1 < len(Tie(run.objective).sizes) <= FEW_COORDINATES
    return several and not model.loss.twice_differentiable and not own_way


def _smooth(run: Run) -> Run:
    """The run on the same problem with a rounded corner in place of the hinge's.

    Its H has no kinks, and its basins are those of the hinge.
    """
    problem = run.objective.problem
    model = replace(problem.model, loss=Quartic())
    smooth = replace(problem, model=model, solver=get_solver("auto", model.loss))
    return run.on(BilevelObjective.from_problem(smooth), loosened=ROUGHLY)


def _over_kinks(run: Run, theta: np.ndarray, stage: str) -> Descent:
    """The lowest place near theta, by values alone: gradients end at the first kink.

    Once a simplex that starts anew finds next to nothing that is lower, it is a
    minimum.
    """
    found: Descent | None = None
    for number in range(SIMPLEX_ROUNDS):
        search = replace(run, optimizer=SIMPLEXES[number % len(SIMPLEXES)])
        try:
            near = search.descend(theta, stage, tied=True)
        finally:
            # What it has found counts, even if it is interrupted.
            run.best = search.best
        theta, before = near.best.theta, np.inf if found is None else found.best.value
        still = before - near.best.value <= STILL * abs(near.best.value)
        found = replace(near, converged=near.converged and still)
        if found.converged:
            break
    assert found is not None
    return found


def climb(run: Run, common: Descent) -> Descent:
    """From one size for each vector of hyperparameters to all of them apart.

    From the common optimum alone features that matter little on their own are missed;
    narrow widths at C's start find them. Whether a step up is worth it shows before it
    is taken to its end: only the last one is. Then it must last: chosen anew without
    the rows of some splits, many hyperparameters must still gain on them.
    """
    objective = run.objective
    narrow = objective.theta0
    for kin in objective.space.vectors:
        if kin.tied and not kin.of_groups:
            narrow[kin.entries] = kin.log_unit + np.log(0.3)
    rough = run.on(objective, loosened=ROUGHLY)
    rough.best = run.best
    apart = min(
        (
            replace(rough.descend(start, "one for each", tentative=True), start=start)
            for start in (common.best.theta, _within(objective, narrow))
        ),
        key=lambda descent: descent.best.value,
    )
    gain = Gain.between(common.best, apart.best)
    up = Step("one for each", gain, APART_ERRORS)
    if not up.taken:
        return replace(common, steps=(up,))
    # H under different priors does not compare: the richer model is the better one.
    run.best = apart.best
    last, found = _weaken(run, rough, replace(apart, steps=(up,)))
    last = replace(last, optimizer=run.optimizer, best=found.best)
    try:
        end = last.descend(found.best.theta, "last steps", found.result)
    except StopTuning:
        run.best = last.best
        raise
    end = replace(end, start=found.start, steps=found.steps, looks=common.looks)
    return _lasting(run, common, end)


def _weaken(run: Run, rough: Run, found: Descent) -> tuple[Run, Descent]:
    """Trust the data more and the prior less, for as long as held-out points gain.

    The answer comes with the run, and so the prior, that it belongs to.
    """
    last, prior = rough, run.objective.problem.prior
    if prior is None:
        return last, found
    for factor in WEAKER:
        weaker = rough.on(run.objective.with_prior(prior.weakened(factor)))
        weaker.best = found.best
        further = weaker.descend(
            found.best.theta, "weaker prior", found.result, tentative=True
        )
        gain = Gain.between(found.best, further.best)
        step = Step("weaker prior", gain, WEAKEN_ERRORS)
        steps = (*found.steps, step)
        if not step.taken:
            return last, replace(found, steps=steps)
        last, found = weaker, replace(further, start=found.start, steps=steps)
        run.best = found.best
    return last, found


def _lasting(run: Run, common: Descent, found: Descent) -> Descent:
    """The answer with many hyperparameters, if its gain lasts; else the common one."""
    if not nested.possible(run, found):
        return found
    try:
        anew = list(nested.chosen_anew(run, found, nested.SPLITS, nested.STEPS))
        if not anew:
            return found
        gain = nested.lasting_gain(run, common, anew)
    except StopTuning as stop:
        # What was found stands, unproved: no time is left to ask whether it lasts.
        return replace(found, converged=False, reason=str(stop))
    last = Step("chosen without the judges", gain, LAST_ERRORS)
    steps = (*found.steps, last)
    if last.taken:
        return replace(found, anew=tuple(anew), steps=steps)
    run.best = common.best
    return replace(common, steps=steps)
