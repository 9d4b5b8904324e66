"""Newton's method by conjugate gradients that stop early, for linear machines."""

from __future__ import annotations

import numpy as np

from bisvm.machines import Coefficients, LinearMachine, Machine, Tangent
from bisvm.solvers.base import Solution, Solver
from bisvm.solvers.newton import Newton

# Relative residual of the conjugate gradients for a step far from the optimum; near it
# steps are better, so that convergence is faster than linear.
FORCING = 0.1
# Part of what is still to be gained that the last step may leave.
LAST_SHARE = 0.3


class NewtonCG(Newton):
    """Newton steps that are only as exact as they need to be.

    From x = (w, b) the step d solves, without the intercept,

        (R + X'D X) d = -(R w + X'S)        to a relative residual eta,

    eta = min(0.1, sqrt(residual)), and no better than the tolerance asks for. Only
    products with X are needed, one for all columns: no matrix is formed.

    Parameters
    ----------
    max_iter : int
        Newton steps for every column.
    """

    def solve(
        self, machine: Machine, start: np.ndarray | None = None, tol: float = 1e-8
    ) -> Solution:
        if not isinstance(machine, LinearMachine):
            raise ValueError(
                "solver='newton-cg' is for linear machines; for kernels use 'auto' or "
                "'newton'."
            )
        return super().solve(machine, start, tol)

    def _first(self, machine: Machine) -> Machine:
        return machine.within(FORCING)

    def _direction(
        self,
        machine: Machine,
        x: Coefficients,
        tangent: Tangent,
        residual: float,
        tol: float,
    ) -> tuple[Coefficients, np.ndarray]:
        assert isinstance(machine, LinearMachine)
        inexact = machine.within(_forcing(residual, tol))
        direction = inexact.linearize(tangent).direction(x)
        return direction, machine.fit_values(direction)


class Auto(Solver):
    """Newton's method: by factors where systems are small, by products where not."""

    def solve(
        self, machine: Machine, start: np.ndarray | None = None, tol: float = 1e-8
    ) -> Solution:
        by_action = isinstance(machine, LinearMachine) and machine.by_action
        return (NewtonCG() if by_action else Newton()).solve(machine, start, tol)


def _forcing(residual: float, tol: float) -> float:
    return max(min(FORCING, residual**0.5), LAST_SHARE * tol / residual)
