"""Kernels of the distance alone, with one width for all features or one for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from bisvm.core.parts import Parameter
from bisvm.data.scaling import column_scale, mean_variance, n_varying
from bisvm.kernels.base import Factors, Kernel, KernelGradient
from bisvm.kernels.widths import is_scale, nearest_distance, width_parameter


class RadialKernel(Kernel):
    """k(x, y) = phi(r^2), r^2 = sum_d gamma_d (x_d - y_d)^2, with phi(0) = 1.

    A subclass gives phi (`_profile`) and -phi' (`_decay`), which must be finite at
    r = 0.

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
        a hundred features) to 1e2 in units of 1 / variance, and more where nearest
        neighbours are nearer: as far as k(x, y) = 1/e between them.
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

    def _profile(self, minus_squares: np.ndarray) -> np.ndarray:
        """phi(r^2), given -r^2 in an array that may be overwritten."""
        raise NotImplementedError

    def _decay(self, gram: np.ndarray, Z_X: Any, Z_Y: Any) -> np.ndarray:
        """-phi'(r^2) at the distances of scaled inputs, gram being phi(r^2)."""
        raise NotImplementedError

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        size: Any = mean_variance(X, sample_weight)
        if self.per_feature:
            size = column_scale(X, sample_weight) ** 2
        return (
            width_parameter(
                self.gamma,
                self.gamma_bounds,
                size,
                n_varying(X) if self.per_feature else X.shape[1],
                lambda: nearest_distance(_distances(size), X, np.sqrt(size)),
            ),
        )

    def gram(self, X: Any, Y: Any = None) -> np.ndarray:
        gram = self._profile(minus_squared_distances(*self._scaled(X, Y)))
        if Y is None:
            np.fill_diagonal(gram, 1.0)
        return gram

    def diagonal(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0])

    def single(self, X: Any) -> np.ndarray | None:
        """Distances do not mind a shift, and single precision keeps differences."""
        if sparse.issparse(X):
            return None
        return np.asarray(X - _centre(X), dtype=np.float32)

    def rounding(self, X: Any) -> float:
        """Squared distances are differences of squares: |z|^2 + |z'|^2 - 2 z'z."""
        Z, _ = self._scaled(X, None)
        squares = float(np.mean(_row_dots(Z)))
        return float(np.finfo(X.dtype).eps) * (1.0 + 2.0 * squares)

    def pullback(
        self,
        X: Any,
        Y: Any,
        gram: np.ndarray,
        weights: Factors,
        *,
        inputs: bool = False,
    ) -> KernelGradient:
        """With V = -W o phi'(r^2), r = V 1, s = V'1, scaled inputs z = sqrt(gamma) x,

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
            V *= self._decay(gram[rows], Z_X[rows], Z_Y)
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

    def _root_gamma(self, X: Any) -> np.ndarray:
        gamma = self.parameters(X)[0].value if is_scale(self.gamma) else self.gamma
        return np.sqrt(np.asarray(gamma, dtype=float))

    def _scaled(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """Inputs times sqrt(gamma), about a common centre.

        |x|^2 + |y|^2 - 2 x'y cancels where the data lie far from the origin; a
        sparse matrix is left where it is, since centring would fill it.
        """
        root = self._root_gamma(X)
        if X.dtype == np.float32:
            root = root.astype(X.dtype)
        if sparse.issparse(X):
            scale = sparse.diags_array(np.broadcast_to(root, X.shape[1]))
            Z_X = sparse.csr_array(X @ scale)
            return Z_X, Z_X if Y is None else sparse.csr_array(Y @ scale)
        centre = _centre(X if Y is None else Y)
        Z_X = (X - centre) * root
        return Z_X, Z_X if Y is None else (Y - centre) * root


def _distances(size: Any) -> Callable[[Any, Any], np.ndarray]:
    """Squared distances with features in units of the roots of `size`."""
    unscaled = RadialKernel(1.0 / size, per_feature=True)
    return lambda A, B: -minus_squared_distances(*unscaled._scaled(A, B))


def _centre(X: Any) -> np.ndarray:
    """Means of the columns; of a constant column exactly its value.

    The mean of equal numbers may be off by rounding, and what is left of a large
    constant after centring would drown the distances along other columns.
    """
    if not X.shape[0]:
        # A machine without support vectors: there is nothing to be near to.
        return np.zeros(X.shape[1], dtype=X.dtype)
    if sparse.issparse(X):
        return np.asarray(X.mean(axis=0)).ravel()
    centre = np.mean(X, axis=0)
    if np.any(X[0] == X[-1]):
        centre = np.clip(centre, X.min(axis=0), X.max(axis=0))
    return centre


def minus_squared_distances(A: Any, B: Any) -> np.ndarray:
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
