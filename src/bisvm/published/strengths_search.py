"""The search for the strengths of a linear convolutional SVM."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bisvm.criteria import Criterion
from bisvm.optimizers import Optimizer
from bisvm.published.bilinear import LinearConvolution, Point, StrengthObjective
from bisvm.published.bilinear.strengths import BEGINNING, Followed
from bisvm.search.data import Data
from bisvm.search.descent import Descent, Search, Trace, evaluate
from bisvm.search.history import Progress, Record
from bisvm.search.observer import Observer
from bisvm.search.questions import StopSearch
from bisvm.search.resuming import checkpoint_of

STAGE = "strength"


@dataclass(frozen=True, eq=False)
class Strengths:
    """The strengths found for some class tasks.

    values : lambda_w and lambda_f
    warm : where the columns ended
    """

    objective: StrengthObjective
    descent: Descent
    records: list[Record]
    warm: Followed

    @property
    def values(self) -> dict[str, float]:
        return self.objective.hyperparameters(self.descent.best.theta)

    def point_of(self, task: int) -> Point | None:
        return self.objective.point_of(task, self.warm)


def search_strengths(
    estimator: Any,
    model: LinearConvolution,
    data: Data,
    criterion: Criterion,
    optimizer: Optimizer,
    seed: int,
    callback: Callable[[Progress], Any] | None,
    build: Callable[[dict[str, Any]], Any],
) -> list[Strengths]:
    """One search for all class tasks, or one for each if they are not shared."""
    n_tasks = data.tasks.shape[1]
    groups = [range(n_tasks)] if estimator.shared else [[k] for k in range(n_tasks)]
    began, limit = time.perf_counter(), estimator.time_limit
    found = []
    named = type(estimator).__name__, estimator.get_params(deep=False)
    seeds = np.array([seed])
    with checkpoint_of(*named, data, seeds, None, len(groups)) as file:
        began -= 0.0 if file is None else file.seconds
        for number, group in enumerate(groups):
            observer = Observer(
                began=began,
                deadline=None if limit is None else began + limit,
                callback=callback,
                verbose=estimator.verbose,
                model=build,
                task=number,
                answers=None if file is None else file.answers(str(number)),
            )
            objective = model.objective(
                data.X,
                data.tasks[:, list(group)],
                data.weight,
                data.splits,
                criterion,
                float(estimator.lambda_w),
                float(estimator.lambda_f),
                data.held_weight,
            )
            try:
                found.append(_searched(Search(objective, optimizer, observer)))
            finally:
                observer.end()
    return found


def _searched(search: Search) -> Strengths:
    """Search from the strengths given; a stop keeps the best so far."""
    trace, objective = Trace(BEGINNING), search.objective

    def fun(theta: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal trace
        found, trace = evaluate(search, trace, theta, STAGE)
        return found.value, found.gradient

    try:
        result = search.optimizer.minimize(fun, objective.theta0, objective.bounds)
        success, reason = bool(result.success), str(result.message)
    except StopSearch as stop:
        trace, success, reason, result = stop.trace, False, str(stop), None
    best = trace.best
    assert best is not None
    low, high = objective.bounds.T
    pressed = np.where(best.gradient > 0, best.theta <= low, best.theta >= high)
    slope = float(np.abs(np.where(pressed, 0.0, best.gradient)).max())
    gradient = slope / max(abs(best.value), 1e-300)
    descent = Descent(best, gradient, success, reason, result)
    return Strengths(objective, descent, search.observer.records, trace.warm)
