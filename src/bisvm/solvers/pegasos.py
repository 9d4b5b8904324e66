"""Pegasos: stochastic subgradient steps for the linear SVM with the hinge."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


def pegasos(
    X: np.ndarray,
    y: np.ndarray,
    lam: float,
    n_iter: int = 100_000,
    projection: bool = True,
    seed: int = 0,
    *,
    average: bool = False,
    intercept: str = "free",
    sample_weight: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    r"""Minimise lam/2 |w|^2 + (1/N) sum_i max(0, 1 - y_i (w'x_i + b)).

    At step t = 1, 2, ... one point i is drawn, with replacement, and with
    eta = 1 / (lam t)::

        w <- (1 - eta lam) w + eta y_i x_i [y_i (w'x_i + b) < 1]
        b <- b + min(eta, 1 / sqrt(t)) y_i [y_i (w'x_i + b) < 1]
        w <- min(1, 1 / (sqrt(lam) |w|)) w          with the projection

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,), +1 or -1
    lam : float
        Strength of the regulariser; C = 1 / (lam n) in scikit-learn's terms.
    n_iter : int
        Number of steps; the excess of the objective is of order 1 / (lam n_iter).
    projection : bool
        Whether w is brought back into the ball |w| <= 1 / sqrt(lam), which holds the
        optimum.
    seed : int
        Draws the points. One seed, one answer.
    average : bool
        Return the mean of the iterates of the second half, in place of the last one,
        which is what the original returns.
    intercept : {"free", "penalized", "none"}
        A free intercept is not penalised, so E is not strongly convex in it: it
        follows its subgradients, as in section 6 of the paper, but with steps for
        such functions. With those of w, which begin at 1 / lam, it is thrown so far
        off at first that a million steps may not bring it back. It plays no part in
        the projection. A penalised one is the weight of a constant feature.
    sample_weight : array of shape (n,), optional
        Points are drawn in proportion to it: the mean of E is a weighted one.

    Returns
    -------
    w : array of shape (d,)
    b : float

    References
    ----------
    S. Shalev-Shwartz, Y. Singer, N. Srebro, A. Cotter, Pegasos: primal estimated
    sub-gradient solver for SVM, Mathematical Programming 127, 2011, pp. 3-30, figure 1.
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    y = np.ascontiguousarray(y, dtype=np.float64)
    _check(X, y, lam, n_iter, intercept)
    order = draws(len(y), n_iter, seed, sample_weight)
    if intercept == "penalized":
        X = np.column_stack([X, np.ones(len(X))])
    free = intercept == "free"
    w, b = pegasos_steps(X, y, float(lam), order, bool(projection), free, average)
    return (w[:-1], float(w[-1])) if intercept == "penalized" else (w, float(b))


def draws(
    n: int, n_iter: int, seed: int, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    """The points that the steps take, drawn beforehand."""
    rng = np.random.default_rng(seed)
    if sample_weight is None:
        return rng.integers(n, size=n_iter)
    heights = np.cumsum(sample_weight)
    places = np.searchsorted(heights, rng.random(n_iter) * heights[-1], side="right")
    return np.minimum(places, n - 1)


@njit(cache=True, nogil=True)
def pegasos_steps(X, y, lam, order, projection, free, average):
    """The steps of `pegasos` on the points in `order`.

    w = scale * direction, so that the shrinking of a step costs one multiplication and
    only points inside the margin cost a pass over w. |w|^2 is kept up along the way.
    """
    d, n_iter = X.shape[1], len(order)
    direction, scale, squared, b = np.zeros(d), 1.0, 0.0, 0.0
    mean, mean_b, first = np.zeros(d), 0.0, n_iter // 2
    for step in range(n_iter):
        i, t = order[step], step + 1.0
        eta = 1.0 / (lam * t)
        product = 0.0
        for j in range(d):
            product += direction[j] * X[i, j]
        product *= scale
        inside = y[i] * (product + b) < 1.0
        if t == 1.0:
            # The first step forgets w altogether; a scale of zero could not come back.
            direction[:] = 0.0
            scale, squared, product = 1.0, 0.0, 0.0
        else:
            shrink = 1.0 - 1.0 / t
            scale, squared, product = (
                scale * shrink,
                squared * shrink * shrink,
                product * shrink,
            )
        if inside:
            size = 0.0
            for j in range(d):
                direction[j] += eta * y[i] * X[i, j] / scale
                size += X[i, j] * X[i, j]
            squared += 2.0 * eta * y[i] * product + eta * eta * size
            if free:
                b += min(eta, 1.0 / math.sqrt(t)) * y[i]
        if projection and lam * squared > 1.0:
            scale /= math.sqrt(lam * squared)
            squared = 1.0 / lam
        if scale < 1e-100:
            direction *= scale
            scale = 1.0
        if average and step >= first:
            mean_b += b
            for j in range(d):
                mean[j] += scale * direction[j]
    if average:
        return mean / (n_iter - first), mean_b / (n_iter - first)
    return scale * direction, b


def _check(X: np.ndarray, y: np.ndarray, lam: float, n_iter: int, bias: str) -> None:
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(
            f"X must be a matrix and y have one entry a row; got shapes {X.shape} and "
            f"{y.shape}."
        )
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError("y must hold +1 and -1 only; map the classes to them first.")
    if not 0.0 < lam < math.inf:
        raise ValueError(f"lam must be a positive, finite number; got {lam!r}.")
    if n_iter < 1:
        raise ValueError(f"n_iter must be an integer of at least 1; got {n_iter!r}.")
    if bias not in ("free", "penalized", "none"):
        raise ValueError(
            f"intercept={bias!r} is not known; expected 'free', 'penalized' or 'none'."
        )
