"""Training: alternating minimisation from a good start, and joint Newton steps.

The alternation is algorithm 4 of Sugg (2018):

    repeat    w, b <- SVM on the feature maps x_i * f,  strength lambda_w
              f, b <- SVM on the vectors w'X_i,         strength lambda_f

Each half is a linear SVM. With exact solvers E never rises. Both halves set the
intercept; Sugg keeps that of the first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bisvm.core.types import Array
from bisvm.published.bilinear.joint import minimize
from bisvm.published.bilinear.problem import BilinearProblem, Point
from bisvm.published.bilinear.steps import HalfStep, NewtonStep

# A start is found on this many images, by this many alternations.
_SKETCH_ROWS, _SKETCH_ITER = 2000, 5
_SKETCH_TOL = 1e-2


@dataclass(frozen=True)
class TrainedBilinear:
    """A trained point.

    path : E after every half step (what figure 3.3 shows), and after the joint steps
        if there were any
    residual : how far from stationary it is, NaN if it is not known
    converged : whether it is stationary, or the alternation lowered E by less than tol
    """

    point: Point
    path: Array
    residual: float
    iterations: int
    converged: bool


def train(
    problem: BilinearProblem,
    step: HalfStep,
    n_filters: int = 1,
    *,
    start: Point | None = None,
    tol: float = 1e-3,
    max_iter: int = 100,
    seed: int = 0,
) -> TrainedBilinear:
    """Alternate from the spectral start; Newton's solutions are then polished jointly.

    The alternation is slow at the end, where joint steps converge quadratically; from
    a warm `start` it is left out.
    """
    if not isinstance(step, NewtonStep):
        first = start_at(problem, problem.spectral_filters(n_filters))
        return alternate(problem, first, step, tol=tol, max_iter=max_iter, seed=seed)
    path, iterations = np.zeros(0), 0
    if start is None:
        first = sketch(problem, n_filters)
        found = alternate(problem, first, step, tol=tol, max_iter=max_iter, seed=seed)
        start, path, iterations = found.point, found.path, found.iterations
    joint = minimize(problem, start)
    return TrainedBilinear(
        joint.point,
        np.append(path, problem.objective(joint.point)),
        joint.residual,
        iterations + joint.iterations,
        joint.usable,
    )


def sketch(problem: BilinearProblem, n_filters: int) -> Point:
    """Return a start for many images: some alternations on a few of them.

    The rows are spread evenly over the data, by class.
    """
    step = NewtonStep(tol=1e-3)
    part = problem
    if len(problem.X) > _SKETCH_ROWS:
        order = np.argsort(problem.labels, kind="stable")
        rows = order[np.linspace(0, len(order) - 1, _SKETCH_ROWS).astype(int)]
        weights = problem.weights[rows]
        part = replace(
            problem,
            X=problem.X[rows],
            labels=problem.labels[rows],
            weights=weights / weights.sum(),
        )
    start = start_at(part, part.spectral_filters(n_filters))
    return alternate(part, start, step, tol=_SKETCH_TOL, max_iter=_SKETCH_ITER).point


def alternate(
    problem: BilinearProblem,
    start: Point,
    step: HalfStep,
    *,
    tol: float = 1e-3,
    max_iter: int = 50,
    seed: int = 0,
) -> TrainedBilinear:
    """Alternate until a whole iteration lowers E by less than `tol` of it.

    The filters of `start` are what counts: the first half sets maps and intercept. An
    iteration that raises E, as that of a stochastic solver may, ends it too; the best
    iterate is returned.
    """
    step.check(problem.loss)
    rng = np.random.default_rng(seed)
    path: list[float] = []
    best, least, converged, point = start, np.inf, False, start
    for _ in range(max_iter):
        before = path[-1] if path else np.inf
        for half in (maps_step, filters_step):
            point = half(problem, point, step, int(rng.integers(2**31)))
            path.append(problem.objective(point))
        if path[-1] < least:
            best, least = point, path[-1]
        converged = bool(path[-1] >= (1.0 - tol) * before)
        if converged:
            break
    return TrainedBilinear(best, np.array(path), np.nan, len(path) // 2, converged)


def maps_step(
    problem: BilinearProblem, point: Point, step: HalfStep, seed: int
) -> Point:
    """Return w and b for fixed filters, from decision values of the present point."""
    fitted = problem.fitted(point) if point.maps.any() else None
    machine = problem.maps_machine(point.filters)
    coef, intercept = step.solve(machine, fitted, seed)
    return Point(coef.reshape(point.maps.shape), point.filters, intercept)


def filters_step(
    problem: BilinearProblem, point: Point, step: HalfStep, seed: int
) -> Point:
    """Return f and b for fixed maps, from decision values of the present point."""
    machine = problem.filters_machine(point.maps)
    coef, intercept = step.solve(machine, problem.fitted(point), seed)
    return Point(point.maps, coef.reshape(point.filters.shape), intercept)


def start_at(problem: BilinearProblem, filters: Array) -> Point:
    """Return the point with these filters, and all else zero."""
    maps = np.zeros((len(filters), problem.patches.n_positions))
    return Point(maps, np.array(filters, dtype=float), 0.0)
