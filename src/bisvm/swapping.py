"""A hold-out whose points change places during the search (seed 004, algorithm 1).

One partition of the points into T, trained on, and V, held out, is all there is at a
time; every few iterations n random points of V change places with as many of T. So one
machine is judged on many points, at the price of one validation set.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from bisvm.splits import Split


class SwapHoldout:
    """Cross-validation splitter: one stratified split, and how it changes.

    Parameters
    ----------
    train_size : float, default=0.6
        Part of every class that is trained on.
    n_swaps : int, optional
        Points of V that change places with as many of T, class by class; a tenth of V
        if None.
    every : int, default=5
        Iterations of the search between two exchanges.
    random_state : int, RandomState or None
        Of the first split; None leaves it to the estimator.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat([0, 1], [10, 20])
    >>> cv = SwapHoldout(random_state=0)
    >>> [(train, held_out)] = cv.split(y, y)
    >>> len(train), len(held_out)
    (18, 12)
    >>> train, held_out = cv.swapped((train, held_out), y, np.random.RandomState(0))
    >>> len(train), len(held_out), np.bincount(y[held_out])
    (18, 12, array([4, 8]))
    """

    def __init__(
        self,
        train_size: float = 0.6,
        n_swaps: int | None = None,
        every: int = 5,
        random_state: Any = None,
    ):
        self.train_size = train_size
        self.n_swaps = n_swaps
        self.every = every
        self.random_state = random_state
        _check_part("train_size", train_size)
        _check_count("every", every)
        if n_swaps is not None:
            _check_count("n_swaps", n_swaps)

    def __repr__(self) -> str:
        return (
            f"SwapHoldout(train_size={self.train_size!r}, n_swaps={self.n_swaps!r}, "
            f"every={self.every!r}, random_state={self.random_state!r})"
        )

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return 1

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[Split]:
        """The first partition, class by class."""
        y, rng = np.asarray(y), check_random_state(self.random_state)
        held_out = np.zeros(len(y), dtype=bool)
        for label in np.unique(y):
            rows = np.flatnonzero(y == label)
            count = round((1.0 - self.train_size) * len(rows))
            if not 0 < count < len(rows):
                raise ValueError(
                    f"train_size={self.train_size!r} of the {len(rows)} points of "
                    f"class {label!r} leaves none to train on or none to hold out."
                )
            held_out[rng.choice(rows, count, replace=False)] = True
        yield np.flatnonzero(~held_out), np.flatnonzero(held_out)

    def swapped(self, split: Split, y: Any, rng: np.random.RandomState) -> Split:
        """The partition after the next exchange; every class keeps its sizes."""
        y, (train, held_out) = np.asarray(y), split
        n = self.n_swaps or max(1, len(held_out) // 10)
        if n > len(held_out):
            raise ValueError(
                f"n_swaps={n} is more than the {len(held_out)} points held out."
            )
        new = rng.choice(held_out, n, replace=False)
        out = []
        for label, count in zip(*np.unique(y[new], return_counts=True), strict=True):
            same = train[y[train] == label]
            if count > len(same):
                raise ValueError(
                    f"{count} points of class {label!r} cannot change places: "
                    f"{len(same)} of it are trained on. Choose a smaller n_swaps."
                )
            out.append(rng.choice(same, count, replace=False))
        gone = np.concatenate(out)
        return (
            np.sort(np.concatenate([np.setdiff1d(train, gone), new])),
            np.sort(np.concatenate([np.setdiff1d(held_out, new), gone])),
        )


def _check_part(name: str, given: Any) -> None:
    if not (isinstance(given, Real) and 0.0 < float(given) < 1.0):
        raise ValueError(f"{name} must be between 0 and 1; got {given!r}.")


def _check_count(name: str, given: Any) -> None:
    if not isinstance(given, Integral) or isinstance(given, bool) or given < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {given!r}.")
