"""A kernel behind a transform of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone

from bisvm.core.composition import entered, traced
from bisvm.core.parts import Parameter
from bisvm.kernels.base import (
    BLOCK_ENTRIES,
    OPERATIONS,
    Factors,
    Kernel,
    KernelGradient,
)
from bisvm.transforms.arguments import flat
from bisvm.transforms.base import Transform, TransformGradient
from bisvm.transforms.chain import Chain


@entered(OPERATIONS, "transformed")
class Transformed(Kernel):
    """k(T(x), T(y)), written `k @ T`.

    Its parameters are those of the kernel and those of the transform, under their own
    names. In `k @ T2 @ T1` the data pass T1 first.

    Parameters
    ----------
    kernel : Kernel
    transform : Transform
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

    def set_params(self, **params: Any) -> Self:
        """Arguments, and the parameters of both parts by the names they have here."""
        own = ("kernel", "transform")
        of_transform = self.transform.get_params(deep=True)
        routed = {
            name
            if name.split("__")[0] in own
            else f"{own[name in of_transform]}__{name}": value
            for name, value in params.items()
        }
        # The parts may belong to another kernel too: they are changed as copies.
        touched = {name.split("__")[0] for name in routed if "__" in name}
        for part in touched - routed.keys():
            setattr(self, part, clone(getattr(self, part)))
        return super().set_params(**routed)

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        before = self.transform.parameters(X, sample_weight)
        settled = self.transform.with_values({p.name: p.value for p in before})
        Z = flat(settled.apply(X))
        columns = self.transform.trace(tuple(range(X.shape[1])))
        behind = self.kernel.parameters(Z, sample_weight)
        return (*(traced(p, columns) for p in behind), *before)

    def with_values(self, values: Mapping[str, Any]) -> Self:
        # A parameter's name is that of the constructor's argument it sets.
        names = values.keys() & self.transform.get_params(deep=True).keys()
        return self.replace(
            kernel=self.kernel.with_values(
                {k: v for k, v in values.items() if k not in names}
            ),
            transform=self.transform.with_values({k: values[k] for k in names}),
        )

    def gram(self, X: Any, Y: Any = None) -> np.ndarray:
        Z_X, Z_Y = self._images(X, Y)
        return self.kernel.gram(flat(Z_X), None if Y is None else flat(Z_Y))

    def diagonal(self, X: Any) -> np.ndarray:
        return self.kernel.diagonal(flat(self._settled(X).apply(X)))

    def pullback(
        self,
        X: Any,
        Y: Any,
        gram: np.ndarray,
        weights: Factors,
        *,
        inputs: bool = False,
    ) -> KernelGradient:
        """Reverse mode: the kernel's gradient by T(x) goes through the transform."""
        Z_X, Z_Y = self._images(X, Y)
        onward = inputs or self.transform.has_parameters
        behind = self.kernel.pullback(
            flat(Z_X),
            None if Y is None else flat(Z_Y),
            gram,
            weights,
            inputs=onward,
        )
        if not onward:
            return behind
        assert behind.X is not None and behind.Y is not None
        if Y is None:
            both = self._back(X, Z_X, behind.X + behind.Y, inputs)
            rest = np.zeros(X.shape) if inputs else None
            return KernelGradient(
                np.concatenate([behind.theta, both.theta]), both.X, rest
            )
        at_X = self._back(X, Z_X, behind.X, inputs)
        at_Y = self._back(Y, Z_Y, behind.Y, inputs)
        return KernelGradient(
            np.concatenate([behind.theta, at_X.theta + at_Y.theta]), at_X.X, at_Y.X
        )

    def function_gradients(
        self, X: Any, gram: np.ndarray, coef: np.ndarray
    ) -> np.ndarray:
        """With G_ij the derivative of f(x_i) by z_j = T(x_j),

        d f(x_i) / d theta_T = sum_j <G_ij, dz_j / dtheta_T>:

        the Jacobian of the features is taken once and serves all rows. Where it would
        be large, one contraction a row takes its place.
        """
        T = self._settled(X)
        image = T.apply(X)
        Z = flat(image)
        n, d = Z.shape
        if not T.has_parameters:
            return self.kernel.function_gradients(Z, gram, coef)
        if n * d * d > BLOCK_ENTRIES or sparse.issparse(Z):
            return super().function_gradients(X, gram, coef)
        units = np.eye(d)[:, None, :].repeat(n, axis=1).reshape(d, *image.shape)
        jacobian = T.sample_gradients(X, units).swapaxes(0, 1).reshape(n * d, -1)
        return np.stack(
            [
                [self._row_gradient(i, Z, gram, column, jacobian) for column in coef.T]
                for i in range(n)
            ]
        )

    def _row_gradient(
        self,
        i: int,
        Z: np.ndarray,
        gram: np.ndarray,
        coef: np.ndarray,
        jacobian: np.ndarray,
    ) -> np.ndarray:
        """d f(x_i) by the kernel's own parameters, and by the transform's."""
        weights = Factors(np.ones((1, 1)), coef[:, None])
        rows = slice(i, i + 1)
        row = self.kernel.pullback(Z[rows], Z, gram[rows], weights, inputs=True)
        assert row.X is not None and row.Y is not None
        row.Y[i] += row.X[0]
        return np.concatenate([row.theta, row.Y.ravel() @ jacobian])

    def __matmul__(self, transform: Transform) -> Kernel:
        if not isinstance(transform, Transform):
            return super().__matmul__(transform)
        return self.replace(transform=Chain.of(transform, self.transform))

    def _settled(self, X: Any) -> Transform:
        """The transform; X decides where it starts if nothing else has."""
        return self.transform.settled(X) if self.transform.open else self.transform

    def _images(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """T(X) and T(Y), in the shape that the transform gives them."""
        T = self._settled(X)
        return T.apply(X), None if Y is None else T.apply(Y)

    def _back(
        self, X: Any, Z: Any, cotangent: np.ndarray, inputs: bool
    ) -> TransformGradient:
        cotangent = cotangent.reshape(Z.shape)
        return self._settled(X).pullback(X, cotangent, inputs=inputs)
