"""Features times numbers that are learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse

from bisvm.core.parts import Parameter, natural_bounds
from bisvm.data.scaling import column_variance
from bisvm.transforms.arguments import flat
from bisvm.transforms.base import Transform, TransformGradient


class Scale(Transform):
    """z_d = scale_d x_d.

    In front of a Gaussian kernel this is a width, gamma_d = gamma scale_d^2. Takes
    arrays of any shape, and CSR matrices, which stay sparse.

    Parameters
    ----------
    scale : float or array of the shape of one sample
    per_feature : bool
        One scale for every feature.
    scale_bounds : pair of numbers or arrays
        What the scale may be.
    """

    def __init__(
        self,
        scale: Any = 1.0,
        *,
        per_feature: bool = False,
        scale_bounds: Any = (1e-5, 1e5),
    ):
        self.scale = scale
        self.per_feature = per_feature
        self.scale_bounds = scale_bounds

    @property
    def linear(self) -> bool:
        return True

    def validate(self) -> Self:
        scale = np.asarray(self.scale, dtype=float)
        if not (np.all(scale > 0) and np.all(np.isfinite(scale))):
            raise ValueError(f"scale must be positive and finite, got {self.scale!r}.")
        if scale.ndim and not self.per_feature:
            raise ValueError(
                f"scale has {scale.size} values, expected one number; for one per "
                "feature use per_feature=True."
            )
        natural_bounds("scale_bounds", self.scale_bounds)
        return self

    def trace(self, columns: Sequence[Any]) -> Sequence[Any]:
        return columns

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        """One number, or one per feature in units of 1 / standard deviation."""
        scale, bounds = self._settled(X), natural_bounds("", self.scale_bounds)
        if not self.per_feature:
            return (Parameter("scale", float(scale), bounds),)
        unit = 1.0 / np.sqrt(column_variance(flat(X), sample_weight))
        return (Parameter("scale", scale, bounds, unit=unit),)

    def apply(self, X: Any) -> Any:
        scale = self._settled(X)
        if sparse.issparse(X):
            scale = np.broadcast_to(scale, X.shape[1])
            return sparse.csr_array(X @ sparse.diags_array(scale))
        return np.asarray(X, dtype=float) * scale

    def pullback(
        self, X: Any, cotangent: np.ndarray, *, inputs: bool = True
    ) -> TransformGradient:
        """d/d log scale_d = sum_i g_id z_id and d/dx_id = scale_d g_id, cotangent g."""
        scale, Z = self._settled(X), flat(self.apply(X))
        G = np.reshape(cotangent, Z.shape)
        if sparse.issparse(Z):
            theta = np.asarray(Z.multiply(G).sum(axis=0)).ravel()
        else:
            theta = np.einsum("id,id->d", Z, G)
        if not self.per_feature:
            theta = theta.sum(keepdims=True)
        if not inputs:
            return TransformGradient(theta)
        return TransformGradient(theta, np.reshape(cotangent, X.shape) * scale)

    def _settled(self, X: Any) -> np.ndarray:
        self.validate()
        scale, shape = np.asarray(self.scale, dtype=float), np.shape(X)[1:]
        if not self.per_feature:
            return scale
        if scale.ndim and scale.size != np.prod(shape):
            raise ValueError(
                f"scale has {scale.size} values, but the samples of X have "
                f"{np.prod(shape)} features."
            )
        return np.broadcast_to(scale, shape) if not scale.ndim else scale.reshape(shape)
