"""The linear machine: f = w'x + b, on dense or sparse rows, in memory or in pieces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from bisvm.machines.base import (
    Adjoint,
    Coefficients,
    Linearization,
    Machine,
    Sensitivity,
    Tangent,
)
from bisvm.machines.on_margin import ends_of_intercept, margin_of, multipliers
from bisvm.pieces import keep, reduce, weighted_squares
from bisvm.systems import (
    BorderedSystem,
    DenseSystem,
    IterativeSystem,
    LowRankSystem,
    System,
)

# With more features than this the Hessian is known by its action alone.
DIRECT_LIMIT = 2000
# With more features than this, and than active points, systems are those of the points.
WIDE = 100


@dataclass(frozen=True)
class LinearMachine(Machine):
    """1/2 sum_d rho_d w_d^2 + rho/2 b^2 + sum_i W_i loss(Y_i F_i),  F = X w + b.

    Optimality is rho_d w_d + X'S = 0 and rho b + 1'S = 0 with S = W Y loss'(Y F). One
    C for each feature is rho_d = 1 / C_d. In general the penalty is 1/2 w'R w with a
    matrix R, of which `precision` is the diagonal or the whole.
    """

    X: Any
    precision: np.ndarray
    penalized_intercept_precision: float = 1.0
    direct_limit: int = DIRECT_LIMIT

    def select(self, columns: Any) -> Self:
        return replace(
            self, labels=self.labels[:, columns], weights=self.weights[:, columns]
        )

    @property
    def intercept_precision(self) -> np.ndarray:
        if self.intercept == "penalized":
            return np.full(self.n_columns, self.penalized_intercept_precision)
        return super().intercept_precision

    def fit_values(self, x: Coefficients) -> np.ndarray:
        fitted = self.X @ x.coef
        fitted += x.intercept
        return fitted

    def penalize(self, w: np.ndarray) -> np.ndarray:
        """R w."""
        if self.precision.ndim == 2:
            return self.precision @ w
        return self.precision[:, None] * w

    def riesz(self, at_points: np.ndarray) -> Coefficients:
        """sum_i beta_i k(x_i, .) for k(x, z) = sum_d x_d z_d / rho_d + 1 / rho.

        The constant is that of a penalised intercept; a free one has none.
        """
        coef = self.X.T @ at_points
        if self.precision.ndim == 2:
            coef = np.linalg.solve(self.precision, coef)
        else:
            coef = coef / self.precision[:, None]
        total = at_points.sum(axis=0)
        penalized = self.intercept == "penalized"
        return Coefficients(
            coef, total / self.intercept_precision if penalized else 0.0 * total
        )

    def block(self, rows: Any) -> np.ndarray:
        """That kernel between rows of X."""
        if sparse.issparse(rows):
            rows = rows.toarray()
        scaled = (
            np.linalg.solve(self.precision, rows.T)
            if self.precision.ndim == 2
            else (rows / self.precision).T
        )
        out = rows @ scaled
        if self.intercept == "penalized":
            out += 1.0 / self.penalized_intercept_precision
        return out

    def inner(
        self, x: Coefficients, y: Coefficients, y_values: np.ndarray
    ) -> np.ndarray:
        weights = np.sum(x.coef * self.penalize(y.coef), axis=0)
        return weights + self.intercept_precision * x.intercept * y.intercept

    def loss_gradient(self, tangent: Tangent) -> Coefficients:
        total = tangent.slope.sum(axis=0)
        free = self.intercept != "none"
        return Coefficients(
            self.X.T @ tangent.slope, total if free else np.zeros_like(total)
        )

    def metric(self, x: Coefficients, x_values: np.ndarray) -> np.ndarray:
        return np.sum(x.coef**2, axis=0) + x.intercept**2

    def shrink(self, x: Coefficients, step: np.ndarray) -> Coefficients:
        intercept = x.intercept / (1.0 + step * self.intercept_precision)
        if self.precision.ndim == 1:
            return Coefficients(
                x.coef / (1.0 + self.precision[:, None] * step), intercept
            )
        identity = np.eye(len(self.precision))
        columns = [
            np.linalg.solve(identity + step_k * self.precision, w_k)
            for step_k, w_k in zip(
                np.broadcast_to(step, self.n_columns), x.coef.T, strict=True
            )
        ]
        return Coefficients(np.stack(columns, axis=1), intercept)

    def residual(self, x: Coefficients, tangent: Tangent) -> np.ndarray:
        """Gradient entries in units of the sum of |W_i x_id| that each is made of."""
        gradient = self.loss_gradient(tangent)
        stationarity = np.abs(self.penalize(x.coef) + gradient.coef)
        out = np.max(stationarity / self._gradient_size, axis=0, initial=0.0)
        if self.intercept != "none":
            balance = gradient.intercept + self.intercept_precision * x.intercept
            out = np.maximum(out, np.abs(balance) / self.weights.sum(axis=0))
        return out

    @cached_property
    def _gradient_size(self) -> np.ndarray:
        """sum_i |W_i x_id|, the same at all steps of a solver; 1 for a column of 0."""
        size = abs(self.X).T @ self.weights
        return np.where(size > 0, size, 1.0)

    def linearize(self, tangent: Tangent) -> LinearLinearization:
        return LinearLinearization(self, tangent)

    def sensitivity(
        self, x: Coefficients, tangent: Tangent, adjoint: Adjoint, cotangent: np.ndarray
    ) -> Sensitivity:
        """dH/d log rho_d = -rho_d sum_k s_dk w_dk, s the adjoint's coefficients."""
        precision = -self.precision * np.sum(adjoint.function.coef * x.coef, axis=1)
        pull = float(x.intercept @ adjoint.function.intercept)
        return Sensitivity(
            weights=self.weights_sensitivity(x, tangent, adjoint),
            precision=precision,
            intercept_precision=-self.penalized_intercept_precision * pull,
        )

    def envelope(self, x: Coefficients, tangent: Tangent) -> Sensitivity:
        """dE/d log rho_d = 1/2 rho_d sum_k w_dk^2."""
        rho = self.penalized_intercept_precision
        return Sensitivity(
            weights=self.weights_envelope(x, tangent),
            precision=0.5 * self.precision * np.sum(x.coef**2, axis=1),
            intercept_precision=0.5 * rho * float(x.intercept @ x.intercept),
        )


class LinearLinearization(Linearization):
    """Hessian R + X'D X, bordered by the intercept as one more column of ones."""

    def __init__(self, machine: LinearMachine, tangent: Tangent):
        self.machine = machine
        self.tangent = tangent
        self._systems = (
            self._make_systems() if machine.loss.twice_differentiable else []
        )

    def minimizer(self) -> Coefficients:
        """(diag(rho) + X'D X) w = X'(D F - S)."""
        tangent = self.tangent
        return self._solve(tangent.curvature * tangent.fitted - tangent.slope)

    def adjoint(self, cotangent: np.ndarray) -> Adjoint:
        """(diag(rho) + X'D X) s = X'P; the adjoint function is x -> s'x."""
        if self.machine.loss.twice_differentiable:
            function = self._solve(cotangent)
        else:
            function = self._on_margin(cotangent)
        return Adjoint(function, self.machine.fit_values(function))

    def _on_margin(self, cotangent: np.ndarray) -> Coefficients:
        """The exact hinge: rho_d s_d = X'U with U = P - v (`machines.on_margin`)."""
        machine, tangent = self.machine, self.tangent
        free = machine.intercept == "free"
        U, mu = cotangent.copy(), np.zeros(machine.n_columns)
        plain = machine.riesz(cotangent)
        for k in range(machine.n_columns):
            M = margin_of(tangent.curvature[:, k])
            total = float(cotangent[:, k].sum())
            if free and not len(M):
                ends = ends_of_intercept(machine, tangent, k)
                U[ends, k] -= total / max(len(ends), 1)
                continue
            rows = machine.X[M]
            g = rows @ plain.coef[:, k] + plain.intercept[k]
            v, mu[k] = multipliers(machine.block(rows), g, total, free=free)
            U[M, k] -= v
        out = machine.riesz(U)
        return replace(out, intercept=-mu) if free else out

    def _solve(self, at_points: np.ndarray) -> Coefficients:
        rhs = self.machine.X.T @ at_points
        if self.machine.intercept != "none":
            rhs = np.vstack([rhs, at_points.sum(axis=0)])
        out = np.stack(
            [system.solve(rhs[:, k]) for k, system in enumerate(self._systems)], axis=1
        )
        if self.machine.intercept == "none":
            return Coefficients(out, np.zeros(out.shape[1]))
        return Coefficients(out[:-1], out[-1])

    def _make_systems(self) -> list[System]:
        """A system for every column; one reading of X for all that are factorised."""
        machine, curvature = self.machine, self.tangent.curvature
        active = [np.flatnonzero(D > 0) for D in curvature.T]
        wide = np.array([self._is_wide(len(rows)) for rows in active])
        direct = ~wide & (machine.X.shape[1] <= machine.direct_limit)
        squares = iter(weighted_squares(machine.X, curvature[:, direct]))
        return [
            self._dense(next(squares), k)
            if direct[k]
            else (self._low_rank if wide[k] else self._iterative)(active[k], k)
            for k in range(machine.n_columns)
        ]

    def _is_wide(self, n_active: int) -> bool:
        machine = self.machine
        fewer = WIDE < machine.X.shape[1] > n_active <= machine.direct_limit
        return fewer and machine.precision.ndim == 1

    def _dense(self, H: np.ndarray, k: int) -> System:
        """H = [X 1]' D [X 1] becomes the Hessian, in its place."""
        precision = self.machine.precision
        H[:-1, :-1] += precision if precision.ndim == 2 else np.diag(precision)
        H[-1, -1] += self.machine.intercept_precision[k]
        if self.machine.intercept == "none":
            H = np.ascontiguousarray(H[:-1, :-1])
        return DenseSystem(H)

    def _low_rank(self, active: np.ndarray, k: int) -> System:
        machine = self.machine
        X, D = machine.X[active], self.tangent.curvature[active, k]
        system = LowRankSystem(machine.precision, X, D)
        if machine.intercept == "none":
            return system
        return BorderedSystem(system, X.T @ D, D.sum() + machine.intercept_precision[k])

    def _iterative(self, active: np.ndarray, k: int) -> System:
        """The Hessian by its action; without an intercept its border is left out."""
        machine = self.machine
        X, D = keep(machine.X, active), self.tangent.curvature[active, k]
        bordered = machine.intercept != "none"
        rho = machine.intercept_precision[k]

        def action(v: np.ndarray) -> np.ndarray:
            w, b = (v[:-1], v[-1]) if bordered else (v, 0.0)
            out = reduce(lambda X, D: _square_action(X, D, w, b), X, D)
            out[:-1] += machine.penalize(w[:, None])[:, 0]
            out[-1] += rho * b
            return out if bordered else out[:-1]

        precision = machine.precision
        diagonal = reduce(_square_diagonal, X, D) + (
            np.diagonal(precision) if precision.ndim == 2 else precision
        )
        if bordered:
            diagonal = np.append(diagonal, D.sum() + rho)
        return IterativeSystem(lambda v: action(v.ravel()), diagonal)


def _square_action(X: Any, D: np.ndarray, w: np.ndarray, b: float) -> np.ndarray:
    """[X 1]' diag(D) [X 1] (w, b)."""
    at_points = D * (X @ w + b)
    return np.append(X.T @ at_points, at_points.sum())


def _square_diagonal(X: Any, D: np.ndarray) -> np.ndarray:
    """Diagonal of X' diag(D) X."""
    return (X.multiply(X) if sparse.issparse(X) else X * X).T @ D
