"""A hold-out whose points change places during the search.

Algorithm 1 of M. Sangnier, J. Gauthier and A. Rakotomamonjy, "Kernel learning as
minimization of the single validation estimate", MLSP 2014. There is one partition of
the points into T, trained on, and V, held out, at a time; every few iterations n random
points of V change places with as many of T. So many points are held out in the course
of a search, at the cost of a single validation set:

    min over theta of  H(theta) = 1/L sum_k H_k(theta),

H_k the validation loss on partition k of a chain (`SwapHoldout`). One H_k is searched
at a time, for a few iterations; the search on the next one starts from the same theta
and the same estimate of the curvature. This is an incremental gradient method: near the
minimum, theta varies with the partitions. The mean of the points where it leaves the
last partitions is closer to the minimum than each of them (Polyak and Juditsky 1992).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real

import numpy as np
from scipy.optimize import OptimizeResult
from sklearn.utils import check_random_state

from bisvm.bilevel.objective import Objective, WarmStart
from bisvm.core.types import Array, UserData, UserVector
from bisvm.criteria import Criterion
from bisvm.data.columns import FoldColumns
from bisvm.data.splits import Split
from bisvm.optimizers import Optimizer
from bisvm.optimizers.base import CONVERGED, LIMIT_REACHED, NOT_FINITE
from bisvm.published.both_levels import BothLevels, Levels, descend_on_both_levels
from bisvm.published.program import Swaps
from bisvm.search.descent import (
    Descent,
    Plan,
    Search,
    View,
    descend,
    descent_at,
    evaluate,
    with_landmarks,
)
from bisvm.search.observer import StopSearch, Trace, better

# Partitions whose first values are compared with those of as many before.
WINDOW = 5
NOISE = "The decrease from partition to partition is within their noise."
LIMIT = "The last partition was reached."


@dataclass(eq=False)
class SwapHoldout:
    """Cross-validation splitter: a chain of similar, stratified partitions.

    An estimator with this as its `cv` searches on one partition {T, V} at a time, goes
    on to the next after `every` iterations, and returns the theta that is best on
    average over all of them (`PartitionDescent`). Elsewhere it is an ordinary splitter
    that repeats a hold-out `n_partitions` times.

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
        Length of the chain. A search ends earlier if H falls no more.
    random_state : int, RandomState or None
        Of the chain; None leaves it to the estimator.

    Notes
    -----
    On 80 signals of Sangnier et al. at -11 dB, with 32 held out, filters learned by
    BFGS or RPROP (8 draws) were better the more points were exchanged, and the sooner.
    With 3 points after every fifth iteration, theta over-fits one partition after the
    other.

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

    # Rows change places during the search: its splits are not a cross-validation.
    swaps_rows = True

    train_size: float = 0.6
    n_swaps: int | None = None
    every: int = 2
    n_partitions: int = 20
    random_state: int | np.random.RandomState | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.train_size, Real) and 0.0 < self.train_size < 1.0):
            raise ValueError(
                f"train_size must be between 0 and 1; got {self.train_size!r}."
            )
        for name in ("n_swaps", "every", "n_partitions"):
            given = getattr(self, name)
            integer = isinstance(given, Integral) and not isinstance(given, bool)
            if not (integer and given >= 1) and (name, given) != ("n_swaps", None):
                raise ValueError(
                    f"{name} must be an integer of at least 1; got {given!r}."
                )

    def get_n_splits(
        self, X: UserData = None, y: UserVector = None, groups: UserVector = None
    ) -> int:
        """Return the number of partitions; the arguments are ignored."""
        return self.n_partitions

    def split(
        self,
        X: UserData,
        y: UserVector,
        groups: UserVector = None,
        spread: UserVector = None,
    ) -> Iterator[Split]:
        """Yield the partitions, one after the other.

        Parameters
        ----------
        X : ignored
        y : array of shape (n_samples,), class labels
        groups : None
            Groups are refused: single points are exchanged.
        spread : array of shape (n_samples,), optional
            Labels of groups that keep their shares as classes do, if all of them have
            enough points.

        Yields
        ------
        train, held_out : arrays of row numbers
        """
        if groups is not None:
            raise ValueError(
                "SwapHoldout exchanges single points, and would separate groups. Use "
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
        y: Array,
        groups: UserVector,
        spread: Array | None,
        random_state: np.random.RandomState,
    ) -> list[Split]:
        """Return the partitions of a fit.

        Parameters
        ----------
        y, groups, spread : as in `split`
        random_state : RandomState
            That of the fit; used if the splitter has none.

        Returns
        -------
        splits : list of pairs of arrays of row numbers
        """
        chain = self.seeded(random_state)
        return list(chain.split(y, y, groups, spread))

    def descent_method(self, criterion: Criterion) -> PartitionDescent | None:
        """Return descents from partition to partition, if there are several.

        None, for one plain descent, if there is one partition or none is used.
        """
        if self.n_partitions == 1 or criterion.on_training:
            return None
        return PartitionDescent(self.every)

    def seeded(self, rng: np.random.RandomState) -> SwapHoldout:
        """Return this splitter with `rng`, unless it has a random_state."""
        if self.random_state is not None:
            return self
        return replace(self, random_state=rng)

    def swapped(self, split: Split, y: UserVector, rng: np.random.RandomState) -> Split:
        """Return the partition after the next exchange; class sizes stay.

        Parameters
        ----------
        split : (train, held_out)
        y : array of shape (n_samples,), class labels
        rng : RandomState

        Returns
        -------
        train, held_out : arrays of row numbers
        """
        train, held_out = split
        n = self.n_swaps or max(1, min(len(train), len(held_out)) // 2)
        new, gone = drawn_exchange(split, np.asarray(y), n, rng)
        return (
            np.sort(np.concatenate([np.setdiff1d(train, gone), new])),
            np.sort(np.concatenate([np.setdiff1d(held_out, new), gone])),
        )

    def _first(self, kinds: Array, rng: np.random.RandomState) -> Split:
        held_out = drawn_part(kinds, 1.0 - self.train_size, rng)
        return np.flatnonzero(~held_out), np.flatnonzero(held_out)

    def _kinds(self, y: Array, spread: UserVector) -> Array:
        """Return what keeps its shares: classes, and large groups within them.

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


Stops = tuple[list[Array], OptimizeResult, str]


class _Enough(Exception):
    """A search that cannot be told to stop is interrupted by this."""


@dataclass(frozen=True)
class PartitionDescent:
    """Descents that go from partition to partition.

    Evaluations of the search itself, and so its best point, are means over all
    partitions: they compare, and the search on one partition counts for none of them.
    Optimizers without iterations to interrupt (grids, scans, single loops) see that
    mean.

    The answer is the lower in that mean of two points: the last stop, and the mean of
    the later half of them. `converged` says that the descent came to its end, and not
    that the gradient of the mean vanishes: `upper_gradient` says how large it is.

    every : iterations on each partition
    """

    every: int = 2
    on_all_splits = False

    def __call__(
        self, search: Search, trace: Trace, plan: Plan
    ) -> tuple[Descent, Trace]:
        stage, tentative = plan.stage, plan.tentative
        optimizer = search.optimizer
        both = isinstance(optimizer, BothLevels)
        exchanges = isinstance(optimizer, BothLevels) and optimizer.exchanges
        if not (exchanges or optimizer.resumes):
            plain = descend_on_both_levels if both else descend
            return plain(search, trace, plan)
        view = search.view(plan)
        trace = with_landmarks(search, trace, plan.theta)
        try:
            stops, result, reason = (
                self._stops_of_both(search, trace, plan.theta, stage, view)
                if exchanges
                else self._stops(search, trace, replace(plan, tentative=False))
            )
        except StopSearch as stop:
            raise _stopped(search, trace, stage, stop, tentative) from None
        middle = view.expand(view.reduce(np.mean(stops[len(stops) // 2 :], axis=0)))
        # Both ends are compared on landmarks for where the descent has led to.
        trace = with_landmarks(search, trace, np.maximum(middle, stops[-1]))
        ends = []
        for x in (middle, stops[-1]):
            end, trace = evaluate(search, trace, x, stage, tentative=tentative)
            ends.append(end)
        best = min(ends, key=lambda evaluation: evaluation.value)
        result.x = view.reduce(best.theta)
        result.fun, result.jac = best.value, view.pullback(best.theta, best.gradient)
        result.message, result.success = reason, result.status == CONVERGED
        return descent_at(search, best, view, result), trace

    def _stops(self, search: Search, trace: Trace, plan: Plan) -> Stops:
        """Return where it left every partition, the last result, and why it stopped."""
        stops: list[Array] = []
        first_values: list[float] = []
        nit = nfev = 0
        result = OptimizeResult()
        own = Trace()
        for number in self._partitions(search):
            part, warm = search.objective.on_split(number, trace.warm)
            own = Trace(_taken_over(warm, own.warm, part))
            on_part = self._on_partition(search, part, number)
            at, own = evaluate(on_part, own, plan.theta, plan.stage)
            first = at.value
            if stops and not np.isfinite(first):
                reason = f"H is not finite on partition {number}."
                return stops, _ended(result, NOT_FINITE, nit, nfev), reason
            found, own = descend(on_part, own, plan)
            result = found.result or OptimizeResult()
            plan = replace(plan, theta=found.best.theta, previous=result)
            stops.append(plan.theta)
            nit, nfev = nit + result.nit, nfev + result.nfev
            first_values.append(first)
            if within_noise(first_values):
                return stops, _ended(result, CONVERGED, nit, nfev), NOISE
        return stops, _ended(result, LIMIT_REACHED, nit, nfev), LIMIT

    def _stops_of_both(
        self, search: Search, trace: Trace, theta: Array, stage: str, view: View
    ) -> Stops:
        """Do the same for a method that steps on the training problems."""
        assert isinstance(search.optimizer, BothLevels)
        swaps = Swaps(search.objective.problem.columns, self.every)
        stops, first_values, last = [theta], [], -1

        def at_partition(x: Array, columns: FoldColumns) -> float:
            nonlocal last
            number, at = int(columns.split[0]), view.expand(x)
            part, warm = search.objective.on_columns(columns, trace.warm)
            on_part, own = self._on_partition(search, part, number), Trace(warm)
            if number != last:
                last = number
                first, own = evaluate(on_part, own, stops[-1], stage)
                first_values.append(first.value)
                if within_noise(first_values):
                    raise _Enough
                stops.append(at)
            stops[-1] = at
            return evaluate(on_part, own, at, stage)[0].value

        first, warm = search.objective.on_columns(swaps.current, trace.warm)
        levels = Levels(first, view, at_partition, search.seed, swaps, warm.landmarks)
        try:
            result = search.optimizer.search(levels, view.reduce(theta))
        except _Enough:
            steps = len(stops) - 1
            return stops[1:], _ended(OptimizeResult(), CONVERGED, steps, steps), NOISE
        # It may have moved since it evaluated H.
        return [*stops[1:], view.expand(result.x)], result, str(result.message)

    def _partitions(self, search: Search) -> Array:
        """Return the numbers of those that the optimizer's limit leaves time for."""
        every = np.unique(search.objective.problem.columns.split)
        return every[: max(1, _limit(search.optimizer) // self.every)]

    def _on_partition(self, search: Search, part: Objective, number: int) -> Search:
        optimizer = search.optimizer
        steps = min(self.every, _limit(optimizer))
        return replace(
            search,
            objective=part,
            optimizer=optimizer.replace(max_iter=steps),
            method=None,
            partition=int(number),
        )


def _taken_over(warm: WarmStart, before: WarmStart, part: Objective) -> WarmStart:
    """Start from the previous partition's fitted values, if columns are the same."""
    fitted = before.fitted
    if fitted is None or fitted.shape != part.problem.columns.labels.shape:
        return warm
    return replace(warm, fitted=fitted)


def _stopped(
    search: Search, trace: Trace, stage: str, stop: StopSearch, tentative: bool
) -> StopSearch:
    """Return the stop, with H at its theta as the mean over all partitions."""
    theta = search.objective.theta0 if stop.theta is None else stop.theta
    last, after = evaluate(search, trace, theta, stage, tentative=True, final=True)
    if tentative:
        return StopSearch(stop.reason, theta, trace)
    best = last if better(last, trace.best) else trace.best
    end = best or last
    return StopSearch(stop.reason, end.theta, replace(after, best=best))


def within_noise(first_values: Sequence[float]) -> bool:
    """Return whether H falls no more from partition to partition.

    The value on a partition that was not searched yet is hardly biased by the search.
    The last of them are compared with as many before: their mean has to be lower by
    more than its standard error.
    """
    if len(first_values) < 2 * WINDOW:
        return False
    old, new = np.split(np.asarray(first_values[-2 * WINDOW :]), 2)
    error = np.sqrt((old.var(ddof=1) + new.var(ddof=1)) / WINDOW)
    return bool(old.mean() - new.mean() <= error)


def _ended(result: OptimizeResult, status: int, nit: int, nfev: int) -> OptimizeResult:
    """Make the last partition's result that of the whole descent."""
    result.status, result.nit, result.nfev = status, nit, nfev
    return result


def _limit(optimizer: Optimizer) -> int:
    limit: int = optimizer.max_iter  # type: ignore[attr-defined]
    return limit


def drawn_part(kinds: Array, share: float, rng: np.random.RandomState) -> Array:
    """Return the mask of a random `share` of the points of every kind."""
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
    split: Split, kinds: Array, n: int, rng: np.random.RandomState
) -> tuple[Array, Array]:
    """Draw n points of V, and as many of every kind from T: they change places."""
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
