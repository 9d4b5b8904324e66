"""The one who watches a search: record, progress, callback, limits and checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bisvm.bilevel.evaluation import Evaluation
from bisvm.search import progress
from bisvm.search.checkpoint import Answers
from bisvm.search.history import Progress, Record
from bisvm.search.questions import Answer, Question, StopSearch, better

CALLBACK_STOP = "The callback asked for it."
TIME_STOP = "The time limit was reached."


class Observer:
    """Answers the questions of one search, and watches over it.

    Every evaluation is looked up in the checkpoint or solved, recorded, shown on
    standard error and told to the callback. A search is stopped by `StopSearch`.

    Parameters
    ----------
    began : reading of `time.perf_counter` at which the fit began
    deadline : reading after which the search is stopped, or None
    callback : called with a `Progress`; True stops
    verbose : see `progress`
    model : makes a fitted estimator of hyperparameters, for a callback
    task : number of the set of hyperparameters that is searched
    answers : of an earlier run of the same fit, and where new ones are kept

    Attributes
    ----------
    records : evaluations of the search
    judging : evaluations that judge the search
    """

    def __init__(
        self,
        *,
        began: float | None = None,
        deadline: float | None = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
        model: Callable[[dict[str, Any]], Any] | None = None,
        task: int = 0,
        answers: Answers | None = None,
    ):
        self.began = time.perf_counter() if began is None else began
        self.deadline = deadline
        self.records: list[Record] = []
        self.judging: list[Record] = []
        self._callback, self._verbose, self._model = callback, verbose, model
        self._task, self._answers = task, answers

    @property
    def is_late(self) -> bool:
        return self.deadline is not None and time.perf_counter() > self.deadline

    def evaluate(self, question: Question) -> Answer:
        """Answer a question; may raise `StopSearch` after the evaluation."""
        evaluation, warm, seconds, replayed = self._answered(question)
        best = question.best
        if question.counts and better(evaluation, best):
            best = evaluation
        log = self.judging if question.judging else self.records
        record = Record(
            number=len(log) + 1,
            stage=question.stage,
            task=0 if question.judging else self._task,
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

    def end(self) -> None:
        """End the live line of progress."""
        progress.end(self._verbose)

    def _answered(self, question: Question) -> tuple[Evaluation, Any, float, bool]:
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
        if self._verbose and not question.judging:
            limit = None if self.deadline is None else self.deadline - self.began
            lowest = np.nan if best is None else best.value
            progress.show(record, lowest, self._verbose, limit)
        if question.final:
            return
        theta = record.theta if best is None else best.theta
        callback = None if question.judging else self._callback
        if callback is not None and callback(self._progress(question, record, best)):
            raise StopSearch(CALLBACK_STOP, theta, answer)
        now = self.began + record.seconds if replayed else time.perf_counter()
        if self.deadline is not None and now > self.deadline:
            raise StopSearch(TIME_STOP, theta, answer)

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
