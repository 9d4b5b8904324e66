"""The linear machine: f = w'x + b, on dense or sparse rows, in memory or in pieces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from bisvm.data.pieces import is_sparse, keep, reduce, weighted_squares
from bisvm.machines.base import (
    Adjoint,
    Coefficients,
    Linearization,
    Machine,
    Sensitivity,
    Tangent,
)
from bisvm.machines.conjugate import conjugate_gradients
from bisvm.machines.on_margin import ends_of_intercept, margin_of, multipliers
from bisvm.machines.systems import BorderedSystem, DenseSystem, LowRankSystem, System

# With more features than this the Hessian is known by its action alone.
DIRECT_LIMIT = 2000
# With more features than this, and than active points, systems are those of the points.
WIDE = 100
# Sparse rows with more features than this are multiplied rather than squared, if there
# are more than a few of them; so many conjugate gradients are tried before factors.
THIN = 200
FEW = 500
PATIENCE = 40
# Relative residual of systems that are solved by the Hessian's action.
EXACT = 1e-11


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
    rtol: float = EXACT

    def within(self, rtol: float) -> Self:
        """The machine whose systems by action are solved to this relative residual."""
        return replace(self, rtol=max(rtol, EXACT))

    @property
    def by_action(self) -> bool:
        """Whether systems are solved by products with X before one is formed.

        A reading of data in pieces is dear, and a Hessian needs only one.
        """
        thin = sparse.issparse(self.X) and self.X.shape[1] > THIN
        return thin or self.X.shape[1] > self.direct_limit

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
            self._make_systems() if machine.loss.twice_differentiable else {}
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

    def direction(self, x: Coefficients) -> Coefficients:
        """From x, whose fitted values F are, to the minimiser."""
        machine = self.machine
        gradient = machine.loss_gradient(self.tangent)
        coef = gradient.coef + machine.penalize(x.coef)
        constant = gradient.intercept + machine.intercept_precision * x.intercept
        return self._solve_for(-coef, -constant)

    def _solve(self, at_points: np.ndarray) -> Coefficients:
        return self._solve_for(self.machine.X.T @ at_points, at_points.sum(axis=0))

    def _solve_for(self, coef: np.ndarray, constant: np.ndarray) -> Coefficients:
        """The Hessians' inverses times a right-hand side."""
        bordered = self.machine.intercept != "none"
        rhs = np.vstack([coef, constant]) if bordered else coef
        out = np.empty_like(rhs)
        for k, system in self._systems.items():
            out[:, k] = system.solve(rhs[:, k])
        rest = np.setdiff1d(np.arange(rhs.shape[1]), list(self._systems))
        if len(rest):
            out[:, rest], given_up = self._by_action(rhs[:, rest], rest)
            for k in rest[given_up]:
                self._systems[k] = self._factored(k)
                out[:, k] = self._systems[k].solve(rhs[:, k])
        if not bordered:
            return Coefficients(out, np.zeros(out.shape[1]))
        return Coefficients(out[:-1], out[-1])

    def _make_systems(self) -> dict[int, System]:
        """A system for every column that has one; others are solved by their action.

        One reading of X for all whose Hessian is formed.
        """
        machine, curvature = self.machine, self.tangent.curvature
        active = [np.flatnonzero(D > 0) for D in curvature.T]
        wide = np.array([self._is_wide(len(rows)) for rows in active])
        if machine.by_action:
            few = wide & (np.array([len(rows) for rows in active]) <= FEW)
            wide = few if is_sparse(machine.X) else wide
            return {
                k: self._low_rank(rows, k) for k, rows in enumerate(active) if wide[k]
            }
        squares = iter(weighted_squares(machine.X, curvature[:, ~wide]))
        return {
            k: self._low_rank(rows, k) if wide[k] else self._dense(next(squares), k)
            for k, rows in enumerate(active)
        }

    def _is_wide(self, n_active: int) -> bool:
        """Whether a column's system may be one of its active points."""
        machine = self.machine
        fewer = WIDE < machine.X.shape[1] > n_active <= machine.direct_limit
        return fewer and machine.precision.ndim == 1

    def _factored(self, k: int) -> System:
        """The system of a column, by factors whatever they cost."""
        D = self.tangent.curvature[:, [k]]
        active = np.flatnonzero(D > 0)
        if self._is_wide(len(active)):
            return self._low_rank(active, k)
        return self._dense(weighted_squares(self.machine.X, D)[0], k)

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

    def _by_action(
        self, rhs: np.ndarray, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Conjugate gradients on these columns, one product with X for all of them.

        Rows that are active nowhere are left out; without an intercept its border is.
        """
        machine, D = self.machine, self.tangent.curvature[:, columns]
        counts = np.count_nonzero(D, axis=0)
        active = np.flatnonzero((D > 0).any(axis=1))
        X, D = keep(machine.X, active), D[active]
        bordered = machine.intercept != "none"
        rho = machine.intercept_precision[columns]

        def action(V: np.ndarray, which: np.ndarray) -> np.ndarray:
            W, b = (V[:-1], V[-1]) if bordered else (V, 0.0)
            out = reduce(lambda X, D: _square_action(X, D, W, b), X, D[:, which])
            out[:-1] += machine.penalize(W)
            out[-1] += rho[which] * b
            return out if bordered else out[:-1]

        R = machine.precision
        diagonal = reduce(_square_diagonal, X, D)
        diagonal += (np.diagonal(R) if R.ndim == 2 else R)[:, None]
        if bordered:
            diagonal = np.vstack([diagonal, D.sum(axis=0) + rho])
        possible = [self._is_wide(count) for count in counts]
        if machine.X.shape[1] <= machine.direct_limit:
            possible = [True] * len(counts)
        patience = np.where(possible, PATIENCE, np.inf)
        return conjugate_gradients(action, rhs, diagonal, machine.rtol, patience)


def _square_action(X: Any, D: np.ndarray, W: np.ndarray, b: Any) -> np.ndarray:
    """[X 1]' diag(D_k) [X 1] (w_k, b_k) for every column k."""
    at_points = X @ W
    at_points += b
    at_points *= D
    return np.vstack([X.T @ at_points, at_points.sum(axis=0)])


def _square_diagonal(X: Any, D: np.ndarray) -> np.ndarray:
    """Diagonals of X' diag(D_k) X."""
    return (X.multiply(X) if sparse.issparse(X) else X * X).T @ D
