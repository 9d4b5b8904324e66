"""Transforms side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse

from bisvm.core.composition import Composite, prefixed
from bisvm.core.parts import Parameter
from bisvm.transforms.arguments import flat
from bisvm.transforms.base import Transform, TransformGradient


class Parallel(Composite, Transform):
    """z = (T_1(x), ..., T_m(x)), for filters of several sizes, say.

    Outputs that differ in their last axis only are stacked along it: the channels of
    maps of one size, the features of matrices. Others are flattened first.

    Parameters
    ----------
    transforms : sequence of Transform
        All get the same inputs; called t1, t2, ...
    """

    def __init__(self, transforms: Sequence[Transform]):
        self.transforms = transforms

    def children(self) -> dict[str, Any]:
        return {f"t{number}": each for number, each in enumerate(self.transforms, 1)}

    def with_children(self, children: Mapping[str, Any]) -> Self:
        return self.replace(transforms=tuple(children.values()))

    @property
    def linear(self) -> bool:
        return all(each.linear for each in self.transforms)

    def validate(self) -> Self:
        if not self.transforms:
            raise ValueError("Parallel needs at least one transform.")
        for each in self.transforms:
            if not isinstance(each, Transform):
                raise TypeError(f"Parallel is made of transforms; got {each!r}.")
        return super().validate()

    @property
    def has_parameters(self) -> bool:
        return any(each.has_parameters for each in self.transforms)

    @property
    def open(self) -> bool:
        return any(each.open for each in self.transforms)

    def trace(self, columns: Sequence[Any]) -> Sequence[Any] | None:
        found: list[Any] = []
        for each in self.transforms:
            traced = each.trace(columns)
            if traced is None:
                return None
            found += traced
        return found

    def bind(self, feature_names: Sequence[str] | None) -> Self:
        bound = tuple(each.bind(feature_names) for each in self.transforms)
        return self.replace(transforms=bound)

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        return tuple(
            parameter
            for name, each in self.validate().children().items()
            for parameter in prefixed(name, each.parameters(X, sample_weight))
        )

    def apply(self, X: Any) -> Any:
        outputs = [each.apply(X) for each in self.validate().transforms]
        if all(map(sparse.issparse, outputs)):
            return sparse.hstack(outputs, format="csr")
        return np.concatenate(_stackable([_dense(Z) for Z in outputs]), axis=-1)

    def pullback(
        self, X: Any, cotangent: np.ndarray, *, inputs: bool = True
    ) -> TransformGradient:
        """Each transform gets its part of the cotangent; gradients by x add up."""
        shapes = [each.apply(X).shape for each in self.validate().transforms]
        thetas, total = [], np.zeros(X.shape) if inputs else None
        parts = _split(cotangent, shapes)
        for each, part in zip(self.transforms, parts, strict=True):
            gradient = each.pullback(X, part, inputs=inputs)
            thetas.append(gradient.theta)
            if total is not None:
                total += gradient.X
        return TransformGradient(np.concatenate(thetas), total)


def _dense(Z: Any) -> np.ndarray:
    return Z.toarray() if sparse.issparse(Z) else Z


def _stack(shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether arrays of these shapes differ in their last axis only."""
    return len({shape[:-1] for shape in shapes}) == 1


def _stackable(outputs: list[np.ndarray]) -> list[np.ndarray]:
    stack = _stack([Z.shape for Z in outputs])
    return outputs if stack else [flat(Z) for Z in outputs]


def _split(cotangent: np.ndarray, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """The inverse of stacking: the parts of the cotangent in these shapes."""
    if _stack(shapes):
        widths = [shape[-1] for shape in shapes]
        cotangent = np.reshape(cotangent, (*shapes[0][:-1], sum(widths)))
    else:
        widths = [int(np.prod(shape[1:])) for shape in shapes]
    parts = np.split(cotangent, np.cumsum(widths)[:-1], axis=-1)
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
