"""Linear systems of a kernel machine's columns, each on its own active set.

With t = sqrt(D) on the active set, the points of positive curvature D, every column
solves

    (I + t K t) z + mu t = t g,    t'z - rho mu = total,

which is symmetric positive definite. The result is v = t z, and mu. For the solution t
is scaled so that I + t K t has a unit diagonal.
"""

from __future__ import annotations

import numpy as np
from sklearn.utils import gen_batches

from bisvm.core.compiling import njit
from bisvm.core.lapack import factorize, solve_factorized
from bisvm.core.threads import in_threads
from bisvm.core.types import Array

# Active points up to which one compiled call solves all columns. For larger systems
# LAPACK's blocked factorisation is faster than the calls cost.
SMALL = 200
# Active points from which on columns are solved in parallel: smaller systems take less
# time than it takes to start a thread.
PARALLEL = 300
# Rows that are converted to double precision at a time: they stay in the cache.
CONVERTED = 64


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
    """Return v and mu of every column; the module's docstring has the formula.

    Parameters
    ----------
    gram : array of shape (n, n)
        K, in single or double precision.
    D, g : arrays of shape (n, q)
    total, rho : arrays of shape (q,)
    bordered : bool
        Whether there is an intercept; mu is 0 without.
    refined : bool
        In single precision: whether the result is as good as K is, or as good as its
        factor.

    Raises
    ------
    LinAlgError
        If a matrix is not positive definite, by rounding errors.
    """
    sizes = np.count_nonzero(D, axis=0)
    largest = int(sizes.max(initial=0))
    v, mu = np.zeros(D.shape), np.zeros(len(rho))
    if largest <= SMALL and gram.dtype == np.float64:
        room = np.empty((largest, largest)), np.empty((3, largest))
        order = np.empty(largest, dtype=np.intp)
        if not solve_small(gram, D, g, total, rho, bordered, *room, order, v, mu):
            raise np.linalg.LinAlgError("matrix is not positive definite")
        return v, mu

    def solve(alike: list[int]) -> None:
        active, t, z = solve_active(gram, D[:, alike[0]], g[:, alike], refined=refined)
        pull, of_t = z @ t, z[-1]
        for k, own, along in zip(alike, z, pull, strict=False):
            if bordered:
                mu[k] = (along - total[k]) / (pull[-1] + rho[k])
            v[active, k] = t * (own - mu[k] * of_t)

    in_threads(solve, equal_columns(D), worthwhile=largest >= PARALLEL)
    return v, mu


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
    for rows in gen_batches(len(Q), CONVERTED):
        below = np.tril(Q[rows, : rows.stop].astype(float), rows.start - 1)
        out[:, rows] += vectors[:, : rows.stop] @ below.T
        out[:, : rows.stop] += vectors[:, rows] @ below
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
        for i in range(m):
            row, own = gram[active[i]], Q[i]
            for j in range(i):
                other, along = Q[j], 0.0
                for h in range(j):
                    along += own[h] * other[h]
                own[j] = (t[i] * t[j] * row[active[j]] - along) / other[j]
            pivot, along_g, along_t = 1.0, 0.0, 0.0
            for h in range(i):
                entry = Q[i, h]
                pivot -= entry * entry
                along_g += entry * of_g[h]
                along_t += entry * of_t[h]
            if not pivot > 0.0:
                return False
            Q[i, i] = pivot**0.5
            of_g[i] = (of_g[i] - along_g) / Q[i, i]
            of_t[i] = (of_t[i] - along_t) / Q[i, i]
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
