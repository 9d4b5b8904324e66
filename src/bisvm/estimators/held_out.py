"""What held-out rows say about new data: the expected score, and thresholds.

A search ends with the decision value of every held-out row, by a machine that was not
trained on it. The accuracy to expect and the best threshold for a goal follow from
these values, without another fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy import stats

from bisvm.core.types import Array
from bisvm.estimators.settings import Goal, chosen, decisions
from bisvm.search.results import Competitors, HeldOut
from bisvm.search.settings import Data, MultiClass, Settings

# Probability of the intervals that are shown.
LEVEL = 0.9
# Share of the correction for common training rows (`_variance_factor`) that is made. On
# 26 sets, six splits, with one gamma and many, 60 and 500 rows, 90% intervals covered
# 81 to 85% of the test scores with 0, 89 to 94% with 0.4 to 0.6, and 95 to 97% with 1.
SHARED = 0.5
# Samples of rows by which the search is repeated; the gap is a mean over them.
BOOTSTRAPS = 200
GOALS = ("accuracy", "balanced_accuracy", "f1")
# Scores that differ by less are equal: rounding errors of sums of weights.
EQUAL = 1e-12


@dataclass(frozen=True)
class ExpectedScore:
    """Accuracy to expect on new data, and its uncertainty.

    The accuracy of the final machine is taken to be Beta distributed, as if it had been
    observed on `n_effective` rows::

        a = n value + 1/2,   b = n (1 - value) + 1/2

    Attributes
    ----------
    value : float
        Accuracy on held-out rows, less the part that is due to the search itself.
    n_effective : float
        Number of independent rows that would be as informative. It is smaller than the
        number of rows: folds share training rows, rows of one group are not
        independent, and the correction is itself uncertain.
    """

    value: float
    n_effective: float

    def interval(
        self, n_new: int | None = None, level: float = LEVEL
    ) -> tuple[float, float]:
        """Interval that holds the score with probability `level`.

        Parameters
        ----------
        n_new : int, optional
            Rows of the test set whose score is meant; its own noise widens the
            interval. None is for the accuracy itself, on any number of rows.
        level : float, default=0.9
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1; got {level!r}.")
        if n_new is not None and not n_new >= 1:
            raise ValueError(f"n_new must be a number of rows or None; got {n_new!r}.")
        tails = 0.5 * (1.0 - level), 0.5 * (1.0 + level)
        a = self.n_effective * self.value + 0.5
        b = self.n_effective * (1.0 - self.value) + 0.5
        low, high = (
            stats.beta.ppf(tails, a, b)
            if n_new is None
            else stats.betabinom.ppf(tails, int(n_new), a, b) / int(n_new)
        )
        return float(low), float(high)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.value:.3f} ({LEVEL:.0%}: {low:.3f} to {high:.3f})"


def expected_score(
    multi_class: MultiClass, data: Data, parts: Sequence[HeldOut | None]
) -> tuple[ExpectedScore | None, float | None]:
    """The accuracy to expect, and the gap to the accuracy on held-out rows.

    All rows count alike, as in `score`. None without held-out rows, or if no row has a
    decision value in all class tasks.
    """
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None, None
    judge = _Judge(multi_class, data, known)
    hits, judged = judge.hits([part.values for part in known])
    if not judged.any():
        return None, None
    groups = None if data.groups is None else data.groups[judged]
    gap = _gap(judge, hits, known, data.groups)
    value = float(np.clip(hits[judged].mean() - gap.value, 0.0, 1.0))
    rows = _independent(hits[judged], groups) / _variance_factor(data, gap.constant)
    spread = value * (1.0 - value)
    if gap.variance > 0.0 and spread > 0.0:
        rows = spread / (spread / rows + gap.variance)
    return ExpectedScore(value, float(rows)), float(gap.value)


class _Gap(NamedTuple):
    """By how much the accuracy on held-out rows is too good.

    value, variance : the gap, at least zero, and its variance
    constant : share of the samples of rows by which a constant machine is chosen
    """

    value: float
    variance: float = 0.0
    constant: float = 0.0


class _Judge:
    """From decision values of held-out rows to right and wrong predictions."""

    def __init__(self, multi_class: MultiClass, data: Data, parts: Sequence[HeldOut]):
        self._kind, self._y = multi_class, data.y
        self._n_classes = len(data.classes)
        self._parts = parts
        self._n_tasks = data.tasks.shape[1]
        self._splits = range(len(data.splits))

    def hits(self, values: Sequence[Array]) -> tuple[Array, Array]:
        """How often every row was right (n,), and which rows were judged at all."""
        tables = []
        for part, own in zip(self._parts, values, strict=True):
            table = np.full(part.where.shape, np.nan)
            table[part.where] = own
            tables.append(table)
        right, times = np.zeros(len(self._y)), np.zeros(len(self._y))
        for number in self._splits:
            scores = self._of_split(tables, number)
            rows = np.flatnonzero(np.isfinite(scores).all(axis=1))
            if not len(rows):
                continue
            decision = decisions(scores[rows], self._n_classes, self._kind)
            predicted = chosen(decision, np.arange(self._n_classes))
            right[rows] += predicted == self._y[rows]
            times[rows] += 1
        return right / np.maximum(times, 1.0), times > 0

    def is_constant(self, hits: Array, judged: Array) -> bool:
        """Whether all rows of one class are right, and no others."""
        found = np.unique(self._y[judged & (hits > 0)])
        if len(found) != 1:
            return False
        return bool(np.array_equal(hits[judged], self._y[judged] == found[0]))

    def _of_split(self, tables: list[Array], number: int) -> Array:
        scores = np.full((len(self._y), self._n_tasks), np.nan)
        first = 0
        for part, table in zip(self._parts, tables, strict=True):
            own = part.split == number
            scores[:, first + part.task[own]] = table[:, own]
            first += self._n_tasks // len(self._parts)
        return scores


def _gap(
    judge: _Judge, hits: Array, parts: Sequence[HeldOut], groups: Array | None
) -> _Gap:
    """From theta chosen without the rows where that was done, else from competitors."""
    again, judged = judge.hits([part.refitted for part in parts])
    if judged.any():
        difference = (hits - again)[judged]
        own = None if groups is None else groups[judged]
        rows = _sums(difference - difference.mean(), own)
        variance = float(np.sum(rows**2)) / len(difference) ** 2
        # The mean was estimated from the same few observations.
        variance *= len(rows) / max(len(rows) - 1, 1)
        return _Gap(max(float(difference.mean()), 0.0), variance)
    if len(parts) == 1 and parts[0].competitors:
        return _gap_of_competitors(judge, hits, parts[0], groups)
    return _Gap(0.0)


def _gap_of_competitors(
    judge: _Judge, hits: Array, part: HeldOut, groups: Array | None
) -> _Gap:
    """Hits of the machine chosen on rows drawn with replacement, on those not drawn.

    The search is repeated on the drawn rows, with all its kernels: the best theta of
    each kernel, and a richer kernel where it is better by the standard errors needed.
    """
    _, judged = judge.hits([part.values])
    count = _sums(1.0 * judged, groups)
    found = [
        judge.hits([v])[0] * judged for one in part.competitors for v in one.values
    ]
    own = np.array([_sums(right, groups) for right in found])
    shares = [share for one in part.competitors for share in one.shares]
    drawn = _draws([*shares, *own, count])
    left = 1.0 * (drawn == 0)
    total = left @ count
    kept = total > 0
    if not kept.any():
        return _Gap(0.0)
    constant = np.array([judge.is_constant(right, judged) for right in found])
    choice = _choices(part.competitors, drawn)
    by_choice = (left @ own.T)[np.arange(BOOTSTRAPS), choice]
    by_answer = left @ _sums(hits * judged, groups)
    gap = np.mean((by_answer - by_choice)[kept] / total[kept])
    return _Gap(max(float(gap), 0.0), constant=float(np.mean(constant[choice])))


def _draws(known: list[Array]) -> Array:
    """(draws, n) how often each observation is drawn.

    known : arrays of shape (n,), all that is known of the observations. They are drawn
        in the order of these numbers, so that the order of the rows has no say. The
        first decides unless it is equal, then the second, and so on.
    """
    order = np.lexsort(known[::-1])
    n = len(order)
    rng = np.random.default_rng(0)
    drawn: Array = rng.multinomial(n, np.full(n, 1.0 / n), size=BOOTSTRAPS)
    return drawn[:, np.argsort(order)]


def _choices(competitors: Sequence[Competitors], drawn: Array) -> Array:
    """(draws,) number of the theta that is chosen, among those of all kernels."""
    first = competitors[0]
    choice: Array = np.argmin(first.shares @ drawn.T, axis=0)
    simple, before = first.shares[choice], len(first.shares)
    going = np.ones(len(drawn), dtype=bool)
    for one in competitors[1:]:
        best = np.argmin(one.shares @ drawn.T, axis=0)
        shares = one.shares[best]
        # As the choice of a kernel does, it ends with the first that is not better.
        going &= _better(simple, shares, one, drawn)
        choice = np.where(going, before + best, choice)
        simple = np.where(going[:, None], shares, simple)
        before += len(one.shares)
    return choice


def _better(
    simple: Array, rich: Array, competitors: Competitors, drawn: Array
) -> Array:
    """Whether the paired difference exceeds `needed`, for every draw of rows."""
    share = simple - rich
    value = np.sum(drawn * share, axis=1)
    weight = drawn @ competitors.weights
    mean = value / np.where(weight > 0.0, weight, 1.0)
    spread = share - competitors.weights * mean[:, None]
    error = np.sqrt(np.sum(drawn * spread**2, axis=1))
    better: Array = value > competitors.needed * error
    return better


def _sums(values: Array, groups: Array | None) -> Array:
    """Sums over the rows of each group."""
    return values if groups is None else np.bincount(groups, values)


def _independent(hits: Array, groups: Array | None) -> float:
    """Number of independent rows whose mean would have the same variance."""
    n, mean = len(hits), hits.mean()
    if groups is None:
        return float(n)
    n_groups = len(np.unique(groups))
    variance = np.sum(_sums(hits - mean, groups) ** 2) / n**2
    variance *= n_groups / max(n_groups - 1, 1)
    if variance == 0.0:
        return float(n_groups)
    return float(min(mean * (1.0 - mean) / variance, n))


def _variance_factor(data: Data, constant: float = 0.0) -> float:
    """Factor of the variance because splits have training rows in common.

    With J splits that hold out the share r, every row t times, Nadeau and Bengio (2003)
    have (1 + J r / (1 - r)) / t, which is 2.25 for five folds. That is cautious: half
    of what they add is taken (`SHARED`), and nothing for the share of choices that are
    constant machines, which do not depend on their training rows.
    """
    sizes = [(len(train), len(held_out)) for train, held_out in data.splits]
    trained, held = np.mean(sizes, axis=0)
    judged = np.unique(np.concatenate([held_out for _, held_out in data.splits]))
    times = len(sizes) * held / len(judged)
    shared = SHARED * (1.0 - constant)
    return float(max((1.0 + shared * len(sizes) * held / trained) / times, 1.0))


# --- thresholds -----------------------------------------------------------------------


@dataclass(frozen=True)
class HeldOutDecisions:
    """Decision values of held-out rows of two classes.

    positive : whether they are of the second class
    weight : their sample weights
    """

    values: Array
    positive: Array
    weight: Array

    @classmethod
    def of(cls, data: Data, part: HeldOut) -> HeldOutDecisions:
        rows = np.nonzero(part.where)[0]
        return cls(part.values, data.y[rows] == 1, data.sample_weight[rows])

    def best_threshold(self, goal: Goal, classes: Array) -> float:
        """The threshold with the best score; zero if that is among the best.

        All thresholds between two neighbouring values are equal: their middle is
        returned. Below and above all values it is as far off as these are apart.
        """
        values, first = np.unique(self.values, return_inverse=True)
        n = len(values)
        # Weight of both classes above each of the n + 1 gaps, from the lowest up.
        hits, alarms = (
            np.append(np.cumsum(np.bincount(first, w, n)[::-1])[::-1], 0.0)
            for w in (self.weight * self.positive, self.weight * ~self.positive)
        )
        scores = _goal_scores(hits, alarms, goal, classes)
        spread = max(values[-1] - values[0], abs(values[0]), np.finfo(float).tiny)
        edges = np.concatenate([[values[0] - spread], values, [values[-1] + spread]])
        best = np.flatnonzero(scores >= scores.max() - EQUAL)
        # A value is above a threshold if it is larger: zero may be a value itself.
        if np.any((edges[best] <= 0.0) & (edges[best + 1] > 0.0)):
            return 0.0
        middle = 0.5 * (edges[best] + edges[best + 1])
        return float(middle[np.abs(middle).argmin()])


def _goal_scores(hits: Array, alarms: Array, goal: Goal, classes: Array) -> Array:
    """From true and false positives at every threshold to scores, higher is better."""
    P, N = hits[0], alarms[0]
    scores: Array
    if isinstance(goal, Mapping):
        cost = [float(goal.get(one, 1.0)) for one in classes.tolist()]
        total = cost[1] * P + cost[0] * N
        scores = -(cost[1] * (P - hits) + cost[0] * alarms) / total
    elif goal == "accuracy":
        scores = (hits + N - alarms) / (P + N)
    elif goal == "balanced_accuracy":
        scores = 0.5 * (hits / P + (N - alarms) / N)
    elif goal == "f1" or goal[1] == classes[1]:
        scores = 2.0 * hits / (P + hits + alarms)
    else:
        right = N - alarms
        scores = 2.0 * right / (N + right + P - hits)
    return scores


def check_goal(goal: object, classes: Array) -> None:
    """Refuse a goal that is not known, or that has no single threshold."""
    if len(classes) > 2:
        raise ValueError(
            f"A threshold is between two classes; y has {len(classes)}. To weigh the "
            "errors of several classes use criterion=Weighted(..., class_weight=...)."
        )
    if isinstance(goal, Mapping):
        unknown = set(goal) - set(classes.tolist())
        if unknown:
            raise ValueError(
                f"The costs of a threshold name classes that y does not have: "
                f"{sorted(unknown, key=str)}; y has {classes.tolist()}."
            )
        if goal and all(
            isinstance(c, Real) and 0 < float(c) < np.inf for c in goal.values()
        ):
            return
    elif isinstance(goal, str) and goal in GOALS:
        return
    elif isinstance(goal, (tuple, list)) and len(goal) == 2 and goal[0] == "f1":
        if goal[1] in classes.tolist():
            return
        raise ValueError(
            f"threshold={goal!r} names a class that y does not have; y has "
            f"{classes.tolist()}."
        )
    raise ValueError(
        f"threshold={goal!r} is not understood; expected "
        + ", ".join(map(repr, GOALS))
        + ", ('f1', class), or what an error costs as a dict from class to a positive "
        "number."
    )


def check_threshold(settings: Settings, classes: Array) -> None:
    """Refuse the argument `threshold` before any work is done."""
    goal = settings.threshold
    if goal is None:
        return
    check_goal(goal, classes)
    if settings.criterion.on_training:
        raise ValueError(
            f"threshold={goal!r} is chosen by held-out points, and "
            f"criterion={settings.arguments['criterion']!r} holds none out."
        )
