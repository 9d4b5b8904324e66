"""The linear machine: f = w'x + b, on dense or sparse rows, in memory or in blocks.

Its linear systems, with the matrix R + X'D X, come last in this file: they are
factorised over the features or over the active points, or solved by conjugate
gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from bisvm.core.lapack import factorize
from bisvm.core.threads import in_threads
from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import (
    Inputs,
    RowBlocks,
    is_sparse,
    keep,
    reduce,
    weighted_squares,
)
from bisvm.machines.base import (
    INTERCEPT_RIDGE,
    Adjoint,
    Coefficients,
    Linearization,
    Machine,
    Sensitivity,
    Tangent,
    column_dots,
)
from bisvm.machines.hinge_adjoint import ends_of_intercept, margin_of, multipliers
from bisvm.machines.leverages import BorderedRows, LinearColumn, LinearLeverages

# Features above which no Hessian is formed: conjugate gradients multiply by X instead.
DIRECT_LIMIT = 2000
# With more features than this, and more than active points, systems are solved among
# the points (Woodbury): below it the smaller matrix does not pay for the products.
WIDE = 100
# Sparse rows with more features than this are solved by conjugate gradients, unless a
# column has at most FEW active points. After PATIENCE iterations a column is factorised
# instead.
THIN = 200
FEW = 500
PATIENCE = 40
# Features, or landmarks, from which on columns are solved in parallel: smaller systems
# take less time than it takes to start a thread.
PARALLEL = 300
# Relative residual of conjugate gradients that stand for an exact solve, and the one
# above which they have failed.
EXACT = 1e-11
ACCEPTABLE = 1e-6


@dataclass(frozen=True)
class LinearMachine(Machine):
    """1/2 sum_d rho_d w_d^2 + rho/2 b^2 + sum_i W_i loss(F_i, Y_i),  F = X w + b.

    Optimality is rho_d w_d + X'S = 0 and rho b + 1'S = 0 with S = W loss'(F, Y). One
    C for each feature is rho_d = 1 / C_d. In general the regulariser is 1/2 w'R w, and
    `precision` is the diagonal of R or the whole matrix.
    """

    X: Inputs
    precision: Array
    penalized_intercept_precision: float = 1.0
    direct_limit: int = DIRECT_LIMIT
    rtol: float = EXACT

    def within(self, rtol: float) -> Self:
        return replace(self, rtol=max(rtol, EXACT))

    @property
    def by_action(self) -> bool:
        """Whether conjugate gradients come first.

        Not for data in blocks of few features: each product reads all of them, and the
        Hessian needs only one reading.
        """
        n_features: int = self.X.shape[1]
        thin = bool(sparse.issparse(self.X)) and n_features > THIN
        return thin or n_features > self.direct_limit

    @property
    def by_passes(self) -> bool:
        """Whether its features are computed in blocks, anew in every pass over them."""
        return False

    @cached_property
    def intercept_precision(self) -> Array:
        if self.intercept == "penalized":
            return np.full(self.n_columns, self.penalized_intercept_precision)
        return INTERCEPT_RIDGE * self.total_weight

    def fit_values(self, x: Coefficients) -> Array:
        fitted: Array = self.X @ x.coef
        fitted += x.intercept
        return fitted

    def penalize(self, w: Array) -> Array:
        """R w."""
        if self.precision.ndim == 2:
            return np.asarray(self.precision @ w)
        return np.asarray(self.precision[:, None] * w)

    def riesz(self, at_points: Array) -> Coefficients:
        """sum_i beta_i k(x_i, .) for k(x, z) = sum_d x_d z_d / rho_d + 1 / rho.

        The constant is that of a penalised intercept; a free one has none.
        """
        total = at_points.sum(axis=0)
        penalized = self.intercept == "penalized"
        return Coefficients(
            self._unpenalize(self.X.T @ at_points),
            total / self.intercept_precision if penalized else 0.0 * total,
        )

    def block(self, rows: Matrix) -> Array:
        """The kernel of `riesz` between rows of X."""
        dense: Array = rows if isinstance(rows, np.ndarray) else rows.toarray()
        out: Array = dense @ self._unpenalize(dense.T)
        if self.intercept == "penalized":
            out += 1.0 / self.penalized_intercept_precision
        return out

    def _unpenalize(self, w: Array) -> Array:
        """R^-1 w."""
        if self.precision.ndim == 2:
            return np.linalg.solve(self.precision, w)
        return np.asarray(w / self.precision[:, None])

    def inner(self, x: Coefficients, y: Coefficients, y_values: Array) -> Array:
        out: Array = np.sum(x.coef * self.penalize(y.coef), axis=0)
        out += self.intercept_precision * x.intercept * y.intercept
        return out

    def loss_gradient(self, tangent: Tangent) -> Coefficients:
        of_intercept = tangent.total_slope * self.has_intercept
        return Coefficients(self.X.T @ tangent.slope, of_intercept)

    def metric(self, x: Coefficients, x_values: Array) -> Array:
        out: Array = np.sum(x.coef**2, axis=0)
        out += x.intercept**2
        return out

    def shrink(self, x: Coefficients, step: Array) -> Coefficients:
        intercept = x.intercept / (1.0 + step * self.intercept_precision)
        if self.precision.ndim == 1:
            return Coefficients(
                x.coef / (1.0 + self.precision[:, None] * step), intercept
            )
        identity, steps = (
            np.eye(len(self.precision)),
            np.broadcast_to(step, x.coef[0].shape),
        )
        columns = [
            np.linalg.solve(identity + step_k * self.precision, w_k)
            for step_k, w_k in zip(steps, x.coef.T, strict=True)
        ]
        return Coefficients(np.stack(columns, axis=1), intercept)

    def residual(self, x: Coefficients, tangent: Tangent) -> Array:
        """Gradient entries in units of the sum of |W_i x_id| that each is made of."""
        gradient = self.loss_gradient(tangent)
        stationarity = np.abs(self.penalize(x.coef) + gradient.coef)
        out: Array = np.max(stationarity / self._gradient_size, axis=0, initial=0.0)
        if self.has_intercept:
            out = np.maximum(out, self.intercept_residual(x, gradient.intercept))
        return out

    @cached_property
    def _gradient_size(self) -> Array:
        """sum_i |W_i x_id|, or 1 for a feature that is zero everywhere."""
        size = abs(self.X).T @ self.weights
        return np.where(size > 0, size, 1.0)

    def linearize(self, tangent: Tangent) -> Linearization:
        return LinearLinearization(self, tangent)

    def sensitivity(
        self, x: Coefficients, tangent: Tangent, adjoint: Adjoint, cotangent: Array
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

    def by_hessian(self, Q: Array, by_features: Callable[[], Array]) -> Sensitivity:
        """Derivative of leverages by log rho_d, -rho_d Q_dd (`leverages`)."""
        none = np.zeros_like(self.weights)
        return Sensitivity(none, precision=-self.precision * np.diagonal(Q))


class LinearLinearization(Linearization):
    """Hessian R + X'D X, bordered by the intercept as one more column of ones.

    Klatzer 2014, below (2.7): c I + X' diag(loss'') X, which is c times this. Stegie's
    draft, (1.21): with D_i = 2 C where 1 - u_i > 0, and lambda = 1/C, it is lambda
    times this (its bias has the other sign). There it is solved for dw/dlambda, with
    (-w, 0) on the right; here for s, with X'P, and dH/dlambda = -s'w / lambda is the
    same number.
    """

    def __init__(self, machine: LinearMachine, tangent: Tangent):
        self.machine = machine
        self.tangent = tangent
        self._held = self._systems_in_one_reading()

    def minimizer(self) -> Coefficients:
        """(diag(rho) + X'D X) w = X'(D F - S)."""
        tangent = self.tangent
        return self._solve(tangent.curvature * tangent.fitted - tangent.slope)

    def adjoint(self, cotangent: Array) -> Adjoint:
        """(diag(rho) + X'D X) s = X'P; the adjoint function is x -> s'x."""
        if self.machine.loss.twice_differentiable:
            function, pull = self._solve(cotangent), None
        else:
            function, pull = self._on_margin(cotangent)
        return Adjoint(function, self.machine.fit_values(function), pull)

    def _on_margin(self, cotangent: Array) -> tuple[Coefficients, Array]:
        """Exact losses: rho_d s_d = X'U with U = P - v (`hinge_adjoint`); also v."""
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
        out = replace(out, intercept=-mu) if free else out
        return out, cotangent - U

    def leverages(self, where: Array) -> LinearLeverages:
        machine, D = self.machine, self.tangent.curvature
        rows = BorderedRows(machine.X, machine.has_intercept)
        own, columns = np.zeros(where.shape), []
        for k in range(machine.n_columns):
            asked, active = np.flatnonzero(where[:, k]), np.flatnonzero(D[:, k])
            system = self._dense(weighted_squares(machine.X, D[:, [k]])[0], k)
            hessian = system.factor, system.scale
            columns.append(LinearColumn(active, D[active, k], asked, *hessian))
            own[asked, k] = rows.leverages(columns[-1])
        rest = 1.0 - np.where(where, D, 0.0) * own
        return LinearLeverages(own, rest, machine, rows, columns, machine.by_hessian)

    def direction(self, x: Coefficients) -> Coefficients:
        machine = self.machine
        gradient = machine.loss_gradient(self.tangent)
        coef = gradient.coef + machine.penalize(x.coef)
        constant = gradient.intercept + machine.intercept_precision * x.intercept
        return self._solve_for(-coef, -constant)

    def _solve(self, at_points: Array) -> Coefficients:
        return self._solve_for(self.machine.X.T @ at_points, at_points.sum(axis=0))

    def _solve_for(self, coef: Array, constant: Array) -> Coefficients:
        """The Hessians' inverses times a right-hand side."""
        bordered = self.machine.has_intercept
        rhs = np.vstack([coef, constant]) if bordered else coef
        out = np.empty_like(rhs)
        direct = self._factored_columns

        def factored(k: int) -> None:
            out[:, k] = self._system(k).solve(rhs[:, k])

        X = self.machine.X
        large = X.shape[1] >= PARALLEL and not isinstance(X, RowBlocks)
        in_threads(factored, np.flatnonzero(direct).tolist(), worthwhile=large)
        rest = np.flatnonzero(~direct)
        if len(rest):
            out[:, rest], given_up = self._by_action(rhs[:, rest], rest)
            for k in rest[given_up]:
                out[:, k] = self._system(k).solve(rhs[:, k])
        if not bordered:
            return Coefficients(out, np.zeros(out.shape[1]))
        return Coefficients(out[:-1], out[-1])

    @cached_property
    def _wide_columns(self) -> Array:
        """(q,), whose systems may be solved among their active points."""
        return np.array([self._is_wide(count) for count in self._n_active], dtype=bool)

    @cached_property
    def _n_active(self) -> Array:
        """(q,), numbers of points of positive curvature."""
        counts: Array = (self.tangent.curvature > 0).sum(axis=0)
        return counts

    @cached_property
    def _factored_columns(self) -> Array:
        """(q,), whose systems are factorised; conjugate gradients solve the others."""
        machine, wide = self.machine, self._wide_columns
        if not machine.by_action:
            return np.ones_like(wide)
        few: Array = wide & (self._n_active <= FEW)
        return few if is_sparse(machine.X) else wide

    def _systems_in_one_reading(self) -> dict[int, System]:
        """Systems of rows in blocks, which are read once for all columns.

        Those of rows in memory are made when they are needed, one after the other: the
        matrices of many columns on many landmarks may be larger than all rows.
        """
        machine = self.machine
        factored = machine.loss.twice_differentiable and not machine.by_action
        if not factored or not isinstance(machine.X, RowBlocks):
            return {}
        columns = np.flatnonzero(~self._wide_columns).tolist()
        squares = weighted_squares(machine.X, self.tangent.curvature[:, columns])
        return {k: self._dense(H, k) for k, H in zip(columns, squares, strict=True)}

    def _system(self, k: int) -> System:
        """The system of one column, factorised."""
        if k in self._held:
            return self._held[k]
        D = self.tangent.curvature[:, [k]]
        if self._wide_columns[k]:
            return self._low_rank(np.flatnonzero(D > 0), k)
        return self._dense(weighted_squares(self.machine.X, D)[0], k)

    def _is_wide(self, n_active: int) -> bool:
        """Whether a column's system may be solved among its active points."""
        machine = self.machine
        fewer = WIDE < machine.X.shape[1] > n_active <= machine.direct_limit
        return fewer and machine.precision.ndim == 1

    def _dense(self, H: Array, k: int) -> DenseSystem:
        """Turn H = [X 1]' D [X 1] into the Hessian, in place, and factorise it."""
        precision = self.machine.precision
        H[:-1, :-1] += precision if precision.ndim == 2 else np.diag(precision)
        H[-1, -1] += self.machine.intercept_precision[k]
        if not self.machine.has_intercept:
            H = np.ascontiguousarray(H[:-1, :-1])
        return DenseSystem(H)

    def _low_rank(self, active: Array, k: int) -> System:
        machine = self.machine
        X, D = machine.X[active], self.tangent.curvature[active, k]
        system = LowRankSystem(machine.precision, X, D)
        if not machine.has_intercept:
            return system
        return BorderedSystem(system, X.T @ D, D.sum() + machine.intercept_precision[k])

    def _by_action(self, rhs: Array, columns: Array) -> tuple[Array, Array]:
        """Conjugate gradients on these columns, one product with X for all of them.

        Returns the solutions, and the positions in `columns` of those given up. Rows
        without curvature in all columns are left out.
        """
        machine, D = self.machine, self.tangent.curvature[:, columns]
        active = np.flatnonzero((D > 0).any(axis=1))
        X, D = keep(machine.X, active), D[active]
        bordered = machine.has_intercept
        rho = machine.intercept_precision[columns]

        def action(V: Array, which: Array) -> Array:
            W, b = (V[:-1], V[-1]) if bordered else (V, 0.0)
            out: Array = reduce(lambda X, D: _square_action(X, D, W, b), X, D[:, which])
            out[:-1] += machine.penalize(W)
            out[-1] += rho[which] * b
            return out if bordered else out[:-1]

        R = machine.precision
        diagonal = reduce(_square_diagonal, X, D)
        diagonal += (np.diagonal(R) if R.ndim == 2 else R)[:, None]
        if bordered:
            diagonal = np.vstack([diagonal, D.sum(axis=0) + rho])
        small = machine.X.shape[1] <= machine.direct_limit
        possible = self._wide_columns[columns] | small
        patience = np.where(possible, PATIENCE, np.inf)
        return conjugate_gradients(action, rhs, diagonal, machine.rtol, patience)


def _square_action(X: Matrix, D: Array, W: Array, b: Array | float) -> Array:
    """[X 1]' diag(D_k) [X 1] (w_k, b_k) for every column k."""
    at_points: Array = X @ W
    at_points += b
    at_points *= D
    return np.vstack([X.T @ at_points, at_points.sum(axis=0)])


def _square_diagonal(X: Matrix, D: Array) -> Array:
    """Diagonals of X' diag(D_k) X."""
    squares = X.power(2) if not isinstance(X, np.ndarray) else X * X
    return np.asarray(squares.T @ D)


# --- linear systems -------------------------------------------------------------------


class System(Protocol):
    """A positive-definite matrix, ready for solves."""

    def solve(self, rhs: Array) -> Array: ...


class DenseSystem:
    """Q = L L', scaled to a unit diagonal first; Q is overwritten.

    The scaling keeps features of very different sizes accurate. Where rounding makes Q
    indefinite, a multiple of the identity at rounding level is added. If that does not
    suffice, LinAlgError is raised.
    """

    def __init__(self, Q: Array):
        scale = 1.0 / np.sqrt(np.diagonal(Q))
        Q *= scale[:, None]
        Q *= scale[None, :]
        self.scale = scale
        self.factor = _cholesky(Q)

    def solve(self, rhs: Array) -> Array:
        if not len(rhs):
            return rhs
        scale = self.scale if rhs.ndim == 1 else self.scale[:, None]
        solution: Array = lapack.dpotrs(self.factor, rhs * scale, lower=1)[0]
        solution *= scale
        return solution


def _cholesky(Q: Array) -> Array:
    """Lower Cholesky factor of a symmetric matrix with unit diagonal, in place.

    Its transpose is Q in LAPACK's memory order. What is below the diagonal of Q is not
    touched; from there Q is restored if a shift is needed.
    """
    shift = 0.0
    for _ in range(4):
        try:
            factorize(Q)
        except np.linalg.LinAlgError:
            shift = max(1e-14, 100 * shift)
            below = np.tril(Q, -1)
            Q = below + below.T + (1.0 + shift) * np.eye(len(Q))
        else:
            factor: Array = Q.T
            return factor
    raise np.linalg.LinAlgError("matrix is not positive definite, nor nearly so")


class LowRankSystem:
    """R + X'D X with a diagonal R and fewer rows than columns, solved among the rows.

    By Woodbury's identity, with t = sqrt(D),

        (R + X'D X)^-1 = R^-1 - R^-1 X't (I + t X R^-1 X't)^-1 t X R^-1.
    """

    def __init__(self, R: Array, X: Matrix, D: Array):
        self.R, self.X, self.t = R, X, np.sqrt(D)
        if sparse.issparse(X):
            rows = (X @ sparse.diags_array(1.0 / R) @ X.T).toarray()
        else:
            rows = (X / R) @ X.T
        rows *= self.t[:, None]
        rows *= self.t
        rows.flat[:: len(D) + 1] += 1.0
        self.rows = DenseSystem(rows)

    def solve(self, rhs: Array) -> Array:
        first = rhs / self.R
        inner = self.rows.solve(self.t * (self.X @ first))
        return np.asarray(first - (self.X.T @ (self.t * inner)) / self.R)


class BorderedSystem:
    """[[A, a], [a', c]] by elimination, with a solver for A."""

    def __init__(self, system: System, a: Array, c: float):
        self.system, self.a = system, a
        self.v = system.solve(a)
        self.pivot = c - a @ self.v

    def solve(self, rhs: Array) -> Array:
        u = self.system.solve(rhs[:-1])
        last = (rhs[-1] - self.a @ u) / self.pivot
        return np.append(u - last * self.v, last)


# (V, columns) -> Q_k v_k for the columns v_k of V, where `columns` holds their k.
Action = Callable[[Array, Array], Array]


def conjugate_gradients(
    action: Action,
    rhs: Array,
    diagonal: Array,
    rtol: float,
    patience: Array | None = None,
) -> tuple[Array, Array]:
    """Solve Q_k x_k = rhs_k for several columns that share a matrix product.

    One product with X serves all columns, and costs little more than for one column. A
    column is solved when r' M^-1 r, with M the diagonal of Q_k, is below rtol^2 times
    its value for rhs.

    Parameters
    ----------
    action : callable
        Returns the products Q_k v_k.
    rhs : array of shape (m, q)
    diagonal : array of shape (m, q)
        Diagonals of the Q_k, for preconditioning.
    rtol : float
    patience : array of shape (q,), optional
        Iterations after which a column is given up without an error; infinite by
        default.

    Returns
    -------
    x : array of shape (m, q)
    given_up : array
        Numbers of the columns that were given up.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a column with infinite patience does not converge.
    """
    found = np.zeros_like(rhs)
    size = column_dots(rhs, rhs / diagonal)
    target, failed = rtol**2 * size, ACCEPTABLE**2 * size
    limit = np.full(len(size), np.inf) if patience is None else patience
    # From here on, arrays only hold the columns that are left.
    left = np.flatnonzero(~(size <= target))
    x, r, M = found[:, left], rhs[:, left], diagonal[:, left]
    p, rr = r / M, size[left]
    for iteration in range(10 * len(rhs) + 100):
        done = (rr <= target[left]) | (limit[left] <= iteration)
        if done.any():
            found[:, left[done]], size[left[done]] = x[:, done], rr[done]
            left, rr = left[~done], rr[~done]
            x, r, M, p = (A[:, ~done] for A in (x, r, M, p))
        if not len(left):
            return found, np.flatnonzero(~(size <= target))
        image = action(p, left)
        length = rr / column_dots(p, image)
        x += length * p
        image *= length
        r -= image
        z = np.divide(r, M, out=image)
        last, rr = rr, column_dots(r, z)
        p *= rr / last
        p += z
        if not np.isfinite(rr).all():
            break
    if not np.all(rr <= failed[left]):
        raise np.linalg.LinAlgError("conjugate gradients did not converge")
    found[:, left] = x
    return found, np.array([], dtype=int)
