"""The contract of a kernel: Gram matrices, and their gradient as a contraction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np

from bisvm.core.parts import Parameter, Part
from bisvm.transforms import Columns, Transform

# Entries of a temporary block of Gram-sized weights: a few MB stay in the cache.
BLOCK_ENTRIES = 1 << 19
# What the operators of kernels make. Combinations are kernels themselves: their modules
# import this one, and enter themselves here.
OPERATIONS: dict[str, Callable[..., Kernel]] = {}


@dataclass(frozen=True)
class Factors:
    """Weights W = (left @ right.T) o M on the entries of a Gram matrix.

    left : (n, q) and right : (m, q), so that no (n, m) array is needed to hold W.
    mask : (n, m) or None, an array M by which the weights are multiplied, entry by
        entry; a product of kernels hands one to each factor the others' Gram matrices.
    """

    left: np.ndarray
    right: np.ndarray
    mask: np.ndarray | None = None

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Row blocks of W, small enough to be temporaries and free to be changed."""
        n, m = len(self.left), len(self.right)
        rows = max(1, BLOCK_ENTRIES // max(m, 1))
        for first in range(0, n, rows):
            block = slice(first, min(first + rows, n))
            W = self.left[block] @ self.right.T
            if self.mask is not None:
                W *= self.mask[block]
            yield block, W

    def dense(self) -> np.ndarray:
        """W itself, for kernels that do not mind an (n, m) array."""
        return np.concatenate([W for _, W in self.blocks()])

    def times(self, mask: np.ndarray) -> Factors:
        """The weights W o mask. The mask is not copied."""
        both = mask if self.mask is None else self.mask * mask
        return replace(self, mask=both)

    def scaled(self, factor: float) -> Factors:
        return replace(self, left=factor * self.left)

    @property
    def T(self) -> Factors:
        mask = None if self.mask is None else self.mask.T
        return Factors(self.right, self.left, mask)

    def __matmul__(self, Y: Any) -> np.ndarray:
        """W Y, for a dense or sparse Y."""
        if self.mask is None:
            return self.left @ (Y.T @ self.right).T
        return np.concatenate([W @ Y for _, W in self.blocks()])

    def dot(self, gram: np.ndarray) -> float:
        """sum_ij W_ij gram_ij."""
        if self.mask is None:
            return float(np.sum(self.left * (gram @ self.right)))
        return float(sum(np.vdot(W, gram[rows]) for rows, W in self.blocks()))


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

    A subclass implements `parameters`, `gram`, `diagonal` and `pullback`. A parameter
    has the name of the constructor's argument that it sets.

    Kernels combine: `k1 + k2` with a learned weight each, `2 * k1`, `k1 * k2`,
    `k.on(columns)` for some of the columns, `k @ transform` behind a map of the inputs.
    """

    # Whether k has a derivative by x where x = y.
    smooth: bool = True

    @property
    def vanishes(self) -> bool:
        """Whether k = 0: all weights of a sum have gone to zero."""
        return False

    @property
    def held_grams(self) -> int:
        """Gram matrices that are held at a time beside the kernel's own."""
        return 0

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        """The kernel's hyperparameters; data settle what the arguments leave open."""
        return ()

    def single(self, X: Any) -> np.ndarray | None:
        """Inputs in single precision that have the same Gram matrix, up to rounding.

        None for a kernel, or inputs, where that would not do.
        """
        return None

    def rounding(self, X: Any) -> float:
        """About how wrong entries of the Gram matrix are for inputs from `single`."""
        return float(np.finfo(X.dtype).eps)

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

    def function_gradients(
        self, X: Any, gram: np.ndarray, coef: np.ndarray
    ) -> np.ndarray:
        """d/dtheta of f_k(x_i) = sum_j k(x_i, x_j) coef_jk, for all i, k: (n, q, p).

        `gram` is k(X, X). One contraction each, unless a kernel knows better.
        """
        used = np.flatnonzero(coef.any(axis=1))
        used = used if len(used) else np.arange(1)
        Y, one = X[used], np.ones((1, 1))
        return np.array(
            [
                [
                    self.pullback(
                        X[i : i + 1], Y, gram[i : i + 1, used], Factors(one, column)
                    ).theta
                    for column in coef[used].T[:, :, None]
                ]
                for i in range(len(gram))
            ]
        )

    def bind(self, feature_names: Sequence[str] | None) -> Self:
        """The kernel with names of columns replaced by their numbers."""
        return self

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        """The Gram matrix; data frames may be given, whose columns have names."""
        if hasattr(X, "columns"):
            return self.bind(list(X.columns))(X.to_numpy(), Y)
        Y = Y.to_numpy() if hasattr(Y, "to_numpy") else Y
        return self.gram(X, Y)

    def on(self, columns: Any) -> Kernel:
        """This kernel on some of the columns, given by numbers, names or a mask."""
        return self @ Columns(columns)

    def __add__(self, other: Kernel) -> Kernel:
        if isinstance(other, Kernel):
            return OPERATIONS["sum"](self, other)
        raise TypeError(
            f"A kernel and {other!r} cannot be added: `k1 + k2` adds kernels, `3 * k` "
            "scales one; for an added constant use Polynomial's offset."
        )

    def __radd__(self, other: Any) -> Kernel:
        """sum(kernels) begins with 0."""
        return self if isinstance(other, int) and other == 0 else self + other

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return OPERATIONS["product"](self, other)
        if isinstance(other, Real) and not isinstance(other, bool):
            return OPERATIONS["multiple"](self, float(other))
        return NotImplemented

    __rmul__ = __mul__

    def __matmul__(self, transform: Any) -> Kernel:
        if not isinstance(transform, Transform):
            raise TypeError(
                f"After '@' a transform is expected, such as Projection or "
                f"Convolution2D; got {transform!r}. Kernels are multiplied by '*'."
            )
        return OPERATIONS["transformed"](self, transform)
