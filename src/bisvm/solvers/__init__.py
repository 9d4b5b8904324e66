"""Ways to take a machine to its optimum."""

from __future__ import annotations

from typing import Any

from bisvm.parts import resolve
from bisvm.solvers.base import Solution, Solver
from bisvm.solvers.fista import FISTA
from bisvm.solvers.newton import Newton

SOLVERS: dict[str, Any] = {"auto": Newton, "newton": Newton, "fista": FISTA}


def get_solver(solver: Any) -> Solver:
    """The solver of that name, or the solver object itself."""
    return resolve("solver", solver, SOLVERS, Solver)


__all__ = ["FISTA", "SOLVERS", "Newton", "Solution", "Solver", "get_solver"]
