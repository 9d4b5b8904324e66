"""Transforms one after another, and side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from scipy import sparse

from bisvm.core.composition import Composite, entered, prefixed, traced
from bisvm.core.parts import Parameter, Parameters
from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import dense, flat, is_sparse
from bisvm.transforms.base import OPERATIONS, Column, Transform, TransformGradient


class _Composed(Composite, Transform):
    """Several transforms, called t1, t2, ... in their order."""

    def __init__(self, transforms: Sequence[Transform]):
        self.transforms = transforms

    def children(self) -> dict[str, Transform]:
        return {f"t{number}": each for number, each in enumerate(self.transforms, 1)}

    def with_children(self, children: Mapping[str, Transform]) -> Self:
        return self.replace(transforms=tuple(children.values()))

    def validate(self) -> Self:
        name = type(self).__name__
        if not self.transforms:
            raise ValueError(f"{name} needs at least one transform.")
        for each in self.transforms:
            if not isinstance(each, Transform):
                raise TypeError(f"{name} is made of transforms; got {each!r}.")
        return super().validate()

    @property
    def linear(self) -> bool:  # type: ignore[override]
        return all(each.linear for each in self.transforms)

    @property
    def has_parameters(self) -> bool:
        return any(each.has_parameters for each in self.transforms)

    @property
    def needs_data(self) -> bool:
        return any(each.needs_data for each in self.transforms)


class Chain(_Composed):
    """z = T_m(... T_2(T_1(x))), written `Tm @ ... @ T2 @ T1`.

    Parameters
    ----------
    transforms : sequence of Transform
        In the order in which they are applied; called t1, t2, ...

    Examples
    --------
    >>> from bisvm.transforms import Nonlinearity, Scale
    >>> Chain([Scale(2.0), Nonlinearity("square")])(np.array([[1.0, 3.0]]))
    array([[ 4., 36.]])
    """

    @classmethod
    def of(cls, *transforms: Transform) -> Chain:
        """Return the chain of these transforms, the first of them applied first.

        The steps of chains among them become steps.
        """
        steps: list[Transform] = []
        for transform in transforms:
            steps += transform.transforms if isinstance(transform, cls) else [transform]
        return cls(tuple(steps))

    def trace(self, columns: Sequence[Column]) -> Sequence[Column] | None:
        found: Sequence[Column] | None = columns
        for step in self.transforms:
            found = None if found is None else step.trace(found)
        return found

    def bind(self, feature_names: Sequence[str] | None) -> Self:
        bound: list[Transform] = []
        names = feature_names
        for step in self.transforms:
            bound.append(step.bind(names))
            names = None if names is None else bound[-1].trace(names)
        return self.replace(transforms=tuple(bound))

    def parameters(self, X: Matrix, sample_weight: Array | None = None) -> Parameters:
        """Return those of every step, given the data that the steps before pass on."""
        found: list[Parameter] = []
        columns: Sequence[int] | None = tuple(range(X.shape[1]))
        for name, step in self.children().items():
            own = step.parameters(X, sample_weight)
            found += prefixed(name, (traced(p, columns) for p in own))
            columns = None if columns is None else step.trace(columns)
            if name != f"t{len(self.transforms)}":
                X = step.with_values({p.name: p.value for p in own}).apply(X)
        return tuple(found)

    def apply(self, X: Matrix) -> Matrix:
        for step in self.transforms:
            X = step.apply(X)
        return X

    def pullback(
        self, X: Matrix, cotangent: Array, *, inputs: bool = True
    ) -> TransformGradient:
        """Apply all steps and keep their inputs, then pull back from last to first."""
        seen = self.step_inputs(X)
        thetas: list[Array] = []
        by_X: Array | None = cotangent
        for m in reversed(range(len(self.transforms))):
            onward = inputs or self._learns_before(m)
            assert by_X is not None
            gradient = self.transforms[m].pullback(seen[m], by_X, inputs=onward)
            thetas.insert(0, gradient.theta)
            by_X = gradient.X
            if not onward:
                # The steps before have nothing to learn.
                break
        return TransformGradient(np.concatenate(thetas), by_X)

    def step_inputs(self, X: Matrix) -> list[Matrix]:
        """Return the inputs of every step, of which X is the first."""
        seen = [X]
        for step in self.transforms[:-1]:
            seen.append(step.apply(seen[-1]))
        return seen

    def _learns_before(self, number: int) -> bool:
        return any(step.has_parameters for step in self.transforms[:number])


entered(OPERATIONS, "chain")(Chain.of)


class Parallel(_Composed):
    """z = (T_1(x), ..., T_m(x)), for example filters of several sizes.

    Outputs that differ only in their last axis are stacked along it: channels of maps
    of one size, features of matrices. Others are flattened first.

    Parameters
    ----------
    transforms : sequence of Transform
        All get the same inputs; called t1, t2, ...

    Examples
    --------
    >>> from bisvm.transforms import Nonlinearity
    >>> both = Parallel([Nonlinearity("identity"), Nonlinearity("square")])
    >>> both(np.array([[1.0, 3.0]]))
    array([[1., 3., 1., 9.]])
    """

    def trace(self, columns: Sequence[Column]) -> Sequence[Column] | None:
        found: list[Column] = []
        for each in self.transforms:
            traced = each.trace(columns)
            if traced is None:
                return None
            found += traced
        return found

    def bind(self, feature_names: Sequence[str] | None) -> Self:
        bound = tuple(each.bind(feature_names) for each in self.transforms)
        return self.replace(transforms=bound)

    def parameters(self, X: Matrix, sample_weight: Array | None = None) -> Parameters:
        return tuple(
            parameter
            for name, each in self.validate().children().items()
            for parameter in prefixed(name, each.parameters(X, sample_weight))
        )

    def apply(self, X: Matrix) -> Matrix:
        outputs = [each.apply(X) for each in self.validate().transforms]
        if all(map(is_sparse, outputs)):
            return sparse.hstack(outputs, format="csr")
        arrays = [dense(Z) for Z in outputs]
        if not _stackable([Z.shape for Z in arrays]):
            arrays = [dense(flat(Z)) for Z in arrays]
        return np.concatenate(arrays, axis=-1)

    def pullback(
        self, X: Matrix, cotangent: Array, *, inputs: bool = True
    ) -> TransformGradient:
        """Split the cotangent among the transforms; gradients by x add up."""
        shapes = [each.apply(X).shape for each in self.validate().transforms]
        thetas, total = [], np.zeros(X.shape) if inputs else None
        parts = _split(cotangent, shapes)
        for each, part in zip(self.transforms, parts, strict=True):
            gradient = each.pullback(X, part, inputs=inputs)
            thetas.append(gradient.theta)
            if total is not None:
                total += gradient.X
        return TransformGradient(np.concatenate(thetas), total)


def _stackable(shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether arrays of these shapes differ in their last axis only."""
    return len({shape[:-1] for shape in shapes}) == 1


def _split(cotangent: Array, shapes: list[tuple[int, ...]]) -> list[Array]:
    """The parts of the cotangent, in these shapes: the inverse of stacking."""
    if _stackable(shapes):
        widths = [shape[-1] for shape in shapes]
        cotangent = np.reshape(cotangent, (*shapes[0][:-1], sum(widths)))
    else:
        widths = [math.prod(shape[1:]) for shape in shapes]
    parts = np.split(cotangent, np.cumsum(widths)[:-1], axis=-1)
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
