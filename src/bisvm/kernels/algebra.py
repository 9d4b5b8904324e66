"""Sums and products of kernels, which are kernels again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Self

import numpy as np

from bisvm.core.composition import Composite, entered, prefixed
from bisvm.core.parts import WEIGHT, Parameter
from bisvm.kernels.base import OPERATIONS, Factors, Kernel, KernelGradient

# A learned weight on a logarithmic scale stays between these, relative to its start.
WEIGHT_RANGE = (1e-6, 1e4)


class _Combination(Composite, Kernel):
    """Kernels on the same inputs, called k1, k2, ... in their order."""

    kernels: Sequence[Kernel]

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return all(kernel.smooth for kernel in self.kernels)

    @property
    def held_grams(self) -> int:
        return 1 + max(kernel.held_grams for kernel in self.kernels)

    def children(self) -> dict[str, Any]:
        return {f"k{number}": kernel for number, kernel in enumerate(self.kernels, 1)}

    def with_children(self, children: Mapping[str, Any]) -> Self:
        return self.replace(kernels=tuple(children.values()))

    def bind(self, feature_names: Sequence[str] | None) -> Self:
        return self.replace(kernels=tuple(k.bind(feature_names) for k in self.kernels))

    def validate(self) -> Self:
        given = list(self.kernels)
        wrong = [kernel for kernel in given if not isinstance(kernel, Kernel)]
        if not given or wrong:
            raise TypeError(
                f"{type(self).__name__} is made of kernels; got "
                + (f"{wrong[0]!r}." if wrong else "none.")
            )
        for kernel in given:
            kernel.validate()
        return self

    def _nested(self, X: Any, sample_weight: Any) -> tuple[Parameter, ...]:
        return tuple(
            parameter
            for name, kernel in self.children().items()
            for parameter in prefixed(name, kernel.parameters(X, sample_weight))
        )


class Sum(_Combination):
    """k = sum_m w_m k_m with weights w_m >= 0: multiple kernel learning.

    Written `k1 + k2`, where all weights start at one.

    Parameters
    ----------
    kernels : sequence of Kernel
    weights : None or array of shape (n_kernels,)
        Where the weights start; None stands for ones.
    scale : {"log", "linear"}
        Coordinate in which the weights are learned. "log" keeps them positive, between
        a millionth and ten thousand times their start; "linear" lets them reach zero.
    """

    def __init__(
        self, kernels: Sequence[Kernel], weights: Any = None, *, scale: str = "log"
    ):
        self.kernels = kernels
        self.weights = weights
        self.scale = scale

    def validate(self) -> Self:
        super().validate()
        if self.scale not in ("log", "linear"):
            raise ValueError(
                f"scale={self.scale!r} is not known; expected 'log' or 'linear'."
            )
        self._weights()
        if self.vanishes:
            raise ValueError("All weights of a sum of kernels are zero: k = 0.")
        return self

    @property
    def vanishes(self) -> bool:
        return not np.any(self._weights())

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        weights = self._weights()
        bounds: tuple[Any, Any] = (0.0, np.inf)
        if self.scale == "log":
            # About their common size, so that a weight near its bound may come back.
            size = np.exp(np.mean(np.log(weights)))
            low, high = WEIGHT_RANGE
            bounds = (np.minimum(low * size, weights), np.maximum(high * size, weights))
        own = Parameter(
            "weights",
            weights,
            bounds,
            self.scale,
            # Together they keep the ratio they are given.
            unit=weights if self.scale == "log" else 1.0,
            role=WEIGHT,
            labels=tuple(self.children()),
        )
        return (own, *self._nested(X, sample_weight))

    def gram(self, X: Any, Y: Any = None) -> np.ndarray:
        total = None
        for weight, kernel in zip(self._weights(), self.kernels, strict=True):
            gram = kernel.gram(X, Y)
            gram *= weight
            total = gram if total is None else np.add(total, gram, out=total)
        assert total is not None
        return total

    def diagonal(self, X: Any) -> np.ndarray:
        parts = [kernel.diagonal(X) for kernel in self.kernels]
        return self._weights() @ np.stack(parts)

    def pullback(
        self,
        X: Any,
        Y: Any,
        gram: np.ndarray,
        weights: Factors,
        *,
        inputs: bool = False,
    ) -> KernelGradient:
        """d/dw_m = <W, K_m>; what is inside k_m sees the weights w_m W."""
        by_weight, parts = [], []
        for w, kernel in zip(self._weights(), self.kernels, strict=True):
            own = kernel.gram(X, Y)
            by_weight.append(weights.dot(own) * (w if self.scale == "log" else 1.0))
            parts.append(kernel.pullback(X, Y, own, weights.scaled(w), inputs=inputs))
        return added(parts, np.array(by_weight))

    def _weights(self) -> np.ndarray:
        n = len(self.kernels)
        given = np.ones(n) if self.weights is None else self.weights
        weights = np.asarray(given, dtype=float)
        least = "positive" if self.scale == "log" else "not negative"
        fits = np.all(weights > 0) if self.scale == "log" else np.all(weights >= 0)
        if weights.shape != (n,) or not (fits and np.all(np.isfinite(weights))):
            raise ValueError(
                f"weights of a sum of {n} kernels must be {n} finite numbers, {least}; "
                f"got {self.weights!r}."
            )
        return weights


class Product(_Combination):
    """k = prod_m k_m, written `k1 * k2`. It has no parameters of its own."""

    def __init__(self, kernels: Sequence[Kernel]):
        self.kernels = kernels

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        return self._nested(X, sample_weight)

    @property
    def held_grams(self) -> int:
        return 2 * len(self.kernels) + super().held_grams

    @property
    def vanishes(self) -> bool:
        return any(kernel.vanishes for kernel in self.kernels)

    def gram(self, X: Any, Y: Any = None) -> np.ndarray:
        return reduce(_multiply, (kernel.gram(X, Y) for kernel in self.kernels))

    def diagonal(self, X: Any) -> np.ndarray:
        return reduce(_multiply, (kernel.diagonal(X) for kernel in self.kernels))

    def pullback(
        self,
        X: Any,
        Y: Any,
        gram: np.ndarray,
        weights: Factors,
        *,
        inputs: bool = False,
    ) -> KernelGradient:
        """k_m sees the weights W o prod_{l != m} K_l."""
        grams = [kernel.gram(X, Y) for kernel in self.kernels]
        parts = []
        for m, kernel in enumerate(self.kernels):
            others = grams[:m] + grams[m + 1 :]
            seen = weights.times(reduce(np.multiply, others)) if others else weights
            parts.append(kernel.pullback(X, Y, grams[m], seen, inputs=inputs))
        return added(parts)


@entered(OPERATIONS, "sum")
def kernel_sum(*kernels: Kernel) -> Sum:
    """k1 + k2 + ...; sums among them are taken apart."""
    terms: list[Kernel] = []
    weights: list[float] = []
    for kernel in kernels:
        flat = isinstance(kernel, Sum) and kernel.scale == "log"
        terms += kernel.kernels if flat else [kernel]
        weights += list(kernel._weights()) if flat else [1.0]
    return Sum(tuple(terms), None if set(weights) == {1.0} else np.array(weights))


@entered(OPERATIONS, "product")
def kernel_product(*kernels: Kernel) -> Product:
    """k1 * k2 * ...; products among them are taken apart."""
    factors: list[Kernel] = []
    for kernel in kernels:
        factors += kernel.kernels if isinstance(kernel, Product) else [kernel]
    return Product(tuple(factors))


@entered(OPERATIONS, "multiple")
def multiple(kernel: Kernel, factor: float) -> Sum:
    """factor * kernel."""
    return Sum((kernel,), np.array([factor])).validate()


def _multiply(total: np.ndarray, factor: np.ndarray) -> np.ndarray:
    return np.multiply(total, factor, out=total)


def added(
    parts: Sequence[KernelGradient], own: np.ndarray | None = None
) -> KernelGradient:
    """Gradients of parts that share their inputs; theta's entries stay apart."""
    theta = np.concatenate([*([] if own is None else [own]), *(p.theta for p in parts)])
    X = [part.X for part in parts if part.X is not None]
    Y = [part.Y for part in parts if part.Y is not None]
    return KernelGradient(
        theta, reduce(np.add, X) if X else None, reduce(np.add, Y) if Y else None
    )
