"""The upper level: validation loss and its gradient as a function of theta.

    value, gradient of  H(theta) = criterion(held-out values of the machines at theta)

`Objective` never changes. The warm start that one evaluation leaves to the next is a
value: `evaluation, warm = objective.evaluate(theta, warm)`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bisvm.bilevel.adjoint import envelope_gradient, gradient_and_error
from bisvm.bilevel.held_out import HeldOutValues
from bisvm.bilevel.problem import Evaluation, Landmarks, Problem
from bisvm.core.parts import INVERSE_WIDTH, DegenerateError, Value
from bisvm.core.space import Space
from bisvm.core.threads import one_blas_thread
from bisvm.core.types import Array, ArrayLike
from bisvm.core.warning import warn_user
from bisvm.criteria import CriterionValue, Points, StructuralRisk
from bisvm.criteria.priors import Prior
from bisvm.data.columns import FoldColumns
from bisvm.data.leave_one_out import in_parts, leaves_one_out
from bisvm.data.matrices import Inputs, stack
from bisvm.machines import Coefficients, Machine, Sensitivity
from bisvm.solvers import Solution, Solver

# Optimality residual of the lower level behind a public objective's values.
PUBLIC_TOL = 1e-9
# Residual of a first evaluation, as a share of the square root of the accuracy (the
# remaining error is of second order); later, as a share of what was enough before.
FIRST_SHARE = 0.1
SAFE_SHARE = 0.3
# Smaller residuals are rounding errors, from which no leverage can be computed.
TELLING = 1e-7
# Error of H per residual, before it is known.
NO_LEVERAGE = float(np.finfo(float).tiny)
# Landmarks are chosen for inverse widths larger by this factor, so that they stay good
# while theta moves.
LANDMARK_REACH = 1.3
# Smallest tolerance for which single precision is tried, and the share of a tolerance
# that its errors of fitted values may reach.
SINGLE_TOL = 1e-5
SINGLE_SHARE = 0.3
# Largest first-order correction of H, as a share of H: beyond it the expansion is not
# trusted.
CORRECTABLE = 0.1


@dataclass(frozen=True)
class WarmStart:
    """What one evaluation of an objective leaves to the next.

    fitted : (n, q), fitted values from which the solver starts; None for a cold start
    theta, coef, intercept : the last solution and the theta it belongs to, or None
    rough : whether fitted values are those of other machines
    leverage : relative error of H divided by the residual that caused it
    rounding : error of fitted values in single precision when it was last tried;
        infinite where a linear system had no solution then
    landmarks : rows to which the machines are restricted, or None for all of them
    number : number of the evaluation in the checkpoint that left it, or 0
    """

    fitted: Array | None = None
    theta: Array | None = None
    coef: Array | None = None
    intercept: Array | None = None
    rough: bool = False
    leverage: float = NO_LEVERAGE
    rounding: float = 0.0
    landmarks: Landmarks | None = None
    number: int = 0

    def without_solution(self) -> WarmStart:
        """Drop the coefficients; fitted values serve other machines as well."""
        return replace(self, theta=None, coef=None, intercept=None)

    def after(self, theta: Array, solution: Solution) -> WarmStart:
        """Return the start after a solution; a cold one if that is not finite."""
        if not np.isfinite(solution.fitted).all():
            return replace(self.without_solution(), fitted=None)
        x = solution.x
        return replace(
            self,
            fitted=solution.fitted,
            theta=theta,
            coef=x.coef,
            intercept=x.intercept,
            rough=False,
        )


COLD = WarmStart()


@dataclass(frozen=True, eq=False)
class Objective:
    """H and its gradient as functions of theta.

    The splits are fixed in the problem: H is a deterministic function of theta, up to
    the inner tolerance. theta holds the learned hyperparameters in the optimizer's
    coordinates; `hyperparameters(theta)` gives natural units.
    """

    problem: Problem

    @cached_property
    def space(self) -> Space:
        problem = self.problem
        return Space(problem.parameters, problem.learn, problem.feature_names)

    @property
    def theta0(self) -> Array:
        return self.space.theta0

    @property
    def bounds(self) -> Array:
        return self.space.bounds

    @property
    def names(self) -> list[str]:
        return self.space.names

    def hyperparameters(self, theta: ArrayLike) -> dict[str, Value]:
        """Return all hyperparameters at theta, in natural units."""
        return self.space.values(theta)

    # --- evaluation -------------------------------------------------------------------

    def evaluate(
        self,
        theta: ArrayLike,
        warm: WarmStart = COLD,
        accuracy: float | None = None,
        tol: float | None = None,
    ) -> tuple[Evaluation, WarmStart]:
        """Evaluate H and its gradient, and return the next warm start.

        Parameters
        ----------
        theta : array of shape (n_learned,)
        warm : WarmStart
        accuracy : float, optional
            Relative error of H that is good enough. The adjoint shows which error of H
            a residual causes: machines are solved to `tol`, by default as loosely as
            the last evaluation suggests, and then again as closely as needed.
        tol : float, optional
            Residual of the lower level; `usual_tol(warm)` without an accuracy.
        """
        if accuracy is None:
            return self._evaluate(theta, warm, tol)
        if not accuracy >= 0.0:
            raise ValueError(f"accuracy must not be negative; got {accuracy!r}.")
        if tol is None:
            loosest = FIRST_SHARE * accuracy**0.5
            tol = min(loosest, SAFE_SHARE * accuracy / warm.leverage)
        tol = max(tol, PUBLIC_TOL)
        done, warm = self._evaluate(theta, warm, tol)
        while tol > PUBLIC_TOL and done.accuracy > accuracy and done.converged:
            share = SAFE_SHARE * accuracy / done.accuracy
            tol = max(share * min(tol, done.residual), PUBLIC_TOL)
            closer, warm = self._evaluate(theta, warm, tol)
            done = replace(
                closer,
                solves=done.solves + closer.solves,
                iterations=done.iterations + closer.iterations,
                seconds=done.seconds + closer.seconds,
            )
        return done, warm

    def usual_tol(self, warm: WarmStart) -> float:
        """Residual of the lower level; smaller on landmarks, where it is an average."""
        on_features = warm.landmarks is not None
        return self.problem.inner_tol * (0.01 if on_features else 1.0)

    def _evaluate(
        self, theta: ArrayLike, warm: WarmStart, tol: float | None
    ) -> tuple[Evaluation, WarmStart]:
        """Evaluate once; in double precision if single precision fails."""
        began = time.perf_counter()
        point = np.array(theta, dtype=float)
        found = None
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            try:
                found, warm = self._attempt(point, warm, tol)
                if found is None and self._tries_single(warm):
                    double = replace(warm, rounding=math.inf)
                    found, warm = self._attempt(point, double, tol)
            except DegenerateError as error:
                warn_user(
                    f"{error} The search turns back and keeps the best point so far."
                )
        if found is None:
            # The linear systems have no solution: a step that must not be taken.
            found, warm = self.not_evaluated(point), replace(warm, fitted=None)
        return replace(found, seconds=time.perf_counter() - began), warm

    def _attempt(
        self, theta: Array, warm: WarmStart, tol: float | None
    ) -> tuple[Evaluation | None, WarmStart]:
        """Return the evaluation, or None if a linear system has no solution."""
        try:
            warm = self.with_landmarks(warm)
            values = self.space.values(theta)
            tol = self.usual_tol(warm) if tol is None else tol
            machine, solution, warm = self._solve(values, warm, tol)
            warm = warm.after(theta, solution)
            found = self._judge(theta, values, machine, solution, warm.landmarks)
        except np.linalg.LinAlgError:
            return None, warm
        if found.residual > TELLING and found.accuracy > 0:
            warm = replace(warm, leverage=found.accuracy / found.residual)
        return found, warm

    def _solve(
        self, values: dict[str, Value], warm: WarmStart, tol: float
    ) -> tuple[Machine, Solution, WarmStart]:
        """Return the machine and its solution from the warm start.

        In single precision as long as its errors are far below the tolerance.
        """
        problem, solver = self.problem, self.problem.solver
        enough = SINGLE_SHARE * tol
        single = self._in_single(warm)
        if single is not None and tol >= SINGLE_TOL and warm.rounding <= enough:
            machine = problem.machine(values, single, warm.landmarks)
            solution = _solution(solver, machine, warm, tol)
            warm = replace(warm, rounding=machine.rounding(solution.x))
            if warm.rounding <= enough:
                return machine, solution, warm
            warm = replace(warm, fitted=solution.fitted, rough=False)
        machine = problem.machine(values, problem.X, warm.landmarks)
        return machine, _solution(solver, machine, warm, tol), warm

    def _in_single(self, warm: WarmStart) -> Array | None:
        """Inputs in single precision, for machines on all rows."""
        return self.problem.single if warm.landmarks is None else None

    def _tries_single(self, warm: WarmStart) -> bool:
        """Whether single precision has not been ruled out."""
        return math.isfinite(warm.rounding) and self._in_single(warm) is not None

    def _judge(
        self,
        theta: Array,
        values: dict[str, Value],
        machine: Machine,
        solution: Solution,
        landmarks: Landmarks | None,
    ) -> Evaluation:
        """H and its gradient at a solution of the lower level."""
        problem = self.problem
        held_out = HeldOutValues.of(machine, solution, self._left_out)
        upper = self._upper(machine, solution, held_out)
        value, row_losses, sensitivity, error = upper
        gradient = self.space.restrict(
            problem.model.gradient(
                values, sensitivity, self.space.parameters, problem.sample_groups
            )
        )
        prior_value, prior_gradient = self._regularization(theta, values)
        return Evaluation(
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
            seconds=0.0,
            error=error,
            landmarks=landmarks,
            held_out=held_out.values[problem.columns.outside],
        )

    def not_evaluated(self, theta: Array) -> Evaluation:
        """Return what is known of a theta whose machines were not solved: nothing."""
        n, n_columns = self._held_out.shape
        return Evaluation(
            theta=theta,
            value=np.inf,
            gradient=np.zeros_like(theta),
            shares=self._observations(np.full(n, np.inf)),
            share_weights=self.share_weights,
            criterion=np.inf,
            residual=np.inf,
            solves=n_columns,
            iterations=0,
            converged=False,
            seconds=0.0,
        )

    def _upper(
        self, machine: Machine, solution: Solution, held_out: HeldOutValues
    ) -> tuple[float, Array, Sensitivity, float]:
        """Return H without its prior, shares of rows, dH by the machine, and H's error.

        On training data the error is of second order in the residual.
        """
        if self.problem.criterion.on_training:
            risk = float(machine.value(solution.x, solution.tangent).sum())
            rows = np.zeros(len(solution.fitted))
            return risk, rows, envelope_gradient(machine, solution), 0.0
        upper = self._criterion(held_out.values)
        slopes = np.zeros_like(solution.fitted)
        slopes[self._held_out] = upper.slopes
        cotangent, direct = held_out.pullback(slopes)
        found = gradient_and_error(machine, solution, cotangent, direct)
        sensitivity, wrong = found
        value, error = upper.value, float(np.abs(wrong).sum())
        # Rounding errors of fitted values are independent: their norm counts.
        error += machine.rounding(solution.x) * float(np.linalg.norm(cotangent))
        if error <= CORRECTABLE * abs(value):
            value -= float(wrong.sum())
        return value, self._by_row(upper.losses), sensitivity, error

    # --- the criterion on rows --------------------------------------------------------

    @cached_property
    def _held_out(self) -> Array:
        """(n, q), the entries that the criterion is given."""
        columns = self.problem.columns
        every = self.problem.criterion.sees_all_tasks
        return columns.outside if every else columns.validation > 0

    @cached_property
    def _left_out(self) -> Array:
        """(n, q), held-out entries whose row is left out of its column alone."""
        columns = self.problem.columns
        return columns.outside & (columns.train > 0)

    @cached_property
    def _points(self) -> Points:
        return self.problem.columns.points_at(self._held_out)

    @cached_property
    def _at_zero(self) -> float:
        return self.problem.criterion.at_zero(self._points.n_classes)

    @cached_property
    def share_weights(self) -> Array:
        """Weight of every observation in the criterion."""
        return self._observations(self.problem.columns.validation.sum(axis=1))

    def loss_of(self, fitted: Array) -> tuple[float, Array]:
        """Return the criterion at decision values (n, q), and observations' shares."""
        upper = self._criterion(fitted)
        return upper.value, self._observations(self._by_row(upper.losses))

    def _criterion(self, fitted: Array) -> CriterionValue:
        """The criterion on held-out decision values, with slopes by these."""
        held_out, points = self._held_out, self._points
        criterion = self.problem.criterion
        u, by_value = criterion.variable(fitted[held_out], points.labels)
        weights = self.problem.columns.validation[held_out]
        found = criterion.evaluate(u, weights, points)
        return found._replace(slopes=found.slopes * by_value)

    def _observations(self, by_row: Array) -> Array:
        """Sum over the rows of each observation."""
        groups = self.problem.groups
        return by_row if groups is None else np.bincount(groups, by_row)

    def _by_row(self, losses: Array) -> Array:
        """Losses of the held-out entries, weighted and summed over the columns."""
        shares = np.zeros(self._held_out.shape)
        shares[self._held_out] = losses
        by_row: Array = (shares * self.problem.columns.validation).sum(axis=1)
        return by_row

    def _regularization(
        self, theta: Array, values: dict[str, Value]
    ) -> tuple[float, Array]:
        """Return the prior, or the regularization of the structural risk."""
        criterion = self.problem.criterion
        if isinstance(criterion, StructuralRisk):
            learned = [p for p in self.space.parameters if self.space.learns(p.name)]
            value, by_name = criterion.regularization(learned, values)
            others = {p.name: np.zeros(p.size) for p in self.space.parameters}
            return value, self.space.restrict({**others, **by_name})
        return self.prior(theta)

    def prior(self, theta: Array) -> tuple[float, Array]:
        """Return the prior's value, in units of the criterion, and its gradient."""
        value, gradient = 0.0, np.zeros_like(theta)
        if self.problem.prior is not None:
            for vector in self.space.vectors:
                size = self._at_zero * vector.hold
                v, g = self.problem.prior.evaluate(
                    theta[vector.entries] - vector.log_unit
                )
                value += size * v
                gradient[vector.entries] += size * g
        return value, gradient

    # --- landmarks --------------------------------------------------------------------

    def restricted(self, warm: WarmStart, theta: Array) -> WarmStart:
        """Choose landmarks for theta, to be used by all following evaluations.

        H is then one function of theta. There are none where all rows are needed.
        """
        rule = self.problem.approximation
        if rule is None:
            return warm
        narrower = theta + np.log(LANDMARK_REACH) * self.space.has_role(INVERSE_WIDTH)
        values = self.hyperparameters(narrower)
        kernel = self.problem.model.kernel_at(values)
        rows = rule.landmarks(kernel, self.problem.X, values)
        chosen = None if rows is None else Landmarks(rows, theta.copy())
        return replace(warm.without_solution(), landmarks=chosen)

    def unrestricted(self, warm: WarmStart) -> WarmStart:
        """Return the warm start without landmarks."""
        return replace(warm.without_solution(), landmarks=None)

    def with_landmarks(self, warm: WarmStart) -> WarmStart:
        """Choose landmarks for theta0, if machines need some and have none."""
        if self.problem.approximated and warm.landmarks is None:
            return self.restricted(warm, self.theta0)
        return warm

    def cold(self, warm: WarmStart) -> WarmStart:
        """Return a cold start; landmarks stay unless machines need them anyway."""
        kept = None if self.problem.approximated else warm.landmarks
        return WarmStart(landmarks=kept)

    def passed(self, warm: WarmStart) -> WarmStart:
        """Return the start after an evaluation that came from the checkpoint."""
        return WarmStart(landmarks=self.with_landmarks(warm).landmarks)

    def landmarks_fit(self, warm: WarmStart, theta: Array) -> bool:
        """Whether landmarks, if any are needed, were chosen for widths like these."""
        landmarks = warm.landmarks
        if landmarks is None:
            return not self.problem.approximated
        moved = (theta - landmarks.theta)[self.space.has_role(INVERSE_WIDTH)]
        return bool(np.max(moved, initial=0.0) <= np.log(LANDMARK_REACH))

    def solved_at(
        self, theta: Array, warm: WarmStart, landmarks: Landmarks | None
    ) -> WarmStart:
        """Return the solution at theta: that of the warm start, or one from there.

        It has no coefficients if a linear system has no solution.
        """
        if self.is_solved_at(theta, warm, landmarks):
            return warm
        warm = replace(warm.without_solution(), landmarks=landmarks)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            try:
                tol = self.usual_tol(warm)
                _, solution, warm = self._solve(self.space.values(theta), warm, tol)
            except (np.linalg.LinAlgError, DegenerateError):
                if not self._tries_single(warm):
                    return warm
                double = replace(warm, rounding=math.inf)
                return self.solved_at(theta, double, landmarks)
        return warm.after(theta, solution)

    @staticmethod
    def is_solved_at(
        theta: Array, warm: WarmStart, landmarks: Landmarks | None
    ) -> bool:
        """Whether a warm start holds the solution at theta."""
        same = _same_rows(warm.landmarks, landmarks)
        return same and warm.theta is not None and np.array_equal(warm.theta, theta)

    # --- related objectives, each with where its solves start -------------------------

    def on_rows(self, rows: Array, warm: WarmStart) -> tuple[Objective, WarmStart]:
        """Return the objective on a sample of the rows.

        Their training weights are scaled to the sum over all rows.
        """
        part = self.problem.subsample(rows)
        ratio = self.problem.columns.train.sum() / part.columns.train.sum()
        columns = replace(part.columns, train=ratio * part.columns.train)
        fitted = None if warm.fitted is None else warm.fitted[rows]
        return Objective(replace(part, columns=columns)), WarmStart(fitted)

    @cached_property
    def parts(self) -> FoldColumns:
        """The columns as splits; parts of the rows for leave-one-out."""
        return in_parts(self.problem.columns)

    def on_split(self, number: int, warm: WarmStart) -> tuple[Objective, WarmStart]:
        """Return the objective on one of its splits, or of its parts (`parts`)."""
        return self.on_columns(self.parts.of_split(number), warm)

    def on_columns(
        self, columns: FoldColumns, warm: WarmStart
    ) -> tuple[Objective, WarmStart]:
        """Return the objective on other splits of the rows."""
        part = Objective(replace(self.problem, columns=columns))
        return part, WarmStart(landmarks=warm.landmarks)

    def without(
        self, number: int, warm: WarmStart
    ) -> tuple[Objective, WarmStart] | None:
        """Return the objective without the held-out rows of one split or part.

        With the other splits, or leave-one-out on the other rows. None if a machine
        would lack a class or all rows, or no split is left.
        """
        columns, parts = self.problem.columns, self.parts
        held_out = (parts.validation[:, parts.split == number] > 0).any(axis=1)
        rows = np.flatnonzero(~held_out)
        own = columns.validation[rows].sum(axis=0) > 0
        own &= (columns.split != number) | leaves_one_out(columns)
        members = columns.targets.members(columns.labels[rows], columns.train[rows])
        if not own.any() or np.any(members[own] == 0):
            return None
        fitted = None if warm.fitted is None else warm.fitted[:, own]
        part = Objective(replace(self.problem, columns=columns.only(own)))
        return part.on_rows(rows, WarmStart(fitted))

    def with_prior(
        self, prior: Prior | None, warm: WarmStart
    ) -> tuple[Objective, WarmStart]:
        """Return the objective with another prior."""
        other = Objective(replace(self.problem, prior=prior))
        return other, WarmStart(warm.fitted, landmarks=warm.landmarks)

    def for_many(self) -> Objective:
        """Return the objective with the criterion for many hyperparameters."""
        criterion = self.problem.criterion.for_many()
        if criterion is self.problem.criterion:
            return self
        return Objective(replace(self.problem, criterion=criterion))

    def judged(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation of the same machines, with this objective's criterion.

        Its H, by which it was found, and the gradient stay.
        """
        if not np.isfinite(evaluation.value):
            return evaluation
        columns = self.problem.columns
        fitted = np.zeros(columns.validation.shape)
        fitted[columns.outside] = evaluation.held_out
        value, shares = self.loss_of(fitted)
        return replace(evaluation, criterion=value, shares=shares)

    def residuals(self, evaluation: Evaluation) -> Array:
        """Return minus the slope of the criterion by held-out values, (n, n_tasks).

        These are the pseudo-residuals of gradient boosting (Friedman 2001): with the
        squared loss they are y - f, up to a factor. 0 for points never held out.
        """
        columns = self.problem.columns
        fitted = np.zeros(columns.validation.shape)
        fitted[columns.outside] = evaluation.held_out
        slopes = np.zeros_like(fitted)
        slopes[self._held_out] = self._criterion(fitted).slopes
        return np.stack(
            [
                -slopes[:, columns.task == k].sum(axis=1)
                for k in np.unique(columns.task)
            ],
            axis=1,
        )

    def values_at(self, X: Inputs, warm: WarmStart) -> Array | None:
        """Evaluate the last solution at other points, scaled as `problem.X`."""
        if warm.theta is None or warm.coef is None or warm.intercept is None:
            return None
        problem = self.problem
        x = Coefficients(warm.coef, warm.intercept)
        if problem.model.linear:
            return np.asarray(X @ x.coef + x.intercept)
        used = np.flatnonzero(x.coef.any(axis=1))
        rows = used if warm.landmarks is None else warm.landmarks.rows[used]
        kernel = problem.model.kernel_at(self.space.values(warm.theta))
        points, coef = problem.X[rows], x.coef[used]
        values = stack(lambda block: kernel.values(block, points, coef), X)
        values += x.intercept
        return values

    def mean_fitted(self, warm: WarmStart) -> Array | None:
        """Average fitted values of every class task over its splits: (n, n_tasks)."""
        if warm.fitted is None:
            return None
        task = self.problem.columns.task
        return np.stack(
            [warm.fitted[:, task == k].mean(axis=1) for k in np.unique(task)], axis=1
        )


def _solution(
    solver: Solver, machine: Machine, warm: WarmStart, tol: float
) -> Solution:
    """The solution from a warm start, by way of fewer machines if that is rough."""
    start, steps = warm.fitted, 0
    if warm.rough and start is not None:
        start, steps = solver.approach(machine, start, tol)
    found = solver.solve(machine, start, tol)
    return replace(found, iterations=found.iterations + steps)


def _same_rows(first: Landmarks | None, second: Landmarks | None) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first.rows, second.rows)
