"""Transforms one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from bisvm.core.composition import Composite, entered, prefixed, traced
from bisvm.core.parts import Parameter
from bisvm.transforms.base import OPERATIONS, Transform, TransformGradient


class Chain(Composite, Transform):
    """z = T_m(... T_2(T_1(x))), written `Tm @ ... @ T2 @ T1`.

    Parameters
    ----------
    transforms : sequence of Transform
        In the order in which the data pass them; called t1, t2, ...
    """

    def __init__(self, transforms: Sequence[Transform]):
        self.transforms = transforms

    @classmethod
    def of(cls, *transforms: Transform) -> Chain:
        """The chain of these, in the order the data pass; chains are taken apart."""
        steps: list[Transform] = []
        for transform in transforms:
            steps += transform.transforms if type(transform) is cls else [transform]
        return cls(tuple(steps))

    def children(self) -> dict[str, Any]:
        return {f"t{number}": step for number, step in enumerate(self.transforms, 1)}

    def with_children(self, children: Mapping[str, Any]) -> Self:
        return self.replace(transforms=tuple(children.values()))

    @property
    def linear(self) -> bool:
        return all(each.linear for each in self.transforms)

    def validate(self) -> Self:
        if not self.transforms:
            raise ValueError("A chain needs at least one transform.")
        for step in self.transforms:
            if not isinstance(step, Transform):
                raise TypeError(f"A chain is made of transforms; got {step!r}.")
            step.validate()
        return self

    @property
    def has_parameters(self) -> bool:
        return any(step.has_parameters for step in self.transforms)

    @property
    def open(self) -> bool:
        return any(each.open for each in self.transforms)

    def trace(self, columns: Sequence[Any]) -> Sequence[Any] | None:
        traced: Sequence[Any] | None = columns
        for step in self.transforms:
            traced = None if traced is None else step.trace(traced)
        return traced

    def bind(self, feature_names: Sequence[str] | None) -> Self:
        bound: list[Transform] = []
        names: Sequence[Any] | None = feature_names
        for step in self.transforms:
            bound.append(step.bind(names))
            names = None if names is None else bound[-1].trace(names)
        return self.replace(transforms=tuple(bound))

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        """Those of every step, as it sees the data at the start of the others."""
        found: list[Parameter] = []
        columns: Sequence[Any] | None = tuple(range(X.shape[1]))
        for name, step in self.children().items():
            own = step.parameters(X, sample_weight)
            found += prefixed(name, (traced(p, columns) for p in own))
            columns = None if columns is None else step.trace(columns)
            if name != f"t{len(self.transforms)}":
                X = step.with_values({p.name: p.value for p in own}).apply(X)
        return tuple(found)

    def apply(self, X: Any) -> Any:
        for step in self.transforms:
            X = step.apply(X)
        return X

    def pullback(
        self, X: Any, cotangent: np.ndarray, *, inputs: bool = True
    ) -> TransformGradient:
        """Forward with all that passes kept, then backward through the steps."""
        seen = [X]
        for step in self.transforms[:-1]:
            seen.append(step.apply(seen[-1]))
        thetas: list[np.ndarray] = []
        for m in reversed(range(len(self.transforms))):
            onward = inputs or self._learns_before(m)
            gradient = self.transforms[m].pullback(seen[m], cotangent, inputs=onward)
            thetas.insert(0, gradient.theta)
            cotangent = gradient.X
            if not onward:
                # What comes before has nothing to learn.
                break
        return TransformGradient(np.concatenate(thetas), cotangent)

    def sample_gradients(self, X: Any, cotangents: np.ndarray) -> np.ndarray:
        """A gradient by the inputs is one of every sample by itself already."""
        seen = [X]
        for step in self.transforms[:-1]:
            seen.append(step.apply(seen[-1]))
        thetas: list[np.ndarray] = []
        for m in reversed(range(len(self.transforms))):
            step = self.transforms[m]
            if step.has_parameters:
                thetas.insert(0, step.sample_gradients(seen[m], cotangents))
            if not self._learns_before(m):
                break
            cotangents = np.stack(
                [step.pullback(seen[m], one, inputs=True).X for one in cotangents]
            )
        return np.concatenate(thetas, axis=2)

    def _learns_before(self, number: int) -> bool:
        return any(step.has_parameters for step in self.transforms[:number])


entered(OPERATIONS, "chain")(Chain.of)
