"""The evaluations of one unit: answered from the file first, and then put on it.

Why the answer is the same bit for bit. A search is a deterministic function of the
answers it gets, and those on file come back unchanged. An evaluation besides depends on
the objective's state: fitted values, from which the solver starts, and what is known of
errors. States are restored when the last line of an objective is replayed. Before that
nobody reads them: what derives an objective from the state of another (a prior that is
weakened, the next sample, the next partition) evaluates it at once, so that either this
evaluation is on file as well, or there is no later line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from bisvm.checkpoint.lines import Entry
from bisvm.checkpoint.states import State
from bisvm.evaluation import Evaluation

if TYPE_CHECKING:
    from bisvm.checkpoint.files import Checkpoint


class Journal:
    """Lines of one unit, and the states after them.

    Parameters
    ----------
    file : where new lines go
    unit : its name
    entries : lines on file
    states : state of every objective after its last line

    Attributes
    ----------
    replayed : lines that have been asked for again
    """

    def __init__(
        self,
        file: Checkpoint,
        unit: str,
        entries: list[Entry],
        states: dict[int, State],
    ):
        self.unit, self.replayed = unit, 0
        self._file, self._entries, self._states = file, entries, states
        self._last = {entry.key: entry.number for entry in entries}
        self._count = len(entries)
        # An objective is known by the order in which it is first evaluated.
        self._keys: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._n_keys = 0

    def __len__(self) -> int:
        return self._count

    def renew(self, objective: Any) -> None:
        """What an objective's state was is kept; it goes on as if it were another."""
        self._keys.pop(objective, None)

    def evaluate(
        self,
        objective: Any,
        theta: np.ndarray,
        stage: str,
        accuracy: float | None,
        solve: Callable[[], Evaluation],
        clock: Callable[[], float],
        *,
        lasting: bool,
    ) -> tuple[Evaluation, float, bool]:
        """The evaluation, seconds of the run until then, and whether it was on file.

        lasting : whether the objective will be evaluated again
        """
        key = self._key(objective) if lasting else None
        if self.replayed < len(self._entries):
            entry = self._entries[self.replayed]
            self._check(entry, objective, key, theta, stage, accuracy)
            self.replayed += 1
            return self._recalled(entry, objective), entry.at, True
        evaluation = solve()
        seconds = clock()
        self._put(evaluation, key, stage, accuracy, seconds, objective)
        return evaluation, seconds, False

    def _key(self, objective: Any) -> int:
        if objective not in self._keys:
            self._keys[objective] = self._n_keys
            self._n_keys += 1
        return self._keys[objective]

    def _check(
        self,
        entry: Entry,
        objective: Any,
        key: int | None,
        theta: np.ndarray,
        stage: str,
        accuracy: float | None,
    ) -> None:
        """Whether the line answers this question."""
        same = (
            entry.key == key
            and entry.stage == stage
            and entry.accuracy == accuracy
            and entry.theta.tobytes() == theta.tobytes()
            and len(entry.gradient) == len(theta)
            and len(entry.shares) == len(objective.share_weights)
        )
        if not same:
            raise ValueError(
                f"{self._file.path}: evaluation {entry.number} ({entry.stage!r} at "
                f"theta = {entry.theta}) is not the one that this run comes to "
                f"({stage!r} at theta = {theta}). It was written by another version "
                "or on another kind of machine: go on there, or choose another file to "
                "begin anew."
            )

    def _recalled(self, entry: Entry, objective: Any) -> Evaluation:
        landmarks = objective.own_landmarks() if entry.landmarks else None
        if entry.key is not None and self._last[entry.key] == entry.number:
            self._restore(objective, self._states.pop(entry.key))
        objective.n_svm_evaluations += entry.solves
        return entry.evaluation(objective.share_weights, landmarks)

    def _restore(self, objective: Any, state: State) -> None:
        try:
            objective.state = state
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"{self._file.states.folder} is damaged: it holds no state of this "
                "objective. Remove that folder to have its evaluations done again."
            ) from None

    def _put(
        self,
        evaluation: Evaluation,
        key: int | None,
        stage: str,
        accuracy: float | None,
        seconds: float,
        objective: Any,
    ) -> None:
        self._count += 1
        entry = Entry(
            unit=self.unit,
            number=self._count,
            key=key,
            stage=stage,
            theta=evaluation.theta,
            accuracy=None if accuracy is None else float(accuracy),
            value=evaluation.value,
            gradient=evaluation.gradient,
            shares=evaluation.shares,
            held_out=evaluation.held_out,
            criterion=evaluation.criterion,
            residual=evaluation.residual,
            solves=int(evaluation.solves),
            iterations=int(evaluation.iterations),
            converged=bool(evaluation.converged),
            error=evaluation.error,
            seconds=evaluation.seconds,
            landmarks=evaluation.landmarks is not None,
            at=seconds,
        )
        if key is not None:
            self._file.states.keep(entry, objective.state)
        self._file.append(entry.as_json())
