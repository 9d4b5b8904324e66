"""BFGS with bounds by projection, and with the curvature of similar problems."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.core.types import Array
from bisvm.optimizers.base import (
    ACCURATE,
    CONVERGED,
    LIMIT,
    LIMIT_REACHED,
    NO_DECREASE,
    STUCK,
    BoundedProblem,
    Optimizer,
    backtrack,
)

# Sufficient decrease (Armijo), as a share of what the slope promises.
_ARMIJO = 1e-3
# Trials of one line search: interpolation shortens a step at least by half, so that
# the last is 1e-3 of the first at most.
_MAX_TRIALS = 10
# A step into values that are not finite is cut to this part of its length.
_BACKTRACK = 0.25
# First inverse Hessian of log H in logarithmic coordinates: curvatures are about 1/2.
_FIRST = 2.0
# Limits on the inverse curvature that the first step observes.
_FIRST_RANGE = (0.3, 30.0)
# The same of later steps: H depends little on each of thousands of coordinates.
_LATER_RANGE = (0.3, 1e4)
# Shortest first step, in logarithmic coordinates: a factor of e^0.3 = 1.35.
_FIRST_STEP = 0.3
# A step that moves a coordinate by less says little about the curvature along it.
_SEEN = 0.1
# How much longer the next step is along one on which H fell ever faster.
_LONGER = 4.0
# Cosine between a step and the change of the gradient from which on it counts.
_LEAST_CURVATURE = 1e-10
# A value this far below the first one counts as zero.
_FLOOR = 1e-6
# Part of the predicted decrease that an error of H may reach.
_LOOSE = 0.03
# A rise of H by up to this many times its stated error may be that error.
_DOUBT = 3.0
# Coordinates up to which B is a matrix: 2 MB. Beyond, the last steps stand for it.
_DENSE = 500
_REMEMBERED = 20
# Part of what is missing to a target that a step must promise.
_TOWARDS_TARGET = 0.1
_SMALL = "The next step would lower H by less than ftol."
_TOO_FAR = LIMIT_REACHED, "No step promises to come near the target."


@dataclass(eq=False, repr=False)
class BFGS(Optimizer):
    r"""Quasi-Newton steps on log H with an inverse Hessian B.

    With g the gradient of log H, and d = -B g on the entries that no bound holds::

        x+ = projection of x + t d,   t = 1 or shortened by interpolation
        B+ = (I - r s y') B (I - r y s') + r s s'

    where s = x+ - x, y = g+ - g and r = 1 / y's. There are few hyperparameters, and
    evaluations are expensive: one step usually takes one evaluation, and the logarithm
    gives the first steps the right length whatever the units of H. B can be carried
    over from a similar problem (`previous`), such as a sample of the same data. With
    more than 500 entries B is not formed: the last 20 steps stand for it (L-BFGS).

    Parameters
    ----------
    max_iter : int, default=100
        Limit on the steps.
    ftol : float, default=1e-4
        Stop when a step is predicted to lower H by less than this part of it.
    gtol : float, default=1e-2
        ftol stops the search only if the projected gradient of log H is below this.
        Otherwise B is reset once, and the search goes on.
    max_step : float, default=1.5
        Largest change of any entry in one step: a factor of 4.5 in natural units.
    target : float, default=inf
        A minimum is of use only below this value. If the next step promises less than a
        tenth of the distance to it, in log H, the search ends.

    Examples
    --------
    >>> result = BFGS().minimize(lambda x: (x @ x + 1, 2 * x), [3.0, 1.0])
    >>> result.status, abs(result.fun - 1) < 1e-3
    (0, True)
    """

    wants_units = True

    max_iter: int = 100
    ftol: float = 1e-4
    gtol: float = 1e-2
    max_step: float = 1.5
    target: float = math.inf

    def towards(self, target: float) -> Self:
        return self.replace(target=target)

    def within(self, tol: float, max_iter: int) -> Self:
        return self.replace(max_iter=max_iter, ftol=0.1 * tol, gtol=10 * tol)

    def accuracy(self, evaluation: int) -> float:
        """Return 0.1 ftol for every evaluation.

        Errors of H are then small against the decreases that count.
        """
        return 0.1 * self.ftol

    def validate(self) -> Self:
        self.check_count("max_iter")
        self.check_positive("ftol", "gtol", "max_step")
        return self

    def _minimize(
        self, problem: BoundedProblem, previous: OptimizeResult | None = None
    ) -> OptimizeResult:
        state = _State.first(problem, previous, self.max_step)
        for iteration in range(self.max_iter):
            state, step, predicted = self._propose(state)
            if predicted <= self.ftol and state.may_fall(self.max_step) > self.ftol:
                # Coordinates that hardly moved, as at a bound: a valley may be flat.
                step = state.along_unseen(_FIRST_STEP)
                state, _ = _search(state, step, 0.1 * self.ftol, self.max_step, 1)
                state = replace(state, seen=state.seen | (step != 0.0))
                continue
            if predicted <= self.ftol:
                if state.fresh or state.projected().max(initial=0.0) <= self.gtol:
                    return state.result(iteration, CONVERGED, _SMALL)
                state, step, predicted = self._propose(state.forgotten())
            missing = state.above(self.target)
            if not state.fresh and predicted < _TOWARDS_TARGET * missing:
                return state.result(iteration, *_TOO_FAR)
            # The search learns from rejected trials: ask before it.
            fresh = state.fresh
            accuracy = max(0.1 * self.ftol, _LOOSE * predicted)
            state, decrease = _search(state, step, accuracy, self.max_step)
            if decrease is None:
                if fresh:
                    return state.result(iteration, *state.stuck(self.gtol))
                state = state.forgotten()
            elif decrease <= 0.3 * self.ftol and predicted <= 3 * self.ftol:
                return state.result(iteration + 1, CONVERGED, _SMALL)
        return state.result(self.max_iter, *LIMIT)

    def _propose(self, state: _State) -> tuple[_State, Array, float]:
        """Return the quasi-Newton step within reach and the decrease it promises."""
        state, step = state.direction()
        longest = float(np.abs(step).max(initial=0.0))
        # A step that has to be shortened still promises what the gradient says.
        promised = -0.5 * float(state.at.gradient @ step)
        promised *= self.max_step / max(longest, self.max_step)
        if longest > state.reach:
            step = step * (state.reach / longest)
        elif state.fresh and 0.0 < longest < _FIRST_STEP:
            # Nothing is known of the curvature: a valley may be long and flat.
            step = state.within_bounds(step * (_FIRST_STEP / longest))
        return state, step, max(promised, -0.5 * float(state.at.gradient @ step))


class _LogPoint(NamedTuple):
    """log(H + shift) at x, its gradient, and the relative error of H."""

    x: Array
    value: float
    gradient: Array
    error: float


class _Inverse(Protocol):
    """B, an approximation of the inverse Hessian."""

    @property
    def n(self) -> int: ...

    def times(self, gradient: Array, free: Array) -> Array:
        """Return B g, both on the free entries alone."""

    def updated(self, s: Array, y: Array) -> _Inverse:
        """Return B after a step s that changed the gradient by y, s'y > 0."""


@dataclass(frozen=True, eq=False)
class _Matrix:
    """B itself."""

    B: Array

    @property
    def n(self) -> int:
        return len(self.B)

    def times(self, gradient: Array, free: Array) -> Array:
        product: Array = self.B[np.ix_(free, free)] @ gradient[free]
        return product

    def updated(self, s: Array, y: Array) -> _Matrix:
        """The formula of `BFGS`, multiplied out."""
        r = 1.0 / float(s @ y)
        By = self.B @ y
        cross = np.outer(s, r * By)
        factor = r + r * r * float(y @ By)
        return _Matrix(self.B - cross - cross.T + factor * np.outer(s, s))


@dataclass(frozen=True, eq=False)
class _LastSteps:
    """B by the last steps s and changes y of the gradient, from a multiple of I.

    B g takes two loops over them (Nocedal 1980); on some of the entries those steps
    count whose s'y is positive there.
    """

    n: int
    size: float
    steps: tuple[tuple[Array, Array], ...] = ()

    def times(self, gradient: Array, free: Array) -> Array:
        pairs = ((s[free], y[free]) for s, y in self.steps)
        known = [(s, y) for s, y in pairs if _curved(s, y)]
        out: Array = gradient[free]
        shares = []
        for s, y in reversed(known):
            shares.append(float(s @ out) / float(s @ y))
            out = out - shares[-1] * y
        out = self.size * out
        for (s, y), share in zip(known, reversed(shares), strict=True):
            out = out + (share - float(y @ out) / float(s @ y)) * s
        return out

    def updated(self, s: Array, y: Array) -> _LastSteps:
        kept = (*self.steps, (s, y))[-_REMEMBERED:]
        size = float(np.clip(float(s @ y) / float(y @ y), *_LATER_RANGE))
        return _LastSteps(self.n, size, kept)


def _curved(s: Array, y: Array) -> bool:
    """Whether the gradient rose along a step, by more than rounding errors."""
    size = float(np.linalg.norm(s) * np.linalg.norm(y))
    return float(s @ y) > _LEAST_CURVATURE * size


def _multiple(n: int, size: float) -> _Inverse:
    """Return B as a multiple of the unit matrix."""
    return _Matrix(size * np.eye(n)) if n <= _DENSE else _LastSteps(n, size)


def _carried(previous: OptimizeResult | None, n: int) -> _Inverse | None:
    """Return B of an earlier result, if it has as many coordinates."""
    found = None if previous is None else previous.get("hess_inv")
    known: _Inverse | None = _Matrix(found) if isinstance(found, np.ndarray) else found
    return None if known is None or known.n != n else known


@dataclass(frozen=True, eq=False)
class _State:
    """Where a search is, and what it knows of the curvature.

    shift : H + shift > 0, as a criterion may vanish or be negative
    inverse : B; fresh as long as no curvature has been observed
    seen : coordinates along which curvature has been observed
    reach : longest next step
    """

    problem: BoundedProblem
    shift: float
    at: _LogPoint
    inverse: _Inverse
    fresh: bool
    seen: Array
    reach: float

    @classmethod
    def first(
        cls, problem: BoundedProblem, previous: OptimizeResult | None, reach: float
    ) -> _State:
        value, gradient = problem.evaluate_start()
        shift = _FLOOR * value if value > 0 else 1.0 - 2.0 * value
        at = _LogPoint(
            problem.start, *_log(value, gradient, shift), error=problem.reached
        )
        n = len(problem.start)
        carried = _carried(previous, n)
        fresh = carried is None
        inverse = _multiple(n, _FIRST) if carried is None else carried
        return cls(problem, shift, at, inverse, fresh, np.full(n, not fresh), reach)

    def evaluate(self, x: Array, accuracy: float) -> _LogPoint:
        """Evaluate log H; its value is infinite where H is not finite."""
        value, gradient, finite = self.problem.evaluate(x, accuracy)
        value, gradient = _log(value, gradient, self.shift)
        return _LogPoint(
            x, value if finite else math.inf, gradient, self.problem.reached
        )

    def above(self, target: float) -> float:
        """Return how far log H is above that of a target, or 0."""
        lifted = target + self.shift
        return max(self.at.value - math.log(lifted), 0.0) if lifted > 0 else math.inf

    def projected(self) -> Array:
        gradient = self.problem.projected_gradient(self.at.x, self.at.gradient)
        size: Array = np.abs(gradient)
        return size

    def direction(self) -> tuple[_State, Array]:
        """Return -B g on the free entries, or -g if that does not descend."""
        gradient, state = self.at.gradient, self
        free = np.flatnonzero(self.projected() > 0)
        step = np.zeros_like(gradient)
        step[free] = -self.inverse.times(gradient, free)
        step = self.within_bounds(step)
        if gradient @ step >= 0 and len(free):
            state = self.forgotten()
            step[free] = -_FIRST * gradient[free]
            step = self.within_bounds(step)
        return state, step

    def may_fall(self, reach: float) -> float:
        """Return by how much log H may fall along coordinates that were not seen.

        That is if the slope stays what it is as far as `reach`. Of a search that has
        seen nothing it is 0.
        """
        return 0.0 if self.fresh else reach * float(self._unseen().max(initial=0.0))

    def along_unseen(self, length: float) -> Array:
        """Return a step down along these coordinates."""
        downhill = -np.sign(self.at.gradient) * (self._unseen() > 0)
        return self.within_bounds(length * downhill)

    def _unseen(self) -> Array:
        slopes: Array = np.where(self.seen, 0.0, self.projected())
        return slopes

    def within_bounds(self, step: Array) -> Array:
        inner: Array = self.problem.project(self.at.x + step) - self.at.x
        return inner

    def forgotten(self) -> _State:
        n = len(self.at.x)
        nothing = np.zeros(n, dtype=bool)
        return replace(self, inverse=_multiple(n, _FIRST), fresh=True, seen=nothing)

    def learned(self, trial: _LogPoint) -> _State:
        """Update B by the step to a trial point, if the curvature is positive."""
        s, y = trial.x - self.at.x, trial.gradient - self.at.gradient
        if not _curved(s, y):
            return self._lengthened(s) if trial.value < self.at.value else self
        inverse = self.inverse
        if self.fresh:
            size = float(np.clip(float(s @ y) / float(y @ y), *_FIRST_RANGE))
            inverse = _multiple(len(s), size)
        inverse, seen = inverse.updated(s, y), self.seen | (np.abs(s) >= _SEEN)
        return replace(self, inverse=inverse, fresh=False, seen=seen)

    def _lengthened(self, s: Array) -> _State:
        """Make the next step longer if H falls ever faster along the only coordinate.

        Among several, the direction of a step is not where the next one goes.
        """
        longer = min(_LONGER * float(np.abs(s).max()), self.reach)
        if len(s) > 1 or not longer > 0.0:
            return self
        size = longer / float(np.abs(self.at.gradient).max())
        return replace(self, inverse=_multiple(1, size))

    def stuck(self, gtol: float) -> tuple[int, str]:
        """Return status and message of a search that found no lower point."""
        if self.projected().max(initial=0.0) <= gtol:
            return ACCURATE
        if self.problem.n_not_finite:
            return STUCK
        return NO_DECREASE

    def result(self, nit: int, status: int, message: str) -> OptimizeResult:
        known = self.inverse
        matrix = known.B if isinstance(known, _Matrix) else known
        return self.problem.result(nit, status, message, hess_inv=matrix)


def _search(
    state: _State,
    step: Array,
    accuracy: float,
    max_step: float,
    trials: int = _MAX_TRIALS,
) -> tuple[_State, float | None]:
    """Take the longest acceptable part of the step; return the decrease, or None.

    accuracy : relative error of H that is small enough
    """
    slope = float(state.at.gradient @ step)
    risen = False

    def attempt(length: float) -> tuple[_LogPoint | None, float]:
        nonlocal state, slope, risen
        x = state.problem.project(state.at.x + length * step)
        trial = state.evaluate(x, accuracy)
        if not math.isfinite(trial.value):
            return None, _BACKTRACK
        # A rejected trial shows the curvature as well as an accepted one.
        state = state.learned(trial)
        excess = trial.value - state.at.value - _ARMIJO * length * slope
        if 0.0 < excess < _DOUBT * state.at.error and state.at.error > accuracy:
            # The value at x may be too low by its error, so that nothing is below it.
            state = replace(state, at=state.evaluate(state.at.x, accuracy))
            slope = float(state.at.gradient @ step)
            excess = trial.value - state.at.value - _ARMIJO * length * slope
            if slope >= 0.0:
                return None, 0.0
        if excess <= 0.0:
            return trial, 1.0
        risen = True
        rise, promised = trial.value - state.at.value, slope * length
        # The minimum of the parabola through both values and the slope.
        return None, float(np.clip(-promised / (2.0 * (rise - promised)), 0.1, 0.5))

    found = backtrack(attempt, max_trials=trials)
    if found is None:
        return state, None
    # A length at which H has risen is not tried again at once.
    doubled = 2.0 * float(np.abs(found.x - state.at.x).max(initial=0.0))
    reach = min(doubled if risen else max(state.reach, doubled), max_step)
    return replace(state, at=found, reach=reach), state.at.value - found.value


def _log(value: float, gradient: Array, shift: float) -> tuple[float, Array]:
    lifted = value + shift
    if not lifted > 0:
        return math.inf, gradient
    return math.log(lifted), gradient / lifted
