"""BFGS with a dense matrix, bounds by projection, and a memory for similar problems."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import OptimizeResult

from bisvm.optimizers.base import (
    ABNORMAL,
    CONVERGED,
    LIMIT_REACHED,
    NOT_FINITE,
    Floats,
    Objective,
    Optimizer,
    Problem,
)

# Of the predicted decrease, what a step must bring at least.
_ARMIJO = 1e-3
_MAX_BACKTRACKS = 10
# First inverse Hessian of log H in logarithmic coordinates: curvatures are about 1/2.
_FIRST = 2.0
# What the first observed curvature may make of it.
_FIRST_RANGE = (0.3, 30.0)
# Shortest first step, in logarithmic coordinates.
_FIRST_STEP = 0.3
# A value this far below the first one counts as zero.
_FLOOR = 1e-6
# Part of the predicted decrease that an error of H may reach.
_LOOSE = 0.03
# A rise of so many times the error that H is said to have may be that error.
_DOUBT = 3.0


class BFGS(Optimizer):
    r"""Quasi-Newton steps on log H with a dense inverse Hessian B.

    With g the gradient of log H, and d = -B g on the entries that no bound holds::

        x+ = projection of x + t d,   t = 1 or cut back by interpolation
        B+ = (I - r s y') B (I - r y s') + r s s'

    where s = x+ - x, y = g+ - g and r = 1 / y's. Hyperparameters are few and an
    evaluation is dear: one step takes one evaluation as a rule, and the logarithm makes
    first steps right whatever the units of H. B can be carried over from a similar
    problem (`like`), such as the same data subsampled.

    Parameters
    ----------
    max_iter : int, default=100
        Limit on the steps.
    ftol : float, default=1e-4
        Stop when a step is predicted to lower H by less than this part of it.
    gtol : float, default=1e-2
        What the projected gradient of log H must be below before ftol counts; where it
        is not, the matrix is forgotten once and the search goes on.
    max_step : float, default=1.5
        Longest change of any entry in one step: a factor of 4.5 in natural units.
    """

    wants_units = True

    def __init__(
        self,
        max_iter: int = 100,
        ftol: float = 1e-4,
        gtol: float = 1e-2,
        max_step: float = 1.5,
    ) -> None:
        self.max_iter = max_iter
        self.ftol = ftol
        self.gtol = gtol
        self.max_step = max_step

    def within(self, tol: float, max_iter: int) -> Self:
        return self.replace(max_iter=max_iter, ftol=0.1 * tol, gtol=10 * tol)

    def accuracy(self, evaluation: int) -> float:
        """Errors of H that are small against the decreases that count."""
        return 0.1 * self.ftol

    def validate(self) -> Self:
        self.check_count("max_iter")
        self.check_positive("ftol", "gtol", "max_step")
        return self

    def _minimize(
        self, problem: Problem, like: OptimizeResult | None = None
    ) -> OptimizeResult:
        carried = None if like is None else like.get("hess_inv")
        state = _State(problem, carried, self.max_step)
        for iteration in range(self.max_iter):
            step, predicted = self._step(state)
            if predicted <= self.ftol:
                if state.fresh or state.projected().max(initial=0.0) <= self.gtol:
                    return state.result(iteration, CONVERGED, _SMALL)
                state.forget()
                step, predicted = self._step(state)
            # A trial that is turned down teaches curvature too: ask before the search.
            fresh = state.fresh
            decrease = state.search(step, max(0.1 * self.ftol, _LOOSE * predicted))
            if decrease is None:
                if fresh:
                    return state.result(iteration, *state.stuck(self.gtol))
                state.forget()
            elif decrease <= 0.3 * self.ftol and predicted <= 3 * self.ftol:
                return state.result(iteration + 1, CONVERGED, _SMALL)
        return state.result(
            self.max_iter, LIMIT_REACHED, "The iteration limit was reached."
        )

    def _step(self, state: _State) -> tuple[Floats, float]:
        """The quasi-Newton step, cut to what is in reach, and the decrease promised."""
        step = state.direction()
        longest = float(np.abs(step).max(initial=0.0))
        # Where steps had to be cut back the gradient still tells what is to be had.
        promised = -0.5 * float(state.gradient @ step)
        promised *= self.max_step / max(longest, self.max_step)
        if longest > state.reach:
            step = step * (state.reach / longest)
        elif state.fresh and 0.0 < longest < _FIRST_STEP:
            # Nothing is known of the curvature: a valley may be long and flat.
            step = state.within_bounds(step * (_FIRST_STEP / longest))
        return step, max(promised, -0.5 * float(state.gradient @ step))


_SMALL = "The next step would lower H by less than ftol."


class _State:
    """Iterate, log H, its error and gradient there, inverse Hessian, longest step."""

    def __init__(
        self, problem: Problem, carried: Floats | None, max_step: float
    ) -> None:
        self.problem = problem
        self.reach = self.max_step = max_step
        value, gradient = problem.evaluate_start()
        self.x = problem.start
        # H + shift > 0: a criterion may vanish, or be negative.
        self.shift = _FLOOR * value if value > 0 else 1.0 - 2.0 * value
        self.value, self.gradient = self._log(value, gradient)
        self.reached = problem.reached
        n = len(self.x)
        self.fresh = carried is None or carried.shape != (n, n)
        self.inverse = _FIRST * np.eye(n) if self.fresh else np.array(carried)

    def _log(self, value: float, gradient: Floats) -> tuple[float, Floats]:
        lifted = value + self.shift
        if not lifted > 0:
            return math.inf, gradient
        return math.log(lifted), gradient / lifted

    def projected(self) -> Floats:
        return np.abs(self.problem.projected_gradient(self.x, self.gradient))

    def direction(self) -> Floats:
        """-B g on the free entries; steepest descent where that does not descend."""
        free = np.flatnonzero(self.projected() > 0)
        step = np.zeros_like(self.x)
        step[free] = -self.inverse[np.ix_(free, free)] @ self.gradient[free]
        step = self.within_bounds(step)
        if self.gradient @ step >= 0 and len(free):
            self.forget()
            step[free] = -_FIRST * self.gradient[free]
            step = self.within_bounds(step)
        return step

    def within_bounds(self, step: Floats) -> Floats:
        return self.problem.project(self.x + step) - self.x

    def forget(self) -> None:
        self.inverse = _FIRST * np.eye(len(self.x))
        self.fresh = True

    def search(self, step: Floats, accuracy: float) -> float | None:
        """Take the longest acceptable part of the step; the decrease, or None.

        accuracy : relative error of H that will do for it
        """
        slope = float(self.gradient @ step)
        length, risen = 1.0, False
        for _ in range(_MAX_BACKTRACKS):
            x = self.problem.project(self.x + length * step)
            value, gradient, finite = self.problem.evaluate(x, accuracy)
            reached = self.problem.reached
            value, gradient = self._log(value, gradient)
            finite = finite and math.isfinite(value)
            if finite:
                self._update(x - self.x, gradient - self.gradient)
                beyond = value - self.value - _ARMIJO * length * slope
                if 0.0 < beyond < _DOUBT * self.reached and self.reached > accuracy:
                    self._look_again(accuracy)
                    slope = float(self.gradient @ step)
                    beyond = value - self.value - _ARMIJO * length * slope
                    if slope >= 0.0:
                        return None
                if beyond <= 0.0:
                    decrease = self.value - value
                    self._learn_reach(x - self.x, risen=risen)
                    self.x, self.value, self.gradient = x, value, gradient
                    self.reached = reached
                    return decrease
                risen = True
            length *= (
                _interpolated(value - self.value, slope * length) if finite else 0.25
            )
        return None

    def _look_again(self, accuracy: float) -> None:
        """H here may have been taken for lower than it is: nothing would be below."""
        value, gradient, _ = self.problem.evaluate(self.x, accuracy)
        self.value, self.gradient = self._log(value, gradient)
        self.reached = self.problem.reached

    def _learn_reach(self, step: Floats, *, risen: bool) -> None:
        """Longest next step: one at which H had risen is not tried again at once."""
        doubled = 2.0 * float(np.abs(step).max(initial=0.0))
        self.reach = min(doubled if risen else max(self.reach, doubled), self.max_step)

    def _update(self, s: Floats, y: Floats) -> None:
        """A trial that is turned down tells of the curvature as well as one taken."""
        product = float(s @ y)
        if product <= 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            return
        if self.fresh:
            first = float(np.clip(product / (y @ y), *_FIRST_RANGE))
            self.inverse, self.fresh = first * np.eye(len(s)), False
        r = 1.0 / product
        By = self.inverse @ y
        # The formula of the class, multiplied out: two outer products.
        cross = np.outer(s, r * By)
        self.inverse = (
            self.inverse - cross - cross.T + (r + r * r * (y @ By)) * np.outer(s, s)
        )

    def stuck(self, gtol: float) -> tuple[int, str]:
        if self.projected().max(initial=0.0) <= gtol:
            return CONVERGED, "No further decrease within the objective's accuracy."
        if self.problem.n_not_finite:
            return NOT_FINITE, "The search got stuck at values that are not finite."
        return ABNORMAL, (
            "The line search found no decrease: the gradient may be inexact, or the "
            "objective not smooth."
        )

    def result(self, nit: int, status: int, message: str) -> OptimizeResult:
        return self.problem.result(nit, status, message, hess_inv=self.inverse)


def _interpolated(rise: float, slope: float) -> float:
    """Least point of the parabola through both values and the first slope."""
    return float(np.clip(-slope / (2.0 * (rise - slope)), 0.1, 0.5))


def minimize_bfgs(
    fun: Objective,
    x0: npt.ArrayLike,
    bounds: npt.ArrayLike | None = None,
    **options: Any,
) -> OptimizeResult:
    """Minimise `fun` by `BFGS`; the options are those of the class."""
    return BFGS(**options).minimize(fun, x0, bounds)
