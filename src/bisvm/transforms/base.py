"""The contract of a transform: a differentiable map of the inputs.

Arrays keep their shapes: the first axis counts samples, the others are what the
transforms make of them, (n, height, width, channels) for images. The kernel behind the
transforms gets them flat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np

from bisvm.core.parts import Parameters, Part
from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import dense

# What the operator `@` builds. A chain is a transform itself: its module imports this
# one and registers here.
OPERATIONS: dict[str, Callable[..., Transform]] = {}

# A number or a name of a column.
Column = TypeVar("Column")


@dataclass(frozen=True)
class TransformGradient:
    """Gradient of sum(cotangent * transform(X)).

    Attributes
    ----------
    theta : array of shape (n_parameters,)
        With respect to the transform's parameters, in the optimizer's coordinates,
        concatenated in their order.
    X : array of the shape of X, or None
        With respect to the inputs; None if not asked for.
    """

    theta: Array
    X: Array | None = None


class Transform(Part):
    """A differentiable map x -> z with parameters.

    A subclass implements `apply` and `pullback`, and `parameters` if it has any.

    Examples
    --------
    `T2 @ T1` applies T1 first, and `kernel @ T` compares transformed inputs:

    >>> from bisvm.kernels import RBF
    >>> from bisvm.transforms import Nonlinearity, Projection
    >>> T = Nonlinearity("tanh") @ Projection(np.ones((1, 3)))
    >>> T(np.eye(3)).round(3).ravel()
    array([0.762, 0.762, 0.762])
    >>> (RBF(1.0) @ T)(np.eye(3)).min()
    np.float64(1.0)
    """

    # Whether z = A x: `as_matrix` returns A'.
    linear: bool = False

    def parameters(self, X: Matrix, sample_weight: Array | None = None) -> Parameters:
        """Return the hyperparameters, with starts that may depend on X.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        parameters : tuple of `Parameter`
        """
        return ()

    def with_values(self, values: Mapping[str, object]) -> Self:
        """Return the transform with other parameter values, in natural units."""
        return self.replace(**values) if values else self

    def apply(self, X: Matrix) -> Matrix:
        """Return z for every sample of X."""
        raise NotImplementedError

    def pullback(
        self, X: Matrix, cotangent: Array, *, inputs: bool = True
    ) -> TransformGradient:
        """Return the gradient of sum(cotangent * apply(X)).

        Parameters
        ----------
        X : matrix or array of shape (n, ...)
        cotangent : array with as many entries as apply(X)
        inputs : bool
            Whether the gradient with respect to X is wanted too.
        """
        raise NotImplementedError

    @property
    def has_parameters(self) -> bool:
        """Whether there may be anything to learn."""
        return type(self).parameters is not Transform.parameters

    @property
    def needs_data(self) -> bool:
        """Whether its values are not given, so that they start from the data."""
        return False

    def as_matrix(self, n_features: int) -> Array:
        """Return A' of a linear map of flat samples, (n_features, n_outputs)."""
        if not self.linear or self.needs_data:
            raise ValueError(f"{self!r} is not a linear map with given values.")
        images = np.asarray(dense(self.apply(np.eye(n_features))), dtype=float)
        return images.reshape(n_features, -1)

    def initialized(self, X: Matrix) -> Self:
        """Return the transform with the values that a search on X would start from."""
        return self.with_values({p.name: p.value for p in self.parameters(X)})

    def trace(self, columns: Sequence[Column]) -> Sequence[Column] | None:
        """Return the input column that each output comes from.

        None if an output depends on several columns, or if the shape changes.
        """
        return None

    def bind(self, feature_names: Sequence[str] | None) -> Self:
        """Return the transform with feature names replaced by column numbers.

        Parameters
        ----------
        feature_names : sequence of str, or None if they are unknown

        Returns
        -------
        transform : Transform
        """
        return self

    def __call__(self, X: Matrix) -> Matrix:
        """Return `apply(X)`."""
        return self.apply(X)

    def __matmul__(self, first: Transform) -> Transform:
        if not isinstance(first, Transform):
            return NotImplemented
        return OPERATIONS["chain"](first, self)
