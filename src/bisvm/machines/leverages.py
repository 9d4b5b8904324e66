"""Leverages of the rows of kernel machines and of linear machines.

G = (K^-1 + D)^-1 is how fitted values react to the slopes of the losses. A linear
machine has G = X H^-1 X' with its Hessian H = R + X'D X. In both cases an intercept
borders the system. For weights w on the diagonal of G, and V = I - D G,

    sum_i w_i dG_ii = <V diag(w) V', dK> - sum_j (sum_i w_i G_ij^2) dD_j.

Of G only the entries between active points A (D > 0) and the points J that are asked
for are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import blas, lapack

from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import dense
from bisvm.machines.base import INTERCEPT_RIDGE, Leverages, Machine, Sensitivity

# Differentiates <Omega, K> by the kernel's parameters, for weights Omega (n, n).
OfWeights = Callable[[Array], Array]
# Rows of a linear machine that are made dense at a time.
ROWS = 2000


class Border(NamedTuple):
    """What an intercept adds to a column: G = G_0 + p p' / pivot."""

    p: Array
    pivot: float

    def by_precision(self, w: Array) -> float:
        """sum_i w_i dG_ii / d rho = -sum_i w_i (p_i / pivot)^2."""
        return -float(w @ (self.p / self.pivot) ** 2)


def by_intercept(machine: Machine, by_precision: Array) -> tuple[Array, float]:
    """Return derivatives by log W and by log rho, from those by rho of all columns.

    The precision of a free intercept is a tiny share of the sum of the weights.
    """
    if machine.intercept == "penalized":
        rho = machine.intercept_precision
        return np.zeros_like(machine.weights), float(rho @ by_precision)
    ridge = INTERCEPT_RIDGE if machine.intercept == "free" else 0.0
    return ridge * by_precision * machine.weights, 0.0


# --- kernel machines ------------------------------------------------------------------


class KernelColumn(NamedTuple):
    """One column: active points A, points J, t = sqrt(D) and t G on A x J."""

    active: Array
    asked: Array
    t: Array
    tG: Array
    border: Border | None

    def by_curvature(self, w: Array) -> Array:
        """-sum_i w_i G_ij^2 for active points j."""
        out: Array = -(self.tG**2 @ w) / self.t**2
        return out

    def add_weights(self, w: Array, out: Array) -> None:
        """Add V diag(w) V' to out (n, n); V = E_J - D_A G_AJ.

        Gram matrices are symmetric: what belongs to J x A is added at A x J.
        """
        A, J = self.active, self.asked
        DG = self.t[:, None] * self.tG
        weighted = DG * w
        out[J, J] += w
        out[np.ix_(A, J)] -= 2.0 * weighted
        out[np.ix_(A, A)] += weighted @ DG.T


def kernel_column(
    gram: Array, D: Array, asked: Array, rho: float | None
) -> tuple[KernelColumn, Array, Array]:
    """Return one column, with G_ii and 1 - D_i G_ii at the points J.

    With M = I + t K_AA t and p = 1 - K_A t M^-1 t, where rho is the precision of the
    intercept, or None without one,

        t G_A   = M^-1 t K_A + (M^-1 t) p' / pivot,    pivot = rho + t'M^-1 t,
        1 - D G = diag(M^-1) - (M^-1 t)^2 / pivot      on the active points,

    which loses no digits where D G is close to one.
    """
    active = np.flatnonzero(D)
    t = np.sqrt(D[active])
    inverse = inverse_factor(gram[np.ix_(active, active)].astype(float), t)
    # K is symmetric: so its block is in the memory order of BLAS.
    tK = t[:, None] * gram[np.ix_(asked, active)].T.astype(float)
    Z = triangular_product(inverse, tK)
    own = np.diagonal(gram)[asked].astype(float) - np.einsum("ij,ij->j", Z, Z)
    tG = triangular_product(inverse, Z, transposed=True)
    rest_A, border = np.einsum("ij,ij->j", inverse, inverse), None
    if rho is not None:
        of_t = inverse @ t
        h, pivot = inverse.T @ of_t, rho + float(of_t @ of_t)
        border = Border(1.0 - of_t @ Z, pivot)
        own += border.p**2 / pivot
        tG += np.outer(h, border.p / pivot)
        rest_A -= h**2 / pivot
    rest = np.ones(len(D))
    rest[active] = rest_A
    return KernelColumn(active, asked, t, tG, border), own, rest[asked]


def triangular_product(L: Array, B: Array, *, transposed: bool = False) -> Array:
    """L B, or L'B, for a lower triangular L: half the work of a full product."""
    if not L.size or not B.size:
        return B
    product: Array = blas.dtrmm(1.0, L, B, lower=1, trans_a=int(transposed))
    return product


def inverse_factor(block: Array, t: Array) -> Array:
    """L^-1 for I + t K t = L L'; overwrites K."""
    if not len(t):
        return block
    block *= t[:, None]
    block *= t
    block.flat[:: len(t) + 1] += 1.0
    # The transpose of a symmetric matrix is the same one, in LAPACK's memory order.
    factor, info = lapack.dpotrf(block.T, lower=1, clean=1, overwrite_a=1)
    if info == 0:
        factor, info = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    if info != 0:
        raise np.linalg.LinAlgError("matrix is not positive definite")
    return np.asarray(factor)


@dataclass(frozen=True)
class KernelLeverages(Leverages):
    """Those of a kernel machine, column by column."""

    machine: Machine
    columns: Sequence[KernelColumn]
    kernel_gradient: OfWeights

    def pullback(self, weights: Array) -> tuple[Array, Sensitivity]:
        by_curvature = np.zeros(weights.shape)
        by_precision = np.zeros(weights.shape[1])
        omega = np.zeros((len(weights), len(weights)))
        for k, column in enumerate(self.columns):
            w = weights[column.asked, k]
            by_curvature[column.active, k] = column.by_curvature(w)
            column.add_weights(w, omega)
            if column.border is not None:
                by_precision[k] = column.border.by_precision(w)
        by_weights, intercept = by_intercept(self.machine, by_precision)
        return by_curvature, Sensitivity(
            by_weights,
            intercept_precision=intercept,
            kernel=self.kernel_gradient(omega),
        )


# --- linear machines ------------------------------------------------------------------


class LinearColumn(NamedTuple):
    """One column: active points A, their curvatures, points J, and the Hessian.

    H = L L' after rows and columns are scaled: `factor` and `scale`. Whitened rows
    z = L^-1 x lose fewer digits than H^-1, which landmarks make nearly singular.
    """

    active: Array
    D: Array
    asked: Array
    factor: Array
    scale: Array

    def whitened(self, rows: Array) -> Array:
        """x L'^-1 for every row x."""
        given = np.asfortranarray((rows * self.scale).T)
        return np.asarray(lapack.dtrtrs(self.factor, given, lower=1)[0].T)

    def unwhitened(self, rows: Array) -> Array:
        """z L^-1 for every row z: of whitened rows x H^-1."""
        given = np.asfortranarray(rows.T)
        found = lapack.dtrtrs(self.factor, given, lower=1, trans=1)[0].T
        return np.asarray(found * self.scale)


@dataclass(frozen=True)
class BorderedRows:
    """Rows of X, with a one at their end if there is an intercept; dense, in blocks."""

    X: Matrix
    bordered: bool

    def whitened(
        self, rows: Array, column: LinearColumn
    ) -> Iterator[tuple[slice, Array]]:
        """Yield the places of each block among these rows, and the whitened block."""
        for first in range(0, len(rows), ROWS):
            part = slice(first, first + ROWS)
            block = dense(self.X[rows[part]])
            ones = np.ones((len(block), int(self.bordered)))
            yield part, column.whitened(np.hstack([block, ones]))

    def leverages(self, column: LinearColumn) -> Array:
        """G_ii = |z_i|^2 of the points J."""
        out = np.empty(len(column.asked))
        for part, Z in self.whitened(column.asked, column):
            out[part] = np.einsum("id,id->i", Z, Z)
        return out

    def square(self, w: Array, column: LinearColumn) -> Array:
        """B = Z' diag(w) Z over the points J, whatever the signs of w."""
        B = np.zeros((len(column.scale), len(column.scale)))
        for part, Z in self.whitened(column.asked, column):
            B += Z.T @ (w[part, None] * Z)
        return B

    def dots(self, B: Array, column: LinearColumn) -> Array:
        """z_j'B z_j of the active points."""
        out = np.empty(len(column.active))
        for part, Z in self.whitened(column.active, column):
            out[part] = np.einsum("id,id->i", Z @ B, Z)
        return out

    def add_by_features(
        self, w: Array, B: Array, column: LinearColumn, out: Array
    ) -> None:
        """Add 2 (diag(w) Z - D Z B) L^-1 to out (n, d), without the intercept."""
        d = out.shape[1]
        for part, Z in self.whitened(column.asked, column):
            own = column.unwhitened(2.0 * w[part, None] * Z)
            out[column.asked[part]] += own[:, :d]
        for part, Z in self.whitened(column.active, column):
            own = column.unwhitened(2.0 * column.D[part, None] * (Z @ B))
            out[column.active[part]] -= own[:, :d]


class ByHessian(Protocol):
    """The part of a linear machine's sensitivity that is not in D.

    Q : (d, d), minus the derivative by R, without the intercept
    by_features : makes the derivative by X at fixed R and D, (n, d)
    """

    def __call__(self, Q: Array, by_features: Callable[[], Array]) -> Sensitivity: ...


@dataclass(frozen=True)
class LinearLeverages(Leverages):
    """G = X H^-1 X' = Z Z' of a linear machine, column by column.

    With Q = H^-1 X' diag(w) X H^-1 and dH = dR + X' dD X + ..., at fixed X

        sum_i w_i dG_ii = -<Q, dR> - sum_j x_j'Q x_j dD_j,

    and the derivative by X is 2 (diag(w) X H^-1 - D X Q).
    """

    machine: Machine
    rows: BorderedRows
    columns: Sequence[LinearColumn]
    by_hessian: ByHessian

    def pullback(self, weights: Array) -> tuple[Array, Sensitivity]:
        by_curvature = np.zeros(weights.shape)
        by_precision = np.zeros(weights.shape[1])
        d = self.rows.X.shape[1]
        total, squares = np.zeros((d, d)), []
        for k, column in enumerate(self.columns):
            B = self.rows.square(weights[column.asked, k], column)
            by_curvature[column.active, k] = -self.rows.dots(B, column)
            Q = column.unwhitened(column.unwhitened(B).T)
            total += Q[:d, :d]
            squares.append(B)
            if self.rows.bordered:
                by_precision[k] = -Q[d, d]
        by_weights, intercept = by_intercept(self.machine, by_precision)
        rest = Sensitivity(by_weights, intercept_precision=intercept)
        return by_curvature, rest + self.by_hessian(
            total, lambda: self._by_features(weights, squares)
        )

    def _by_features(self, weights: Array, squares: Sequence[Array]) -> Array:
        """2 (diag(w) X H^-1 - D X Q), summed over the columns, without intercept."""
        out = np.zeros(self.rows.X.shape)
        for k, (column, B) in enumerate(zip(self.columns, squares, strict=True)):
            self.rows.add_by_features(weights[column.asked, k], B, column, out)
        return out
