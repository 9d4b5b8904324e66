"""BilevelObjective: the validation loss of an estimator as a plain function."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bisvm.bilevel.evaluation import Evaluation
from bisvm.bilevel.objective import COLD, PUBLIC_TOL, Objective, WarmStart
from bisvm.bilevel.problem import Problem
from bisvm.core.space import Space


class BilevelObjective:
    """Validation loss of an estimator as a function: bring your own optimizer.

    ``value, gradient = objective(theta)``. The splits are frozen at construction; the
    value is a deterministic function of theta up to the inner tolerance. theta holds
    the learned hyperparameters in the optimizer's coordinates (logarithms);
    `hyperparameters(theta)` gives natural units. Where the kernel is approximated,
    landmarks are chosen for theta0, and again by `restrict(theta)`.

    Solves start from the end of the previous ones, which this object remembers.

    Parameters
    ----------
    estimator : BilevelSVC or BilevelLinearSVC
        Unfitted; its settings say what is learned and how.
    X, y, groups, sample_weight, sample_groups :
        As for the estimator's `fit`.

    Attributes
    ----------
    theta0, bounds, names :
        Start, (n, 2) bounds, and names of theta's entries.
    n_svm_evaluations : int
        Lower-level problems solved so far.

    Examples
    --------
    >>> from scipy.optimize import minimize
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bisvm import BilevelObjective, BilevelSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> objective = BilevelObjective(BilevelSVC(kernel="ard", random_state=0), X, y)
    >>> result = minimize(
    ...     objective, objective.theta0, jac=True, bounds=objective.bounds
    ... )  # doctest: +SKIP
    >>> objective.hyperparameters(result.x)["C"]  # doctest: +SKIP
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        groups: Any = None,
        sample_weight: Any = None,
        sample_groups: Any = None,
    ):
        problem = estimator._problem(
            X,
            y,
            groups=groups,
            sample_weight=sample_weight,
            sample_groups=sample_groups,
        )
        # Those who bring their own optimizer may trust the gradient.
        self._begin(Objective(replace(problem, inner_tol=PUBLIC_TOL)), COLD)

    @classmethod
    def of(cls, objective: Objective, warm: WarmStart = COLD) -> BilevelObjective:
        """The public face of an objective."""
        self = cls.__new__(cls)
        self._begin(objective, warm)
        return self

    def _begin(self, objective: Objective, warm: WarmStart) -> None:
        self.objective = objective
        self.warm = warm
        self.n_svm_evaluations = 0

    @property
    def problem(self) -> Problem:
        return self.objective.problem

    @property
    def space(self) -> Space:
        return self.objective.space

    @property
    def theta0(self) -> np.ndarray:
        return self.objective.theta0

    @property
    def bounds(self) -> np.ndarray:
        return self.objective.bounds

    @property
    def names(self) -> list[str]:
        return self.objective.names

    def hyperparameters(self, theta: Any) -> dict[str, Any]:
        """All hyperparameters at theta, in natural units: numbers, or arrays."""
        return self.objective.hyperparameters(theta)

    def __call__(self, theta: Any) -> tuple[float, np.ndarray]:
        evaluation = self.evaluate(theta)
        return evaluation.value, evaluation.gradient

    def oracle(
        self, theta: Any, accuracy: float | None
    ) -> tuple[float, np.ndarray, float]:
        """Value, gradient and the accuracy reached, for methods that ask for little.

        `accuracy` is the relative error of the value that is good enough; None for as
        good as `objective(theta)`. The accuracy reached is that of a value from which
        the error had not been subtracted: the value is better than that, and the
        gradient may be worse, by an error of first order in the residual.
        """
        done = self.evaluate(theta, accuracy=accuracy)
        return done.value, done.gradient, done.accuracy

    def evaluate(
        self,
        theta: Any,
        tol: float | None = None,
        accuracy: float | None = None,
    ) -> Evaluation:
        """H, its gradient, and how the lower level was solved.

        tol : residual of the lower level
        accuracy : relative error of H that is good enough
        """
        found, self.warm = self.objective.evaluate(theta, self.warm, accuracy, tol)
        self.n_svm_evaluations += found.solves
        return found

    def restrict(self, theta: np.ndarray) -> None:
        """Choose landmarks for theta, where the kernel is approximated."""
        self.warm = self.objective.restricted(self.warm, theta)

    def on_rows(self, rows: np.ndarray) -> BilevelObjective:
        """The same objective on some of the rows, which stand for all of them."""
        return BilevelObjective.of(*self.objective.on_rows(rows, self.warm))
