"""Newton's method on the active set, with an exact line search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bisvm.core.deadlines import check_deadline
from bisvm.core.types import Array
from bisvm.data.columns import distinct_columns
from bisvm.machines import Coefficients, LinearMachine, Machine, Tangent
from bisvm.solvers.base import Solution, Solver
from bisvm.solvers.intercepts import smallest_intercept
from bisvm.solvers.line_search import step_lengths

# Fitted values above this, or not finite, are no useful start: margins of trained
# machines are of the order of one.
FAR = 1e4
# Residual to which the one column of a cold start is solved: it only leads to others.
_PILOT_TOL = 0.3
# A column that does not converge is solved for these shares of its weights, each to a
# residual of `_SHARE_TOL` and from the solution of the previous one.
_SHARES = 10.0 ** np.arange(-8.0, 1.0)
_SHARE_TOL = 0.1
# Steps without a halving of the residual after which a column stops, if its residual
# is below `ROUNDING`: rounding errors then prevent further progress.
PATIENCE = 8
ROUNDING = 1e-6
# How often fitted values are computed anew from coefficients, and steps go on if their
# sums had drifted away, as in single precision: each time leaves 1e-3 of the error.
_SUMS = 3
# Share of the largest possible curvature below which a free intercept is not
# determined by the active points.
_HELD = 1e-9
# Relative residual of the conjugate gradients far from the optimum. Close to it they
# are solved better, so that convergence is faster than linear.
_FORCING = 0.1
# Part of the remaining residual, relative to `tol`, that the last step may leave.
_LAST_SHARE = 0.3


class Newton(Solver):
    """Step from F to the minimiser of the machine's linearisation at F.

    The linearisation only needs fitted values, so the first step, a full one, starts
    from the fitted values given. After that E decreases at every step. Columns leave
    the iteration when they have converged.

    Points beyond the corner of a hinge contribute their whole slope and no curvature:
    with a large C full steps are far too long, the line search shortens them, and few
    points change sides in each. Columns that have not converged after `max_iter` steps
    are solved for C / 10^8 first, and then for C growing by powers of ten, each from
    the previous solution.

    Parameters
    ----------
    max_iter : int, default=200
        Newton steps for every column.
    """

    def __init__(self, max_iter: int = 200):
        self.max_iter = max_iter

    def solve(
        self, machine: Machine, start: Array | None = None, tol: float = 1e-8
    ) -> Solution:
        self.check(machine.loss)
        iterations = 0
        if start is None or not np.abs(start).max() < FAR:
            start, iterations = self._by_pilot(machine, None, tol)
        solution = self._descend(machine, start, tol)
        slow = np.flatnonzero(solution.residual > 2 * tol)
        if solution.status == "max_iter" and len(slow):
            solution = self._along_path(machine, solution, slow, tol)
        return replace(solution, iterations=solution.iterations + iterations)

    def approach(self, machine: Machine, start: Array, tol: float) -> tuple[Array, int]:
        return self._by_pilot(machine, start, tol)

    def _by_pilot(
        self, machine: Machine, start: Array | None, tol: float
    ) -> tuple[Array, int]:
        """Fitted values to start from, and the number of steps they took.

        Columns with the same labels, such as the folds of one task, have nearly the
        same solution: one column with their mean weights is solved for all of them,
        from the mean of their values or, without any, from a cold start.
        """
        pilot, group = _pilot(machine)
        if start is None:
            first = pilot.cold_start()
        else:
            first = np.stack(
                [start[:, group == k].mean(axis=1) for k in range(pilot.n_columns)],
                axis=1,
            )
        found = self._descend(pilot, first, max(tol, _PILOT_TOL))
        return found.fitted[:, group], found.iterations

    def _along_path(
        self, machine: Machine, found: Solution, slow: Array, tol: float
    ) -> Solution:
        """Solve slow columns by way of smaller weights; keep what that improves."""
        slow_ones = machine.select(slow)
        pilot, group = _pilot(slow_ones)
        start, iterations = pilot.cold_start(), found.iterations
        for share in _SHARES:
            light = replace(pilot, weights=share * pilot.weights)
            solution = self._descend(light, start, max(tol, _SHARE_TOL))
            start = solution.fitted
            iterations += solution.iterations
            if solution.status == "max_iter":
                # Not even this share can be solved: features of absurd scales, say.
                return replace(found, iterations=iterations)
        solution = self._descend(slow_ones, start[:, group], tol)
        iterations += solution.iterations
        before = machine.value(found.x, found.tangent)[slow]
        lower = slow_ones.value(solution.x, solution.tangent) < before
        better = np.flatnonzero(lower)
        residual = found.residual.copy()
        residual[slow[better]] = solution.residual[better]
        return Solution(
            found.x.put(slow[better], solution.x.select(better)),
            found.tangent.put(slow[better], solution.tangent.select(better)),
            residual,
            iterations,
            solution.status if lower.all() else found.status,
        )

    def _descend(self, machine: Machine, start: Array, tol: float) -> Solution:
        """Iterate from fitted values until every column converges or stalls."""
        tangent = usable(machine, machine.tangent(start))
        x = self._first(machine).linearize(tangent).minimizer()
        x, tangent = _balanced(machine, x, machine.tangent(machine.fit_values(x)))
        iterations = machine.n_columns
        for _ in range(_SUMS):
            x, tangent, steps, unsolved = self._iterate(machine, x, tangent, tol)
            iterations += steps
            # Fitted values were sums of all steps, whose errors add up.
            tangent = machine.tangent(machine.precise_values(x))
            x, tangent = smallest_intercept(machine, x, tangent)
            residual = machine.residual(x, tangent)
            if len(unsolved) or np.all(residual <= 2 * tol):
                break
        reached = "converged" if np.all(residual <= 2 * tol) else "stalled"
        status = "max_iter" if len(unsolved) else reached
        return Solution(x, tangent, residual, iterations, status)

    def _iterate(
        self, machine: Machine, x: Coefficients, tangent: Tangent, tol: float
    ) -> tuple[Coefficients, Tangent, int, Array]:
        """Take steps; return their number too, and columns that are not solved yet."""
        iterations, q = 0, machine.n_columns
        residual = machine.residual(x, tangent)
        best, waited = residual, np.zeros(q)
        left = np.flatnonzero(residual > tol)
        part = machine
        for _ in range(self.max_iter):
            if not len(left):
                break
            check_deadline()
            worst = float(residual[left].max())
            if len(left) == q:
                x, tangent = self._step(machine, x, tangent, worst, tol)
            else:
                # Columns only leave, so that as many are the same ones.
                if len(left) < part.n_columns:
                    part = machine.select(left)
                stepped = self._step(
                    part, x.select(left), tangent.select(left), worst, tol
                )
                x, tangent = x.put(left, stepped[0]), tangent.put(left, stepped[1])
            iterations += len(left)
            residual = machine.residual(x, tangent)
            waited = np.where(residual <= 0.5 * best, 0, waited + 1)
            best = np.minimum(best, residual)
            stalled = (waited >= PATIENCE) & (residual <= ROUNDING)
            left = left[((residual > tol) & ~stalled)[left]]
        return x, tangent, iterations, left

    def _step(
        self,
        machine: Machine,
        x: Coefficients,
        tangent: Tangent,
        residual: float,
        tol: float,
    ) -> tuple[Coefficients, Tangent]:
        """Move towards the Newton point, to the lowest E on the way."""
        active = usable(machine, tangent)
        # Rounding errors of a direction shrink with it, those of the Newton point do
        # not: so machines in single precision converge too.
        direction = self._closer(machine, residual, tol).linearize(active).direction(x)
        values = machine.fit_values(direction)
        length = step_lengths(machine, x, tangent, direction, values)
        x = x.step(direction, length)
        return _balanced(machine, x, machine.tangent(tangent.fitted + length * values))

    def _first(self, machine: Machine) -> Machine:
        """The machine that is linearised for the first step."""
        return machine

    def _closer(self, machine: Machine, residual: float, tol: float) -> Machine:
        """The machine that is linearised for a step from this residual."""
        return machine


class NewtonCG(Newton):
    """Newton steps by conjugate gradients that stop early, for linear machines.

    From x = (w, b) the step d solves, without the intercept,

        (R + X'D X) d = -(R w + X'S)        to a relative residual eta,

    eta = min(0.1, sqrt(residual)), and no better than the tolerance asks for. It only
    needs products with X, one for all columns, and forms no matrix.

    Parameters
    ----------
    max_iter : int, default=200
        Newton steps for every column.
    """

    def solve(
        self, machine: Machine, start: Array | None = None, tol: float = 1e-8
    ) -> Solution:
        if not isinstance(machine, LinearMachine):
            raise ValueError(
                "solver='newton-cg' is for linear machines; for kernels use 'auto' or "
                "'newton'."
            )
        return super().solve(machine, start, tol)

    def _first(self, machine: Machine) -> Machine:
        return machine.within(_FORCING)

    def _closer(self, machine: Machine, residual: float, tol: float) -> Machine:
        eta = max(min(_FORCING, residual**0.5), _LAST_SHARE * tol / residual)
        return machine.within(eta)


def _pilot(machine: Machine) -> tuple[Machine, Array]:
    """One column for all with the same labels, with their mean weights.

    And the number of that column, for each column of the machine.
    """
    labels, group = distinct_columns(machine.labels)
    counts = np.bincount(group)
    weights = np.zeros_like(labels)
    np.add.at(weights.T, group, machine.weights.T)
    return replace(machine, labels=labels, weights=weights / counts), group


def _undetermined(machine: Machine, tangent: Tangent) -> Array:
    """Columns whose free intercept no active point determines, and is not optimal."""
    if machine.intercept != "free":
        return np.zeros(machine.n_columns, dtype=bool)
    total = machine.total_weight
    floor = _HELD * machine.loss.max_curvature * total
    loose: Array = tangent.total_curvature <= floor
    if loose.any():
        loose &= np.abs(tangent.total_slope) > _HELD * total
    return loose


def usable(machine: Machine, tangent: Tangent) -> Tangent:
    """Where nothing determines the intercept, replace D by its upper bound."""
    undetermined = _undetermined(machine, tangent)
    if not undetermined.any():
        return tangent
    bound = machine.loss.max_curvature * machine.weights
    return replace(tangent, curvature=np.where(undetermined, bound, tangent.curvature))


def _balanced(
    machine: Machine, x: Coefficients, tangent: Tangent
) -> tuple[Coefficients, Tangent]:
    """Optimise the intercept alone where no active point determines it.

    Otherwise a step that leaves no active point would take it ever further away.
    """
    undetermined = _undetermined(machine, tangent)
    if not undetermined.any():
        return x, tangent
    downhill = -np.sign(tangent.total_slope)
    reach = 1.0 + np.abs(tangent.fitted).max(axis=0)
    move = Coefficients(
        np.zeros_like(x.coef), np.where(undetermined, downhill * reach, 0.0)
    )
    values = np.tile(move.intercept, (len(tangent.fitted), 1))
    length = step_lengths(machine, x, tangent, move, values)
    return x.step(move, length), machine.tangent(tangent.fitted + length * values)
