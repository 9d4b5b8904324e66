"""Kernels on groups of features, and groups of features of one order of magnitude."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from scipy import sparse

from bisvm.core.types import Array, ArrayLike, UserData
from bisvm.data.matrices import is_sparse
from bisvm.kernels.algebra import Sum
from bisvm.kernels.base import Kernel
from bisvm.kernels.radial import RBF

# Added to log10 of a median before rounding down, so that 999.9999999 counts as 1000.
ROUNDING = 1e-9


def on_groups(groups: Iterable[ArrayLike], kernel: Kernel | None = None) -> Sum:
    """Give each group of features a kernel with a learned weight.

    k(x, y) = sum_m w_m k_m(x_m, y_m), x_m the features of group m: multiple kernel
    learning.

    Parameters
    ----------
    groups : sequence of groups of features, by number or name
        No feature may be in two groups.
    kernel : Kernel, optional
        The kernel of every group; `RBF()` by default.

    Returns
    -------
    Sum

    Examples
    --------
    >>> kernel = on_groups([[0, 1], [2]])
    >>> [k.transform.columns for k in kernel.kernels]
    [[0, 1], [2]]
    """
    owner: dict[Hashable, int] = {}
    members = [np.atleast_1d(np.asarray(group)).tolist() for group in groups]
    for number, group in enumerate(members):
        for column in group:
            if column in owner:
                raise ValueError(
                    f"Column {column!r} is in the groups {owner[column]} and {number}; "
                    "it may be in one only. Add kernels yourself if you mean it: "
                    "k.on(a) + k.on(b)."
                )
            owner[column] = number
    kernel = RBF() if kernel is None else kernel
    return Sum(tuple(kernel.on(group) for group in members)).validate()


def feature_groups(X: UserData) -> list[Any]:
    """Group features whose values have the same order of magnitude.

    Feature d has the size s_d = median of |x_id| over its nonzero entries, and belongs
    to the group floor(log10 s_d). Features of one kind of measurement share a unit, so
    that each group may deserve its own kernel: `on_groups(feature_groups(X))`. Pass the
    data as measured: standardized features are all in one group.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)

    Returns
    -------
    list of integer arrays, or of lists of names for a data frame with string columns
        Groups from the largest to the smallest values. Features that are all zero have
        no size and are in the last group.

    Notes
    -----
    The 22 voice measurements of the Parkinson's data fall into seven groups, from three
    frequencies of about 100 Hz to an absolute jitter of 3e-5 s. T. Klatzer, *Bi-level
    Optimization for Support Vector Machines*, 2014, section 5.3.2, chose seven groups
    by hand.

    Examples
    --------
    >>> [group.tolist() for group in feature_groups([[120.0, 0.3, 150.0]])]
    [[0, 2], [1]]
    """
    orders = np.floor(_log_sizes(X) + ROUNDING)
    groups = [np.flatnonzero(orders == order) for order in np.unique(orders)[::-1]]
    names = getattr(X, "columns", None)
    if names is not None and all(isinstance(name, str) for name in names):
        return [[names[d] for d in group] for group in groups]
    return groups


def _log_sizes(X: UserData) -> Array:
    """log10 of the median of |x_id| over nonzero entries.

    A feature that is all zero gets the smallest of the other sizes.
    """
    X = sparse.csc_array(X) if is_sparse(X) else np.asarray(X, dtype=float)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got shape {X.shape}.")
    sizes = np.full(X.shape[1], np.inf)
    for d in range(X.shape[1]):
        column = X[:, [d]].data if is_sparse(X) else X[:, d]
        if not np.all(np.isfinite(column)):
            raise ValueError(
                f"Column {d} of X has missing or infinite values. Impute them, or "
                "leave their rows out: a sample is enough to find groups."
            )
        if np.any(column):
            sizes[d] = np.log10(np.median(np.abs(column[column != 0])))
    least = np.min(sizes, initial=np.inf)
    return np.where(np.isinf(sizes), least if np.isfinite(least) else 0.0, sizes)
