"""Functions of every feature by itself, and the norm of features taken out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse

from bisvm.transforms.arguments import check_choice
from bisvm.transforms.base import Transform, TransformGradient

Function = Callable[[np.ndarray], np.ndarray]

# Width of the zone about zero in which the signed root is smooth.
ROOT_WIDTH = 1e-2


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def _root(x: np.ndarray) -> np.ndarray:
    return x / (x * x + ROOT_WIDTH**2) ** 0.25


def _root_slope(x: np.ndarray) -> np.ndarray:
    square = x * x
    return (0.5 * square + ROOT_WIDTH**2) / (square + ROOT_WIDTH**2) ** 1.25


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
        "tanh"; "root", sign(x) sqrt(|x|), smooth about zero as
        x / (x^2 + 10^-4)^(1/4); "log", sign(x) log(1 + |x|). At zero, "relu" and "abs"
        are given the slope zero.
    """

    def __init__(self, kind: str = "relu"):
        self.kind = kind

    def validate(self) -> Self:
        check_choice(self, "kind", FUNCTIONS)
        return self

    def trace(self, columns: Sequence[Any]) -> Sequence[Any]:
        return columns

    def apply(self, X: Any) -> np.ndarray:
        value, _ = FUNCTIONS[self.validate().kind]
        return value(_dense(self, X))

    def pullback(
        self, X: Any, cotangent: np.ndarray, *, inputs: bool = True
    ) -> TransformGradient:
        """d/dx = phi'(x) cotangent."""
        if not inputs:
            return TransformGradient(np.empty(0))
        _, slope = FUNCTIONS[self.validate().kind]
        X = _dense(self, X)
        return TransformGradient(np.empty(0), slope(X) * np.reshape(cotangent, X.shape))


class Normalize(Transform):
    """z = u / sqrt(eps + |u|^2), with u = x, or u = x - mean(x).

    Parameters
    ----------
    over : {"sample", "channels"}
        Norm and mean of all features of a sample, or of the channels (the last axis) at
        each position.
    center : bool
        Take out the mean first: contrast normalisation.
    eps : float
        What keeps features that are all zero from being divided by zero.
    """

    def __init__(
        self, over: str = "sample", *, center: bool = False, eps: float = 1e-8
    ):
        self.over = over
        self.center = center
        self.eps = eps

    def validate(self) -> Self:
        check_choice(self, "over", ("sample", "channels"))
        self.check_positive("eps")
        return self

    def apply(self, X: Any) -> np.ndarray:
        U, norms = self._rows(X)
        return (U / norms).reshape(np.shape(X))

    def pullback(
        self, X: Any, cotangent: np.ndarray, *, inputs: bool = True
    ) -> TransformGradient:
        """d/du = (g - z z'g) / sqrt(eps + |u|^2); d/dx the same without its mean."""
        if not inputs:
            return TransformGradient(np.empty(0))
        U, norms = self._rows(X)
        Z, G = U / norms, np.reshape(cotangent, U.shape)
        back = (G - Z * np.einsum("ij,ij->i", Z, G)[:, None]) / norms
        if self.center:
            back -= back.mean(axis=1, keepdims=True)
        return TransformGradient(np.empty(0), back.reshape(np.shape(X)))

    def _rows(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """What is normalised, as rows, and sqrt(eps + |u|^2) of each."""
        self.validate()
        X = _dense(self, X)
        sample = self.over == "sample"
        U = X.reshape(-1, math.prod(X.shape[1:]) if sample else X.shape[-1])
        if self.center:
            U = U - U.mean(axis=1, keepdims=True)
        norms = np.sqrt(self.eps + np.einsum("ij,ij->i", U, U))
        return U, norms[:, None]


def _dense(part: Transform, X: Any) -> np.ndarray:
    if sparse.issparse(X):
        raise TypeError(f"{type(part).__name__} needs a dense array: pass X.toarray().")
    return np.asarray(X, dtype=float)
