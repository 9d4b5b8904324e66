"""Newton's method on the active set, with an exact line search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bisvm.data.splits import distinct_columns
from bisvm.machines import Coefficients, Machine, Tangent
from bisvm.machines.compiled import HELD, PATIENCE, ROUNDING
from bisvm.solvers.base import Solution, Solver
from bisvm.solvers.line_search import exact_step

# Fitted values this large (or not finite) are no start worth having.
_FAR = 1e4
# The wider losses on the way from a cold start are only touched upon.
_WIDE_TOL = 0.3
# Where a start leads nowhere: parts of the weights, from nearly none to all, each
# solved roughly.
_PARTS = 10.0 ** np.arange(-8.0, 1.0)
_PART_TOL = 0.1


class Newton(Solver):
    """Step from F to the minimiser of the machine's linearisation at F.

    The linearisation needs fitted values only, so the first step, a full one, goes from
    those of the start. After that E falls at every step. Columns leave when they are
    done.

    Points beyond the corner of a hinge pull with all their weight and have no
    curvature: with a large C steps are far too long, the line search cuts them, and
    only few points change sides in each. Columns that are not solved after `max_iter`
    steps go another way: from C / 10^8 in powers of ten, each from the solution before,
    where few points change sides.

    Parameters
    ----------
    max_iter : int
        Newton steps for every column, on either way.
    """

    def __init__(self, max_iter: int = 200):
        self.max_iter = max_iter

    def solve(
        self, machine: Machine, start: np.ndarray | None = None, tol: float = 1e-8
    ) -> Solution:
        self.check(machine.loss)
        iterations = 0
        if start is None or not np.abs(start).max() < _FAR:
            start, iterations = self._pilot(machine, tol)
        solution = self._descend(machine, start, tol)
        slow = np.flatnonzero(solution.residual > 2 * tol)
        if solution.status == "max_iter" and len(slow):
            solution = self._along_path(machine, solution, slow, tol)
        return replace(solution, iterations=solution.iterations + iterations)

    def _pilot(self, machine: Machine, tol: float) -> tuple[np.ndarray, int]:
        """Fitted values to start from where nothing is known.

        Columns with the same labels, such as the folds of one task, have nearly the
        same solution: one machine with their mean weights goes ahead, through the wider
        losses of the family.
        """
        pilot, group = _leader(machine)
        start, iterations = pilot.cold_start(), 0
        for loss in (*machine.loss.relaxed(), machine.loss):
            wide = self._descend(pilot.with_loss(loss), start, max(tol, _WIDE_TOL))
            start = wide.fitted
            iterations += wide.iterations
        return start[:, group], iterations

    def _along_path(
        self, machine: Machine, found: Solution, slow: np.ndarray, tol: float
    ) -> Solution:
        """Columns that are slow from where they started, by way of smaller weights.

        One machine leads those with the same labels, up to all of its weights.
        """
        slow_ones = machine.select(slow)
        pilot, group = _leader(slow_ones)
        start, iterations = pilot.cold_start(), found.iterations
        for part in _PARTS:
            light = replace(pilot, weights=part * pilot.weights)
            solution = self._descend(light, start, max(tol, _PART_TOL))
            start = solution.fitted
            iterations += solution.iterations
            if solution.status == "max_iter":
                # Not even this part can be solved: columns of absurd scales, say.
                return replace(found, iterations=iterations)
        solution = self._descend(slow_ones, start[:, group], tol)
        iterations += solution.iterations
        before = machine.value(found.x, found.tangent)[slow]
        lower = slow_ones.value(solution.x, solution.tangent) < before
        if not lower.all():
            # It did not help all of them: those stay where they were.
            solution, slow = _part(solution, lower), slow[lower]
        residual = found.residual.copy()
        residual[slow] = solution.residual
        return Solution(
            found.x.put(slow, solution.x),
            found.tangent.put(slow, solution.tangent),
            residual,
            iterations,
            solution.status if lower.all() else found.status,
        )

    def _descend(self, machine: Machine, start: np.ndarray, tol: float) -> Solution:
        done = machine.newton(start, tol, self.max_iter)
        x, iterations, unfinished = done or self._steps(machine, start, tol)
        # The fitted values of the steps were summed up: once more from x itself.
        tangent = machine.tangent(machine.fit_values(x))
        residual = machine.residual(x, tangent)
        reached = "converged" if np.all(residual <= 2 * tol) else "stalled"
        status = "max_iter" if unfinished else reached
        return Solution(x, tangent, residual, iterations, status)

    def _steps(
        self, machine: Machine, start: np.ndarray, tol: float
    ) -> tuple[Coefficients, int, bool]:
        """The solution, the steps of all columns, and whether some ran to the limit."""
        tangent = machine.tangent(start)
        x = self._first(machine).linearize(_usable(machine, tangent)).minimizer()
        tangent = machine.tangent(machine.fit_values(x))
        x, tangent = _balanced(machine, x, tangent)
        watch = _Watch(machine.n_columns)
        iterations = machine.n_columns
        residual = machine.residual(x, tangent)
        todo = watch.unfinished(residual, tol)
        for _ in range(self.max_iter):
            if not len(todo):
                break
            worst = float(residual[todo].max())
            if len(todo) == machine.n_columns:
                x, tangent = self._step(machine, x, tangent, worst, tol)
            else:
                part = machine.select(todo), x.select(todo), tangent.select(todo)
                stepped = self._step(*part, worst, tol)
                x, tangent = x.put(todo, stepped[0]), tangent.put(todo, stepped[1])
            iterations += len(todo)
            residual = machine.residual(x, tangent)
            todo = watch.unfinished(residual, tol)
        return x, iterations, len(todo) > 0

    def _step(
        self,
        machine: Machine,
        x: Coefficients,
        tangent: Tangent,
        residual: float,
        tol: float,
    ) -> tuple[Coefficients, Tangent]:
        """Towards the Newton point, as far as E falls."""
        usable = _usable(machine, tangent)
        direction, values = self._direction(machine, x, usable, residual, tol)
        length = exact_step(machine, x, tangent, direction, values)
        x = x.step(direction, length)
        return _balanced(machine, x, machine.tangent(tangent.fitted + length * values))

    def _first(self, machine: Machine) -> Machine:
        """The machine as it is linearised for the first step, from another's values."""
        return machine

    def _direction(
        self,
        machine: Machine,
        x: Coefficients,
        tangent: Tangent,
        residual: float,
        tol: float,
    ) -> tuple[Coefficients, np.ndarray]:
        """From x to the Newton point, and by how much fitted values change."""
        target = machine.linearize(tangent).minimizer()
        return target - x, machine.fit_values(target) - tangent.fitted


def _leader(machine: Machine) -> tuple[Machine, np.ndarray]:
    """One column for those with the same labels, with their mean weights.

    And for every column the number of the one that leads it.
    """
    labels, group = distinct_columns(machine.labels)
    counts = np.bincount(group)
    weights = np.zeros_like(labels)
    np.add.at(weights.T, group, machine.weights.T)
    return replace(machine, labels=labels, weights=weights / counts), group


def _part(solution: Solution, columns: np.ndarray) -> Solution:
    """The solution of these columns alone."""
    return replace(
        solution,
        x=solution.x.select(columns),
        tangent=solution.tangent.select(columns),
        residual=solution.residual[columns],
    )


class _Watch:
    """Which columns still go on: neither within tolerance nor at a standstill."""

    def __init__(self, n_columns: int) -> None:
        self.done = np.zeros(n_columns, dtype=bool)
        self.best = np.full(n_columns, np.inf)
        self.waited = np.zeros(n_columns, dtype=int)

    def unfinished(self, residual: np.ndarray, tol: float) -> np.ndarray:
        self.waited = np.where(residual <= 0.5 * self.best, 0, self.waited + 1)
        self.best = np.minimum(self.best, residual)
        stalled = (self.waited >= PATIENCE) & (residual <= ROUNDING)
        self.done |= (residual <= tol) | stalled
        return np.flatnonzero(~self.done)


def _unheld(machine: Machine, tangent: Tangent) -> np.ndarray:
    """Columns whose free intercept no active point holds, and that want to move it."""
    if machine.intercept != "free":
        return np.zeros(machine.n_columns, dtype=bool)
    total = machine.weights.sum(axis=0)
    held = tangent.curvature.sum(axis=0) > HELD * machine.loss.max_curvature * total
    return ~held & (np.abs(tangent.slope.sum(axis=0)) > HELD * total)


def _usable(machine: Machine, tangent: Tangent) -> Tangent:
    """Where nothing holds the intercept the curvature's upper bound takes its place."""
    unheld = _unheld(machine, tangent)
    if not unheld.any():
        return tangent
    bound = machine.loss.max_curvature * machine.weights
    return replace(tangent, curvature=np.where(unheld, bound, tangent.curvature))


def _balanced(
    machine: Machine, x: Coefficients, tangent: Tangent
) -> tuple[Coefficients, Tangent]:
    """Move the intercept alone to its optimum where no active point holds it.

    A step that leaves no point near its margin would take it out of sight otherwise.
    """
    unheld = _unheld(machine, tangent)
    if not unheld.any():
        return x, tangent
    downhill = -np.sign(tangent.slope.sum(axis=0))
    reach = 1.0 + np.abs(tangent.fitted).max(axis=0)
    move = Coefficients(np.zeros_like(x.coef), np.where(unheld, downhill * reach, 0.0))
    values = np.broadcast_to(move.intercept, tangent.fitted.shape)
    length = exact_step(machine, x, tangent, move, values)
    return x.step(move, length), machine.tangent(tangent.fitted + length * values)
