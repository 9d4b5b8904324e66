"""Kernels of distances that no matrix product forms: Laplacian and chi-square.

Their loops are compiled. Sparse inputs are made dense: most entries of the difference
of two sparse rows have to be visited, and the Gram matrix is dense anyway.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bisvm.core.compiling import njit
from bisvm.core.parts import DegenerateError, Parameters
from bisvm.core.threads import in_threads
from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import column_scale, dense, mean_deviation
from bisvm.kernels.base import (
    CACHED_ENTRIES,
    Factors,
    Kernel,
    KernelGradient,
    row_blocks,
)
from bisvm.kernels.radial import Bounds, DistanceKernel, Gamma

# Rows whose distances give the default gamma of Chi2: at most 125,000 pairs.
SAMPLE_ROWS = 500

# A denominator that turns 0/0 into zero and leaves all others as they are.
TINY = 1e-300


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
def absolute_distances(X: Array, Y: Array, out: Array) -> None:
    """D_ij = sum_d |x_id - y_jd|."""
    for i in range(len(X)):
        for j in range(len(Y)):
            total = 0.0
            for d in range(X.shape[1]):
                total += abs(X[i, d] - Y[j, d])
            out[i, j] = total


@njit(cache=True, nogil=True, error_model="numpy")
def absolute_by_feature(V: Array, X: Array, Y: Array, out: Array) -> None:
    """out_d -= sum_ij V_ij |x_id - y_jd|."""
    for i in range(len(X)):
        for j in range(len(Y)):
            v = V[i, j]
            for d in range(X.shape[1]):
                out[d] -= v * abs(X[i, d] - Y[j, d])


@njit(cache=True, error_model="numpy")
def absolute_pullback(V: Array, X: Array, Y: Array, by_X: Array, by_Y: Array) -> None:
    """Subtract the gradient of sum_ij V_ij D_ij with respect to X and Y."""
    for i in range(len(X)):
        for j in range(len(Y)):
            v = V[i, j]
            for d in range(X.shape[1]):
                slope = v * np.sign(X[i, d] - Y[j, d])
                by_X[i, d] -= slope
                by_Y[j, d] += slope


@njit(cache=True, error_model="numpy", fastmath={"reassoc"})
def chi2_distances(X: Array, Y: Array) -> Array:
    """D_ij = sum_d (x_id - y_jd)^2 / (x_id + y_jd)."""
    out = np.empty((len(X), len(Y)))
    for i in range(len(X)):
        for j in range(len(Y)):
            total = 0.0
            for d in range(X.shape[1]):
                difference = X[i, d] - Y[j, d]
                total += difference * difference / max(X[i, d] + Y[j, d], TINY)
            out[i, j] = total
    return out


@njit(cache=True, error_model="numpy")
def chi2_pullback(V: Array, X: Array, Y: Array, by_X: Array, by_Y: Array) -> None:
    """Subtract the gradient of sum_ij V_ij D_ij with respect to X and Y.

    With t = (x - y) / (x + y) it is dD/dx = t (2 - t), dD/dy = -t (2 + t).
    """
    for i in range(len(X)):
        for j in range(len(Y)):
            v = V[i, j]
            for d in range(X.shape[1]):
                t = (X[i, d] - Y[j, d]) / max(X[i, d] + Y[j, d], TINY)
                by_X[i, d] -= v * t * (2.0 - t)
                by_Y[j, d] += v * t * (2.0 + t)


@njit(cache=True, error_model="numpy", fastmath={"reassoc"})
def additive_chi2(X: Array, Y: Array) -> Array:
    """K_ij = sum_d 2 x_id y_jd / (x_id + y_jd)."""
    out = np.empty((len(X), len(Y)))
    for i in range(len(X)):
        for j in range(len(Y)):
            total = 0.0
            for d in range(X.shape[1]):
                total += X[i, d] * Y[j, d] / max(X[i, d] + Y[j, d], TINY)
            out[i, j] = 2.0 * total
    return out


@njit(cache=True, error_model="numpy")
def additive_chi2_pullback(
    V: Array, X: Array, Y: Array, by_X: Array, by_Y: Array
) -> None:
    """Add the gradient of sum_ij V_ij K_ij with respect to X and Y."""
    for i in range(len(X)):
        for j in range(len(Y)):
            double = 2.0 * V[i, j]
            for d in range(X.shape[1]):
                denominator = max(X[i, d] + Y[j, d], TINY)
                x, y = X[i, d] / denominator, Y[j, d] / denominator
                by_X[i, d] += double * y * y
                by_Y[j, d] += double * x * x


class ExponentialKernel(DistanceKernel):
    """k(x, y) = exp(-D(z, z')) with z = gamma x and z' = gamma y.

    D(z, z') = sum_d delta(z_d, z'_d) is homogeneous: D(c z, c z') = c D(z, z') for
    c > 0. A subclass provides the loops of the gradient: `_feature_loop` only if it
    allows one gamma per feature.
    """

    _feature_loop: Callable[[Array, Array, Array, Array], None]
    _pullback_loop: Callable[[Array, Array, Array, Array, Array], None]

    def gram(self, X: Matrix, Y: Matrix | None = None) -> Array:
        gram = self._distances(X, Y, self._gamma(X))

        def finish(rows: slice) -> None:
            np.exp(np.negative(gram[rows], out=gram[rows]), out=gram[rows])

        blocks = row_blocks(len(gram), gram.shape[1], CACHED_ENTRIES)
        in_threads(finish, blocks, worthwhile=gram.size > CACHED_ENTRIES)
        return gram

    def pullback(
        self, X: Matrix, Y: Matrix | None, gram: Array, W: Factors, inputs: bool = False
    ) -> KernelGradient:
        """With V = W o K,

        d/d log gamma_d = -sum_ij V_ij delta(z_id, z'_jd)
        d/dx_id         = -gamma_d sum_j V_ij d delta(z_id, z'_jd) / dz_id.

        For a single gamma the former is <V, log K>, with 0 log 0 = 0.
        """
        gamma, tiny = self._gamma(X), np.finfo(float).tiny
        Z_X, Z_Y = self._scaled(X, Y, gamma)
        theta = np.zeros(Z_X.shape[1] if self.per_feature else 1)
        grad_X, grad_Y = np.zeros(Z_X.shape), np.zeros(Z_Y.shape)

        def contribution(rows: slice, V: Array) -> tuple[Array, Array]:
            V *= gram[rows]
            own, back = np.zeros_like(theta), np.zeros(Z_Y.shape if inputs else 0)
            if self.per_feature:
                self._feature_loop(V, Z_X[rows], Z_Y, own)
            else:
                own += np.vdot(V, np.log(np.maximum(gram[rows], tiny)))
            if inputs:
                self._pullback_loop(V, Z_X[rows], Z_Y, grad_X[rows], back)
            return own, back

        for own, back in W.map_blocks(contribution):
            theta += own
            if inputs:
                grad_Y += back
        if not inputs:
            return KernelGradient(theta)
        return KernelGradient(theta, gamma * grad_X, gamma * grad_Y)

    def _scaled(self, X: Matrix, Y: Matrix | None, gamma: Gamma) -> tuple[Array, Array]:
        A, B = dense_pair(X, Y)
        return A * gamma, B * gamma


class Laplacian(ExponentialKernel):
    """k(x, y) = exp(-sum_d gamma_d |x_d - y_d|).

    The derivative at the kink x_d = y_d is taken as zero, the mean of both sides.

    Parameters
    ----------
    gamma : "scale", float or array of shape (n_features,)
        Inverse width. "scale" is 1 / (n_features standard deviation), with the mean
        standard deviation of all features. With `per_feature` it uses that of each
        feature, or its interquartile range if that is narrower.
    per_feature : bool
        Learn one gamma for every feature: automatic relevance determination.
    gamma_bounds : "scale" or pair of numbers or arrays
        Bounds of gamma. "scale" allows 1e-5 (less with more than a hundred features)
        to 1e2 in units of 1 / standard deviation. The upper bound is raised if nearest
        neighbours are closer, until k(x, y) = 1/e between them.

    Examples
    --------
    >>> import numpy as np
    >>> Laplacian(gamma=1.0)(np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    smooth = False
    _feature_loop = staticmethod(absolute_by_feature)
    _pullback_loop = staticmethod(absolute_pullback)

    def _size(self, X: Matrix, sample_weight: Array | None) -> Gamma:
        measure = column_scale if self.per_feature else mean_deviation
        return measure(X, sample_weight)

    def _deviation(self, size: Gamma) -> Gamma:
        return size

    def _distances(self, X: Matrix, Y: Matrix | None, gamma: Gamma) -> Array:
        A, B = self._scaled(X, Y, gamma)
        out = np.empty((len(A), len(B)))
        in_threads(
            lambda rows: absolute_distances(A[rows], B, out[rows]),
            row_blocks(len(A), len(B), CACHED_ENTRIES),
            worthwhile=out.size > CACHED_ENTRIES,
        )
        return out


class Chi2(ExponentialKernel):
    """k(x, y) = exp(-gamma sum_d (x_d - y_d)^2 / (x_d + y_d)), with 0/0 = 0.

    Inputs must not be negative: histograms, counts, energies. This is scikit-learn's
    `chi2_kernel`. The derivative at the kink x_d = y_d = 0 is taken as zero. Klatzer
    2014, (6.1).

    Parameters
    ----------
    gamma : "scale" or float
        "scale" is 1 / (mean distance of two rows), among at most 500 evenly spaced
        rows of X.
    gamma_bounds : "scale" or pair of numbers
        Bounds of gamma. "scale" allows 1e-5 (less with more than a hundred features)
        to 1e2 in units of n_features / mean distance, and more if nearest neighbours
        are closer.

    Examples
    --------
    >>> import numpy as np
    >>> Chi2(gamma=1.0)(np.array([[0.5, 0.5], [1.0, 0.0]])).round(3)
    array([[1.   , 0.513],
           [0.513, 1.   ]])
    """

    _pullback_loop = staticmethod(chi2_pullback)

    def __init__(self, gamma: float | str = "scale", *, gamma_bounds: Bounds = "scale"):
        self.gamma = gamma
        self.gamma_bounds = gamma_bounds

    def _size(self, X: Matrix, sample_weight: Array | None) -> float:
        """Mean distance of two rows / n_features; 1 / n_features if all are equal."""
        histograms(X, None, "Chi2")
        n, n_features = X.shape
        rows = np.linspace(0, n - 1, min(n, SAMPLE_ROWS)).astype(int)
        weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight)
        w = weight[rows] / np.max(weight[rows], initial=np.finfo(float).tiny)
        pairs = w.sum() ** 2 - w @ w
        total = w @ chi2_distances(*dense_pair(X[rows], None)) @ w
        return float((total / pairs if total > 0 else 1.0) / n_features)

    def _deviation(self, size: Gamma) -> float:
        return 1.0

    def _distances(self, X: Matrix, Y: Matrix | None, gamma: Gamma) -> Array:
        out = chi2_distances(*histograms(X, Y, "Chi2"))
        out *= gamma
        return out


class AdditiveChi2(Kernel):
    """k(x, y) = sum_d 2 x_d y_d / (x_d + y_d), with 0/0 = 0.

    Inputs must not be negative: histograms, counts, energies. It has no parameters: C
    is its scale. Since 2 x y / (x + y) = (x + y)/2 - (x - y)^2 / (2 (x + y)),

        k(x, y) = (sum_d x_d + sum_d y_d + additive_chi2_kernel(x, y)) / 2,

    where scikit-learn's `additive_chi2_kernel` is the negative distance, which is not
    positive definite. The derivative at x_d = y_d = 0 is taken as zero. Klatzer 2014,
    (6.2).

    Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps, IEEE
    TPAMI 34(3), 2012, Table 1.

    Examples
    --------
    >>> import numpy as np
    >>> AdditiveChi2()(np.array([[0.5, 0.5], [1.0, 0.0]])).round(3)
    array([[1.   , 0.667],
           [0.667, 1.   ]])
    """

    def parameters(self, X: Matrix, sample_weight: Array | None = None) -> Parameters:
        histograms(X, None, "AdditiveChi2")
        return ()

    def gram(self, X: Matrix, Y: Matrix | None = None) -> Array:
        return additive_chi2(*histograms(X, Y, "AdditiveChi2"))

    def diagonal(self, X: Matrix) -> Array:
        return np.asarray(X.sum(axis=1), dtype=float).ravel()

    def pullback(
        self, X: Matrix, Y: Matrix | None, gram: Array, W: Factors, inputs: bool = False
    ) -> KernelGradient:
        """d/dx_id = 2 sum_j W_ij (y_jd / (x_id + y_jd))^2, and d/dy_jd likewise."""
        if not inputs:
            return KernelGradient(np.empty(0))
        A, B = histograms(X, Y, "AdditiveChi2")
        grad_X, grad_Y = np.zeros(A.shape), np.zeros(B.shape)

        def contribution(rows: slice, V: Array) -> Array:
            back = np.zeros(B.shape)
            additive_chi2_pullback(V, A[rows], B, grad_X[rows], back)
            return back

        for back in W.map_blocks(contribution):
            grad_Y += back
        return KernelGradient(np.empty(0), grad_X, grad_Y)


def dense_pair(X: Matrix, Y: Matrix | None) -> tuple[Array, Array]:
    """X and Y as arrays in C order; Y = None stands for X.

    Compiled loops do not check that both have as many columns.
    """
    A = np.ascontiguousarray(dense(X), dtype=float)
    B = A if Y is None else np.ascontiguousarray(dense(Y), dtype=float)
    if A.ndim != 2 or B.ndim != 2 or A.shape[1] != B.shape[1]:
        raise ValueError(
            f"X has shape {A.shape} and Y has shape {B.shape}: kernels compare "
            "points with the same number of features."
        )
    return A, B


def histograms(X: Matrix, Y: Matrix | None, kernel: str) -> tuple[Array, Array]:
    """Both arguments as arrays, or an error that says where one is negative."""
    pair = dense_pair(X, Y)
    for A in pair:
        if A.size and A.min() < 0:
            i, d = np.unravel_index(np.argmin(A), A.shape)
            raise DegenerateError(
                f"{kernel} compares histograms, whose entries are not negative, but "
                f"row {i}, column {d} of its input is {A[i, d]:.6g}. Scale the data by "
                "MinMaxScaler(clip=True) instead of StandardScaler, or use another "
                "kernel such as 'laplacian' or 'rbf'."
            )
    return pair
