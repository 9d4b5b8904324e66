"""Kernels on groups of features, and a partition by order of magnitude."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from bisvm.kernels.algebra import Sum
from bisvm.kernels.base import Kernel
from bisvm.kernels.rbf import RBF

# A median of 1000 that was computed as 999.9999999 has the order 3.
ROUNDING = 1e-9


def on_groups(groups: Sequence[Any], kernel: Kernel | None = None) -> Sum:
    """One kernel for each group of columns, with a learned weight each.

    sum_m w_m k(x_m, y_m), x_m the columns of group m: multiple kernel learning.

    Parameters
    ----------
    groups : sequence of groups of columns, by number or name
        No column may be in two of them.
    kernel : Kernel, optional
        The kernel of every group; `RBF()` by default.

    Examples
    --------
    >>> on_groups([[0, 1], [2]]).weights is None
    True
    """
    owner: dict[Any, int] = {}
    members = [np.atleast_1d(np.asarray(group)).tolist() for group in groups]
    for number, group in enumerate(members):
        for column in group:
            if column in owner:
                raise ValueError(
                    f"Column {column!r} is in the groups {owner[column]} and {number}; "
                    "it may be in one only. Add kernels by hand if you mean it: "
                    "k.on(a) + k.on(b)."
                )
            owner[column] = number
    kernel = RBF() if kernel is None else kernel
    return Sum(tuple(kernel.on(group) for group in members)).validate()


def feature_groups(X: Any, *, min_size: int = 1) -> list[Any]:
    """Columns of X whose values have one order of magnitude, group by group.

    Column d has the size s_d = median of |x_id| over its entries that are not zero, and
    belongs to the group floor(log10 s_d). Features of one kind of measurement come in
    one unit, so that this is a first guess of what could have a kernel of its own::

        kernel = on_groups(feature_groups(X))

    Give it the data as measured: on standardised columns there is nothing to see, and
    one group comes out.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
    min_size : int
        A group with fewer columns joins the neighbour, larger or smaller, whose nearest
        column is nearer in log10 s_d; the smallest group first, until all are large
        enough. By default nothing is merged.

    Returns
    -------
    list of integer arrays; of lists of names for a data frame with string columns
        From the largest to the smallest values; in a group the columns are in their
        order. Columns of zeros, which have no size, are in the last group.

    Notes
    -----
    The 22 voice measurements of the Parkinson's data fall into seven groups, from three
    frequencies of about 100 Hz to an absolute jitter of 3e-5 s: as many as T. Klatzer,
    *Bi-level Optimization for Support Vector Machines*, 2014, section 5.3.2, made by
    hand.
    """
    if min_size < 1:
        raise ValueError(f"min_size must be at least 1, got {min_size!r}.")
    sizes = _log_sizes(X)
    groups = _merged(_by_order(sizes), sizes, min_size)
    names = getattr(X, "columns", None)
    if names is not None and all(isinstance(name, str) for name in names):
        return [[names[d] for d in group] for group in groups]
    return groups


def _log_sizes(X: Any) -> np.ndarray:
    """log10 of the median of |x_id| over entries that are not zero.

    A column of zeros gets the smallest of the others.
    """
    X = sparse.csc_array(X) if sparse.issparse(X) else np.asarray(X, dtype=float)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got shape {X.shape}.")
    sizes = np.full(X.shape[1], np.inf)
    for d in range(X.shape[1]):
        column = X[:, [d]].data if sparse.issparse(X) else X[:, d]
        if not np.all(np.isfinite(column)):
            raise ValueError(
                f"Column {d} of X has missing or infinite values. Impute them, or "
                "leave their rows out: a sample is enough to find groups."
            )
        if np.any(column):
            sizes[d] = np.log10(np.median(np.abs(column[column != 0])))
    least = np.min(sizes, initial=np.inf)
    return np.where(np.isinf(sizes), least if np.isfinite(least) else 0.0, sizes)


def _by_order(sizes: np.ndarray) -> list[np.ndarray]:
    """Columns with one floor(log10 size), from large to small."""
    orders = np.floor(sizes + ROUNDING)
    return [np.flatnonzero(orders == order) for order in np.unique(orders)[::-1]]


def _merged(
    groups: list[np.ndarray], sizes: np.ndarray, min_size: int
) -> list[np.ndarray]:
    """Neighbours joined until every group has `min_size` columns, or one is left."""
    while len(groups) > 1:
        smallest = int(np.argmin([len(group) for group in groups]))
        if len(groups[smallest]) >= min_size:
            break
        gaps = [
            sizes[above].min() - sizes[below].max() for above, below in pairwise(groups)
        ]
        candidates = [k for k in (smallest - 1, smallest) if 0 <= k < len(gaps)]
        first = min(candidates, key=gaps.__getitem__)
        joined = np.sort(np.concatenate(groups[first : first + 2]))
        groups = [*groups[:first], joined, *groups[first + 2 :]]
    return groups
