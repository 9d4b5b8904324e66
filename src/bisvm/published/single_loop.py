"""Single-loop methods: a step on the lower level and a step on the upper one, in turn.

The problem is (8) of Jiang and Siddiqui, with the dual (18), and (24) on K folds:

    min over C   1/K sum_k sum_j v_jk max(0, 1 - y_jk w_k'x_j),   C_min <= C <= C_max
    w_k = argmin 1/2 |w|^2 + C sum_i train_ik max(0, 1 - y_ik w'x_i)
        = sum_i alpha_ik y_ik x_i,    with the dual (6), solved in `solvers.dcd`:
    alpha_k = argmax 1'alpha - 1/2 alpha'Q alpha,    0 <= alpha_i <= C train_ik.

The methods take these steps:

    w_k <- w_k - a step on  1/2 |w|^2 + C sum_i train_ik max(0, 1 - y_ik w'x_i)
    C   <- P(C - sign(g) / (t sqrt(p))),    g = 1/K sum_k g_k

g_k estimates, by (20) and (21), the derivative, by C, of the validation loss of column
k from one of its validation points; t numbers the iterations, p is the number of
features without the constant one, and P clips to the bounds. The size of g does not
matter, since the published rate 1 / (t sqrt(p) |g|) divides by it (Jiang and Siddiqui,
section 4).

No lower level is ever solved, so H(theta) is never known: such a method needs the
training problems themselves, and returns the result of its last iteration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.core.compiling import njit
from bisvm.core.types import Array
from bisvm.data.matrices import RowBlocks
from bisvm.hinge.active_set import ERROR, MARGIN, REST
from bisvm.optimizers.base import CONVERGED
from bisvm.published.alternating import Alternating, Arrays, LinearFolds, arrays_of
from bisvm.solvers.rows import axpy, dot

# What projections leave of a vector that lies in their span is smaller than this.
_ROUNDING = 1e-10


class Upper(NamedTuple):
    """The upper level's step: bounds of C, and 1 / sqrt(p)."""

    low: float
    high: float
    rate: float


class SingleLoop(Alternating):
    """One step below, one above, and so on: no lower level is ever solved.

    Parameters
    ----------
    iterations : int
        How many; there is no other test of when to stop.
    C_min, C_max : float
        Bounds of C.
    """

    iterations: int

    def validate(self) -> Self:
        self.check_count("iterations")
        return super().validate()

    def _alternate(
        self,
        folds: LinearFolds,
        C: float | None,
        rng: np.random.Generator,
        record: bool,
    ) -> OptimizeResult:
        if isinstance(folds.X, RowBlocks):
            raise ValueError(
                f"{type(self).__name__} visits rows in random order, and X comes in "
                "chunks; use FoldNewton ('fold-newton'), or rows in memory."
            )
        low, high = float(self.C_min), float(self.C_max)
        start = low if C is None else min(max(C, low), high)
        shape = (folds.labels.shape[1], folds.X.shape[1])
        coefs = np.empty((self.iterations if record else 0, *shape))
        C_path = np.full(self.iterations + 1, float(start))
        upper = Upper(low, high, 1.0 / math.sqrt(folds.n_features))
        coef = self._iterate(arrays_of(folds), upper, C_path, coefs, rng)
        result = OptimizeResult(
            x=np.log(C_path[-1:]),
            C=float(C_path[-1]),
            C_path=C_path,
            coef=coef.T.copy(),
            nit=self.iterations,
            status=CONVERGED,
            success=True,
            message=(
                f"All {self.iterations} iterations were made; the method has no test "
                "of convergence."
            ),
        )
        if record:
            result.coefs = coefs.transpose(0, 2, 1)
        return result

    def _iterate(
        self,
        arrays: Arrays,
        upper: Upper,
        C_path: Array,
        coefs: Array,
        rng: np.random.Generator,
    ) -> Array:
        """Fill `C_path` from its first entry on; return the last weights (q, d).

        coefs : (iterations, q, d), for the weights after every iteration, or empty
        """
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class SGDDCD(SingleLoop):
    """Algorithm 1 of Jiang and Siddiqui, for the linear hinge machine with one C.

    In iteration t = 1, 2, ..., for every fold k with its dual variables alpha::

        alpha_l <- min(max(alpha_l - (y_l w'x_l - 1) / |x_l|^2, 0), C train_l)
        w       =  sum_i alpha_i y_i x_i
        g_k     =  -y_j x_j' dw/dC,     j drawn from {j held out: y_j w'x_j < 1}

    and then, with g = 1/K sum_k g_k and p features,

        C <- min(max(C - g / (t sqrt(p) |g|), C_min), C_max).

    A fold adds nothing to g if no alpha is at its bound, or if there is no j to draw.

    Parameters
    ----------
    reading : {"sweep", "single"}, default="sweep"
        Which coordinates l an iteration visits. "sweep": all of the fold in random
        order, as section 5 says and the first author's program does. "single": one at
        random, as in the listing.
    jacobian : {"published", "exact"}, default="published"
        dw/dC from the vectors B at their bound and the free ones M. Published is
        dalpha/dC = train on B and 0 elsewhere, equation 23::

            dw/dC = sum_B train_i y_i x_i

        Free vectors stay on the margin as C moves, and so do change; exactly ::

            dw/dC = (I - P_M) sum_B train_i y_i x_i,    P_M projects on span {x_i, M}

        which is (I - P_M) w / C at the optimum. While the free vectors span the whole
        space it is zero, and C does not change.
    iterations : int, default=150
    C_min, C_max : float, default=1e-4 and 1e6
        Bounds of C; the search starts at C_min unless it is told where.

    Notes
    -----
    - p does not count the constant column.
    - alpha_i changes only when it is visited. After a step of C it may be above the new
      bound until its next visit. Whether it is at its bound is remembered from the last
      visit, and never decided by a comparison with C.
    - "If alpha is not optimal" (line 4) is left out: at the optimum no coordinate
      moves. The program skips a sweep where the duality gap is at most 1e-3.
    - Validation points are drawn in proportion to their weights.

    References
    ----------
    W. Jiang, S. Siddiqui, Hyper-parameter optimization for support vector machines
    using stochastic gradient descent and dual coordinate descent, EURO Journal on
    Computational Optimization 8, 2020, pp. 85-101, algorithm 1. A program that names
    W. Jiang as its author is at github.com/Antongz/SVM-SGD-DCD. The lower level is that
    of C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan, A dual
    coordinate descent method for large-scale linear SVM, ICML 2008, algorithm 1.
    """

    reading: str = "sweep"
    jacobian: str = "published"
    iterations: int = 150
    C_min: float = 1e-4
    C_max: float = 1e6

    def validate(self) -> Self:
        self.check_choice("reading", ("sweep", "single"))
        self.check_choice("jacobian", ("published", "exact"))
        return super().validate()

    def _iterate(self, *run: Any) -> Array:
        sweep, exact = self.reading == "sweep", self.jacobian == "exact"
        coef: Array = sgd_dcd(*run, sweep, exact)  # type: ignore[call-arg]
        return coef


@dataclass(eq=False, repr=False)
class BilevelSGD(SingleLoop):
    """The method of Couellan and Wang, for the linear hinge machine with one C.

    In iteration t = 1, 2, ..., for every fold k, with l drawn from the training points
    and j from the validation points that have y w'x < 1::

        w   <- w - (w - C y_l x_l) / t
        g_k =  -y_j x_j' y_l x_l                 dw/dC = y_l x_l, equations 11 to 17

    and then, with g = 1/K sum_k g_k and p features,

        C <- min(max(C - g / (t sqrt(p) |g|), C_min), C_max).

    If no point l violates the margin the weights only shrink, w <- w - w / t. If there
    is no l or no j, the fold adds nothing to g.

    Parameters
    ----------
    iterations : int, default=150
    C_min, C_max : float, default=1e-4 and 1e6
        Bounds of C; the search starts at C_min unless it is told where.

    Notes
    -----
    - Weights start uniform in [0, 1]. The first step, of length 1, overwrites them:
      they only affect the first draws. Then w = 1/t sum_s C_s y_l(s) x_l(s), a mean.
    - Both points are drawn before w moves, as in Jiang's program (see `SGDDCD`), and
      both violate the margin, as (10) and (16) say. In the program l is any training
      point: if it does not violate the margin the weights only shrink, but y_l x_l is
      still part of g_k. Its weights start in [-1, 1], the paper's in [0, 1].
    - p does not count the constant column.
    - Points are drawn in proportion to their weights.

    References
    ----------
    N. Couellan, W. Wang, Bi-level stochastic gradient for large scale support vector
    machine, Neurocomputing 153, 2015, pp. 300-308, doi:10.1016/j.neucom.2014.11.025, as
    Jiang and Siddiqui review it in section 3.2, with the start and the rates of their
    section 4.
    """

    iterations: int = 150
    C_min: float = 1e-4
    C_max: float = 1e6

    def _iterate(self, *run: Any) -> Array:
        *_, coefs, rng = run
        w: Array = rng.random(coefs.shape[1:])
        bilevel_sgd(*run, w)  # type: ignore[call-arg]
        return w


# Compiled loops.


@njit(cache=True, nogil=True)
def draw_below(n, rng):
    """One of 0 .. n - 1."""
    return min(int(rng.random() * n), n - 1)


@njit(cache=True, nogil=True)
def shuffle(points, rng):
    """Fisher and Yates: from the end, swap with one that is not yet in its place."""
    for last in range(len(points) - 1, 0, -1):
        other = draw_below(last + 1, rng)
        points[last], points[other] = points[other], points[last]


@njit(cache=True, nogil=True)
def draw_violator(rows, labels, weights, points, w, heights, rng):
    """One of the points with y w'x < 1, in proportion to its weight; -1 for none.

    heights : room for one number a point
    """
    total = 0.0
    for at in range(len(points)):
        i = points[at]
        if labels[i] * dot(rows, i, w) < 1.0:
            total += weights[i]
        heights[at] = total
    if total == 0.0:
        return -1
    height = rng.random() * total
    for at in range(len(points)):
        # The product may round up to the total, which the last violator reaches first.
        if heights[at] > height or heights[at] == total:
            return points[at]
    return -1


@njit(cache=True, nogil=True)
def draw_held_out(arrays, k, w, heights, rng):
    """One of the held-out points of column k with y w'x < 1, or -1."""
    points = arrays.checked[arrays.checked_starts[k] : arrays.checked_starts[k + 1]]
    return draw_violator(
        arrays.rows, arrays.labels[k], arrays.validation[k], points, w, heights, rng
    )


@njit(cache=True, nogil=True)
def upper_step(C, gradient, t, upper):
    """P(C - sign(g) / (t sqrt(p))); without a gradient, C."""
    if gradient > 0.0:
        C -= upper.rate / t
    elif gradient < 0.0:
        C += upper.rate / t
    return min(max(C, upper.low), upper.high)


@njit(cache=True, nogil=True)
def keep(w, coefs, step):
    """Record the weights after a step, if there is room for them."""
    if len(coefs) > 0:
        # One number at a time: coefs[step] = w takes seconds to compile.
        for k in range(w.shape[0]):
            for j in range(w.shape[1]):
                coefs[step, k, j] = w[k, j]


@njit(cache=True, nogil=True)
def bilevel_sgd(arrays, upper, C_path, coefs, rng, w):
    """The iterations of `BilevelSGD`, which change w (q, d) in place."""
    heights = np.empty(len(arrays.sizes))
    for step in range(len(C_path) - 1):
        C, t, gradient = C_path[step], step + 1, 0.0
        for k in range(len(w)):
            y = arrays.labels[k]
            points = arrays.trained[
                arrays.trained_starts[k] : arrays.trained_starts[k + 1]
            ]
            l = draw_violator(
                arrays.rows, y, arrays.train[k], points, w[k], heights, rng
            )
            j = draw_held_out(arrays, k, w[k], heights, rng)
            w[k] *= 1.0 - 1.0 / t
            if l >= 0:
                slope = np.zeros(w.shape[1])
                axpy(arrays.rows, l, y[l], slope)
                w[k] += C / t * slope
                if j >= 0:
                    gradient -= y[j] * dot(arrays.rows, j, slope)
        C_path[step + 1] = upper_step(C, gradient, t, upper)
        keep(w, coefs, step)


@njit(cache=True, nogil=True)
def sgd_dcd(arrays, upper, C_path, coefs, rng, sweep, exact):
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
            j = draw_held_out(arrays, k, w[k], heights, rng)
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

    What is left of a vector in the span is rounding, and becomes zero.
    """
    free = points[state[points] == MARGIN]
    if len(free) == 0:
        return vector.copy()
    span = np.zeros((len(free), len(vector)))
    for r in range(len(free)):
        axpy(rows, free[r], 1.0, span[r])
    combination = np.linalg.lstsq(span.T, vector, _ROUNDING)[0]
    rest = vector - np.dot(span.T, combination)
    if np.linalg.norm(rest) <= _ROUNDING * np.linalg.norm(vector):
        rest[:] = 0.0
    return rest
