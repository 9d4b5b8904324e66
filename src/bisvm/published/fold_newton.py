"""Newton steps on all folds below, a scan over C above, on growing mini-batches."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.optimize import OptimizeResult
from scipy.sparse import issparse

from bisvm.bilevel.adjoint import implicit_gradient
from bisvm.core.compiling import njit
from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import RowBlocks, reduce
from bisvm.losses import Hinge, Loss, Quartic
from bisvm.machines import LinearMachine
from bisvm.optimizers.bfgs import BFGS
from bisvm.optimizers.scan import Scan
from bisvm.published.alternating import Alternating, LinearFolds, arrays_of
from bisvm.solvers.newton import Newton
from bisvm.solvers.rows import axpy, dot

# Up to this many columns, compiled loops are faster than BLAS on a dense problem.
_COMPILED = 100
# Residual of the lower level: an entry of the gradient, relative to what it sums up.
_INNER_TOL = 1e-4
_STEPS = 100
# The last scan of few rows: corners, and steps, in units of those before.
_SHARPER, _CLOSER = 1.0 / 3.0, 0.25
# The best C of m rows, whose losses are counted n / m times, grows like m^0.6.
_EXPONENT = 0.6


@dataclass(eq=False, repr=False)
class FoldNewton(Alternating):
    """The best C of the linear hinge machine, by gradients of a nearly exact one.

    With a narrow corner, |1 - u| < eps, the hinge is smooth, and every fold has its
    Newton matrix A = I + C X'D X. At the optimum w::

        dw/dlog C = A^-1 w,    dH/dlog C = -sum_j v_j y_j x_j' A^-1 w

    over the held-out points with y_j w'x_j < 1 and their weights v_j. For eps -> 0,
    dw/dlog C tends to w minus its projection on the span of the margin vectors. Each
    lower level starts from its solution at the last C, and takes a few steps. C is
    searched by `Scan`, which does not stop in a shallow minimum and has neither a step
    size nor a rate.

    With many rows the search runs on a sample first, then on one that is `growth` times
    as large, and so on. The minimum on one sample is close to that on the next, which
    then takes two or three evaluations. With few rows, C is scanned once more at the
    end, with a corner that is a third as wide.

    Parameters
    ----------
    eps : float, default=0.03
        Half-width of the corner; that of the loss, for a machine that has one.
    spacing : float, default=0.5
        Wide steps of the scan, in log C.
    ftol : float, default=1e-4
        A decrease of H, relatively, that is not worth another C.
    first : int, default=4000
        Rows of the first sample.
    growth : float, default=8.0
    C_min, C_max : float, optional
        By default 1e-6 and 1e8 in units of 1 / mean |x|^2.
    """

    losses = (Hinge, Quartic)

    eps: float = 0.03
    spacing: float = 0.5
    ftol: float = 1e-4
    first: int = 4000
    growth: float = 8.0
    C_min: float | None = None
    C_max: float | None = None

    def validate(self) -> Self:
        self.check_positive("eps", "spacing", "ftol", "growth")
        for name in ("C_min", "C_max"):
            if getattr(self, name) is not None:
                self.check_positive(name)
        self.check_count("first")
        if not self.growth > 1.0:
            raise ValueError(f"growth must be above 1; got {self.growth!r}.")
        return self

    def for_loss(self, loss: Loss) -> Self:
        return self.replace(eps=loss.eps) if isinstance(loss, Quartic) else self

    def _alternate(
        self,
        folds: LinearFolds,
        C: float | None,
        rng: np.random.Generator,
        record: bool,
    ) -> OptimizeResult:
        unit, n = _unit(folds), folds.X.shape[0]
        box = np.log([[self.C_min or 1e-6 * unit, self.C_max or 1e8 * unit]])
        order = rng.permutation(n)
        x = np.log([unit if C is None else float(C)])
        path, result, done, coef = [float(np.exp(x[0]))], None, 0, None
        for rows in self._sizes(n):
            if done:
                x = x + _EXPONENT * math.log(rows / done)
            part = folds if rows == n else sample(folds, np.sort(order[:rows]))
            if part is None:
                continue
            lower = _Lower(part, self.eps, n / rows, coef)
            ftol = self.ftol * math.sqrt(n / rows)
            search = Scan(self.spacing, ftol=ftol) if not done else BFGS(ftol=ftol)
            result = search.minimize(lower.evaluate, x, box, result)
            x, coef, done = result.x, lower.best_coef, rows
            path.extend(lower.path)
        if n <= self.first:
            # With few rows H is jagged, and its corners are smaller than eps.
            lower = _Lower(folds, _SHARPER * self.eps, 1.0, coef)
            search = Scan(_CLOSER * self.spacing, ftol=self.ftol)
            result = search.minimize(lower.evaluate, x, box)
            x, coef = result.x, lower.best_coef
            path.extend(lower.path)
        assert result is not None
        result.C, result.C_path = float(np.exp(x[0])), np.array(path)
        result.coef, result.nit = coef, len(path) - 1
        return result

    def _sizes(self, n: int) -> list[int]:
        sizes, rows = [], float(self.first)
        while rows * math.sqrt(self.growth) < n:
            sizes.append(int(rows))
            rows *= self.growth
        return [*sizes, n]


def _unit(folds: LinearFolds) -> float:
    """Return C = 1 / mean |x|^2, at which a point can move its margin by one."""
    size = reduce(_square_sum, folds.X)
    return folds.X.shape[0] / size if size > 0 else 1.0


def _square_sum(X: Matrix) -> float:
    if issparse(X):
        return float(np.sum(np.asarray(X.data) ** 2))
    return float(np.einsum("ij,ij->", X, X))


def sample(folds: LinearFolds, rows: Array) -> LinearFolds | None:
    """Return the folds on these rows alone; None if a fold lacks a class."""
    validation = folds.validation[rows]
    share = validation.sum(axis=0)
    signed = folds.labels[rows] * (folds.train[rows] > 0)
    if not (share.all() and (signed.max(axis=0) > signed.min(axis=0) + 1.5).all()):
        return None
    whole = folds.validation.sum(axis=0)
    return replace(
        folds,
        X=folds.X[rows],
        labels=folds.labels[rows],
        train=folds.train[rows],
        validation=validation * (whole / np.where(share > 0, share, 1.0)),
    )


class _Lower:
    """The lower levels of all folds, and H(log C) with its slope.

    ratio : how many rows a training point stands for
    coef : (d, q), where the next solve starts
    best_coef : those of the lowest H so far
    """

    def __init__(
        self, folds: LinearFolds, eps: float, ratio: float, coef: Array | None
    ):
        self.folds, self.loss, self.ratio = folds, Quartic(eps), ratio
        shape = (folds.X.shape[1], folds.labels.shape[1])
        self.coef = np.zeros(shape) if coef is None else coef
        self.path: list[float] = []
        self.lowest, self.best_coef = np.inf, self.coef
        whole = not (issparse(folds.X) or isinstance(folds.X, RowBlocks))
        small = whole and shape[0] <= _COMPILED
        self.arrays = arrays_of(folds) if small else None

    def evaluate(self, x: Array) -> tuple[float, Array]:
        C = math.exp(float(x[0]))
        self.path.append(C)
        solve = self.by_machine if self.arrays is None else self.compiled
        value, slope = solve(C * self.ratio)
        if value < self.lowest:
            self.lowest, self.best_coef = value, self.coef.copy()
        return value, np.array([slope])

    def compiled(self, C: float) -> tuple[float, float]:
        """Dense rows, few columns: loops without temporaries."""
        w = np.ascontiguousarray(self.coef.T)
        value, slope = solve_folds(self.arrays, C, self.loss.eps, w)
        self.coef = w.T
        return value, slope

    def by_machine(self, C: float) -> tuple[float, float]:
        """Sparse rows, or many columns: the library's own machine."""
        folds, every_feature = self.folds, np.ones(self.folds.X.shape[1])
        machine = LinearMachine(
            folds.labels, C * folds.train, self.loss, "none", folds.X, every_feature
        )
        solution = Newton().solve(machine, folds.X @ self.coef, 0.01 * _INNER_TOL)
        self.coef = solution.x.coef
        margins = folds.labels * solution.fitted
        violating = folds.validation * (margins < 1.0)
        value = float(np.sum(violating * (1.0 - margins)))
        cotangent = -violating * folds.labels
        gradient = implicit_gradient(machine, solution, cotangent)
        return value, float(gradient.weights.sum())


@njit(cache=True, nogil=True)
def solve_folds(arrays, C, eps, coef):
    """H and dH/dlog C over all folds; coef (q, d) is where to start, and the answer."""
    value, slope = 0.0, 0.0
    rows = arrays.rows
    for k in range(len(coef)):
        y, w = arrays.labels[k], coef[k]
        trained = arrays.trained[
            arrays.trained_starts[k] : arrays.trained_starts[k + 1]
        ]
        A = newton(rows, y, C, arrays.train[k], trained, eps, w)
        pull = np.zeros(len(w))
        for at in range(arrays.checked_starts[k], arrays.checked_starts[k + 1]):
            i = arrays.checked[at]
            u = y[i] * dot(rows, i, w)
            if u < 1.0:
                weight = arrays.validation[k, i]
                value += weight * (1.0 - u)
                axpy(rows, i, weight * y[i], pull)
        slope -= np.dot(pull, np.linalg.solve(A, w))
    return value, slope


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def newton(rows, y, C, train, points, eps, w):
    """Minimise 1/2 |w|^2 + C sum_i train_i quartic(y_i w'x_i), w in place.

    Returns A = I + C X'D X at the last w but one step, at most.
    """
    X, n, d = rows.X, len(points), len(w)
    u, v = np.empty(n), np.empty(n)
    A, gradient, size = np.empty((d, d)), np.empty(d), np.zeros(d)
    for a in range(n):
        i = points[a]
        u[a] = y[i] * dot(rows, i, w)
        for j in range(d):
            size[j] += C * train[i] * abs(X[i, j])
    for _ in range(_STEPS):
        A[:, :] = 0.0
        gradient[:] = w
        for a in range(n):
            p = (1.0 + eps - u[a]) / eps
            if p <= 0.0:
                continue
            i = points[a]
            c = C * train[i]
            g = -c * y[i] if p >= 2.0 else -0.25 * c * y[i] * p * p * (3.0 - p)
            for j in range(d):
                gradient[j] += g * X[i, j]
            if p < 2.0:
                curvature = 0.75 * c * p * (2.0 - p) / eps
                for j in range(d):
                    t = curvature * X[i, j]
                    for h in range(j + 1):
                        A[j, h] += t * X[i, h]
        for j in range(d):
            A[j, j] += 1.0
            for h in range(j):
                A[h, j] = A[j, h]
        residual = 0.0
        for j in range(d):
            residual = max(residual, abs(gradient[j]) / max(size[j], 1e-300))
        if residual <= _INNER_TOL:
            break
        step = -np.linalg.solve(A, gradient)
        for a in range(n):
            v[a] = y[points[a]] * dot(rows, points[a], step)
        t = step_length(u, v, C, train, points, eps, np.dot(w, step), step)
        w += t * step
        u += t * v
    return A


@njit(cache=True, nogil=True)
def step_length(u, v, C, train, points, eps, linear, step):
    """t where the objective's slope along the step is small: 1, or between brackets."""
    square = np.dot(step, step)
    first = slope_along(u, v, 0.0, C, train, points, eps) + linear
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(40):
        slope = slope_along(u, v, t, C, train, points, eps) + linear + t * square
        if abs(slope) <= 0.2 * abs(first):
            break
        if slope > 0.0:
            high = t
        else:
            low = t
        t = 2.0 * t if high == np.inf else 0.5 * (low + high)
    return t


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def slope_along(u, v, t, C, train, points, eps):
    """sum_i C train_i quartic'(u_i + t v_i) v_i."""
    total = 0.0
    for a in range(len(u)):
        p = (1.0 + eps - u[a] - t * v[a]) / eps
        if p >= 2.0:
            total -= train[points[a]] * v[a]
        elif p > 0.0:
            total -= 0.25 * train[points[a]] * p * p * (3.0 - p) * v[a]
    return C * total
