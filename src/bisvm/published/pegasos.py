"""Pegasos: stochastic subgradient steps for the linear SVM with the hinge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from bisvm.core.compiling import njit
from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import Inputs
from bisvm.machines import Machine
from bisvm.solvers.dual import DualForm, DualSolver
from bisvm.solvers.rows import as_matrix, as_rows, axpy, check_labels, dot, square


class PegasosResult(NamedTuple):
    """Weights, intercept and dual variables; see `pegasos`."""

    w: Array
    b: float
    alpha: Array


def pegasos(
    X: Matrix,
    y: Array,
    lam: float,
    n_iter: int = 100_000,
    projection: bool = True,
    seed: int = 0,
    *,
    fit_intercept: bool = True,
    sample_weight: Array | None = None,
) -> PegasosResult:
    r"""Minimise lam/2 |w|^2 + (1/N) sum_i max(0, 1 - y_i (w'x_i + b)).

    At step t = 1, 2, ... one point i is drawn, with replacement, and with
    eta = 1 / (lam t)::

        w <- (1 - eta lam) w + eta y_i x_i [y_i (w'x_i + b) < 1]
        b <- b + min(eta, 1 / sqrt(t)) y_i [y_i (w'x_i + b) < 1]
        w <- min(1, 1 / (sqrt(lam) |w|)) w          with the projection

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
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
    fit_intercept : bool
        The intercept is not penalised, so E is not strongly convex in it. It follows
        its subgradients, as in section 6 of the paper, but with shorter steps. The
        steps of w begin at 1 / lam: with these the intercept would go so far away at
        first that a million steps may not bring it back. The projection leaves it as
        it is. For a penalised intercept, add a constant feature.
    sample_weight : array of shape (n,), optional
        Points are drawn in proportion to it: the mean of E is a weighted one.

    Returns
    -------
    w : array of shape (d,)
    b : float
    alpha : array of shape (n,)
        w = sum_i alpha_i y_i x_i. A step inside the margin adds eta to alpha_i, and
        alpha shrinks whenever w does. At the optimum alpha_i <= 1 / (lam n), without
        weights; an iterate may exceed this.

    References
    ----------
    S. Shalev-Shwartz, Y. Singer, N. Srebro, A. Cotter, Pegasos: primal estimated
    sub-gradient solver for SVM, Mathematical Programming 127, 2011, pp. 3-30, figure 1.
    """
    X, y = as_matrix(X), np.ascontiguousarray(y, dtype=np.float64)
    check_labels(X.shape, y)
    if not 0.0 < lam < math.inf:
        raise ValueError(f"lam must be a positive, finite number; got {lam!r}.")
    if n_iter < 1:
        raise ValueError(f"n_iter must be an integer of at least 1; got {n_iter!r}.")
    order = draws(len(y), n_iter, seed, sample_weight)
    w, b, alpha = pegasos_steps(
        as_rows(X), y, X.shape[1], float(lam), order, bool(projection), fit_intercept
    )
    return PegasosResult(w, float(b), alpha)


def draws(n: int, n_iter: int, seed: int, sample_weight: Array | None = None) -> Array:
    """The points that the steps take, drawn beforehand."""
    rng = np.random.default_rng(seed)
    if sample_weight is None:
        return rng.integers(n, size=n_iter)
    heights = np.cumsum(sample_weight)
    places = np.searchsorted(heights, rng.random(n_iter) * heights[-1], side="right")
    return np.minimum(places, n - 1)


@njit(cache=True, nogil=True)
def pegasos_steps(rows, y, d, lam, order, projection, fit_intercept):
    """The steps of `pegasos` on the points in `order`.

    w = scale * direction, so that the shrinking of a step costs one multiplication and
    only points inside the margin cost a pass over w. |w|^2 is updated along the way.
    The duals, scale * counts, follow: direction = sum_i counts_i y_i x_i.
    """
    direction, scale, squared, b = np.zeros(d), 1.0, 0.0, 0.0
    counts = np.zeros(len(y))
    for step in range(len(order)):
        i, t = order[step], step + 1.0
        eta = 1.0 / (lam * t)
        value = scale * dot(rows, i, direction)
        violates = y[i] * (value + b) < 1.0
        if t == 1.0:
            # The first step forgets w altogether; a scale of zero could not come back.
            scale, squared, value = 1.0, 0.0, 0.0
        else:
            shrink = 1.0 - 1.0 / t
            scale, value = scale * shrink, value * shrink
            squared = squared * shrink * shrink
        if violates:
            axpy(rows, i, eta * y[i] / scale, direction)
            counts[i] += eta / scale
            squared += 2.0 * eta * y[i] * value + eta * eta * square(rows, i)
            if fit_intercept:
                b += min(eta, 1.0 / math.sqrt(t)) * y[i]
        if projection and lam * squared > 1.0:
            scale /= math.sqrt(lam * squared)
            squared = 1.0 / lam
        if scale < 1e-100:
            direction *= scale
            counts *= scale
            scale = 1.0
    return scale * direction, b, scale * counts


@dataclass(eq=False, repr=False)
class Pegasos(DualSolver):
    """Stochastic subgradient steps for linear machines, with or without projection.

    Parameters
    ----------
    epochs : int, default=50
        Steps, in units of the number of points.
    projection : bool, default=True
    seed : int, default=0
    jacobian : {"exact", "published"}
        See `DualSolver`.
    """

    most_hinges: ClassVar[int] = 1

    epochs: int = 50
    projection: bool = True
    seed: int = 0

    def validate(self) -> Self:
        self.check_count("epochs")
        return super().validate()

    def _approximate(
        self, machine: Machine, form: DualForm, start: Array | None
    ) -> list[Array]:
        if form.features is None:
            raise ValueError(
                "Pegasos trains linear machines; use solver='smo' or 'dcd' for kernels."
            )
        return [
            self._column(form.features, form.bias, y, c)
            for y, c in zip(machine.labels.T, machine.weights.T, strict=True)
        ]

    def _column(self, X: Inputs, bias: bool, y: Array, c: Array) -> Array:
        """lam/2 |w|^2 + weighted mean of losses, lam = 1 / sum of the weights."""
        present = np.flatnonzero(c > 0)
        alpha = np.zeros(len(c))
        alpha[present] = pegasos(
            X[present],
            y[present],
            1.0 / c.sum(),
            n_iter=self.epochs * len(present),
            projection=self.projection,
            seed=self.seed,
            fit_intercept=bias,
            sample_weight=c[present],
        ).alpha
        return np.clip(alpha, 0.0, c)
