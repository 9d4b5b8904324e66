"""What a search asks, and what it is answered.

A search is a deterministic function of the answers that it gets: a question with all
that the answer depends on, in; an evaluation and the next warm start, out. Whoever
answers (`observer`) may look the answer up instead of computing it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bisvm.bilevel.evaluation import Evaluation


class StopSearch(Exception):
    """Raised after an evaluation to end the search, by a callback or a time limit.

    Attributes
    ----------
    theta : where to end if nothing that was found so far counts
    trace : what is known of the objective on all rows, or None
    """

    def __init__(self, reason: str, theta: np.ndarray, trace: Any = None):
        super().__init__(reason)
        self.theta = theta
        self.trace = trace


@dataclass(frozen=True, eq=False)
class Question:
    """One evaluation that a search asks for.

    objective, theta, warm, accuracy, tol : what the answer depends on
    stage : what the search is doing, in words
    best : the lowest evaluation so far that counts
    counts : whether this one may become the best
    judging : whether it judges the search, and is no part of it
    final : whether no limit interrupts it. It is not kept on file: with a later limit
        the search would go on without it
    partition : number of the one split that H is taken on; None for the mean over all
    lasting : whether the objective is evaluated again, from this one's warm start
    """

    objective: Any
    theta: np.ndarray
    warm: Any
    stage: str
    accuracy: float | None = None
    tol: float | None = None
    best: Evaluation | None = None
    counts: bool = True
    judging: bool = False
    final: bool = False
    partition: int | None = None
    lasting: bool = True

    def solve(self) -> tuple[Evaluation, Any]:
        return self.objective.evaluate(self.theta, self.warm, self.accuracy, self.tol)


@dataclass(frozen=True, eq=False)
class Answer:
    """The evaluation, where the next one starts, and the best one so far."""

    evaluation: Evaluation
    warm: Any
    best: Evaluation | None


def better(evaluation: Evaluation, than: Evaluation | None) -> bool:
    """Whether H is lower, or the same point was looked at more closely."""
    if than is None or not np.isfinite(evaluation.value):
        return bool(np.isfinite(evaluation.value))
    closer = evaluation.error < than.error
    same = closer and np.array_equal(evaluation.theta, than.theta)
    return bool(evaluation.value < than.value or same)
