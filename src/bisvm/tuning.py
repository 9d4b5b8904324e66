"""One tuning run: evaluations with a record, limits, and descents."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm import progress
from bisvm.checkpoint import Journal
from bisvm.evaluation import Evaluation
from bisvm.gains import Gain, Step
from bisvm.history import Looks, Progress, Record
from bisvm.levels import Levels
from bisvm.objective import BilevelObjective
from bisvm.optimizers import BothLevels, Optimizer
from bisvm.optimizers.base import into_balls
from bisvm.splits import Columns

CALLBACK_STOP = "The callback asked for it."
TIME_STOP = "The time limit was reached."
UNSUITED = (
    "The search went on to narrower kernels than the landmarks were chosen for, again "
    "and again."
)
# How often landmarks are chosen in a descent.
CHOICES_OF_LANDMARKS = 4
# Bytes that the shares and decisions of remembered evaluations may take. With more rows
# than RIVAL_ROWS nobody asks for points that a search went by long ago.
SEEN_BYTES = 2**28
# Accuracy of H from which on an evaluation is too rough to be remembered.
ROUGH = 0.01
RIVAL_ROWS = 5000


class StopTuning(Exception):
    """Raised after an evaluation to end the run at `theta`, the best so far."""

    def __init__(self, reason: str, theta: np.ndarray):
        super().__init__(reason)
        self.theta = theta


@dataclass(frozen=True)
class Descent:
    """Where one descent ended.

    upper_gradient : largest entry of the projected gradient in the coordinates that
        were searched, relative to H
    near : fitted values of every class task, from which a final machine may start
    start : where the search for many hyperparameters began, if it climbed to them
    steps : steps up to more hyperparameters that were looked at on the way
    anew : theta chosen again, without the rows of some splits
    looks : where the search looked before it descended, if it chose where to start
    over_guess : the gain over a constant, if points were held out
    beaten_by : simple rules that are right more often than the answer, in words
    """

    best: Evaluation
    upper_gradient: float
    converged: bool
    reason: str
    result: OptimizeResult | None = None
    near: np.ndarray | None = None
    start: np.ndarray | None = None
    steps: tuple[Step, ...] = ()
    anew: tuple[Anew, ...] = ()
    looks: Looks | None = None
    over_guess: Gain | None = None
    beaten_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Anew:
    """theta chosen without the rows that one split holds out, and that split's H."""

    split: int
    theta: np.ndarray
    at: Evaluation


@dataclass
class Run:
    """Watches the evaluations of one objective: record, best point, limits, callback.

    It is the only place where a run's state changes. `best` is the best point that a
    stop may return; evaluations of a tentative descent count for it only once that
    descent is accepted. `accuracy` is the relative error of H that no evaluation
    exceeds that does not ask for another, as far as the lower level can be solved.
    `journal` keeps evaluations on file, and answers with those of a run that was
    interrupted. `beside` are evaluations that judge the search and are no part of it.
    """

    objective: BilevelObjective
    optimizer: Optimizer
    deadline: float | None = None
    callback: Callable[[Progress], Any] | None = None
    verbose: int = 0
    model: Callable[[dict[str, Any]], Any] | None = None
    task: int = 0
    seed: int = 0
    accuracy: float = np.inf
    began: float = field(default_factory=time.perf_counter)
    history: list[Record] = field(default_factory=list)
    beside: list[Record] = field(default_factory=list)
    best: Evaluation | None = None
    partition: int | None = None
    journal: Journal | None = None
    _seen: dict[bytes, Evaluation] = field(default_factory=dict)

    def on(self, objective: BilevelObjective, loosened: float = 1.0) -> Run:
        """A run on a related objective, under the same limits and record."""
        optimizer = self.optimizer.loosened(loosened)
        return replace(
            self, objective=objective, optimizer=optimizer, best=None, _seen={}
        )

    def evaluate(
        self,
        theta: np.ndarray,
        stage: str,
        *,
        tentative: bool = False,
        on: BilevelObjective | None = None,
        accuracy: float | None = None,
    ) -> Evaluation:
        """Evaluate, record, report; may raise StopTuning.

        on : a part of the data, instead of all
        accuracy : relative error of H that will do; None for the usual one
        """
        seen = self._seen.get(theta.tobytes()) if on is None else None
        if seen is not None and self._serves(seen, accuracy):
            return seen
        evaluation, seconds, replayed = self._evaluation(theta, stage, on, accuracy)
        if on is None and (accuracy is None or accuracy < ROUGH):
            self._remember(evaluation)
        if not tentative:
            self.accept(evaluation)
        record = Record(
            number=len(self.history) + 1,
            stage=stage,
            task=self.task,
            theta=evaluation.theta,
            value=evaluation.value,
            criterion=evaluation.criterion,
            gradient_norm=float(np.max(np.abs(evaluation.gradient), initial=0.0)),
            solves=evaluation.solves,
            inner_iterations=evaluation.iterations,
            residual=evaluation.residual,
            seconds=seconds,
            partition=self.partition,
        )
        self.history.append(record)
        self._report(record, replayed=replayed)
        return evaluation

    def _evaluation(
        self,
        theta: np.ndarray,
        stage: str,
        on: BilevelObjective | None,
        accuracy: float | None,
    ) -> tuple[Evaluation, float, bool]:
        """The evaluation, seconds since the run began, and whether it was on file."""
        objective = on or self.objective

        def solve() -> Evaluation:
            if accuracy is None:
                usual = objective.usual_tol
                return objective.evaluate_within(theta, self.accuracy, usual)
            return objective.evaluate_within(theta, accuracy)

        def clock() -> float:
            return time.perf_counter() - self.began

        if self.journal is None:
            return solve(), clock(), False
        return self.journal.evaluate(
            objective, theta, stage, accuracy, solve, clock, lasting=on is None
        )

    def _serves(self, seen: Evaluation, accuracy: float | None) -> bool:
        """Whether an evaluation was accurate enough to stand for another look."""
        if accuracy is not None:
            return seen.accuracy <= accuracy
        usual = 2.0 * self.objective.usual_tol
        return seen.residual <= usual or not seen.converged

    def _remember(self, evaluation: Evaluation) -> None:
        """Points are looked at again soon, or never: the oldest make room."""
        self._seen[evaluation.theta.tobytes()] = evaluation
        size = evaluation.shares.nbytes + evaluation.held_out.nbytes
        many = len(evaluation.shares) > RIVAL_ROWS
        kept = 2 if many else max(4, SEEN_BYTES // size)
        while len(self._seen) > kept:
            del self._seen[next(iter(self._seen))]

    @property
    def seen(self) -> list[Evaluation]:
        """Evaluations on all rows that are remembered."""
        return list(self._seen.values())

    def forget(self) -> None:
        """Let the next descent depend on nothing that went before."""
        self.objective.forget()
        if self.journal is not None:
            self.journal.renew(self.objective)
        self._seen.clear()

    def settle(self, theta: np.ndarray) -> None:
        """Choose landmarks for theta, if the machines need some and have others."""
        if not self.objective.suits(theta):
            self.objective.restrict(theta)
            self._seen.clear()

    def release(self) -> None:
        """Let the machines be functions of all rows."""
        self.objective.release()
        self._begin_anew()

    def restrict(self, theta: np.ndarray) -> None:
        """Let the machines be functions of few rows, if they carry the kernel there."""
        self.objective.restrict(theta)
        self._begin_anew()

    def _begin_anew(self) -> None:
        """What was seen belongs to other machines."""
        self.best = None
        self._seen.clear()

    def accept(self, evaluation: Evaluation) -> None:
        """Let this evaluation count for the best point."""
        if better(evaluation, self.best):
            self.best = evaluation

    def finish(self, theta: np.ndarray, stage: str) -> Evaluation:
        """A last evaluation that no limit interrupts.

        It is not kept on file: with a later limit the run would go on without it.
        """
        freely = replace(self, deadline=None, callback=None, journal=None)
        return freely.evaluate(theta, stage)

    def _report(self, record: Record, *, replayed: bool) -> None:
        if self.verbose:
            limit = None if self.deadline is None else self.deadline - self.began
            best = np.nan if self.best is None else self.best.value
            progress.show(record, best, self.verbose, limit)
        theta = record.theta if self.best is None else self.best.theta
        if self.callback is not None and self.callback(self._progress(record)):
            raise StopTuning(CALLBACK_STOP, theta)
        now = self.began + record.seconds if replayed else time.perf_counter()
        if self.deadline is not None and now > self.deadline:
            raise StopTuning(TIME_STOP, theta)

    def _progress(self, record: Record) -> Progress:
        best = record if self.best is None else self.best
        values = self.objective.hyperparameters(best.theta)
        model = self.model
        return Progress(
            record,
            best.value,
            self.objective.hyperparameters(record.theta),
            values,
            lambda: model(values) if model is not None else None,
        )

    def descend(
        self,
        theta: np.ndarray,
        stage: str,
        like: OptimizeResult | None = None,
        *,
        tied: bool = False,
        groups_apart: bool = False,
        tentative: bool = False,
    ) -> Descent:
        """Run the optimizer from theta.

        tied : every vector of hyperparameters is moved by its common size only
        groups_apart : but those that belong to groups of samples
        tentative : the best point counts only if the caller accepts it

        Landmarks are for one place: where the search has left it they are chosen anew,
        and it goes on.
        """
        how = {"tied": tied, "groups_apart": groups_apart, "tentative": tentative}
        for _ in range(CHOICES_OF_LANDMARKS):
            self.settle(theta)
            found = self._descend(theta, stage, like, **how)
            theta, like = found.best.theta, found.result
            if self.objective.suits(theta):
                return found
        return replace(found, converged=False, reason=UNSUITED)

    def _descend(
        self,
        theta: np.ndarray,
        stage: str,
        like: OptimizeResult | None,
        *,
        tied: bool,
        groups_apart: bool,
        tentative: bool,
    ) -> Descent:
        view = self.view(tied=tied, groups_apart=groups_apart)
        if isinstance(self.optimizer, BothLevels):
            return self._search(self.optimizer, view, theta, stage, tentative)
        best: Evaluation | None = None
        count = 0

        def oracle(
            x: np.ndarray, accuracy: float | None
        ) -> tuple[float, np.ndarray, float]:
            nonlocal best, count
            theta = view.expand(x)
            batch = self._batch(count)
            count += 1
            evaluation = self.evaluate(
                theta,
                stage,
                tentative=tentative or bool(batch),
                on=batch,
                accuracy=accuracy,
            )
            if batch is None and better(evaluation, best):
                best = evaluation
            gradient = view.pullback(theta, evaluation.gradient)
            return evaluation.value, gradient, evaluation.accuracy

        start = view.reduce(theta)
        result = self.optimizer.minimize(oracle, start, view.bounds, like, view.balls)
        if best is None:
            theta = view.expand(result.x)
            best = self.evaluate(theta, stage, tentative=tentative)
            result.fun, result.jac = best.value, view.pullback(theta, best.gradient)
        return Descent(
            best,
            upper_gradient(best, view),
            bool(result.success),
            str(result.message),
            result,
        )

    def view(self, *, tied: bool, groups_apart: bool) -> View:
        """The coordinates that a descent of this kind searches."""
        whole, objective = not tied, self.objective
        view: View = (
            Whole(objective) if whole else Tie(objective, groups_apart=groups_apart)
        )
        return InUnits(view) if self.optimizer.wants_units else view

    def _search(
        self,
        optimizer: BothLevels,
        view: View,
        theta: np.ndarray,
        stage: str,
        tentative: bool,
    ) -> Descent:
        """Steps on both levels; H is looked at where the method asks for it."""

        def evaluate(x: np.ndarray, columns: Columns | None = None) -> float:
            other = None if columns is None else self.objective.on_columns(columns)
            apart = tentative or other is not None
            at = view.expand(x)
            return self.evaluate(at, stage, tentative=apart, on=other).value

        levels = Levels(self.objective, view, evaluate, self.seed)
        result = optimizer.search(levels, view.reduce(theta))
        end = view.expand(result.x)
        best = self.evaluate(end, stage, tentative=tentative)
        result.fun, result.jac = best.value, view.pullback(end, best.gradient)
        gradient = upper_gradient(best, view)
        done = bool(result.success)
        return Descent(best, gradient, done, str(result.message), result)

    def _batch(self, number: int) -> BilevelObjective | None:
        """The objective on some rows, drawn for this evaluation; None for all."""
        size = self.optimizer.batch_size
        n = len(self.objective.problem.sample_weight)
        if size is None or size >= n:
            return None
        rng = np.random.default_rng([self.seed, number])
        kinds = self.objective.problem.row_kinds
        return self.objective.on_rows(stratified(kinds, size, rng))


def stratified(kinds: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Rows drawn at random, with every kind in its share."""
    n = len(kinds)
    order = np.lexsort((rng.permutation(n), kinds))
    places = (np.arange(size) + rng.random()) * (n / size)
    return np.sort(order[places.astype(int)])


def better(evaluation: Evaluation, than: Evaluation | None) -> bool:
    """Whether H is lower, or the same point was looked at more closely."""
    if than is None or not np.isfinite(evaluation.value):
        return bool(np.isfinite(evaluation.value))
    closer = evaluation.error < than.error
    same = closer and np.array_equal(evaluation.theta, than.theta)
    return bool(evaluation.value < than.value or same)


def upper_gradient(evaluation: Evaluation, view: View) -> float:
    """Largest entry of P(x - g) - x, with g the gradient of log H.

    P is the projection onto bounds and balls: where they hold x, a pull outward does
    not count.
    """
    x = view.reduce(evaluation.theta)
    gradient = view.pullback(evaluation.theta, evaluation.gradient)
    size = max(abs(evaluation.value), np.finfo(float).tiny)
    moved = np.clip(x - gradient / size, view.bounds[:, 0], view.bounds[:, 1])
    return float(np.max(np.abs(into_balls(moved, view.balls) - x), initial=0.0))


class View(Protocol):
    """Coordinates x in which theta is searched."""

    bounds: np.ndarray
    balls: list[tuple[np.ndarray, float]]
    sizes: np.ndarray

    def expand(self, x: np.ndarray) -> np.ndarray: ...

    def reduce(self, theta: np.ndarray) -> np.ndarray: ...

    def pullback(self, theta: np.ndarray, gradient: np.ndarray) -> np.ndarray: ...


class Whole:
    """theta itself."""

    def __init__(self, objective: BilevelObjective):
        self.bounds = objective.bounds
        self.balls = objective.space.balls()
        self.sizes = objective.space.sizes()

    def expand(self, x: np.ndarray) -> np.ndarray:
        return x

    def reduce(self, theta: np.ndarray) -> np.ndarray:
        return theta

    def pullback(self, theta: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return gradient


class InUnits:
    """Another view's coordinates, each divided by its natural step."""

    def __init__(self, view: View):
        self._view = view
        self.sizes = np.ones_like(view.sizes)
        self.bounds = view.bounds / view.sizes[:, None]
        # A ball lies within one parameter, whose entries have one size.
        self.balls = [
            (entries, radius / view.sizes[entries[0]]) for entries, radius in view.balls
        ]

    def expand(self, x: np.ndarray) -> np.ndarray:
        return self._view.expand(x * self._view.sizes)

    def reduce(self, theta: np.ndarray) -> np.ndarray:
        return self._view.reduce(theta) / self._view.sizes

    def pullback(self, theta: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return self._view.pullback(theta, gradient) * self._view.sizes


class Tie:
    """theta through fewer coordinates: one size s for each vector of parameters.

    A vector of log-values becomes log unit + s, as far as its bounds allow: features
    measured in different units get one common relevance.
    """

    def __init__(self, objective: BilevelObjective, *, groups_apart: bool = False):
        vectors = [
            kin
            for kin in objective.space.vectors
            if kin.tied and not (groups_apart and kin.of_groups)
        ]
        n = len(objective.theta0)
        owner, self._offset = np.full(n, -1), np.zeros(n)
        for number, kin in enumerate(vectors):
            owner[kin.entries], self._offset[kin.entries] = number, kin.log_unit
        single, tied = np.flatnonzero(owner < 0), np.flatnonzero(owner >= 0)
        self._matrix = np.zeros((n, len(single) + len(vectors)))
        self._matrix[single, np.arange(len(single))] = 1.0
        self._matrix[tied, len(single) + owner[tied]] = 1.0
        self.balls = [
            (np.flatnonzero(self._matrix[entries].any(axis=0)), radius)
            for entries, radius in objective.space.balls()
        ]
        # Those that are tied have logarithms, and steps of one.
        self.sizes = objective.space.sizes() @ self._matrix / self._matrix.sum(axis=0)
        self._low, self._high = objective.bounds.T
        self.bounds = np.array(
            [
                [
                    (self._low - self._offset)[own].min(),
                    (self._high - self._offset)[own].max(),
                ]
                for own in (self._matrix > 0).T
            ]
        )

    def expand(self, x: np.ndarray) -> np.ndarray:
        return np.clip(self.expand_freely(x), self._low, self._high)

    def expand_freely(self, x: np.ndarray) -> np.ndarray:
        """Without regard to bounds."""
        return self._matrix @ x + self._offset

    def holds(self, entries: np.ndarray) -> np.ndarray:
        """Which coordinates move only entries of theta that are marked here."""
        return ~(self._matrix[~entries] > 0).any(axis=0)

    def reduce(self, theta: np.ndarray) -> np.ndarray:
        """The nearest tied point: the mean over each vector."""
        return (self._matrix.T @ (theta - self._offset)) / self._matrix.sum(axis=0)

    def pullback(self, theta: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Entries held at a bound do not move with the common size."""
        alone = self._matrix.sum(axis=0) == 1
        held = (theta <= self._low) | (theta >= self._high)
        held &= ~self._matrix[:, alone].any(axis=1)
        return self._matrix.T @ np.where(held, 0.0, gradient)
