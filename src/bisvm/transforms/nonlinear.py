"""Functions of single features, and normalization."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, Self

import numpy as np

from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import is_sparse
from bisvm.transforms.base import Column, Transform, TransformGradient

Function = Callable[[Array], Array]

# The signed root is smoothed where |x| is smaller: its slope stays below 10.
ROOT_WIDTH = 1e-2


def _sigmoid(x: Array) -> Array:
    out: Array = 0.5 * (1.0 + np.tanh(0.5 * x))
    return out


def _root(x: Array) -> Array:
    out: Array = x / (x * x + ROOT_WIDTH**2) ** 0.25
    return out


def _root_slope(x: Array) -> Array:
    square = x * x
    out: Array = (0.5 * square + ROOT_WIDTH**2) / (square + ROOT_WIDTH**2) ** 1.25
    return out


# Value and slope.
FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "identity": (np.copy, np.ones_like),
    "relu": (lambda x: np.maximum(x, 0.0), lambda x: (x > 0).astype(float)),
    "softplus": (lambda x: np.logaddexp(0.0, x), _sigmoid),
    "abs": (np.abs, np.sign),
    "square": (np.square, lambda x: 2.0 * x),
    "tanh": (np.tanh, lambda x: 1.0 - np.tanh(x) ** 2),
    "root": (_root, _root_slope),
    "log": (lambda x: np.sign(x) * np.log1p(np.abs(x)), lambda x: 1 / (1 + np.abs(x))),
}


class Nonlinearity(Transform):
    """z = phi(x), entry by entry. Takes dense arrays of any shape.

    Parameters
    ----------
    kind : str
        "identity"; "relu", max(0, x); "softplus", log(1 + e^x); "abs"; "square";
        "tanh"; "root", sign(x) sqrt(|x|), smoothed around zero as
        x / (x^2 + 10^-4)^(1/4); "log", sign(x) log(1 + |x|). The slope of "relu" and
        "abs" at zero is taken as zero.

    Examples
    --------
    >>> Nonlinearity("relu")(np.array([[-1.0, 2.0]]))
    array([[0., 2.]])
    """

    def __init__(self, kind: str = "relu"):
        self.kind = kind

    def validate(self) -> Self:
        self.check_choice("kind", FUNCTIONS)
        return self

    def trace(self, columns: Sequence[Column]) -> Sequence[Column]:
        return columns

    def apply(self, X: Matrix) -> Array:
        value, _ = FUNCTIONS[self.validate().kind]
        return value(_array(self, X))

    def pullback(
        self, X: Matrix, cotangent: Array, *, inputs: bool = True
    ) -> TransformGradient:
        """d/dx = phi'(x) cotangent."""
        if not inputs:
            return TransformGradient(np.empty(0))
        _, slope = FUNCTIONS[self.validate().kind]
        X = _array(self, X)
        return TransformGradient(np.empty(0), slope(X) * np.reshape(cotangent, X.shape))


@dataclass(eq=False, repr=False)
class Normalize(Transform):
    """z = u / sqrt(eps + |u|^2), with u = x, or u = x - mean(x).

    Parameters
    ----------
    over : {"sample", "channels"}
        Norm and mean of all features of a sample, or of the channels (the last axis) at
        each position.
    center : bool
        Subtract the mean first: contrast normalization.
    eps : float
        Avoids a division by zero if all features are zero.

    Examples
    --------
    >>> Normalize()(np.array([[3.0, 4.0]])).round(6)
    array([[0.6, 0.8]])
    """

    over: Literal["sample", "channels"] = "sample"
    _: KW_ONLY
    center: bool = False
    eps: float = 1e-8

    def validate(self) -> Self:
        self.check_choice("over", ("sample", "channels"))
        self.check_positive("eps")
        return self

    def apply(self, X: Matrix) -> Array:
        U, norms = self._rows(X)
        Z: Array = U / norms
        return Z.reshape(np.shape(X))

    def pullback(
        self, X: Matrix, cotangent: Array, *, inputs: bool = True
    ) -> TransformGradient:
        """d/du = (g - z z'g) / sqrt(eps + |u|^2), minus its mean if centred."""
        if not inputs:
            return TransformGradient(np.empty(0))
        U, norms = self._rows(X)
        Z, G = U / norms, np.reshape(cotangent, U.shape)
        back = (G - Z * np.einsum("ij,ij->i", Z, G)[:, None]) / norms
        if self.center:
            back -= back.mean(axis=1, keepdims=True)
        return TransformGradient(np.empty(0), back.reshape(np.shape(X)))

    def _rows(self, X: Matrix) -> tuple[Array, Array]:
        """The vectors u as rows, and sqrt(eps + |u|^2) of each."""
        self.validate()
        X = _array(self, X)
        sample = self.over == "sample"
        U = X.reshape(-1, math.prod(X.shape[1:]) if sample else X.shape[-1])
        if self.center:
            U = U - U.mean(axis=1, keepdims=True)
        norms = np.sqrt(self.eps + np.einsum("ij,ij->i", U, U))
        return U, norms[:, None]


def _array(part: Transform, X: Matrix) -> Array:
    if is_sparse(X):
        raise TypeError(f"{type(part).__name__} needs a dense array: pass X.toarray().")
    return np.asarray(X, dtype=float)
