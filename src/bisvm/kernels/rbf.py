"""The Gaussian kernel, with one width for all features or one for each (ARD)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from bisvm.kernels.base import Factors, Kernel, KernelGradient
from bisvm.parts import INVERSE_WIDTH, Parameter, natural_bounds
from bisvm.scaling import column_variance


class RBF(Kernel):
    """k(x, y) = exp(-sum_d gamma_d (x_d - y_d)^2).

    Parameters
    ----------
    gamma : "scale", float or array of shape (n_features,)
        "scale" is 1 / (n_features variance): of all columns on average, or with
        `per_feature` of each column by itself, so that features measured in
        different units start out equal.
    per_feature : bool
        One gamma for every feature: automatic relevance determination.
    gamma_bounds : "scale" or pair of numbers
        What gamma may be, in natural units; "scale" allows 1e-5 (less with more than
        a hundred features) to 1e2 in units of 1 / variance.
    """

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
        variance = column_variance(X, sample_weight)
        n_features = len(variance)
        if not self.per_feature:
            variance = np.mean(variance)
        unit = 1.0 / variance
        gamma = unit / n_features if _is_scale(self.gamma) else self.gamma
        gamma = np.asarray(gamma, dtype=float)
        if self.per_feature:
            gamma = _one_per_feature(gamma, n_features)
        elif gamma.ndim:
            raise ValueError(
                f"gamma has {gamma.size} values, expected one number; "
                "for one per feature use per_feature=True (kernel='ard')."
            )
        if not (np.all(gamma > 0) and np.all(np.isfinite(gamma))):
            raise ValueError(f"gamma must be positive and finite, got {self.gamma!r}.")
        if _is_scale(self.gamma_bounds):
            low = min(1e-5, 1e-3 / n_features) * unit
            bounds = (np.minimum(low, gamma), np.maximum(1e2 * unit, gamma))
        else:
            bounds = natural_bounds("gamma_bounds", self.gamma_bounds)
        return (Parameter("gamma", gamma, bounds, unit=unit, role=INVERSE_WIDTH),)

    def _root_gamma(self, X: Any) -> np.ndarray:
        gamma = self.parameters(X)[0].value if _is_scale(self.gamma) else self.gamma
        return np.sqrt(np.asarray(gamma, dtype=float))

    def gram(self, X: Any, Y: Any = None) -> np.ndarray:
        Z_X, Z_Y = self._scaled(X, Y)
        gram = _minus_squared_distances(Z_X, Z_Y)
        np.exp(gram, out=gram)
        if Y is None:
            np.fill_diagonal(gram, 1.0)
        return gram

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
        """With V = W o K, r = V 1, s = V'1 and scaled inputs z = sqrt(gamma) x,

        d/d log gamma_d = -(r'z_d^2 + s'z'_d^2 - 2 z_d' V z'_d)
        d/dx_id         = -2 sqrt(gamma_d) (r_i z_id - (V z'_d)_i):

        two matrix products, whatever the number of features.
        """
        Z_X, Z_Y = self._scaled(X, Y)
        square_X, square_Y = _square(Z_X), _square(Z_Y)
        by_feature = np.zeros(Z_X.shape[1])
        column_sums = np.zeros(Z_Y.shape[0])
        grad_X = np.empty(Z_X.shape) if inputs else None
        back_Y = np.zeros(Z_Y.shape) if inputs else None
        for rows, V in weights.blocks():
            V *= gram[rows]
            row_sums = V.sum(axis=1)
            column_sums += V.sum(axis=0)
            V_Z = V @ Z_Y
            by_feature += 2.0 * _column_dots(Z_X[rows], V_Z)
            by_feature -= square_X[rows].T @ row_sums
            if grad_X is not None and back_Y is not None:
                grad_X[rows] = V_Z - _dense(Z_X[rows]) * row_sums[:, None]
                back_Y += V.T @ Z_X[rows]
        by_feature -= square_Y.T @ column_sums
        theta = by_feature if self.per_feature else by_feature.sum(keepdims=True)
        if grad_X is None or back_Y is None:
            return KernelGradient(theta)
        root = 2.0 * self._root_gamma(X)
        grad_Y = back_Y - _dense(Z_Y) * column_sums[:, None]
        return KernelGradient(theta, grad_X * root, grad_Y * root)

    def _scaled(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """Inputs times sqrt(gamma), about a common centre.

        |x|^2 + |y|^2 - 2 x'y cancels where the data lie far from the origin; a
        sparse matrix is left where it is, since centring would fill it.
        """
        root = self._root_gamma(X)
        if sparse.issparse(X):
            scale = sparse.diags_array(np.broadcast_to(root, X.shape[1]))
            Z_X = sparse.csr_array(X @ scale)
            return Z_X, Z_X if Y is None else sparse.csr_array(Y @ scale)
        centre = np.mean(X if Y is None else Y, axis=0)
        Z_X = (X - centre) * root
        return Z_X, Z_X if Y is None else (Y - centre) * root


def _is_scale(argument: Any) -> bool:
    if isinstance(argument, str) and argument != "scale":
        raise ValueError(f"Expected 'scale' or a number, got {argument!r}.")
    return isinstance(argument, str)


def _one_per_feature(gamma: np.ndarray, n_features: int) -> np.ndarray:
    if gamma.ndim and gamma.size != n_features:
        raise ValueError(
            f"gamma has {gamma.size} values, but X has {n_features} features."
        )
    return np.broadcast_to(gamma, n_features).copy()


def _minus_squared_distances(A: Any, B: Any) -> np.ndarray:
    """-|a_i - b_j|^2, clipped at zero."""
    product = A @ B.T
    out = product.toarray() if sparse.issparse(product) else product
    out *= 2.0
    out -= _row_dots(A)[:, None]
    out -= _row_dots(B)[None, :]
    return np.minimum(out, 0.0, out=out)


def _square(A: Any) -> Any:
    return A.multiply(A).tocsr() if sparse.issparse(A) else A * A


def _dense(A: Any) -> np.ndarray:
    return A.toarray() if sparse.issparse(A) else A


def _row_dots(A: Any) -> np.ndarray:
    if sparse.issparse(A):
        return np.asarray(A.multiply(A).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", A, A)


def _column_dots(A: Any, B: np.ndarray) -> np.ndarray:
    """sum_i A_id B_id for every column d."""
    if sparse.issparse(A):
        return np.asarray(A.multiply(B).sum(axis=0)).ravel()
    return np.einsum("id,id->d", A, B)
