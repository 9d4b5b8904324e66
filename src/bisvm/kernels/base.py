"""The contract of a kernel: Gram matrices, and their gradient as a contraction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Self, TypeVar

import numpy as np

from bisvm.core.parts import Parameters, Part
from bisvm.core.threads import in_threads
from bisvm.core.types import Array, ArrayLike, Matrix, UserData
from bisvm.transforms import Columns, Transform

# Entries of a temporary block of Gram-sized weights: 4 MB in float64, so that a block
# stays in the cache.
BLOCK_ENTRIES = 1 << 19
# Entries of a block on which several operations follow each other: it stays in the
# cache of one processor, 1 MB in float64.
CACHED_ENTRIES = 1 << 17
# Entries of a block of a Gram matrix that is computed, used and dropped: 16 MB.
DROPPED_ENTRIES = 1 << 21

Out = TypeVar("Out")

# What the operators `+`, `*` and `@` build. Sums, products and transformed kernels are
# kernels themselves: their modules import this one and register here.
OPERATIONS: dict[str, Callable[..., Kernel]] = {}


def row_blocks(n: int, width: int, entries: int) -> Iterator[slice]:
    """Yield blocks of the rows of an (n, width) array, each of about `entries`."""
    rows = max(1, entries // max(width, 1))
    for first in range(0, n, rows):
        yield slice(first, min(first + rows, n))


@dataclass(frozen=True)
class Factors:
    """Weights W = (left @ right.T) o mask on the entries of a Gram matrix.

    Parameters
    ----------
    left, right : arrays of shape (n, q) and (m, q)
        The factors of W: no (n, m) array is needed to hold it.
    mask : array of shape (n, m), optional
        Multiplies the weights entry by entry. A product of kernels passes the Gram
        matrices of the other factors to each factor in this way.

    Examples
    --------
    >>> Factors(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])).dense()
    array([[3., 4.],
           [6., 8.]])
    """

    left: Array
    right: Array
    mask: Array | None = None

    @classmethod
    def of_weights(cls, W: Array) -> Factors:
        """Return the factors of weights W, of shape (n, m), given entry by entry."""
        n, m = W.shape
        return cls(np.ones((n, 1), W.dtype), np.ones((m, 1), W.dtype), W)

    def map_blocks(self, function: Callable[[slice, Array], Out]) -> list[Out]:
        """Return what a function makes of each block of rows of W, in their order.

        Blocks are small temporary arrays, which may be overwritten. Several threads may
        call the function at a time.
        """

        def apply(block: slice) -> Out:
            W = self.left[block] @ self.right.T
            if self.mask is not None:
                W *= self.mask[block]
            return function(block, W)

        n, m = len(self.left), len(self.right)
        blocks = row_blocks(n, m, BLOCK_ENTRIES)
        return in_threads(apply, blocks, worthwhile=n * m > BLOCK_ENTRIES)

    def dense(self) -> Array:
        """Return W as one (n, m) array."""
        return np.concatenate(self.map_blocks(lambda _, W: W))

    def times(self, mask: Array) -> Factors:
        """Return the weights W o mask. The mask is not copied."""
        both = mask if self.mask is None else self.mask * mask
        return replace(self, mask=both)

    def scaled(self, factor: float) -> Factors:
        """Return the weights factor W."""
        return replace(self, left=factor * self.left)

    @property
    def T(self) -> Factors:
        """The weights W'."""
        mask = None if self.mask is None else self.mask.T
        return Factors(self.right, self.left, mask)

    def __matmul__(self, Y: Matrix) -> Array:
        """Return W Y, for a dense or sparse Y."""
        if self.mask is None:
            out: Array = self.left @ (Y.T @ self.right).T
            return out
        return np.concatenate(self.map_blocks(lambda _, W: W @ Y))

    def dot(self, gram: Array) -> float:
        """Return sum_ij W_ij gram_ij."""
        if self.mask is None:
            return float(np.sum(self.left * (gram @ self.right)))
        return float(sum(self.map_blocks(lambda rows, W: np.vdot(W, gram[rows]))))


@dataclass(frozen=True)
class KernelGradient:
    """Gradient of sum_ij W_ij k(x_i, y_j).

    Attributes
    ----------
    theta : array of shape (n_parameters,)
        With respect to the kernel's parameters, in the optimizer's coordinates
        (d/d log gamma for a parameter of scale "log"), concatenated in their order.
    X, Y : arrays of the shapes of X and Y, or None
        With respect to the inputs; None if not asked for.
    """

    theta: Array
    X: Array | None = None
    Y: Array | None = None


class Kernel(Part):
    """A positive semidefinite function k(x, y) with hyperparameters.

    A subclass implements `parameters`, `gram`, `diagonal` and `pullback`. A parameter
    has the name of the constructor argument that it sets.

    Kernels combine: `k1 + k2` learns a weight for each, `2 * k1` scales, `k1 * k2`
    multiplies, `k.on(columns)` sees some of the features, and `k @ transform` compares
    transformed inputs.

    Examples
    --------
    >>> from bisvm.kernels import RBF, Linear
    >>> kernel = RBF(0.5).on([0, 1]) + Linear()
    >>> kernel(np.eye(3)).round(3)
    array([[2.   , 0.368, 0.607],
           [0.368, 2.   , 0.607],
           [0.607, 0.607, 2.   ]])
    """

    # Whether k(x, y) is differentiable where x = y.
    smooth: bool = True

    @property
    def vanishes(self) -> bool:
        """Whether k = 0 because all weights of a sum have become zero."""
        return False

    @property
    def held_grams(self) -> int:
        """Number of further Gram matrices in memory while `gram` or `pullback` runs."""
        return 0

    def parameters(self, X: Matrix, sample_weight: Array | None = None) -> Parameters:
        """Return the hyperparameters, with starts and bounds that may depend on X.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Training data; nothing of it is kept.
        sample_weight : array of shape (n,), optional
            Weights of the rows, if starts are means over rows.

        Returns
        -------
        parameters : tuple of Parameter
            In the order in which `pullback` returns their derivatives.
        """
        return ()

    def single(self, X: Matrix) -> Array | None:
        """Return inputs in single precision with the same Gram matrix, up to rounding.

        Parameters
        ----------
        X : matrix of shape (n, d)

        Returns
        -------
        X : float32 array of shape (n, d), or None
            None if the kernel or the inputs do not allow it.
        """
        return None

    def rounding(self, X: Matrix) -> float:
        """Return an estimate of the rounding error of Gram entries.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Inputs, in the precision in which the Gram matrix is computed.
        """
        return float(np.finfo(X.dtype).eps)

    def with_values(self, values: Mapping[str, object]) -> Self:
        """Return the kernel with other parameter values, in natural units."""
        return self.replace(**values) if values else self

    def gram(self, X: Matrix, Y: Matrix | None = None) -> Array:
        """Return K_ij = k(x_i, y_j); Y = None stands for X."""
        raise NotImplementedError

    def diagonal(self, X: Matrix) -> Array:
        """Return k(x_i, x_i), of shape (n,), for the rows x_i of X."""
        raise NotImplementedError

    def pullback(
        self, X: Matrix, Y: Matrix | None, gram: Array, W: Factors, inputs: bool = False
    ) -> KernelGradient:
        """Return the gradient of sum_ij W_ij k(x_i, y_j).

        Parameters
        ----------
        X, Y : matrices of shape (n, d) and (m, d)
            Y = None stands for X.
        gram : array of shape (n, m)
            The Gram matrix k(X, Y).
        W : Factors
            The weights.
        inputs : bool
            Whether the gradients with respect to X and Y are wanted too.
        """
        raise NotImplementedError

    def bind(self, feature_names: Sequence[str] | None) -> Self:
        """Return the kernel with feature names replaced by column numbers.

        Parameters
        ----------
        feature_names : sequence of str, or None
            Names of the columns of X; None if they have none.
        """
        return self

    def __call__(self, X: UserData, Y: UserData = None) -> Array:
        """Return the Gram matrix of arrays, sparse matrices or data frames."""
        if hasattr(X, "columns"):
            return self.bind(list(X.columns))(X.to_numpy(), Y)
        Y = Y.to_numpy() if hasattr(Y, "to_numpy") else Y
        return self.gram(X, Y)

    def values(
        self, X: Matrix, Y: Matrix, coef: Matrix, entries: int = DROPPED_ENTRIES
    ) -> Array:
        """Return sum_j k(x_i, y_j) coef_j, from blocks of the Gram matrix.

        Parameters
        ----------
        X, Y : matrices of shape (n, d) and (m, d)
        coef : matrix of shape (m, q)
        entries : int
            Entries of a block, which is dropped after its use.

        Returns
        -------
        values : array of shape (n, q)
        """
        out = np.empty((X.shape[0], coef.shape[1]))
        for rows in row_blocks(X.shape[0], coef.shape[0], entries):
            out[rows] = self.gram(X[rows], Y) @ coef
        return out

    def on(self, columns: ArrayLike) -> Kernel:
        """Return this kernel on some of the features.

        Parameters
        ----------
        columns : array_like
            Their numbers, their names in a data frame, or a mask of all features.

        Examples
        --------
        >>> from bisvm.kernels import RBF
        >>> RBF(1.0).on([0])(np.array([[0.0, 5.0], [1.0, 9.0]])).round(3)
        array([[1.   , 0.368],
               [0.368, 1.   ]])
        """
        return self @ Columns(columns)

    def __add__(self, other: Kernel) -> Kernel:
        if isinstance(other, Kernel):
            return OPERATIONS["sum"](self, other)
        raise TypeError(
            f"A kernel and {other!r} cannot be added: `k1 + k2` adds kernels, `3 * k` "
            "scales one; for an added constant use Polynomial's offset."
        )

    def __radd__(self, other: Kernel) -> Kernel:
        # sum(kernels) starts with 0.
        return self if isinstance(other, int) and other == 0 else self + other

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return OPERATIONS["product"](self, other)
        if isinstance(other, Real) and not isinstance(other, bool):
            return OPERATIONS["multiple"](self, float(other))
        return NotImplemented

    __rmul__ = __mul__

    def __matmul__(self, transform: Transform) -> Kernel:
        if not isinstance(transform, Transform):
            raise TypeError(
                f"After '@' a transform is expected, such as Projection or "
                f"Convolution2D; got {transform!r}. Kernels are multiplied by '*'."
            )
        return OPERATIONS["transformed"](self, transform)
