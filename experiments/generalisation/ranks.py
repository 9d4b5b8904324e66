"""Who is better, over sets and on one set: ranks, tests, and the picture of them.

Over N sets and k methods (Demsar, JMLR 7, 2006): methods are ranked on every set, and
two of them differ if their mean ranks do by the critical difference of Nemenyi,

    CD = q sqrt(k (k + 1) / (6 N)),

q the studentised range's quantile over sqrt 2. On one set, differences over J splits
that have test rows in common are compared by the corrected t-test of Nadeau and Bengio
(Machine Learning 52, 2003): with rho the common part, the variance of the mean is
s^2 (1/J + rho / (1 - rho)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from experiments.common import drawing

LEVEL = 0.05


@dataclass(frozen=True)
class Ranks:
    """Mean ranks of k methods over N sets, 1 the best.

    p_value : of Friedman's test that all are alike
    critical : the difference of two mean ranks that is more than chance
    """

    methods: list[str]
    mean: np.ndarray
    sets: int
    p_value: float
    critical: float

    @classmethod
    def of(cls, methods: list[str], errors: np.ndarray) -> Ranks:
        """errors : (N, k), lower is better; ties share their ranks."""
        n, k = errors.shape
        # Equal errors are to be ties, whatever the last digit says.
        by_set = stats.rankdata(np.round(errors, 3), axis=1)
        alike = k < 3 or np.all(by_set == by_set[:, :1])
        p = 1.0 if alike else float(stats.friedmanchisquare(*by_set.T).pvalue)
        return cls(methods, by_set.mean(axis=0), n, p, critical_difference(k, n))

    def differ(self, first: str, second: str) -> bool:
        i, j = self.methods.index(first), self.methods.index(second)
        return bool(abs(self.mean[i] - self.mean[j]) > self.critical)

    def cliques(self) -> list[tuple[int, int]]:
        """Longest stretches of the sorted ranks within one critical difference."""
        ranks = np.sort(self.mean)
        ends = [int(np.searchsorted(ranks, r + self.critical, "right")) for r in ranks]
        return [
            (first, end - 1)
            for first, end in enumerate(ends)
            if end - first > 1 and (first == 0 or end > ends[first - 1])
        ]


def critical_difference(k: int, n: int, level: float = LEVEL) -> float:
    q = stats.studentized_range.ppf(1.0 - level, k, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(k * (k + 1) / (6.0 * n)))


def p_greater(differences: np.ndarray, overlap: float) -> float:
    """That a mean difference so large is chance: one-sided, corrected for overlap."""
    count = len(differences)
    mean, variance = differences.mean(), differences.var(ddof=1) if count > 1 else 0.0
    if variance == 0.0:
        # All splits say the same: as likely as so many heads.
        return 1.0 if mean <= 0.0 else 0.5**count
    error = np.sqrt(variance * (1.0 / count + overlap / (1.0 - overlap)))
    return float(stats.t.sf(mean / error, count - 1))


def holm(p_values: np.ndarray) -> np.ndarray:
    """p-values that stay below a level with that chance for all of them at once."""
    order = np.argsort(p_values)
    count = len(p_values)
    stepped = np.maximum.accumulate(p_values[order] * (count - np.arange(count)))
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def draw(ranks: Ranks, title: str) -> Any:
    """Mean ranks on a line; bars join methods that cannot be told apart."""
    order = np.argsort(ranks.mean)
    k = len(order)
    half = (k + 1) // 2
    low, high = 1.0, float(k)
    with drawing() as plt:
        figure, axes = plt.subplots(figsize=(7.0, 1.2 + 0.28 * (half + 2)))
        axes.set(xlim=(low - 0.35 * k, high + 0.35 * k), ylim=(-half - 1.2, 1.6))
        axes.axis("off")
        axes.plot([low, high], [0, 0], color="black")
        for tick in range(1, k + 1):
            axes.plot([tick, tick], [0, 0.12], color="black")
            axes.text(tick, 0.2, str(tick), ha="center", va="bottom")
        for place, number in enumerate(order):
            left = place < half
            level = -1.0 - (place if left else k - 1 - place)
            end = low - 0.05 * k if left else high + 0.05 * k
            rank = ranks.mean[number]
            axes.plot([rank, rank, end], [0, level, level], color="0.4", lw=0.8)
            label = f"{ranks.methods[number]} {rank:.2f}"
            axes.text(end, level, label, ha="right" if left else "left", va="center")
        sorted_ranks = ranks.mean[order]
        for number, (first, last) in enumerate(ranks.cliques()):
            level = -0.25 - 0.2 * number
            ends = [sorted_ranks[first] - 0.03, sorted_ranks[last] + 0.03]
            axes.plot(ends, [level, level], color="C0", lw=3)
        axes.plot([low, low + ranks.critical], [1.1, 1.1], color="black")
        axes.text(low, 1.2, f"critical difference {ranks.critical:.2f}", va="bottom")
        axes.set_title(f"{title}: mean ranks on {ranks.sets} sets", loc="right")
    return figure
