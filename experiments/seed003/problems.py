"""The data of seed 003 in the folds it used, its H, and where its minima are."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from bisvm import BilevelLinearSVC, BilevelObjective, datasets
from bisvm.optimizers import Optimizer

SETS = ("cancer", "synsmall", "synbig")
STARTS = (1e-5, 0.01, 1.0, 20.0, 100.0)
BOUNDS = (1e-5, 1e4)
PER_CENT = 100.0
# The thesis writes C/2 where we write C.
LOG_BOUNDS = np.log(0.5 * np.array([BOUNDS]))


def to_theta(C: float) -> np.ndarray:
    """Our logarithm of its C."""
    return np.log([0.5 * C])


def to_C(theta: Any) -> float:
    return 2.0 * float(np.exp(np.ravel(theta)[0]))


def estimator(cv: Any, **changes: Any) -> BilevelLinearSVC:
    settings = dict(
        loss="squared_hinge",
        criterion="squared_hinge",
        fit_intercept="penalized",
        prior=None,
        random_state=0,
    )
    return BilevelLinearSVC(cv=cv, **{**settings, **changes})


def load(name: str) -> datasets.Dataset:
    return datasets.load(f"folds_{name}")


@dataclass(frozen=True)
class Found:
    """Where a search ended: C and H in the thesis's units, evaluations, seconds."""

    C: float
    H: float
    evaluations: int
    seconds: float


@dataclass
class Counted:
    """H as a function of our theta = log C, in per cent; it counts evaluations."""

    objective: BilevelObjective
    evaluations: int = field(default=0)

    def oracle(
        self, theta: np.ndarray, accuracy: float | None
    ) -> tuple[float, np.ndarray, float]:
        self.evaluations += 1
        value, gradient, reached = self.objective.oracle(theta, accuracy)
        return PER_CENT * value, PER_CENT * gradient, reached

    def value(self, theta: Any) -> float:
        return self.oracle(np.ravel(theta).astype(float), None)[0]

    def run(self, search: Callable[[], Any]) -> tuple[Any, float]:
        """Return the result of a search, from nothing known, and its seconds."""
        self.objective = BilevelObjective.of(self.objective.objective)
        self.evaluations, began = 0, time.perf_counter()
        result = search()
        return result, time.perf_counter() - began


class Curve(Counted):
    """H over the C of the thesis: theta = log(C / 2)."""

    @classmethod
    def of(cls, name: str) -> Curve:
        data = load(name)
        return cls(BilevelObjective(estimator(data.splits), data.X, data.y))

    def timed(self, search: Callable[[], Any]) -> Found:
        """Run a search; what it returns has `x` and `fun`."""
        result, seconds = self.run(search)
        return Found(to_C(result.x), float(result.fun), self.evaluations, seconds)

    def by(self, optimizer: Optimizer, C: float) -> Found:
        """One of our optimizers from a start."""
        return self.timed(
            lambda: optimizer.minimize(self.oracle, to_theta(C), LOG_BOUNDS)
        )

    def minima(self, points: int, around: float | None = None) -> np.ndarray:
        """Local minima as rows (theta, H), from a grid that is refined at each.

        around : only this factor of C up and down from the lowest point
        """
        grid = np.linspace(*LOG_BOUNDS[0], points)
        if around is not None:
            best = grid[np.argmin([self.value(theta) for theta in grid])]
            grid = np.linspace(best - np.log(around), best + np.log(around), points)
        return local_minima(self.value, grid)


def local_minima(
    value: Callable[[float], float], grid: np.ndarray, plateaus: bool = True
) -> np.ndarray:
    """Local minima as rows (theta, value): those of a sorted grid, each refined.

    plateaus : whether a point as high as its neighbours counts
    """
    values = np.array([value(theta) for theta in grid])
    below = np.less_equal if plateaus else np.less
    inner = below(values[1:-1], values[:-2]) & below(values[1:-1], values[2:])
    found = [
        minimize_scalar(
            value,
            bounds=(grid[k], grid[k + 2]),
            method="bounded",
            options={"xatol": 1e-9},
        )
        for k in np.flatnonzero(inner)
    ]
    return np.array([[one.x, one.fun] for one in found])


def nelder_mead(curve: Curve, C: float) -> Found:
    return curve.timed(
        lambda: minimize(
            curve.value, to_theta(C), method="Nelder-Mead", bounds=LOG_BOUNDS
        )
    )


def slsqp(curve: Curve, C: float) -> Found:
    """SLSQP with gradients by forward differences."""
    return curve.timed(
        lambda: minimize(curve.value, to_theta(C), method="SLSQP", bounds=LOG_BOUNDS)
    )


def bounded(curve: Curve) -> Found:
    """Brent's search between the bounds, which has no start."""
    return curve.timed(
        lambda: minimize_scalar(curve.value, bounds=LOG_BOUNDS[0], method="bounded")
    )
