"""Proximal bundle methods, for objectives with kinks that are known inexactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.core.types import Array
from bisvm.optimizers.base import (
    ABNORMAL,
    ACCURATE,
    CONVERGED,
    LIMIT,
    STUCK,
    BoundedProblem,
    Optimizer,
)
from bisvm.published.bundle_model import BundleStep, Planes, solve_subproblem

# A value this far below the first one counts as zero.
_FLOOR = 1e-4
# The first slope in the units of t; t = 0.1 is usual where H is in per cent.
_FIRST_SLOPE = 10.0
# Error of a value that may be rounding, relative to its size.
_ROUNDING = 1e-14
# How fast t may follow an observed curvature after a serious step.
_LEAP = 10.0
# A step to values that are not finite is cut to this share.
_BACK = 0.25
# Part of m delta that an evaluation may be wrong by.
_SHARE = 0.2
# How much too inaccurate the centre's value may be before it is evaluated again.
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
_SHORT = (
    "Steps became too short to change x: the gradient may be wrong, or the values less "
    "accurate than they are said to be."
)


@dataclass(eq=False, repr=False)
class Bundle(Optimizer):
    r"""Nonconvex proximal bundle method for inexact values and gradients.

    From all evaluations (x_j, f_j, g_j) a model of f around the best point x is made,
    whose planes are those of f + eta/2 |. - x|^2, with eta large enough to make their
    errors c_j at x nonnegative (see `bundle_model`)::

        d     = argmin  max_j (s_j'd - c_j) + |d|^2 / 2t   within the bounds
        delta = sum_j lambda_j c_j + |d|^2 / t
        eta   = max_j (-2 e_j / |x_j - x|^2, 0) + gamma

    with the multipliers lambda. If f(x + d) <= f(x) - m delta the step is serious: x
    moves there. Otherwise it is a null step: x stays, and a plane is added to the
    model. Null steps may shorten t, and serious steps lengthen it; the theory does not
    say by how much. Here t follows from the last change of the gradient, so that steps
    become those of a secant method where H is smooth.

    Changes of H are measured in units of H at x, or of its slope. Lengths have no unit:
    an estimator gives coordinates in which natural steps are about one.

    An oracle (see `Optimizer.minimize`) is asked for errors that are small against
    m delta: far from the minimum a rough answer is enough.

    Parameters
    ----------
    m : float, default=0.05
        Part of delta by which H has to fall in a serious step.
    gamma : float, default=2.0
        Convexity that is added to the model beyond what is needed, in units in which t
        is 0.1 (with a variable metric, a tenth of its mean curvature).
    t : float, default=0.1
        First proximal parameter, in units in which the first slope is 10, as it may be
        for a loss in per cent: the first step has a length of 10 t.
    shrink : float, default=0.8
        Factor on t after a null step whose plane lies far below the centre.
    grow : float, default=1.2
        Smallest factor on t after a serious step.
    tol : float, default=1e-5
        Stop when the model promises to lower H by less than this part of it, but not
        before the first step, unless the gradient vanishes.
    max_step : float, default=2.0
        No entry of a step exceeds twice this.
    max_planes : int, optional
        Number of planes that are kept; 2 n + 10 if None.
    loose : float, default=1e-2
        Relative error of H that is asked of an oracle at first.
    max_iter : int, default=200
        Number of steps tried; each takes one evaluation.

    References
    ----------
    W. Hare, C. Sagastizabal, M. Solodov, A proximal bundle method for nonsmooth
    nonconvex functions with inexact information, Comput. Optim. Appl. 63 (2016) 1-28.
    A. Stegie, Bundle Methods for Nonsmooth, Nonconvex Problems with Inexact
    Information, master's thesis, Technische Universität München, 2017: on bilevel SVMs.
    """

    wants_units = True
    expects_kinks = True

    m: float = 0.05
    gamma: float = 2.0
    t: float = 0.1
    shrink: float = 0.8
    grow: float = 1.2
    tol: float = 1e-5
    max_step: float = 2.0
    max_planes: int | None = None
    loose: float = 1e-2
    max_iter: int = 200

    def within(self, tol: float, max_iter: int) -> Self:
        return self.replace(tol=0.01 * tol, max_iter=max_iter)

    def loosened(self, factor: float, of_gradient: float | None = None) -> Self:
        return self.replace(tol=factor * self.tol)

    def validate(self) -> Self:
        self.check_positive(
            "m", "gamma", "t", "shrink", "grow", "tol", "max_step", "loose"
        )
        self.check_count("max_iter")
        if not self.m < 1.0:
            raise ValueError(f"{self}: m must be below 1; got {self.m!r}.")
        if not self.shrink < 1.0 <= self.grow:
            raise ValueError(
                f"{type(self).__name__}: expected shrink < 1 <= grow; got "
                f"shrink={self.shrink!r}, grow={self.grow!r}."
            )
        if self.max_planes is not None:
            self.check_count("max_planes")
            if self.max_planes < 3:
                raise ValueError(
                    f"{type(self).__name__}: max_planes must be at least 3, for the "
                    "centre's plane, the last one and one that stands for all others; "
                    f"got {self.max_planes!r}."
                )
        return self

    def _minimize(
        self, problem: BoundedProblem, previous: OptimizeResult | None = None
    ) -> OptimizeResult:
        search = self._search(problem)
        nit = 0
        while nit < self.max_iter:
            step = search.propose()
            stop = search.stop(step)
            if stop is not None:
                return search.result(nit, *stop)
            if search.refresh(step):
                continue
            search.attempt(step)
            nit += 1
        return search.result(nit, *LIMIT)

    def _search(self, problem: BoundedProblem) -> _BundleRun:
        return _BundleRun(self, problem)


@dataclass(eq=False, repr=False)
class VariableMetricBundle(Bundle):
    """The bundle method in a metric that learns the curvature of H.

    The subproblem's penalty is 1/2 d'(Q + I/t) d, and delta = sum_j lambda_j c_j +
    d'(Q + I/t) d. Q is a BFGS matrix with eigenvalues between 0 and q, a bound in units
    of H; it changes in serious steps only. t grows where Q explains the step, so that
    steps become those of Newton where H is smooth.

    Parameters
    ----------
    m, gamma, t, shrink, grow, tol, max_step, max_planes, loose, max_iter :
        As for `Bundle`.

    References
    ----------
    D. Noll, Bundle method for non-convex minimization with inexact subgradients and
    function values, in: Computational and Analytical Mathematics (2013), 555-592.
    """

    def _search(self, problem: BoundedProblem) -> _BundleRun:
        return _MetricRun(self, problem)


class _BundleRun:
    """The centre x, the planes around it, and the proximal parameter t."""

    def __init__(self, options: Bundle, problem: BoundedProblem):
        self.options, self.problem = options, problem
        self.x = problem.start
        self.value, self.gradient = problem.evaluate_start(options.loose)
        self.asked, self.reached = options.loose, problem.reached
        self.planes = Planes.of(self.gradient)
        self._floor = _FLOOR * abs(self.value)
        slope = float(np.linalg.norm(self._pressed()))
        self.t = _FIRST_SLOPE * options.t / slope if slope > 0 else 1.0
        self._max_planes = options.max_planes or 2 * len(problem.start) + 10
        self._tried = False
        self._edge = False

    @property
    def unit(self) -> float:
        """Return what changes are compared with: H, unless it is almost zero."""
        return max(abs(self.value), self._floor, np.finfo(float).tiny)

    @property
    def noise(self) -> float:
        reached = self.reached if np.isfinite(self.reached) else 0.0
        return (reached + _ROUNDING) * abs(self.value)

    def metric(self) -> Array:
        return np.eye(len(self.x)) / self.t

    def propose(self) -> BundleStep:
        """Return the lowest point of the model.

        A model that promises nothing may owe that to planes of points far away, which
        were convexified to fit the centre. It is minimised once more with the curvature
        of H over steps of one, or its slope, with which only points nearby count.
        """
        metric = self.metric()
        natural = max(self.unit, float(np.linalg.norm(self.gradient)))
        mean = float(np.trace(metric)) / max(len(self.x), 1)
        step = self._lowest(metric, min(mean, natural), 2.0 * self.noise)
        if self._promised(step) <= self.options.tol * self.unit:
            step = self._lowest(metric, _FIRM * natural, 0.0)
        return step

    def _lowest(self, metric: Array, curvature: float, noise: float) -> BundleStep:
        """Return the model's lowest point with gamma in units of this curvature."""
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
        """Return status and message, if this step is not worth trying."""
        longest = float(np.abs(step.d).max(initial=0.0))
        still = longest <= _SHORTEST * (1.0 + float(np.abs(self.x).max(initial=0.0)))
        promised = self._promised(step)
        if promised <= self.options.tol * self.unit and (self._tried or longest == 0.0):
            if self.reached > max(self.asked, self.options.tol):
                return ABNORMAL, (
                    f"An accuracy of {self.asked:.1e} was asked for, and "
                    f"{self.reached:.1e} reached: too little for tol."
                )
            return (CONVERGED, _DONE) if not self._stale(step) else None
        if not still:
            return None
        if self._edge:
            return STUCK
        # The step is much shorter than by t alone: the planes leave no room.
        by_planes = longest <= 1e-3 * self.t * float(np.linalg.norm(self.gradient))
        if by_planes and self.delta(step) <= self.options.tol * self.unit:
            return ACCURATE
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
        planes = self.planes.reduced(step.multipliers, self._max_planes - 1)
        natural = self._natural_t(d, gradient - self.gradient)
        if rise <= -self.options.m * delta:
            moved = planes.moved(d, rise, gradient)
            self.planes = moved.below(2.0 * self.noise)
            self._learn(d, gradient - self.gradient)
            self.x, self.value, self.gradient = x, value, gradient
            self.asked, self.reached = asked, self.problem.reached
            self.t = self._longer(natural)
            self._edge = False
        else:
            self.planes = planes.with_trial(d, rise, gradient)
            # A plane far below the centre says that the step was too long; others help.
            if self.planes.errors[-1] > delta:
                self.t *= self.options.shrink

    def _natural_t(self, d: Array, turned: Array) -> float:
        """1 / curvature along d; infinite where there is none."""
        curvature = float(d @ turned)
        return float(d @ d) / curvature if curvature > 0.0 else np.inf

    def _longer(self, natural: float) -> float:
        """t after a serious step, by the observed curvature and within max_step."""
        options = self.options
        t = float(np.clip(natural, options.grow * self.t, _LEAP * self.t))
        slope = float(np.linalg.norm(self._pressed()))
        return min(t, options.max_step / slope) if slope > 0 else t

    def _learn(self, d: Array, turned: Array) -> None:
        """Learn nothing of the curvature but t."""

    def _pressed(self) -> Array:
        return self.problem.projected_gradient(self.x, self.gradient)

    # --- accuracy -------------------------------------------------------------------

    def _wanted(self, step: BundleStep) -> float:
        """Return what to ask of an oracle: errors that are small against m delta."""
        least = _SHARE * self.options.m * self.options.tol
        wanted = _SHARE * self.options.m * self.delta(step) / self.unit
        return float(np.clip(wanted, least, self.options.loose))

    def _stale(self, step: BundleStep) -> bool:
        """Return whether the centre's value is much less accurate than needed now."""
        wanted = self._wanted(step)
        return (
            self.problem.is_oracle
            and self.asked > _STALE * wanted
            and self.reached > _STALE * wanted
        )

    def refresh(self, step: BundleStep) -> bool:
        """Evaluate the centre again if its value is too inaccurate to compare with."""
        if not self._stale(step):
            return False
        self.asked = self._wanted(step)
        value, gradient, finite = self.problem.evaluate(self.x, self.asked)
        self.reached = self.problem.reached
        if finite:
            self.planes = self.planes.corrected(value - self.value, gradient)
            self.value, self.gradient = value, gradient
        return True

    def result(self, nit: int, status: int, message: str) -> OptimizeResult:
        return self.problem.result(nit, status, message, accuracy=self.reached)


class _MetricRun(_BundleRun):
    """The same with a matrix Q for the curvature."""

    def __init__(self, options: Bundle, problem: BoundedProblem):
        super().__init__(options, problem)
        self.Q = np.zeros((len(self.x), len(self.x)))

    def metric(self) -> Array:
        return self.Q + super().metric()

    def _natural_t(self, d: Array, turned: Array) -> float:
        """1 / the curvature that Q does not explain."""
        return super()._natural_t(d, turned - self.Q @ d)

    def _longer(self, natural: float) -> float:
        """Steps are as long as Q has them: t only keeps Q + I/t from being singular."""
        t = float(np.clip(natural, self.options.grow * self.t, _LEAP * self.t))
        return min(t, 1.0 / (_FLATTEST * self.unit))

    def _learn(self, d: Array, turned: Array) -> None:
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
