"""The exact hinge: sequential minimal optimization, made exact on its margin set."""

from __future__ import annotations

import numpy as np

from bisvm.incremental.active_set import MARGIN, ActiveSet
from bisvm.incremental.solution import solve
from bisvm.losses import Hinge, Loss
from bisvm.machines import Coefficients, KernelMachine, Machine, Tangent
from bisvm.solvers.base import Solution, Solver


class SMO(Solver):
    """max over alpha of sum_i alpha_i - 1/2 beta'K beta, 0 <= alpha_i <= W_i,

    1'beta = 0 with signed duals beta_i = y_i alpha_i. LIBSVM comes near, and a path of
    breakpoints leads to the exact solution (`bisvm.incremental`). The tangent carries
    its sets: slope S = -beta, and an infinite curvature on the margin.
    """

    needs_curvature = False

    def check(self, loss: Loss) -> None:
        if not isinstance(loss, Hinge):
            raise ValueError(
                f"SMO solves the dual of the exact hinge, and {loss!r} is not: use "
                "loss='hinge', or solver='newton'."
            )

    def solve(
        self, machine: Machine, start: np.ndarray | None = None, tol: float = 1e-8
    ) -> Solution:
        self.check(machine.loss)
        if not isinstance(machine, KernelMachine) or machine.intercept != "free":
            raise ValueError(
                "SMO trains kernel machines with a free intercept; use a smooth loss "
                "such as 'quartic' for others."
            )
        columns = zip(machine.labels.T, machine.weights.T, strict=True)
        try:
            found = [solve(machine.gram, labels, c) for labels, c in columns]
        except RuntimeError as error:
            # A search that came to this theta turns back.
            raise np.linalg.LinAlgError(str(error)) from error
        return _solution(machine, [sets for sets, _ in found], sum(n for _, n in found))


def _solution(
    machine: KernelMachine, columns: list[ActiveSet], breakpoints: int
) -> Solution:
    x = Coefficients(
        np.stack([sets.y * sets.alpha for sets in columns], axis=1),
        np.array([sets.b for sets in columns]),
    )
    fitted = machine.fit_values(x)
    losses = machine.weights * machine.loss.evaluate(machine.labels * fitted)[0]
    on_margin = np.stack([sets.state == MARGIN for sets in columns], axis=1)
    tangent = Tangent(
        fitted, losses.sum(axis=0), -x.coef, np.where(on_margin, np.inf, 0.0)
    )
    residual = np.array([sets.residual() for sets in columns])
    return Solution(x, tangent, residual, breakpoints, "converged")
