"""What all optimizers share: the bounded problem, its best point, the uniform result.

    minimise H(theta)  subject to  lower <= theta <= upper,  |theta_B| <= r,

with balls on some sets B of entries, if there are any. Whatever an optimizer does on
its way, it returns the best point that was evaluated.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import OptimizeResult

from bisvm.core.parts import Part

Floats = npt.NDArray[np.float64]
Objective = Callable[[Floats], tuple[float, npt.ArrayLike]]
# value, gradient, accuracy reached = oracle(x, accuracy asked). An accuracy is the
# error of the value relative to its size; None asks for the usual one.
Oracle = Callable[[Floats, float | None], tuple[float, npt.ArrayLike, float]]
# Entries whose joint Euclidean norm is at most the radius.
Ball = tuple[np.ndarray, float]

# The status of every optimizer's result.
CONVERGED = 0
LIMIT_REACHED = 1
ABNORMAL = 2
NOT_FINITE = 3


class Optimizer(Part):
    """Moves theta within bounds to a minimum of an objective with gradient."""

    # Whether the answer depends on where the search starts.
    uses_start = True
    # Whether it is for objectives with kinks, which have many minima side by side.
    expects_kinks = False
    # Whether a few iterations (max_iter) from any start are worth having: the objective
    # may then be exchanged for a similar one in between.
    resumes = True
    # Whether it projects onto balls itself; for others the objective is bent.
    projects = False
    # Whether it expects coordinates whose natural steps are about one.
    wants_units = False
    # Whether it needs nothing but values and gradients of the objective, and so serves
    # every machine.
    any_machine = True
    # Rows drawn for every evaluation; None for all of them.
    batch_size: int | None = None

    def minimize(
        self,
        fun: Objective | Oracle,
        x0: npt.ArrayLike,
        bounds: npt.ArrayLike | None = None,
        like: OptimizeResult | None = None,
        balls: Sequence[Ball] = (),
    ) -> OptimizeResult:
        """Minimise `fun` within `bounds`, from `x0`.

        Parameters
        ----------
        fun : callable
            ``value, gradient = fun(x)``, or, with two arguments, an oracle that is told
            how accurate it has to be: ``value, gradient, reached = fun(x, accuracy)``.
            An accuracy is an error relative to the size of the value; None stands for
            the usual one. A value or gradient that is not finite counts as a step too
            far. Exceptions pass through untouched.
        x0 : array_like of shape (n,)
            The start; brought into the bounds if it lies outside.
        bounds : array_like of shape (n, 2), optional
            Lower and upper bounds, infinite where there is none.
        like : OptimizeResult, optional
            Result on a similar problem; an optimizer may learn from its curvature.
        balls : sequence of (entries, radius)
            Entries of x whose joint norm must not exceed a radius.

        Returns
        -------
        OptimizeResult
            The best point evaluated, as `x`, `fun` and `jac`, with `nit`, `nfev`,
            `message`, `success` and `status`: 0 converged, 1 a limit was reached,
            2 the search got stuck, 3 it got stuck at values that are not finite.
        """
        self.validate()
        problem = Problem(
            fun, x0, bounds, balls, bend=not self.projects, schedule=self.accuracy
        )
        return self._minimize(problem, like)

    def accuracy(self, evaluation: int) -> float | None:
        """What to ask of an oracle in this evaluation (from 0), if nothing else says.

        None stands for the usual accuracy.
        """
        return None

    def within(self, tol: float, max_iter: int) -> Self:
        """This optimizer at an accuracy of `tol` in log H and a limit on its steps."""
        return self.replace(max_iter=max_iter)

    def loosened(self, factor: float) -> Self:
        """This optimizer with wider tolerances, for a problem that is only a sketch."""
        tolerances = [name for name in ("ftol", "gtol") if hasattr(self, name)]
        return self.replace(
            **{name: factor * getattr(self, name) for name in tolerances}
        )

    def _minimize(
        self, problem: Problem, like: OptimizeResult | None = None
    ) -> OptimizeResult:
        raise NotImplementedError


class Problem:
    """A bounded objective that counts its evaluations and remembers the best.

    Where `bend` is set a ball is no constraint: beyond it the objective goes on from
    the nearest point inside, fun(r x / |x|) + kappa/2 (|x| / r - 1)^2. A minimum on the
    sphere stays one, and a search that went too far is led back.

    Attributes
    ----------
    start, lower, upper : arrays of shape (n,)
    best : tuple of (x, value, gradient), or None before the first finite evaluation
    n_evaluations, n_not_finite : int
    reached : accuracy of the last evaluation; 0 if the objective does not tell
    """

    def __init__(
        self,
        fun: Objective | Oracle,
        x0: npt.ArrayLike,
        bounds: npt.ArrayLike | None,
        balls: Sequence[Ball] = (),
        *,
        bend: bool = False,
        schedule: Callable[[int], float | None] = lambda evaluation: None,
    ) -> None:
        start = _check_start(x0)
        self.fun: Any = fun
        self.is_oracle = is_oracle(fun)
        self._schedule = schedule
        self.reached = 0.0
        self.lower, self.upper = check_bounds(bounds, start.size)
        self.balls = tuple(balls)
        self._bend = bend and bool(self.balls)
        self._stiffness = 0.0
        self.start = into_balls(self.project(start), self.balls)
        self.best: tuple[Floats, float, Floats] | None = None
        self.n_evaluations = 0
        self.n_not_finite = 0

    def project(self, x: Floats) -> Floats:
        """The point within the bounds, and balls, that is nearest to `x`."""
        x = np.clip(x, self.lower, self.upper)
        return x if self._bend else into_balls(x, self.balls)

    def projected_gradient(self, x: Floats, gradient: Floats) -> Floats:
        """The gradient without the entries that press against a bound."""
        pressed = ((x <= self.lower) & (gradient > 0.0)) | (
            (x >= self.upper) & (gradient < 0.0)
        )
        return np.where(pressed, 0.0, gradient)

    def evaluate(
        self, x: Floats, accuracy: float | None = None
    ) -> tuple[float, Floats, bool]:
        """Value, gradient, and whether all of it is finite.

        `accuracy` is what an oracle is asked for; None for what the schedule says.
        """
        if accuracy is None:
            accuracy = self._schedule(self.n_evaluations)
        self.n_evaluations += 1
        inside = into_balls(x, self.balls) if self._bend else x
        value, gradient = self._call(inside, accuracy)
        finite = bool(np.isfinite(value) and np.isfinite(gradient).all())
        if not finite:
            self.n_not_finite += 1
        elif (
            self.best is None
            or value < self.best[1]
            # An oracle's second look at a point is the more accurate.
            or (self.is_oracle and np.array_equal(inside, self.best[0]))
        ):
            self.best = inside.copy(), value, gradient
        if self._bend and finite:
            self._stiffness = self._stiffness or abs(value)
            value, gradient = self._bent(x, value, gradient)
        return value, gradient, finite

    def evaluate_start(self, accuracy: float | None = None) -> tuple[float, Floats]:
        """Value and gradient at the start, which must be finite."""
        value, gradient, finite = self.evaluate(self.start, accuracy)
        if not finite:
            raise ValueError(
                f"The objective is not finite at the start {self.start}: value "
                f"{value}, gradient {gradient}. Start elsewhere."
            )
        return value, gradient

    def result(
        self, nit: int, status: int, message: str, **more: Any
    ) -> OptimizeResult:
        """The best point in SciPy's form, with this library's status codes.

        `more` are further entries, or others in place of these.
        """
        if self.best is None:
            raise ValueError(
                f"The objective was not finite at any of the {self.n_evaluations} "
                "points evaluated. Check the objective, or narrow the bounds."
            )
        x, value, gradient = self.best
        found = dict(
            x=x,
            fun=value,
            jac=gradient,
            nit=nit,
            nfev=self.n_evaluations,
            status=status,
            success=status == CONVERGED,
            message=message,
        )
        return OptimizeResult({**found, **more})

    def _call(self, x: Floats, accuracy: float | None) -> tuple[float, Floats]:
        # Copies both ways: neither side can change the other's arrays.
        if self.is_oracle:
            value, gradient, reached = self.fun(x.copy(), accuracy)
            # An oracle that cannot say how accurate it is promises nothing.
            self.reached = float(reached) if reached >= 0.0 else math.inf
        else:
            value, gradient = self.fun(x.copy())
        gradient = np.array(gradient, dtype=float)
        if gradient.shape != x.shape:
            raise ValueError(
                f"The objective returned a gradient of shape {gradient.shape}; "
                f"expected {x.shape}, the shape of x."
            )
        return float(value), gradient

    def _bent(self, x: Floats, value: float, gradient: Floats) -> tuple[float, Floats]:
        """The objective beyond its balls, from what it is at the nearest point inside.

        The slope along x is lost; in its place comes a spring, as stiff as H is large.
        """
        gradient = gradient.copy()
        for entries, radius in self.balls:
            norm = float(np.linalg.norm(x[entries]))
            if norm > radius:
                along, beyond = x[entries] / norm, norm / radius - 1.0
                across = gradient[entries] - (along @ gradient[entries]) * along
                value += 0.5 * self._stiffness * beyond**2
                gradient[entries] = (radius / norm) * across
                gradient[entries] += self._stiffness * beyond / radius * along
        return value, gradient


def is_oracle(fun: Any) -> bool:
    """Whether a callable needs a second argument: the accuracy asked for."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    needed = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return len(needed) >= 2


def into_balls(x: Floats, balls: Sequence[Ball]) -> Floats:
    """The point in all balls that is nearest to x; they have no entry in common."""
    x = x.copy() if balls else x
    for entries, radius in balls:
        norm = np.linalg.norm(x[entries])
        if norm > radius:
            x[entries] *= radius / norm
    return x


def check_bounds(bounds: npt.ArrayLike | None, n: int) -> tuple[Floats, Floats]:
    """Lower and upper bounds as two vectors of length n."""
    if bounds is None:
        return np.full(n, -np.inf), np.full(n, np.inf)
    pairs = np.asarray(bounds, dtype=float)
    if pairs.shape != (n, 2) and pairs.size + n > 0:
        raise ValueError(
            f"bounds must have shape ({n}, 2), one (lower, upper) pair per entry of "
            f"x0; got shape {pairs.shape}."
        )
    pairs = pairs.reshape(n, 2)
    for index, (low, high) in enumerate(pairs):
        if not low <= high:
            raise ValueError(
                f"bounds[{index}] = ({low:g}, {high:g}): the lower bound must not "
                "exceed the upper one, and neither may be NaN."
            )
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def _check_start(x0: npt.ArrayLike) -> Floats:
    start = np.array(x0, dtype=float)
    if start.ndim != 1:
        raise ValueError(f"x0 must be a vector; got an array of shape {start.shape}.")
    if not np.isfinite(start).all():
        raise ValueError(f"x0 must be finite; got {start}.")
    return start
