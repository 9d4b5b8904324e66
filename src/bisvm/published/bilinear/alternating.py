"""Alternating minimisation: the seed's Algorithm 4.

    repeat    w, b <- SVM on the feature maps x_i * f,  strength lambda_w
              f, b <- SVM on the vectors w'X_i,         strength lambda_f

Each half is a linear SVM. With exact solvers E never rises. Both halves set the
intercept; the seed keeps that of the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bisvm.published.bilinear.problem import BilinearProblem, Point
from bisvm.published.bilinear.steps import HalfStep


@dataclass(frozen=True)
class Alternation:
    """Where the alternation ended.

    path : E after every half step, (2 iterations,); what figure 3.3 shows
    converged : whether E fell by less than tol before the limit
    """

    point: Point
    path: np.ndarray
    converged: bool

    @property
    def iterations(self) -> int:
        return len(self.path) // 2


def alternate(
    problem: BilinearProblem,
    start: Point,
    step: HalfStep,
    *,
    tol: float = 1e-3,
    max_iter: int = 50,
    seed: int = 0,
) -> Alternation:
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
    return Alternation(best, np.array(path), converged)


def maps_step(
    problem: BilinearProblem, point: Point, step: HalfStep, seed: int
) -> Point:
    """w and b for fixed filters, from decision values of the present point."""
    fitted = problem.fitted(point) if point.maps.any() else None
    machine = problem.maps_machine(point.filters)
    coef, intercept = step.solve(machine, fitted, seed)
    return Point(coef.reshape(point.maps.shape), point.filters, intercept)


def filters_step(
    problem: BilinearProblem, point: Point, step: HalfStep, seed: int
) -> Point:
    """f and b for fixed maps, from decision values of the present point."""
    machine = problem.filters_machine(point.maps)
    coef, intercept = step.solve(machine, problem.fitted(point), seed)
    return Point(point.maps, coef.reshape(point.filters.shape), intercept)


def start_at(problem: BilinearProblem, filters: np.ndarray) -> Point:
    """The point with these filters and nothing else."""
    maps = np.zeros((len(filters), problem.patches.n_positions))
    return Point(maps, np.array(filters, dtype=float), 0.0)
