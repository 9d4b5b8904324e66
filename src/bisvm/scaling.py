"""The natural size of the data, in which starts and bounds are expressed."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def column_variance(X: Any, sample_weight: Any = None) -> np.ndarray:
    """Weighted variance of every column; 1 for a constant column.

    A constant column has no scale of its own, and whatever is done with it has no
    effect: any positive number will do.
    """
    variance = _variance(X, sample_weight)
    return np.where(variance > 0, variance, 1.0)


def mean_variance(X: Any, sample_weight: Any = None) -> float:
    """Mean of the columns' variances, constant columns counting as 0; 1 if all are."""
    mean = float(np.mean(_variance(X, sample_weight)))
    return mean if mean > 0 else 1.0


def mean_deviation(X: Any, sample_weight: Any = None) -> float:
    """Mean of the columns' standard deviations, in the same manner."""
    mean = float(np.mean(np.sqrt(_variance(X, sample_weight))))
    return mean if mean > 0 else 1.0


def _variance(X: Any, sample_weight: Any) -> np.ndarray:
    """Weighted variance of every column; 0 where it is a matter of rounding."""
    weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight)
    weight = weight / weight.sum()
    if sparse.issparse(X):
        mean = X.T @ weight
        square = X.copy()
        square.data = square.data**2
        variance = np.maximum(square.T @ weight - mean**2, 0.0)
        largest = np.sqrt(np.asarray(square.max(axis=0).todense()).ravel())
    else:
        centred = X - weight @ X
        largest = np.max(np.abs(centred), axis=0)
        safe = np.where(largest > 0, largest, 1.0)
        variance = safe**2 * (weight @ (centred / safe) ** 2)
        largest = np.maximum(largest, np.max(np.abs(X), axis=0))
    # A spread at rounding level is no spread; without centring that level is higher.
    rounding = 1e3 * np.finfo(float).eps
    level = rounding if sparse.issparse(X) else rounding**2
    constant = variance <= level * largest**2
    return np.where(constant, 0.0, variance)
