"""The Laplacian kernel: exponential in absolute distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from bisvm.core.parts import Parameter
from bisvm.data.scaling import column_scale, mean_deviation, n_varying
from bisvm.kernels.base import Factors, Kernel, KernelGradient
from bisvm.kernels.exponential import dense_pair, dot_with_logarithm
from bisvm.kernels.widths import is_scale, nearest_distance, width_parameter


class Laplacian(Kernel):
    """k(x, y) = exp(-sum_d gamma_d |x_d - y_d|).

    It has a kink where x_d = y_d; the derivative there is taken as zero, the mean of
    those on both sides. Sparse inputs are made dense: |x_d - y_d| is no product, and
    most entries of the difference of two sparse rows have to be visited anyway.

    Parameters
    ----------
    gamma : "scale", float or array of shape (n_features,)
        "scale" is 1 / (n_features standard deviation): of all columns on average, or
        with `per_feature` of each column by itself, so that features measured in
        different units start out equal.
    per_feature : bool
        One gamma for every feature: automatic relevance determination.
    gamma_bounds : "scale" or pair of numbers
        What gamma may be, in natural units; "scale" allows 1e-5 (less with more than
        a hundred features) to 1e2 in units of 1 / standard deviation, and more where
        nearest neighbours are nearer: as far as k(x, y) = 1/e between them.
    """

    smooth = False

    def __init__(
        self,
        gamma: Any = "scale",
        *,
        per_feature: bool = False,
        gamma_bounds: Any = "scale",
    ):
        self.gamma = gamma
        self.per_feature = per_feature
        self.gamma_bounds = gamma_bounds

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        size: Any = mean_deviation(X, sample_weight)
        if self.per_feature:
            size = column_scale(X, sample_weight)
        return (
            width_parameter(
                self.gamma,
                self.gamma_bounds,
                size,
                n_varying(X) if self.per_feature else X.shape[1],
                lambda: nearest_distance(self._distances(size), X, size),
            ),
        )

    def _distances(self, size: Any) -> Callable[[Any, Any], np.ndarray]:
        """Absolute distances with features in units of `size`."""
        unscaled = self.replace(gamma=1.0 / size)
        return lambda A, B: absolute_distances(*unscaled._scaled(A, B)[:2])

    def gram(self, X: Any, Y: Any = None) -> np.ndarray:
        Z_X, Z_Y, _ = self._scaled(X, Y)
        gram = absolute_distances(Z_X, Z_Y)
        return np.exp(np.negative(gram, out=gram), out=gram)

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
        """With V = W o K and scaled inputs z = gamma x,

        d/d log gamma_d = -sum_ij V_ij |z_id - z'_jd|
        d/dx_id         = -gamma_d sum_j V_ij sign(z_id - z'_jd).

        One shared gamma needs no inputs: it is <V, log K>.
        """
        if not (self.per_feature or inputs):
            return KernelGradient(np.array([dot_with_logarithm(gram, weights)]))
        Z_X, Z_Y, gamma = self._scaled(X, Y)
        by_feature = np.zeros(Z_X.shape[1])
        grad_X, grad_Y = np.zeros(Z_X.shape), np.zeros(Z_Y.shape)
        for rows, V in weights.blocks():
            V *= gram[rows]
            if inputs:
                absolute_pullback(V, Z_X[rows], Z_Y, by_feature, grad_X[rows], grad_Y)
            else:
                absolute_by_feature(V, Z_X[rows], Z_Y, by_feature)
        theta = by_feature if self.per_feature else by_feature.sum(keepdims=True)
        if not inputs:
            return KernelGradient(theta)
        return KernelGradient(theta, gamma * grad_X, gamma * grad_Y)

    def _scaled(self, X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs times gamma, dense and in C order, and gamma."""
        given = self.parameters(X)[0].value if is_scale(self.gamma) else self.gamma
        gamma = np.asarray(given, dtype=float)
        A, B = dense_pair(X, Y)
        Z_X = A * gamma
        return Z_X, Z_X if Y is None else B * gamma, gamma


@njit(cache=True, fastmath={"reassoc"})
def absolute_distances(X, Y):
    """D_ij = sum_d |x_id - y_jd|."""
    out = np.empty((len(X), len(Y)))
    for i in range(len(X)):
        for j in range(len(Y)):
            total = 0.0
            for d in range(X.shape[1]):
                total += abs(X[i, d] - Y[j, d])
            out[i, j] = total
    return out


@njit(cache=True)
def absolute_by_feature(V, X, Y, by_feature):
    """by_feature_d -= sum_ij V_ij |x_id - y_jd|."""
    for i in range(len(X)):
        for j in range(len(Y)):
            v = V[i, j]
            for d in range(X.shape[1]):
                by_feature[d] -= v * abs(X[i, d] - Y[j, d])


@njit(cache=True)
def absolute_pullback(V, X, Y, by_feature, grad_X, grad_Y):
    """The same, and the gradient of -sum_ij V_ij D_ij by X and Y, added to theirs."""
    for i in range(len(X)):
        for j in range(len(Y)):
            v = V[i, j]
            for d in range(X.shape[1]):
                difference = X[i, d] - Y[j, d]
                slope = v * np.sign(difference)
                by_feature[d] -= slope * difference
                grad_X[i, d] -= slope
                grad_Y[j, d] += slope
