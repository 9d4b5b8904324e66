"""Solvers: take a machine to its optimum.

May import `machines` and what machines may import. A new solver is a subclass of
`Solver`, in a file of its own, with a name in `SOLVERS` below.
"""

from __future__ import annotations

from typing import Any

from bisvm.core.parts import deferred, resolve
from bisvm.losses import Loss
from bisvm.solvers.base import Solution, Solver
from bisvm.solvers.dual import DCD, SMO, Dual, DualSolver, Sharpening
from bisvm.solvers.fista import FISTA
from bisvm.solvers.newton import Newton
from bisvm.solvers.newton_cg import Auto, NewtonCG

SOLVERS: dict[str, Any] = {
    "auto": Auto,
    "newton": Newton,
    "newton-cg": NewtonCG,
    "fista": FISTA,
    "smo": SMO,
    "dcd": DCD,
    "pegasos": deferred("bisvm.published.pegasos_solver", "Pegasos"),
    "sharpening": Sharpening,
}


def get_solver(solver: Any, loss: Loss | None = None) -> Solver:
    """The solver of that name, or the solver object itself.

    "auto" is Newton's method, by factors or by conjugate gradients as the machine
    demands; for the exact hinge it is a solver of the dual.
    """
    dual = loss is not None and not loss.twice_differentiable
    if dual and isinstance(solver, str) and solver == "auto":
        return Dual()
    return resolve("solver", solver, SOLVERS, Solver)


__all__ = [
    "Auto",
    "DCD",
    "FISTA",
    "SMO",
    "SOLVERS",
    "Dual",
    "DualSolver",
    "Newton",
    "NewtonCG",
    "Sharpening",
    "Solution",
    "Solver",
    "get_solver",
]
