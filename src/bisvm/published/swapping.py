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

from bisvm.data.splits import Split


class SwapHoldout:
    """Cross-validation splitter: a chain of stratified partitions, each near the last.

    An estimator with this as its `cv` searches on one partition {T, V} at a time, moves
    on to the next after `every` iterations, and answers with the theta that is best on
    average over all of them (`bisvm.published.walk`). Elsewhere it is a splitter like
    others, which repeats a hold-out `n_partitions` times.

    Parameters
    ----------
    train_size : float, default=0.6
        Part of every class that is trained on.
    n_swaps : int, optional
        Points of V that change places with as many of T, class by class; half of the
        smaller of the two if None.
    every : int, default=2
        Iterations of the search between two exchanges.
    n_partitions : int, default=20
        Length of the chain. A search ends before where it gains no more.
    random_state : int, RandomState or None
        Of the chain; None leaves it to the estimator.

    Notes
    -----
    Filters learned from 80 signals of seed 004 at -11 dB, 32 held out, by BFGS or RPROP
    (8 draws): the more points change places, and the sooner, the better. With 3 points
    after every fifth iteration theta still fits one partition after the other.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat([0, 1], [10, 20])
    >>> cv = SwapHoldout(n_partitions=2, random_state=0)
    >>> (train, held_out), (_, later) = cv.split(y, y)
    >>> len(train), len(held_out), np.bincount(y[held_out])
    (18, 12, array([4, 8]))
    >>> len(np.intersect1d(held_out, later))
    6
    """

    # Rows change places during the search: its splits are no cross-validation.
    swaps_rows = True

    def __init__(
        self,
        train_size: float = 0.6,
        n_swaps: int | None = None,
        every: int = 2,
        n_partitions: int = 20,
        random_state: Any = None,
    ):
        self.train_size = train_size
        self.n_swaps = n_swaps
        self.every = every
        self.n_partitions = n_partitions
        self.random_state = random_state
        if not (isinstance(train_size, Real) and 0.0 < float(train_size) < 1.0):
            raise ValueError(f"train_size must be between 0 and 1; got {train_size!r}.")
        _check_count("every", every)
        _check_count("n_partitions", n_partitions)
        if n_swaps is not None:
            _check_count("n_swaps", n_swaps)

    def __repr__(self) -> str:
        return (
            f"SwapHoldout(train_size={self.train_size!r}, n_swaps={self.n_swaps!r}, "
            f"every={self.every!r}, n_partitions={self.n_partitions!r}, "
            f"random_state={self.random_state!r})"
        )

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return self.n_partitions

    def split(
        self, X: Any, y: Any, groups: Any = None, spread: Any = None
    ) -> Iterator[Split]:
        """The partitions, one after the other.

        spread : (n,), labels of groups that are to stay in their shares as classes do,
            where all of them have points enough
        """
        if groups is not None:
            raise ValueError(
                "SwapHoldout exchanges single points, and would tear groups apart. Use "
                "GroupShuffleSplit or an int for cv, or leave `groups` out."
            )
        rng = check_random_state(self.random_state)
        kinds = self._kinds(np.asarray(y), spread)
        partition = self._first(kinds, rng)
        yield partition
        for _ in range(1, self.n_partitions):
            partition = self.swapped(partition, kinds, rng)
            yield partition

    def draw_splits(
        self,
        y: np.ndarray,
        groups: Any,
        spread: Any,
        random_state: np.random.RandomState,
    ) -> list[Split]:
        """The partitions of a fit, whose `random_state` draws them if ours does not."""
        chain = self.seeded(random_state)
        return list(chain.split(y, y, groups, spread))

    def descent_method(self, criterion: Any) -> Any:
        """Descents go from partition to partition, if there are several."""
        from bisvm.published.walk import Walk

        if self.n_partitions == 1 or criterion.on_training:
            return None
        return Walk(self.every)

    def seeded(self, rng: np.random.RandomState) -> SwapHoldout:
        """The same with a chain of `rng`'s choice, unless it has its own."""
        if self.random_state is not None:
            return self
        return SwapHoldout(
            self.train_size, self.n_swaps, self.every, self.n_partitions, rng
        )

    def swapped(self, split: Split, y: Any, rng: np.random.RandomState) -> Split:
        """The partition after the next exchange; every class keeps its sizes."""
        train, held_out = split
        n = self.n_swaps or max(1, min(len(train), len(held_out)) // 2)
        new, gone = drawn_exchange(split, np.asarray(y), n, rng)
        return (
            np.sort(np.concatenate([np.setdiff1d(train, gone), new])),
            np.sort(np.concatenate([np.setdiff1d(held_out, new), gone])),
        )

    def _first(self, kinds: np.ndarray, rng: np.random.RandomState) -> Split:
        held_out = drawn_part(kinds, 1.0 - self.train_size, rng)
        return np.flatnonzero(~held_out), np.flatnonzero(held_out)

    def _kinds(self, y: np.ndarray, spread: Any) -> np.ndarray:
        """What keeps its shares: classes, and groups within them if there are enough.

        Of every kind that is spread there must be points on either side.
        """
        if spread is None:
            return y
        _, y_codes = np.unique(y, return_inverse=True)
        _, codes, members = np.unique(
            y_codes * (np.max(spread) + 1) + np.asarray(spread),
            return_inverse=True,
            return_counts=True,
        )
        held_out = np.round((1.0 - self.train_size) * members)
        return codes if np.all((held_out > 0) & (held_out < members)) else y


def drawn_part(
    kinds: np.ndarray, share: float, rng: np.random.RandomState
) -> np.ndarray:
    """Mask of a random part of the points, `share` of every kind, and never all."""
    part = np.zeros(len(kinds), dtype=bool)
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        count = round(share * len(rows))
        if not 0 < count < len(rows):
            raise ValueError(
                f"Holding out {share:.3g} of {len(rows)} points leaves no point of "
                f"class {kind!s} to train on, or none to hold out. Choose another "
                "share, or collect more of this class."
            )
        part[rng.choice(rows, count, replace=False)] = True
    return part


def drawn_exchange(
    split: Split, kinds: np.ndarray, n: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """n random points of V, and of T as many of every kind: they change places."""
    train, held_out = split
    if not 1 <= n <= len(held_out):
        raise ValueError(
            f"The number of points that change places, n_swaps or n must be from 1 to "
            f"{len(held_out)}, the points held out; got {n!r}."
        )
    # At random, and of every kind no more than T has.
    order = rng.permutation(held_out)
    taken = {kind: np.flatnonzero(kinds[order] == kind) for kind in np.unique(kinds)}
    same = {kind: train[kinds[train] == kind] for kind in taken}
    possible = np.sort(
        np.concatenate([taken[kind][: len(same[kind])] for kind in taken])
    )
    if n > len(possible):
        raise ValueError(
            f"{n} points cannot change places: of those held out {len(possible)} have "
            "as many of their class in the training part. Choose a smaller n_swaps or "
            "a larger train_size."
        )
    new = order[possible[:n]]
    out = [
        rng.choice(same[kind], count, replace=False)
        for kind, count in zip(*np.unique(kinds[new], return_counts=True), strict=True)
    ]
    return new, np.concatenate(out)


def _check_count(name: str, given: Any) -> None:
    if not isinstance(given, Integral) or isinstance(given, bool) or given < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {given!r}.")
