"""The accuracy to expect on new data, from the decision values of held-out rows.

A search ends with the decision value of every held-out row, by a machine that was not
trained on it. The accuracy to expect follows from them, without another fit.

But theta was chosen because it did well on the held-out rows, so the accuracy on them
is too high. To estimate by how much, theta_k is chosen without the rows of split k
(`refinement`), and compared with theta on these rows:

    gap = mean over rows i of split k of  hit_i(theta) - hit_i(theta_k),

hit_i = 1 if row i is predicted correctly by the machine of split k, and 0 otherwise.

With few hyperparameters the gap is small, and the search too short to justify this
cost. Then the gap is estimated from the competitors of theta: how often would one of
them have been chosen with other rows (Tsamardinos, Greasidou and Borboudakis 2018)?
Competitors are the other points of the search, the points of other kernels that were
tried, and constant machines, one per class, which every search reaches as C goes to
zero. Without constant machines, the expected accuracy of a model that has learned
nothing would be the share of the largest class in this sample. That is too high: some
class is always the largest by chance, and stratified folds give it the same share among
the held-out rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy import stats

from bisvm.core.types import Array
from bisvm.data.columns import chosen, decisions
from bisvm.search.results import Competitors, HeldOut, SplitScores, all_or_none
from bisvm.search.settings import Data, TaskKind

# Probability of the intervals that are shown.
LEVEL = 0.9
# Level of the interval that is printed, as for all other figures.
SHOWN = 0.95
# Share of the correction for common training rows (`variance_factor`) that is made. On
# 26 sets, six splits, with one gamma and many, 60 and 500 rows, 90% intervals covered
# 81 to 85% of the test scores with 0, 89 to 94% with 0.4 to 0.6, and 95 to 97% with 1.
CORRECTED = 0.5
# Samples of rows by which the search is repeated; the gap is a mean over them.
BOOTSTRAPS = 200


class Expectation(ABC):
    """A score to expect on new data, and its uncertainty."""

    value: float

    def interval(
        self, n_new: int | None = None, level: float = LEVEL
    ) -> tuple[float, float]:
        """Interval that holds the score with probability `level`.

        Parameters
        ----------
        n_new : int, optional
            Number of rows of the test set on which the score will be measured; its
            noise widens the interval. None: the score on infinitely many rows.
        level : float, default=0.9

        Returns
        -------
        low, high : float
        """
        check_interval(n_new, level)
        return self._interval(n_new, level)

    @abstractmethod
    def _interval(self, n_new: int | None, level: float) -> tuple[float, float]:
        """The interval of valid arguments."""

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class ExpectedScore(Expectation):
    """Accuracy to expect on new data, and its uncertainty.

    The accuracy of the final machine is assumed to have a Beta distribution, as if it
    had been observed on `n_effective` rows::

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

    def _interval(self, n_new: int | None, level: float) -> tuple[float, float]:
        tails = 0.5 * (1.0 - level), 0.5 * (1.0 + level)
        a = self.n_effective * self.value + 0.5
        b = self.n_effective * (1.0 - self.value) + 0.5
        low, high = (
            stats.beta.ppf(tails, a, b)
            if n_new is None
            else stats.betabinom.ppf(tails, int(n_new), a, b) / int(n_new)
        )
        # A Beta distribution excludes 0 and 1, which may have been observed (Brown, Cai
        # and DasGupta 2001).
        return min(float(low), self.value), max(float(high), self.value)

    def __str__(self) -> str:
        low, high = self.interval(level=SHOWN)
        return (
            f"expected accuracy {self.value:.1%} ({SHOWN:.0%} interval {low:.1%} to "
            f"{high:.1%})"
        )


def mean_score(scores: Sequence[ExpectedScore]) -> ExpectedScore:
    """Return the mean over the members of an ensemble.

    They hold out the same rows: together they are no more certain.
    """
    value = float(np.mean([score.value for score in scores]))
    n_effective = float(np.mean([score.n_effective for score in scores]))
    return ExpectedScore(value, n_effective)


def check_interval(n_new: int | None, level: float) -> None:
    """Refuse arguments of an interval that make no sense."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1; got {level!r}.")
    if n_new is not None and not n_new >= 1:
        raise ValueError(f"n_new must be a number of rows or None; got {n_new!r}.")


def expected_score(
    multi_class: TaskKind,
    data: Data,
    parts: Sequence[HeldOut | None],
    pair_scale: float | None = None,
) -> tuple[ExpectedScore | None, float | None]:
    """The accuracy to expect, and the gap to the accuracy on held-out rows.

    All rows count alike, as in `score`. None without held-out rows, or if no row has a
    decision value in all class tasks.
    """
    known = all_or_none(parts)
    if not known:
        return None, None
    judge = _Judge(multi_class, data, known, pair_scale)
    hits, judged = judge.hits([part.values for part in known])
    if not judged.any():
        return None, None
    groups = None if data.groups is None else data.groups[judged]
    gap = gap_of(judge, hits, known, data.groups)
    value = float(np.clip(hits[judged].mean() - gap.value, 0.0, 1.0))
    rows = _independent(hits[judged], groups) / variance_factor(data, gap.constant)
    spread = value * (1.0 - value)
    if gap.variance > 0.0 and spread > 0.0:
        rows = spread / (spread / rows + gap.variance)
    return ExpectedScore(value, float(rows)), float(gap.value)


class Judge(Protocol):
    """From predictions of held-out rows to how good each of them is."""

    def hits(self, values: Sequence[Array]) -> tuple[Array, Array]:
        """How good the prediction of every row is (n,), and which were judged."""
        ...

    def is_constant(self, hits: Array, judged: Array) -> bool:
        """Whether these are the predictions of a constant machine."""
        ...


class _Gap(NamedTuple):
    """By how much the score on held-out rows is too high.

    value, variance : the gap, at least zero, and its variance
    constant : share of the samples of rows by which a constant machine is chosen
    """

    value: float
    variance: float = 0.0
    constant: float = 0.0


class _Judge:
    """From decision values of held-out rows to right and wrong predictions."""

    def __init__(
        self,
        multi_class: TaskKind,
        data: Data,
        parts: Sequence[HeldOut],
        pair_scale: float | None,
    ):
        self._y, self._scores = data.y, SplitScores(data, parts)
        self._kind = len(data.classes), multi_class, pair_scale

    def hits(self, values: Sequence[Array]) -> tuple[Array, Array]:
        """How often every row was right (n,), and which rows were judged at all."""
        often = self._scores.mean(values, self._right)
        judged = np.isfinite(often)
        return np.where(judged, often, 0.0), judged

    def _right(self, rows: Array, scores: Array) -> Array:
        """Whether the class predicted from the scores is that of the row."""
        predicted = chosen(decisions(scores, *self._kind), np.arange(self._kind[0]))
        return np.asarray(predicted == self._y[rows])

    def is_constant(self, hits: Array, judged: Array) -> bool:
        """Whether all rows of one class are right, and no others."""
        found = np.unique(self._y[judged & (hits > 0)])
        if len(found) != 1:
            return False
        return bool(np.array_equal(hits[judged], self._y[judged] == found[0]))


def gap_of(
    judge: Judge, hits: Array, parts: Sequence[HeldOut], groups: Array | None
) -> _Gap:
    """From theta chosen without the rows where that was done, else from competitors."""
    again, judged = judge.hits([part.refitted for part in parts])
    if judged.any():
        difference = (hits - again)[judged]
        own = None if groups is None else groups[judged]
        rows = sums(difference - difference.mean(), own)
        variance = float(np.sum(rows**2)) / len(difference) ** 2
        # The mean was estimated from the same few observations.
        variance *= len(rows) / max(len(rows) - 1, 1)
        return _Gap(max(float(difference.mean()), 0.0), variance)
    if len(parts) == 1 and parts[0].competitors:
        return _gap_of_competitors(judge, hits, parts[0], groups)
    return _Gap(0.0)


def _gap_of_competitors(
    judge: Judge, hits: Array, part: HeldOut, groups: Array | None
) -> _Gap:
    """Hits of the machine chosen on rows drawn with replacement, on those not drawn.

    The search is repeated on the drawn rows, with all its kernels: the best theta of
    each kernel, and a richer kernel where it is better by the standard errors needed.
    """
    _, judged = judge.hits([part.values])
    count = sums(1.0 * judged, groups)
    found = [
        judge.hits([v])[0] * judged for one in part.competitors for v in one.values
    ]
    own = np.array([sums(right, groups) for right in found])
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
    by_answer = left @ sums(hits * judged, groups)
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
    rows = order[rng.integers(n, size=(BOOTSTRAPS, n))]
    rows += n * np.arange(BOOTSTRAPS)[:, None]
    drawn: Array = np.bincount(rows.ravel(), minlength=BOOTSTRAPS * n).astype(float)
    return drawn.reshape(BOOTSTRAPS, n)


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


def sums(values: Array, groups: Array | None) -> Array:
    """Sums over the rows of each group."""
    return values if groups is None else np.bincount(groups, values)


def _independent(hits: Array, groups: Array | None) -> float:
    """Number of independent rows whose mean would have the same variance."""
    n, mean = len(hits), hits.mean()
    if groups is None:
        return float(n)
    n_groups = len(np.unique(groups))
    variance = np.sum(sums(hits - mean, groups) ** 2) / n**2
    variance *= n_groups / max(n_groups - 1, 1)
    if variance == 0.0:
        return float(n_groups)
    return float(min(mean * (1.0 - mean) / variance, n))


def variance_factor(data: Data, constant: float = 0.0) -> float:
    """Factor of the variance because splits have training rows in common.

    With J splits that hold out the share r, every row t times, Nadeau and Bengio (2003)
    have (1 + J r / (1 - r)) / t, which is 2.25 for five folds. That is cautious: half
    of what they add is taken (`CORRECTED`), and nothing for the share of choices that
    are constant machines, which do not depend on their training rows.
    """
    sizes = [(len(train), len(held_out)) for train, held_out in data.splits]
    trained, held = np.mean(sizes, axis=0)
    judged = np.unique(np.concatenate([held_out for _, held_out in data.splits]))
    times = len(sizes) * held / len(judged)
    shared = CORRECTED * (1.0 - constant)
    return float(max((1.0 + shared * len(sizes) * held / trained) / times, 1.0))
