"""Newton's method on rows in blocks: one pass over them for every step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bisvm.core.deadlines import check_deadline
from bisvm.core.types import Array
from bisvm.machines import Coefficients, LinearMachine, Machine, Tangent
from bisvm.machines.base import column_dots
from bisvm.machines.passes import BlockProblem, Systems, coefficients, stacked
from bisvm.solvers.base import Solution, Solver
from bisvm.solvers.intercepts import smallest_intercept
from bisvm.solvers.line_search import step_lengths
from bisvm.solvers.newton import FAR, PATIENCE, ROUNDING, usable

# A full step is kept if the slope of E along it has fallen to this share.
KEPT_SLOPE = 0.5
# Share of the residual that a step must not leave: otherwise the matrices are computed
# anew in the next pass, which takes several times as long with them.
STALE = 0.1
# Steps that are remembered, and the cosine between a step and the change of the
# gradient from which on it counts.
REMEMBERED = 10
LEAST_CURVATURE = 1e-10


@dataclass(frozen=True, eq=False)
class _History:
    """The last steps s and changes y of the gradient, which correct the H_k.

    H_k^-1 g with these corrections takes two loops over them (Nocedal 1980), for all
    columns at once. Pairs without positive curvature in a column do not count there.

    pairs : s, y and 1 / s'y, or 0, of every column
    """

    pairs: tuple[tuple[Array, Array, Array], ...] = ()

    def after(self, s: Array, y: Array) -> _History:
        curved = column_dots(s, y)
        least = LEAST_CURVATURE * np.sqrt(column_dots(s, s) * column_dots(y, y))
        counts = (curved > least) & (curved > 0)
        rho = np.where(counts, 1.0 / np.where(counts, curved, 1.0), 0.0)
        return _History((*self.pairs[1 - REMEMBERED :], (s, y, rho)))

    def solve(self, systems: Systems, gradient: Array) -> Array:
        g, weights = gradient.copy(), []
        for s, y, rho in reversed(self.pairs):
            weights.append(rho * column_dots(s, g))
            g -= weights[-1] * y
        out = systems.solve(g)
        for (s, y, rho), weight in zip(self.pairs, reversed(weights), strict=True):
            out += (weight - rho * column_dots(y, out)) * s
        return out


@dataclass(frozen=True, eq=False)
class _Point:
    """A point x, its fitted values, gradient (m + 1, q) and residuals."""

    x: Coefficients
    fitted: Array
    gradient: Array
    residual: Array

    @property
    def worst(self) -> float:
        return float(self.residual.max())


class BlockNewton(Solver):
    """Steps by nearly exact Hessians, each judged by the exact gradient at its end.

        x+ = x - H_k^-1 g_k,      g_k the gradient of E_k at x,

    with the H_k of `machines.passes`, which are kept for as long as steps leave less
    than a tenth of the residual. One pass over the rows gives fitted values and
    gradient at x+, and new H_k if needed. If E rises along a step, it is shortened by
    the fitted values of both ends, and a second pass is made.

    Parameters
    ----------
    max_iter : int, default=100
        Passes over the rows.
    """

    def __init__(self, max_iter: int = 100):
        self.max_iter = max_iter

    def solve(
        self, machine: Machine, start: Array | None = None, tol: float = 1e-8
    ) -> Solution:
        """Solve by passes over the rows; see `Solver.solve`."""
        self.check(machine.loss)
        if not isinstance(machine, LinearMachine):
            raise ValueError("BlockNewton is for machines on blocks of rows.")
        far = start is None or not np.abs(start).max() < FAR
        first = machine.cold_start() if far or start is None else start
        problem = BlockProblem(machine)
        tangent = usable(machine, machine.tangent(first))
        systems, x, size = problem.newton_point(tangent)
        steps = _Steps(problem, np.where(size > 0, size, 1.0), tol)
        renewed = far or problem.sharing(tangent.curvature) is None
        return steps.solution(
            x, systems, tangent.curvature if renewed else None, self.max_iter
        )


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps on one machine.

    size : (m, q), what the entries of the gradient are compared with
    tol : residual that is small enough
    """

    problem: BlockProblem
    size: Array
    tol: float

    @property
    def machine(self) -> LinearMachine:
        return self.problem.machine

    def solution(
        self, x: Coefficients, systems: Systems, near: Array | None, max_iter: int
    ) -> Solution:
        """Iterate from x; new matrices there if curvatures `near` are given."""
        at, fresh = self._read(x, near)
        systems, history = fresh or systems, _History()
        best, waited, passes, stale = at.worst, 0, 2, False
        while passes < max_iter and at.worst > self.tol:
            check_deadline()
            if waited >= PATIENCE and best <= ROUNDING:
                break
            before, tangent = at, self.machine.tangent(at.fitted)
            few = self.problem.sharing(tangent.curvature) is None
            near = tangent.curvature if few or stale else None
            move = -history.solve(systems, at.gradient)
            at, fresh, made = self._step(at, tangent, move, near)
            passes += made
            stale = fresh is None and at.worst > STALE * before.worst
            changes = stacked(at.x - before.x), at.gradient - before.gradient
            history = history.after(*changes) if fresh is None else _History()
            systems = fresh or systems
            waited = 0 if at.worst <= 0.5 * best else waited + 1
            best = min(best, at.worst)
        return self._end(at, passes * self.machine.n_columns)

    def _read(
        self, x: Coefficients, near: Array | None
    ) -> tuple[_Point, Systems | None]:
        fitted, gradient, systems = self.problem.reading(x, near)
        stationarity = np.abs(gradient[:-1]) / self.size
        residual = np.max(stationarity, axis=0, initial=0.0)
        if self.machine.has_intercept:
            of_intercept = np.abs(gradient[-1]) / self.machine.total_weight
            residual = np.maximum(residual, of_intercept)
        else:
            gradient[-1] = 0.0
        return _Point(x, fitted, gradient, residual), systems

    def _step(
        self, at: _Point, tangent: Tangent, move: Array, near: Array | None
    ) -> tuple[_Point, Systems | None, int]:
        """The next point, new matrices if asked for, and the passes it took."""
        direction = coefficients(move)
        trial, fresh = self._read(at.x.step(direction, 1.0), near)
        slope, left = (column_dots(g, move) for g in (at.gradient, trial.gradient))
        fine = (np.abs(left) <= KEPT_SLOPE * np.abs(slope)) | (
            trial.residual <= np.maximum(at.residual, self.tol)
        )
        if fine.all():
            return trial, fresh, 1
        along = trial.fitted - at.fitted
        length = step_lengths(self.machine, at.x, tangent, direction, along)
        length = np.where(fine, 1.0, length)
        x = at.x.step(direction, length)
        return *self._read(x, tangent.curvature), 2

    def _end(self, at: _Point, iterations: int) -> Solution:
        worst = at.worst
        status = "converged" if worst <= 2 * self.tol else "max_iter"
        if status == "max_iter" and worst <= ROUNDING:
            status = "stalled"
        x, tangent = at.x, self.machine.tangent(at.fitted)
        x, tangent = smallest_intercept(self.machine, x, tangent)
        return Solution(x, tangent, at.residual, iterations, status)
