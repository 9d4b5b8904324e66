"""Ways to take a machine to its optimum."""

from __future__ import annotations

from typing import Any

from bisvm.losses import Loss
from bisvm.parts import resolve
from bisvm.solvers.base import Solution, Solver
from bisvm.solvers.fista import FISTA
from bisvm.solvers.newton import Newton
from bisvm.solvers.smo import SMO

SOLVERS: dict[str, Any] = {
    "auto": Newton,
    "newton": Newton,
    "fista": FISTA,
    "smo": SMO,
}


def get_solver(solver: Any, loss: Loss | None = None) -> Solver:
    """The solver of that name, or the solver object itself.

    "auto" is Newton's method, and SMO for the exact hinge.
    """
    dual = loss is not None and not loss.twice_differentiable
    if dual and isinstance(solver, str) and solver == "auto":
        return SMO()
    return resolve("solver", solver, SOLVERS, Solver)


__all__ = ["FISTA", "SMO", "SOLVERS", "Newton", "Solution", "Solver", "get_solver"]
