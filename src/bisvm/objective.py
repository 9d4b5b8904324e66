"""The upper level: validation loss and its gradient as a function of theta."""

from __future__ import annotations

import time
import warnings
from dataclasses import fields, replace
from typing import Any

import numpy as np

from bisvm.adjoint import envelope_gradient, gradient_and_error
from bisvm.criteria import CriterionValue, StructuralRisk
from bisvm.evaluation import Evaluation
from bisvm.machines import Coefficients, Machine, Sensitivity
from bisvm.parts import INVERSE_WIDTH, DegenerateError
from bisvm.priors import Prior
from bisvm.problem import Landmarks, Problem
from bisvm.solvers import Solution
from bisvm.space import Space
from bisvm.splits import Columns
from bisvm.threads import one_blas_thread

# Optimality residual of the lower level behind a public objective's values.
PUBLIC_TOL = 1e-9
# Where nothing is known residuals of this part of an accuracy's root will do, since
# what is left of the error is of second order; else this part of what was enough.
FIRST_SHARE = 0.1
SAFE_SHARE = 0.3
# Residuals above this tell what a residual does to H.
TELLING = 1e-7
# What is assumed before there is one.
NO_LEVERAGE = float(np.finfo(float).tiny)
# Landmarks are chosen for widths narrower by this factor than those they are for.
NARROWER = 1.3
# Tolerances for which single precision is considered, and what part of one its errors
# of fitted values may reach.
SINGLE_TOL = 1e-5
SINGLE_SHARE = 0.3
# Part of H that may be taken off for a lower level that was solved loosely.
CORRECTABLE = 0.1
# What a solution is made of.
_PARTS = tuple(field.name for field in fields(Coefficients))


class BilevelObjective:
    """value, gradient = objective(theta): bring your own optimizer.

    The splits are frozen at construction; the value is a deterministic function of
    theta up to the inner tolerance. theta holds the learned hyperparameters in the
    optimizer's coordinates (logarithms); `hyperparameters(theta)` speaks natural units.
    Where the kernel is approximated, landmarks are chosen for theta0, and anew by
    `restrict(theta)`.

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
        # Whoever brings an optimizer of their own may trust the gradient.
        self._set_up(replace(problem, inner_tol=PUBLIC_TOL))

    @classmethod
    def from_problem(
        cls, problem: Problem, fitted: np.ndarray | None = None
    ) -> BilevelObjective:
        """The objective of a problem that is set up already.

        `fitted` are the fitted values (n, q) from which the first solve starts.
        """
        self = cls.__new__(cls)
        self._set_up(problem, fitted)
        return self

    def _set_up(self, problem: Problem, fitted: np.ndarray | None = None) -> None:
        self.problem = problem
        self.space = Space(problem.parameters, problem.learn, problem.feature_names)
        self.n_svm_evaluations = 0
        self._held_out = problem.columns.validation > 0
        self._outside = problem.columns.outside
        self._points = problem.columns.points
        self.share_weights = self._observations(problem.columns.validation.sum(axis=1))
        # Fitted values from which the next solve starts.
        self._fitted: np.ndarray | None = fitted
        # Solution of the last solve, and the theta that it belongs to.
        self._last: tuple[np.ndarray, Coefficients] | None = None
        # Relative error of H by the residual behind it, in the last evaluation.
        self._leverage = NO_LEVERAGE
        self._in_single = True

    def forget(self) -> None:
        """Start the next solve from nothing, as the first one did."""
        self._fitted = self._last = None
        self._leverage = NO_LEVERAGE
        self._in_single = True
        if self.problem.approximated:
            self.problem = replace(self.problem, landmarks=None)

    def restrict(self, theta: np.ndarray) -> None:
        """Restrict the machines to functions of rows that carry the kernel near theta.

        They stay for all evaluations to come, so that H is one function of theta. They
        are chosen for widths a little narrower than theta's, to stay good as it moves.
        None where all rows are needed, and none are asked for.
        """
        rule = self.problem.approximation
        if rule is None:
            return
        narrower = theta + np.log(NARROWER) * self.space.has_role(INVERSE_WIDTH)
        values = self.hyperparameters(narrower)
        kernel = self.problem.model.kernel_at(values)
        rows = rule.landmarks(kernel, self.problem.X, values)
        chosen = None if rows is None else Landmarks(rows, theta.copy())
        self.problem = replace(self.problem, landmarks=chosen)
        self._last = None

    def release(self) -> None:
        """Let the machines be functions of all rows again."""
        self.problem = replace(self.problem, landmarks=None)
        self._last = None

    def own_landmarks(self) -> Landmarks | None:
        """The machines' landmarks; for theta0 if they need some and have none."""
        if self.problem.approximated and self.problem.landmarks is None:
            self.restrict(self.theta0)
        return self.problem.landmarks

    def suits(self, theta: np.ndarray) -> bool:
        """Whether landmarks, if there have to be any, are for widths like theta's."""
        landmarks = self.problem.landmarks
        if landmarks is None:
            return not self.problem.approximated
        moved = (theta - landmarks.theta)[self.space.has_role(INVERSE_WIDTH)]
        return bool(np.max(moved, initial=0.0) <= np.log(NARROWER))

    def on_rows(self, rows: np.ndarray) -> BilevelObjective:
        """The same objective on some of the rows, which stand for all of them.

        Their training losses count as much as those of all rows.
        """
        part = self.problem.subsample(rows)
        ratio = self.problem.columns.train.sum() / part.columns.train.sum()
        columns = replace(part.columns, train=ratio * part.columns.train)
        fitted = None if self._fitted is None else self._fitted[rows]
        return BilevelObjective.from_problem(replace(part, columns=columns), fitted)

    def on_split(
        self, number: int, like: BilevelObjective | None = None
    ) -> BilevelObjective:
        """The same objective on one of its splits, starting from those of another."""
        columns = self.problem.columns.of_split(number)
        fitted = None if like is None else like._fitted
        if fitted is not None and fitted.shape != columns.labels.shape:
            fitted = None
        problem = replace(self.problem, columns=columns)
        return BilevelObjective.from_problem(problem, fitted)

    def on_columns(self, columns: Columns) -> BilevelObjective:
        """The same objective on another partition of the rows."""
        return BilevelObjective.from_problem(replace(self.problem, columns=columns))

    def without(self, number: int) -> BilevelObjective | None:
        """The same objective on the rows that one split trains on, and on other splits.

        None if a machine would have no points of one sign, or no split is left.
        """
        columns = self.problem.columns
        held_out = self._held_out[:, columns.split == number].any(axis=1)
        rows = np.flatnonzero(~held_out)
        left = columns.validation[rows].sum(axis=0) > 0
        own = left & (columns.split != number)
        signs = columns.labels[rows] * (columns.train[rows] > 0)
        if not own.any() or np.any((signs.max(axis=0) * signs.min(axis=0))[own] >= 0):
            return None
        fitted = None if self._fitted is None else self._fitted[:, own]
        problem = replace(self.problem, columns=columns.only(own))
        return BilevelObjective.from_problem(problem, fitted).on_rows(rows)

    def with_prior(self, prior: Prior | None) -> BilevelObjective:
        """The same objective under another prior."""
        problem = replace(self.problem, prior=prior)
        return BilevelObjective.from_problem(problem, self._fitted)

    def warm_up(self, other: BilevelObjective) -> None:
        """Start the next solve from the functions of a similar objective.

        It has the same columns, on other rows or other landmarks.
        """
        self._fitted = other._values_at(self.problem.X)

    def _values_at(self, X: Any) -> np.ndarray | None:
        """The functions of the last solve at other points (inside the frame)."""
        if self._last is None:
            return None
        problem, (theta, x) = self.problem, self._last
        if problem.model.linear:
            return X @ x.coef + x.intercept
        used = np.flatnonzero(x.coef.any(axis=1))
        rows = used if problem.landmarks is None else problem.landmarks.rows[used]
        kernel = problem.model.kernel_at(self.space.values(theta))
        gram = kernel.gram(X, problem.X[rows])
        return gram @ x.coef[used] + x.intercept

    def mean_fitted(self) -> np.ndarray | None:
        """Fitted values of every class task, averaged over its splits: (n, n_tasks)."""
        if self._fitted is None:
            return None
        task = self.problem.columns.task
        return np.stack(
            [self._fitted[:, task == k].mean(axis=1) for k in np.unique(task)], axis=1
        )

    @property
    def state(self) -> dict[str, np.ndarray]:
        """All that the next evaluation takes over from those before, but landmarks."""
        state = {"error": np.array([self._leverage, self._in_single])}
        if self._fitted is not None:
            state["fitted"] = self._fitted
        if self._last is not None:
            theta, x = self._last
            state |= {"theta": theta, **{one: getattr(x, one) for one in _PARTS}}
        return state

    @state.setter
    def state(self, state: dict[str, np.ndarray]) -> None:
        self._leverage, self._in_single = (
            float(state["error"][0]),
            state["error"][1] > 0,
        )
        self._fitted, self._last = state.get("fitted"), None
        if "theta" in state:
            x = Coefficients(**{one: state[one] for one in _PARTS})
            self._last = state["theta"], x

    @property
    def theta0(self) -> np.ndarray:
        return self.space.theta0

    @property
    def bounds(self) -> np.ndarray:
        return self.space.bounds

    @property
    def names(self) -> list[str]:
        return self.space.names

    def hyperparameters(self, theta: Any) -> dict[str, Any]:
        """All hyperparameters at theta, in natural units: numbers, or arrays."""
        return self.space.values(theta)

    def __call__(self, theta: Any) -> tuple[float, np.ndarray]:
        evaluation = self.evaluate(theta)
        return evaluation.value, evaluation.gradient

    def oracle(
        self, theta: Any, accuracy: float | None
    ) -> tuple[float, np.ndarray, float]:
        """Value, gradient and the accuracy reached, for methods that ask for little.

        `accuracy` is the relative error of the value that will do; None for as good as
        `objective(theta)`. The accuracy reached is that of a value from which the error
        had not been taken off: the value is better than that, and the gradient may be
        worse, by an error of first order in the residual.
        """
        done = self.evaluate_within(theta, accuracy)
        return done.value, done.gradient, done.accuracy

    def evaluate_within(
        self, theta: Any, accuracy: float | None, tol: float | None = None
    ) -> Evaluation:
        """H to a relative error, if the lower level can be solved well enough for it.

        How a residual becomes an error of H is known only when the adjoint is: machines
        are solved to `tol`, by default as far as the last evaluation lets hope to be
        enough, and then as far as their error demands.
        """
        if accuracy is None:
            return self.evaluate(theta)
        if not accuracy >= 0.0:
            raise ValueError(f"accuracy must not be negative; got {accuracy!r}.")
        if tol is None:
            loosest = FIRST_SHARE * accuracy**0.5
            tol = min(loosest, SAFE_SHARE * accuracy / self._leverage)
        tol = max(tol, PUBLIC_TOL)
        done = self.evaluate(theta, tol)
        while tol > PUBLIC_TOL and done.accuracy > accuracy and done.converged:
            share = SAFE_SHARE * accuracy / done.accuracy
            tol = max(share * min(tol, done.residual), PUBLIC_TOL)
            closer = self.evaluate(theta, tol)
            done = replace(
                closer,
                solves=done.solves + closer.solves,
                iterations=done.iterations + closer.iterations,
                seconds=done.seconds + closer.seconds,
            )
        return done

    def evaluate(self, theta: Any, tol: float | None = None) -> Evaluation:
        """H, its gradient, and how the lower level was solved."""
        began = time.perf_counter()
        theta = np.array(theta, dtype=float)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            try:
                return self._evaluate_either_way(theta, tol, began)
            except np.linalg.LinAlgError:
                # Too far out for a linear system: a step that is not to be taken.
                return self._failed(theta, began)
            except DegenerateError as error:
                warnings.warn(
                    f"{error} The search turns back and keeps the best point so far.",
                    UserWarning,
                    stacklevel=2,
                )
                return self._failed(theta, began)

    def _evaluate_either_way(
        self, theta: np.ndarray, tol: float | None, began: float
    ) -> Evaluation:
        """In double precision where single precision has no solution."""
        try:
            return self._evaluate(theta, tol, began)
        except np.linalg.LinAlgError:
            if not self._in_single or self.problem.single is None:
                raise
        self._in_single = False
        return self._evaluate(theta, tol, began)

    def _failed(self, theta: np.ndarray, began: float) -> Evaluation:
        self._fitted = None
        n, columns = self._held_out.shape
        return Evaluation(
            theta=theta,
            value=np.inf,
            gradient=np.zeros_like(theta),
            shares=self._observations(np.full(n, np.inf)),
            share_weights=self.share_weights,
            criterion=np.inf,
            residual=np.inf,
            solves=columns,
            iterations=0,
            converged=False,
            seconds=time.perf_counter() - began,
        )

    def _evaluate(
        self, theta: np.ndarray, tol: float | None, began: float
    ) -> Evaluation:
        self.own_landmarks()
        problem = self.problem
        values = self.space.values(theta)
        machine, solution = self._solve(values, self.usual_tol if tol is None else tol)
        self.n_svm_evaluations += machine.n_columns
        # A warm start must not carry one bad theta into all that follow.
        good = np.isfinite(solution.fitted).all()
        self._fitted = solution.fitted if good else None
        self._last = (theta, solution.x) if good else None

        value, row_losses, sensitivity, error = self._upper(machine, solution)
        gradient = self.space.restrict(
            problem.model.gradient(
                values, sensitivity, self.space.parameters, problem.sample_groups
            )
        )
        prior_value, prior_gradient = self._regularization(theta, values)
        evaluation = Evaluation(
            theta=theta,
            value=value + prior_value,
            gradient=gradient + prior_gradient,
            shares=self._observations(row_losses),
            share_weights=self.share_weights,
            criterion=value,
            residual=float(solution.residual.max()),
            solves=machine.n_columns,
            iterations=solution.iterations,
            converged=solution.status != "max_iter",
            seconds=time.perf_counter() - began,
            error=error,
            landmarks=problem.landmarks,
            held_out=solution.fitted[self._outside],
        )
        # Smaller residuals are rounding, and would tell of nothing else.
        if evaluation.residual > TELLING and evaluation.accuracy > 0:
            self._leverage = evaluation.accuracy / evaluation.residual
        return evaluation

    def _solve(self, values: dict[str, Any], tol: float) -> tuple[Machine, Solution]:
        """The machine, and its solution from the last fitted values.

        In single precision as long as its errors do not count against the tolerance.
        """
        problem, start = self.problem, self._fitted
        if self._in_single and tol >= SINGLE_TOL and problem.single is not None:
            machine = problem.machine(values, problem.single)
            solution = problem.solver.solve(machine, start, tol)
            if machine.rounding(solution.x) <= SINGLE_SHARE * tol:
                return machine, solution
            self._in_single = False
            start = solution.fitted
        machine = problem.machine(values, problem.X)
        return machine, problem.solver.solve(machine, start, tol)

    @property
    def usual_tol(self) -> float:
        """The residual of a machine on features is an average over points."""
        on_features = self.problem.landmarks is not None
        return self.problem.inner_tol * (0.01 if on_features else 1.0)

    def _upper(
        self, machine: Machine, solution: Solution
    ) -> tuple[float, np.ndarray, Sensitivity, float]:
        """H without its prior, every row's share, the way down to theta, and H's error.

        The error of an optimum is of second order in the residual.
        """
        if self.problem.criterion.on_training:
            risk = float(machine.value(solution.x, solution.tangent).sum())
            rows = np.zeros(len(solution.fitted))
            return risk, rows, envelope_gradient(machine, solution), 0.0
        upper = self._criterion(solution.fitted)
        cotangent = np.zeros_like(solution.fitted)
        cotangent[self._held_out] = upper.slopes * self._points.labels
        sensitivity, wrong = gradient_and_error(machine, solution, cotangent)
        value, error = upper.value, float(np.abs(wrong).sum())
        # Rounding errors of fitted values have no sign in common.
        error += machine.rounding(solution.x) * float(np.linalg.norm(cotangent))
        if error <= CORRECTABLE * abs(value):
            value -= float(wrong.sum())
        return value, self._by_row(upper.losses), sensitivity, error

    def loss_of(self, fitted: np.ndarray) -> tuple[float, np.ndarray]:
        """The criterion at decision values (n, q), and every observation's share."""
        upper = self._criterion(fitted)
        return upper.value, self._observations(self._by_row(upper.losses))

    def _criterion(self, fitted: np.ndarray) -> CriterionValue:
        """The criterion on the held-out margins."""
        held_out, points = self._held_out, self._points
        margins = points.labels * fitted[held_out]
        weights = self.problem.columns.validation[held_out]
        return self.problem.criterion.evaluate(margins, weights, points)

    def _observations(self, by_row: np.ndarray) -> np.ndarray:
        """Summed over the rows that belong together."""
        groups = self.problem.groups
        return by_row if groups is None else np.bincount(groups, by_row)

    def _by_row(self, losses: np.ndarray) -> np.ndarray:
        """Losses of the held-out entries, weighted and summed over the columns."""
        shares = np.zeros(self._held_out.shape)
        shares[self._held_out] = losses
        return (shares * self.problem.columns.validation).sum(axis=1)

    def _regularization(
        self, theta: np.ndarray, values: dict[str, Any]
    ) -> tuple[float, np.ndarray]:
        """What is added to the criterion: a prior, or the structural risk's own."""
        criterion = self.problem.criterion
        if isinstance(criterion, StructuralRisk):
            learned = [p for p in self.space.parameters if self.space.learns(p.name)]
            value, by_name = criterion.regularization(learned, values)
            others = {p.name: np.zeros(p.size) for p in self.space.parameters}
            return value, self.space.restrict({**others, **by_name})
        return self.prior(theta)

    def prior(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """What the prior adds to the criterion, and its gradient."""
        value, gradient = 0.0, np.zeros_like(theta)
        if self.problem.prior is not None:
            for kin in self.space.vectors:
                size = self.problem.criterion.at_zero * kin.hold
                v, g = self.problem.prior.evaluate(theta[kin.entries] - kin.log_unit)
                value += size * v
                gradient[kin.entries] += size * g
        return value, gradient
