"""BilevelObjective: the validation loss of an estimator as a plain function."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bisvm.bilevel.objective import COLD, PUBLIC_TOL, Objective, WarmStart
from bisvm.bilevel.problem import Evaluation, Problem
from bisvm.core.space import Space
from bisvm.core.types import Array, ArrayLike, UserData, UserVector
from bisvm.estimators.bilevel_estimator import BilevelEstimator
from bisvm.estimators.inputs import Given


class BilevelObjective:
    """Validation loss of an estimator as a function: bring your own optimizer.

    ``value, gradient = objective(theta)``. The splits are fixed at construction, so the
    value is a deterministic function of theta, up to the tolerance of the lower level.
    theta holds the learned hyperparameters in the optimizer's coordinates (logarithms
    of positive ones); `hyperparameters(theta)` returns natural units. If the kernel is
    approximated, landmarks are chosen for theta0, and again by `restrict(theta)`.

    Solvers are warm-started from the previous evaluation, which this object remembers.

    Parameters
    ----------
    estimator : BilevelSVC, BilevelLinearSVC, BilevelSVR or BilevelLinearSVR
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
        estimator: BilevelEstimator,
        X: UserData,
        y: UserVector,
        *,
        sample_weight: UserVector = None,
        groups: UserVector = None,
        sample_groups: UserVector = None,
    ):
        given = Given(X, y, sample_weight, groups, sample_groups)
        problem = estimator._problem(given)
        # Other optimizers may rely on an accurate gradient.
        self._begin(Objective(replace(problem, inner_tol=PUBLIC_TOL)), COLD)

    @classmethod
    def of(cls, objective: Objective, warm: WarmStart = COLD) -> BilevelObjective:
        """Wrap an objective of the search.

        Parameters
        ----------
        objective : `bisvm.bilevel.objective.Objective`
        warm : `bisvm.bilevel.objective.WarmStart`
            What the first evaluation starts from; a cold start by default.

        Returns
        -------
        objective : BilevelObjective
        """
        self = cls.__new__(cls)
        self._begin(objective, warm)
        return self

    def _begin(self, objective: Objective, warm: WarmStart) -> None:
        self.objective = objective
        self.warm = warm
        self.n_svm_evaluations = 0

    @property
    def problem(self) -> Problem:
        """Data, folds, machines and criterion of this objective."""
        return self.objective.problem

    @property
    def space(self) -> Space:
        """Coordinates of theta, and the hyperparameters that they stand for."""
        return self.objective.space

    @property
    def theta0(self) -> Array:
        """Start of the search, (n,)."""
        return self.objective.theta0

    @property
    def bounds(self) -> Array:
        """Lower and upper bounds of theta, (n, 2)."""
        return self.objective.bounds

    @property
    def names(self) -> list[str]:
        """Names of the entries of theta."""
        return self.objective.names

    def hyperparameters(self, theta: ArrayLike) -> dict[str, Any]:
        """Return all hyperparameters at theta.

        Parameters
        ----------
        theta : array of shape (n,)

        Returns
        -------
        hyperparameters : dict from name to number or array
            In natural units: C, and not log C.
        """
        return self.objective.hyperparameters(theta)

    def __call__(self, theta: ArrayLike) -> tuple[float, Array]:
        evaluation = self.evaluate(theta)
        return evaluation.value, evaluation.gradient

    def oracle(
        self, theta: ArrayLike, accuracy: float | None
    ) -> tuple[float, Array, float]:
        """Return value and gradient, no more accurate than asked for.

        Parameters
        ----------
        theta : array of shape (n,)
        accuracy : float or None
            Relative error of the value that is good enough; None is that of
            `objective(theta)`.

        Returns
        -------
        value : float
        gradient : array of shape (n,)
        accuracy : float
            An upper bound of the error reached: the value has been corrected, while the
            gradient has an error of first order in the residual.
        """
        done = self.evaluate(theta, accuracy=accuracy)
        return done.value, done.gradient, done.accuracy

    def evaluate(
        self,
        theta: ArrayLike,
        tol: float | None = None,
        accuracy: float | None = None,
    ) -> Evaluation:
        """Evaluate H and its gradient, and report how the lower level was solved.

        Parameters
        ----------
        theta : array of shape (n,)
        tol : float, optional
            Residual of the lower level.
        accuracy : float, optional
            Relative error of H that is good enough.

        Returns
        -------
        evaluation : `bisvm.bilevel.objective.Evaluation`
        """
        found, self.warm = self.objective.evaluate(theta, self.warm, accuracy, tol)
        self.n_svm_evaluations += found.solves
        return found

    def restrict(self, theta: Array) -> None:
        """Choose landmarks for theta, where the kernel is approximated."""
        self.warm = self.objective.restricted(self.warm, theta)

    def on_rows(self, rows: Array) -> BilevelObjective:
        """The same objective on some of the rows, which stand for all of them."""
        return BilevelObjective.of(*self.objective.on_rows(rows, self.warm))
