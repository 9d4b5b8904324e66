"""A kernel of transformed inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from sklearn.base import clone

from bisvm.core.composition import entered, traced
from bisvm.core.parts import Parameters
from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import flat
from bisvm.kernels.base import (
    OPERATIONS,
    Factors,
    Kernel,
    KernelGradient,
)
from bisvm.transforms import Chain, Transform, TransformGradient


@entered(OPERATIONS, "transformed")
class Transformed(Kernel):
    """k(T(x), T(y)), written `k @ T`.

    Its parameters are those of the kernel and of the transform, under the same names.
    `k @ T2 @ T1` applies T1 first.

    Parameters
    ----------
    kernel : Kernel
    transform : Transform

    Examples
    --------
    >>> from bisvm.kernels import RBF
    >>> from bisvm.transforms import Projection
    >>> kernel = RBF() @ Projection(n_components=2)
    >>> [p.name for p in kernel.parameters(np.eye(4))]
    ['gamma', 'matrix']
    """

    def __init__(self, kernel: Kernel, transform: Transform):
        self.kernel = kernel
        self.transform = transform

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.kernel.smooth

    @property
    def vanishes(self) -> bool:
        return self.kernel.vanishes

    @property
    def held_grams(self) -> int:
        return self.kernel.held_grams

    def validate(self) -> Self:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"Before '@' a kernel is expected, got {self.kernel!r}.")
        if not isinstance(self.transform, Transform):
            raise TypeError(
                f"After '@' a transform is expected, got {self.transform!r}."
            )
        self.kernel.validate()
        self.transform.validate()
        return self

    def bind(self, feature_names: Sequence[str] | None) -> Self:
        transform = self.transform.bind(feature_names)
        names = None if feature_names is None else transform.trace(feature_names)
        return self.replace(transform=transform, kernel=self.kernel.bind(names))

    def set_params(self, **params: object) -> Self:
        """Set arguments, and parameters of both parts by the names they have here."""
        own = ("kernel", "transform")
        of_transform = self.transform.get_params(deep=True)
        routed = {
            name
            if name.split("__")[0] in own
            else f"{own[name in of_transform]}__{name}": value
            for name, value in params.items()
        }
        # Another kernel may share these parts: they are changed as copies.
        touched = {name.split("__")[0] for name in routed if "__" in name}
        for part in touched - routed.keys():
            setattr(self, part, clone(getattr(self, part)))
        super().set_params(**routed)
        return self

    def parameters(self, X: Matrix, sample_weight: Array | None = None) -> Parameters:
        before = self.transform.parameters(X, sample_weight)
        fixed = self.transform.with_values({p.name: p.value for p in before})
        columns = self.transform.trace(tuple(range(X.shape[1])))
        behind = self.kernel.parameters(flat(fixed.apply(X)), sample_weight)
        return (*(traced(p, columns) for p in behind), *before)

    def with_values(self, values: Mapping[str, object]) -> Self:
        # A parameter's name is that of the constructor argument it sets.
        names = values.keys() & self.transform.get_params(deep=True).keys()
        return self.replace(
            kernel=self.kernel.with_values(
                {k: v for k, v in values.items() if k not in names}
            ),
            transform=self.transform.with_values({k: values[k] for k in names}),
        )

    def gram(self, X: Matrix, Y: Matrix | None = None) -> Array:
        T = self._fixed(X)
        return self.kernel.gram(flat(T(X)), None if Y is None else flat(T(Y)))

    def diagonal(self, X: Matrix) -> Array:
        return self.kernel.diagonal(flat(self._fixed(X).apply(X)))

    def pullback(
        self, X: Matrix, Y: Matrix | None, gram: Array, W: Factors, inputs: bool = False
    ) -> KernelGradient:
        """Pass the kernel's gradient by T(x) on to the transform: reverse mode.

        For Polynomial(d, gamma=1) of maps Z_i = X_i f, the convolution of an image by a
        filter, with W = -1/2 alpha alpha' and V_ij = W_ij d (1 + Z_i'Z_j)^(d - 1), this
        is Sugg 2018, (4.4) with (4.5):

            dH/df = sum_ij V_ij (X_i'X_j + X_j'X_i) f = sum_i X_i'(V Z + V'Z)_i.

        For RBF(gamma), with V_ij = W_ij K_ij, it is Sugg's (22), which is (4.8) with
        the right sign: dH/df = -2 gamma sum_ij V_ij (X_i - X_j)'(X_i - X_j) f. H is the
        risk here; Sugg's H_ij is y_i y_j K_ij, and alpha includes y.
        """
        T = self._fixed(X)
        Z_X, Z_Y = T.apply(X), None if Y is None else T.apply(Y)
        onward = inputs or T.has_parameters
        behind = self.kernel.pullback(
            flat(Z_X), None if Z_Y is None else flat(Z_Y), gram, W, inputs=onward
        )
        if not onward:
            return behind
        assert behind.X is not None and behind.Y is not None

        def back(X: Matrix, Z: Matrix, gradient: Array) -> TransformGradient:
            return T.pullback(X, gradient.reshape(Z.shape), inputs=inputs)

        if Y is None or Z_Y is None:
            at_X = back(X, Z_X, behind.X + behind.Y)
            by_T, by_Y = at_X.theta, np.zeros(X.shape) if inputs else None
        else:
            at_X, at_Y = back(X, Z_X, behind.X), back(Y, Z_Y, behind.Y)
            by_T, by_Y = at_X.theta + at_Y.theta, at_Y.X
        return KernelGradient(np.concatenate([behind.theta, by_T]), at_X.X, by_Y)

    def __matmul__(self, transform: Transform) -> Kernel:
        if not isinstance(transform, Transform):
            return super().__matmul__(transform)
        return self.replace(transform=Chain.of(transform, self.transform))

    def _fixed(self, X: Matrix) -> Transform:
        """The transform, with a start from X if it has no values yet."""
        return (
            self.transform.initialized(X)
            if self.transform.needs_data
            else self.transform
        )
