"""The search for the strengths of a linear convolutional SVM."""

from __future__ import annotations

import time
from typing import Any, cast

import numpy as np

from bisvm import progress
from bisvm.bilinear import LinearConvolution
from bisvm.criteria import get_criterion
from bisvm.estimators.data import Data
from bisvm.estimators.resuming import checkpoint_of
from bisvm.estimators.settings import own_optimizer
from bisvm.tuning import Descent, Run, StopTuning

STAGE = "strength"


def search_strengths(
    estimator: Any, model: LinearConvolution, data: Data, seed: int, callback: Any
) -> list[tuple[Run, Descent]]:
    """One run for all class tasks, or one for each if they are not shared."""
    n_tasks = data.tasks.shape[1]
    groups = [range(n_tasks)] if estimator.shared else [[k] for k in range(n_tasks)]
    began, limit = time.perf_counter(), estimator.time_limit
    found = []
    kept = checkpoint_of(estimator, data, np.array([seed]), None, len(groups))
    with kept as file:
        began -= 0.0 if file is None else file.seconds
        for number, group in enumerate(groups):
            run = Run(
                cast("Any", _objective(estimator, model, data, list(group))),
                own_optimizer(estimator),
                deadline=None if limit is None else began + limit,
                callback=callback,
                verbose=estimator.verbose,
                model=lambda values: estimator._model_at(data, values),
                task=number,
                began=began,
                journal=None if file is None else file.journal(str(number)),
            )
            try:
                found.append((run, _descend(run)))
            finally:
                progress.end(run.verbose)
    return found


def _objective(
    estimator: Any, model: LinearConvolution, data: Data, group: list[int]
) -> Any:
    return model.objective(
        data.X,
        data.tasks[:, group],
        data.weight,
        data.splits,
        get_criterion(estimator.criterion),
        float(estimator.lambda_w),
        float(estimator.lambda_f),
        data.held_weight,
    )


def _descend(run: Run) -> Descent:
    """Search from the strengths given; a stop keeps the best so far."""

    def fun(theta: np.ndarray) -> tuple[float, np.ndarray]:
        evaluation = run.evaluate(theta, STAGE)
        return evaluation.value, evaluation.gradient

    objective = run.objective
    try:
        result = run.optimizer.minimize(fun, objective.theta0, objective.bounds)
        best, success, reason = run.best, bool(result.success), str(result.message)
    except StopTuning as stop:
        best, success, reason, result = run.best, False, str(stop), None
    assert best is not None
    low, high = objective.bounds.T
    pressed = np.where(best.gradient > 0, best.theta <= low, best.theta >= high)
    slope = float(np.abs(np.where(pressed, 0.0, best.gradient)).max())
    return Descent(best, slope / max(abs(best.value), 1e-300), success, reason, result)
