"""One tuning run: from starts to the best theta, within limits, with a record."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.history import Certificate, Progress, Record
from bisvm.objective import BilevelObjective, Evaluation
from bisvm.optimizers import Optimizer


class StopTuning(Exception):
    """Raised inside an evaluation to end the run; `best` so far stands."""

    def __init__(self, reason: str, best: Evaluation):
        super().__init__(reason)
        self.best = best


@dataclass
class Run:
    """Watches the evaluations of one objective: record, best point, limits, callback.

    It is the only place where a run's state changes.
    """

    objective: BilevelObjective
    optimizer: Optimizer
    deadline: float | None = None
    callback: Callable[[Progress], Any] | None = None
    verbose: int = 0
    model: Callable[[dict[str, Any]], Any] | None = None
    task: int = 0
    began: float = field(default_factory=time.perf_counter)
    history: list[Record] = field(default_factory=list)
    best: Evaluation | None = None
    _seen: dict[bytes, Evaluation] = field(default_factory=dict)

    def on(self, objective: BilevelObjective, loosened: float = 1.0) -> Run:
        """A run on a related objective, under the same limits and record."""
        optimizer = self.optimizer.loosened(loosened)
        return replace(
            self, objective=objective, optimizer=optimizer, best=None, _seen={}
        )

    def evaluate(self, theta: np.ndarray, stage: str) -> Evaluation:
        """Evaluate, record, report; may raise StopTuning."""
        seen = self._seen.get(theta.tobytes())
        if seen is not None:
            return seen
        evaluation = self.objective.evaluate(theta)
        self._seen[theta.tobytes()] = evaluation
        if np.isfinite(evaluation.value) and (
            self.best is None or evaluation.value < self.best.value
        ):
            self.best = evaluation
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
            seconds=time.perf_counter() - self.began,
        )
        self.history.append(record)
        self._report(record)
        return evaluation

    def _report(self, record: Record) -> None:
        if self.verbose:
            self._print(record)
        if self.callback is not None and self.best is not None:
            objective, best = self.objective, self.best
            values = objective.hyperparameters(best.theta)
            model = self.model
            progress = Progress(
                record,
                best.value,
                objective.hyperparameters(record.theta),
                values,
                lambda: model(values) if model is not None else None,
            )
            if self.callback(progress):
                raise StopTuning("The callback asked for it.", best)
        late = self.deadline is not None and time.perf_counter() > self.deadline
        if late and self.best is not None:
            raise StopTuning("The time limit was reached.", self.best)

    def _print(self, record: Record) -> None:
        if record.number == 1:
            print(
                f"{'eval':>5} {'loss':>10} {'best':>10} {'gradient':>9} {'seconds':>8}"
                "  stage",
                file=sys.stderr,
            )
        assert self.best is not None
        print(
            f"{record.number:5d} {record.value:10.6f} {self.best.value:10.6f} "
            f"{record.gradient_norm:9.1e} {record.seconds:8.2f}  {record.stage}",
            file=sys.stderr,
            flush=True,
        )

    def descend(
        self, theta: np.ndarray, stage: str, like: OptimizeResult | None = None
    ) -> Descent:
        """Run the optimizer from theta; what it says, and the best evaluation of it."""
        return self._descend(_Identity(self.objective.bounds), theta, stage, like)

    def look_tied(self, theta: np.ndarray, stage: str) -> Evaluation:
        """Evaluate at the tied point nearest to theta."""
        tie = Tie(self.objective)
        return self.evaluate(tie.expand(tie.reduce(theta)), stage)

    def descend_tied(
        self, theta: np.ndarray, stage: str, like: OptimizeResult | None = None
    ) -> Descent:
        """The same with every vector of hyperparameters tied to a common size."""
        tie = Tie(self.objective)
        return self._descend(tie, tie.reduce(theta), stage, like)

    def _descend(
        self, view: Any, start: np.ndarray, stage: str, like: OptimizeResult | None
    ) -> Descent:
        best: list[Evaluation] = []

        def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
            evaluation = self.evaluate(view.expand(x), stage)
            if not best or evaluation.value < best[0].value:
                best[:] = [evaluation]
            return evaluation.value, view.pullback(evaluation.gradient)

        result = self.optimizer.minimize(fun, start, view.bounds, like)
        return Descent(best[0], result)


@dataclass(frozen=True)
class Descent:
    """Where one descent ended: its best evaluation, and the optimizer's result.

    `result` is None where no optimizer came to an end; `reason` then says why.
    """

    best: Evaluation
    result: OptimizeResult | None
    reason: str = ""
    converged: bool = True

    def certificate(self, bounds: np.ndarray) -> Certificate:
        """How near to optimal the best evaluation is, on both levels."""
        gradient = projected(self.best.theta, self.best.gradient, bounds)
        size = float(np.max(np.abs(gradient), initial=0.0))
        done = self.converged and (self.result is None or bool(self.result.success))
        return Certificate(
            lower_residual=self.best.residual,
            upper_gradient=size / max(abs(self.best.value), 1e-300),
            converged=done,
            reason=self.reason if self.result is None else str(self.result.message),
        )


def projected(
    theta: np.ndarray, gradient: np.ndarray, bounds: np.ndarray
) -> np.ndarray:
    """The gradient without entries that point out of the bounds."""
    low, high = bounds[:, 0], bounds[:, 1]
    outward = ((theta <= low) & (gradient > 0)) | ((theta >= high) & (gradient < 0))
    return np.where(outward, 0.0, gradient)


@dataclass(frozen=True)
class _Identity:
    bounds: np.ndarray

    def expand(self, x: np.ndarray) -> np.ndarray:
        return x

    def pullback(self, gradient: np.ndarray) -> np.ndarray:
        return gradient


class Tie:
    """theta seen through fewer coordinates: one size for each vector of parameters.

    A vector v of log-values becomes log unit + s: features measured in different units
    get one common relevance.
    """

    def __init__(self, objective: BilevelObjective):
        n = len(objective.theta0)
        owner = np.full(n, -1)
        offset = np.zeros(n)
        vectors = objective.space.vectors()
        for number, (entries, log_unit) in enumerate(vectors):
            owner[entries], offset[entries] = number, log_unit
        single = np.flatnonzero(owner < 0)
        self._matrix = np.zeros((n, len(single) + len(vectors)))
        self._matrix[single, np.arange(len(single))] = 1.0
        tied = np.flatnonzero(owner >= 0)
        self._matrix[tied, len(single) + owner[tied]] = 1.0
        self._offset = offset
        self.bounds = self._tied_bounds(objective.bounds)

    def _tied_bounds(self, bounds: np.ndarray) -> np.ndarray:
        low, high = bounds[:, 0] - self._offset, bounds[:, 1] - self._offset
        used = [self._matrix[:, j] > 0 for j in range(self._matrix.shape[1])]
        return np.array([[low[u].max(), high[u].min()] for u in used])

    def expand(self, x: np.ndarray) -> np.ndarray:
        return self._matrix @ x + self._offset

    def reduce(self, theta: np.ndarray) -> np.ndarray:
        """The nearest tied point: the mean over each vector."""
        return (self._matrix.T @ (theta - self._offset)) / self._matrix.sum(axis=0)

    def pullback(self, gradient: np.ndarray) -> np.ndarray:
        return self._matrix.T @ gradient
