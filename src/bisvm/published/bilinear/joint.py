r"""Maps, filters and intercept at once: Newton's method, and derivatives.

With Z = [X A_f, X B_w, 1], the rows of which are dF_i/d(w, f, b), the Hessian of E is::

    H = diag(lambda_w, lambda_f, 0) + Z'D Z + [[0, G, 0], [G', 0, 0], [0, 0, 0]]

where G = sum_i S_i X_i couples w_k to the f_k of the same filter. Along the scaling
(w_k, -f_k) H is not singular: there E is 1/2 (c^2 + 1/c^2) lambda_w |w_k|^2 + ..., and
its second derivative by log c is 4 lambda_w |w_k|^2 where both penalties are equal.
Several filters can be rotated, (w, f) -> (R w, R f) with an orthogonal R, without a
change of E: these m (m - 1) / 2 directions are the null space of H at an optimum.
Neither F nor the penalty changes along them, so every right-hand side here is
orthogonal to them, and any curvature may be added along them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.linalg import LinAlgWarning, cho_factor, cho_solve, solve

from bisvm.core.types import Array
from bisvm.machines.base import INTERCEPT_RIDGE
from bisvm.optimizers.base import backtrack
from bisvm.published.bilinear.problem import BilinearProblem, BilinearTangent, Point

# Of the decrease that the slope promises, what a step must bring at least.
_ARMIJO = 1e-4
_MAX_HALVINGS = 10
# Multiples of the penalties that are added where the Hessian will not do: the first,
# the factor from one to the next, and the last.
_SHIFT, _GROWTH, _MAX_SHIFT = 1e-2, 5.0, 1e8
# A fall of E relative to it that rounding errors hide.
_ROUNDING = 1e-13
# Steps without a halving of the residual after which rounding errors are to blame, if
# it is as small as this.
_PATIENCE, _SMALL = 4, 1e-7
# Residual up to which a point counts as stationary.
_USABLE = 1e-5
# A filter whose penalty is less than this share of E has died; it can lower E if the
# largest singular value of G exceeds lambda by this share.
_DEAD, _WANTED = 1e-9, 1e-3


@dataclass(frozen=True)
class Stationary:
    """Where the joint Newton method stopped.

    residual : as `BilinearProblem.residual`
    status : "converged", "stalled" (no step lowers E further) or "max_iter"
    """

    point: Point
    tangent: BilinearTangent
    residual: float
    iterations: int
    status: str

    @property
    def usable(self) -> bool:
        """Whether derivatives can be trusted."""
        return self.status == "converged" or self.residual <= _USABLE


def minimize(
    problem: BilinearProblem, start: Point, *, tol: float = 1e-9, max_iter: int = 100
) -> Stationary:
    """Newton from `start`, and again where a filter has died that could lower E.

    w_k = f_k = 0 is stationary, and a saddle if a singular value of G exceeds lambda:
    the filter comes back along the singular vectors, where E falls fastest.
    """
    found = newton(problem, start, tol=tol, max_iter=max_iter)
    iterations = found.iterations
    for _ in range(len(start.maps)):
        revived = _revive(problem, found)
        if revived is None:
            break
        found = newton(problem, revived, tol=tol, max_iter=max_iter)
        iterations += found.iterations
    return replace(found, iterations=iterations)


def newton(
    problem: BilinearProblem, start: Point, *, tol: float = 1e-9, max_iter: int = 100
) -> Stationary:
    """Newton steps from `start` to a stationary point nearby, a minimum as a rule.

    Where H is not positive definite multiples of the penalties are added until it is,
    so that every step goes down, and a line search sees to it that E falls. E along a
    step is cheap: F(t) = F + t F_1 + t^2 F_2.
    """
    point = start.balanced(problem.lambda_w, problem.lambda_f)
    tangent = problem.tangent(problem.fitted(point))
    least, waited, shift = np.inf, 0, 0.0
    for iteration in range(max_iter + 1):
        gradient = problem.gradient(point, tangent)
        residual = problem.residual(point, gradient)
        waited = 0 if residual <= 0.5 * least else waited + 1
        least = min(least, residual)
        if residual <= tol:
            return Stationary(point, tangent, residual, iteration, "converged")
        if waited >= _PATIENCE and residual <= _SMALL:
            return Stationary(point, tangent, residual, iteration, "stalled")
        stepped = _step(problem, point, tangent, gradient, shift)
        if stepped is None:
            return Stationary(point, tangent, residual, iteration, "stalled")
        point, tangent, shift = stepped
    return Stationary(point, tangent, residual, max_iter, "max_iter")


def _step(
    problem: BilinearProblem,
    point: Point,
    tangent: BilinearTangent,
    gradient: Point,
    shift: float,
) -> tuple[Point, BilinearTangent, float] | None:
    """Step along -(H + shift)^-1 dE, with the least shift of a series that lowers E.

    The series begins one factor below the last shift, or at zero. It grows where H is
    not positive definite, and where the step does not help: with few points near the
    margin H says little of what is further away.
    """
    H, penalties = hessian(problem, point, tangent), _penalties(problem, point)
    # The intercept has no penalty to speak of; its curvature is of the order of one.
    penalties[-1] = 1.0
    shift = shift / _GROWTH if shift > _SHIFT else 0.0
    while shift <= _MAX_SHIFT:
        try:
            factor = cho_factor(H + np.diag(shift * penalties), check_finite=False)
        except np.linalg.LinAlgError:
            shift = max(_SHIFT, _GROWTH * shift)
            continue
        direction = point.like(-cho_solve(factor, gradient.flat))
        slope = float(direction.flat @ gradient.flat)
        moved = search(problem, point, tangent, direction, slope)
        if moved is not None:
            return *moved, shift
        shift = max(_SHIFT, _GROWTH * shift)
    return None


def search(
    problem: BilinearProblem,
    point: Point,
    tangent: BilinearTangent,
    direction: Point,
    slope: float,
) -> tuple[Point, BilinearTangent] | None:
    """The first of the steps 1, 1/2, 1/4, ... that lowers E enough, or None."""
    linear, quadratic = _along(problem, point, direction)
    value = problem.penalty(point) + tangent.value

    def attempt(step: float) -> tuple[tuple[Point, BilinearTangent] | None, float]:
        moved = point.like(point.flat + step * direction.flat)
        there = problem.tangent(tangent.fitted + step * (linear + step * quadratic))
        change = problem.penalty(moved) + there.value - value
        if change <= _ARMIJO * step * slope + _ROUNDING * abs(value):
            # The sums along the way collect rounding errors: once more from the point.
            return (moved, problem.tangent(problem.fitted(moved))), 1.0
        return None, 0.5

    return backtrack(attempt, max_trials=_MAX_HALVINGS)


def _along(
    problem: BilinearProblem, point: Point, direction: Point
) -> tuple[Array, Array]:
    """Return F_1 and F_2 of F(t) = F + t F_1 + t^2 F_2."""
    template = problem.patches.template
    first = template(direction.maps, point.filters)
    first = first + template(point.maps, direction.filters)
    second = template(direction.maps, direction.filters)
    values = problem.X @ np.stack([first, second], axis=1)
    return values[:, 0] + direction.intercept, values[:, 1]


def hessian(problem: BilinearProblem, point: Point, tangent: BilinearTangent) -> Array:
    """Return H in the order of `Point.flat`, with curvature along turns of filters."""
    active = np.flatnonzero(tangent.curvature > 0)
    X, root = problem.X[active], np.sqrt(tangent.curvature[active])
    patches = problem.patches
    Z = np.hstack(
        [
            X @ patches.filtering(point.filters),
            X @ patches.weighing(point.maps),
            np.ones((len(active), 1)),
        ]
    )
    Z *= root[:, None]
    H = Z.T @ Z
    G = problem.pull(tangent.slope)
    rows, columns = G.shape
    for k in range(len(point.maps)):
        maps = slice(k * rows, (k + 1) * rows)
        first = point.maps.size + k * columns
        filters = slice(first, first + columns)
        H[maps, filters] += G
        H[filters, maps] += G.T
    turns = _turns(point)
    H += np.sqrt(problem.lambda_w * problem.lambda_f) * (turns @ turns.T)
    H[np.diag_indices_from(H)] += _penalties(problem, point)
    return H


def sensitivity(problem: BilinearProblem, at: Stationary) -> tuple[Array, float]:
    """Return d/d log lambda of the image v and of b, with F = x'v + b.

    lambda_w and lambda_f grow together with lambda, and so do the terms lambda_w w and
    lambda_f f of the optimality conditions dE = 0::

        H d(w, f, b)/d log lambda = -(lambda_w w, lambda_f f, 0)

    One right-hand side, and no need to know the upper level: with one hyperparameter
    this is as cheap as the adjoint. H may be indefinite where the solver stopped at a
    saddle, which Bunch and Kaufman's factorisation allows.
    """
    point, template = at.point, problem.patches.template
    moved = Point(problem.lambda_w * point.maps, problem.lambda_f * point.filters, 0.0)
    H = hessian(problem, point, at.tangent)
    with warnings.catch_warnings():
        # The certificate tells of systems that are solved with few digits.
        warnings.simplefilter("ignore", LinAlgWarning)
        move = point.like(-solve(H, moved.flat, assume_a="sym"))
    by_maps = template(move.maps, point.filters)
    return by_maps + template(point.maps, move.filters), move.intercept


def _penalties(problem: BilinearProblem, point: Point) -> Array:
    """Return the diagonal of the penalty's Hessian."""
    return np.concatenate(
        [
            np.full(point.maps.size, problem.lambda_w),
            np.full(point.filters.size, problem.lambda_f),
            [INTERCEPT_RIDGE],
        ]
    )


def _turns(point: Point) -> Array:
    """Return orthonormal directions in which pairs of filters turn into each other."""
    out = np.zeros((len(point.flat), 0))
    for j, k in combinations(range(len(point.maps)), 2):
        maps, filters = np.zeros_like(point.maps), np.zeros_like(point.filters)
        maps[j], maps[k] = point.maps[k], -point.maps[j]
        filters[j], filters[k] = point.filters[k], -point.filters[j]
        out = np.column_stack([out, Point(maps, filters, 0.0).flat])
    vectors, sizes, _ = np.linalg.svd(out, full_matrices=False)
    return vectors[:, sizes > 1e-8 * sizes.max(initial=0.0)]


def _revive(problem: BilinearProblem, at: Stationary) -> Point | None:
    """Return the point with a dead filter along G's first singular vectors, or None.

    Its size is the best of a few powers of two, up to a penalty as large as the loss.
    """
    point, strength = at.point, np.sqrt(problem.lambda_w * problem.lambda_f)
    sizes = np.linalg.norm(point.maps, axis=1) * np.linalg.norm(point.filters, axis=1)
    k, value = int(sizes.argmin()), problem.penalty(point) + at.tangent.value
    if strength * sizes[k] > _DEAD * value:
        return None
    left, values, right = np.linalg.svd(problem.pull(at.tangent.slope), False)
    if values[0] <= (1.0 + _WANTED) * strength:
        return None
    trials = []
    for size in (value / strength) * 0.25 ** np.arange(12):
        maps, filters = point.maps.copy(), point.filters.copy()
        maps[k], filters[k] = -size * left[:, 0], right[0]
        trial = Point(maps, filters, point.intercept)
        trial = trial.balanced(problem.lambda_w, problem.lambda_f)
        trials.append((problem.objective(trial), size, trial))
    least, _, best = min(trials, key=lambda one: one[:2])
    return best if least < value else None
