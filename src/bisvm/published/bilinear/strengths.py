r"""The strengths lambda_w and lambda_f as hyperparameters of a bilevel problem.

::

    upper level    min over lambda   H = criterion of the held-out margins
    lower level    (w, f, b)_k = argmin of E_k(w, f, b; lambda_w, lambda_f)

for every column k, one split of one class task. H depends on the strength
lambda = sqrt(lambda_w lambda_f) alone (see `problem`), so the search is over
theta = (log lambda,), and lambda_w / lambda_f stays as given. The lower level has
several minima. Every solve starts from the last solution of its column, and H is the
value on the branch of solutions that is followed this way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed

from bisvm.bilevel.problem import Evaluation
from bisvm.core.types import Array, ArrayLike
from bisvm.criteria import Criterion, Points
from bisvm.data.splits import Split
from bisvm.data.targets import pairs_of
from bisvm.losses import Loss
from bisvm.optimizers import Optimizer
from bisvm.published.bilinear.joint import Stationary, minimize, sensitivity
from bisvm.published.bilinear.patches import Patches
from bisvm.published.bilinear.problem import BilinearProblem, Point
from bisvm.published.bilinear.training import sketch
from bisvm.search.checkpoint import checkpoint_of
from bisvm.search.descent import Descent, Search, evaluate
from bisvm.search.history import Progress, Record
from bisvm.search.observer import Observer, StopSearch, Trace
from bisvm.search.reasons import optimizer_ended
from bisvm.search.settings import Data

Found = TypeVar("Found")

# lambda may range over this share of the value from which on nothing is learned.
_RANGE = (1e-6, 0.5)


@dataclass(frozen=True)
class SplitColumn:
    """One split of one class task: rows to train on, and rows that are held out."""

    split: int
    task: int
    train: Array
    validation: Array


def columns_of(tasks: Array, splits: Sequence[Split]) -> list[SplitColumn]:
    """A column for every split and task that can be trained and validated."""
    columns = []
    for number, (train, validation) in enumerate(splits):
        for task, labels in enumerate(tasks.T):
            rows, held_out = (part[labels[part] != 0] for part in (train, validation))
            if len(np.unique(labels[rows])) == 2 and len(held_out):
                columns.append(SplitColumn(number, task, rows, held_out))
    if not columns:
        raise ValueError(
            "No split can be used: the training parts have one class only, or the "
            "validation parts are empty. Use a stratified splitter or fewer folds."
        )
    return columns


class Outcome(NamedTuple):
    """One column at one theta: its machine, held-out decision values, their moves."""

    at: Stationary
    values: Array
    moves: Array


@dataclass(frozen=True)
class Followed:
    """Where the columns ended: the warm start of the next evaluation.

    points, best : `Point.flat` of every column, at the last theta and at the one with
        the lowest H; None before the first evaluation
    least : that H
    number : of the evaluation on file that has left it, or 0
    """

    points: Array | None = None
    best: Array | None = None
    least: float = np.inf
    number: int = 0

    def after(self, points: Array, value: float) -> Followed:
        if not value < self.least:
            return replace(self, points=points)
        return replace(self, points=points, best=points, least=value)


BEGINNING = Followed()


class StrengthObjective:
    """H(theta) and its derivative, theta = (log sqrt(lambda_w lambda_f),).

    Parameters
    ----------
    patches, X, loss : as in `BilinearProblem`; X are all images
    tasks : (n, n_tasks), +1, -1, or 0 where an image has no part in the task
    weight, held_weight : (n,), weights of the images, and of those that are held out
        where they have others
    columns : what is trained and held out
    criterion : of the pooled held-out margins; every column has an equal share
    lambda_w, lambda_f : where the search starts, and the ratio that it keeps
    inner_tol : residual of the lower level
    """

    names = ("lambda",)

    def __init__(
        self,
        patches: Patches,
        X: Array,
        tasks: Array,
        weight: Array,
        columns: Sequence[SplitColumn],
        *,
        loss: Loss,
        criterion: Criterion,
        held_weight: Array | None = None,
        lambda_w: float = 0.1,
        lambda_f: float = 0.1,
        n_filters: int = 1,
        inner_tol: float = 1e-6,
        n_jobs: int | None = None,
    ):
        self.patches, self.X, self.tasks, self.weight = patches, X, tasks, weight
        self.columns, self.loss, self.criterion = list(columns), loss, criterion
        self.held_weight = weight if held_weight is None else held_weight
        criterion.check(self._points())
        self.root_ratio = float(np.sqrt(lambda_w / lambda_f))
        self.n_filters, self.inner_tol, self.n_jobs = n_filters, inner_tol, n_jobs
        largest = min(self._map(lambda number: self._problem(number).largest_strength))
        self.bounds = np.log(largest * np.array([_RANGE]))
        start = np.log(np.sqrt(lambda_w * lambda_f))
        self.theta0 = np.clip([start], *self.bounds.T)

    def hyperparameters(self, theta: Array) -> dict[str, float]:
        """Both strengths, at the ratio given."""
        strength = float(np.exp(theta[0]))
        return {
            "lambda_w": strength * self.root_ratio,
            "lambda_f": strength / self.root_ratio,
        }

    def __call__(self, theta: ArrayLike) -> tuple[float, Array]:
        evaluation, _ = self.evaluate(np.asarray(theta, dtype=float))
        return evaluation.value, evaluation.gradient

    # --- what a search asks of an objective -------------------------------------------

    def usual_tol(self, warm: Followed) -> float:
        return self.inner_tol

    def passed(self, warm: Followed) -> Followed:
        """After an evaluation that was looked up, and whose end was taken over."""
        return Followed()

    @property
    def share_weights(self) -> Array:
        """Weights of the images in the criterion, over all columns."""
        rows = np.concatenate([column.validation for column in self.columns])
        return np.bincount(rows, self._shares(), len(self.weight))

    def _shares(self) -> Array:
        """Weights of the held-out images, column by column."""
        weights = [self.held_weight[column.validation] for column in self.columns]
        return np.concatenate([w / w.sum() for w in weights]) / len(weights)

    def _points(self) -> Points:
        """Whose held-out values there are."""
        rows = [column.validation for column in self.columns]
        task = [column.task for column in self.columns]
        column = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
        labels = [self.tasks[own, k] for own, k in zip(rows, task, strict=True)]
        row = [one.validation + len(self.weight) * one.split for one in self.columns]
        return Points(
            np.concatenate(labels),
            np.array(task)[column],
            column,
            np.concatenate(row),
            pairs_of(self.tasks),
        )

    def evaluate(
        self,
        theta: Array,
        warm: Followed = BEGINNING,
        accuracy: float | None = None,
        tol: float | None = None,
    ) -> tuple[Evaluation, Followed]:
        """H and dH/dtheta; the lower level starts where it last ended.

        accuracy : not used: the effect of a residual on H is not known
        tol : residual of the lower level; None for `inner_tol`
        """
        began = time.perf_counter()
        tol = self.inner_tol if tol is None else tol
        outcomes = self._map(self._solve, self.hyperparameters(theta), warm, tol)
        rows = np.concatenate([column.validation for column in self.columns])
        share, points = self._shares(), self._points()
        y = points.labels
        values = np.concatenate([outcome.values for outcome in outcomes])
        moves = np.concatenate([outcome.moves for outcome in outcomes])
        found = self.criterion.evaluate(y * values, share, points)
        evaluation = Evaluation(
            theta=theta,
            value=found.value,
            gradient=np.array([(found.slopes * y) @ moves]),
            shares=np.bincount(rows, share * found.losses, len(self.weight)),
            share_weights=self.share_weights,
            criterion=found.value,
            residual=max(outcome.at.residual for outcome in outcomes),
            solves=len(outcomes),
            iterations=sum(outcome.at.iterations for outcome in outcomes),
            converged=all(outcome.at.usable for outcome in outcomes),
            seconds=time.perf_counter() - began,
        )
        ends = np.array([outcome.at.point.flat for outcome in outcomes])
        return evaluation, warm.after(ends, found.value)

    def point_of(self, task: int, warm: Followed) -> Point | None:
        """Where a task's first column ended at the best theta, to start from there."""
        tasks = [column.task for column in self.columns]
        if warm.best is None or task not in tasks:
            return None
        return self._point(warm.best[tasks.index(task)])

    def _solve(
        self, number: int, strengths: dict[str, float], warm: Followed, tol: float
    ) -> Outcome:
        """Train one column, and follow its held-out values."""
        problem = self._problem(number, **strengths)
        start = (
            sketch(problem, self.n_filters)
            if warm.points is None
            else self._point(warm.points[number])
        )
        found = minimize(problem, start, tol=tol)
        by_theta, by_theta_intercept = sensitivity(problem, found)
        template = self.patches.template(found.point.maps, found.point.filters)
        images = self.X[self.columns[number].validation]
        return Outcome(
            found,
            images @ template + found.point.intercept,
            images @ by_theta + by_theta_intercept,
        )

    def _point(self, flat: Array) -> Point:
        maps = np.zeros((self.n_filters, self.patches.n_positions))
        filters = np.zeros((self.n_filters, self.patches.n_entries))
        return Point(maps, filters, 0.0).like(flat)

    def _problem(self, number: int, **strengths: float) -> BilinearProblem:
        column = self.columns[number]
        return BilinearProblem.of(
            self.patches,
            self.X[column.train],
            self.tasks[column.train, column.task],
            self.loss,
            self.weight[column.train],
            **strengths,
        )

    def _map(self, function: Callable[..., Found], *args: object) -> list[Found]:
        """function(number, ...) for every column."""
        found: list[Found] = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(function)(number, *args) for number in range(len(self.columns))
        )
        return found


@dataclass(frozen=True, eq=False)
class FoundStrengths:
    """The strengths found for some class tasks.

    warm : where the columns ended
    """

    objective: StrengthObjective
    descent: Descent
    records: list[Record]
    warm: Followed

    @property
    def values(self) -> dict[str, float]:
        """lambda_w and lambda_f."""
        return self.objective.hyperparameters(self.descent.best.theta)

    def point_of(self, task: int) -> Point | None:
        return self.objective.point_of(task, self.warm)


def search_strengths(
    name: str,
    params: Mapping[str, Any],
    patches: Patches,
    data: Data,
    loss: Loss,
    criterion: Criterion,
    optimizer: Optimizer,
    seed: int,
    callback: Callable[[Progress], object] | None,
    build: Callable[..., object],
) -> list[FoundStrengths]:
    """Run one search for all class tasks, or one for each if they are not shared.

    name, params : of the estimator, whose arguments identify a checkpoint
    build : makes a fitted model from strengths, for the callback
    """
    n_tasks = data.tasks.shape[1]
    groups = [range(n_tasks)] if params["shared"] else [[k] for k in range(n_tasks)]
    began, limit = time.perf_counter(), params["time_limit"]
    found, seeds = [], np.array([seed])
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
            tasks = data.tasks[:, list(group)]
            objective = StrengthObjective(
                patches,
                np.asarray(data.X),
                tasks,
                data.weight,
                columns_of(tasks, data.splits),
                loss=loss,
                criterion=criterion,
                held_weight=data.held_weight,
                lambda_w=float(params["lambda_w"]),
                lambda_f=float(params["lambda_f"]),
                n_filters=params["n_filters"],
                inner_tol=1e-3 * params["tol"],
                n_jobs=params["n_jobs"],
            )
            try:
                # An objective with its own kind of warm start.
                search = Search(objective, optimizer, observer)  # type: ignore[arg-type]
                found.append(_searched(search))
            finally:
                observer.end()
    return found


def _searched(search: Search) -> FoundStrengths:
    """Search from the strengths given; a stop keeps the best so far."""
    trace, objective = Trace(BEGINNING), search.objective

    def fun(theta: Array) -> tuple[float, Array]:
        nonlocal trace
        found, trace = evaluate(search, trace, theta, "strength")
        return found.value, found.gradient

    try:
        result = search.optimizer.minimize(fun, objective.theta0, objective.bounds)
        success = bool(result.success)
        reason = optimizer_ended(search.optimizer, result)
    except StopSearch as stop:
        trace, success, reason, result = stop.trace, False, stop.reason, None
    best = trace.best
    assert best is not None
    low, high = objective.bounds.T
    pressed = np.where(best.gradient > 0, best.theta <= low, best.theta >= high)
    slope = float(np.abs(np.where(pressed, 0.0, best.gradient)).max())
    gradient = slope / max(abs(best.value), 1e-300)
    descent = Descent(best, gradient, success, reason, result)
    return FoundStrengths(objective, descent, search.observer.records, trace.warm)  # type: ignore[arg-type]
