"""Single-loop methods: a step on the lower level and a step on the upper one, in turn.

    w_k <- w_k - a step on  1/2 |w|^2 + C sum_i train_ik max(0, 1 - y_ik w'x_i)
    C   <- P(C - sign(g) / (t sqrt(p))),    g = 1/K sum_k g_k

g_k estimates the derivative, by C, of the validation loss of column k from one of its
validation points; t numbers the iterations, p is the number of features without the
constant one, and P clips to the bounds. |g| has no say in the step, since the published
rate 1 / (t sqrt(p) |g|) divides by it (seed 001, section 4).

No lower level is ever solved, so H(theta) is never known: such a method needs the
training problems themselves, and returns what its last iteration left.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numba import njit
from scipy.optimize import OptimizeResult

from bisvm.data.pieces import Pieces
from bisvm.losses import Hinge, Loss
from bisvm.optimizers.base import CONVERGED, Floats, Optimizer, Problem
from bisvm.published.both_levels import BothLevels
from bisvm.published.levels import Levels
from bisvm.published.linear_folds import LinearFolds
from bisvm.solvers.rows import as_matrix, as_rows, dot, squares


class Alternating(BothLevels):
    """Moves C with the training problems in sight, and not only H.

    Parameters
    ----------
    C_min, C_max : float
        Bounds of C, where `alternate` is given none.
    """

    # It has a start of its own, whatever it is offered.
    uses_start = False
    # Losses of the lower level that it can step on.
    losses: ClassVar[tuple[type[Loss], ...]] = (Hinge,)

    C_min: Any
    C_max: Any

    def validate(self) -> Self:
        self.check_positive("C_min", "C_max")
        if not self.C_min <= self.C_max:
            raise ValueError(
                f"{type(self).__name__}: expected C_min <= C_max; got "
                f"C_min={self.C_min!r}, C_max={self.C_max!r}."
            )
        return self

    def search(self, levels: Levels, x0: np.ndarray) -> OptimizeResult:
        folds = levels.linear_folds(repr(self), self.losses)
        return self.suited(levels.loss).alternate(folds, seed=levels.seed)

    def alternate(
        self,
        folds: LinearFolds,
        C: float | None = None,
        bounds: tuple[float, float] | None = None,
        seed: int = 0,
    ) -> OptimizeResult:
        """The C to which steps on both levels lead.

        Parameters
        ----------
        folds : LinearFolds
        C : float, optional
            The start, brought into the bounds; the method's own by default.
        bounds : (float, float), optional
            Of C itself, not of its logarithm; (C_min, C_max) by default.
        seed : int
            Of all draws. One seed, one answer.

        Returns
        -------
        OptimizeResult
            `x`, the array [log C], `C`, `C_path` from the start to the end, `coef`
            (d, q) as the last step left it, `nit`, `status`, `success`, `message`.
        """
        raise NotImplementedError

    def within(self, tol: float, max_iter: int) -> Self:
        return self

    def suited(self, loss: Loss) -> Self:
        """This optimizer for one of the losses that it can step on."""
        return self

    def _minimize(
        self, problem: Problem, like: OptimizeResult | None = None
    ) -> OptimizeResult:
        raise TypeError(
            f"{type(self).__name__} cannot minimise a function of theta: it steps on "
            "the training problems of a linear hinge machine. Call "
            "alternate(LinearFolds(...)), or choose an optimizer that needs H alone, "
            "such as 'lbfgs'."
        )

    def _check_bounds(self, bounds: tuple[float, float] | None) -> tuple[float, float]:
        low, high = (self.C_min, self.C_max) if bounds is None else bounds
        if not 0.0 < low <= high < math.inf:
            raise ValueError(
                f"bounds = {bounds!r}; expected 0 < low <= high, both finite and those "
                "of C itself, not of log C."
            )
        return float(low), float(high)

    def _check_start(self, C: float) -> float:
        if not 0.0 < C < math.inf:
            raise ValueError(
                f"C = {C!r}; expected a positive, finite start, C and not log C."
            )
        return float(C)


class SingleLoop(Alternating):
    """One step below, one above, and so on: no lower level is ever solved.

    Parameters
    ----------
    iterations : int
        How many; there is no other test of when to stop.
    C_min, C_max : float
        Bounds of C, where `alternate` is given none.
    """

    iterations: int

    def validate(self) -> Self:
        self.check_count("iterations")
        return super().validate()

    def alternate(
        self,
        folds: LinearFolds,
        C: float | None = None,
        bounds: tuple[float, float] | None = None,
        seed: int = 0,
        *,
        record: bool = False,
    ) -> OptimizeResult:
        """Make all iterations, from C; from the lower bound if there is none.

        record : whether the weights after every iteration are kept, as `coefs`
            (iterations, d, q).
        """
        self.validate()
        if isinstance(folds.X, Pieces):
            raise ValueError(
                f"{type(self).__name__} visits rows in random order, and X comes in "
                "chunks; use FoldNewton ('fold-newton'), or rows in memory."
            )
        low, high = self._check_bounds(bounds)
        start = low if C is None else min(max(self._check_start(C), low), high)
        check_seed(seed)
        shape = (folds.labels.shape[1], folds.X.shape[1])
        coefs = np.empty((self.iterations if record else 0, *shape))
        C_path = np.full(self.iterations + 1, float(start))
        rate = 1.0 / math.sqrt(folds.n_features)
        coef = self._iterate(
            arrays_of(folds),
            Upper(low, high, rate),
            C_path,
            coefs,
            np.random.default_rng(seed),
        )
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
        C_path: Floats,
        coefs: Floats,
        rng: np.random.Generator,
    ) -> Floats:
        """Fill `C_path` from its first entry on, and `coefs` if it has room.

        Returns the last weights (q, d).
        """
        raise NotImplementedError


def check_seed(seed: int) -> None:
    if not isinstance(seed, Integral) or seed < 0:
        raise ValueError(
            f"seed = {seed!r}; expected an integer of at least 0, so that a run can be "
            "repeated."
        )


def check_choice(part: Optimizer, name: str, choices: tuple[str, ...]) -> None:
    """This argument must be one of the names."""
    given = getattr(part, name)
    if given not in choices:
        expected = " or ".join(map(repr, choices))
        raise ValueError(
            f"{type(part).__name__}: {name} must be {expected}; got {given!r}."
        )


# From here on: what the compiled loops share.


class Arrays(NamedTuple):
    """`LinearFolds` as compiled loops want them: a training problem is a row.

    rows : those of X (`bisvm.solvers.rows`)
    sizes : (n,), |x_i|^2
    labels, train, validation : (q, n)
    trained, checked : points of positive weight, those of column k between the
        starts k and k + 1
    """

    rows: Any
    sizes: np.ndarray
    labels: np.ndarray
    train: np.ndarray
    validation: np.ndarray
    trained: np.ndarray
    trained_starts: np.ndarray
    checked: np.ndarray
    checked_starts: np.ndarray


class Upper(NamedTuple):
    """The upper level's step: bounds of C, and 1 / sqrt(p)."""

    low: float
    high: float
    rate: float


def arrays_of(folds: LinearFolds) -> Arrays:
    X = as_matrix(folds.X)
    rows = as_rows(X)
    train, validation = _by_problem(folds.train), _by_problem(folds.validation)
    return Arrays(
        rows,
        squares(rows, X.shape[0]),
        _by_problem(folds.labels),
        train,
        validation,
        *_positive(train),
        *_positive(validation),
    )


def _by_problem(columns: np.ndarray) -> Floats:
    return np.ascontiguousarray(np.asarray(columns, dtype=np.float64).T)


def _positive(weights: Floats) -> tuple[np.ndarray, np.ndarray]:
    """Points of positive weight, problem after problem, and where each begins."""
    problem, points = np.nonzero(weights > 0)
    return points, np.searchsorted(problem, np.arange(len(weights) + 1))


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
