"""Bilevel SGD: stochastic gradient steps on the weights below and on C above."""

from __future__ import annotations

import numpy as np
from numba import njit

from bisvm.published.alternating import (
    Arrays,
    Floats,
    SingleLoop,
    Upper,
    draw_violator,
    keep,
    upper_step,
)
from bisvm.solvers.rows import axpy, dot


class BilevelSGD(SingleLoop):
    """The method of Couellan and Wang, for the linear hinge machine with one C.

    In iteration t = 1, 2, ..., for every fold k, with l drawn from the training points
    and j from the validation points that have y w'x < 1::

        w   <- w - (w - C y_l x_l) / t
        g_k =  -y_j x_j' y_l x_l                 dw/dC = y_l x_l, equations 11 to 17

    and then, with g = 1/K sum_k g_k and p features,

        C <- min(max(C - g / (t sqrt(p) |g|), C_min), C_max).

    Without an l the weights only shrink, w <- w - w / t; without an l or a j the fold
    adds nothing to g.

    Parameters
    ----------
    iterations : int, default=150
    C_min, C_max : float, default=1e-4 and 1e6
        Bounds of C; the search starts at C_min unless it is told where.

    Notes
    -----
    - Weights start uniform in [0, 1]. The first step, of length 1, forgets them: they
      only have a say in the first draws. Then w = 1/t sum_s C_s y_l(s) x_l(s), a mean.
    - Both points are drawn before w moves, as in Jiang's program (see `SGDDCD`).
    - p does not count the constant column.
    - Points are drawn in proportion to their weights.

    References
    ----------
    N. Couellan, W. Wang, Bi-level stochastic gradient for large scale support vector
    machine, Neurocomputing 153, 2015, pp. 300-308, doi:10.1016/j.neucom.2014.11.025, as
    seed 001 reviews it in section 3.2, with the start and the rates of its section 4.
    """

    def __init__(
        self, iterations: int = 150, C_min: float = 1e-4, C_max: float = 1e6
    ) -> None:
        self.iterations = iterations
        self.C_min = C_min
        self.C_max = C_max

    def _iterate(
        self,
        arrays: Arrays,
        upper: Upper,
        C_path: Floats,
        coefs: Floats,
        rng: np.random.Generator,
    ) -> Floats:
        w = rng.random(coefs.shape[1:])
        bilevel_sgd(arrays, upper, w, C_path, coefs, rng)
        return w


@njit(cache=True, nogil=True)
def bilevel_sgd(arrays, upper, w, C_path, coefs, rng):
    """The iterations of `BilevelSGD`, which change w (q, d) in place."""
    heights = np.empty(len(arrays.sizes))
    for step in range(len(C_path) - 1):
        C, t, gradient = C_path[step], step + 1, 0.0
        for k in range(len(w)):
            y = arrays.labels[k]
            l = draw_violator(
                arrays.rows,
                y,
                arrays.train[k],
                arrays.trained[arrays.trained_starts[k] : arrays.trained_starts[k + 1]],
                w[k],
                heights,
                rng,
            )
            j = draw_violator(
                arrays.rows,
                y,
                arrays.validation[k],
                arrays.checked[arrays.checked_starts[k] : arrays.checked_starts[k + 1]],
                w[k],
                heights,
                rng,
            )
            w[k] *= 1.0 - 1.0 / t
            if l >= 0:
                slope = np.zeros(w.shape[1])
                axpy(arrays.rows, l, y[l], slope)
                w[k] += C / t * slope
                if j >= 0:
                    gradient -= y[j] * dot(arrays.rows, j, slope)
        C_path[step + 1] = upper_step(C, gradient, t, upper)
        keep(w, coefs, step)
