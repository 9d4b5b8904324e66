"""Newton's method for kernel machines in one compiled pass.

On a few hundred points the steps between two linear systems cost more than the systems.
Here are the systems of `KernelLinearization`, and around them the method of
`solvers.newton`, for losses that have a compiled twin (`bisvm.losses.pointwise`). What
is rare is left to that module: an intercept that no active point holds, and matrices
that are not quite positive definite.

    F, S, D, alpha : (n, q) fitted values, slopes, curvatures, coefficients
    Y, W : (n, q) labels and weights;  b, rho : (q,) intercepts and their precisions
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy.linalg import lapack

from bisvm.losses.pointwise import Twin, losses, step_lengths

# Steps without a halving of the residual after which rounding errors are to blame, if
# it is as small as this.
PATIENCE = 8
ROUNDING = 1e-6
# Part of the greatest possible curvature that holds a free intercept in its place.
HELD = 1e-9
# Active points up to which all columns are solved in one call.
SMALL = 200


@njit(cache=True, nogil=True)
def scaled_system(
    gram: np.ndarray, D: np.ndarray, like: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
def solve_factored(columns: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
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
def subtract_product(
    rows: np.ndarray, u: np.ndarray, v: np.ndarray, at_u: np.ndarray, at_v: np.ndarray
) -> None:
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
    factor: np.ndarray,
    Q: np.ndarray,
    active: np.ndarray,
    t: np.ndarray,
    g: np.ndarray,
    total: float,
    rho: float,
    bordered: bool,
    refined: bool,
    v: np.ndarray,
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
    gram: np.ndarray,
    D: np.ndarray,
    g: np.ndarray,
    total: np.ndarray,
    rho: np.ndarray,
    bordered: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """`solve_columns` for systems that are too small for calls between them."""
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
    gram: np.ndarray,
    D: np.ndarray,
    g: np.ndarray,
    total: np.ndarray,
    rho: np.ndarray,
    bordered: bool,
    *,
    refined: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
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


def newton_points(
    gram: np.ndarray,
    F: np.ndarray,
    S: np.ndarray,
    D: np.ndarray,
    rho: np.ndarray,
    bordered: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """alpha = -S - D (f - F), 1'alpha = rho b, and the fitted values f of it."""
    alpha = -S
    change = product(gram, alpha) - F
    total = alpha.sum(axis=0)
    v, mu = solve_columns(gram, D, change, total, rho, bordered, refined=False)
    alpha -= v
    return alpha, -mu, product(gram, alpha) - mu


def product(gram: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """K alpha, in the precision of K."""
    return (gram @ alpha.astype(gram.dtype, copy=False)).astype(float, copy=False)


@njit(cache=True, nogil=True)
def residuals(
    alpha: np.ndarray,
    b: np.ndarray,
    S: np.ndarray,
    W: np.ndarray,
    rho: np.ndarray,
    bordered: bool,
) -> np.ndarray:
    """max_i |alpha_i + S_i| / W_i, and |1'S + rho b| / sum W."""
    n, q = S.shape
    out, balance, weight = np.zeros(q), np.zeros(q), np.zeros(q)
    for i in range(n):
        for k in range(q):
            off = abs(alpha[i, k] + S[i, k])
            out[k] = max(out[k], off / W[i, k] if W[i, k] > 0.0 else off)
            balance[k] += S[i, k]
            weight[k] += W[i, k]
    if bordered:
        for k in range(q):
            out[k] = max(out[k], abs(balance[k] + rho[k] * b[k]) / weight[k])
    return out


@njit(cache=True, nogil=True)
def intercepts_held(
    S: np.ndarray, D: np.ndarray, W: np.ndarray, max_curvature: float
) -> bool:
    """Whether every free intercept is held by active points, or wants to stay."""
    n, q = W.shape
    slope, curvature, weight = np.zeros(q), np.zeros(q), np.zeros(q)
    for i in range(n):
        for k in range(q):
            slope[k] += S[i, k]
            curvature[k] += D[i, k]
            weight[k] += W[i, k]
    loose = curvature <= HELD * max_curvature * weight
    return not np.any(loose & (np.abs(slope) > HELD * weight))


@njit(cache=True, nogil=True)
def advance(
    twin: Twin,
    F: np.ndarray,
    S: np.ndarray,
    Y: np.ndarray,
    W: np.ndarray,
    alpha: np.ndarray,
    b: np.ndarray,
    new_alpha: np.ndarray,
    new_b: np.ndarray,
    new_F: np.ndarray,
    rho: np.ndarray,
) -> None:
    """From (alpha, b, F) towards the new ones as far as E falls, in their place.

    The exact line search of `solvers.line_search`.
    """
    new_alpha -= alpha
    new_b -= b
    new_F -= F
    n, q = F.shape
    linear, quadratic = rho * b * new_b, rho * new_b * new_b
    slope, size = np.zeros(q), rho * b * b
    for i in range(n):
        for k in range(q):
            function = new_F[i, k] - new_b[k]
            linear[k] += alpha[i, k] * function
            quadratic[k] += new_alpha[i, k] * function
            slope[k] += S[i, k] * new_F[i, k]
            size[k] += alpha[i, k] * (F[i, k] - b[k]) + abs(S[i, k] * F[i, k])
    start = linear + slope
    target = np.maximum(0.1 * np.abs(start), 1e-14 * size)
    t = step_lengths(twin, F, new_F, Y, W, linear, quadratic, start, target)
    for i in range(n):
        for k in range(q):
            new_alpha[i, k] = alpha[i, k] + t[k] * new_alpha[i, k]
            new_F[i, k] = F[i, k] + t[k] * new_F[i, k]
    for k in range(q):
        new_b[k] = b[k] + t[k] * new_b[k]


def newton(
    gram: np.ndarray,
    twin: Twin,
    max_curvature: float,
    Y: np.ndarray,
    W: np.ndarray,
    F: np.ndarray,
    rho: np.ndarray,
    bordered: bool,
    free: bool,
    tol: float,
    max_iter: int,
) -> tuple[bool, np.ndarray, np.ndarray, int, bool]:
    """Whether all went the usual way, alpha, b, the steps of all columns, and the end.

    The first step is a full one, since F belongs to another machine. The last value
    tells whether columns are left that took `max_iter` steps.
    """
    n, q = F.shape
    F = F.copy()
    alpha, b = np.zeros((n, q)), np.zeros(q)
    best, waited = np.full(q, np.inf), np.zeros(q, dtype=int)
    todo = np.arange(q)
    iterations = 0
    for iteration in range(max_iter + 1):
        every = len(todo) == q
        y, w, f = (Y, W, F) if every else (Y[:, todo], W[:, todo], F[:, todo])
        r = rho[todo]
        _, S, D = losses(twin, f, y, w)
        if free and not intercepts_held(S, D, w, max_curvature):
            return False, alpha, b, iterations, True
        a, c, fitted = newton_points(gram, f, S, D, r, bordered)
        if iteration:
            advance(twin, f, S, y, w, alpha[:, todo], b[todo], a, c, fitted, r)
        iterations += len(todo)
        _, S, D = losses(twin, fitted, y, w)
        if free and not intercepts_held(S, D, w, max_curvature):
            return False, alpha, b, iterations, True
        residual = residuals(a, c, S, w, r, bordered)
        alpha[:, todo], F[:, todo], b[todo] = a, fitted, c
        waited[todo] = np.where(residual <= 0.5 * best[todo], 0, waited[todo] + 1)
        best[todo] = np.minimum(best[todo], residual)
        stalled = (waited[todo] >= PATIENCE) & (residual <= ROUNDING)
        todo = todo[(residual > tol) & ~stalled]
        if not len(todo):
            break
    return True, alpha, b, iterations, len(todo) > 0
