"""The linear convolutional SVM over all class tasks: what the estimator calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from bisvm.criteria import Criterion
from bisvm.data.splits import Split
from bisvm.losses import Loss
from bisvm.published.bilinear.patches import Patches
from bisvm.published.bilinear.problem import BilinearProblem, Point
from bisvm.published.bilinear.steps import HalfStep
from bisvm.published.bilinear.strengths import StrengthObjective, columns_of
from bisvm.published.bilinear.training import TrainedBilinear, train


@dataclass(frozen=True)
class Bank:
    """Trained maps (t, m, n_positions), filters (t, m, n_entries), intercepts (t,)."""

    patches: Patches
    maps: np.ndarray
    filters: np.ndarray
    intercept: np.ndarray

    @classmethod
    def of(cls, patches: Patches, points: Sequence[Point]) -> Bank:
        return cls(
            patches,
            np.stack([point.maps for point in points]),
            np.stack([point.filters for point in points]),
            np.array([point.intercept for point in points]),
        )

    @property
    def templates(self) -> np.ndarray:
        """(t, n_pixels): the model is linear in the image, F = X v' + b."""
        pairs = zip(self.maps, self.filters, strict=True)
        return np.stack([self.patches.template(*pair) for pair in pairs])

    def feature_maps(self, X: np.ndarray, task: int) -> np.ndarray:
        """x * f_k of every image and filter, (n, m, *map_shape)."""
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
        X: np.ndarray,
        tasks: np.ndarray,
        weight: np.ndarray,
        lambda_w: Any,
        lambda_f: Any,
        *,
        near: Sequence[Point | None] | None = None,
        seed: int = 0,
    ) -> list[TrainedBilinear]:
        """Train every task on all of its rows; one strength, or one a task."""
        n_tasks = tasks.shape[1]
        lambda_w, lambda_f = (np.broadcast_to(s, n_tasks) for s in (lambda_w, lambda_f))
        near = [None] * n_tasks if near is None else near

        def one(task: int) -> TrainedBilinear:
            rows = np.flatnonzero(tasks[:, task])
            problem = BilinearProblem.of(
                self.patches,
                X[rows],
                tasks[rows, task],
                self.loss,
                weight[rows],
                lambda_w=float(lambda_w[task]),
                lambda_f=float(lambda_f[task]),
            )
            return train(
                problem,
                self.step,
                self.n_filters,
                near=near[task],
                tol=self.tol,
                max_iter=self.max_iter,
                seed=seed + task,
            )

        return Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(one)(task) for task in range(n_tasks)
        )

    def objective(
        self,
        X: np.ndarray,
        tasks: np.ndarray,
        weight: np.ndarray,
        splits: Sequence[Split],
        criterion: Criterion,
        lambda_w: float,
        lambda_f: float,
        held_weight: np.ndarray | None = None,
    ) -> StrengthObjective:
        """The upper level over these tasks, with one strength for all of them."""
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
