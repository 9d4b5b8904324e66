"""The kernel machine: f = sum_j alpha_j k(x_j, .) + b."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack
from sklearn.utils import gen_batches

from bisvm.core.compiling import njit
from bisvm.core.types import Array, Matrix
from bisvm.kernels import Factors, Kernel
from bisvm.machines.base import (
    Adjoint,
    Coefficients,
    Linearization,
    Machine,
    Parabola,
    Sensitivity,
    Tangent,
)
from bisvm.machines.hinge_adjoint import ends_of_intercept, margin_of, multipliers
from bisvm.machines.linear import EXACT, DenseSystem, conjugate_gradients

# Rows above which active sets are solved by conjugate gradients: the factors of one
# column would take as much memory as the Gram matrix.
DIRECT_LIMIT = 6000
# Active points up to which one compiled call solves all columns. For larger systems
# LAPACK's blocked factorisation is faster than the calls cost.
SMALL = 200
# Rows of K that are converted to double precision at a time: they stay in the cache.
CONVERTED = 64


@dataclass(frozen=True)
class KernelMachine(Machine):
    """1/2 alpha'K alpha + rho/2 b^2 + sum_i W_i loss(F_i, Y_i),  F = K alpha + b.

    The gradient in alpha is K times alpha + S; with K cancelled, optimality is

        alpha + S = 0,    1'S + rho b = 0,    S = W loss'(F, Y).

    In the inner product of the kernel's function space alpha + S is the gradient,
    whatever the conditioning of K.
    """

    kernel: Kernel
    X: Matrix
    gram: Array
    direct_limit: int = DIRECT_LIMIT

    def fit_values(self, x: Coefficients) -> Array:
        fitted = product(self.gram, x.coef)
        fitted += x.intercept
        return fitted

    def precise_values(self, x: Coefficients) -> Array:
        n = len(self.gram)
        if self.gram.dtype == np.float64:
            return self.fit_values(x)
        fitted = np.empty(x.coef.shape)
        for rows in gen_batches(n, CONVERTED):
            fitted[rows] = self.gram[rows].astype(float) @ x.coef
        fitted += x.intercept
        return fitted

    def inner(self, x: Coefficients, y: Coefficients, y_values: Array) -> Array:
        out: Array = np.sum(x.coef * (y_values - y.intercept), axis=0)
        out += self.intercept_precision * x.intercept * y.intercept
        return out

    def loss_gradient(self, tangent: Tangent) -> Coefficients:
        total = tangent.slope.sum(axis=0)
        return Coefficients(tangent.slope, total * self.has_intercept)

    def metric(self, x: Coefficients, x_values: Array) -> Array:
        out: Array = np.sum(x.coef * (x_values - x.intercept), axis=0)
        out += x.intercept**2
        return out

    def shrink(self, x: Coefficients, step: Array) -> Coefficients:
        return Coefficients(
            x.coef / (1.0 + step), x.intercept / (1.0 + step * self.intercept_precision)
        )

    def residual(self, x: Coefficients, tangent: Tangent) -> Array:
        """max_i |alpha_i + S_i| / W_i, and |1'S + rho b| / sum W.

        In units of a loss's slope: a point counted twice is a point of weight two.
        """
        off = np.abs(x.coef + tangent.slope)
        off /= np.where(self.weights > 0, self.weights, 1.0)
        out: Array = off.max(axis=0)
        if self.has_intercept:
            total = tangent.slope.sum(axis=0)
            out = np.maximum(out, self.intercept_residual(x, total))
        return out

    def rounding(self, x: Coefficients) -> float:
        if self.gram.dtype == np.float64:
            return 0.0
        size = float(np.sqrt(np.max(np.sum(x.coef**2, axis=0))))
        return size * self.kernel.rounding(self.X)

    def linearize(self, tangent: Tangent) -> KernelLinearization:
        return KernelLinearization(self, tangent)

    def along(
        self, x: Coefficients, tangent: Tangent, d: Coefficients, d_values: Array
    ) -> Parabola:
        at_x = x.coef, x.intercept, tangent.fitted, tangent.slope
        of_d = d.coef, d.intercept, d_values, self.intercept_precision
        # In one memory layout: numba compiles `along` once for each.
        return Parabola(*along(*map(np.ascontiguousarray, (*at_x, *of_d))))

    def sensitivity(
        self, x: Coefficients, tangent: Tangent, adjoint: Adjoint, cotangent: Array
    ) -> Sensitivity:
        """The Gram matrix enters by <U alpha', dK>, U the adjoint function."""
        function = adjoint.function
        return Sensitivity(
            weights=self.weights_sensitivity(x, tangent, adjoint),
            intercept_precision=-float(x.intercept @ function.intercept),
            kernel=self._kernel_gradient(function.coef, x.coef),
        )

    def envelope(self, x: Coefficients, tangent: Tangent) -> Sensitivity:
        """The Gram matrix enters by -1/2 <alpha alpha', dK>, since S = -alpha."""
        return Sensitivity(
            weights=self.weights_envelope(x, tangent),
            intercept_precision=0.5 * float(x.intercept @ x.intercept),
            kernel=self._kernel_gradient(-0.5 * x.coef, x.coef),
        )

    def _kernel_gradient(self, left: Array, right: Array) -> Array:
        """<left right', dK> by the kernel's parameters, in the precision of K."""
        dtype = self.gram.dtype
        factors = Factors(left.astype(dtype), right.astype(dtype))
        return self.kernel.pullback(self.X, None, self.gram, factors).theta


class KernelLinearization(Linearization):
    """Only points of positive curvature, the active set, enter a linear system.

    Newton points and adjoints solve, for every column, with t = sqrt(D) on the active
    set,

        (I + t K t) z + mu t = t g,    t'z - rho mu = total,

    symmetric positive definite and |A| x |A|; the result is v = t z and mu.
    """

    def __init__(self, machine: KernelMachine, tangent: Tangent):
        self.machine = machine
        self.tangent = tangent

    def minimizer(self) -> Coefficients:
        """alpha = -S - D (f - F), 1'alpha = rho b: -S outside the active set."""
        alpha = -np.ascontiguousarray(self.tangent.slope)
        change = product(self.machine.gram, alpha) - self.tangent.fitted
        v, mu = self._solve(change, alpha.sum(axis=0), refined=False)
        return Coefficients(alpha - v, -mu)

    def direction(self, x: Coefficients) -> Coefficients:
        """d = -(alpha + S) - D (K d + d_b),  1'd = rho (b + d_b) - 1'alpha.

        Every term is as small as what x still lacks, and so are rounding errors.
        """
        machine, slope = self.machine, self.tangent.slope
        lacking = -(x.coef + slope)
        total = -slope.sum(axis=0) - machine.intercept_precision * x.intercept
        g = product(machine.gram, lacking)
        v, mu = self._solve(g, total, refined=False)
        return Coefficients(lacking - v, -mu)

    def adjoint(self, cotangent: Array) -> Adjoint:
        """U = P - D lambda,  lambda = K U - mu,  1'U = -rho mu."""
        gram = self.machine.gram
        g, total = product(gram, cotangent), cotangent.sum(axis=0)
        v, mu = self._solve(g, total, refined=True)
        U = cotangent - v
        return Adjoint(Coefficients(U, -mu), product(gram, U) - mu)

    def _solve(self, g: Array, total: Array, *, refined: bool) -> tuple[Array, Array]:
        machine = self.machine
        if machine.loss.twice_differentiable and len(g) <= machine.direct_limit:
            with suppress(np.linalg.LinAlgError):
                return solve_columns(
                    machine.gram,
                    np.ascontiguousarray(self.tangent.curvature),
                    np.ascontiguousarray(g),
                    total,
                    machine.intercept_precision,
                    machine.has_intercept,
                    refined=refined,
                )
        return self._solve_one_by_one(g, total)

    def _solve_one_by_one(self, g: Array, total: Array) -> tuple[Array, Array]:
        """Solve where a matrix is not quite positive definite, or too large."""
        v = np.zeros_like(g)
        mu = np.zeros(g.shape[1])
        precision = self.machine.intercept_precision
        for k in range(self.machine.n_columns):
            if not self.machine.loss.twice_differentiable:
                mu[k] = self._solve_on_margin(k, g[:, k], total[k], v[:, k])
                continue
            D = self.tangent.curvature[:, k]
            active = np.flatnonzero(D > 0)
            t = np.sqrt(D[active])
            rhs = np.column_stack([t * g[active, k], t])
            z = _solve_active(self.machine, active, t, rhs)
            if self.machine.has_intercept:
                pull = t @ z
                mu[k] = (pull[0] - total[k]) / (pull[1] + precision[k])
            v[active, k] = t * (z[:, 0] - mu[k] * z[:, 1])
        return v, mu

    def _solve_on_margin(self, k: int, g: Array, total: float, v: Array) -> float:
        """The exact hinge: write to v and return mu (`hinge_adjoint`)."""
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
        return float((v[M].sum() - total) / rho)


def _solve_active(machine: KernelMachine, active: Array, t: Array, rhs: Array) -> Array:
    """Solve (I + t K t) z = rhs among the active points; rhs has two columns."""
    if len(active) <= machine.direct_limit:
        Q = machine.gram[np.ix_(active, active)] * t[:, None] * t
        Q.flat[:: len(t) + 1] += 1.0
        return DenseSystem(Q).solve(rhs)
    n = len(machine.gram)

    def action(Z: Array, columns: Array) -> Array:
        spread = np.zeros((n, len(columns)))
        spread[active] = t[:, None] * Z
        image: Array = t[:, None] * (machine.gram @ spread)[active]
        image += Z
        return image

    diagonal = 1.0 + t**2 * np.diagonal(machine.gram)[active]
    diagonals = np.column_stack([diagonal, diagonal])
    return conjugate_gradients(action, rhs, diagonals, EXACT)[0]


# --- linear systems of the active set -------------------------------------------------


@njit(cache=True, nogil=True)
def scaled_system(gram: Array, D: Array, like: Array) -> tuple[Array, Array, Array]:
    """The active set, and t and Q = t K t on it, all scaled to a unit diagonal of Q.

    `like` is an array in the precision that Q is to have.
    """
    active = np.flatnonzero(D)
    m = len(active)
    t = np.empty(m, like.dtype)
    for i in range(m):
        d = D[active[i]]
        t[i] = np.sqrt(d / (1.0 + d * gram[active[i], active[i]]))
    Q = np.empty((m, m), like.dtype)
    for i in range(m):
        row = gram[active[i]]
        for j in range(m):
            Q[i, j] = t[i] * t[j] * row[active[j]]
        Q[i, i] = 1.0
    return active, t, Q


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def solve_factored(columns: Array, u: Array, v: Array) -> None:
    """L L' x = u and L L' x = v, in the place of the right-hand sides.

    `columns` are those of L, one a row.
    """
    m = len(u)
    for j in range(m):
        column = columns[j]
        u[j] /= column[j]
        v[j] /= column[j]
        for i in range(j + 1, m):
            u[i] -= column[i] * u[j]
            v[i] -= column[i] * v[j]
    for j in range(m - 1, -1, -1):
        column = columns[j]
        along_u, along_v = 0.0, 0.0
        for i in range(j + 1, m):
            along_u += column[i] * u[i]
            along_v += column[i] * v[i]
        u[j] = (u[j] - along_u) / column[j]
        v[j] = (v[j] - along_v) / column[j]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def subtract_product(rows: Array, u: Array, v: Array, at_u: Array, at_v: Array) -> None:
    """at - Q x of both, Q given by its lower triangle without the ones."""
    for i in range(len(u)):
        row = rows[i]
        along_u, along_v = u[i], v[i]
        for j in range(i):
            along_u += row[j] * u[j]
            along_v += row[j] * v[j]
            at_u[j] -= row[j] * u[i]
            at_v[j] -= row[j] * v[i]
        at_u[i] -= along_u
        at_v[i] -= along_v


@njit(cache=True, nogil=True)
def solve_bordered(
    factor: Array,
    Q: Array,
    active: Array,
    t: Array,
    g: Array,
    total: float,
    rho: float,
    bordered: bool,
    refined: bool,
    v: Array,
) -> float:
    """v = t z, written on the active set, and mu of one column.

    `factor` holds columns of L in its upper triangle. A factor of single precision
    leaves something over, which is solved for once more if it is to be `refined`: of Q
    the part below the diagonal is enough.
    """
    m = len(active)
    of_t = t.astype(np.float64)
    of_g = np.empty(m)
    for i in range(m):
        of_g[i] = t[i] * g[active[i]]
    again = refined and factor.itemsize < of_g.itemsize
    left_g, left_t = (of_g.copy(), of_t.copy()) if again else (of_g, of_t)
    solve_factored(factor, of_g, of_t)
    if again:
        subtract_product(Q, of_g, of_t, left_g, left_t)
        solve_factored(factor, left_g, left_t)
        of_g += left_g
        of_t += left_t
    mu = 0.0
    if bordered:
        pull_g, pull_t = 0.0, 0.0
        for i in range(m):
            pull_g += t[i] * of_g[i]
            pull_t += t[i] * of_t[i]
        mu = (pull_g - total) / (pull_t + rho)
    for i in range(m):
        v[active[i]] = t[i] * (of_g[i] - mu * of_t[i])
    return mu


@njit(cache=True, nogil=True)
def solve_small(
    gram: Array,
    D: Array,
    g: Array,
    total: Array,
    rho: Array,
    bordered: bool,
) -> tuple[Array, Array]:
    """`solve_columns` in one compiled call, for small systems."""
    v, mu = np.zeros(D.shape), np.zeros(len(rho))
    for k in range(len(rho)):
        active, t, Q = scaled_system(gram, D[:, k], D)
        L = np.linalg.cholesky(Q) if len(Q) else Q
        factor = np.ascontiguousarray(L.T)
        mu[k] = solve_bordered(
            factor, Q, active, t, g[:, k], total[k], rho[k], bordered, False, v[:, k]
        )
    return v, mu


def solve_columns(
    gram: Array,
    D: Array,
    g: Array,
    total: Array,
    rho: Array,
    bordered: bool,
    *,
    refined: bool = True,
) -> tuple[Array, Array]:
    """v = t z and mu of every column, with t = sqrt(D) on the active set:

    (I + t K t) z + mu t = t g,    t'z - rho mu = total.

    In single precision as good as K is if `refined`, as good as its factor if not.
    """
    if np.count_nonzero(D, axis=0).max(initial=0) <= SMALL:
        return solve_small(gram, D, g, total, rho, bordered)
    v, mu = np.zeros(D.shape), np.zeros(len(rho))
    potrf = lapack.dpotrf if gram.dtype == np.float64 else lapack.spotrf
    for k in range(len(rho)):
        active, t, Q = scaled_system(gram, D[:, k], gram)
        # Symmetric: the transpose is the same matrix, in LAPACK's order.
        L, info = potrf(Q.T, lower=1, clean=0, overwrite_a=1) if len(Q) else (Q, 0)
        if info:
            raise np.linalg.LinAlgError("matrix is not positive definite")
        mu[k] = solve_bordered(
            L.T, L.T, active, t, g[:, k], total[k], rho[k], bordered, refined, v[:, k]
        )
    return v, mu


def product(gram: Array, alpha: Array) -> Array:
    """K alpha, in the precision of K."""
    values: Array = gram @ np.ascontiguousarray(alpha, dtype=gram.dtype)
    return values.astype(float, copy=False)


@njit(cache=True, nogil=True)
def along(
    alpha: Array,
    b: Array,
    F: Array,
    S: Array,
    d_alpha: Array,
    d_b: Array,
    d_F: Array,
    rho: Array,
) -> tuple[Array, Array, Array, Array]:
    """The fields of `Parabola`, in one pass."""
    n, q = F.shape
    linear, quadratic = rho * b * d_b, rho * d_b * d_b
    slope, size = np.zeros(q), rho * b * b
    for i in range(n):
        for k in range(q):
            function = d_F[i, k] - d_b[k]
            linear[k] += alpha[i, k] * function
            quadratic[k] += d_alpha[i, k] * function
            slope[k] += S[i, k] * d_F[i, k]
            size[k] += alpha[i, k] * (F[i, k] - b[k]) + abs(S[i, k] * F[i, k])
    return linear, quadratic, linear + slope, size
