"""The observer of a search: records, progress, callback, time limit and checkpoint.

A search is a deterministic function of the answers that it gets: a `Question` with all
that the answer depends on goes in, an `Answer` comes out. The `Observer` looks the
answer up in the checkpoint of an earlier run, or evaluates the objective.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from bisvm.bilevel.objective import COLD, Objective
from bisvm.bilevel.problem import Evaluation
from bisvm.core.deadlines import OutOfTime, until
from bisvm.core.interrupts import asked_to_stop
from bisvm.core.types import Array
from bisvm.search import progress
from bisvm.search.history import Hyperparameters, Progress, Record
from bisvm.search.reasons import CALLBACK_STOP, INTERRUPT_STOP, TIME_STOP, Reason

# Seconds beyond a time limit for which an evaluation may go on: the first of a small
# table, say, while its code is compiled.
GRACE = 1.0
# Bytes that remembered evaluations may take. With more rows than COMPETITOR_ROWS nobody
# asks for points that a search has left (see `results`), and two are remembered.
REMEMBERED_BYTES = 2**28
COMPETITOR_ROWS = 5000

# What one evaluation of an objective leaves to the next: `bilevel.WarmStart`, or what
# the objective of a published method uses instead.
Warm: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class Trace:
    """What is known of one objective so far.

    warm : warm start of the next evaluation
    best : the lowest evaluation that counts, which a search that is stopped returns
    remembered : evaluations by the bytes of their theta, the oldest first
    n_solved : lower-level problems solved
    """

    warm: Warm = COLD
    best: Evaluation | None = None
    remembered: Mapping[bytes, Evaluation] = field(default_factory=dict)
    n_solved: int = 0

    def on_other_machines(self, warm: Warm) -> Trace:
        """Forget evaluations of other machines, whose H does not compare."""
        return replace(self, warm=warm, remembered={})

    def remember(self, evaluation: Evaluation) -> Trace:
        """Add an evaluation; the oldest ones make room."""
        kept = {**self.remembered, evaluation.theta.tobytes(): evaluation}
        size = evaluation.shares.nbytes + evaluation.held_out.nbytes
        many = len(evaluation.shares) > COMPETITOR_ROWS
        while len(kept) > (2 if many else max(4, REMEMBERED_BYTES // size)):
            del kept[next(iter(kept))]
        return replace(self, remembered=kept)


class StopSearch(Exception):
    """Raised by a callback, a time limit or an interrupt.

    A time limit ends an evaluation half way; the others are looked at after it.

    Attributes
    ----------
    reason : who or what stopped it
    theta : where to end if no evaluation counts so far; None for the first theta
    trace : what is known of the objective on all rows
    answer : the last evaluation, before it is part of a trace; None if it was left half
        way
    """

    def __init__(
        self,
        reason: Reason,
        theta: Array | None,
        trace: Trace | None = None,
        answer: Answer | None = None,
    ):
        super().__init__(str(reason))
        self.reason = reason
        self.theta = theta
        self.trace = Trace() if trace is None else trace
        self.answer = answer

    def with_trace(self, trace: Trace) -> StopSearch:
        """Return the same stop with what the caller knows of its objective."""
        return StopSearch(self.reason, self.theta, trace)


@dataclass(frozen=True, eq=False)
class Question:
    """One evaluation that a search asks for.

    objective, theta, warm, accuracy, tol : what the answer depends on
    stage : what the search is doing, in words
    best : the lowest evaluation so far that counts
    counts : whether this one may become the best
    nested : whether it belongs to a nested cross-validation, and not to the search
    final : whether no limit interrupts it. It is not kept on file: with a later limit
        the search would go on without it
    partition : number of the one split that H is taken on; None for the mean over all
    keeps_warm_start : whether the objective is evaluated again, from this warm start
    """

    objective: Objective
    theta: Array
    warm: Warm
    stage: str
    accuracy: float | None = None
    tol: float | None = None
    best: Evaluation | None = None
    counts: bool = True
    nested: bool = False
    final: bool = False
    partition: int | None = None
    keeps_warm_start: bool = True

    def solve(self) -> tuple[Evaluation, Warm]:
        return self.objective.evaluate(self.theta, self.warm, self.accuracy, self.tol)


@dataclass(frozen=True, eq=False)
class Answer:
    """The evaluation, the next warm start, and the best evaluation so far."""

    evaluation: Evaluation
    warm: Warm
    best: Evaluation | None


def better(evaluation: Evaluation, than: Evaluation | None) -> bool:
    """Whether H is lower, or known more accurately at the same point."""
    if than is None or not np.isfinite(evaluation.value):
        return bool(np.isfinite(evaluation.value))
    closer = evaluation.error < than.error
    same = closer and np.array_equal(evaluation.theta, than.theta)
    return bool(evaluation.value < than.value or same)


class StoredAnswers(Protocol):
    """The answers of an earlier run of the same search, and where new ones are kept."""

    def answer(
        self, question: Question, clock: Callable[[], float]
    ) -> tuple[Evaluation, Warm, float, bool]: ...


class Observer:
    """Answers the questions of one search, and watches it.

    Every evaluation is looked up in the checkpoint or computed, recorded, shown on
    standard error and passed to the callback. `StopSearch` stops the search.

    Parameters
    ----------
    began : reading of `time.perf_counter` at which the fit began
    deadline : reading at which the final machine should be trained, or None
    final_share : time that it takes to train the final machine, as a share of an
        evaluation on all rows
    most_final : seconds that are kept for the final machine at most
    n_observations, power : those of all rows, and how the time grows with them
    callback : called with a `Progress`; True stops
    verbose : see `progress`
    model : makes a fitted estimator from hyperparameters, for a callback
    task : number of the set of hyperparameters that is searched
    answers : of an earlier run of the same fit, and where new ones are kept

    Attributes
    ----------
    records : evaluations of the search
    nested_records : evaluations of its nested cross-validation
    """

    def __init__(
        self,
        *,
        began: float | None = None,
        deadline: float | None = None,
        final_share: float = 0.0,
        most_final: float = np.inf,
        n_observations: int = 1,
        power: float = 1.0,
        callback: Callable[[Progress], object] | None = None,
        verbose: int = 0,
        model: Callable[[Hyperparameters], object] | None = None,
        task: int = 0,
        answers: StoredAnswers | None = None,
    ):
        self.began = time.perf_counter() if began is None else began
        self.deadline = deadline
        self._final_share, self._power = final_share, power
        self._most_final = most_final
        self._n_observations = n_observations
        # Estimates of the time that the final machine takes, the last one counts.
        self._final_seconds = [most_final if most_final < np.inf else 0.0]
        self.records: list[Record] = []
        self.nested_records: list[Record] = []
        self._callback, self._verbose, self._model = callback, verbose, model
        self._task, self._answers = task, answers

    @property
    def is_late(self) -> bool:
        """Whether nothing more should begin."""
        return self._is_over(time.perf_counter()) or asked_to_stop()

    def _is_over(self, now: float) -> bool:
        """Whether no more time is left than the final machine takes."""
        return (
            self.deadline is not None and now > self.deadline - self._final_seconds[-1]
        )

    def evaluate(self, question: Question) -> Answer:
        """Answer a question; may raise `StopSearch`."""
        best = question.best
        limit = None if question.final else self.deadline
        if limit is not None:
            limit += GRACE - self._final_seconds[-1]
        try:
            with until(limit):
                evaluation, warm, seconds, replayed = self._answered(question)
        except OutOfTime:
            theta = None if best is None else best.theta
            raise StopSearch(TIME_STOP, theta) from None
        self._expect(evaluation)
        if question.counts and better(evaluation, best):
            best = evaluation
        log = self.nested_records if question.nested else self.records
        record = Record(
            number=len(log) + 1,
            stage=question.stage,
            task=0 if question.nested else self._task,
            theta=evaluation.theta,
            value=evaluation.value,
            criterion=evaluation.criterion,
            gradient_norm=float(np.max(np.abs(evaluation.gradient), initial=0.0)),
            solves=evaluation.solves,
            inner_iterations=evaluation.iterations,
            residual=evaluation.residual,
            seconds=seconds,
            partition=question.partition,
        )
        log.append(record)
        answer = Answer(evaluation, warm, best)
        self._report(question, record, answer, replayed=replayed)
        return answer

    def _expect(self, evaluation: Evaluation) -> None:
        """Estimate the time of the final machine by that of an evaluation."""
        more = self._n_observations / max(len(evaluation.shares), 1)
        share = self._final_share * max(more, 1.0) ** self._power
        seconds = min(share * evaluation.seconds, self._most_final)
        self._final_seconds.append(seconds)

    def end(self) -> None:
        """End the live line of progress."""
        if self._verbose:
            progress.end(self._verbose)

    def _answered(self, question: Question) -> tuple[Evaluation, Warm, float, bool]:
        """Evaluation, warm start, seconds of the fit, and whether it was on file."""
        if self._answers is None or question.final:
            evaluation, warm = question.solve()
            return evaluation, warm, self._seconds(), False
        return self._answers.answer(question, self._seconds)

    def _seconds(self) -> float:
        return time.perf_counter() - self.began

    def _report(
        self, question: Question, record: Record, answer: Answer, *, replayed: bool
    ) -> None:
        best = answer.best
        if self._verbose and not question.nested:
            limit = None if self.deadline is None else self.deadline - self.began
            lowest = np.nan if best is None else best.value
            progress.show(record, lowest, self._verbose, limit)
        if question.final:
            return
        theta = record.theta if best is None else best.theta
        callback = None if question.nested else self._callback
        if callback is not None and callback(self._progress(question, record, best)):
            raise StopSearch(CALLBACK_STOP, theta, answer=answer)
        now = self.began + record.seconds if replayed else time.perf_counter()
        if self._is_over(now):
            raise StopSearch(TIME_STOP, theta, answer=answer)
        if asked_to_stop():
            raise StopSearch(INTERRUPT_STOP, theta, answer=answer)

    def _progress(
        self, question: Question, record: Record, best: Evaluation | None
    ) -> Progress:
        named = question.objective.hyperparameters
        values = named((record if best is None else best).theta)
        model = self._model
        return Progress(
            record,
            record.value if best is None else best.value,
            named(record.theta),
            values,
            lambda: model(values) if model is not None else None,
        )
