"""L-BFGS-B: SciPy's bounded quasi-Newton method, safeguarded for hyperparameters."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import scipy.optimize
from scipy.optimize import OptimizeResult

from bisvm.core.types import Array
from bisvm.optimizers.base import (
    ABNORMAL,
    ACCURATE,
    CONVERGED,
    LIMIT,
    NO_DECREASE,
    STUCK,
    BoundedProblem,
    Optimizer,
)

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


@dataclass(eq=False, repr=False)
class LBFGS(Optimizer):
    """SciPy's L-BFGS-B, on an objective whose first step has length one.

    SciPy's method handles neither values that are not finite nor a largest step, and
    its tolerances depend on the units of H. `_Run` adds what is missing.

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
        A trial step that moves a coordinate by more is cut to half this length, without
        an evaluation: far out, machines are slow to train and H is flat.
    memory : int, default=10
        Pairs of steps and gradients that make up the quasi-Newton matrix.
    transform : {"log", "none"}, default="none"
        What is minimised. "log" needs H(x0) > 0; if H(x0) is not, "none" is used.

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

    max_iter: int = 100
    ftol: float = 1e-7
    gtol: float = 1e-5
    max_step: float = 3.0
    memory: int = 10
    transform: str = "none"

    def within(self, tol: float, max_iter: int) -> Self:
        return self.replace(max_iter=max_iter, ftol=tol, gtol=3 * tol, transform="log")

    def validate(self) -> Self:
        self.check_count("max_iter", "memory")
        self.check_positive("ftol", "gtol", "max_step")
        self.check_choice("transform", ("log", "none"))
        return self

    def _minimize(
        self, problem: BoundedProblem, previous: OptimizeResult | None = None
    ) -> OptimizeResult:
        run = _Run(problem, self)
        while run.end is None:
            run.descend()
        return problem.result(run.nit, *run.end)


class _LongStep(Exception):
    """A step was cut to half of max_step, and H still falls where it ends."""


class _Iterate(NamedTuple):
    x: Array
    value: float
    gradient: Array


class _Run:
    """The transformed objective, the iterates, and when to stop.

    L-BFGS-B searches along lines from its last accepted iterate. Points at which H may
    not be evaluated, or has no finite value, get the values of a parabola along the
    line that agrees with phi at the lowest point so far, the anchor, and has its
    minimum close to it: the line search interpolates and goes there. If H still falls
    where a long step was cut, L-BFGS-B starts again from that point.

    iterate, last, anchor : the last accepted point, the last point evaluated, and the
        lowest point on the current line
    end : status and message, once the run is over
    """

    def __init__(self, problem: BoundedProblem, options: LBFGS) -> None:
        self.problem, self.options = problem, options
        value, gradient = problem.evaluate_start()
        self.iterate = self.last = self.anchor = _Iterate(
            problem.start, value, gradient
        )
        self.trials, self.was_cut = 0, False
        self.log = options.transform == "log" and value > 0.0
        self.first_value = value
        self.floor = _FLOOR * max(abs(value), float(np.abs(gradient).max(initial=0.0)))
        # s = 1 / |gradient|. At a start that is nearly a minimum a step of length one
        # would leave the valley: there s is that of the least curvature.
        norm = float(np.linalg.norm(self._projected_gradient()))
        self.scale = 1.0 / max(norm, _LEAST_CURVATURE * abs(value), _TINY)
        self.nit = 0
        self.end: tuple[int, str] | None = None
        self.was_small = False
        self._stop_if_converged()

    def descend(self) -> None:
        """Run L-BFGS-B from the current iterate, to its end or to a long step."""
        try:
            result = scipy.optimize.minimize(
                self.objective,
                self.iterate.x,
                jac=True,
                method="L-BFGS-B",
                bounds=scipy.optimize.Bounds(self.problem.lower, self.problem.upper),
                callback=self.accept,
                options={
                    "maxiter": self.options.max_iter - self.nit,
                    "maxcor": self.options.memory,
                    # A longer search along one line would only follow rounding errors.
                    "maxls": 10,
                    # `accept` decides in the units of H when to stop.
                    "ftol": 0.0,
                    "gtol": 0.0,
                },
            )
        except _LongStep:
            self._advance()
            # The next step may be as long as the last.
            norm = max(float(np.linalg.norm(self._projected_gradient())), _TINY)
            self.scale = 0.5 * self.options.max_step / norm
        else:
            self.end = self.end or self._conclusion(result)

    def objective(self, x: Array) -> tuple[float, Array]:
        """Return phi and its gradient, or a parabola where H is out of reach."""
        if np.array_equal(x, self.last.x):
            return self._transform(self.last)
        self.trials += 1
        length = float(np.abs(x - self.anchor.x).max())
        if length > self.options.max_step:
            self.was_cut = True
            return self._parabola(x, 0.5 * self.options.max_step / length)
        value, gradient, finite = self.problem.evaluate(x)
        if not finite or (self.log and value <= 0.0):
            return self._parabola(x, _BACKTRACK)
        self.last = _Iterate(x.copy(), value, gradient)
        if value < self.anchor.value:
            step, self.anchor = x - self.anchor.x, self.last
            if self.was_cut and gradient @ step < 0.0:
                raise _LongStep
        return self._transform(self.last)

    def accept(self, intermediate_result: OptimizeResult) -> None:
        """Take the new iterate, and end the run when it is good enough."""
        # A line search may end on a parabola: then there is nothing real to go on.
        if not np.array_equal(intermediate_result.x, self.last.x):
            raise StopIteration
        self._advance()
        if self.end is not None:
            raise StopIteration

    def _advance(self) -> None:
        """Make the last point evaluated the iterate."""
        decrease = self.iterate.value - self.last.value
        self.iterate = self.last
        self.nit += 1
        self._stop_if_converged(decrease)
        self.anchor, self.trials, self.was_cut = self.last, 0, False
        if self.end is None and self.nit >= self.options.max_iter:
            self.end = LIMIT

    def _stop_if_converged(self, decrease: float = math.inf) -> None:
        """Stop if the gradient, or the last decrease, is small in units of H.

        A small decrease counts at once if it is that of a full quasi-Newton step. A
        step that the line search had to cut may be small for other reasons (a bound, a
        kink): then it takes two in a row.
        """
        is_small = decrease <= self.options.ftol * self._unit()
        if self._projected_norm() <= self.options.gtol * self._unit():
            self.end = CONVERGED, "The projected gradient is below gtol."
        elif is_small and (self.trials == 1 or self.was_small):
            self.end = CONVERGED, "The last decrease is below ftol."
        self.was_small = is_small

    def _conclusion(self, result: OptimizeResult) -> tuple[int, str]:
        """Return status and message of a run that L-BFGS-B ended."""
        if self._projected_norm() <= _NOISE * self.options.gtol * self._unit():
            return ACCURATE
        if self.problem.n_not_finite:
            return STUCK
        return ABNORMAL, f"{NO_DECREASE[1]} L-BFGS-B said: {result.message}"

    def _unit(self) -> float:
        """Return what changes are compared with: H, unless it is almost zero."""
        return max(abs(self.iterate.value), self.floor)

    def _projected_gradient(self) -> Array:
        x, _, gradient = self.iterate
        return self.problem.projected_gradient(x, gradient)

    def _projected_norm(self) -> float:
        return float(np.abs(self._projected_gradient()).max(initial=0.0))

    def _transform(self, at: _Iterate) -> tuple[float, Array]:
        if self.log:
            scale = self.scale * self.first_value
            phi = scale * math.log(at.value / self.first_value)
            return phi, (scale / at.value) * at.gradient
        return self.scale * (at.value - self.first_value), self.scale * at.gradient

    def _parabola(self, x: Array, fraction: float) -> tuple[float, Array]:
        """Return a parabola from the anchor, least `fraction` of the way to x.

        For fraction < 1/2 its value at x is above that of the anchor.
        """
        step = x - self.anchor.x
        phi, gradient = self._transform(self.anchor)
        slope = -abs(float(gradient @ step))
        end_value = phi + slope * (1.0 - 0.5 / fraction)
        end_slope = slope * (1.0 - 1.0 / fraction)
        return end_value, (end_slope / float(step @ step)) * step
