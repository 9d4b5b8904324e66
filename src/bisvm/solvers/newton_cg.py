"""Newton's method by conjugate gradients that stop early, for linear machines."""

from __future__ import annotations

import numpy as np

from bisvm.machines import Coefficients, LinearMachine, Machine, Tangent
from bisvm.solvers.base import Solution, Solver
from bisvm.solvers.line_search import exact_step
from bisvm.solvers.newton import Newton, _balanced, _newton_step, _usable, _Watch

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

    def _steps(
        self, machine: Machine, start: np.ndarray, tol: float
    ) -> tuple[Coefficients, int, bool]:
        assert isinstance(machine, LinearMachine)
        x, tangent = _newton_step(machine.within(FORCING), machine.tangent(start))
        watch = _Watch(machine.n_columns)
        iterations = machine.n_columns
        for _ in range(self.max_iter):
            residual = machine.residual(x, tangent)
            todo = watch.unfinished(residual, tol)
            if not len(todo):
                return x, iterations, False
            part = machine.select(todo).within(_forcing(residual[todo].max(), tol))
            stepped = _step(part, x.select(todo), tangent.select(todo))
            x, tangent = x.put(todo, stepped[0]), tangent.put(todo, stepped[1])
            iterations += len(todo)
        todo = watch.unfinished(machine.residual(x, tangent), tol)
        return x, iterations, len(todo) > 0


class Auto(Solver):
    """Newton's method: by factors where systems are small, by products where not."""

    def solve(
        self, machine: Machine, start: np.ndarray | None = None, tol: float = 1e-8
    ) -> Solution:
        by_action = isinstance(machine, LinearMachine) and machine.by_action
        return (NewtonCG() if by_action else Newton()).solve(machine, start, tol)


def _forcing(residual: float, tol: float) -> float:
    return max(min(FORCING, residual**0.5), LAST_SHARE * tol / residual)


def _step(
    machine: LinearMachine, x: Coefficients, tangent: Tangent
) -> tuple[Coefficients, Tangent]:
    """Towards the Newton point, as far as E falls."""
    direction = machine.linearize(_usable(machine, tangent)).direction(x)
    values = machine.fit_values(direction)
    length = exact_step(machine, x, tangent, direction, values)
    x = x.step(direction, length)
    return _balanced(machine, x, machine.tangent(tangent.fitted + length * values))
