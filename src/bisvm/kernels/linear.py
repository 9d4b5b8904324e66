"""The linear kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from bisvm.kernels.base import Factors, Kernel, KernelGradient


class Linear(Kernel):
    """k(x, y) = x'y. It has no parameters: its scale is C's."""

    def gram(self, X: Any, Y: Any = None) -> np.ndarray:
        product = X @ (X if Y is None else Y).T
        product = product.toarray() if sparse.issparse(product) else product
        return np.asarray(product, dtype=float)

    def diagonal(self, X: Any) -> np.ndarray:
        if sparse.issparse(X):
            return np.asarray(X.multiply(X).sum(axis=1)).ravel()
        return np.einsum("ij,ij->i", X, X)

    def pullback(
        self,
        X: Any,
        Y: Any,
        gram: np.ndarray,
        weights: Factors,
        *,
        inputs: bool = False,
    ) -> KernelGradient:
        """d/dX = W Y, d/dY = W'X."""
        Y = X if Y is None else Y
        if not inputs:
            return KernelGradient(np.empty(0))
        return KernelGradient(
            np.empty(0),
            weights @ Y,
            weights.T @ X,
        )
