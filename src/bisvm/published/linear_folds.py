"""Linear training problems as plain arrays, for methods that take steps on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from bisvm.data.pieces import Pieces


@dataclass(frozen=True)
class LinearFolds:
    """Linear training problems side by side, one a column.

    X : (n, d), a float64 array in C order, or a SciPy matrix in CSR format; or chunks,
        for methods that read them
    labels : (n, q), +1 or -1
    train : (n, q), relative weight of a point's training loss, 0 where it is held out
    validation : (n, q), weight of a point's validation loss, 0 where it is trained on
    intercept : whether the last column of X is the constant one; its weight is the
        intercept, and is penalised like all others
    """

    X: Any
    labels: np.ndarray
    train: np.ndarray
    validation: np.ndarray
    intercept: bool = False

    def __post_init__(self) -> None:
        _check_matrix(self.X)
        shape = np.shape(self.labels)
        if len(shape) != 2 or shape[0] != self.X.shape[0] or shape[1] == 0:
            raise ValueError(
                f"labels have shape {shape}; expected ({self.X.shape[0]}, q), one row "
                "for every row of X and one column for every training problem."
            )
        if not np.isin(self.labels, (-1.0, 1.0)).all():
            raise ValueError(
                "labels must hold +1 and -1 only; map the classes to them first."
            )
        _check_weights("train", self.train, shape)
        _check_weights("validation", self.validation, shape)
        if self.n_features < 1:
            raise ValueError(
                f"X has {self.X.shape[1]} columns, intercept={self.intercept}; "
                "expected at least one feature beside the constant column."
            )

    @property
    def n_features(self) -> int:
        """p, the number of features without the constant one."""
        return int(self.X.shape[1]) - int(self.intercept)


def _check_matrix(X: Any) -> None:
    if isinstance(X, Pieces):
        return
    if issparse(X):
        good = X.format == "csr" and X.dtype == np.float64
        given = f"a sparse matrix in {X.format} format of {X.dtype}"
        values = X.data
    else:
        good = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype == np.float64
        good = good and X.flags.c_contiguous
        given = (
            f"an array of shape {X.shape} and {X.dtype}"
            if isinstance(X, np.ndarray)
            else f"a {type(X).__name__}"
        )
        values = X
    if not good:
        raise ValueError(
            f"X is {given}; expected a float64 matrix, in C order or in CSR format. "
            "Use np.ascontiguousarray(X, dtype=float), or scipy.sparse.csr_array(X)."
        )
    if not np.isfinite(values).all():
        raise ValueError("X must be finite; impute or drop what is missing first.")


def _check_weights(name: str, weights: np.ndarray, shape: tuple[int, ...]) -> None:
    if np.shape(weights) != shape:
        raise ValueError(
            f"{name} has shape {np.shape(weights)}; expected {shape}, that of labels."
        )
    if not (np.isfinite(weights).all() and np.min(weights, initial=0.0) >= 0.0):
        raise ValueError(
            f"{name} holds weights that are negative or not finite; expected finite "
            "ones of at least 0. Use 0 for a point that has no part."
        )
    empty = np.flatnonzero(~np.any(np.asarray(weights) > 0, axis=0))
    if empty.size:
        raise ValueError(
            f"{name} has no positive weight in column {empty[0]}; every column needs "
            "points to train on and points to validate on. Leave the column out."
        )
