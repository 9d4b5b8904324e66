"""The natural size of the data, in which starts and bounds are expressed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bisvm.data.pieces import Pieces, is_sparse, reduce

# Interquartile range of the standard normal distribution.
NORMAL_IQR = 1.349


@dataclass(frozen=True)
class Moments:
    """Weighted mean and variance, smallest and largest entry of every column."""

    weight: float
    mean: np.ndarray
    variance: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def merge(self, other: Moments) -> Moments:
        """Moments of both sets of rows together, with shares a + b = 1 of the weight:

        mean = mean_1 + b (mean_2 - mean_1),
        variance = a variance_1 + b variance_2 + a b (mean_2 - mean_1)^2

        (Chan, Golub and LeVeque 1983): one reading, and no cancellation.
        """
        weight = self.weight + other.weight
        a, b = self.weight / weight, other.weight / weight
        apart = other.mean - self.mean
        return Moments(
            weight,
            self.mean + b * apart,
            a * self.variance + b * other.variance + a * b * apart**2,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


def column_moments(X: Any, sample_weight: Any = None) -> Moments:
    """One reading of X; the variance is 0 where it is a matter of rounding."""
    weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight)
    found = reduce(_moments, X, weight, combine=Moments.merge)
    # A spread at rounding level is no spread; without centring that level is higher.
    rounding = 1e3 * np.finfo(float).eps
    level = rounding if is_sparse(X) else rounding**2
    largest = np.maximum(np.abs(found.low), np.abs(found.high))
    if not is_sparse(X):
        largest = np.maximum(largest, _reach(found.mean, found.low, found.high))
    constant = found.variance <= level * largest**2
    variance = np.where(constant, 0.0, found.variance)
    return Moments(found.weight, found.mean, variance, found.low, found.high)


def column_variance(X: Any, sample_weight: Any = None) -> np.ndarray:
    """Weighted variance of every column; 1 for a constant column.

    A constant column has no scale of its own, and whatever is done with it has no
    effect: any positive number will do.
    """
    return positive(column_moments(X, sample_weight).variance)


def column_scale(X: Any, sample_weight: Any = None) -> np.ndarray:
    """Usual size of a column's differences: min(standard deviation, IQR / 1.349).

    Both are the same for a normal distribution; the interquartile range does not mind
    a few entries far away (Silverman 1986, section 3.4.2). The standard deviation
    alone where half of the entries are equal; 1 for a constant column.
    """
    deviation = np.sqrt(column_variance(X, sample_weight))
    if is_sparse(X) or isinstance(X, Pieces):
        return deviation
    low, high = _quartiles(X, sample_weight)
    robust = (high - low) / NORMAL_IQR
    return np.where(robust > 0, np.minimum(deviation, robust), deviation)


def n_varying(X: Any) -> int:
    """How many columns are not constant; at least one."""
    return max(int(np.count_nonzero(column_moments(X).variance)), 1)


def _quartiles(X: np.ndarray, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
    """First and third quartile of every column, of the weight where it is given."""
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weight is None or np.all(weight == weight[0]):
        low, high = np.quantile(X, [0.25, 0.75], axis=0)
        return low, high
    order = np.argsort(X, axis=0, kind="stable")
    ordered = np.take_along_axis(X, order, axis=0)
    below = np.cumsum(weight[order], axis=0) / weight.sum()
    places = [(below < share).sum(axis=0) for share in (0.25, 0.75)]
    low, high = (
        np.take_along_axis(ordered, np.minimum(p, len(X) - 1)[None], axis=0)[0]
        for p in places
    )
    return low, high


def mean_variance(X: Any, sample_weight: Any = None) -> float:
    """Mean of the columns' variances, constant columns counting as 0; 1 if all are."""
    return float(positive(np.mean(column_moments(X, sample_weight).variance)))


def mean_deviation(X: Any, sample_weight: Any = None) -> float:
    """Mean of the columns' standard deviations, in the same manner."""
    return float(positive(np.mean(np.sqrt(column_moments(X, sample_weight).variance))))


def positive(size: Any) -> np.ndarray:
    """1 where there is no size."""
    return np.where(size > 0, size, 1.0)


def _moments(X: Any, weight: np.ndarray) -> Moments:
    """Of rows in memory."""
    total = float(weight.sum())
    weight = weight / total
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
        mean = X.T @ weight
        variance = np.maximum(X.power(2).T @ weight - mean**2, 0.0)
        return Moments(total, mean, variance, low, high)
    mean = weight @ X
    safe = positive(_reach(mean, low, high))
    variance = safe**2 * (weight @ ((X - mean) / safe) ** 2)
    return Moments(total, mean, variance, low, high)


def _reach(mean: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Largest distance of an entry from its column's mean."""
    return np.maximum(high - mean, mean - low)
