"""What a solver returns, and the contract it keeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bisvm.core.parts import Part
from bisvm.losses import Loss
from bisvm.machines import Coefficients, Machine, Tangent


@dataclass(frozen=True)
class Solution:
    """Where a solver stopped.

    residual : (n_columns,), the optimality residual actually reached
    iterations : total over the columns
    status : "converged", "stalled" (rounding errors allow no further progress) or
        "max_iter", the worst over the columns
    """

    x: Coefficients
    tangent: Tangent
    residual: np.ndarray
    iterations: int
    status: str

    @property
    def fitted(self) -> np.ndarray:
        return self.tangent.fitted


class Solver(Part):
    """Takes a machine to its optimum from a warm start.

    A solver declares what it needs of a loss, so that a wrong pair is refused with a
    readable message rather than failing on the way.
    """

    needs_curvature = True

    def check(self, loss: Loss) -> None:
        """Refuse a loss that this solver cannot handle."""
        if self.needs_curvature and not loss.twice_differentiable:
            raise ValueError(
                f"{type(self).__name__} needs a twice differentiable loss, and "
                f"{loss!r} is not; use 'quartic', 'modified_log', 'squared_hinge' or "
                "'logistic'."
            )

    def solve(
        self, machine: Machine, start: np.ndarray | None = None, tol: float = 1e-8
    ) -> Solution:
        """Solve all columns to `residual <= tol`.

        `start` are fitted values (n, q) near those sought, or None for a cold start.
        They speed up the solve and do not change the answer beyond the tolerance.
        """
        raise NotImplementedError
