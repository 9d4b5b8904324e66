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
)

TRANSFORMS = ("log", "none")

# A value this far below the first one counts as zero when changes are judged.
_FLOOR = 1e-6
# The search got stuck, but at a gradient only this much above gtol: that is the
# accuracy of the objective, not a failure.
_NOISE = 100.0
# Curvature per unit of H that the first step counts on, in logarithmic coordinates.
_LEAST_CURVATURE = 0.05
_TINY = sys.float_info.min
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
    Evaluations until x is within 1e-3 of the minimum, medians: 8.5 ("none") and 10
    ("log") on 14 test functions; 11.5 and 14 on 42 validation losses of small RBF
    machines; 11 and 10 on hold-outs of fourclass. The logarithm helps where H falls by
    orders of magnitude, and costs where H is close to quadratic.

    References
    ----------
    R. H. Byrd, P. Lu, J. Nocedal, C. Zhu, A limited memory algorithm for bound
    constrained optimization, SIAM J. Sci. Comput. 16(5), 1995.
    """

    wants_units = True

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

    def within(self, tol: float, max_iter: int) -> Self:
        return self.replace(max_iter=max_iter, ftol=tol, gtol=3 * tol, transform="log")

    def validate(self) -> Self:
        self.check_count("max_iter", "memory")
        self.check_positive("ftol", "gtol", "max_step")
        if self.transform not in TRANSFORMS:
            raise ValueError(
                f"LBFGS: transform must be one of {TRANSFORMS}; got {self.transform!r}."
            )
        return self

    def _minimize(
        self, problem: Problem, like: OptimizeResult | None = None
    ) -> OptimizeResult:
        search = _LineSearches(problem, self)
        while search.status is None:
            search.run()
        return problem.result(search.nit, search.status, search.message)


class _LongStep(Exception):
    """A step was cut to half of max_step, and its end still lies on a descent."""


class _LineSearches:
    """The transformed objective, the iterates, and when to stop.

    L-BFGS-B searches along lines from its last accepted iterate. Points at which H may
    not be evaluated, or has no finite value, are answered by a parabola along the line
    that agrees with phi at the lowest point so far, the anchor, and has its minimum not
    far from it; the line search interpolates and goes straight there. If H still falls
    where a long step was cut, a new run of L-BFGS-B starts from that point.
    """

    def __init__(self, problem: Problem, options: LBFGS) -> None:
        self.problem, self.options = problem, options
        value, gradient = problem.evaluate_start()
        # The iterate; the last point evaluated; the lowest point on the current line.
        self.x, self.value, self.gradient = problem.start, value, gradient
        self.last = self.anchor = problem.start, value, gradient
        self.log = options.transform == "log" and value > 0.0
        self.first_value = value
        self.floor = _FLOOR * max(abs(value), float(np.abs(gradient).max(initial=0.0)))
        self.scale = _first_scale(value, self._projected_gradient())
        self.nit = 0
        self.status: int | None = None
        self.message = ""
        self.was_small = False
        self._new_line()
        self._stop_if_converged()

    def run(self) -> None:
        """L-BFGS-B from the current iterate, to its end or to a long step."""
        try:
            result = scipy.optimize.minimize(
                self.objective,
                self.x,
                jac=True,
                method="L-BFGS-B",
                bounds=scipy.optimize.Bounds(self.problem.lower, self.problem.upper),
                callback=self.accept,
                options={
                    "maxiter": self.options.max_iter - self.nit,
                    "maxcor": self.options.memory,
                    # A longer search along one line would only chase rounding errors.
                    "maxls": 10,
                    # `accept` decides in the units of H when to stop.
                    "ftol": 0.0,
                    "gtol": 0.0,
                },
            )
        except _LongStep:
            self._advance()
            # The next step down this descent may be as long as the last.
            norm = max(float(np.linalg.norm(self._projected_gradient())), _TINY)
            self.scale = 0.5 * self.options.max_step / norm
        else:
            self._conclude(result)

    def objective(self, x: Floats) -> tuple[float, Floats]:
        """phi and its gradient at `x`, or a parabola where H is out of reach."""
        if np.array_equal(x, self.last[0]):
            return self._transform(*self.last[1:])
        self.trials += 1
        length = float(np.abs(x - self.anchor[0]).max())
        if length > self.options.max_step:
            self.was_cut = True
            return self._parabola(x, 0.5 * self.options.max_step / length)
        value, gradient, finite = self.problem.evaluate(x)
        if not finite or (self.log and value <= 0.0):
            return self._parabola(x, _BACKTRACK)
        self.last = x.copy(), value, gradient
        if value < self.anchor[1]:
            step, self.anchor = x - self.anchor[0], self.last
            if self.was_cut and gradient @ step < 0.0:
                raise _LongStep
        return self._transform(value, gradient)

    def accept(self, intermediate_result: OptimizeResult) -> None:
        """Take the new iterate, and end the run when it is good enough."""
        # A line search may settle on a parabola: then there is nothing real to go on.
        if not np.array_equal(intermediate_result.x, self.last[0]):
            raise StopIteration
        self._advance()
        if self.status is not None:
            raise StopIteration

    def _advance(self) -> None:
        """The last point evaluated becomes the iterate."""
        decrease = self.value - self.last[1]
        self.x, self.value, self.gradient = self.last
        self.nit += 1
        self._stop_if_converged(decrease)
        self._new_line()
        if self.status is None and self.nit >= self.options.max_iter:
            self._stop(LIMIT_REACHED, "The iteration limit was reached.")

    def _new_line(self) -> None:
        self.anchor = self.last
        self.trials = 0
        self.was_cut = False

    def _stop_if_converged(self, decrease: float = math.inf) -> None:
        """Stop if the gradient, or the last decrease, is small in units of H.

        A small decrease counts at once if it is that of a full quasi-Newton step. A
        step that the line search had to cut may be small for other reasons (a bound, a
        kink): then it takes two in a row.
        """
        is_small = decrease <= self.options.ftol * self._unit()
        if self._projected_norm() <= self.options.gtol * self._unit():
            self._stop(CONVERGED, "The projected gradient is below gtol.")
        elif is_small and (self.trials == 1 or self.was_small):
            self._stop(CONVERGED, "The last decrease is below ftol.")
        self.was_small = is_small

    def _conclude(self, result: OptimizeResult) -> None:
        """Status and message of a run that ended by itself."""
        if self.status is not None:
            return
        if self._projected_norm() <= _NOISE * self.options.gtol * self._unit():
            self._stop(
                CONVERGED, "No further decrease within the objective's accuracy."
            )
        elif self.problem.n_not_finite:
            self._stop(
                NOT_FINITE, "The search got stuck at values that are not finite."
            )
        else:
            self._stop(
                ABNORMAL,
                "The line search found no decrease: the gradient may be inexact, or "
                f"the objective not smooth. L-BFGS-B said: {result.message}",
            )

    def _stop(self, status: int, message: str) -> None:
        self.status, self.message = status, message

    def _unit(self) -> float:
        """What changes are compared with: H, unless it has fallen to almost zero."""
        return max(abs(self.value), self.floor)

    def _projected_gradient(self) -> Floats:
        return self.problem.projected_gradient(self.x, self.gradient)

    def _projected_norm(self) -> float:
        return float(np.abs(self._projected_gradient()).max(initial=0.0))

    def _transform(self, value: float, gradient: Floats) -> tuple[float, Floats]:
        if self.log:
            scale = self.scale * self.first_value
            phi = scale * math.log(value / self.first_value)
            return phi, (scale / value) * gradient
        return self.scale * (value - self.first_value), self.scale * gradient

    def _parabola(self, x: Floats, fraction: float) -> tuple[float, Floats]:
        """A parabola from the anchor with its minimum `fraction` of the way to x.

        For fraction < 1/2 its value at x is above that of the anchor.
        """
        origin, value, gradient = self.anchor
        step = x - origin
        phi, gradient = self._transform(value, gradient)
        slope = -abs(float(gradient @ step))
        end_value = phi + slope * (1.0 - 0.5 / fraction)
        end_slope = slope * (1.0 - 1.0 / fraction)
        return end_value, (end_slope / float(step @ step)) * step


def _first_scale(value: float, gradient: Floats) -> float:
    """1 / |gradient|, or less at a start that is nearly a minimum already.

    There the first step is the one that suits a curvature of `_LEAST_CURVATURE` H:
    a step of length one would leave the valley.
    """
    norm = float(np.linalg.norm(gradient))
    return 1.0 / max(norm, _LEAST_CURVATURE * abs(value), _TINY)


def minimize_lbfgs(
    fun: Objective,
    x0: npt.ArrayLike,
    bounds: npt.ArrayLike | None = None,
    **options: Any,
) -> OptimizeResult:
    """Minimise `fun` within `bounds` by L-BFGS-B; `options` are those of `LBFGS`."""
    return LBFGS(**options).minimize(fun, x0, bounds)
