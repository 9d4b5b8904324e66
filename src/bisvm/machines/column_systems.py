"""Linear systems of a kernel machine's columns, each on its own active set.

With t = sqrt(D) on the active set, the points of positive curvature D, every column
solves

    (I + t K t) z + mu t = t g,    t'z - rho mu = total,

which is symmetric positive definite. The result is v = t z, and mu. For the solution t
is scaled so that I + t K t has a unit diagonal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bisvm.core.compiling import njit
from bisvm.core.lapack import factorize, solve_factorized
from bisvm.core.threads import batches, in_threads
from bisvm.core.types import Array
from bisvm.machines.base import column_dots
from bisvm.machines.linear import conjugate_gradients

# Active points up to which one compiled call solves all columns. For larger systems
# LAPACK's blocked factorisation is faster than the calls cost.
SMALL = 200
# Active points from which on columns are solved in parallel: smaller systems take less
# time than it takes to start a thread.
PARALLEL = 300
# Time of an operation in a product with K beside one in a factorisation: the former
# waits for memory.
PRODUCT_COST = 3.0
# Products with K are tried if a factorisation takes as long as this many of them. The
# first few must reduce the residual to FIRST_RTOL for more to be taken.
ENOUGH_PRODUCTS, FEW_PRODUCTS, FIRST_RTOL = 60, 15, 0.1
# Relative residuals: of a direction, which the next step corrects, and of an adjoint.
DIRECTION_RTOL, SINGLE_RTOL, EXACT_RTOL = 1e-3, 1e-6, 1e-10
# Rows that are converted to double precision at a time: they stay in the cache.
CONVERTED = 64
# Rows from which on products with the Gram matrix are divided, and those of a part:
# they are the same for any number of threads, as sums depend on how they are divided.
PARALLEL_ROWS = 1000
PRODUCT_ROWS = 500


class ColumnSystems(NamedTuple):
    """The systems of q columns, for any Gram matrix.

    D, g : (n, q), contiguous
    total, rho : (q,)
    bordered : whether there is an intercept; mu is 0 without
    """

    D: Array
    g: Array
    total: Array
    rho: Array
    bordered: bool


def solve_columns(
    gram: Array, systems: ColumnSystems, *, refined: bool = True
) -> tuple[Array, Array]:
    """Return v and mu of every column; the module's docstring has the formula.

    Parameters
    ----------
    gram : array of shape (n, n)
        K, in single or double precision.
    systems : ColumnSystems
    refined : bool
        In single precision: whether the result is as good as K is, or as good as its
        factor.

    Raises
    ------
    LinAlgError
        If a matrix is not positive definite, by rounding errors.
    """
    D, g, total, rho, bordered = systems
    sizes = np.count_nonzero(D, axis=0)
    largest = int(sizes.max(initial=0))
    v, mu = np.zeros(D.shape), np.zeros(len(rho))
    if largest <= SMALL:
        room = np.empty((largest, largest)), np.empty((3, largest))
        order = np.empty(largest, dtype=np.intp)
        if not solve_small(gram, *systems, *room, order, v, mu):
            raise np.linalg.LinAlgError("matrix is not positive definite")
        return v, mu

    patience = affordable_products(sizes, len(gram))
    if patience >= ENOUGH_PRODUCTS:
        found = by_products(gram, systems, refined, patience)
        if found is not None:
            return found

    def solve(alike: list[int]) -> None:
        active, t, z = solve_active(gram, D[:, alike[0]], g[:, alike], refined=refined)
        pull, of_t = z @ t, z[-1]
        for k, own, along in zip(alike, z, pull, strict=False):
            if bordered:
                mu[k] = (along - total[k]) / (pull[-1] + rho[k])
            v[active, k] = t * (own - mu[k] * of_t)

    in_threads(solve, equal_columns(D), worthwhile=largest >= PARALLEL)
    return v, mu


def affordable_products(sizes: Array, n: int) -> int:
    """Return how many products with K take as long as the factors of all columns.

    Factors take m^3 / 3 operations, a product with two vectors for each column 4 n^2.
    """
    factors = float(np.sum(sizes.astype(float) ** 3)) / 3.0
    return int(factors / (PRODUCT_COST * 4.0 * len(sizes) * float(n) ** 2))


def by_products(
    gram: Array, systems: ColumnSystems, refined: bool, patience: int
) -> tuple[Array, Array] | None:
    """Solve by conjugate gradients; None if that takes more products than `patience`.

    One product with K serves all columns. With a small C the matrices I + t K t are
    well-conditioned, however many points are active.
    """
    D, g, total, rho, bordered = systems
    q = len(rho)
    t = np.sqrt(D / (1.0 + D * np.diagonal(gram)[:, None]))
    scale = np.hstack([t, t])
    rest = np.hstack([1.0 - t**2 * np.diagonal(gram)[:, None]] * 2)

    def action(Z: Array, columns: Array) -> Array:
        own = scale[:, columns]
        image: Array = own * product(gram, own * Z)
        image += rest[:, columns] * Z
        return image

    rhs = np.hstack([t * g, t])
    ones = np.ones_like(rhs)
    rtol = DIRECTION_RTOL
    if refined:
        rtol = EXACT_RTOL if gram.dtype == np.float64 else SINGLE_RTOL
    z = np.zeros_like(rhs)
    for few, part in ((FEW_PRODUCTS, FIRST_RTOL), (patience, rtol / FIRST_RTOL)):
        left = rhs - action(z, np.arange(2 * q)) if z.any() else rhs
        more, given_up = conjugate_gradients(
            action, left, ones, part, np.full(2 * q, float(few))
        )
        if len(given_up):
            return None
        z += more
    of_g, of_t = z[:, :q], z[:, q:]
    mu = np.zeros(q)
    if bordered:
        mu = (column_dots(t, of_g) - total) / (column_dots(t, of_t) + rho)
    return t * (of_g - mu * of_t), mu


def equal_columns(D: Array) -> list[list[int]]:
    """Numbers of the columns, those that are equal together.

    Where a cold start begins, all classes have the same curvature: one factor serves
    them all.
    """
    found: dict[bytes, list[int]] = {}
    for k, column in enumerate(np.ascontiguousarray(D.T)):
        found.setdefault(column.tobytes(), []).append(k)
    return list(found.values())


def solve_active(
    gram: Array, D: Array, g: Array, *, refined: bool
) -> tuple[Array, Array, Array]:
    """Solve for the columns of g, which have the same active set.

    Returns
    -------
    active : array of shape (m,)
    t : array of shape (m,)
    z : array of shape (q + 1, m)
        The solutions for t g, and for t in the last row.
    """
    active = np.flatnonzero(D)
    curvature = D[active]
    t = np.sqrt(curvature / (1.0 + curvature * np.diagonal(gram)[active]))
    Q = np.empty((len(active), len(active)), dtype=gram.dtype)
    scaled_block(gram, active, t.astype(gram.dtype), Q)
    if len(active) <= SMALL:
        Q = Q.astype(float, copy=False)
    dtype = Q.dtype
    rhs = np.vstack([(t[:, None] * g[active]).T, t])
    z = rhs.astype(dtype, order="C")
    factorize(Q)
    solve_factorized(Q, z)
    if dtype == np.float64 or not refined:
        return active, t, z.astype(float, copy=False)
    left = (rhs - product_below(Q, z)).astype(dtype, order="C")
    solve_factorized(Q, left)
    return active, t, z.astype(float) + left


def product_below(Q: Array, z: Array) -> Array:
    """Q z for every row z, in double precision.

    Of Q, which has a unit diagonal, the part below it is enough.
    """
    out = z.astype(float)
    vectors = out.copy()
    for rows in batches(len(Q), CONVERTED):
        below = np.tril(Q[rows, : rows.stop].astype(float), rows.start - 1)
        out[:, rows] += vectors[:, : rows.stop] @ below.T
        out[:, : rows.stop] += vectors[:, rows] @ below
    return out


def product(gram: Array, alpha: Array) -> Array:
    """K alpha, in the precision of K."""
    right = np.ascontiguousarray(alpha, dtype=gram.dtype)
    if len(gram) < PARALLEL_ROWS:
        values: Array = gram @ right
        return values.astype(float, copy=False)
    out = np.empty(alpha.shape)

    def multiply(rows: slice) -> None:
        out[rows] = gram[rows] @ right

    in_threads(multiply, batches(len(gram), PRODUCT_ROWS))
    return out


@njit(cache=True, nogil=True)
def scaled_block(gram: Array, active: Array, t: Array, Q: Array) -> None:
    """Write t K t on the active set, with ones on its diagonal, to Q."""
    m = len(active)
    for i in range(m):
        row = gram[active[i]]
        for j in range(m):
            Q[i, j] = t[i] * t[j] * row[active[j]]
        Q[i, i] = 1.0


# Plain loops and no function of NumPy: compiled in a third of the time.
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def solve_small(
    gram: Array,
    D: Array,
    g: Array,
    total: Array,
    rho: Array,
    bordered: bool,
    Q: Array,
    vectors: Array,
    active: Array,
    v: Array,
    mu: Array,
) -> bool:
    """Write v and mu of every column; False if a matrix is not positive definite.

    Q (m, m), vectors (3, m) and active (m,) are room for the largest active set.
    """
    n, q = D.shape
    t, of_g, of_t = vectors[0], vectors[1], vectors[2]
    for k in range(q):
        m = 0
        for i in range(n):
            if D[i, k] > 0.0:
                active[m] = i
                m += 1
        for i in range(m):
            d = D[active[i], k]
            t[i] = (d / (1.0 + d * gram[active[i], active[i]])) ** 0.5
            of_g[i], of_t[i] = t[i] * g[active[i], k], t[i]
        for j in range(m):
            own = Q[j]
            pivot, along_g, along_t = 1.0, 0.0, 0.0
            for h in range(j):
                entry = own[h]
                pivot -= entry * entry
                along_g += entry * of_g[h]
                along_t += entry * of_t[h]
            if not pivot > 0.0:
                return False
            own[j] = pivot**0.5
            of_g[j] = (of_g[j] - along_g) / own[j]
            of_t[j] = (of_t[j] - along_t) / own[j]
            # Entries of one column of the factor do not wait for one another, as those
            # of one row would.
            for i in range(j + 1, m):
                other, along = Q[i], 0.0
                for h in range(j):
                    along += other[h] * own[h]
                entry = t[i] * t[j] * gram[active[i], active[j]]
                other[j] = (entry - along) / own[j]
        for i in range(m - 1, -1, -1):
            at_g, at_t = of_g[i] / Q[i, i], of_t[i] / Q[i, i]
            of_g[i], of_t[i] = at_g, at_t
            for h in range(i):
                of_g[h] -= Q[i, h] * at_g
                of_t[h] -= Q[i, h] * at_t
        if bordered:
            pull_g, pull_t = 0.0, 0.0
            for i in range(m):
                pull_g += t[i] * of_g[i]
                pull_t += t[i] * of_t[i]
            mu[k] = (pull_g - total[k]) / (pull_t + rho[k])
        for i in range(m):
            v[active[i], k] = t[i] * (of_g[i] - mu[k] * of_t[i])
    return True
