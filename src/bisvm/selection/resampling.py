"""Halves of the rows, and copies of the columns that know nothing of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

# Rows of each class that a half must have, to be trained and validated on.
LEAST_MEMBERS = 2
# The largest of m shadows is below a column of chance once in m + 1 times.
LEAST_SHADOWS = 20


def halves(
    y: np.ndarray, groups: np.ndarray | None, most: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Two disjoint samples of half of the rows, or of `most`, classes in their share.

    Groups are not parted. A class with fewer than four rows is in both halves: none
    could do without it.
    """
    n = len(y)
    unit = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    # Units of one class stand together, so that every second one has its share.
    label = np.zeros(unit.max() + 1, dtype=int)
    label[unit] = y
    order = np.lexsort((rng.permutation(len(label)), label))
    side = np.empty(len(label), dtype=int)
    side[order] = (np.arange(len(label)) + rng.randint(2)) % 2
    both = np.isin(y, np.flatnonzero(np.bincount(y) < 2 * LEAST_MEMBERS))
    first, second = (
        limited(np.flatnonzero((side[unit] == k) | both), y, most, rng) for k in (0, 1)
    )
    return first, second


def limited(
    rows: np.ndarray,
    y: np.ndarray,
    most: int,
    rng: np.random.RandomState,
) -> np.ndarray:
    """At most `most` of the rows; of every class two, and else its share."""
    if len(rows) <= most:
        return rows
    place = np.empty(len(rows))
    for label in np.unique(y[rows]):
        own = np.flatnonzero(y[rows] == label)
        own = own[rng.permutation(len(own))]
        place[own] = np.arange(len(own)) / len(own)
        place[own[:LEAST_MEMBERS]] = -1.0
    return np.sort(rows[np.argsort(place, kind="stable")[:most]])


def with_shadows(X: Any, rng: np.random.RandomState) -> Any:
    """X, and beside it its columns once more with their rows in another order.

    All columns of a copy have the same order: they are related to one another as the
    columns of X are, and to the classes not at all. Where there are few columns there
    are several copies.
    """
    n, d = X.shape
    copies = -(-LEAST_SHADOWS // d)
    parts = [X, *(X[rng.permutation(n)] for _ in range(copies))]
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack(parts))
    return np.hstack(parts)
