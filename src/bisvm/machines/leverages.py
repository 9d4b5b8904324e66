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
    """One column: active points A, their curvatures, points J, and H^-1."""

    active: Array
    D: Array
    asked: Array
    inverse: Array


@dataclass(frozen=True)
class BorderedRows:
    """Rows of X, with a one at their end if there is an intercept; dense, in blocks."""

    X: Matrix
    bordered: bool

    def blocks(self, rows: Array) -> Iterator[tuple[slice, Array]]:
        """Yield the places of each block among these rows, and the block."""
        for first in range(0, len(rows), ROWS):
            part = slice(first, first + ROWS)
            block = dense(self.X[rows[part]])
            ones = np.ones((len(block), int(self.bordered)))
            yield part, np.hstack([block, ones])

    def dots(self, rows: Array, Q: Array) -> Array:
        """x_i'Q x_i for these rows."""
        out = np.empty(len(rows))
        for part, block in self.blocks(rows):
            out[part] = np.einsum("id,id->i", block @ Q, block)
        return out

    def products(self, rows: Array, Q: Array) -> Array:
        """X Q for these rows."""
        out = np.empty((len(rows), len(Q)))
        for part, block in self.blocks(rows):
            out[part] = block @ Q
        return out

    def square(self, rows: Array, w: Array) -> Array:
        """X' diag(w) X over these rows, whatever the signs of w."""
        parts = (block.T @ (w[part, None] * block) for part, block in self.blocks(rows))
        size = self.X.shape[1] + int(self.bordered)
        return sum(parts, np.zeros((size, size)))


class ByHessian(Protocol):
    """The part of a linear machine's sensitivity that is not in D.

    Q : (d, d), minus the derivative by R, without the intercept
    by_features : makes the derivative by X at fixed R and D, (n, d)
    """

    def __call__(self, Q: Array, by_features: Callable[[], Array]) -> Sensitivity: ...


@dataclass(frozen=True)
class LinearLeverages(Leverages):
    """G = X H^-1 X' of a linear machine, column by column.

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
        total, every = np.zeros((d, d)), []
        for k, (active, _, asked, inverse) in enumerate(self.columns):
            w = weights[asked, k]
            Q = inverse @ self.rows.square(asked, w) @ inverse
            by_curvature[active, k] = -self.rows.dots(active, Q)
            total += Q[:d, :d]
            every.append((w, Q))
            if self.rows.bordered:
                by_precision[k] = -Q[d, d]
        by_weights, intercept = by_intercept(self.machine, by_precision)
        rest = Sensitivity(by_weights, intercept_precision=intercept)
        return by_curvature, rest + self.by_hessian(
            total, lambda: self._by_features(every)
        )

    def _by_features(self, every: Sequence[tuple[Array, Array]]) -> Array:
        """2 (diag(w) X H^-1 - D X Q), summed over the columns, without intercept."""
        n, d = self.rows.X.shape
        out = np.zeros((n, d))
        for column, (w, Q) in zip(self.columns, every, strict=True):
            active, D, asked, inverse = column
            of_asked = self.rows.products(asked, inverse)[:, :d]
            of_active = self.rows.products(active, Q)[:, :d]
            out[asked] += 2.0 * w[:, None] * of_asked
            out[active] -= 2.0 * D[:, None] * of_active
        return out
