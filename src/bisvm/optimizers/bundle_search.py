"""One search of a bundle method: its centre, its planes, its steps and its end.

What a bundle method is, is told in `bundle`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.optimizers.base import ABNORMAL, CONVERGED, NOT_FINITE, Floats, Problem
from bisvm.optimizers.planes import Planes
from bisvm.optimizers.subproblem import BundleStep, solve_subproblem

# A value this far below the first one counts as zero.
_FLOOR = 1e-4
# The first slope in the units of t; t = 0.1 is usual where H is in per cent.
_FIRST_SLOPE = 10.0
# Error of a value that may be rounding, relative to its size.
_ROUNDING = 1e-14
# How fast t may follow an observed curvature after a serious step.
_LEAP = 10.0
# What is left of a step that led to values that are not finite.
_BACK = 0.25
# Part of m delta that an evaluation may be wrong by.
_SHARE = 0.2
# How much too loose the centre's own value may be before it is looked at again.
_STALE = 10.0
# Steps shorter than this do not change x.
_SHORTEST = 1e-10
# What may be left of a curvature of the variable metric in one step.
_DAMPED = 0.1
# Largest curvature of the variable metric, and least of it with 1/t, in units of H.
_STEEPEST = 1e3
_FLATTEST = 1e-5
# t in the units of gamma.
_UNIT_T = 0.1
# Curvature of the model before a stop, in units of H or its slope.
_FIRM = 2.0

_DONE = "The model promises a decrease of H by less than tol."
_EXACT = "No further decrease within the objective's accuracy."
_STUCK = "The search got stuck at values that are not finite."
_SHORT = (
    "Steps became too short to change x: the gradient may be wrong, or the values less "
    "accurate than they are said to be."
)


class Options(NamedTuple):
    """The options of `Bundle`, completed."""

    m: float
    gamma: float
    t: float
    shrink: float
    grow: float
    tol: float
    max_step: float
    max_planes: int
    loose: float


class BundleSearch:
    """The centre x, the planes around it, and the proximal parameter t."""

    def __init__(self, options: Options, problem: Problem):
        self.options, self.problem = options, problem
        self.x = problem.start
        self.value, self.gradient = problem.evaluate_start(options.loose)
        self.asked, self.reached = options.loose, problem.reached
        self.planes = Planes.of(self.gradient)
        self._floor = _FLOOR * abs(self.value)
        slope = float(np.linalg.norm(self._pressed()))
        self.t = _FIRST_SLOPE * options.t / slope if slope > 0 else 1.0
        self._tried = False
        self._edge = False

    @property
    def unit(self) -> float:
        """What changes are compared with: H, unless it has fallen to almost zero."""
        return max(abs(self.value), self._floor, np.finfo(float).tiny)

    @property
    def noise(self) -> float:
        reached = self.reached if np.isfinite(self.reached) else 0.0
        return (reached + _ROUNDING) * abs(self.value)

    def metric(self) -> Floats:
        return np.eye(len(self.x)) / self.t

    def propose(self) -> BundleStep:
        """The lowest point of the model.

        A model that promises nothing may owe that to planes of points far away, which
        were bent to fit the centre. It is looked at once more with the curvature of H
        over steps of one, or its slope, in which only points nearby count.
        """
        metric = self.metric()
        natural = max(self.unit, float(np.linalg.norm(self.gradient)))
        mean = float(np.trace(metric)) / max(len(self.x), 1)
        step = self._lowest(metric, min(mean, natural), 2.0 * self.noise)
        if self._promised(step) <= self.options.tol * self.unit:
            step = self._lowest(metric, _FIRM * natural, 0.0)
        return step

    def _lowest(self, metric: Floats, curvature: float, noise: float) -> BundleStep:
        """The lowest point of the model with gamma in units of this curvature."""
        reach = 2.0 * self.options.max_step
        eta = self.planes.convexity(noise)
        eta += self.options.gamma * _UNIT_T * curvature
        slopes, errors = self.planes.convexified(eta)
        step = solve_subproblem(
            slopes,
            errors,
            metric,
            np.maximum(self.problem.lower - self.x, -reach),
            np.minimum(self.problem.upper - self.x, reach),
        )
        self._error = float(step.multipliers @ errors)
        return step

    def delta(self, step: BundleStep) -> float:
        return self._error + float(step.d @ self.metric() @ step.d)

    def stop(self, step: BundleStep) -> tuple[int, str] | None:
        """Status and message, if this step is not worth trying."""
        longest = float(np.abs(step.d).max(initial=0.0))
        still = longest <= _SHORTEST * (1.0 + float(np.abs(self.x).max(initial=0.0)))
        promised = self._promised(step)
        if promised <= self.options.tol * self.unit and (self._tried or longest == 0.0):
            if self._worse_than_asked():
                return ABNORMAL, self._inaccurate()
            return (CONVERGED, _DONE) if not self._stale(step) else None
        if not still:
            return None
        if self._edge:
            return NOT_FINITE, _STUCK
        # A step that is much shorter than t would have it: the planes leave no room.
        by_planes = longest <= 1e-3 * self.t * float(np.linalg.norm(self.gradient))
        if by_planes and self.delta(step) <= self.options.tol * self.unit:
            return CONVERGED, _EXACT
        return ABNORMAL, _SHORT

    def _promised(self, step: BundleStep) -> float:
        """delta, or what it would be with the natural curvature, that of one unit.

        A short t makes delta small wherever we are.
        """
        pull = float(np.linalg.norm(self.metric() @ step.d))
        natural = min(pull * pull / self.unit, pull)
        return max(self.delta(step), self._error + natural)

    def attempt(self, step: BundleStep) -> None:
        """Evaluate at x + d: a serious step, a null step, or one too far."""
        self._tried = True
        delta, asked = self.delta(step), self._wanted(step)
        x = self.problem.project(self.x + step.d)
        value, gradient, finite = self.problem.evaluate(x, asked)
        d, rise = x - self.x, value - self.value
        if not finite:
            self._edge = True
            slope = float(np.linalg.norm(self.gradient))
            short = 0.5 * _BACK * float(np.linalg.norm(d)) / slope if slope else self.t
            self.t = min(_BACK * self.t, short)
            return
        planes = self.planes.reduced(step.multipliers, self.options.max_planes - 1)
        suited = self._suited(d, gradient - self.gradient)
        if rise <= -self.options.m * delta:
            moved = planes.moved(d, rise, gradient)
            self.planes = moved.below(2.0 * self.noise)
            self._learn(d, gradient - self.gradient)
            self.x, self.value, self.gradient = x, value, gradient
            self.asked, self.reached = asked, self.problem.reached
            self.t = self._longer(suited)
            self._edge = False
        else:
            self.planes = planes.with_trial(d, rise, gradient)
            # A plane far below the centre says that the step was too long; others help.
            if self.planes.errors[-1] > delta:
                self.t *= self.options.shrink

    def _suited(self, d: Floats, turned: Floats) -> float:
        """1 / curvature along d; infinite where there is none."""
        curvature = float(d @ turned)
        return float(d @ d) / curvature if curvature > 0.0 else np.inf

    def _longer(self, suited: float) -> float:
        """t after a serious step: as the curvature has it, and no step too long."""
        options = self.options
        t = float(np.clip(suited, options.grow * self.t, _LEAP * self.t))
        slope = float(np.linalg.norm(self._pressed()))
        return min(t, options.max_step / slope) if slope > 0 else t

    def _learn(self, d: Floats, turned: Floats) -> None:
        """Nothing is remembered of the curvature but t."""

    def _pressed(self) -> Floats:
        return self.problem.projected_gradient(self.x, self.gradient)

    # --- accuracy -------------------------------------------------------------------

    def _wanted(self, step: BundleStep) -> float:
        """What to ask of an oracle: errors that are small against m delta."""
        least = _SHARE * self.options.m * self.options.tol
        wanted = _SHARE * self.options.m * self.delta(step) / self.unit
        return float(np.clip(wanted, least, self.options.loose))

    def _stale(self, step: BundleStep) -> bool:
        """Whether the centre was looked at much more loosely than is wanted now."""
        wanted = self._wanted(step)
        return (
            self.problem.is_oracle
            and self.asked > _STALE * wanted
            and self.reached > _STALE * wanted
        )

    def refresh(self, step: BundleStep) -> bool:
        """Look at the centre again if its value is too rough to compare with."""
        if not self._stale(step):
            return False
        self.asked = self._wanted(step)
        value, gradient, finite = self.problem.evaluate(self.x, self.asked)
        self.reached = self.problem.reached
        if finite:
            self.planes = self.planes.corrected(value - self.value, gradient)
            self.value, self.gradient = value, gradient
        return True

    def _worse_than_asked(self) -> bool:
        """Whether the oracle's own error is above what was asked, and above tol."""
        return self.reached > max(self.asked, self.options.tol)

    def _inaccurate(self) -> str:
        return (
            f"An accuracy of {self.asked:.1e} was asked for, and {self.reached:.1e} "
            "reached: too little for tol."
        )

    def result(self, nit: int, status: int, message: str) -> OptimizeResult:
        return self.problem.result(nit, status, message, accuracy=self.reached)


class MetricSearch(BundleSearch):
    """The same with a matrix Q for the curvature."""

    def __init__(self, options: Options, problem: Problem):
        super().__init__(options, problem)
        self.Q = np.zeros((len(self.x), len(self.x)))

    def metric(self) -> Floats:
        return self.Q + super().metric()

    def _suited(self, d: Floats, turned: Floats) -> float:
        """1 / the curvature that Q does not explain."""
        return super()._suited(d, turned - self.Q @ d)

    def _longer(self, suited: float) -> float:
        """Steps are as long as Q has them: t only keeps Q + I/t from being singular."""
        t = float(np.clip(suited, self.options.grow * self.t, _LEAP * self.t))
        return min(t, 1.0 / (_FLATTEST * self.unit))

    def _learn(self, d: Floats, turned: Floats) -> None:
        """Q+ = Q - Qd d'Q / d'Qd + y y' / d'y, with eigenvalues cut to [0, q].

        y is the change of the gradient, mixed with Qd where the curvature along d has
        fallen below a tenth of what Q says, so that Q falls no faster (Powell 1978).
        """
        curvature, square = float(d @ turned), float(d @ d)
        if not self.Q.any():
            self.Q = (max(curvature, 0.0) / square) * np.eye(len(d))
            return
        Qd = self.Q @ d
        explained = float(d @ Qd)
        least = _DAMPED * explained
        if curvature < least:
            part = (explained - least) / (explained - curvature)
            turned = part * turned + (1.0 - part) * Qd
            curvature = least
        if curvature <= 0.0:
            return
        Q = self.Q + np.outer(turned, turned) / curvature
        if explained > 0.0:
            Q -= np.outer(Qd, Qd) / explained
        values, vectors = np.linalg.eigh(Q)
        values = np.clip(values, 0.0, _STEEPEST * self.unit)
        self.Q = (vectors * values) @ vectors.T
