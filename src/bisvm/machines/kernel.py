"""The kernel machine: f = sum_j alpha_j k(x_j, .) + b."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bisvm.core.compiling import njit
from bisvm.core.threads import batches, in_threads
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
from bisvm.machines.column_systems import (
    CONVERTED,
    PARALLEL_ROWS,
    ColumnSystems,
    product,
    solve_columns,
)
from bisvm.machines.hinge_adjoint import ends_of_intercept, margin_of, multipliers
from bisvm.machines.leverages import KernelColumn, KernelLeverages, kernel_column
from bisvm.machines.linear import EXACT, DenseSystem, conjugate_gradients

# Active points above which systems are solved by conjugate gradients alone: a factor of
# one column would take as much memory as a Gram matrix.
DIRECT_LIMIT = 10_000


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
        """F = K alpha + b."""
        fitted = product(self.gram, x.coef)
        fitted += x.intercept
        return fitted

    def precise_values(self, x: Coefficients) -> Array:
        """F, with blocks of K converted to double precision."""
        n = len(self.gram)
        if self.gram.dtype == np.float64:
            return self.fit_values(x)
        fitted = np.empty(x.coef.shape)

        def convert(rows: slice) -> None:
            fitted[rows] = self.gram[rows].astype(float) @ x.coef

        in_threads(convert, batches(n, CONVERTED), worthwhile=n >= PARALLEL_ROWS)
        fitted += x.intercept
        return fitted

    def inner(self, x: Coefficients, y: Coefficients, y_values: Array) -> Array:
        """alpha_x'K alpha_y + rho b_x b_y, without a product: K alpha_y = F_y - b_y."""
        out: Array = np.sum(x.coef * (y_values - y.intercept), axis=0)
        out += self.intercept_precision * x.intercept * y.intercept
        return out

    def loss_gradient(self, tangent: Tangent) -> Coefficients:
        """(S, 1'S), in the inner product of `metric`."""
        return Coefficients(tangent.slope, tangent.total_slope * self.has_intercept)

    def metric(self, x: Coefficients, x_values: Array) -> Array:
        """alpha'K alpha + b^2."""
        out: Array = np.sum(x.coef * (x_values - x.intercept), axis=0)
        out += x.intercept**2
        return out

    def shrink(self, x: Coefficients, step: Array) -> Coefficients:
        """alpha / (1 + step),  b / (1 + step rho)."""
        return Coefficients(
            x.coef / (1.0 + step), x.intercept / (1.0 + step * self.intercept_precision)
        )

    def residual(self, x: Coefficients, tangent: Tangent) -> Array:
        """max_i |alpha_i + S_i| / W_i, and |1'S + rho b| / sum W.

        In units of a loss's slope: a point counted twice is a point of weight two.
        """
        off = np.abs(x.coef + tangent.slope)
        off /= self._units
        out: Array = off.max(axis=0)
        if self.has_intercept:
            of_intercept = self.intercept_residual(x, tangent.total_slope)
            out = np.maximum(out, of_intercept)
        return out

    @cached_property
    def _units(self) -> Array:
        """Weights, with ones for the points that have none."""
        return np.where(self.weights > 0, self.weights, 1.0)

    def rounding(self, x: Coefficients) -> float:
        """|alpha| times the rounding error of an entry of K; 0 in double precision."""
        if self.gram.dtype == np.float64:
            return 0.0
        size = float(np.sqrt(np.max(np.sum(x.coef**2, axis=0))))
        return size * self.kernel.rounding(self.X)

    def on_own_rows(self, column: int) -> tuple[Array, KernelMachine]:
        """Return the rows of positive weight of one column, and its machine on them."""
        rows = np.flatnonzero(self.weights[:, column])
        own = replace(
            self,
            labels=self.labels[rows, column : column + 1],
            weights=self.weights[rows, column : column + 1],
            X=self.X[rows],
            gram=self.gram[np.ix_(rows, rows)],
        )
        return rows, own

    def linearize(self, tangent: Tangent) -> KernelLinearization:
        """Return the systems on the active set, the points of positive curvature."""
        return KernelLinearization(self, tangent)

    def along(
        self, x: Coefficients, tangent: Tangent, d: Coefficients, d_values: Array
    ) -> Parabola:
        """The four numbers of a column in one compiled pass over its entries."""
        at_x = x.coef, x.intercept, tangent.fitted, tangent.slope
        of_d = d.coef, d.intercept, d_values, self.intercept_precision
        out = np.empty((4, self.n_columns))
        # In one memory layout: numba compiles `along` once for each.
        along(*map(np.ascontiguousarray, (*at_x, *of_d, out)))
        return Parabola(*out)

    def sensitivity(
        self, x: Coefficients, tangent: Tangent, adjoint: Adjoint, cotangent: Array
    ) -> Sensitivity:
        """The Gram matrix enters by <U alpha', dK>, U the adjoint function.

        This is Klatzer 2014, (3.11) to (3.13), for the same H. With the multiplier l of
        (3.5), lambda = -c K l on training points. U is (K alpha - eta) / L on held-out
        points, which is (3.12), and diag(loss'') K l on training points, which is the
        last term of (3.13). Its first two cancel, since c alpha + loss' = 0, (3.9). For
        c, alpha'K l of (3.8) and (3.10) is -lambda'alpha / c.
        """
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

    def weighted_kernel_gradient(self, omega: Array) -> Array:
        """<omega, dK> by the kernel's parameters; omega : (n, n)."""
        weights = Factors.of_weights(omega.astype(self.gram.dtype, copy=False))
        return self.kernel.pullback(self.X, None, self.gram, weights).theta


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
        machine, tangent = self.machine, self.tangent
        lacking = -(x.coef + tangent.slope)
        total = -tangent.total_slope - machine.intercept_precision * x.intercept
        g = product(machine.gram, lacking)
        v, mu = self._solve(g, total, refined=False)
        return Coefficients(lacking - v, -mu)

    def adjoint(self, cotangent: Array) -> Adjoint:
        """U = P - D lambda,  lambda = K U - mu,  1'U = -rho mu."""
        gram = self.machine.gram
        g, total = product(gram, cotangent), cotangent.sum(axis=0)
        v, mu = self._solve(g, total, refined=True)
        U = cotangent - v
        pull = None if self.machine.loss.twice_differentiable else v
        return Adjoint(Coefficients(U, -mu), product(gram, U) - mu, pull)

    def leverages(self, where: Array) -> KernelLeverages:
        """G_ii and 1 - D_i G_ii, column by column; see `kernel_column`."""
        machine, D = self.machine, self.tangent.curvature
        own, rest = np.zeros(where.shape), np.ones(where.shape)

        def column(k: int) -> KernelColumn:
            asked = np.flatnonzero(where[:, k])
            rho = machine.intercept_precision[k] if machine.has_intercept else None
            found, own[asked, k], rest[asked, k] = kernel_column(
                machine.gram, D[:, k], asked, rho
            )
            return found

        large = len(where) >= PARALLEL_ROWS
        columns = in_threads(column, range(machine.n_columns), worthwhile=large)
        gradient = machine.weighted_kernel_gradient
        return KernelLeverages(own, rest, machine, columns, gradient)

    def _solve(self, g: Array, total: Array, *, refined: bool) -> tuple[Array, Array]:
        machine = self.machine
        if machine.loss.twice_differentiable and self._is_direct():
            with suppress(np.linalg.LinAlgError):
                systems = ColumnSystems(
                    np.ascontiguousarray(self.tangent.curvature),
                    np.ascontiguousarray(g),
                    total,
                    machine.intercept_precision,
                    machine.has_intercept,
                )
                return solve_columns(machine.gram, systems, refined=refined)
        return self._solve_one_by_one(g, total)

    def _is_direct(self) -> bool:
        """Whether no active set is too large for a factor."""
        D, limit = self.tangent.curvature, self.machine.direct_limit
        return len(D) <= limit or int(np.count_nonzero(D, axis=0).max()) <= limit

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
        """Exact losses: write to v and return mu (`hinge_adjoint`)."""
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
    out: Array,
) -> None:
    """Write the fields of `Parabola` to the rows of `out`, in one pass."""
    n, q = F.shape
    for k in range(q):
        # Named once: every access to an array takes time to compile.
        shift, move, precision = b[k], d_b[k], rho[k]
        linear = quadratic = start = size = 0.0
        for i in range(n):
            a, f, s, v = alpha[i, k], F[i, k], S[i, k], d_F[i, k]
            change = a * (v - move)
            linear += change
            quadratic += d_alpha[i, k] * (v - move)
            start += change + s * v
            size += a * (f - shift) + abs(s * f)
        pull = precision * shift
        out[0, k] = linear + pull * move
        out[1, k] = quadratic + precision * move * move
        out[2, k] = start + pull * move
        out[3, k] = size + pull * shift
