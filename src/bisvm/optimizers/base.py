"""What all optimizers share: the bounded problem, its best point, the uniform result.

    minimise H(theta)  subject to  lower <= theta <= upper,  |theta_B| <= r,

where there may be balls, which bound the norm of some sets B of entries. Every
optimizer returns the best point that it evaluated.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.core.parts import Part, deferred, resolve
from bisvm.core.types import Array, ArrayLike

Objective = Callable[[Array], tuple[float, ArrayLike]]
# value, gradient, accuracy reached = oracle(x, accuracy asked). An accuracy is the
# error of the value relative to its size; None asks for the usual one.
Oracle = Callable[[Array, float | None], tuple[float, ArrayLike, float]]
# Entries whose joint Euclidean norm is at most the radius.
Ball = tuple[Array, float]
Found = TypeVar("Found")

# The status of every optimizer's result.
CONVERGED = 0
LIMIT_REACHED = 1
ABNORMAL = 2
NOT_FINITE = 3

# Status and message of ends that several optimizers have.
LIMIT = LIMIT_REACHED, "The iteration limit was reached."
STUCK = NOT_FINITE, "The search got stuck at values that are not finite."
ACCURATE = CONVERGED, "No further decrease within the objective's accuracy."
NO_DECREASE = (
    ABNORMAL,
    "The line search found no decrease: the gradient may be inexact, or the objective "
    "not smooth.",
)


class Optimizer(Part):
    """Moves theta within bounds to a minimum of an objective with gradient."""

    # Whether the answer depends on where the search starts.
    uses_start = True
    # Whether it is for objectives with kinks, which have many local minima.
    expects_kinks = False
    # Whether it can be stopped after a few iterations (max_iter) and go on from there
    # on a similar objective.
    resumes = True
    # Whether it projects onto balls; for others the objective is extended beyond them.
    projects = False
    # Whether it expects coordinates whose natural steps are about one.
    wants_units = False
    # Whether it needs only values and gradients of the objective, and so works with
    # every machine.
    any_machine = True
    # Rows drawn for every evaluation; None for all of them.
    batch_size: int | None = None

    def minimize(
        self,
        fun: Objective | Oracle,
        x0: ArrayLike,
        bounds: ArrayLike | None = None,
        previous: OptimizeResult | None = None,
        balls: Sequence[Ball] = (),
    ) -> OptimizeResult:
        """Minimise `fun` within `bounds`, from `x0`.

        Parameters
        ----------
        fun : callable
            ``value, gradient = fun(x)``, or, with two arguments, an oracle that is told
            how accurate it has to be: ``value, gradient, reached = fun(x, accuracy)``.
            An accuracy is an error relative to the size of the value; None stands for
            the usual one. If a value or gradient is not finite, the step was too long
            and is shortened. Exceptions are not caught.
        x0 : array_like of shape (n,)
            The start; it is projected into the bounds.
        bounds : array_like of shape (n, 2), optional
            Lower and upper bounds, infinite where there is none.
        previous : OptimizeResult, optional
            Result on a similar problem, whose curvature an optimizer may use.
        balls : sequence of (entries, radius)
            Entries of x whose joint norm must not exceed a radius.

        Returns
        -------
        OptimizeResult
            The best point evaluated, as `x`, `fun` and `jac`, with `nit`, `nfev`,
            `message`, `success` and `status`: 0 converged, 1 a limit was reached,
            2 the search got stuck, 3 it got stuck at values that are not finite.

        Examples
        --------
        >>> from bisvm.optimizers import BFGS
        >>> result = BFGS().minimize(lambda x: (x @ x + 1, 2 * x), [3.0, 1.0])
        >>> result.message
        'The next step would lower H by less than ftol.'
        """
        self.validate()
        problem = BoundedProblem(
            fun, x0, bounds, balls, extend=not self.projects, schedule=self.accuracy
        )
        return self._minimize(problem, previous)

    def accuracy(self, evaluation: int) -> float | None:
        """Return the accuracy to ask of an oracle, unless an evaluation names another.

        `evaluation` counts from 0; None stands for the usual accuracy.
        """
        return None

    def within(self, tol: float, max_iter: int) -> Self:
        """Return this optimizer with another accuracy and limit.

        Parameters
        ----------
        tol : float
            Accuracy in log H.
        max_iter : int
            Most iterations.

        Returns
        -------
        optimizer : Optimizer
        """
        return self.replace(max_iter=max_iter)

    def loosened(self, factor: float, of_gradient: float | None = None) -> Self:
        """Return this optimizer with wider tolerances, for an approximate problem.

        Parameters
        ----------
        factor : float
            By which the tolerances grow.
        of_gradient : float, optional
            Another factor for that of the gradient.

        Returns
        -------
        optimizer : Optimizer
        """
        factors = {
            "ftol": factor,
            "gtol": factor if of_gradient is None else of_gradient,
        }
        own = {name: by for name, by in factors.items() if hasattr(self, name)}
        return self.replace(
            **{name: by * getattr(self, name) for name, by in own.items()}
        )

    def towards(self, target: float) -> Self:
        """Return this optimizer for a minimum that is of no use above a target.

        Parameters
        ----------
        target : float
            An optimizer may stop early if it will not come below this value.

        Returns
        -------
        optimizer : Optimizer
        """
        return self

    def _minimize(
        self, problem: BoundedProblem, previous: OptimizeResult | None = None
    ) -> OptimizeResult:
        raise NotImplementedError


# A name is loaded when it is asked for.
OPTIMIZERS: dict[str, Callable[[], Optimizer]] = {
    "auto": deferred("bisvm.optimizers.bfgs", "BFGS"),
    "bfgs": deferred("bisvm.optimizers.bfgs", "BFGS"),
    "lbfgs": deferred("bisvm.optimizers.lbfgs", "LBFGS"),
    "rprop": deferred("bisvm.published.rprop", "RPROP"),
    "grid": deferred("bisvm.optimizers.grid", "Grid"),
    "gradient": deferred("bisvm.published.gradient", "GradientDescent"),
    "nesterov": deferred("bisvm.published.gradient", "nesterov"),
    "armijo": deferred("bisvm.published.gradient", "ArmijoGradient"),
    "spg": deferred("bisvm.published.gradient", "SpectralGradient"),
    "scan": deferred("bisvm.optimizers.scan", "Scan"),
    "bundle": deferred("bisvm.published.bundle", "Bundle"),
    "variable-metric-bundle": deferred(
        "bisvm.published.bundle", "VariableMetricBundle"
    ),
    "sgd-dcd": deferred("bisvm.published.single_loop", "SGDDCD"),
    "bilevel-sgd": deferred("bisvm.published.single_loop", "BilevelSGD"),
    "fold-newton": deferred("bisvm.published.fold_newton", "FoldNewton"),
    "slp-filter": deferred("bisvm.published.slp_filter", "SLPFilter"),
    "ipopt": deferred("bisvm.published.ipopt", "Ipopt"),
}


def get_optimizer(optimizer: str | Optimizer) -> Optimizer:
    """Return the optimizer of a name, or the object given, with checked parameters.

    Examples
    --------
    >>> get_optimizer("lbfgs")
    LBFGS()
    """
    resolved: Optimizer = resolve("optimizer", optimizer, OPTIMIZERS, Optimizer)
    return resolved.validate()


class BoundedProblem:
    """A bounded objective that counts its evaluations and remembers the best.

    With `extend` a ball is not a constraint. Outside of it the objective is extended:
    fun(r x / |x|) + kappa/2 (|x| / r - 1)^2, with fun at the nearest point of the ball.
    A minimum on the sphere remains a minimum, and a search that has left the ball is
    pulled back.

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
        x0: ArrayLike,
        bounds: ArrayLike | None,
        balls: Sequence[Ball] = (),
        *,
        extend: bool = False,
        schedule: Callable[[int], float | None] = lambda evaluation: None,
    ) -> None:
        start = _check_start(x0)
        self.is_oracle = is_oracle(fun)
        self._fun: Callable[..., tuple[Any, ...]] = fun
        self._schedule = schedule
        self.reached = 0.0
        self.lower, self.upper = check_bounds(bounds, start.size)
        self.balls = tuple(balls)
        self._extend = extend and bool(self.balls)
        self._stiffness = 0.0
        self.start = into_balls(self.project(start), self.balls)
        self.best: tuple[Array, float, Array] | None = None
        self.n_evaluations = 0
        self.n_not_finite = 0

    def project(self, x: Array) -> Array:
        """Return the point within the bounds, and balls, that is nearest to `x`."""
        x = np.clip(x, self.lower, self.upper)
        return x if self._extend else into_balls(x, self.balls)

    def projected_gradient(self, x: Array, gradient: Array) -> Array:
        """Return the gradient, 0 where a descent would cross a bound."""
        blocked = ((x <= self.lower) & (gradient > 0.0)) | (
            (x >= self.upper) & (gradient < 0.0)
        )
        return np.where(blocked, 0.0, gradient)

    def evaluate(
        self, x: Array, accuracy: float | None = None
    ) -> tuple[float, Array, bool]:
        """Return value, gradient, and whether all of it is finite.

        `accuracy` is what an oracle is asked for; None for what the schedule says.
        """
        if accuracy is None:
            accuracy = self._schedule(self.n_evaluations)
        self.n_evaluations += 1
        inner = into_balls(x, self.balls) if self._extend else x
        value, gradient = self._call(inner, accuracy)
        finite = bool(np.isfinite(value) and np.isfinite(gradient).all())
        if not finite:
            self.n_not_finite += 1
        elif (
            self.best is None
            or value < self.best[1]
            # An oracle's second answer at a point is the more accurate.
            or (self.is_oracle and np.array_equal(inner, self.best[0]))
        ):
            self.best = inner.copy(), value, gradient
        if self._extend and finite:
            self._stiffness = self._stiffness or abs(value)
            value, gradient = self._extended(x, value, gradient)
        return value, gradient, finite

    def evaluate_start(self, accuracy: float | None = None) -> tuple[float, Array]:
        """Return value and gradient at the start, which must be finite."""
        value, gradient, finite = self.evaluate(self.start, accuracy)
        if not finite:
            raise ValueError(
                f"The objective is not finite at the start {self.start}: value "
                f"{value}, gradient {gradient}. Start elsewhere."
            )
        return value, gradient

    def result(
        self, nit: int, status: int, message: str, **more: object
    ) -> OptimizeResult:
        """Return the best point in SciPy's form, with this library's status codes.

        `more` are further entries, or replace the usual ones.
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

    def _call(self, x: Array, accuracy: float | None) -> tuple[float, Array]:
        # Copies both ways: neither side can change the other's arrays.
        if self.is_oracle:
            value, gradient, reached = self._fun(x.copy(), accuracy)
            # An oracle that cannot say how accurate it is promises nothing.
            self.reached = float(reached) if reached >= 0.0 else math.inf
        else:
            value, gradient = self._fun(x.copy())
        gradient = np.array(gradient, dtype=float)
        if gradient.shape != x.shape:
            raise ValueError(
                f"The objective returned a gradient of shape {gradient.shape}; "
                f"expected {x.shape}, the shape of x."
            )
        return float(value), gradient

    def _extended(self, x: Array, value: float, gradient: Array) -> tuple[float, Array]:
        """Continue the objective beyond its balls, from its nearest point in them.

        The slope along x is lost; a spring as stiff as H is large takes its place.
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


def backtrack(
    attempt: Callable[[float], tuple[Found | None, float]],
    length: float = 1.0,
    *,
    shortest: float = 0.0,
    max_trials: int | None = None,
) -> Found | None:
    """Shorten a step until it is accepted.

    SciPy's public `line_search` (strong Wolfe) knows neither bounds nor values that are
    not finite, and an accepted point is not handed out.

    Parameters
    ----------
    attempt : callable
        ``found, factor = attempt(length)``: what the step of this length leads to, or
        None if it is not accepted, and the factor on the length of the next trial.
    length : float
        The first length.
    shortest : float
        A length from which on no step is tried.
    max_trials : int, optional
        Steps tried at the most.

    Returns
    -------
    The first step accepted, or None.
    """
    trials = 0
    while length > shortest and trials != max_trials:
        found, factor = attempt(length)
        if found is not None:
            return found
        length *= factor
        trials += 1
    return None


def is_oracle(fun: Callable[..., object]) -> bool:
    """Return whether a callable needs a second argument: the accuracy asked for."""
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


def into_balls(x: Array, balls: Sequence[Ball]) -> Array:
    """Return the point in all balls that is nearest to x; they share no entry."""
    x = x.copy() if balls else x
    for entries, radius in balls:
        norm = np.linalg.norm(x[entries])
        if norm > radius:
            x[entries] *= radius / norm
    return x


def check_bounds(bounds: ArrayLike | None, n: int) -> tuple[Array, Array]:
    """Return lower and upper bounds as two vectors of length n."""
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


def _check_start(x0: ArrayLike) -> Array:
    start = np.array(x0, dtype=float)
    if start.ndim != 1:
        raise ValueError(f"x0 must be a vector; got an array of shape {start.shape}.")
    if not np.isfinite(start).all():
        raise ValueError(f"x0 must be finite; got {start}.")
    return start
