"""The kernel machine: f = sum_j alpha_j k(x_j, .) + b."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from bisvm.kernels import Factors, Kernel
from bisvm.machines.base import (
    Adjoint,
    Coefficients,
    Linearization,
    Machine,
    Sensitivity,
    Tangent,
)
from bisvm.machines.compiled import newton, product, solve_columns
from bisvm.machines.on_margin import ends_of_intercept, margin_of, multipliers
from bisvm.machines.systems import DenseSystem, IterativeSystem, System

# Active sets above this size are solved by conjugate gradients.
DIRECT_LIMIT = 6000


@dataclass(frozen=True)
class KernelMachine(Machine):
    """1/2 alpha'K alpha + rho/2 b^2 + sum_i W_i loss(Y_i F_i),  F = K alpha + b.

    The gradient in alpha is K times alpha + S; with K cancelled, optimality is

        alpha + S = 0,    1'S + rho b = 0,    S = W Y loss'(Y F).

    In the inner product of the kernel's function space alpha + S is the gradient,
    whatever the conditioning of K.
    """

    kernel: Kernel
    X: Any
    gram: np.ndarray
    direct_limit: int = DIRECT_LIMIT

    def select(self, columns: Any) -> Self:
        return replace(
            self, labels=self.labels[:, columns], weights=self.weights[:, columns]
        )

    def fit_values(self, x: Coefficients) -> np.ndarray:
        return product(self.gram, np.ascontiguousarray(x.coef)) + x.intercept

    def inner(
        self, x: Coefficients, y: Coefficients, y_values: np.ndarray
    ) -> np.ndarray:
        functions = np.sum(x.coef * (y_values - y.intercept), axis=0)
        return functions + self.intercept_precision * x.intercept * y.intercept

    def loss_gradient(self, tangent: Tangent) -> Coefficients:
        free = self.intercept != "none"
        total = tangent.slope.sum(axis=0)
        return Coefficients(tangent.slope, total if free else np.zeros_like(total))

    def metric(self, x: Coefficients, x_values: np.ndarray) -> np.ndarray:
        return np.sum(x.coef * (x_values - x.intercept), axis=0) + x.intercept**2

    def shrink(self, x: Coefficients, step: np.ndarray) -> Coefficients:
        return Coefficients(
            x.coef / (1.0 + step), x.intercept / (1.0 + step * self.intercept_precision)
        )

    def residual(self, x: Coefficients, tangent: Tangent) -> np.ndarray:
        """max_i |alpha_i + S_i| / W_i, and |1'S + rho b| / sum W.

        In units of a loss's slope: a point counted twice is a point of weight two.
        """
        off = np.abs(x.coef + tangent.slope)
        out = np.max(off / np.where(self.weights > 0, self.weights, 1.0), axis=0)
        if self.intercept != "none":
            balance = tangent.slope.sum(axis=0) + self.intercept_precision * x.intercept
            out = np.maximum(out, np.abs(balance) / self.weights.sum(axis=0))
        return out

    def rounding(self, x: Coefficients) -> float:
        if self.gram.dtype == np.float64:
            return 0.0
        size = float(np.sqrt(np.max(np.sum(x.coef**2, axis=0))))
        return size * self.kernel.rounding(self.X)

    def linearize(self, tangent: Tangent) -> KernelLinearization:
        return KernelLinearization(self, tangent)

    def newton(
        self, start: np.ndarray, tol: float, max_iter: int
    ) -> tuple[Coefficients, int, bool] | None:
        twin = self.loss.twin
        if twin is None or len(start) > self.direct_limit:
            return None
        fitted, labels, weights = self._contiguous(start)
        try:
            usual, alpha, b, iterations, unfinished = newton(
                self.gram,
                twin,
                self.loss.max_curvature,
                labels,
                weights,
                fitted,
                self.intercept_precision,
                self.intercept != "none",
                self.intercept == "free",
                tol,
                max_iter,
            )
        except np.linalg.LinAlgError:
            return None
        return (Coefficients(alpha, b), iterations, unfinished) if usual else None

    def sensitivity(
        self, x: Coefficients, tangent: Tangent, adjoint: Adjoint, cotangent: np.ndarray
    ) -> Sensitivity:
        """The Gram matrix enters by <U alpha', dK>, U the adjoint function."""
        return Sensitivity(
            weights=self.weights_sensitivity(x, tangent, adjoint),
            intercept_precision=_intercept_pull(x, adjoint),
            kernel=self._kernel_gradient(adjoint.function.coef, x.coef),
        )

    def envelope(self, x: Coefficients, tangent: Tangent) -> Sensitivity:
        """The Gram matrix enters by -1/2 <alpha alpha', dK>, since S = -alpha."""
        return Sensitivity(
            weights=self.weights_envelope(x, tangent),
            intercept_precision=0.5 * float(x.intercept @ x.intercept),
            kernel=self._kernel_gradient(-0.5 * x.coef, x.coef),
        )

    def _kernel_gradient(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """<left right', dK> by the kernel's parameters, in the precision of K."""
        dtype = self.gram.dtype
        factors = Factors(left.astype(dtype), right.astype(dtype))
        return self.kernel.pullback(self.X, None, self.gram, factors).theta


def _intercept_pull(x: Coefficients, adjoint: Adjoint) -> float:
    """dH/d log rho of a penalised intercept (rho = 1)."""
    return -float(x.intercept @ adjoint.function.intercept)


class KernelLinearization(Linearization):
    """Only points of positive curvature, the active set, enter a linear system.

    Both uses solve, for every column, with t = sqrt(D) on the active set,

        (I + t K t) z + mu t = t g,    t'z - rho mu = total,

    symmetric positive definite and |A| x |A|; the result is v = t z and mu.
    """

    def __init__(self, machine: KernelMachine, tangent: Tangent):
        self.machine = machine
        self.tangent = tangent

    def minimizer(self) -> Coefficients:
        """alpha = -S - D (f - F), 1'alpha = rho b: -S outside the active set."""
        alpha = -self.tangent.slope
        change = product(self.machine.gram, alpha) - self.tangent.fitted
        v, mu = self._solve(change, alpha.sum(axis=0))
        return Coefficients(alpha - v, -mu)

    def adjoint(self, cotangent: np.ndarray) -> Adjoint:
        """U = P - D lambda,  lambda = K U - mu,  1'U = -rho mu."""
        gram = self.machine.gram
        v, mu = self._solve(product(gram, cotangent), cotangent.sum(axis=0))
        U = cotangent - v
        return Adjoint(Coefficients(U, -mu), product(gram, U) - mu)

    def _solve(self, g: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        machine = self.machine
        if machine.loss.twice_differentiable and len(g) <= machine.direct_limit:
            with suppress(np.linalg.LinAlgError):
                return solve_columns(
                    machine.gram,
                    np.ascontiguousarray(self.tangent.curvature),
                    np.ascontiguousarray(g),
                    total,
                    machine.intercept_precision,
                    machine.intercept != "none",
                )
        return self._solve_one_by_one(g, total)

    def _solve_one_by_one(
        self, g: np.ndarray, total: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same where a matrix is not quite positive definite, or too large."""
        v = np.zeros_like(g)
        mu = np.zeros(g.shape[1])
        precision = self.machine.intercept_precision
        bordered = self.machine.intercept != "none"
        for k in range(self.machine.n_columns):
            if not self.machine.loss.twice_differentiable:
                mu[k] = self._solve_on_margin(k, g[:, k], total[k], v[:, k])
                continue
            # One factor at a time: all of them would take q times the Gram matrix.
            active, t, system = _active_system(
                self.machine, self.tangent.curvature[:, k]
            )
            if not bordered:
                v[active, k] = t * system.solve(t * g[active, k])
                continue
            z = system.solve(np.column_stack([t * g[active, k], t]))
            pull = t @ z
            mu[k] = (pull[0] - total[k]) / (pull[1] + precision[k])
            v[active, k] = t * (z[:, 0] - mu[k] * z[:, 1])
        return v, mu

    def _solve_on_margin(
        self, k: int, g: np.ndarray, total: float, v: np.ndarray
    ) -> float:
        """The exact hinge: v is written to, and mu returned (`machines.on_margin`)."""
        machine, tangent = self.machine, self.tangent
        M = margin_of(tangent.curvature[:, k])
        free = machine.intercept == "free"
        if free and not len(M):
            ends = ends_of_intercept(machine, tangent, k)
            v[ends] = total / max(len(ends), 1)
            return 0.0
        block = machine.gram[np.ix_(M, M)]
        if machine.intercept != "penalized":
            v[M], mu = multipliers(block, g[M], total, free=free)
            return mu
        rho = machine.intercept_precision[k]
        v[M], _ = multipliers(block + 1.0 / rho, g[M] + total / rho, 0.0, free=False)
        return (v[M].sum() - total) / rho


def _active_system(
    machine: KernelMachine, curvature: np.ndarray
) -> tuple[np.ndarray, np.ndarray, System]:
    """The active set, t = sqrt(D) on it, and I + t K t ready to be solved with."""
    active = np.flatnonzero(curvature > 0)
    t = np.sqrt(curvature[active])
    if len(active) <= machine.direct_limit:
        Q = machine.gram[np.ix_(active, active)] * t[:, None] * t
        Q.flat[:: len(t) + 1] += 1.0
        return active, t, DenseSystem(Q)
    spread = np.zeros(len(curvature))

    def action(z: np.ndarray) -> np.ndarray:
        spread[active] = t * z.ravel()
        return z.ravel() + t * (machine.gram @ spread)[active]

    diagonal = 1.0 + t**2 * np.diagonal(machine.gram)[active]
    return active, t, IterativeSystem(action, diagonal)
