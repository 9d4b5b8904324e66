"""FISTA with backtracking: first derivatives only."""

from __future__ import annotations

import numpy as np

from bisvm.core.types import Array
from bisvm.machines import Coefficients, Machine
from bisvm.solvers.base import Solution, Solver
from bisvm.solvers.intercepts import smallest_intercept

# Backtracking steps, in case a loss is not finite: 2^100 exceeds every curvature.
_MAX_GROWTHS = 100


class FISTA(Solver):
    """Accelerated proximal gradient steps (Beck and Teboulle 2009).

    Klatzer 2014, section 4.1. With f the summed loss, g the regulariser and M the
    running estimate of f's Lipschitz constant,

        x_k     = prox_{g/M}(y_k - grad f(y_k) / M)
        tau_+   = (1 + sqrt(1 + 4 tau^2)) / 2
        y_{k+1} = x_k + (tau - 1) / tau_+ (x_k - x_{k-1}),

    M doubling until f(x) <= f(y) + <grad f(y), x - y> + M/2 |x - y|^2. Momentum is
    dropped whenever it points uphill (O'Donoghue and Candes 2015). For a kernel machine
    the inner product is the one of the kernel's function space, where the gradient is
    alpha + S and the regulariser has its proximal map in closed form; in plain alpha,
    as printed there, the conditioning would be that of K^2.

    Parameters
    ----------
    max_iter : int
        Steps for every column.
    """

    needs_curvature = False

    def __init__(self, max_iter: int = 20000):
        self.max_iter = max_iter

    def solve(
        self, machine: Machine, start: Array | None = None, tol: float = 1e-8
    ) -> Solution:
        """Solve column by column; see `Solver.solve`."""
        self.check(machine.loss)
        columns = [
            self._solve_column(machine.select([k]), _column(start, k), tol)
            for k in range(machine.n_columns)
        ]
        x = Coefficients(
            np.hstack([c.x.coef for c in columns]),
            np.concatenate([c.x.intercept for c in columns]),
        )
        tangent = machine.tangent(machine.fit_values(x))
        worst = max(columns, key=lambda c: c.status == "max_iter")
        return Solution(
            x,
            tangent,
            machine.residual(x, tangent),
            sum(c.iterations for c in columns),
            worst.status,
        )

    def _solve_column(
        self, machine: Machine, start: Array | None, tol: float
    ) -> Solution:
        if start is None:
            start = machine.cold_start()
        # Coefficients from fitted values: a multiple of the gradient there.
        slope = machine.loss_gradient(machine.tangent(start))
        x = Coefficients(-slope.coef, np.zeros_like(slope.intercept))
        x = _rescaled(machine, x, start)
        y, tau = x, 1.0
        x_values = y_values = machine.fit_values(x)
        lipschitz = np.ones(1)
        iterations, status = 0, "max_iter"
        while iterations < self.max_iter:
            iterations += 1
            tangent = machine.tangent(y_values)
            gradient = machine.loss_gradient(tangent)
            for _ in range(_MAX_GROWTHS):
                new = machine.shrink(
                    y.step(gradient, -1.0 / lipschitz), 1.0 / lipschitz
                )
                new_values = machine.fit_values(new)
                change = new_values - y_values
                model = (
                    tangent.value
                    + np.sum(tangent.slope * change, axis=0)
                    + 0.5 * lipschitz * machine.metric(new - y, change)
                )
                value = machine.tangent(new_values).value
                if np.all(value <= model + 1e-12 * np.abs(model)):
                    break
                lipschitz = 2.0 * lipschitz
            if np.all(machine.residual(new, machine.tangent(new_values)) <= tol):
                x, status = new, "converged"
                break
            uphill = machine.inner(y - new, new - x, new_values - x_values) > 0
            tau = 1.0 if np.all(uphill) else tau
            tau_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * tau**2))
            momentum = (tau - 1.0) / tau_next
            y = new.step(new - x, momentum)
            y_values = new_values + momentum * (new_values - x_values)
            x, x_values, tau = new, new_values, tau_next
        tangent = machine.tangent(machine.fit_values(x))
        x, tangent = smallest_intercept(machine, x, tangent)
        residual = machine.residual(x, tangent)
        return Solution(x, tangent, residual, iterations, status)


def _column(start: Array | None, k: int) -> Array | None:
    return None if start is None else start[:, [k]]


def _rescaled(machine: Machine, x: Coefficients, start: Array) -> Coefficients:
    """Scale x so that its fitted values are closest to those of the start."""
    values = machine.fit_values(x)
    size = np.sum(values**2, axis=0)
    length = np.sum(values * start, axis=0) / np.where(size > 0, size, 1.0)
    return Coefficients(length * x.coef, length * x.intercept)
