"""The machines of sections 5.2.4 and 5.3.1, and the scores the thesis reports."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import OptimizeResult
from sklearn.exceptions import ConvergenceWarning

from bisvm import BilevelLinearSVC, BilevelSVC
from bisvm.kernels import RBF
from bisvm.losses import Quartic
from bisvm.machines.regularization import PerFeature, Shared
from bisvm.optimizers import LBFGS, Optimizer
from bisvm.optimizers.base import CONVERGED, LIMIT_REACHED, BoundedProblem
from experiments.common import Spread, inverse, seed_H

LOWER = 0.01
"""The thesis's lower bound on c and on every gamma."""
UPPER_C, UPPER_GAMMA = 1e6, 1e3
"""No upper bounds are published; these are out of the way."""

MEASURES = {
    "H_min": ".4f",
    "train H": ".4f",
    "train CR %": ".2f",
    "test H": ".4f",
    "test CR %": ".2f",
    "eval.": ".0f",
}


@dataclass(frozen=True)
class Scores:
    """One row of Table 5.5 or 5.6, in the thesis's units.

    H is |f - y|^2 / 2n, H_min its mean over the folds; CR is a classification rate in
    per cent; `evaluations` counts the machines trained, the final one included.
    """

    H_min: float | None = None
    train_H: float | None = None
    train_CR: float | None = None
    test_H: float | None = None
    test_CR: float | None = None
    evaluations: float | None = None

    def cells(self) -> tuple[Any, ...]:
        return astuple(self)


def spread(scores: Sequence[Scores]) -> tuple[Any, ...]:
    """Cells of a table: every measure as mean and deviation over the splits."""
    columns = zip(*(score.cells() for score in scores), strict=True)
    return tuple(None if None in column else Spread.of(column) for column in columns)


@dataclass(frozen=True)
class Part:
    """Rows with labels +1 and -1."""

    X: np.ndarray
    y: np.ndarray

    def columns(self, kept: np.ndarray) -> Part:
        return Part(self.X[:, kept], self.y)


def to_range(X: Any, rows: Any = slice(None)) -> np.ndarray:
    """Columns scaled to [-1, 1] on the given rows, as in LIBSVM's scaled files."""
    X = np.asarray(X, dtype=float)
    low, high = X[rows].min(axis=0), X[rows].max(axis=0)
    return 2.0 * (X - low) / np.where(high > low, high - low, 1.0) - 1.0


# --- machines -------------------------------------------------------------------------

# Mean squared error on five folds, no prior, one start, and the same c at the end.
_THESIS: dict[str, Any] = {
    "loss": Quartic(0.125),
    "criterion": "mse",
    "cv": 5,
    "prior": None,
    "starts": 1,
    "tol": 1e-6,
}
LOG_LBFGS = LBFGS(max_iter=100, ftol=1e-6, gtol=1e-4)
"""L-BFGS-B in the logarithms of c and gamma, the library's coordinates."""


def kernel_machine(
    c: float, gamma: Any, optimizer: Optimizer = LOG_LBFGS, **settings: Any
) -> BilevelSVC:
    """The kernel machine without bias of chapter 3, from (c, gamma).

    An array of gammas stands for one per feature ("multiple gamma"), a number for one
    in all ("bikernel").
    """
    kernel = RBF(
        gamma, per_feature=np.ndim(gamma) > 0, gamma_bounds=(LOWER, UPPER_GAMMA)
    )
    return BilevelSVC(
        kernel,
        C=float(inverse(c)),
        regularization=Shared((1 / UPPER_C, 1 / LOWER)),
        fit_intercept=False,
        optimizer=optimizer,
        **{**_THESIS, **settings},
    )


def linear_machine(
    c: Any, optimizer: Optimizer = LOG_LBFGS, **settings: Any
) -> BilevelLinearSVC:
    """The linear machine of chapter 2, from c.

    An array stands for one c per feature and, at the end, that of the bias ("multiple
    c"). With a number ("bilinear") the bias is not regularised.
    """
    multiple = np.ndim(c) > 0
    bounds = (1 / UPPER_C, 1 / LOWER)
    return BilevelLinearSVC(
        C=inverse(c) if multiple else float(inverse(c)),
        regularization=PerFeature(bounds) if multiple else Shared(bounds),
        fit_intercept="penalized" if multiple else True,
        optimizer=optimizer,
        **{**_THESIS, **settings},
    )


def fitted(estimator: Any, train: Part) -> Any:
    """Fit; a run into the thesis's limit of 100 iterations is no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(train.X, train.y)


def scores(estimator: Any, train: Part, test: Part) -> Scores:
    """What the thesis reports of a fitted machine."""
    on_train, on_test = (estimator.decision_function(part.X) for part in (train, test))
    return Scores(
        H_min=seed_H(estimator.criterion_value_),
        train_H=seed_H(np.mean((on_train - train.y) ** 2)),
        train_CR=rate(on_train, train.y),
        test_H=seed_H(np.mean((on_test - test.y) ** 2)),
        test_CR=rate(on_test, test.y),
        # Those of the search, as in the thesis, which does not judge it afterwards.
        evaluations=sum(record.solves for record in estimator.history_) + 1,
    )


def rate(decision: np.ndarray, y: np.ndarray) -> float:
    """Per cent of the signs that are right."""
    return 100.0 * float(np.mean(np.where(decision > 0, 1, -1) == y))


class NaturalLBFGS(Optimizer):
    """L-BFGS-B in c and gamma themselves, as the thesis searched, not in logarithms.

    Parameters
    ----------
    n_C : int, default=1
        How many of the coordinates are log C = -log c; they come first.
    folds : int, default=5
        H is half the mean squared error, summed over the folds: its size decides on
        the length of the first step.
    max_iter : int, default=100
    """

    def __init__(self, n_C: int = 1, folds: int = 5, max_iter: int = 100) -> None:
        self.n_C = n_C
        self.folds = folds
        self.max_iter = max_iter

    def _minimize(
        self, problem: BoundedProblem, previous: OptimizeResult | None = None
    ) -> OptimizeResult:
        sign = np.where(np.arange(problem.start.size) < self.n_C, -1.0, 1.0)
        ends = np.stack([problem.lower, problem.upper], axis=1)
        size = seed_H(1.0, self.folds)

        def natural(p: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient, _ = problem.evaluate(problem.project(sign * np.log(p)))
            return size * value, size * sign * gradient / p

        found = scipy.optimize.minimize(
            natural,
            np.exp(sign * problem.start),
            jac=True,
            method="L-BFGS-B",
            bounds=np.sort(np.exp(sign[:, None] * ends), axis=1),
            options={"maxiter": self.max_iter, "ftol": 1e-6},
        )
        status = CONVERGED if found.success else LIMIT_REACHED
        return problem.result(int(found.nit), status, str(found.message))


# --- pictures -------------------------------------------------------------------------


def dots(axes: Any, values: np.ndarray, names: Sequence[str]) -> None:
    """One column of dots for every name, a dot a run, and a bar at the median.

    `values` is (n_runs, n_names); NaN is left out.
    """
    jitter = np.linspace(-0.22, 0.22, len(values)) if len(values) > 1 else np.zeros(1)
    for place, column in enumerate(values.T):
        axes.plot(place + jitter, column, "o", color="0.55", markersize=2.5, zorder=1)
        if np.isfinite(column).any():
            median = float(np.nanmedian(column))
            axes.plot(
                [place - 0.32, place + 0.32], [median] * 2, color="black", linewidth=2
            )
    axes.set_yscale("log")
    axes.set_xticks(range(len(names)), names, rotation=35, ha="right")
    axes.set_xlim(-0.6, len(names) - 0.4)
