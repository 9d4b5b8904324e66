"""From a problem to a trained point: where to start, alternate, polish."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bisvm.published.bilinear.alternating import alternate, start_at
from bisvm.published.bilinear.joint import minimize
from bisvm.published.bilinear.problem import BilinearProblem, Point
from bisvm.published.bilinear.steps import HalfStep, NewtonStep

# A start is found on so many images, by so many alternations.
_SKETCH_ROWS, _SKETCH_ITER = 2000, 5
_SKETCH_TOL = 1e-2


@dataclass(frozen=True)
class TrainedBilinear:
    """A trained point.

    path : E after every half step, and after the joint steps if there were any
    residual : how far from stationary it is, NaN where no one knows
    """

    point: Point
    path: np.ndarray
    residual: float
    iterations: int
    converged: bool


def train(
    problem: BilinearProblem,
    step: HalfStep,
    n_filters: int = 1,
    *,
    near: Point | None = None,
    tol: float = 1e-3,
    max_iter: int = 100,
    seed: int = 0,
) -> TrainedBilinear:
    """Alternate from the spectral start; Newton's solutions are then polished jointly.

    The alternation is slow at the end, where joint steps converge quadratically; from
    a point `near` the solution they do without it.
    """
    if not isinstance(step, NewtonStep):
        start = start_at(problem, problem.spectral_filters(n_filters))
        found = alternate(problem, start, step, tol=tol, max_iter=max_iter, seed=seed)
        return TrainedBilinear(
            found.point, found.path, np.nan, found.iterations, found.converged
        )
    path, iterations = np.zeros(0), 0
    if near is None:
        start = sketch(problem, n_filters)
        found = alternate(problem, start, step, tol=tol, max_iter=max_iter, seed=seed)
        near, path, iterations = found.point, found.path, found.iterations
    joint = minimize(problem, near)
    return TrainedBilinear(
        joint.point,
        np.append(path, problem.objective(joint.point)),
        joint.residual,
        iterations + joint.iterations,
        joint.usable,
    )


def sketch(problem: BilinearProblem, n_filters: int) -> Point:
    """A start for many images: some alternations on a few of them.

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
