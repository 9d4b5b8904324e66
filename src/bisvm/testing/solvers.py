"""The contract of a solver."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np

from bisvm.kernels import RBF
from bisvm.losses import Hinge, Logistic, Loss, Quartic, SquaredHinge
from bisvm.machines import KernelMachine, LinearMachine, Machine
from bisvm.machines.base import Intercept
from bisvm.solvers import Newton, Solution, Solver
from bisvm.testing.parts import check_part
from bisvm.testing.requirements import require, require_close

TOL = 1e-7
STATUSES = ("converged", "stalled", "max_iter")


def check_solver(solver: Solver) -> None:
    """A solver gets a machine to its optimum, and reports the residual it reached.

    Every loss of the library that the solver accepts is tried, on linear and kernel
    machines with all kinds of intercepts.
    """
    check_part(solver)
    if solver.needs_curvature:
        _check_refusal(solver)
    intercepts: tuple[Intercept, ...] = ("free", "penalized", "none")
    for loss in (Quartic(0.25), SquaredHinge(), Logistic()):
        for intercept in intercepts:
            for machine in _machines(loss, intercept):
                _check_machine(solver, machine)


def _check_refusal(solver: Solver) -> None:
    (machine, _) = _machines(Hinge(), "free")
    for refuse in (solver.check, lambda _: solver.solve(machine)):
        try:
            refuse(machine.loss)
        except ValueError:
            continue
        raise AssertionError("a loss without curvature is not refused by a ValueError.")


def _machines(loss: Loss, intercept: Intercept) -> list[Machine]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    y = np.sign(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=24))
    labels = np.column_stack([y, -y])
    weights = rng.uniform(0.2, 2.0, size=labels.shape) * (
        rng.random(labels.shape) < 0.8
    )
    kernel = RBF(0.5)
    return [
        LinearMachine(labels, weights, loss, intercept, X, np.array([1.0, 2.0, 0.5])),
        KernelMachine(labels, weights, loss, intercept, kernel, X, kernel.gram(X)),
    ]


def _check_machine(solver: Solver, machine: Machine) -> None:
    where = f"{type(machine).__name__}, {machine.loss!r}, {machine.intercept}"
    cold = solver.solve(machine, None, TOL)
    _check_solution(machine, cold, where)
    again = solver.solve(machine, None, TOL)
    same = np.array_equal(cold.fitted, again.fitted)
    require(same, f"{where}: two solves give different answers.")

    reference = Newton().solve(machine, None, 1e-12)
    best = machine.value(reference.x, reference.tangent)
    found = machine.value(cold.x, cold.tangent)
    require_close(found, best, f"{where}: the value is not the least", rtol=1e-6)
    require_close(
        cold.fitted, reference.fitted, f"{where}: fitted values are off", rtol=1e-3
    )
    warm = solver.solve(machine, reference.fitted + 0.01, TOL)
    _check_solution(machine, warm, where)
    require_close(
        warm.fitted, cold.fitted, f"{where}: the start changes the answer", rtol=1e-3
    )
    alone = solver.solve(machine.select([1]), None, TOL)
    require_close(
        alone.fitted[:, 0],
        cold.fitted[:, 1],
        f"{where}: a column's answer depends on its neighbours",
        rtol=1e-3,
    )
    loose = solver.solve(machine, None, 1e-2)
    require(loose.iterations <= cold.iterations, f"{where}: a loose tol takes longer.")


def _check_solution(machine: Machine, solution: Solution, where: str) -> None:
    fitted = machine.fit_values(solution.x)
    require_close(
        solution.fitted, fitted, f"{where}: fitted is not f of x", rtol=1e-9, atol=1e-12
    )
    true = machine.residual(solution.x, machine.tangent(fitted))
    require_close(
        solution.residual,
        true,
        f"{where}: the residual reported is not the true one",
        rtol=1e-3,
        atol=1e-13,
    )
    require(solution.status in STATUSES, f"{where}: status {solution.status!r}.")
    require(
        solution.status != "max_iter" and np.all(true <= 2 * TOL),
        f"{where}: residual {true.max():.3g} ({solution.status}), asked for {TOL:.3g}.",
    )
    require(solution.iterations > 0, f"{where}: iterations are not counted.")
    try:
        solution.status = "changed"  # type: ignore[misc]
    except FrozenInstanceError:
        return
    raise AssertionError(f"{where}: a solution can be changed.")
