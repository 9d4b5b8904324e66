"""Grid search: evaluate the objective at every point of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.core.types import Array
from bisvm.optimizers.base import CONVERGED, BoundedProblem, Optimizer


@dataclass(eq=False, repr=False)
class Grid(Optimizer):
    """The Cartesian product of evenly spaced values between the bounds.

    The spacing is even in the coordinates that the optimizer is given: for a
    hyperparameter with a logarithmic scale, the values form a geometric series.

    Parameters
    ----------
    points : int or list of int, default=10
        Values per coordinate. A coordinate with one value stays at its start.
    max_points : int, default=10_000
        A grid with more points raises an error.

    Notes
    -----
    The result also holds `grid_points`, of shape (n_points, n) with the last
    coordinate running fastest, and `grid_values`, of shape (n_points,). Values that
    are not finite are kept there, and are never the best.

    Examples
    --------
    >>> grid = Grid(points=5).minimize(lambda x: (x @ x, 2 * x), [1.0], [[-2, 2]])
    >>> grid.x, grid.grid_values
    (array([0.]), array([4., 1., 0., 1., 4.]))
    """

    uses_start = False
    resumes = False

    points: int | Sequence[int] = 10
    max_points: int = 10_000

    def within(self, tol: float, max_iter: int) -> Self:
        return self

    def validate(self) -> Self:
        self.check_count("max_points")
        for points in np.atleast_1d(np.asarray(self.points, dtype=object)):
            self.replace(points=points).check_count("points")
        return self

    def _minimize(
        self, problem: BoundedProblem, previous: OptimizeResult | None = None
    ) -> OptimizeResult:
        counts = self._counts(problem)
        total = math.prod(counts)
        if total > self.max_points:
            raise ValueError(
                f"The grid would have {' x '.join(map(str, counts))} = {total} points, "
                f"more than max_points={self.max_points}. Take fewer points per "
                "coordinate, learn fewer hyperparameters, or use optimizer='lbfgs'."
            )
        points = _grid_points(problem, counts)
        values = np.array([problem.evaluate(point)[0] for point in points])
        return problem.result(
            total,
            CONVERGED,
            "The whole grid was evaluated.",
            grid_points=points,
            grid_values=values,
        )

    def _counts(self, problem: BoundedProblem) -> list[int]:
        n = problem.start.size
        counts = np.atleast_1d(np.asarray(self.points, dtype=int))
        if np.ndim(self.points) > 0 and counts.shape != (n,):
            raise ValueError(
                f"Grid: points has {counts.size} entries for {n} coordinates; give one "
                "number per coordinate, or a single number for all."
            )
        counts = np.broadcast_to(counts, n)
        # A coordinate whose bounds coincide has one value, however many are asked for.
        return [int(c) for c in np.where(problem.lower < problem.upper, counts, 1)]


def _grid_points(problem: BoundedProblem, counts: list[int]) -> Array:
    axes = []
    for index, count in enumerate(counts):
        low, high = problem.lower[index], problem.upper[index]
        if count == 1:
            axes.append(problem.start[index : index + 1])
            continue
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(
                f"A grid needs finite bounds; bounds[{index}] = ({low:g}, {high:g})."
            )
        axes.append(np.linspace(low, high, count))
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([m.ravel() for m in mesh], axis=-1) if mesh else np.empty((1, 0))
