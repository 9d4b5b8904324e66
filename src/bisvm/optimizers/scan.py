"""Scan: the lowest minimum along one hyperparameter, not only the nearest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.core.types import Array
from bisvm.optimizers.base import (
    CONVERGED,
    LIMIT,
    BoundedProblem,
    Optimizer,
)

_DONE = "No interval promises a decrease of H by more than ftol."
# A cubic's minimum that is closer to an end than this share of the interval is no
# better than the end.
_MARGIN = 0.02


@dataclass(eq=False, repr=False)
class Scan(Optimizer):
    """Evaluate in wide steps to both sides, then refine where H may be lowest.

    Between two neighbouring points, the cubic with the values and slopes at both
    predicts how low H may be. H is evaluated at the lowest of these predicted minima,
    until no prediction is lower by more than `ftol`. Several hyperparameters are
    scanned one after the other, until a round brings nothing.

    As a function of C, the validation loss often has a shallow minimum before the deep
    one; a descent would stop there.

    Parameters
    ----------
    spacing : float, default=2.0
        Length of a wide step: in log C a factor of e^2.
    rise : float, default=0.1
        Wide steps end where H is this much above the lowest so far, relatively.
    ftol : float, default=1e-4
        A relative decrease of H that is not worth an evaluation. Wide steps also end
        after two of them without a larger decrease.
    max_iter : int, default=100
        Evaluations.
    growth : float, default=1.0
        Factor from the length of one wide step to that of the next.

    Examples
    --------
    >>> Scan().minimize(lambda x: (1 + x @ x, 2 * x), [1.0], [[-5, 5]]).x.round(3)
    array([0.])
    """

    wants_units = True
    resumes = False

    spacing: float = 2.0
    rise: float = 0.1
    ftol: float = 1e-4
    max_iter: int = 100
    growth: float = 1.0

    def validate(self) -> Self:
        self.check_positive("spacing", "rise", "ftol", "growth")
        self.check_count("max_iter")
        return self

    def accuracy(self, evaluation: int) -> float | None:
        """Return 0.1 ftol for every evaluation: errors are small against ftol."""
        return 0.1 * self.ftol

    def within(self, tol: float, max_iter: int) -> Self:
        return self.replace(ftol=0.1 * tol, max_iter=max_iter)

    def _minimize(
        self, problem: BoundedProblem, previous: OptimizeResult | None = None
    ) -> OptimizeResult:
        x = problem.start
        value, gradient = problem.evaluate_start()
        finished, nit, several = False, 0, x.size > 1
        while not finished and problem.n_evaluations < self.max_iter:
            nit, before, finished = nit + 1, value, True
            for entry in range(x.size):
                line = _Line(problem, x, value, gradient, entry)
                self._expand(line, value)
                finished &= self._refine(line)
                assert problem.best is not None
                x, value, gradient = problem.best
            if several:
                finished &= before - value <= self.ftol * abs(value)
        if finished:
            return problem.result(nit, CONVERGED, _DONE)
        return problem.result(nit, *LIMIT)

    def _expand(self, line: _Line, value: float) -> None:
        """Take wide steps to both sides, downhill first."""
        first = 1.0 if line.points[0].slope <= 0 else -1.0
        for sign in (first, -first):
            last, in_vain, away, step = value, 0, 0.0, self.spacing
            while in_vain < 2 and not line.at_end(sign) and self._left(line):
                away, step = away + step, self.growth * step
                new = line.evaluate(line.clip(line.start + sign * away))
                if not new <= (1.0 + self.rise) * line.lowest().value:
                    break
                in_vain = 0 if new < last - self.ftol * abs(last) else in_vain + 1
                last = new

    def _refine(self, line: _Line) -> bool:
        """Add points where the cubics are lowest; return whether it ended by itself."""
        while self._left(line):
            x, predicted = line.predicted_minimum()
            lowest = line.lowest().value
            if not predicted < lowest - self.ftol * abs(lowest):
                return True
            line.evaluate(x)
        return False

    def _left(self, line: _Line) -> bool:
        return line.problem.n_evaluations < self.max_iter


class _Sample(NamedTuple):
    x: float
    value: float
    slope: float


class _Line:
    """The objective along one coordinate, and the points known there."""

    def __init__(
        self,
        problem: BoundedProblem,
        x: Array,
        value: float,
        gradient: Array,
        entry: int,
    ):
        self.problem, self._x, self._entry = problem, x.copy(), entry
        self.start = float(x[entry])
        self.points = [_Sample(self.start, value, float(gradient[entry]))]
        self._low = float(problem.lower[entry])
        self._high = float(problem.upper[entry])

    def clip(self, position: float) -> float:
        return min(max(position, self._low), self._high)

    def at_end(self, sign: float) -> bool:
        """Return whether the bound on that side has been reached."""
        last = max(self.points) if sign > 0 else min(self.points)
        return last.x >= self._high if sign > 0 else last.x <= self._low

    def evaluate(self, position: float) -> float:
        x = self._x.copy()
        x[self._entry] = position
        value, gradient, finite = self.problem.evaluate(x)
        if not finite:
            return np.inf
        self.points.append(_Sample(position, value, float(gradient[self._entry])))
        self.points.sort()
        return value

    def lowest(self) -> _Sample:
        return min(self.points, key=lambda point: point.value)

    def predicted_minimum(self) -> tuple[float, float]:
        """Return where the cubics between neighbours are lowest, and how low."""
        pairs = zip(self.points[:-1], self.points[1:], strict=True)
        lows = [cubic_minimum(left, right) for left, right in pairs]
        return min(lows, key=lambda low: low[1], default=(self.start, np.inf))


def cubic_minimum(left: _Sample, right: _Sample) -> tuple[float, float]:
    """Return the minimum between both points of the cubic with their slopes.

    Its value is infinite if there is none.

    In t = (x - left) / h: value + a t + b t^2 + c t^3, a = h left.slope.
    """
    h = right.x - left.x
    rise, a = right.value - left.value, h * left.slope
    b = 3.0 * rise - 2.0 * a - h * right.slope
    c = a + h * right.slope - 2.0 * rise
    root = b * b - 3.0 * a * c
    if not (root >= 0.0 and h > 0.0):
        return left.x, np.inf
    # The root at which the curvature 2 b + 6 c t is positive, without cancellation.
    size = np.sqrt(root)
    t = -a / (b + size) if b + size > 0 else (size - b) / (3.0 * c) if c else np.nan
    if not _MARGIN < t < 1.0 - _MARGIN:
        return left.x, np.inf
    return left.x + t * h, left.value + t * (a + t * (b + t * c))
