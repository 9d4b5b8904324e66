"""SGD+DCD: dual coordinate descent below, stochastic gradient steps on C above."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numba import njit

from bisvm.hinge.active_set import ERROR, MARGIN, REST
from bisvm.published.alternating import (
    Arrays,
    Floats,
    SingleLoop,
    Upper,
    check_choice,
    draw_below,
    draw_violator,
    keep,
    shuffle,
    upper_step,
)
from bisvm.solvers.rows import axpy, dot

# What projections leave of a vector that lies in their span is smaller than this.
_ROUNDING = 1e-10


class SGDDCD(SingleLoop):
    """Algorithm 1 of Jiang and Siddiqui, for the linear hinge machine with one C.

    In iteration t = 1, 2, ..., for every fold k with its dual variables alpha::

        alpha_l <- min(max(alpha_l - (y_l w'x_l - 1) / |x_l|^2, 0), C train_l)
        w       =  sum_i alpha_i y_i x_i
        g_k     =  -y_j x_j' dw/dC,     j drawn from {j held out: y_j w'x_j < 1}

    and then, with g = 1/K sum_k g_k and p features,

        C <- min(max(C - g / (t sqrt(p) |g|), C_min), C_max).

    A fold with no alpha at its bound, or no j to draw, adds nothing to g.

    Parameters
    ----------
    reading : {"sweep", "single"}, default="sweep"
        How many coordinates l an iteration visits: all those of the fold in random
        order, as section 5 says and the first author's program does, or one at random,
        as the listing has it.
    jacobian : {"published", "exact"}, default="published"
        dw/dC from the vectors B at their bound and the free ones M. Published is
        dalpha/dC = train on B and 0 elsewhere, equation 23::

            dw/dC = sum_B train_i y_i x_i

        Free vectors stay on the margin as C moves, and so do change; exactly ::

            dw/dC = (I - P_M) sum_B train_i y_i x_i,    P_M projects on span {x_i, M}

        which is (I - P_M) w / C at the optimum. It is zero, and C stands still, while
        the free vectors span the whole space.
    iterations : int, default=150
    C_min, C_max : float, default=1e-4 and 1e6
        Bounds of C; the search starts at C_min unless it is told where.

    Notes
    -----
    - p does not count the constant column.
    - alpha_i is only moved when it is visited: after a step of C it stays where it was,
      even above the new bound, until then. Whether it is at its bound is a state of the
      last visit, never a comparison with C.
    - "If alpha is not optimal" (line 4) is left out: at the optimum no coordinate
      moves. The program skips a sweep where the duality gap is at most 1e-3.
    - Validation points are drawn in proportion to their weights.

    References
    ----------
    W. Jiang, S. Siddiqui, Hyper-parameter optimization for support vector machines
    using stochastic gradient descent and dual coordinate descent, algorithm 1 (seed
    001). A program that names W. Jiang as its author is at
    github.com/Antongz/SVM-SGD-DCD. The lower level is that of C.-J. Hsieh, K.-W. Chang,
    C.-J. Lin, S. S. Keerthi, S. Sundararajan, A dual coordinate descent method for
    large-scale linear SVM, ICML 2008, algorithm 1.
    """

    def __init__(
        self,
        reading: str = "sweep",
        jacobian: str = "published",
        iterations: int = 150,
        C_min: float = 1e-4,
        C_max: float = 1e6,
    ) -> None:
        self.reading = reading
        self.jacobian = jacobian
        self.iterations = iterations
        self.C_min = C_min
        self.C_max = C_max

    def validate(self) -> Self:
        check_choice(self, "reading", ("sweep", "single"))
        check_choice(self, "jacobian", ("published", "exact"))
        return super().validate()

    def _iterate(
        self,
        arrays: Arrays,
        upper: Upper,
        C_path: Floats,
        coefs: Floats,
        rng: np.random.Generator,
    ) -> Floats:
        sweep, exact = self.reading == "sweep", self.jacobian == "exact"
        coef: Floats = sgd_dcd(arrays, upper, sweep, exact, C_path, coefs, rng)
        return coef


@njit(cache=True, nogil=True)
def sgd_dcd(arrays, upper, sweep, exact, C_path, coefs, rng):
    """The iterations of `SGDDCD`; returns the weights (q, d)."""
    q, d = coefs.shape[1:]
    alpha = np.zeros(arrays.train.shape)
    state = np.zeros(arrays.train.shape, dtype=np.int8)
    # The sum over B, kept up to date, and how many vectors are in it.
    w, pull, n_bound = np.zeros((q, d)), np.zeros((q, d)), np.zeros(q, dtype=np.int64)
    order, heights = arrays.trained.copy(), np.empty(len(arrays.sizes))
    for step in range(len(C_path) - 1):
        C, gradient = C_path[step], 0.0
        for k in range(q):
            points = order[arrays.trained_starts[k] : arrays.trained_starts[k + 1]]
            if sweep:
                shuffle(points, rng)
                visited = points
            else:
                at = draw_below(len(points), rng)
                visited = points[at : at + 1]
            n_bound[k] += visit(
                arrays.rows,
                arrays.sizes,
                arrays.labels[k],
                arrays.train[k],
                C,
                visited,
                alpha[k],
                state[k],
                w[k],
                pull[k],
            )
            if n_bound[k] == 0:
                # What is left is rounding.
                pull[k].fill(0.0)
                continue
            j = draw_violator(
                arrays.rows,
                arrays.labels[k],
                arrays.validation[k],
                arrays.checked[arrays.checked_starts[k] : arrays.checked_starts[k + 1]],
                w[k],
                heights,
                rng,
            )
            if j >= 0:
                slope = pull[k]
                if exact:
                    slope = without_free(arrays.rows, points, state[k], slope)
                gradient -= arrays.labels[k, j] * dot(arrays.rows, j, slope)
        C_path[step + 1] = upper_step(C, gradient, step + 1, upper)
        keep(w, coefs, step)
    return w


@njit(cache=True, nogil=True)
def visit(rows, sizes, y, train, C, points, alpha, state, w, pull):
    """Bring each of these dual variables to its optimum, one after the other.

    Unlike a step of `solvers.dcd` this one may find alpha off a bound that has moved
    with C, so every visit clips. The state is REST at zero, ERROR at C train_i, MARGIN
    between. alpha, state, w and pull = sum_B train_i y_i x_i are changed in place;
    returns by how many B has grown.
    """
    growth = 0
    for i in points:
        old, was, bound = alpha[i], state[i], C * train[i]
        if sizes[i] > 0.0:
            new = old - (y[i] * dot(rows, i, w) - 1.0) / sizes[i]
        else:
            # No w can help this point.
            new = bound
        if new <= 0.0:
            new, state[i] = 0.0, REST
        elif new >= bound:
            new, state[i] = bound, ERROR
        else:
            state[i] = MARGIN
        if new != old:
            alpha[i] = new
            axpy(rows, i, (new - old) * y[i], w)
        if (was == ERROR) != (state[i] == ERROR):
            change = 1 if state[i] == ERROR else -1
            axpy(rows, i, change * train[i] * y[i], pull)
            growth += change
    return growth


@njit(cache=True, nogil=True)
def without_free(rows, points, state, vector):
    """(I - P_M) vector, with P_M the projection on the span of the free points.

    Gram and Schmidt, each step twice, until the span is the whole space.
    """
    d = len(vector)
    free = 0
    for i in points:
        free += state[i] == MARGIN
    basis, rank = np.zeros((min(free, d), d)), 0
    for i in points:
        if rank == len(basis):
            break
        if state[i] == MARGIN:
            new = basis[rank]
            new.fill(0.0)
            axpy(rows, i, 1.0, new)
            left = leave_span(basis, rank, new)
            if left > 0.0:
                for j in range(d):
                    new[j] /= left
                rank += 1
    rest = vector.copy()
    leave_span(basis, rank, rest)
    return rest


@njit(cache=True, nogil=True)
def leave_span(basis, rank, vector):
    """Subtract from a vector its part in the span; the norm of what is left.

    The first `rank` rows of the basis are orthonormal. Mere rounding becomes zero.
    """
    d = len(vector)
    size = math.sqrt(square(vector))
    for _ in range(2):
        for r in range(rank):
            along = 0.0
            for j in range(d):
                along += basis[r, j] * vector[j]
            for j in range(d):
                vector[j] -= along * basis[r, j]
    left = math.sqrt(square(vector))
    if rank == d or left <= _ROUNDING * size:
        vector.fill(0.0)
        return 0.0
    return left


@njit(cache=True, nogil=True)
def square(vector):
    total = 0.0
    for value in vector:
        total += value * value
    return total
