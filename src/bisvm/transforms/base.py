"""The contract of a transform: a differentiable map of the inputs.

Arrays carry their shapes: the first axis counts samples, the others are what the
transforms make of them, (n, height, width, channels) for images. A kernel at the end
gets them flat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bisvm.core.parts import Parameter, Part

# What the operators of transforms make. A chain is a transform itself: its module
# imports this one, and enters itself here.
OPERATIONS: dict[str, Callable[..., Transform]] = {}


@dataclass(frozen=True)
class TransformGradient:
    """Gradient of sum(cotangent * transform(X)).

    theta : with respect to the transform's parameters, in the optimizer's coordinates,
        flat and concatenated in their order
    X : with respect to the inputs, in their shape; None if not asked for
    """

    theta: np.ndarray
    X: Any = None


class Transform(Part):
    """A differentiable map x -> z with parameters.

    A subclass implements `apply` and `pullback`, and `parameters` if it has any.
    """

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        """Its hyperparameters; data settle what the arguments leave open."""
        return ()

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """The transform at other parameter values (natural units)."""
        return self.replace(**values) if values else self

    def apply(self, X: Any) -> Any:
        """z for every sample of X."""
        raise NotImplementedError

    def pullback(
        self, X: Any, cotangent: np.ndarray, *, inputs: bool = True
    ) -> TransformGradient:
        """Gradient of sum(cotangent * apply(X)), cotangent in the shape of apply(X)."""
        raise NotImplementedError

    def sample_gradients(self, X: Any, cotangents: np.ndarray) -> np.ndarray:
        """Gradients by the parameters, of every sample by itself: (r, n, p).

        `cotangents` are r of what a pullback takes one of, (r, n, ...). A subclass may
        do better than one sample at a time.
        """
        return np.array(
            [
                [
                    self.pullback(X[j : j + 1], row[j : j + 1], inputs=False).theta
                    for j in range(len(row))
                ]
                for row in cotangents
            ]
        )

    @property
    def has_parameters(self) -> bool:
        """Whether there may be anything to learn."""
        return type(self).parameters is not Transform.parameters

    @property
    def linear(self) -> bool:
        """Whether z = A x, with nothing added: `as_matrix` has A'."""
        return False

    def as_matrix(self, n_features: int) -> np.ndarray:
        """A' of a linear map of flat samples, (n_features, n_outputs): Z = X A'."""
        if not self.linear or self.open:
            raise ValueError(f"{self!r} is no linear map that is settled: no matrix.")
        images = np.asarray(self.apply(np.eye(n_features)), dtype=float)
        return images.reshape(n_features, -1)

    @property
    def open(self) -> bool:
        """Whether the data decide where it starts, as nothing was given."""
        return False

    def settled(self, X: Any, sample_weight: Any = None) -> Self:
        """The transform with all that the data decide put in."""
        parameters = self.parameters(X, sample_weight)
        return self.with_values({p.name: p.value for p in parameters})

    def trace(self, columns: Sequence[Any]) -> Sequence[Any] | None:
        """Which of these input columns each output comes from.

        None where an output comes from several, or where the shape changes.
        """
        return None

    def bind(self, feature_names: Sequence[str] | None) -> Self:
        """The transform with names of columns replaced by their numbers."""
        return self

    def __call__(self, X: Any) -> Any:
        return self.apply(X)

    def __matmul__(self, first: Any) -> Transform:
        """self @ first: the data pass `first`, then this transform."""
        if not isinstance(first, Transform):
            return NotImplemented
        return OPERATIONS["chain"](first, self)
