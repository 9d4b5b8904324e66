"""What values are worth: H and accuracy on the folds, and the best H there is.

H is the default criterion of `BilevelSVC` with one width, on the folds of the sample,
with its machine at the C and gamma that a method chose, solved tightly. It is that of
the whole kernel where there are few enough rows, whatever shortcut a method took.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from benchmarks.sets import Sample
from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC
from bisvm.criteria.priors import Shrinkage

# Optimality of the machines behind an H that is to be believed.
TIGHT = 1e-8
# Rows up to which H is that of the whole kernel: three Gram matrices take a gigabyte.
EXACT_ROWS = 6000
# Rows up to which the best H is searched for.
REFERENCE_ROWS = 5000
STRENGTHS = (1.0, 0.3, 0.1)


@dataclass(frozen=True, eq=False)
class Judge:
    """Looks at values on one sample; machines start from those of the last look.

    kernel : "rbf", "ard" or "linear"
    strength : of the default prior, where there are many widths
    criterion : by which values are judged; a search minimises "blend" where widths
        differ
    """

    sample: Sample
    kernel: str
    strength: float = 1.0
    exact_rows: int = EXACT_ROWS
    criterion: str = "calibrated_logistic"

    @property
    def exact(self) -> bool:
        return self.kernel == "linear" or self.sample.n <= self.exact_rows

    @cached_property
    def objective(self) -> BilevelObjective:
        settings: dict[str, Any] = {"cv": self.sample.folds, "random_state": 0}
        settings["criterion"] = self.criterion
        if self.kernel == "linear":
            estimator: Any = BilevelLinearSVC(**settings)
        else:
            if self.exact:
                settings |= {"approximation": "none", "max_memory": np.inf}
            prior = Shrinkage(self.strength * Shrinkage().strength)
            estimator = BilevelSVC(self.kernel, prior=prior, **settings)
        return BilevelObjective(estimator, self.sample.X, self.sample.y)

    def theta(self, values: dict[str, Any]) -> np.ndarray:
        return self.objective.space.theta(values)

    def look(self, theta: np.ndarray) -> Any:
        if self.objective.problem.approximated:
            self.objective.restrict(theta)
        return self.objective.evaluate(theta, TIGHT)

    def H(self, values: dict[str, Any]) -> float:
        """The criterion, without the prior."""
        return float(self.look(self.theta(values)).criterion)

    def is_tied(self, theta: np.ndarray) -> bool:
        """Whether all widths are one in their natural units."""
        return self.objective.objective.prior(theta)[0] <= 1e-12

    # --- the best there is ------------------------------------------------------------

    def converged(self, starts: Iterator[np.ndarray] | list, *, tied: bool) -> Any:
        """The lowest evaluation that descents from all starts end at.

        With one size for all widths z stands for them, theta = theta_s + A z.
        """
        space = self.objective.space
        A = np.eye(len(space.theta0))
        if tied:
            A = np.stack([A[0], (A[1:]).sum(axis=0)], axis=1)
        found = []
        for start in starts:
            start = np.clip(start, *self.objective.bounds.T)
            found.append(self._descent(start, A))
        return min(found, key=lambda evaluation: evaluation.value)

    def _descent(self, start: np.ndarray, A: np.ndarray) -> Any:
        """log H is minimised, so that the tolerance is relative."""
        seen = [self.look(start)]

        def log_H(z: np.ndarray) -> tuple[float, np.ndarray]:
            done = self.look(start + A @ z)
            if done.value < seen[0].value:
                seen[0] = done
            return np.log(done.value), A.T @ done.gradient / done.value

        low, high = self.objective.bounds.T
        # Where one z moves several entries the narrowest of their bounds holds.
        bounds = [
            ((low - start)[column > 0].max(), (high - start)[column > 0].min())
            for column in A.T
        ]
        minimize(
            log_H,
            np.zeros(A.shape[1]),
            jac=True,
            bounds=bounds,
            method="L-BFGS-B",
            options={"maxiter": 60, "ftol": 1e-9, "gtol": 1e-6},
        )
        return seen[0]


def accuracy(sample: Sample, values: dict[str, Any]) -> float:
    """Mean over the folds of the accuracy of an SVC at these values."""
    gamma = np.asarray(values["gamma"])
    # One gamma per feature is a scaling of the features.
    X, gamma = (sample.X * np.sqrt(gamma), 1.0) if gamma.ndim else (sample.X, gamma)
    machine = SVC(C=values["C"], gamma=float(gamma))
    return float(cross_val_score(machine, X, sample.y, cv=sample.folds).mean())


def own_problem(model: Any, judge: Judge, theta: np.ndarray) -> tuple[bool, float]:
    """Whether a fitted model's widths are one, and else how strong its prior was.

    With one gamma per feature the search decides on held-out points whether widths are
    to differ, and how far the prior is to be trusted. Which H it minimised follows from
    the first record of its answer: value - criterion = strength x prior(theta).
    """
    if judge.kernel != "ard" or judge.is_tied(theta):
        return True, 1.0
    record = min(model.history_, key=lambda r: np.abs(r.theta - theta).max())
    unit = judge.objective.objective.prior(record.theta)[0] / judge.strength
    strength = (record.value - record.criterion) / unit
    return False, min(STRENGTHS, key=lambda s: abs(np.log(s / max(strength, 1e-3))))
