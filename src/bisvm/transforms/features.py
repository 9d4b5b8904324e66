"""Linear maps of the features: some of them, each times a number, or a projection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from bisvm.core.parts import Parameter, Parameters
from bisvm.core.types import Array, ArrayLike, Matrix
from bisvm.data.matrices import (
    column_dots,
    column_variance,
    dense,
    flat,
    is_sparse,
    scale_columns,
)
from bisvm.transforms.arguments import unbounded_parameter
from bisvm.transforms.base import Column, Transform, TransformGradient

# With more features the covariance matrix, 8 MB for 1000, is not formed: Lanczos
# iterations multiply by it.
DENSE_FEATURES = 1000

# Bounds of the factors of `Scale`.
SCALE_RANGE = (1e-5, 1e5)


class Columns(Transform):
    """z = x[columns].

    Parameters
    ----------
    columns : sequence of int, sequence of str, slice, or boolean mask
        Which features, in this order. Names are those of the data frame given to `fit`.

    Examples
    --------
    >>> Columns([2, 0])(np.array([[1.0, 2.0, 3.0]]))
    array([[3., 1.]])
    """

    linear = True

    def __init__(self, columns: ArrayLike | slice):
        self.columns = columns

    def validate(self) -> Self:
        if not isinstance(self.columns, slice) and self._given().dtype != bool:
            _check_distinct(self._given())
        return self

    def bind(self, feature_names: Sequence[str] | None) -> Self:
        if isinstance(self.columns, slice) or self._given().dtype.kind not in "UO":
            return self
        known = [] if feature_names is None else list(feature_names)
        missing = [name for name in self._given().tolist() if name not in known]
        if missing:
            have = ", ".join(map(repr, known[:20])) if known else "no names at all"
            raise ValueError(
                f"There is no column {missing[0]!r}: X has {have}"
                f"{', ...' if len(known) > 20 else ''}. Pass a data frame with named "
                "columns, or give columns by their numbers."
            )
        return self.replace(columns=tuple(known.index(name) for name in self._given()))

    def trace(self, columns: Sequence[Column]) -> Sequence[Column]:
        return [columns[j] for j in self._indices(len(columns))]

    def apply(self, X: Matrix) -> Matrix:
        return X[:, self._indices(X.shape[1])]

    def pullback(
        self, X: Matrix, cotangent: Array, *, inputs: bool = True
    ) -> TransformGradient:
        if not inputs:
            return TransformGradient(np.empty(0))
        back = np.zeros(X.shape)
        back[:, self._indices(X.shape[1])] = cotangent
        return TransformGradient(np.empty(0), back)

    def _given(self) -> Array:
        return np.atleast_1d(np.asarray(self.columns))

    def _indices(self, n: int) -> Array:
        """Numbers of the chosen columns among n."""
        if isinstance(self.columns, slice):
            return _check_distinct(np.arange(n)[self.columns])
        given = self._given()
        if given.dtype == bool:
            if len(given) != n:
                raise ValueError(f"A mask of {len(given)} columns, but X has {n}.")
            return _check_distinct(np.flatnonzero(given))
        if given.dtype.kind in "UO":
            raise ValueError(
                f"Columns {given.tolist()!r} are names, and here columns have none: "
                "pass a data frame to `fit` (behind a scikit-learn transformer: with "
                "set_output(transform='pandas')), or give columns by their numbers."
            )
        if given.dtype.kind not in "iu":
            raise ValueError(
                f"Columns must be whole numbers, names or a mask; got {given.tolist()}."
            )
        outside = given[(given < -n) | (given >= n)]
        if len(outside):
            raise ValueError(f"There is no column {outside[0]}: X has {n} columns.")
        return _check_distinct(given % n)


def _check_distinct(columns: Array) -> Array:
    """Return the columns if there is at least one, and none twice."""
    if not len(columns):
        raise ValueError("No columns were given: a kernel needs at least one.")
    values, counts = np.unique(columns, return_counts=True)
    if counts.max() > 1:
        raise ValueError(f"Column {values[counts.argmax()].item()!r} is given twice.")
    return columns


class Scale(Transform):
    """z_d = scale_d x_d.

    In front of a Gaussian kernel this is a width, gamma_d = gamma scale_d^2. Takes
    arrays of any shape, and CSR matrices, which stay sparse.

    Parameters
    ----------
    scale : float or array of the shape of one sample
    per_feature : bool
        Learn one scale for every feature.

    Examples
    --------
    >>> Scale([1.0, 10.0], per_feature=True)(np.ones((1, 2)))
    array([[ 1., 10.]])
    """

    linear = True

    def __init__(self, scale: ArrayLike = 1.0, *, per_feature: bool = False):
        self.scale = scale
        self.per_feature = per_feature

    def validate(self) -> Self:
        scale = np.asarray(self.scale, dtype=float)
        if not (np.all(scale > 0) and np.all(np.isfinite(scale))):
            raise ValueError(f"scale must be positive and finite, got {self.scale!r}.")
        if scale.ndim and not self.per_feature:
            raise ValueError(
                f"scale has {scale.size} values, expected one number; for one per "
                "feature use per_feature=True."
            )
        return self

    def trace(self, columns: Sequence[Column]) -> Sequence[Column]:
        return columns

    def parameters(self, X: Matrix, sample_weight: Array | None = None) -> Parameters:
        """Return one number, or one per feature in units of 1 / deviation."""
        scale = self._values(X)
        if not self.per_feature:
            return (Parameter("scale", float(scale), SCALE_RANGE),)
        unit = 1.0 / np.sqrt(column_variance(flat(X), sample_weight))
        return (Parameter("scale", scale, SCALE_RANGE, unit=unit),)

    def apply(self, X: Matrix) -> Matrix:
        X = X if is_sparse(X) else np.asarray(X, dtype=float)
        return scale_columns(X, self._values(X))

    def pullback(
        self, X: Matrix, cotangent: Array, *, inputs: bool = True
    ) -> TransformGradient:
        """d/d log scale_d = sum_i g_id z_id and d/dx_id = scale_d g_id, cotangent g."""
        scale, Z = self._values(X), flat(self.apply(X))
        theta = column_dots(Z, np.reshape(cotangent, Z.shape))
        if not self.per_feature:
            theta = theta.sum(keepdims=True)
        if not inputs:
            return TransformGradient(theta)
        return TransformGradient(theta, np.reshape(cotangent, X.shape) * scale)

    def _values(self, X: Matrix) -> Array:
        self.validate()
        scale, shape = np.asarray(self.scale, dtype=float), np.shape(X)[1:]
        if not self.per_feature:
            return scale
        if scale.ndim and scale.size != np.prod(shape):
            raise ValueError(
                f"scale has {scale.size} values, but the samples of X have "
                f"{np.prod(shape)} features."
            )
        return np.broadcast_to(scale, shape) if not scale.ndim else scale.reshape(shape)


class Projection(Transform):
    """z = A x, with a matrix A of shape (n_components, n_features).

    A kernel of the distance of z learns the metric |x - y|_M, M = A'A. Takes arrays of
    any shape, flattened, and CSR matrices.

    Parameters
    ----------
    matrix : array of shape (n_components, n_features), optional
        If None, the first matrix has `n_components` principal axes of X.
    n_components : int, optional

    Examples
    --------
    >>> Projection([[1.0, 1.0, 1.0]])(np.eye(3)).ravel()
    array([1., 1., 1.])
    """

    linear = True

    def __init__(
        self, matrix: ArrayLike | None = None, *, n_components: int | None = None
    ):
        self.matrix = matrix
        self.n_components = n_components

    @property
    def needs_data(self) -> bool:
        return self.matrix is None

    def validate(self) -> Self:
        if self.matrix is None:
            if self.n_components is None:
                raise ValueError("Projection needs a matrix or n_components.")
            self.check_count("n_components")
            return self
        matrix = np.asarray(self.matrix, dtype=float)
        if matrix.ndim != 2 or not matrix.size or not np.all(np.isfinite(matrix)):
            raise ValueError(
                "Projection: matrix must be finite and of shape (n_components, "
                f"n_features); got an array of shape {matrix.shape}."
            )
        return self

    def parameters(self, X: Matrix, sample_weight: Array | None = None) -> Parameters:
        matrix = self._values(flat(X), sample_weight)
        return (unbounded_parameter("matrix", matrix),)

    def apply(self, X: Matrix) -> Matrix:
        X = flat(X)
        return X @ self._values(X).T

    def pullback(
        self, X: Matrix, cotangent: Array, *, inputs: bool = True
    ) -> TransformGradient:
        """d/dA = G'X,  d/dX = G A."""
        shape, X = X.shape, flat(X)
        A = self._values(X)
        theta = np.ravel((X.T @ cotangent).T)
        if not inputs:
            return TransformGradient(theta)
        return TransformGradient(theta, (cotangent @ A).reshape(shape))

    def _values(self, X: Matrix, sample_weight: Array | None = None) -> Array:
        """The matrix, or its start from X if none was given."""
        self.validate()
        if self.matrix is None:
            assert self.n_components is not None
            return principal_axes(X, self.n_components, sample_weight)
        matrix = np.asarray(self.matrix, dtype=float)
        if matrix.shape[1] != X.shape[1]:
            raise ValueError(
                f"Projection: matrix has {matrix.shape[1]} columns, but the samples of "
                f"X have {X.shape[1]} features."
            )
        return matrix


def principal_axes(X: Matrix, number: int, sample_weight: Array | None = None) -> Array:
    """Return eigenvectors of the covariance of X as rows, largest variance first.

    The largest entry of each is positive, so that the answer is unique. A sparse X
    stays sparse.
    """
    n, p = X.shape
    if number > min(n, p):
        raise ValueError(
            f"Projection: {n} samples of {p} features have no {number} principal axes; "
            "use fewer components, or give a matrix."
        )
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, float)
    weight = weight / weight.sum()
    mean = X.T @ weight
    if p <= DENSE_FEATURES or number >= p:
        _, vectors = np.linalg.eigh(_covariance(X, weight, mean))
        axes: Array = vectors[:, ::-1][:, :number].T
    else:

        def product(v: Array) -> Array:
            Xv = X @ v.ravel() - mean @ v.ravel()
            out: Array = X.T @ (weight * Xv) - mean * (weight @ Xv)
            return out

        operator = LinearOperator((p, p), matvec=product, dtype=float)
        start = np.random.default_rng(0).normal(size=p)
        variances, vectors = eigsh(operator, k=number, which="LA", v0=start)
        axes = vectors[:, np.argsort(-variances)].T
    largest = np.argmax(np.abs(axes), axis=1)
    axes = axes * np.sign(axes[np.arange(number), largest])[:, None]
    return axes


def _covariance(X: Matrix, weight: Array, mean: Array) -> Array:
    if is_sparse(X):
        second = dense(X.T @ sparse.diags_array(weight) @ X)
        return second - np.outer(mean, mean)
    centred = X - mean
    out: Array = (centred * weight[:, None]).T @ centred
    return out
