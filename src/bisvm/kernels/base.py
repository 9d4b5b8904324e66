"""The contract of a kernel: Gram matrices, and their gradient as a contraction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bisvm.parts import Parameter, Part

# Entries of a temporary block of Gram-sized weights: 32 MB in float64.
BLOCK_ENTRIES = 1 << 22


@dataclass(frozen=True)
class Factors:
    """Weights W = left @ right.T on the entries of a Gram matrix, kept as factors.

    left : (n, q) and right : (m, q), so that no (n, m) array is needed to hold W.
    """

    left: np.ndarray
    right: np.ndarray

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Row blocks of W, small enough to be temporaries."""
        n, m = len(self.left), len(self.right)
        rows = max(1, BLOCK_ENTRIES // max(m, 1))
        for first in range(0, n, rows):
            block = slice(first, min(first + rows, n))
            yield block, self.left[block] @ self.right.T


@dataclass(frozen=True)
class KernelGradient:
    """Gradient of sum_ij W_ij k(x_i, y_j).

    theta : with respect to the kernel's parameters, in the optimizer's coordinates
        (d/d log gamma for a parameter of scale "log"), concatenated in their order.
    X, Y : with respect to the inputs, for a transform in front; None if not asked for.
    """

    theta: np.ndarray
    X: np.ndarray | None = None
    Y: np.ndarray | None = None


class Kernel(Part):
    """A positive-definite function k(x, y) with parameters.

    A subclass implements `parameters`, `gram` and `pullback`.
    """

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        """The kernel's hyperparameters; data settle what the arguments leave open."""
        return ()

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """The kernel at other parameter values (natural units)."""
        return self.replace(**values) if values else self

    def gram(self, X: Any, Y: Any = None) -> np.ndarray:
        """K_ij = k(x_i, y_j); Y = None stands for X."""
        raise NotImplementedError

    def diagonal(self, X: Any) -> np.ndarray:
        """k(x_i, x_i)."""
        raise NotImplementedError

    def pullback(
        self,
        X: Any,
        Y: Any,
        gram: np.ndarray,
        weights: Factors,
        *,
        inputs: bool = False,
    ) -> KernelGradient:
        """Gradient of sum_ij W_ij k(x_i, y_j), `gram` being k(X, Y)."""
        raise NotImplementedError

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        return self.gram(X, Y)
