"""How similar the choices of a feature selection are from sample to sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from bisvm.core.types import ArrayLike

# Probability of the intervals that are shown.
LEVEL = 0.95


@dataclass(frozen=True)
class Stability:
    """Nogueira's measure of stability: 1 for choices that never change, 0 for chance.

    value : NaN where every choice has no feature or all of them
    variance : of `value`, over choices that are drawn like these
    """

    value: float
    variance: float

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Interval of the measure for infinitely many resamples of the same rows.

        Parameters
        ----------
        level : float, default=0.95
            Between 0 and 1.

        Returns
        -------
        low, high : float
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1; got {level!r}.")
        reach = float(stats.norm.ppf(0.5 * (1.0 + level)) * np.sqrt(self.variance))
        return self.value - reach, min(self.value + reach, 1.0)

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.value:.2f} ({LEVEL:.0%}: {low:.2f} to {high:.2f})"


def stability(chosen: ArrayLike) -> Stability:
    """Compute the stability of M choices among d features.

    With p_f the share of choices that have feature f, and k the mean number chosen,

        Phi = 1 - M/(M-1) mean_f p_f (1 - p_f) / (k/d (1 - k/d)),

    and its variance 4/M^2 sum_i (phi_i - mean phi)^2, phi_i the part of choice i
    (Nogueira, Sechidis and Brown, JMLR 18, 2018, definition 4 and theorem 7).

    Parameters
    ----------
    chosen : boolean array of shape (n_choices, n_features)

    Returns
    -------
    stability : Stability
    """
    Z = np.asarray(chosen)
    if Z.ndim != 2 or len(Z) < 2 or not np.isin(Z, (0, 1)).all():
        raise ValueError(
            "chosen must be a table of True and False, a row for each of two or more "
            f"choices and a column for each feature; got shape {Z.shape}."
        )
    Z = Z.astype(float)
    M, d = Z.shape
    share, sizes = Z.mean(axis=0), Z.sum(axis=1)
    k = share.sum()
    by_chance = k / d * (1.0 - k / d)
    if by_chance <= 0.0:
        return Stability(float("nan"), float("nan"))
    value = 1.0 - M / (M - 1) * np.mean(share * (1.0 - share)) / by_chance
    agreement = Z @ share / d - sizes * k / d**2
    size = 2.0 * sizes * k / d**2 - sizes / d - k / d + 1.0
    phi = (agreement + 0.5 * value * size) / by_chance
    variance = 4.0 / M**2 * np.sum((phi - phi.mean()) ** 2)
    return Stability(float(value), float(variance))


def false_bound(chosen: ArrayLike, threshold: float) -> float:
    """Bound the expected number of kept features that are chosen by chance.

    With q the mean number chosen in a half-sample, of d features, no more than

        q^2 / ((2 threshold - 1) d)

    features are kept on average whose chance of being chosen is below that of a feature
    drawn at random, q/d (Shah and Samworth, JRSS B 75, 2013, theorem 1; Meinshausen and
    Bühlmann, JRSS B 72, 2010, theorem 1). It holds for complementary pairs of halves
    and a threshold above 1/2.

    Parameters
    ----------
    chosen : boolean array of shape (n_choices, n_features)
        Choices on half-samples.
    threshold : float
        Share of choices above which a feature is kept.

    Returns
    -------
    bound : float
    """
    Z = np.asarray(chosen, dtype=float)
    q = Z.sum(axis=1).mean()
    return float(min(q**2 / ((2.0 * threshold - 1.0) * Z.shape[1]), Z.shape[1]))
