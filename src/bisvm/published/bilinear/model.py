"""The linear convolutional SVM over all class tasks; the search for its strengths."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from bisvm.core.types import Array
from bisvm.criteria import Criterion
from bisvm.data.splits import Split
from bisvm.losses import Loss
from bisvm.optimizers import Optimizer
from bisvm.published.bilinear.patches import Patches
from bisvm.published.bilinear.problem import BilinearProblem, Point
from bisvm.published.bilinear.steps import HalfStep
from bisvm.published.bilinear.strengths import (
    BEGINNING,
    Followed,
    StrengthObjective,
    columns_of,
)
from bisvm.published.bilinear.training import TrainedBilinear, train
from bisvm.search.checkpoint import checkpoint_of
from bisvm.search.descent import Descent, Search, evaluate
from bisvm.search.history import Progress, Record
from bisvm.search.observer import Observer, StopSearch, Trace
from bisvm.search.settings import Data

STAGE = "strength"


@dataclass(frozen=True)
class Bank:
    """Trained maps (t, m, n_positions), filters (t, m, n_entries), intercepts (t,)."""

    patches: Patches
    maps: Array
    filters: Array
    intercept: Array

    @classmethod
    def of(cls, patches: Patches, points: Sequence[Point]) -> Bank:
        return cls(
            patches,
            np.stack([point.maps for point in points]),
            np.stack([point.filters for point in points]),
            np.array([point.intercept for point in points]),
        )

    @property
    def templates(self) -> Array:
        """(t, n_pixels): the model is linear in the image, F = X v' + b."""
        pairs = zip(self.maps, self.filters, strict=True)
        return np.stack([self.patches.template(*pair) for pair in pairs])

    def feature_maps(self, X: Array, task: int) -> Array:
        """Return x * f_k of every image and filter, (n, m, *map_shape)."""
        flat = X @ self.patches.filtering(self.filters[task])
        return flat.reshape(len(X), -1, *self.patches.map_shape)


@dataclass(frozen=True)
class LinearConvolution:
    """sum_k w_k'(x * f_k) + b for every class task, and how it is to be trained.

    step, tol, max_iter : solver of the half steps, and when the alternation ends
    """

    patches: Patches
    n_filters: int
    loss: Loss
    step: HalfStep
    tol: float = 1e-3
    max_iter: int = 100
    n_jobs: int | None = None

    def train(
        self,
        X: Array,
        tasks: Array,
        weight: Array,
        lambda_w: float | Array,
        lambda_f: float | Array,
        *,
        starts: Sequence[Point | None] | None = None,
        seed: int = 0,
    ) -> list[TrainedBilinear]:
        """Train every task on all of its rows; one strength, or one a task."""
        n_tasks = tasks.shape[1]
        by_task = [np.broadcast_to(one, n_tasks) for one in (lambda_w, lambda_f)]
        starts = [None] * n_tasks if starts is None else starts

        def one(task: int) -> TrainedBilinear:
            rows = np.flatnonzero(tasks[:, task])
            problem = BilinearProblem.of(
                self.patches,
                X[rows],
                tasks[rows, task],
                self.loss,
                weight[rows],
                lambda_w=float(by_task[0][task]),
                lambda_f=float(by_task[1][task]),
            )
            return train(
                problem,
                self.step,
                self.n_filters,
                start=starts[task],
                tol=self.tol,
                max_iter=self.max_iter,
                seed=seed + task,
            )

        return Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(one)(task) for task in range(n_tasks)
        )

    def objective(
        self,
        X: Array,
        tasks: Array,
        weight: Array,
        splits: Sequence[Split],
        criterion: Criterion,
        lambda_w: float,
        lambda_f: float,
        held_weight: Array | None = None,
    ) -> StrengthObjective:
        """Return the upper level over these tasks, with one strength for all."""
        return StrengthObjective(
            self.patches,
            X,
            tasks,
            weight,
            columns_of(tasks, splits),
            loss=self.loss,
            criterion=criterion,
            held_weight=held_weight,
            lambda_w=lambda_w,
            lambda_f=lambda_f,
            n_filters=self.n_filters,
            inner_tol=1e-3 * self.tol,
            n_jobs=self.n_jobs,
        )


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
    name: str,
    params: Mapping[str, Any],
    model: LinearConvolution,
    data: Data,
    criterion: Criterion,
    optimizer: Optimizer,
    seed: int,
    callback: Callable[[Progress], object] | None,
    build: Callable[..., object],
) -> list[Strengths]:
    """Run one search for all class tasks, or one for each if they are not shared.

    name, params : of the estimator, whose arguments identify a checkpoint
    build : makes a fitted model from strengths, for the callback
    """
    n_tasks = data.tasks.shape[1]
    groups = [range(n_tasks)] if params["shared"] else [[k] for k in range(n_tasks)]
    began, limit = time.perf_counter(), params["time_limit"]
    found = []
    seeds = np.array([seed])
    with (
        nullcontext()
        if params["checkpoint"] is None
        else checkpoint_of(name, dict(params), data, seeds, None, len(groups))
    ) as file:
        began -= 0.0 if file is None else file.seconds
        for number, group in enumerate(groups):
            observer = Observer(
                began=began,
                deadline=None if limit is None else began + limit,
                callback=callback,
                verbose=params["verbose"],
                model=build,
                task=number,
                answers=None if file is None else file.answers(str(number)),
            )
            objective = model.objective(
                np.asarray(data.X),
                data.tasks[:, list(group)],
                data.weight,
                data.splits,
                criterion,
                float(params["lambda_w"]),
                float(params["lambda_f"]),
                data.held_weight,
            )
            try:
                # An objective with its own kind of warm start.
                search = Search(objective, optimizer, observer)  # type: ignore[arg-type]
                found.append(_searched(search))
            finally:
                observer.end()
    return found


def _searched(search: Search) -> Strengths:
    """Search from the strengths given; a stop keeps the best so far."""
    trace, objective = Trace(BEGINNING), search.objective

    def fun(theta: Array) -> tuple[float, Array]:
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
    return Strengths(objective, descent, search.observer.records, trace.warm)  # type: ignore[arg-type]
