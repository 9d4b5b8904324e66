"""Descents on one validation loss H(c) or H(c, gamma), step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from bisvm import BilevelLinearSVC, BilevelObjective, datasets, losses
from bisvm.optimizers import Optimizer
from experiments.common import (
    HoldOut,
    binary,
    inverse,
    random_splits,
    seed_H,
    standardize,
)

LOSSES = {
    "modified log.": losses.ModifiedLog(12.0),
    "quartic": losses.Quartic(0.125),
}
"""The parameters that the thesis settled on (section 5.1)."""

IRIS_SIZES = (50, 50, 50)
"""Training, validation and test part; the thesis does not name its own."""


@dataclass(frozen=True)
class Path:
    """Every evaluation of a descent, in order.

    theta : (n, p), log C and log gamma
    H : (n,), in the thesis's units
    slope : (n,), largest entry of the gradient
    """

    theta: np.ndarray
    H: np.ndarray
    slope: np.ndarray

    @property
    def evaluations(self) -> int:
        return len(self.H)

    @property
    def best(self) -> int:
        return int(self.H.argmin())

    def evaluations_until(self, near: Callable[[np.ndarray], bool]) -> float:
        """Evaluations after which the best point so far is near, and stays so.

        The best is that of the smallest gradient: close to a minimum H is flat, and
        its differences are lost in rounding long before the gradient is.
        """
        steepness, count = np.inf, np.inf
        for number, (theta, slope) in enumerate(
            zip(self.theta, self.slope, strict=True), 1
        ):
            if slope < steepness:
                steepness = slope
                count = min(count, number) if near(theta) else np.inf
        return count


def descend(
    objective: BilevelObjective, optimizer: Optimizer, theta: np.ndarray
) -> Path:
    """Minimise from theta, and note every evaluation."""
    notes = []

    def noted(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(theta)
        notes.append((theta, seed_H(value), np.abs(gradient).max()))
        return value, gradient

    optimizer.minimize(noted, theta, objective.bounds)
    return Path(*map(np.array, zip(*notes, strict=True)))


def iris_splits(n_splits: int) -> list[tuple[HoldOut, np.ndarray, np.ndarray]]:
    """Setosa against the rest: hold-out, X and y of the test part, of every split.

    Columns have mean 0 and variance 1 on the training part.
    """
    X, species = datasets.load("iris", return_X_y=True)
    y = binary(species, 0)
    splits = []
    for train, validation, test in random_splits(y, IRIS_SIZES, n_splits):
        scaled = standardize(X, train)
        hold_out = HoldOut.of(scaled, y, train, validation)
        splits.append((hold_out, scaled[test], y[test]))
    return splits


def linear_objective(
    data: HoldOut, loss: losses.Loss, criterion: str = "mse"
) -> BilevelObjective:
    """H of a linear machine with free intercept, as a function of log C."""
    estimator = BilevelLinearSVC(
        loss=loss, criterion=criterion, cv=data.cv, prior=None, tol=1e-9
    )
    return BilevelObjective(estimator, data.X, data.y)


def curve(objective: BilevelObjective, c: np.ndarray) -> np.ndarray:
    """The criterion over a range of c."""
    return np.array([objective(np.log([inverse(one)]))[0] for one in c])


def minimum(objective: BilevelObjective, low: float, high: float) -> float:
    """c at the lowest minimum between low and high: a scan, refined, then polished."""
    scan = np.linspace(-np.log(high), -np.log(low), 61)
    k = int(np.clip(np.argmin([objective([x])[0] for x in scan]), 1, len(scan) - 2))
    log_C = minimize_scalar(
        lambda x: objective([x])[0], bounds=(scan[k - 1], scan[k + 1]), method="bounded"
    ).x
    # Values of H are flat at the minimum; its gradient is not.
    log_C = brentq(
        lambda x: objective([x])[1][0], log_C - 1e-3, log_C + 1e-3, xtol=1e-12
    )
    return float(np.exp(-log_C))


def count_minima(values: np.ndarray) -> int:
    """Local minima of a function on a fine grid, ends left out."""
    inner = values[1:-1]
    return int(np.sum((inner < values[:-2]) & (inner < values[2:])))
