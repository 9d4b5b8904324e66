"""A linear map of the features that is learned: a metric."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from bisvm.core.parts import Parameter
from bisvm.transforms.arguments import (
    check_choice,
    check_seed,
    flat,
    index_labels,
    within_ball,
)
from bisvm.transforms.base import Transform, TransformGradient

# Up to here the covariance of the features is formed; beyond, it is only multiplied.
DENSE_FEATURES = 1000


class Projection(Transform):
    """z = A x, with a rectangular matrix A of shape (n_components, n_features).

    A kernel of the distance of z learns the metric |x - y|_M, M = A'A. Takes arrays of
    any shape, flattened, and CSR matrices.

    Parameters
    ----------
    matrix : array of shape (n_components, n_features), optional
        Where None, `n_components` and `start` say from which to start.
    n_components : int, optional
    start : {"pca", "random"}
        "pca" takes the principal axes of X, "random" Gaussian entries of variance
        1 / n_features.
    ball : float, optional
        The largest norm of the matrix, sqrt(sum_kd A_kd^2); a start that is outside is
        shrunk.
    random_state : int
        For the start "random".
    """

    def __init__(
        self,
        matrix: Any = None,
        *,
        n_components: int | None = None,
        start: str = "pca",
        ball: float | None = None,
        random_state: int = 0,
    ):
        self.matrix = matrix
        self.n_components = n_components
        self.start = start
        self.ball = ball
        self.random_state = random_state

    @property
    def linear(self) -> bool:
        return True

    def validate(self) -> Self:
        if self.ball is not None:
            self.check_positive("ball")
        if self.matrix is None:
            if self.n_components is None:
                raise ValueError("Projection needs a matrix or n_components.")
            self.check_count("n_components")
            check_choice(self, "start", ("pca", "random"))
            check_seed(self)
            return self
        matrix = np.asarray(self.matrix, dtype=float)
        if matrix.ndim != 2 or not matrix.size or not np.all(np.isfinite(matrix)):
            raise ValueError(
                "Projection: matrix must be finite and of shape (n_components, "
                f"n_features); got an array of shape {matrix.shape}."
            )
        return self

    @property
    def open(self) -> bool:
        return self.matrix is None

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        matrix = within_ball(self._settled(flat(X), sample_weight), self.ball)
        return (
            Parameter(
                "matrix",
                matrix,
                (-np.inf, np.inf),
                scale="linear",
                labels=index_labels(matrix.shape),
                ball=self.ball,
            ),
        )

    def apply(self, X: Any) -> np.ndarray:
        X = flat(X)
        return X @ self._settled(X).T

    def pullback(
        self, X: Any, cotangent: np.ndarray, *, inputs: bool = True
    ) -> TransformGradient:
        """d/dA = G'X,  d/dX = G A."""
        shape, X = X.shape, flat(X)
        A = self._settled(X)
        theta = np.ravel((X.T @ cotangent).T)
        if not inputs:
            return TransformGradient(theta)
        return TransformGradient(theta, (cotangent @ A).reshape(shape))

    def _settled(self, X: Any, sample_weight: Any = None) -> np.ndarray:
        """The matrix; that which X starts from if none was given."""
        self.validate()
        if self.matrix is None:
            return self._start(X, sample_weight)
        matrix = np.asarray(self.matrix, dtype=float)
        if matrix.shape[1] != X.shape[1]:
            raise ValueError(
                f"Projection: matrix has {matrix.shape[1]} columns, but the samples of "
                f"X have {X.shape[1]} features."
            )
        return matrix

    def _start(self, X: Any, sample_weight: Any) -> np.ndarray:
        assert self.n_components is not None
        p = X.shape[1]
        if self.start == "random":
            rng = np.random.default_rng(self.random_state)
            return rng.normal(size=(self.n_components, p)) / np.sqrt(p)
        if self.n_components > min(X.shape):
            raise ValueError(
                f"Projection: {X.shape[0]} samples of {p} features have no "
                f"{self.n_components} principal axes; use start='random', or fewer "
                "components."
            )
        return principal_axes(X, self.n_components, sample_weight)


def principal_axes(X: Any, number: int, sample_weight: Any = None) -> np.ndarray:
    """Eigenvectors of the covariance of X as rows, the largest variance first.

    The largest entry of each is positive, so that there is one answer. A
    sparse X stays sparse.
    """
    n, p = X.shape
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, float)
    weight = weight / weight.sum()
    mean = X.T @ weight
    if p <= DENSE_FEATURES or number >= p:
        _, axes = np.linalg.eigh(_covariance(X, weight, mean))
        axes = axes[:, ::-1][:, :number].T
    else:

        def product(v: np.ndarray) -> np.ndarray:
            Xv = X @ v.ravel() - mean @ v.ravel()
            return X.T @ (weight * Xv) - mean * (weight @ Xv)

        operator = LinearOperator((p, p), matvec=product, dtype=float)
        start = np.random.default_rng(0).normal(size=p)
        variances, axes = eigsh(operator, k=number, which="LA", v0=start)
        axes = axes[:, np.argsort(-variances)].T
    largest = np.argmax(np.abs(axes), axis=1)
    return axes * np.sign(axes[np.arange(number), largest])[:, None]


def _covariance(X: Any, weight: np.ndarray, mean: np.ndarray) -> np.ndarray:
    if sparse.issparse(X):
        second = (X.T @ sparse.diags_array(weight) @ X).toarray()
        return second - np.outer(mean, mean)
    centred = X - mean
    return (centred * weight[:, None]).T @ centred
