"""solver="auto" for smooth losses: the method that suits the machine."""

from __future__ import annotations

from dataclasses import replace

from bisvm.core.types import Array
from bisvm.machines import LinearMachine, Machine
from bisvm.solvers.base import Solution, Solver
from bisvm.solvers.blocks import BlockNewton
from bisvm.solvers.newton import Newton, NewtonCG


class Auto(Solver):
    """Newton's method: factorised where systems are small, by products where not."""

    def solve(
        self, machine: Machine, start: Array | None = None, tol: float = 1e-8
    ) -> Solution:
        """Solve by the method for this machine; see `Solver.solve`."""
        if isinstance(machine, LinearMachine) and machine.by_passes:
            return _by_passes(machine, start, tol)
        return _method(machine).solve(machine, start, tol)

    def approach(self, machine: Machine, start: Array, tol: float) -> tuple[Array, int]:
        """Take steps of that method; blocks of rows have none that cost little."""
        if isinstance(machine, LinearMachine) and machine.by_passes:
            return start, 0
        return _method(machine).approach(machine, start, tol)


def _method(machine: Machine) -> Newton:
    by_products = isinstance(machine, LinearMachine) and machine.by_action
    return NewtonCG() if by_products else Newton()


def _by_passes(machine: LinearMachine, start: Array | None, tol: float) -> Solution:
    """Few passes over the rows; the safer method begins where they do not converge."""
    found = BlockNewton().solve(machine, start, tol)
    if found.status != "max_iter":
        return found
    safer = Newton().solve(machine, None, tol)
    return replace(safer, iterations=found.iterations + safer.iterations)
