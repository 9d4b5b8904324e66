"""Sums and products of kernels, which are kernels again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import reduce
from typing import Literal, Self

import numpy as np

from bisvm.core.composition import Composite, entered, prefixed
from bisvm.core.parts import WEIGHT, Parameter, Parameters
from bisvm.core.types import Array, ArrayLike, Matrix
from bisvm.kernels.base import OPERATIONS, Factors, Kernel, KernelGradient

# Bounds of a weight on a logarithmic scale, relative to the geometric mean of all: a
# kernel of weight 1e-6 has no visible effect, and one of 1e4 leaves no room for others.
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

    def children(self) -> dict[str, Kernel]:
        return {f"k{number}": kernel for number, kernel in enumerate(self.kernels, 1)}

    def with_children(self, children: Mapping[str, Kernel]) -> Self:
        return self.replace(kernels=tuple(children.values()))

    def bind(self, feature_names: Sequence[str] | None) -> Self:
        return self.replace(kernels=tuple(k.bind(feature_names) for k in self.kernels))

    def validate(self) -> Self:
        wrong = [kernel for kernel in self.kernels if not isinstance(kernel, Kernel)]
        if not self.kernels or wrong:
            raise TypeError(
                f"{type(self).__name__} is made of kernels; got "
                + (f"{wrong[0]!r}." if wrong else "none.")
            )
        return super().validate()

    def parameters(self, X: Matrix, sample_weight: Array | None = None) -> Parameters:
        return tuple(
            parameter
            for name, kernel in self.children().items()
            for parameter in prefixed(name, kernel.parameters(X, sample_weight))
        )


@dataclass(eq=False, repr=False)
class Sum(_Combination):
    """k = sum_m w_m k_m with weights w_m >= 0: multiple kernel learning.

    Written `k1 + k2`, where all weights start at one.

    Parameters
    ----------
    kernels : sequence of Kernel
    weights : array of shape (n_kernels,), optional
        Initial weights; ones by default.
    scale : {"log", "linear"}
        Coordinate in which the weights are learned. "log" keeps them positive, between
        a millionth and ten thousand times their common size; "linear" lets them become
        zero.

    Examples
    --------
    >>> from bisvm.kernels import RBF, Linear
    >>> RBF(0.5) + 2 * Linear() == Sum([RBF(0.5), Linear()], [1.0, 2.0])
    True
    """

    kernels: Sequence[Kernel]
    weights: ArrayLike | None = None
    _: KW_ONLY
    scale: Literal["log", "linear"] = "log"

    def validate(self) -> Self:
        super().validate()
        self.check_choice("scale", ("log", "linear"))
        if self.vanishes:
            raise ValueError("All weights of a sum of kernels are zero: k = 0.")
        return self

    @property
    def vanishes(self) -> bool:
        return not np.any(self._weights())

    def parameters(self, X: Matrix, sample_weight: Array | None = None) -> Parameters:
        weights = self._weights()
        bounds: tuple[ArrayLike, ArrayLike] = (0.0, np.inf)
        if self.scale == "log":
            # Relative to their common size, so that a weight at a bound can return.
            size = np.exp(np.mean(np.log(weights)))
            low, high = WEIGHT_RANGE
            bounds = (np.minimum(low * size, weights), np.maximum(high * size, weights))
        own = Parameter(
            "weights",
            weights,
            bounds,
            self.scale,
            # One value for all weights keeps their ratios.
            unit=weights if self.scale == "log" else 1.0,
            role=WEIGHT,
            labels=tuple(self.children()),
        )
        return (own, *super().parameters(X, sample_weight))

    def gram(self, X: Matrix, Y: Matrix | None = None) -> Array:
        total: Array | None = None
        for weight, kernel in zip(self._weights(), self.kernels, strict=True):
            gram = kernel.gram(X, Y)
            gram *= weight
            total = gram if total is None else np.add(total, gram, out=total)
        assert total is not None
        return total

    def diagonal(self, X: Matrix) -> Array:
        out: Array = self._weights() @ np.stack([k.diagonal(X) for k in self.kernels])
        return out

    def pullback(
        self, X: Matrix, Y: Matrix | None, gram: Array, W: Factors, inputs: bool = False
    ) -> KernelGradient:
        """d/dw_m = <W, K_m>; the pullback of k_m gets the weights w_m W.

        Klatzer 2014, section 3.2, with beta_m = w_m, and W = U alpha' of
        `KernelMachine.sensitivity`: <W, K_m> is alpha'K_m'(K alpha - eta) / L on
        held-out points, (3.18), and alpha'K_m diag(loss'') K l on training points, the
        last term of (3.19); its first two cancel. With beta_m dK_m/dgamma_m in place of
        K_m these are (3.16) and (3.17).
        """
        by_weight, parts = [], []
        for w, kernel in zip(self._weights(), self.kernels, strict=True):
            own = kernel.gram(X, Y)
            by_weight.append(W.dot(own) * (w if self.scale == "log" else 1.0))
            parts.append(kernel.pullback(X, Y, own, W.scaled(w), inputs=inputs))
        return _total(parts, np.array(by_weight))

    def _weights(self) -> Array:
        n = len(self.kernels)
        given = np.ones(n) if self.weights is None else self.weights
        weights = np.asarray(given, dtype=float)
        least = "positive" if self.scale == "log" else "not negative"
        valid = np.all(weights > 0) if self.scale == "log" else np.all(weights >= 0)
        if weights.shape != (n,) or not (valid and np.all(np.isfinite(weights))):
            raise ValueError(
                f"weights of a sum of {n} kernels must be {n} finite numbers, {least}; "
                f"got {self.weights!r}."
            )
        return weights


class Product(_Combination):
    """k = prod_m k_m, written `k1 * k2`.

    Parameters
    ----------
    kernels : sequence of Kernel

    Examples
    --------
    >>> from bisvm.kernels import RBF, Linear
    >>> RBF(0.5) * Linear() == Product([RBF(0.5), Linear()])
    True
    """

    def __init__(self, kernels: Sequence[Kernel]):
        self.kernels = kernels

    @property
    def held_grams(self) -> int:
        return 2 * len(self.kernels) + super().held_grams

    @property
    def vanishes(self) -> bool:
        return any(kernel.vanishes for kernel in self.kernels)

    def gram(self, X: Matrix, Y: Matrix | None = None) -> Array:
        return reduce(_multiply, (kernel.gram(X, Y) for kernel in self.kernels))

    def diagonal(self, X: Matrix) -> Array:
        return reduce(_multiply, (kernel.diagonal(X) for kernel in self.kernels))

    def pullback(
        self, X: Matrix, Y: Matrix | None, gram: Array, W: Factors, inputs: bool = False
    ) -> KernelGradient:
        """The pullback of k_m gets the weights W o prod_{l != m} K_l."""
        grams = [kernel.gram(X, Y) for kernel in self.kernels]
        parts = []
        for m, kernel in enumerate(self.kernels):
            others = grams[:m] + grams[m + 1 :]
            seen = W.times(reduce(np.multiply, others)) if others else W
            parts.append(kernel.pullback(X, Y, grams[m], seen, inputs=inputs))
        return _total(parts)


@entered(OPERATIONS, "sum")
def kernel_sum(*kernels: Kernel) -> Sum:
    """Return k1 + k2 + ...; the terms of sums among them become terms."""
    terms: list[Kernel] = []
    weights: list[float] = []
    for kernel in kernels:
        if isinstance(kernel, Sum) and kernel.scale == "log":
            terms += kernel.kernels
            weights += list(kernel._weights())
        else:
            terms.append(kernel)
            weights.append(1.0)
    return Sum(tuple(terms), None if set(weights) == {1.0} else np.array(weights))


@entered(OPERATIONS, "product")
def kernel_product(*kernels: Kernel) -> Product:
    """Return k1 * k2 * ...; the factors of products among them become factors."""
    factors: list[Kernel] = []
    for kernel in kernels:
        factors += kernel.kernels if isinstance(kernel, Product) else [kernel]
    return Product(tuple(factors))


@entered(OPERATIONS, "multiple")
def multiple(kernel: Kernel, factor: float) -> Sum:
    """Return factor * kernel."""
    return Sum((kernel,), np.array([factor])).validate()


def _multiply(total: Array, factor: Array) -> Array:
    out: Array = np.multiply(total, factor, out=total)
    return out


def _total(parts: Sequence[KernelGradient], own: Array | None = None) -> KernelGradient:
    """Concatenate the gradients by theta, add those by the inputs."""
    theta = np.concatenate([*([] if own is None else [own]), *(p.theta for p in parts)])
    X = [part.X for part in parts if part.X is not None]
    Y = [part.Y for part in parts if part.Y is not None]
    return KernelGradient(
        theta, reduce(np.add, X) if X else None, reduce(np.add, Y) if Y else None
    )
