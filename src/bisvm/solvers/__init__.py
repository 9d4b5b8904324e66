"""Solvers: train a machine, that is find the optimum of all its columns.

May import `machines` and what machines may import. A new solver is a subclass of
`Solver`, in its own file, with a name in `SOLVERS` (`base.py`).
"""

from bisvm.solvers.automatic import Auto
from bisvm.solvers.base import SOLVERS, Solution, Solver, get_solver
from bisvm.solvers.dual import DCD, SMO, Dual, DualSolver, Sharpening
from bisvm.solvers.fista import FISTA
from bisvm.solvers.newton import Newton, NewtonCG

__all__ = [
    "DCD",
    "FISTA",
    "SMO",
    "SOLVERS",
    "Auto",
    "Dual",
    "DualSolver",
    "Newton",
    "NewtonCG",
    "Sharpening",
    "Solution",
    "Solver",
    "get_solver",
]
