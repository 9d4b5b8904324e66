"""Kernels between histograms, made of the chi-square distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from bisvm.core.parts import DegenerateError, Parameter
from bisvm.kernels.base import Factors, Kernel, KernelGradient
from bisvm.kernels.exponential import dense, dense_pair, dot_with_logarithm
from bisvm.kernels.widths import is_scale, nearest_distance, width_parameter

# Points whose distances settle the default gamma.
SAMPLE = 500

# A denominator that turns 0/0 into zero and leaves all others as they are.
TINY = 1e-300


class Chi2(Kernel):
    """k(x, y) = exp(-gamma sum_d (x_d - y_d)^2 / (x_d + y_d)), with 0/0 = 0.

    The inputs are not negative: histograms, counts, energies. It is scikit-learn's
    `chi2_kernel`. Where x_d = y_d = 0 there is a kink, and the derivative is taken as
    zero. Sparse inputs are made dense: the terms are no products of x_d and y_d, so
    that a sparse matrix product cannot form them, and the Gram matrix is dense anyway.

    Parameters
    ----------
    gamma : "scale" or float
        "scale" is 1 / the mean distance of two points, among at most 500 rows that are
        evenly spaced in X.
    gamma_bounds : "scale" or pair of numbers
        What gamma may be, in natural units; "scale" allows 1e-5 (less with more than a
        hundred features) to 1e2 in units of n_features / mean distance.
    """

    def __init__(self, gamma: Any = "scale", *, gamma_bounds: Any = "scale"):
        self.gamma = gamma
        self.gamma_bounds = gamma_bounds

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        n_features = X.shape[1]
        _not_negative(dense(X), type(self).__name__)
        size = _mean_distance(X, sample_weight) / n_features
        return (
            width_parameter(
                self.gamma,
                self.gamma_bounds,
                size,
                n_features,
                lambda: nearest_distance(_distances(size), X, 1.0),
            ),
        )

    def gram(self, X: Any, Y: Any = None) -> np.ndarray:
        gram = chi2_distances(*_histograms(X, Y, type(self).__name__))
        gram *= -self._gamma(X)
        return np.exp(gram, out=gram)

    def diagonal(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0])

    def pullback(
        self,
        X: Any,
        Y: Any,
        gram: np.ndarray,
        weights: Factors,
        *,
        inputs: bool = False,
    ) -> KernelGradient:
        """With V = W o K and t = (x_id - y_jd) / (x_id + y_jd),

        d/d log gamma = <V, log K>
        d/dx_id       = -gamma sum_j V_ij t (2 - t)
        d/dy_jd       =  gamma sum_i V_ij t (2 + t).
        """
        theta = np.array([dot_with_logarithm(gram, weights)])
        if not inputs:
            return KernelGradient(theta)
        A, B = _histograms(X, Y, type(self).__name__)
        grad_X, grad_Y = np.zeros(A.shape), np.zeros(B.shape)
        for rows, V in weights.blocks():
            V *= gram[rows]
            chi2_pullback(V, A[rows], B, grad_X[rows], grad_Y)
        gamma = self._gamma(X)
        return KernelGradient(theta, -gamma * grad_X, -gamma * grad_Y)

    def _gamma(self, X: Any) -> float:
        given = self.parameters(X)[0].value if is_scale(self.gamma) else self.gamma
        return float(given)


class AdditiveChi2(Kernel):
    """k(x, y) = sum_d 2 x_d y_d / (x_d + y_d), with 0/0 = 0.

    The inputs are not negative: histograms, counts, energies. Without parameters: its
    scale is C's. Scikit-learn's `additive_chi2_kernel` is the negative distance,
    -sum_d (x_d - y_d)^2 / (x_d + y_d), which is not positive definite; since
    2 x y / (x + y) = (x + y)/2 - (x - y)^2 / (2 (x + y)),

        k(x, y) = (sum_d x_d + sum_d y_d + additive_chi2_kernel(x, y)) / 2,

    between histograms of sum one 1 + additive_chi2_kernel / 2. Zeros and sparse inputs
    are treated as in `Chi2`.

    Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps, IEEE
    TPAMI 34(3), 2012, Table 1.
    """

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        _not_negative(dense(X), type(self).__name__)
        return ()

    def gram(self, X: Any, Y: Any = None) -> np.ndarray:
        return additive_chi2(*_histograms(X, Y, type(self).__name__))

    def diagonal(self, X: Any) -> np.ndarray:
        return np.asarray(X.sum(axis=1), dtype=float).ravel()

    def pullback(
        self,
        X: Any,
        Y: Any,
        gram: np.ndarray,
        weights: Factors,
        *,
        inputs: bool = False,
    ) -> KernelGradient:
        """d/dx_id = 2 sum_j W_ij (y_jd / (x_id + y_jd))^2, and d/dy_jd likewise."""
        if not inputs:
            return KernelGradient(np.empty(0))
        A, B = _histograms(X, Y, type(self).__name__)
        grad_X, grad_Y = np.zeros(A.shape), np.zeros(B.shape)
        for rows, W in weights.blocks():
            additive_chi2_pullback(W, A[rows], B, grad_X[rows], grad_Y)
        return KernelGradient(np.empty(0), grad_X, grad_Y)


def _distances(size: float) -> Callable[[Any, Any], np.ndarray]:
    """Chi-squared distances in units of `size`."""
    return lambda A, B: chi2_distances(*dense_pair(A, B)) / size


def _histograms(X: Any, Y: Any, kernel: str) -> tuple[np.ndarray, np.ndarray]:
    """Both arguments dense, or a ValueError that says where one is negative."""
    A, B = dense_pair(X, Y)
    _not_negative(A, kernel)
    return A, A if Y is None else _not_negative(B, kernel)


def _not_negative(X: np.ndarray, kernel: str) -> np.ndarray:
    if X.size and X.min() < 0:
        i, d = np.unravel_index(np.argmin(X), X.shape)
        raise DegenerateError(
            f"{kernel} is a kernel between histograms, whose entries are not negative, "
            f"but row {i}, column {d} of its input is {X[i, d]:.6g}. Scale the data by "
            "MinMaxScaler(clip=True) instead of StandardScaler, or use another kernel "
            "such as 'laplacian' or 'rbf'."
        )
    return X


def _mean_distance(X: Any, sample_weight: Any) -> float:
    """Weighted mean chi-square distance of two different rows; 1 if all are equal."""
    n = X.shape[0]
    rows = np.linspace(0, n - 1, min(n, SAMPLE)).astype(int)
    A = _not_negative(dense(X[rows]), Chi2.__name__)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight)
    w = weight[rows] / np.max(weight[rows], initial=np.finfo(float).tiny)
    pairs = w.sum() ** 2 - w @ w
    total = w @ chi2_distances(A, A) @ w
    return float(total / pairs) if total > 0 else 1.0


@njit(cache=True, fastmath={"reassoc"}, error_model="numpy")
def chi2_distances(X, Y):
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
def chi2_pullback(V, X, Y, grad_X, grad_Y):
    """Adds the gradient of sum_ij V_ij D_ij by X and Y to theirs."""
    for i in range(len(X)):
        for j in range(len(Y)):
            v = V[i, j]
            for d in range(X.shape[1]):
                t = (X[i, d] - Y[j, d]) / max(X[i, d] + Y[j, d], TINY)
                grad_X[i, d] += v * t * (2.0 - t)
                grad_Y[j, d] -= v * t * (2.0 + t)


@njit(cache=True, fastmath={"reassoc"}, error_model="numpy")
def additive_chi2(X, Y):
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
def additive_chi2_pullback(W, X, Y, grad_X, grad_Y):
    """Adds the gradient of sum_ij W_ij K_ij by X and Y to theirs."""
    for i in range(len(X)):
        for j in range(len(Y)):
            double = 2.0 * W[i, j]
            for d in range(X.shape[1]):
                denominator = max(X[i, d] + Y[j, d], TINY)
                x, y = X[i, d] / denominator, Y[j, d] / denominator
                grad_X[i, d] += double * y * y
                grad_Y[j, d] += double * x * x
