"""Scan: the lowest minimum along one hyperparameter, not only the nearest."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.optimizers.base import CONVERGED, LIMIT_REACHED, Floats, Optimizer, Problem

_DONE = "No stretch promises a decrease of H by more than ftol."
_LIMIT = "The iteration limit was reached."


class Scan(Optimizer):
    """Walks both ways from the start in wide steps, then refines where H may be lowest.

    Between two neighbouring points the cubic with the values and slopes of both says
    how low H may go; the stretch that promises most gets a point, at the cubic's
    minimum, until none promises more than `ftol`. With several hyperparameters one
    after the other is scanned, until a round gains nothing.

    The validation loss of a C often has a shallow minimum before the deep one, where a
    descent stays.

    Parameters
    ----------
    spacing : float, default=2.0
        Length of a wide step: in log C a factor of e^2.
    rise : float, default=0.1
        A walk ends where H is this much above the lowest so far, relatively.
    ftol : float, default=1e-4
        A decrease of H, relatively, that is not worth a point. A walk also ends after
        two steps without a larger one.
    max_iter : int, default=100
        Evaluations.
    growth : float, default=1.0
        Every step of a walk is longer than the one before by this factor.
    """

    wants_units = True
    resumes = False

    def __init__(
        self,
        spacing: float = 2.0,
        rise: float = 0.1,
        ftol: float = 1e-4,
        max_iter: int = 100,
        growth: float = 1.0,
    ):
        self.spacing = spacing
        self.growth = growth
        self.rise = rise
        self.ftol = ftol
        self.max_iter = max_iter

    def validate(self) -> Self:
        self.check_positive("spacing", "rise", "ftol", "growth")
        self.check_count("max_iter")
        return self

    def accuracy(self, evaluation: int) -> float | None:
        """Values are compared to within ftol."""
        return 0.1 * self.ftol

    def within(self, tol: float, max_iter: int) -> Self:
        return self.replace(ftol=0.1 * tol, max_iter=max_iter)

    def _minimize(
        self, problem: Problem, like: OptimizeResult | None = None
    ) -> OptimizeResult:
        x = problem.start
        value, gradient = problem.evaluate_start()
        finished, nit, several = False, 0, x.size > 1
        while not finished and problem.n_evaluations < self.max_iter:
            nit, before, finished = nit + 1, value, True
            for entry in range(x.size):
                line = _Line(problem, x, value, gradient, entry)
                self._walk(line, value)
                finished &= self._refine(line)
                assert problem.best is not None
                x, value, gradient = problem.best
            if several:
                finished &= before - value <= self.ftol * abs(value)
        if finished:
            return problem.result(nit, CONVERGED, _DONE)
        return problem.result(nit, LIMIT_REACHED, _LIMIT)

    def _walk(self, line: _Line, value: float) -> None:
        """Wide steps both ways, downhill first."""
        first = 1.0 if line.points[0].slope <= 0 else -1.0
        for sign in (first, -first):
            last, vain, away, step = value, 0, 0.0, self.spacing
            while vain < 2 and not line.at_end(sign) and self._left(line):
                away, step = away + step, self.growth * step
                new = line.evaluate(line.clip(line.start + sign * away))
                if not new <= (1.0 + self.rise) * line.lowest().value:
                    break
                vain = 0 if new < last - self.ftol * abs(last) else vain + 1
                last = new

    def _refine(self, line: _Line) -> bool:
        """Points where the cubics are lowest; whether that came to an end."""
        while self._left(line):
            x, promised = line.promise()
            lowest = line.lowest().value
            if not promised < lowest - self.ftol * abs(lowest):
                return True
            line.evaluate(x)
        return False

    def _left(self, line: _Line) -> bool:
        return line.problem.n_evaluations < self.max_iter


class _Point(NamedTuple):
    x: float
    value: float
    slope: float


class _Line:
    """The objective along one coordinate, and the points known there."""

    def __init__(
        self, problem: Problem, x: Floats, value: float, gradient: Floats, entry: int
    ):
        self.problem, self._x, self._entry = problem, x.copy(), entry
        self.start = float(x[entry])
        self.points = [_Point(self.start, value, float(gradient[entry]))]
        self._low = float(problem.lower[entry])
        self._high = float(problem.upper[entry])

    def clip(self, position: float) -> float:
        return min(max(position, self._low), self._high)

    def at_end(self, sign: float) -> bool:
        """Whether the bound on that side has been reached."""
        last = max(self.points) if sign > 0 else min(self.points)
        return last.x >= self._high if sign > 0 else last.x <= self._low

    def evaluate(self, position: float) -> float:
        x = self._x.copy()
        x[self._entry] = position
        value, gradient, finite = self.problem.evaluate(x)
        if not finite:
            return np.inf
        self.points.append(_Point(position, value, float(gradient[self._entry])))
        self.points.sort()
        return value

    def lowest(self) -> _Point:
        return min(self.points, key=lambda point: point.value)

    def promise(self) -> tuple[float, float]:
        """Where the cubics between neighbours are lowest, and how low."""
        pairs = zip(self.points[:-1], self.points[1:], strict=True)
        lows = [cubic_minimum(left, right) for left, right in pairs]
        return min(lows, key=lambda low: low[1], default=(self.start, np.inf))


def cubic_minimum(left: _Point, right: _Point) -> tuple[float, float]:
    """The lowest point inside of the cubic with both values and slopes; or infinity.

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
    if not 0.02 < t < 0.98:
        return left.x, np.inf
    return left.x + t * h, left.value + t * (a + t * (b + t * c))
