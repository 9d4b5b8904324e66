r"""The strengths lambda_w and lambda_f as hyperparameters of a bilevel problem.

::

    upper level    min over lambda   H = criterion of the held-out margins
    lower level    (w, f, b)_k = argmin of E_k(w, f, b; lambda_w, lambda_f)

for every column k, one split of one class task. H depends on the strength
lambda = sqrt(lambda_w lambda_f) alone (see `problem`), so theta = (log lambda,) is
searched, with lambda_w / lambda_f as given. The lower level has several minima: every
solve starts from the last one of its column, and H is the value on the branch that is
followed this way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed

from bisvm.bilevel.problem import Evaluation
from bisvm.core.types import Array, ArrayLike
from bisvm.criteria import Criterion, Points
from bisvm.data.splits import Split
from bisvm.losses import Loss
from bisvm.published.bilinear.joint import minimize, sensitivity
from bisvm.published.bilinear.patches import Patches
from bisvm.published.bilinear.problem import BilinearProblem, Point
from bisvm.published.bilinear.training import sketch

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


@dataclass(frozen=True)
class Outcome:
    """One column at one theta: held-out decision values, and how they move."""

    point: Point
    values: Array
    moves: Array
    residual: float
    iterations: int
    converged: bool


@dataclass(frozen=True)
class Followed:
    """Where the columns ended: the warm start of the next evaluation.

    maps, filters, intercepts : at the last theta, one entry a column; None before
    best_maps, best_filters, best_intercepts : at the theta with the lowest H
    least : that H
    number : of the evaluation on file that has left it, or 0
    """

    maps: Array | None = None
    filters: Array | None = None
    intercepts: Array | None = None
    best_maps: Array | None = None
    best_filters: Array | None = None
    best_intercepts: Array | None = None
    least: float = np.inf
    number: int = 0

    def point(self, column: int) -> Point | None:
        """Where a column ended last."""
        return _point(self.maps, self.filters, self.intercepts, column)

    def best_point(self, column: int) -> Point | None:
        """Where a column ended at the theta with the lowest H."""
        parts = self.best_maps, self.best_filters, self.best_intercepts
        return _point(*parts, column)

    def after(self, points: Sequence[Point], value: float) -> Followed:
        maps, filters = (
            np.array([getattr(point, part) for point in points])
            for part in ("maps", "filters")
        )
        intercepts = np.array([point.intercept for point in points])
        last = replace(self, maps=maps, filters=filters, intercepts=intercepts)
        if not value < self.least:
            return last
        return replace(
            last,
            best_maps=maps,
            best_filters=filters,
            best_intercepts=intercepts,
            least=value,
        )


def _point(
    maps: Array | None, filters: Array | None, intercepts: Array | None, column: int
) -> Point | None:
    if maps is None or filters is None or intercepts is None:
        return None
    return Point(maps[column], filters[column], float(intercepts[column]))


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
        largest = min(self._map(self._largest))
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
            np.concatenate(labels), np.array(task)[column], column, np.concatenate(row)
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
            residual=max(outcome.residual for outcome in outcomes),
            solves=len(outcomes),
            iterations=sum(outcome.iterations for outcome in outcomes),
            converged=all(outcome.converged for outcome in outcomes),
            seconds=time.perf_counter() - began,
        )
        return evaluation, warm.after([one.point for one in outcomes], found.value)

    def point_of(self, task: int, warm: Followed) -> Point | None:
        """Where a task's first column ended at the best theta, to start from there."""
        for number, column in enumerate(self.columns):
            if column.task == task:
                return warm.best_point(number)
        return None

    def _solve(
        self, number: int, strengths: dict[str, float], warm: Followed, tol: float
    ) -> Outcome:
        """Train one column, and follow its held-out values."""
        problem, last = self._problem(number, **strengths), warm.point(number)
        start = sketch(problem, self.n_filters) if last is None else last
        found = minimize(problem, start, tol=tol)
        moved = sensitivity(problem, found)
        template = self.patches.template(found.point.maps, found.point.filters)
        images = self.X[self.columns[number].validation]
        # Both strengths move with theta, each by one unit of its logarithm.
        return Outcome(
            point=found.point,
            values=images @ template + found.point.intercept,
            moves=images @ moved.template.sum(axis=1) + moved.intercept.sum(),
            residual=found.residual,
            iterations=found.iterations,
            converged=found.usable,
        )

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

    def _largest(self, number: int) -> float:
        return self._problem(number).largest_strength

    def _map(self, function: Callable[..., Found], *args: object) -> list[Found]:
        """function(number, ...) for every column."""
        found: list[Found] = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(function)(number, *args) for number in range(len(self.columns))
        )
        return found
