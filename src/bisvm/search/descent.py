"""Evaluations and descents: a trace goes in, a longer one comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.bilevel.evaluation import Evaluation
from bisvm.bilevel.objective import COLD, Objective, WarmStart
from bisvm.optimizers import Optimizer
from bisvm.search.gains import Gain, Step
from bisvm.search.history import Looks
from bisvm.search.observer import Observer
from bisvm.search.questions import Question, StopSearch, better
from bisvm.search.views import InUnits, Tied, View, Whole, upper_gradient

NARROWER_AGAIN = (
    "The search went on to narrower kernels than the landmarks were chosen for, again "
    "and again."
)
# How often landmarks are chosen in a descent.
CHOICES_OF_LANDMARKS = 4
# Bytes that the shares and decisions of remembered evaluations may take. With more rows
# than RIVAL_ROWS nobody asks for points that a search has left long ago.
SEEN_BYTES = 2**28
RIVAL_ROWS = 5000
# Accuracy of H from which on an evaluation is too rough to be remembered.
ROUGH = 0.01


@dataclass(frozen=True, eq=False)
class Trace:
    """What is known of one objective so far.

    warm : where the next solves start
    best : the lowest evaluation that counts, which a search that is stopped returns
    seen : evaluations that are remembered by their theta, the oldest first
    n_solved : lower-level problems solved
    """

    warm: Any = COLD
    best: Evaluation | None = None
    seen: Mapping[bytes, Evaluation] = field(default_factory=dict)
    n_solved: int = 0

    def with_landmarks_of(self, warm: WarmStart) -> Trace:
        """The machines are others: what was seen does not compare, but for the best."""
        return replace(self, warm=warm, seen={})

    def remember(self, evaluation: Evaluation) -> Trace:
        """Points are looked at again soon, or never: the oldest make room."""
        seen = {**self.seen, evaluation.theta.tobytes(): evaluation}
        size = evaluation.shares.nbytes + evaluation.held_out.nbytes
        many = len(evaluation.shares) > RIVAL_ROWS
        kept = 2 if many else max(4, SEEN_BYTES // size)
        while len(seen) > kept:
            del seen[next(iter(seen))]
        return replace(self, seen=seen)


@dataclass(frozen=True)
class Descent:
    """Where one descent ended.

    upper_gradient : largest entry of the projected gradient in the coordinates that
        were searched, relative to H
    fitted : fitted values of every class task, from which a final machine may start
    start : where the search for many hyperparameters began, if it climbed to them
    steps : steps up to more hyperparameters that were tried on the way
    refitted : theta chosen again, without the held-out rows of some splits
    looks : where the search looked before it descended, if it chose where to start
    over_guess : the gain over a constant, if points were held out
    beaten_by : simple rules that are right more often than the answer, in words
    """

    best: Evaluation
    upper_gradient: float
    converged: bool
    reason: str
    result: OptimizeResult | None = None
    fitted: np.ndarray | None = None
    start: np.ndarray | None = None
    steps: tuple[Step, ...] = ()
    refitted: tuple[Refitted, ...] = ()
    looks: Looks | None = None
    over_guess: Gain | None = None
    beaten_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refitted:
    """theta chosen without the rows that one split holds out, and that split's H."""

    split: int
    theta: np.ndarray
    at: Evaluation


class DescentMethod(Protocol):
    """How an optimizer or a splitter descends that brings its own way.

    on_all_splits : whether H is the mean over all splits on its way
    """

    @property
    def on_all_splits(self) -> bool: ...

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
    ) -> tuple[Descent, Trace]: ...


@dataclass(frozen=True, eq=False)
class Search:
    """What a search goes by; nothing of it changes.

    accuracy : relative error of H that no evaluation exceeds that does not ask for
        another, as far as the lower level can be solved
    method : how it descends, if not by `descend`
    judging : whether its evaluations judge another search
    partition : number of the one split that H is taken on; None for the mean over all
    """

    objective: Any
    optimizer: Optimizer
    observer: Observer
    accuracy: float = np.inf
    seed: int = 0
    method: DescentMethod | None = None
    judging: bool = False
    partition: int | None = None

    def on(self, objective: Objective, loosened: float = 1.0) -> Search:
        """The search on a related objective."""
        optimizer = self.optimizer.loosened(loosened)
        return replace(self, objective=objective, optimizer=optimizer)

    def view(self, *, tied: bool, groups_apart: bool = False) -> View:
        """The coordinates that a descent of this kind searches."""
        space = self.objective.space
        view: View = Tied(space, groups_apart=groups_apart) if tied else Whole(space)
        return InUnits(view) if self.optimizer.wants_units else view

    def descend(
        self, trace: Trace, theta: np.ndarray, stage: str, *args: Any, **how: bool
    ) -> tuple[Descent, Trace]:
        """Run the optimizer from theta, in the way of this search; see `descend`."""
        if self.method is None:
            return descend(self, trace, theta, stage, *args, **how)
        return self.method(self, trace, theta, stage, *args, **how)


def evaluate(
    search: Search,
    trace: Trace,
    theta: np.ndarray,
    stage: str,
    *,
    tentative: bool = False,
    accuracy: float | None = None,
    final: bool = False,
) -> tuple[Evaluation, Trace]:
    """Evaluate H at theta, or recall it; may raise StopSearch.

    tentative : the evaluation does not count for the best point
    accuracy : relative error of H that is good enough; None for the usual one
    final : no limit interrupts it
    """
    usual = search.objective.usual_tol(trace.warm)
    seen = trace.seen.get(theta.tobytes())
    if seen is not None and _serves(seen, accuracy, usual):
        return seen, trace
    question = Question(
        search.objective,
        theta,
        trace.warm,
        stage,
        accuracy=search.accuracy if accuracy is None else accuracy,
        tol=usual if accuracy is None else None,
        best=trace.best,
        counts=not tentative,
        judging=search.judging,
        final=final,
        partition=search.partition,
    )
    remembered = accuracy is None or accuracy < ROUGH
    try:
        answer = search.observer.evaluate(question)
    except StopSearch as stop:
        raise StopSearch(
            str(stop), stop.theta, _extended(trace, stop.trace, remembered)
        ) from None
    return answer.evaluation, _extended(trace, answer, remembered)


def _extended(trace: Trace, answer: Any, remembered: bool) -> Trace:
    done = answer.evaluation
    longer = replace(
        trace,
        warm=answer.warm,
        best=answer.best,
        n_solved=trace.n_solved + done.solves,
    )
    return longer.remember(done) if remembered else longer


def _serves(seen: Evaluation, accuracy: float | None, usual_tol: float) -> bool:
    """Whether an evaluation was accurate enough to stand for another look."""
    if accuracy is not None:
        return seen.accuracy <= accuracy
    return seen.residual <= 2.0 * usual_tol or not seen.converged


def evaluate_elsewhere(
    search: Search,
    trace: Trace,
    part: tuple[Objective, WarmStart],
    theta: np.ndarray,
    stage: str,
    accuracy: float | None = None,
) -> Evaluation:
    """H on a part of the data, or on another partition; it never counts."""
    objective, warm = part
    question = Question(
        objective,
        theta,
        warm,
        stage,
        accuracy=search.accuracy if accuracy is None else accuracy,
        tol=objective.usual_tol(warm) if accuracy is None else None,
        best=trace.best,
        counts=False,
        judging=search.judging,
        partition=search.partition,
        lasting=False,
    )
    try:
        return search.observer.evaluate(question).evaluation
    except StopSearch as stop:
        raise StopSearch(str(stop), stop.theta, trace) from None


def with_landmarks(search: Search, trace: Trace, theta: np.ndarray) -> Trace:
    """Choose landmarks for theta, if the machines need some and have others."""
    objective: Objective = search.objective
    if objective.landmarks_fit(trace.warm, theta):
        return trace
    return trace.with_landmarks_of(objective.restricted(trace.warm, theta))


def descend(
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
    """Run the optimizer from theta.

    previous : the optimizer's result on a similar problem
    tied : every vector of hyperparameters is moved by its common size only
    groups_apart : but those that belong to groups of samples
    tentative : the best point counts only if the caller accepts it

    Landmarks are for one place: where the search has left it they are chosen again, and
    it goes on.
    """
    view = search.view(tied=tied, groups_apart=groups_apart)
    for _ in range(CHOICES_OF_LANDMARKS):
        trace = with_landmarks(search, trace, theta)
        found, trace = _descend(search, trace, theta, stage, previous, view, tentative)
        theta, previous = found.best.theta, found.result
        if search.objective.landmarks_fit(trace.warm, theta):
            return found, trace
    return replace(found, converged=False, reason=NARROWER_AGAIN), trace


def _descend(
    search: Search,
    trace: Trace,
    theta: np.ndarray,
    stage: str,
    previous: OptimizeResult | None,
    view: View,
    tentative: bool,
) -> tuple[Descent, Trace]:
    best: Evaluation | None = None
    batches = _batches(search)

    def oracle(
        x: np.ndarray, accuracy: float | None
    ) -> tuple[float, np.ndarray, float]:
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

    result = search.optimizer.minimize(
        oracle, view.reduce(theta), view.bounds, previous, view.balls
    )
    if best is None:
        theta = view.expand(result.x)
        best, trace = evaluate(search, trace, theta, stage, tentative=tentative)
        slope = view.pullback(theta, best.gradient)
        result = OptimizeResult({**result, "fun": best.value, "jac": slope})
    return found_at(best, view, result), trace


def found_at(best: Evaluation, view: View, result: OptimizeResult) -> Descent:
    """The end of a descent, as the optimizer's result tells it."""
    gradient = upper_gradient(best, view)
    return Descent(best, gradient, bool(result.success), str(result.message), result)


def _batches(search: Search) -> Iterator[np.ndarray] | None:
    """Rows drawn for one evaluation after the other; None for all of them."""
    size = search.optimizer.batch_size
    if size is None:
        return None
    problem = search.objective.problem
    if size >= len(problem.sample_weight):
        return None
    kinds = problem.row_kinds
    return (
        stratified(kinds, size, np.random.default_rng([search.seed, number]))
        for number in count()
    )


def stratified(kinds: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Rows drawn at random, with every kind in its share."""
    n = len(kinds)
    order = np.lexsort((rng.permutation(n), kinds))
    places = (np.arange(size) + rng.random()) * (n / size)
    return np.sort(order[places.astype(int)])
