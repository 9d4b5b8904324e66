"""Kernels of a distance with one width for all features or one for each (ARD)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Self, TypeAlias

import numpy as np

from bisvm.core.parts import INVERSE_WIDTH, Parameter, Parameters, natural_bounds
from bisvm.core.threads import in_threads
from bisvm.core.types import Array, ArrayLike, Matrix
from bisvm.data.matrices import (
    column_dots,
    column_scale,
    dense,
    is_sparse,
    mean_variance,
    n_varying,
    row_dots,
    scale_columns,
)
from bisvm.kernels.base import (
    CACHED_ENTRIES,
    Factors,
    Kernel,
    KernelGradient,
    row_blocks,
)

# One number, or an array with one for every feature.
Gamma: TypeAlias = float | Array
# A value, or "scale".
Width: TypeAlias = Gamma | str
Bounds: TypeAlias = str | tuple[ArrayLike, ArrayLike]

# Bounds of gamma in units of 1 / size. At the lower one a typical distance over all
# features is at most 1e-3, so that the kernel is almost flat. At the upper one a kernel
# falls to phi(100) at a typical distance along one feature.
LOWEST, LOWEST_TOTAL, HIGHEST = 1e-5, 1e-3, 1e2

# Rows whose median is the centre of the data: enough unless half of them are outliers.
CENTRE_ROWS = 101
# Rows whose nearest neighbours show the finest scale of the data. The median of 64
# distances has a standard error of a sixth of their standard deviation.
NEIGHBOUR_ROWS = 64

# Squared distances are differences of squares: smaller shares of the largest one are
# rounding errors.
ROUNDING = 1e-12


@dataclass(eq=False, repr=False)
class DistanceKernel(Kernel):
    """k(x, y) = phi(D) with D = sum_d gamma_d delta(x_d, y_d) and phi(0) = 1.

    This class makes the inverse widths gamma a hyperparameter. A subclass provides the
    distances (`_distances`), their usual size along a feature (`_size`), `gram` and
    `pullback`.
    """

    gamma: Width = "scale"
    _: KW_ONLY
    per_feature: bool = False
    gamma_bounds: Bounds = "scale"

    def parameters(self, X: Matrix, sample_weight: Array | None = None) -> Parameters:
        """Return gamma; "scale" is 1 / (n_features size)."""
        size = self._size(X, sample_weight)
        n_features = n_varying(X) if self.per_feature else X.shape[1]
        unit = 1.0 / size
        value = _checked_gamma(
            unit / n_features if is_scale(self.gamma) else self.gamma, size
        )
        if is_scale(self.gamma_bounds):
            nearest = nearest_distance(
                lambda A, B: self._distances(A, B, unit), X, self._deviation(size)
            )
            low = min(LOWEST, LOWEST_TOTAL / n_features) * unit
            high = max(HIGHEST, 1.0 / nearest) * unit
            bounds = (np.minimum(low, value), np.maximum(high, value))
        else:
            bounds = natural_bounds("gamma_bounds", self.gamma_bounds)
            value = np.clip(value, *bounds) if is_scale(self.gamma) else value
        if not np.ndim(size):
            # One gamma for all features is compared with 1 / (n_features size).
            unit = unit / n_features
        return (Parameter("gamma", value, bounds, unit=unit, role=INVERSE_WIDTH),)

    def diagonal(self, X: Matrix) -> Array:
        return np.ones(X.shape[0])

    def _size(self, X: Matrix, sample_weight: Array | None) -> Gamma:
        """Usual distance along a feature: one number, or one per feature."""
        raise NotImplementedError

    def _deviation(self, size: Gamma) -> Gamma:
        """Differences of features that have the distance `size`."""
        raise NotImplementedError

    def _distances(self, X: Matrix, Y: Matrix | None, gamma: Gamma) -> Array:
        """sum_d gamma_d delta(x_id, y_jd)."""
        raise NotImplementedError

    def _gamma(self, X: Matrix) -> Array:
        given = self.parameters(X)[0].value if is_scale(self.gamma) else self.gamma
        return np.asarray(given, dtype=float)


class RadialKernel(DistanceKernel):
    """k(x, y) = phi(r^2) with r^2 = sum_d gamma_d (x_d - y_d)^2 and phi(0) = 1.

    A subclass implements `profile`, which is phi, and `decay`, which is -phi' and must
    be finite at r = 0.

    Parameters
    ----------
    gamma, per_feature, gamma_bounds
        As in `RBF`.

    Examples
    --------
    The Cauchy kernel has phi(s) = 1 / (1 + s) and -phi'(s) = phi(s)^2:

    >>> class Cauchy(RadialKernel):
    ...     def profile(self, minus_squares):
    ...         return 1.0 / (1.0 - minus_squares)
    ...     def decay(self, gram, Z_X, Z_Y):
    ...         return gram**2
    >>> Cauchy(gamma=0.5)(np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.333],
           [0.333, 1.   ]])
    """

    def profile(self, minus_squares: Array) -> Array:
        """Return phi(r^2).

        Parameters
        ----------
        minus_squares : array of shape (n, m)
            -r^2; it may be overwritten.
        """
        raise NotImplementedError

    def decay(self, gram: Array, Z_X: Matrix, Z_Y: Matrix) -> Array:
        """Return -phi'(r^2), of shape (n, m).

        Parameters
        ----------
        gram : array of shape (n, m)
            phi(r^2), which is not changed.
        Z_X, Z_Y : matrices of shape (n, d) and (m, d)
            The inputs times sqrt(gamma), so that r is their distance.
        """
        raise NotImplementedError

    def gram(self, X: Matrix, Y: Matrix | None = None) -> Array:
        Z_X, Z_Y = _scaled(X, Y, self._root_gamma(X))
        gram = of_squared_distances(self.profile, Z_X, Z_Y)
        if Y is None:
            np.fill_diagonal(gram, 1.0)
        return gram

    def single(self, X: Matrix) -> Array | None:
        """Return X less its centre in single precision: distances stay the same."""
        if is_sparse(X):
            return None
        return np.asarray(X - _centre(X), dtype=np.float32)

    def rounding(self, X: Matrix) -> float:
        """Return eps (1 + 2 mean |z|^2), with z = sqrt(gamma) x for the rows x of X.

        It estimates the rounding error of r^2 = |z|^2 + |z'|^2 - 2 z'z.
        """
        Z, _ = _scaled(X, None, self._root_gamma(X))
        squares = float(np.mean(row_dots(Z)))
        return float(np.finfo(X.dtype).eps) * (1.0 + 2.0 * squares)

    def pullback(
        self, X: Matrix, Y: Matrix | None, gram: Array, W: Factors, inputs: bool = False
    ) -> KernelGradient:
        """With V = -W o phi'(r^2), r = V 1, s = V'1, scaled inputs z = sqrt(gamma) x,

        d/d log gamma_d = -(r'z_d^2 + s'z'_d^2 - 2 z_d' V z'_d)
        d/dx_id         = -2 sqrt(gamma_d) (r_i z_id - (V z'_d)_i):

        two matrix products, whatever the number of features. W is U alpha' in
        `KernelMachine.sensitivity`. For a Gaussian kernel, the derivative by gamma_d
        itself is -sum_ij W_ij K_ij (x_id - y_jd)^2: <W, dK/dgamma_d> of Klatzer 2014,
        sections 3.1.2 and 3.1.3.
        """
        root = self._root_gamma(X)
        Z_X, Z_Y = _scaled(X, Y, root)
        square_X, square_Y = _square(Z_X), _square(Z_Y)
        by_feature = np.zeros(Z_X.shape[1])
        column_sums = np.zeros(Z_Y.shape[0])
        grad_X = np.empty(Z_X.shape) if inputs else None
        back_Y = np.zeros(Z_Y.shape) if inputs else None

        def contribution(rows: slice, V: Array) -> tuple[Array, Array, Array | None]:
            V *= self.decay(gram[rows], Z_X[rows], Z_Y)
            row_sums, V_Z = V.sum(axis=1), V @ Z_Y
            own = 2.0 * column_dots(Z_X[rows], V_Z) - square_X[rows].T @ row_sums
            if grad_X is None:
                return own, V.sum(axis=0), None
            grad_X[rows] = V_Z - dense(Z_X[rows]) * row_sums[:, None]
            return own, V.sum(axis=0), V.T @ Z_X[rows]

        for own, sums, back in W.map_blocks(contribution):
            by_feature += own
            column_sums += sums
            if back_Y is not None:
                back_Y += back
        by_feature -= square_Y.T @ column_sums
        theta = by_feature if self.per_feature else by_feature.sum(keepdims=True)
        if grad_X is None or back_Y is None:
            return KernelGradient(theta)
        grad_Y = back_Y - dense(Z_Y) * column_sums[:, None]
        return KernelGradient(theta, grad_X * (2.0 * root), grad_Y * (2.0 * root))

    def _size(self, X: Matrix, sample_weight: Array | None) -> Gamma:
        if self.per_feature:
            return column_scale(X, sample_weight) ** 2
        return mean_variance(X, sample_weight)

    def _deviation(self, size: Gamma) -> Gamma:
        return np.sqrt(size)

    def _distances(self, X: Matrix, Y: Matrix | None, gamma: Gamma) -> Array:
        Z_X, Z_Y = _scaled(X, Y, np.sqrt(gamma))
        return of_squared_distances(np.negative, Z_X, Z_Y)

    def _root_gamma(self, X: Matrix) -> Array:
        root: Array = np.sqrt(self._gamma(X))
        return root


class RBF(RadialKernel):
    """k(x, y) = exp(-sum_d gamma_d (x_d - y_d)^2), the Gaussian kernel.

    Parameters
    ----------
    gamma : "scale", float or array of shape (n_features,)
        Inverse squared width. "scale" is 1 / (n_features variance), with the mean
        variance of all features. With `per_feature` it uses each feature's variance,
        or its interquartile range if that is narrower, so that the units of the
        features do not matter.
    per_feature : bool
        Learn one gamma for every feature: automatic relevance determination.
    gamma_bounds : "scale" or pair of numbers or arrays
        Bounds of gamma. "scale" allows 1e-5 (less with more than a hundred features)
        to 1e2 in units of 1 / variance. The upper bound is raised if nearest
        neighbours are closer, until k(x, y) = 1/e between them.

    Examples
    --------
    >>> import numpy as np
    >>> RBF(gamma=0.5)(np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """

    def profile(self, minus_squares: Array) -> Array:
        """Return exp(-r^2)."""
        return exp_in_place(minus_squares)

    def decay(self, gram: Array, Z_X: Matrix, Z_Y: Matrix) -> Array:
        """Return exp(-r^2)."""
        return gram


class Matern(RadialKernel):
    """Kernels of once (nu = 3/2) or twice (nu = 5/2) differentiable functions.

    With r^2 = sum_d gamma_d (x_d - y_d)^2:

        nu = 1.5:  k = (1 + t) exp(-t),            t = sqrt(3) r
        nu = 2.5:  k = (1 + t + t^2/3) exp(-t),    t = sqrt(5) r

    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, eq. (4.17),
    with gamma = 1 / l^2. For large nu the kernel tends to RBF(gamma / 2).

    Parameters
    ----------
    nu : {1.5, 2.5}
        Smoothness; it is not learned.
    gamma, per_feature, gamma_bounds
        As in `RBF`.

    Examples
    --------
    >>> import numpy as np
    >>> Matern(1.5, gamma=1.0)(np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.483],
           [0.483, 1.   ]])
    """

    def __init__(
        self,
        nu: float = 1.5,
        gamma: Width = "scale",
        *,
        per_feature: bool = False,
        gamma_bounds: Bounds = "scale",
    ):
        super().__init__(gamma, per_feature=per_feature, gamma_bounds=gamma_bounds)
        self.nu = nu

    def validate(self) -> Self:
        if self.nu not in (1.5, 2.5):
            raise ValueError(
                f"Matern: nu must be 1.5 or 2.5, got {self.nu!r}. Matern(0.5) of one "
                "feature is Laplacian(), and RBF() is the limit of large nu."
            )
        return self

    def profile(self, minus_squares: Array) -> Array:
        """Return (1 + t) exp(-t) or (1 + t + t^2/3) exp(-t)."""
        t = self._argument(minus_squares)
        gram = 1.0 + t
        if self.nu == 2.5:
            gram += t * t / 3.0
        gram *= _exp_minus(t)
        return gram

    def decay(self, gram: Array, Z_X: Matrix, Z_Y: Matrix) -> Array:
        """Return 3/2 exp(-t) or 5/6 (1 + t) exp(-t): no division by r is left."""
        t = of_squared_distances(self._argument, Z_X, Z_Y)
        decay = 1.5 if self.nu == 1.5 else 5.0 / 6.0 * (1.0 + t)
        return decay * _exp_minus(t)

    def _argument(self, minus_squares: Array) -> Array:
        """t = sqrt(2 nu) r; overwrites -r^2."""
        minus_squares *= -2.0 * self.validate().nu
        out: Array = np.sqrt(minus_squares, out=minus_squares)
        return out


def _exp_minus(t: Array) -> Array:
    """exp(-t); overwrites t."""
    return exp_in_place(np.negative(t, out=t))


def exp_in_place(exponents: Array) -> Array:
    """Overwrite exponents by exp, or by zero where that is below the normal numbers.

    Processors take a hundred times as long for products with subnormal numbers, and the
    Gram matrix of a narrow kernel has many.
    """
    # Twice as large, so that no result rounds to a subnormal number.
    lowest = np.log(2.0 * np.finfo(exponents.dtype).tiny)
    out: Array
    if not exponents.min(initial=0.0) < lowest:
        out = np.exp(exponents, out=exponents)
        return out
    normal = exponents >= lowest
    out = np.exp(np.maximum(exponents, lowest, out=exponents), out=exponents)
    out *= normal
    return out


def is_scale(argument: object) -> bool:
    """Tell whether the argument is "scale", which leaves its value to the data."""
    if isinstance(argument, str) and argument != "scale":
        raise ValueError(f"Expected 'scale' or a number, got {argument!r}.")
    return isinstance(argument, str)


def check_positive(name: str, value: Array, given: object) -> None:
    """Raise a ValueError unless all values are positive and finite."""
    if not (np.all(value > 0) and np.all(np.isfinite(value))):
        raise ValueError(f"{name} must be positive and finite, got {given!r}.")


def _checked_gamma(given: Width, size: Gamma) -> Array:
    """Gamma as a number or, if there is a size for every feature, as an array."""
    gamma = np.asarray(given, dtype=float)
    if isinstance(size, np.ndarray):
        if gamma.ndim and gamma.size != len(size):
            raise ValueError(
                f"gamma has {gamma.size} values, but X has {len(size)} features."
            )
        gamma = np.broadcast_to(gamma, len(size)).copy()
    elif gamma.ndim:
        raise ValueError(
            f"gamma has {gamma.size} values, expected one number; for one per feature "
            "use a kernel with per_feature=True, such as RBF (kernel='ard')."
        )
    check_positive("gamma", gamma, given)
    return gamma


def nearest_distance(
    distances: Callable[[Matrix, Matrix], Array],
    X: Matrix,
    deviation: Gamma,
) -> float:
    """Median distance of a row to its nearest different row; infinite if all are equal.

    The rows are spread evenly along the sum of the features in units of `deviation`, so
    that the order of rows and features does not matter.
    """
    along = X @ np.broadcast_to(1.0 / deviation, X.shape[1])
    order = np.argsort(along, kind="stable")
    places = np.linspace(0, len(order) - 1, min(len(order), NEIGHBOUR_ROWS))
    rows = order[places.round().astype(int)]
    between = distances(X[rows], X)
    largest = between.max(where=np.isfinite(between), initial=0.0)
    nearest = np.where(between > ROUNDING * largest, between, np.inf).min(axis=1)
    found = nearest[np.isfinite(nearest)]
    return float(np.median(found)) if len(found) else np.inf


def of_squared_distances(
    function: Callable[[Array], Array], A: Matrix, B: Matrix
) -> Array:
    """Apply a function to -|a_i - b_j|^2, which are at most zero.

    It is given blocks of rows, which it may overwrite.
    """
    out = dense(A @ B.T)
    of_A, of_B = row_dots(A)[:, None], row_dots(B)[None, :]

    def finish(rows: slice) -> None:
        block = out[rows]
        block *= 2.0
        block -= of_A[rows]
        block -= of_B
        np.minimum(block, 0.0, out=block)
        values = function(block)
        if values is not block:
            block[...] = values

    blocks = row_blocks(len(out), out.shape[1], CACHED_ENTRIES)
    in_threads(finish, blocks, worthwhile=out.size > CACHED_ENTRIES)
    return out


def _scaled(X: Matrix, Y: Matrix | None, root: Array) -> tuple[Matrix, Matrix]:
    """Inputs times root = sqrt(gamma), about a common centre.

    |x|^2 + |y|^2 - 2 x'y cancels if the data lie far from the origin. A sparse matrix
    is not centred, since that would fill it.
    """
    if X.dtype == np.float32:
        root = root.astype(X.dtype)
    if not is_sparse(X):
        centre = _centre(X if Y is None else Y)
        X, Y = X - centre, None if Y is None else Y - centre
    Z_X = scale_columns(X, root)
    return Z_X, Z_X if Y is None else scale_columns(Y, root)


def _centre(X: Matrix) -> Array:
    """Medians of the features, on no more than `CENTRE_ROWS` rows.

    A mean would follow an outlier of 1e12 away from all other rows, and their distances
    would drown in rounding errors. The median of a constant is exactly that constant.
    """
    n = X.shape[0]
    if not n:
        # A machine without support vectors.
        return np.zeros(X.shape[1], dtype=X.dtype)
    if is_sparse(X):
        # Among dense inputs; its zeros stay zeros otherwise.
        return np.asarray(X.mean(axis=0)).ravel()
    ordered = np.sort(X[_spread(n)], axis=0)
    # The two in the middle, which is one and the same of an odd number.
    m = len(ordered)
    centre: Array = 0.5 * (ordered[(m - 1) // 2] + ordered[m // 2])
    return centre


@functools.lru_cache(maxsize=128)
def _spread(n: int) -> Array:
    """Up to `CENTRE_ROWS` of n rows, at equal distances."""
    return np.linspace(0, n - 1, min(n, CENTRE_ROWS)).round().astype(int)


def _square(A: Matrix) -> Matrix:
    return A.multiply(A).tocsr() if is_sparse(A) else A * A
