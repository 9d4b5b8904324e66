"""What a solver returns, what it must do, and the names of all solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from bisvm.core.parts import Part, deferred, resolve
from bisvm.core.types import Array
from bisvm.losses import Loss
from bisvm.machines import Coefficients, Machine, Tangent

# From the best to the worst.
STATUSES = ("converged", "stalled", "max_iter")


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
    residual: Array
    iterations: int
    status: str

    @property
    def fitted(self) -> Array:
        """F at the solution: (n, q)."""
        return self.tangent.fitted


class Solver(Part):
    """Train a machine, from a warm start if there is one.

    A solver declares what it needs of a loss, so that a wrong pair is refused with a
    readable message before anything is computed.
    """

    needs_curvature: ClassVar[bool] = True

    def check(self, loss: Loss) -> None:
        """Refuse a loss that this solver cannot handle."""
        if self.needs_curvature and not loss.twice_differentiable:
            raise ValueError(
                f"{type(self).__name__} needs a twice differentiable loss, and "
                f"{loss!r} is not; use 'quartic', 'modified_log', 'squared_hinge' or "
                "'logistic'."
            )

    def solve(
        self, machine: Machine, start: Array | None = None, tol: float = 1e-8
    ) -> Solution:
        """Solve all columns to `residual <= tol`.

        Parameters
        ----------
        machine : Machine
        start : array of shape (n, n_columns), optional
            Fitted values close to the solution; None for a cold start. They make the
            solve faster and change the solution by no more than the tolerance.
        tol : float
            Optimality residual, as `Machine.residual` measures it.
        """
        raise NotImplementedError

    def approach(self, machine: Machine, start: Array, tol: float) -> tuple[Array, int]:
        """Return better fitted values to start from, and the steps that they took.

        For values of other machines, such as those of a sample of the rows.
        """
        return start, 0


# Every solver is imported when its name is used for the first time.
SOLVERS: dict[str, Callable[[], object]] = {
    "auto": deferred("bisvm.solvers.automatic", "Auto"),
    "newton": deferred("bisvm.solvers.newton", "Newton"),
    "newton-cg": deferred("bisvm.solvers.newton", "NewtonCG"),
    "fista": deferred("bisvm.solvers.fista", "FISTA"),
    "smo": deferred("bisvm.solvers.dual", "SMO"),
    "dcd": deferred("bisvm.solvers.dual", "DCD"),
    "pegasos": deferred("bisvm.published.pegasos", "Pegasos"),
    "sharpening": deferred("bisvm.solvers.dual", "Sharpening"),
}
_DUAL = {"auto": deferred("bisvm.solvers.dual", "Dual")}


def get_solver(solver: str | Solver, loss: Loss | None = None) -> Solver:
    """Return the solver of that name, or the solver object itself.

    "auto" is Newton's method, with factorised or iterative linear solves as the machine
    demands; for the exact hinge it is a solver of the dual.
    """
    dual = loss is not None and not loss.twice_differentiable
    table = SOLVERS | _DUAL if dual else SOLVERS
    return resolve("solver", solver, table, Solver)
