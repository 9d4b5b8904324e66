"""Newton's method on the active set, with an exact line search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bisvm.machines import Coefficients, Machine, Tangent
from bisvm.solvers.base import Solution, Solver
from bisvm.solvers.line_search import exact_step


class Newton(Solver):
    """Step from F to the minimiser of the machine's linearisation at F.

    The linearisation needs fitted values only, so the first step, a full one, goes from
    those of the start. After that E falls at every step. From a cold start the wider
    losses of the same family are passed through first. Columns leave when they are
    done.

    Parameters
    ----------
    max_iter : int
        Newton steps for every column.
    """

    def __init__(self, max_iter: int = 200):
        self.max_iter = max_iter

    def solve(
        self, machine: Machine, start: np.ndarray | None = None, tol: float = 1e-8
    ) -> Solution:
        self.check(machine.loss)
        iterations = 0
        if start is None:
            start = machine.cold_start()
            for loss in machine.loss.relaxed():
                wide = self._descend(machine.with_loss(loss), start, max(tol, 1e-2))
                start = wide.fitted
                iterations += wide.iterations
        solution = self._descend(machine, start, tol)
        return replace(solution, iterations=solution.iterations + iterations)

    def _descend(self, machine: Machine, start: np.ndarray, tol: float) -> Solution:
        q = machine.n_columns
        x = machine.linearize(_usable(machine, machine.tangent(start))).minimizer()
        x, fitted = _balanced(machine, x, machine.fit_values(x))
        best = np.full(q, np.inf)
        patience = np.zeros(q, dtype=int)
        todo = np.arange(q)
        iterations = q
        for _ in range(self.max_iter):
            part = machine.select(todo)
            x_todo = x.select(todo)
            tangent = part.tangent(fitted[:, todo])
            residual = part.residual(x_todo, tangent)
            # No halving of the residual over several full steps: rounding errors rule.
            patience[todo] = np.where(
                residual <= 0.5 * best[todo], 0, patience[todo] + 1
            )
            best[todo] = np.minimum(best[todo], residual)
            stalled = (patience[todo] >= 4) & (residual <= 1e-6)
            going = ~((residual <= tol) | stalled)
            todo = todo[going]
            if not len(todo):
                break
            if not going.all():
                part, x_todo = machine.select(todo), x_todo.select(going)
                tangent = _select(tangent, going)
            iterations += len(todo)
            target = part.linearize(_usable(part, tangent)).minimizer()
            direction = target - x_todo
            values = part.fit_values(target) - tangent.fitted
            step = exact_step(part, x_todo, tangent, direction, values)
            x_todo, fitted_todo = _balanced(
                part, x_todo.step(direction, step), tangent.fitted + step * values
            )
            x = _update(x, todo, x_todo)
            fitted[:, todo] = fitted_todo
        tangent = machine.tangent(machine.fit_values(x))
        residual = machine.residual(x, tangent)
        if len(todo):
            status = "max_iter"
        else:
            status = "converged" if np.all(residual <= 2 * tol) else "stalled"
        return Solution(x, tangent, residual, iterations, status)


def _unheld(machine: Machine, tangent: Tangent, tol: float) -> np.ndarray:
    """Columns whose intercept no active point holds, and that want to move it."""
    if machine.intercept == "none":
        return np.zeros(machine.n_columns, dtype=bool)
    empty = ~np.any(tangent.curvature > 0, axis=0)
    balance = np.abs(tangent.slope.sum(axis=0))
    return empty & (balance > tol * machine.weights.sum(axis=0))


def _usable(machine: Machine, tangent: Tangent) -> Tangent:
    """Where nothing holds the intercept the curvature's upper bound takes its place."""
    unheld = _unheld(machine, tangent, 1e-9)
    if not unheld.any():
        return tangent
    bound = machine.loss.max_curvature * machine.weights
    return replace(tangent, curvature=np.where(unheld, bound, tangent.curvature))


def _balanced(
    machine: Machine, x: Coefficients, fitted: np.ndarray
) -> tuple[Coefficients, np.ndarray]:
    """Move the intercept alone to its optimum where no active point holds it.

    A step that leaves no point near its margin would take it out of sight otherwise.
    """
    tangent = machine.tangent(fitted)
    unheld = _unheld(machine, tangent, 1e-2)
    if not unheld.any():
        return x, fitted
    away = tangent.slope.sum(axis=0) / machine.weights.sum(axis=0)
    move = Coefficients(np.zeros_like(x.coef), np.where(unheld, -away, 0.0))
    values = np.broadcast_to(move.intercept, fitted.shape)
    step = exact_step(machine, x, tangent, move, values)
    return x.step(move, step), fitted + step * values


def _select(tangent: Tangent, columns: np.ndarray) -> Tangent:
    return Tangent(
        tangent.fitted[:, columns],
        tangent.value[columns],
        tangent.slope[:, columns],
        tangent.curvature[:, columns],
    )


def _update(x: Coefficients, columns: np.ndarray, part: Coefficients) -> Coefficients:
    coef, intercept = x.coef.copy(), x.intercept.copy()
    coef[:, columns], intercept[columns] = part.coef, part.intercept
    return Coefficients(coef, intercept)
