"""One evaluation and one descent: a trace goes in, a longer one comes out.

A descent moves theta in the coordinates of a `View`: all of its entries, or one shared
value for each vector of hyperparameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.bilevel.objective import Objective, WarmStart
from bisvm.bilevel.problem import Evaluation
from bisvm.core.space import Space
from bisvm.core.types import Array
from bisvm.optimizers import Optimizer
from bisvm.optimizers.base import into_balls
from bisvm.search.history import Comparison, PairedDifference, TriedStarts
from bisvm.search.observer import (
    Answer,
    Observer,
    Question,
    StopSearch,
    Trace,
    better,
)
from bisvm.search.reasons import NARROWER_AGAIN, Reason, optimizer_ended

# How often landmarks are chosen in one descent. Each choice makes H another function,
# and a search that leaves its landmarks four times in a row follows their error.
CHOICES_OF_LANDMARKS = 4
# Relative error of H from which on an evaluation is too rough to be used again: a
# hundred times the usual 1e-4.
ROUGH_ACCURACY = 0.01
# Factor of the tolerances while it is open whether a richer model is taken, and on
# subsamples: 1e-2 instead of 1e-3.
LOOSER = 10.0

# --- coordinates ----------------------------------------------------------------------


class View(Protocol):
    """Coordinates x in which theta is searched.

    bounds : (n, 2), of x
    balls : entries of x and the largest norm that they may have together
    sizes : natural step of every coordinate
    """

    bounds: Array
    balls: list[tuple[Array, float]]
    sizes: Array

    def expand(self, x: Array) -> Array: ...

    def reduce(self, theta: Array) -> Array: ...

    def pullback(self, theta: Array, gradient: Array) -> Array: ...


class AllCoordinates:
    """theta itself."""

    def __init__(self, space: Space):
        self.bounds = space.bounds
        self.balls = space.balls()
        self.sizes = space.sizes()

    def expand(self, x: Array) -> Array:
        return x

    def reduce(self, theta: Array) -> Array:
        return theta

    def pullback(self, theta: Array, gradient: Array) -> Array:
        return gradient


class UnitSteps:
    """Another view's coordinates, each divided by its natural step."""

    def __init__(self, view: View):
        self._view = view
        self.sizes = np.ones_like(view.sizes)
        self.bounds = view.bounds / view.sizes[:, None]
        # A ball lies within one parameter, whose entries have one size.
        self.balls = [
            (entries, radius / view.sizes[entries[0]]) for entries, radius in view.balls
        ]

    def expand(self, x: Array) -> Array:
        return self._view.expand(x * self._view.sizes)

    def reduce(self, theta: Array) -> Array:
        x: Array = self._view.reduce(theta) / self._view.sizes
        return x

    def pullback(self, theta: Array, gradient: Array) -> Array:
        slope: Array = self._view.pullback(theta, gradient) * self._view.sizes
        return slope


class SharedValues:
    """Fewer coordinates than theta: one shared value s for each vector of parameters.

    A vector of log-values becomes log unit + s, clipped to its bounds: features
    measured in different units get the same relevance.

    Parameters
    ----------
    space : Space
    separate_groups : whether values of groups of samples are not shared
    about : theta whose differences within a vector are kept; s is then a common shift
    """

    def __init__(
        self,
        space: Space,
        *,
        separate_groups: bool = False,
        about: Array | None = None,
    ):
        vectors = [
            vector
            for vector in space.vectors
            if vector.tied and not (separate_groups and vector.of_groups)
        ]
        n = len(space.theta0)
        owner, self._offset = np.full(n, -1), np.zeros(n)
        for number, vector in enumerate(vectors):
            owner[vector.entries] = number
            entries = vector.entries
            self._offset[entries] = vector.log_unit if about is None else about[entries]
        single, shared = np.flatnonzero(owner < 0), np.flatnonzero(owner >= 0)
        self._matrix = np.zeros((n, len(single) + len(vectors)))
        self._matrix[single, np.arange(len(single))] = 1.0
        self._matrix[shared, len(single) + owner[shared]] = 1.0
        self.balls = [
            (np.flatnonzero(self._matrix[entries].any(axis=0)), radius)
            for entries, radius in space.balls()
        ]
        # Shared values are logarithms, with steps of one.
        self.sizes = space.sizes() @ self._matrix / self._matrix.sum(axis=0)
        self._low, self._high = space.bounds.T
        low, high = self._low - self._offset, self._high - self._offset
        self.bounds = np.array(
            [[low[own].min(), high[own].max()] for own in (self._matrix > 0).T]
        )

    def expand(self, x: Array) -> Array:
        theta: Array = np.clip(self.expand_unbounded(x), self._low, self._high)
        return theta

    def expand_unbounded(self, x: Array) -> Array:
        """Return theta at x without clipping it to its bounds."""
        theta: Array = self._matrix @ x + self._offset
        return theta

    def coordinates_of(self, entries: Array) -> Array:
        """Return the coordinates that move only these entries, a mask of theta."""
        others = (self._matrix[~entries] > 0).any(axis=0)
        return np.flatnonzero(~others)

    def reduce(self, theta: Array) -> Array:
        """Return the nearest shared values: the mean over each vector."""
        total = self._matrix.T @ (theta - self._offset)
        x: Array = total / self._matrix.sum(axis=0)
        return x

    def pullback(self, theta: Array, gradient: Array) -> Array:
        """Entries held at a bound do not move with the shared value."""
        alone = self._matrix.sum(axis=0) == 1
        held = (theta <= self._low) | (theta >= self._high)
        held &= ~self._matrix[:, alone].any(axis=1)
        slope: Array = self._matrix.T @ np.where(held, 0.0, gradient)
        return slope


def clipped(objective: Objective, theta: Array) -> Array:
    """Return theta within its bounds."""
    within: Array = np.clip(theta, *objective.bounds.T)
    return within


def has_shared_values(space: Space, theta: Array) -> bool:
    """Whether the entries of every vector of hyperparameters are the same at theta."""
    view = SharedValues(space)
    return bool(np.allclose(view.expand(view.reduce(theta)), theta, atol=1e-6))


def upper_gradient(evaluation: Evaluation, view: View) -> float:
    """Largest entry of P(x - g) - x, with g the gradient of log H.

    P is the projection onto bounds and balls: where they hold x, a gradient that points
    outward does not count.
    """
    x = view.reduce(evaluation.theta)
    gradient = view.pullback(evaluation.theta, evaluation.gradient)
    size = max(abs(evaluation.value), np.finfo(float).tiny)
    moved = np.clip(x - gradient / size, view.bounds[:, 0], view.bounds[:, 1])
    return float(np.max(np.abs(into_balls(moved, view.balls) - x), initial=0.0))


# --- values ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Refitted:
    """theta chosen without the rows that one split holds out, and that split's H."""

    split: int
    theta: Array
    at: Evaluation


class SeparateStart(NamedTuple):
    """Which start a search for separate values had, and the shared values before it."""

    name: str
    shared: Array


@dataclass(frozen=True)
class Descent:
    """Where one descent ended.

    upper_gradient : largest entry of the projected gradient in the coordinates that
        were searched, relative to H
    fitted : fitted values of every class task, a warm start of the final machine
    start : where the search for separate values began, if it came to that
    steps : comparisons with richer models that were made on the way
    refitted : theta chosen again, without the held-out rows of some splits
    tried_starts : where H was evaluated before the descent, if starts were chosen
    over_constant : how much lower H is than that of a constant; None without held-out
        points
    beaten_by : simple rules that are right more often than the answer, in words
    """

    best: Evaluation
    upper_gradient: float
    converged: bool
    reason: Reason
    result: OptimizeResult | None = None
    fitted: Array | None = None
    start: SeparateStart | None = None
    steps: tuple[Comparison, ...] = ()
    refitted: tuple[Refitted, ...] = ()
    tried_starts: TriedStarts | None = None
    over_constant: PairedDifference | None = None
    beaten_by: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Plan:
    """Where a descent begins, and what it may move.

    previous : the optimizer's result on a similar problem
    shared : whether every vector of hyperparameters has one shared value
    separate_groups : but for those that belong to groups of samples
    tentative : whether the best point counts only if the caller accepts it
    about : theta whose differences within vectors are kept by a shared descent
    """

    theta: Array
    stage: str
    previous: OptimizeResult | None = None
    shared: bool = False
    separate_groups: bool = False
    tentative: bool = False
    about: Array | None = None


class DescentMethod(Protocol):
    """How an optimizer or a splitter descends that brings its own method.

    on_all_splits : whether H is the mean over all splits on its way
    """

    @property
    def on_all_splits(self) -> bool: ...

    def __call__(
        self, search: Search, trace: Trace, plan: Plan
    ) -> tuple[Descent, Trace]: ...


@dataclass(frozen=True, eq=False)
class Search:
    """What a search is made of; nothing of it changes.

    accuracy : largest relative error of an evaluation of H that does not ask for
        another one, as far as the lower level can be solved
    method : how it descends, if not by `descend`
    nested : whether it belongs to the nested cross-validation of another search
    partition : number of the one split that H is taken on; None for the mean over all
    separate : whether it goes on from shared to separate values
    target : H that the answer has to be below to be of use
    """

    objective: Objective
    optimizer: Optimizer
    observer: Observer
    accuracy: float = np.inf
    seed: int = 0
    method: DescentMethod | None = None
    separate: bool = True
    nested: bool = False
    partition: int | None = None
    target: float = np.inf

    def on(self, objective: Objective, loosened: float = 1.0) -> Search:
        """Return the search on a related objective, with looser tolerances.

        A target is one of its own objective alone.
        """
        optimizer = self.optimizer.loosened(loosened)
        return replace(self, objective=objective, optimizer=optimizer, target=np.inf)

    def view(self, plan: Plan) -> View:
        """Return the coordinates of a descent."""
        space = self.objective.space
        view: View = (
            SharedValues(space, separate_groups=plan.separate_groups, about=plan.about)
            if plan.shared
            else AllCoordinates(space)
        )
        return UnitSteps(view) if self.optimizer.wants_units else view

    def descend(
        self,
        trace: Trace,
        theta: Array,
        stage: str,
        previous: OptimizeResult | None = None,
        **options: Any,
    ) -> tuple[Descent, Trace]:
        """Run the optimizer from theta, with the options of a `Plan`."""
        return self.follow(trace, Plan(theta, stage, previous, **options))

    def follow(self, trace: Trace, plan: Plan) -> tuple[Descent, Trace]:
        """Run the optimizer as planned."""
        return (descend if self.method is None else self.method)(self, trace, plan)


# --- evaluations ----------------------------------------------------------------------


def evaluate(
    search: Search,
    trace: Trace,
    theta: Array,
    stage: str,
    *,
    tentative: bool = False,
    accuracy: float | None = None,
    final: bool = False,
) -> tuple[Evaluation, Trace]:
    """Evaluate H at theta, or recall it; may raise StopSearch.

    tentative : whether the evaluation cannot become the best point
    accuracy : relative error of H that is enough; None for the usual one
    final : whether no limit interrupts it
    """
    known = trace.remembered.get(theta.tobytes())
    usual = search.objective.usual_tol(trace.warm)
    if known is not None and _is_accurate(known, accuracy, usual):
        return known, trace
    part = search.objective, trace.warm
    question = _question(search, trace, part, theta, stage, accuracy)
    question = replace(question, counts=not tentative, final=final)
    remembered = accuracy is None or accuracy < ROUGH_ACCURACY
    try:
        answer = search.observer.evaluate(question)
    except StopSearch as stop:
        raise stop.with_trace(_extended(trace, stop.answer, remembered)) from None
    return answer.evaluation, _extended(trace, answer, remembered)


def _question(
    search: Search,
    trace: Trace,
    part: tuple[Objective, WarmStart],
    theta: Array,
    stage: str,
    accuracy: float | None,
) -> Question:
    """Without an accuracy, machines are solved to the usual tolerance first."""
    objective, warm = part
    return Question(
        objective,
        theta,
        warm,
        stage,
        accuracy=search.accuracy if accuracy is None else accuracy,
        tol=objective.usual_tol(warm) if accuracy is None else None,
        best=trace.best,
        nested=search.nested,
        partition=search.partition,
    )


def _extended(trace: Trace, answer: Answer | None, remembered: bool) -> Trace:
    if answer is None:
        return trace
    done = answer.evaluation
    n_solved = trace.n_solved + done.solves
    longer = replace(trace, warm=answer.warm, best=answer.best, n_solved=n_solved)
    return longer.remember(done) if remembered else longer


def _is_accurate(known: Evaluation, accuracy: float | None, usual_tol: float) -> bool:
    """Whether a remembered evaluation is accurate enough to be used again."""
    if accuracy is not None:
        return known.accuracy <= accuracy
    return known.residual <= 2.0 * usual_tol or not known.converged


def evaluate_elsewhere(
    search: Search,
    trace: Trace,
    part: tuple[Objective, WarmStart],
    theta: Array,
    stage: str,
    accuracy: float | None = None,
) -> Evaluation:
    """Evaluate H on part of the data, or on another partition; it never counts."""
    question = _question(search, trace, part, theta, stage, accuracy)
    question = replace(question, counts=False, keeps_warm_start=False)
    try:
        return search.observer.evaluate(question).evaluation
    except StopSearch as stop:
        raise stop.with_trace(trace) from None


def with_landmarks(search: Search, trace: Trace, theta: Array) -> Trace:
    """Choose landmarks for theta, if the machines need some and have others."""
    objective = search.objective
    if objective.landmarks_fit(trace.warm, theta):
        return trace
    return trace.on_other_machines(objective.restricted(trace.warm, theta))


# --- descents -------------------------------------------------------------------------


def descend(search: Search, trace: Trace, plan: Plan) -> tuple[Descent, Trace]:
    """Run the optimizer as planned.

    Landmarks are chosen for one theta. Where the search has left it they are chosen
    again, and it goes on.
    """
    for _ in range(CHOICES_OF_LANDMARKS):
        trace = with_landmarks(search, trace, plan.theta)
        found, trace = _descend(search, trace, plan)
        plan = replace(plan, theta=found.best.theta, previous=found.result)
        if search.objective.landmarks_fit(trace.warm, plan.theta):
            return found, trace
    return replace(found, converged=False, reason=NARROWER_AGAIN), trace


def _descend(search: Search, trace: Trace, plan: Plan) -> tuple[Descent, Trace]:
    view, stage, tentative = search.view(plan), plan.stage, plan.tentative
    best: Evaluation | None = None
    batches = _batches(search)

    def oracle(x: Array, accuracy: float | None) -> tuple[float, Array, float]:
        nonlocal best, trace
        at = view.expand(x)
        if batches is None:
            done, trace = evaluate(
                search, trace, at, stage, tentative=tentative, accuracy=accuracy
            )
            best = done if better(done, best) else best
        else:
            part = search.objective.on_rows(next(batches), trace.warm)
            done = evaluate_elsewhere(search, trace, part, at, stage, accuracy)
        return done.value, view.pullback(at, done.gradient), done.accuracy

    result = search.optimizer.towards(search.target).minimize(
        oracle, view.reduce(plan.theta), view.bounds, plan.previous, view.balls
    )
    if best is None:
        return end_of(search, trace, plan, view, result)
    return descent_at(search, best, view, result), trace


def end_of(
    search: Search, trace: Trace, plan: Plan, view: View, result: OptimizeResult
) -> tuple[Descent, Trace]:
    """Evaluate H where an optimizer has ended, and return the end of its descent."""
    theta = view.expand(result.x)
    best, trace = evaluate(search, trace, theta, plan.stage, tentative=plan.tentative)
    slope = view.pullback(theta, best.gradient)
    result = OptimizeResult({**result, "fun": best.value, "jac": slope})
    return descent_at(search, best, view, result), trace


def descent_at(
    search: Search, best: Evaluation, view: View, result: OptimizeResult
) -> Descent:
    """Return the end of a descent, with the optimizer's verdict."""
    gradient = upper_gradient(best, view)
    reason = optimizer_ended(search.optimizer, result)
    return Descent(best, gradient, bool(result.success), reason, result)


def _batches(search: Search) -> Iterator[Array] | None:
    """Rows drawn for one evaluation after the other; None for all of them."""
    size = search.optimizer.batch_size
    problem = search.objective.problem
    if size is None or size >= len(problem.sample_weight):
        return None
    kinds = problem.row_kinds
    return (
        stratified(kinds, size, np.random.default_rng([search.seed, number]))
        for number in count()
    )


def stratified(kinds: Array, size: int, rng: np.random.Generator) -> Array:
    """Draw rows at random, with every kind in its share."""
    n = len(kinds)
    order = np.lexsort((rng.permutation(n), kinds))
    places = (np.arange(size) + rng.random()) * (n / size)
    return np.sort(order[places.astype(int)])
