"""L-BFGS-B: SciPy's bounded quasi-Newton method, prepared for hyperparameters."""

from __future__ import annotations

import math
import sys
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.optimize
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
    check_count,
    check_positive,
)

TRANSFORMS = ("log", "none")

# A value this far below the first one counts as zero when changes are judged.
_FLOOR = 1e-6
# The search got stuck, but at a gradient only this much above gtol: that is the
# accuracy of the objective, not a failure.
_NOISE = 100.0
# Curvature per unit of H that the first step counts on, in logarithmic coordinates.
_LEAST_CURVATURE = 0.05
# A step into values that are not finite is cut to this part of its length.
_BACKTRACK = 0.25


class LBFGS(Optimizer):
    """L-BFGS-B on the objective, scaled so that its first step has length one.

    Minimises ::

        phi(x) = s log(H(x) / H(x0))      transform="log"
        phi(x) = s (H(x) - H(x0))         transform="none"

    with s such that the first step has length one: in logarithmic coordinates it
    changes a hyperparameter by a factor of about e, whatever the units of H.

    Parameters
    ----------
    max_iter : int, default=100
        Limit on the iterations; each takes one evaluation, rarely more.
    ftol : float, default=1e-7
        Stop when an iteration lowers H by less than this part of H.
    gtol : float, default=1e-5
        Stop when no entry of the projected gradient of H exceeds this part of H.
    max_step : float, default=3.0
        A trial step that moves any coordinate further is cut to half this length,
        without an evaluation: far out, machines are slow to train and H is flat.
    memory : int, default=10
        Pairs of steps and gradients that make up the quasi-Newton matrix.
    transform : {"log", "none"}, default="none"
        What is minimised. "log" needs H(x0) > 0 and gives way to "none" otherwise.

    Notes
    -----
    Evaluations until x is within 1e-3 of the minimum, medians: 7.5 ("none") and 9.5
    ("log") on 14 test functions; 12 and 14 on 42 validation losses of small RBF
    machines; 11 and 10 on fourclass from its published starts. The logarithm helps
    where H falls by orders of magnitude, and costs where H is close to quadratic.

    References
    ----------
    R. H. Byrd, P. Lu, J. Nocedal, C. Zhu, A limited memory algorithm for bound
    constrained optimization, SIAM J. Sci. Comput. 16(5), 1995.
    """

    def __init__(
        self,
        max_iter: int = 100,
        ftol: float = 1e-7,
        gtol: float = 1e-5,
        max_step: float = 3.0,
        memory: int = 10,
        transform: str = "none",
    ) -> None:
        self.max_iter = max_iter
        self.ftol = ftol
        self.gtol = gtol
        self.max_step = max_step
        self.memory = memory
        self.transform = transform

    def validate(self) -> Self:
        check_count("LBFGS", max_iter=self.max_iter, memory=self.memory)
        check_positive("LBFGS", ftol=self.ftol, gtol=self.gtol, max_step=self.max_step)
        if self.transform not in TRANSFORMS:
            raise ValueError(
                f"LBFGS: transform must be one of {TRANSFORMS}; got {self.transform!r}."
            )
        return self

    def _minimize(self, problem: Problem) -> OptimizeResult:
        value, gradient = problem.evaluate_start()
        search = _Search(problem, self, value, gradient)
        if search.converged():
            return problem.result(0, CONVERGED, search.message)
        scipy_result = scipy.optimize.minimize(
            search.objective,
            problem.start,
            jac=True,
            method="L-BFGS-B",
            bounds=scipy.optimize.Bounds(problem.lower, problem.upper),
            callback=search.accept,
            options={
                "maxiter": self.max_iter,
                "maxfun": 20 * self.max_iter,
                "maxcor": self.memory,
                # A longer search along one line would only chase rounding errors.
                "maxls": 10,
                # `accept` decides in the units of H when to stop.
                "ftol": 0.0,
                "gtol": 0.0,
            },
        )
        nit = int(scipy_result.nit)
        return problem.result(nit, *search.verdict(scipy_result))


class _Search:
    """One run: the transformed objective, the iterates, and when to stop.

    L-BFGS-B searches along lines from its last accepted iterate. Points at which H may
    not be evaluated, or has no finite value, are answered by a parabola along the line
    that agrees with phi at the iterate and has its minimum nearer to it; the line
    search interpolates and goes straight there.
    """

    def __init__(
        self, problem: Problem, options: LBFGS, value: float, gradient: Floats
    ) -> None:
        self.problem, self.options = problem, options
        self.log = options.transform == "log" and value > 0.0
        self.first_value = value
        self.floor = _FLOOR * max(abs(value), float(np.abs(gradient).max(initial=0.0)))
        self.scale = _first_scale(
            value, problem.projected_gradient(problem.start, gradient)
        )
        # The last point evaluated, and the iterate from which the search goes on.
        self.last = problem.start, value, gradient
        self.x, self.value, self.gradient = self.last
        self.trials = 0
        self.was_small = False
        self.message = ""

    def objective(self, x: Floats) -> tuple[float, Floats]:
        """phi and its gradient at `x`, or a parabola where H is out of reach."""
        if np.array_equal(x, self.last[0]):
            return self._transform(*self.last[1:])
        self.trials += 1
        length = float(np.abs(x - self.x).max())
        if length > self.options.max_step:
            return self._parabola(x, 0.5 * self.options.max_step / length)
        value, gradient, finite = self.problem.evaluate(x)
        if not finite or (self.log and value <= 0.0):
            return self._parabola(x, _BACKTRACK)
        self.last = x.copy(), value, gradient
        return self._transform(value, gradient)

    def accept(self, intermediate_result: OptimizeResult) -> None:
        """Take the new iterate, and end the run when it is good enough."""
        if not np.array_equal(intermediate_result.x, self.last[0]):
            # The line search settled on a parabola: there is nothing real to go on.
            raise StopIteration
        decrease = self.value - self.last[1]
        self.x, self.value, self.gradient = self.last
        if self.converged(decrease):
            raise StopIteration
        self.trials = 0

    def converged(self, decrease: float = math.inf) -> bool:
        """Whether the gradient, or the last decrease, is small in units of H.

        A small decrease counts at once if it is that of a full quasi-Newton step. A
        step that the line search had to cut may be small for other reasons (a bound, a
        kink): then it takes two in a row.
        """
        unit = self._unit()
        is_small = decrease <= self.options.ftol * unit
        if self._projected_norm() <= self.options.gtol * unit:
            self.message = "The projected gradient is below gtol."
        elif is_small and (self.trials == 1 or self.was_small):
            self.message = "The last decrease is below ftol."
        self.was_small = is_small
        return bool(self.message)

    def verdict(self, scipy_result: OptimizeResult) -> tuple[int, str]:
        """Status and message of the whole run."""
        if self.message:
            return CONVERGED, self.message
        if scipy_result.status == 1:
            return LIMIT_REACHED, "The iteration limit was reached."
        if self._projected_norm() <= _NOISE * self.options.gtol * self._unit():
            return CONVERGED, "No further decrease within the objective's accuracy."
        if self.problem.n_not_finite:
            return NOT_FINITE, "The search got stuck at values that are not finite."
        return ABNORMAL, (
            "The line search found no decrease: the gradient may be inexact, or the "
            "objective not smooth."
        )

    def _unit(self) -> float:
        """What changes of H are compared with: H, unless it has fallen to almost zero."""
        return max(abs(self.value), self.floor)

    def _projected_norm(self) -> float:
        gradient = self.problem.projected_gradient(self.x, self.gradient)
        return float(np.abs(gradient).max(initial=0.0))

    def _transform(self, value: float, gradient: Floats) -> tuple[float, Floats]:
        if self.log:
            scale = self.scale * self.first_value
            phi = scale * math.log(value / self.first_value)
            return phi, (scale / value) * gradient
        return self.scale * (value - self.first_value), self.scale * gradient

    def _parabola(self, x: Floats, fraction: float) -> tuple[float, Floats]:
        """A parabola through the iterate with its minimum `fraction` of the way to x.

        For fraction < 1/2 its value at x is above that of the iterate.
        """
        step = x - self.x
        phi, gradient = self._transform(self.value, self.gradient)
        slope = float(gradient @ step)
        end_value = phi + slope * (1.0 - 0.5 / fraction)
        end_slope = slope * (1.0 - 1.0 / fraction)
        return end_value, (end_slope / float(step @ step)) * step


def _first_scale(value: float, gradient: Floats) -> float:
    """1 / |gradient|, or less at a start that is nearly a minimum already.

    There the first step is the one that suits a curvature of `_LEAST_CURVATURE` H:
    a step of length one would leave the valley.
    """
    norm = float(np.linalg.norm(gradient))
    return 1.0 / max(norm, _LEAST_CURVATURE * abs(value), sys.float_info.min)


def minimize_lbfgs(
    fun: Objective,
    x0: npt.ArrayLike,
    bounds: npt.ArrayLike | None = None,
    **options: Any,
) -> OptimizeResult:
    """Minimise `fun` within `bounds` by L-BFGS-B; `options` are those of `LBFGS`."""
    return LBFGS(**options).minimize(fun, x0, bounds)
