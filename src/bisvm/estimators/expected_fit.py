"""R^2 and RMSE to expect on new data, from the predictions of held-out rows.

A search ends with the prediction of every held-out row i, by a machine that was not
trained on it, and with its squared error e_i. The errors to expect follow from their
mean. theta was chosen by these rows, so this mean is too low. The gap is estimated as
in `expected_score`, with squared errors in place of wrong classes.

The logarithm of the mean squared error, and of its ratio 1 - R^2 to the variance of y,
are taken to be normal, with variances

    sum_i (e_i - m)^2 / (n m)^2    and    sum_i (e_i - (m / v) d_i)^2 / (n m)^2

for d_i = (y_i - mean)^2, m = mean e_i and v = mean d_i, larger by the factor for common
training rows, and by the variance of the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from scipy import stats

from bisvm.core.types import Array
from bisvm.data.targets import SAME, Numbers
from bisvm.estimators.expected_score import (
    LEVEL,
    SHOWN,
    Expectation,
    check_interval,
    gap_of,
    sums,
    variance_factor,
)
from bisvm.search.results import HeldOut, SplitScores, all_or_none
from bisvm.search.settings import Data

TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class ExpectedFit(Expectation):
    """R^2 and root mean squared error to expect on new data.

    Attributes
    ----------
    value : float
        R^2, as `score` computes it; the mean over outputs if there are several.
    rmse : float
        Root mean squared error, in units of y; over all outputs if there are several.
    r2_error, mse_error : float
        Standard errors of log(1 - R^2) and of the logarithm of the mean squared error.
    r2_spread, mse_spread : float
        The same for one new row.
    """

    value: float
    rmse: float
    r2_error: float
    mse_error: float
    r2_spread: float
    mse_spread: float

    def _interval(self, n_new: int | None, level: float) -> tuple[float, float]:
        low, high = _factors(self.r2_error, self.r2_spread, n_new, level)
        left = 1.0 - self.value
        return 1.0 - high * left, 1.0 - low * left

    def rmse_interval(
        self, n_new: int | None = None, level: float = LEVEL
    ) -> tuple[float, float]:
        """Interval that holds the RMSE with probability `level`; see `interval`."""
        low, high = _factors(self.mse_error, self.mse_spread, n_new, level)
        return self.rmse * low**0.5, self.rmse * high**0.5

    def __str__(self) -> str:
        low, high = self.interval(level=SHOWN)
        least, most = self.rmse_interval(level=SHOWN)
        return (
            f"expected R^2 {self.value:.3f} ({SHOWN:.0%} interval {low:.3f} to "
            f"{high:.3f}), root mean squared error {self.rmse:.4g} ({least:.4g} to "
            f"{most:.4g})"
        )


def _factors(
    error: float, spread: float, n_new: int | None, level: float
) -> tuple[float, float]:
    """Factors by which the mean squared error may be smaller and larger."""
    check_interval(n_new, level)
    variance = error**2 + (0.0 if n_new is None else spread**2 / n_new)
    reach = float(stats.norm.ppf(0.5 * (1.0 + level))) * variance**0.5
    # Beyond exp(700) nothing is a number; there the data say nothing.
    reach = min(reach, 700.0)
    return float(np.exp(-reach)), float(np.exp(reach))


def mean_fit(parts: Sequence[ExpectedFit]) -> ExpectedFit:
    """Return the means over members of an ensemble, which hold out the same rows."""
    rows = np.array([astuple(one) for one in parts])
    return ExpectedFit(*map(float, rows.mean(axis=0)))


def expected_fit(
    data: Data, parts: Sequence[HeldOut | None], targets: Numbers
) -> tuple[ExpectedFit | None, float | None]:
    """R^2 and RMSE to expect, and the gap of R^2 to that on held-out rows.

    All rows count alike, as in `score`. None without held-out rows.
    """
    known = all_or_none(parts)
    if not known:
        return None, None
    judge = _SquaredErrors(data, known)
    hits, judged = judge.hits([part.values for part in known])
    if not judged.any():
        return None, None
    gap = gap_of(judge, hits, known, data.groups)
    errors, rows = judge.by_output([part.values for part in known])[judged], judged
    groups = None if data.groups is None else data.groups[judged]
    y = data.tasks[rows]
    deviation = (y - y.mean(axis=0)) ** 2
    variance = deviation.mean(axis=0)
    # A constant output has no variance: its errors count in the units of the tasks.
    variance = np.where(variance > SAME**2, variance, 1.0)
    left = errors / variance
    more = _growth(errors, gap.value)
    weights = (targets.scale / np.max(targets.scale)) ** 2
    factor = variance_factor(data)
    # The square of a tiny mean would be zero.
    relative = gap.variance**0.5 / max(float(errors.mean()), TINY)
    doubt = relative * relative
    # Ratios of outputs, and squared errors in units of y, each in one number a row.
    ratio, mse = left.mean(axis=1), (errors * weights).mean(axis=1)
    about = (left.mean(axis=0) * deviation / variance).mean(axis=1)
    of_ratio = _relative_error(ratio, ratio - about, groups)
    of_mse = _relative_error(mse, mse - mse.mean(), groups)
    rmse = float(np.max(targets.scale) * np.sqrt(more * mse.mean()))
    found = ExpectedFit(
        1.0 - more * float(ratio.mean()),
        rmse,
        *((factor * one[0] ** 2 + doubt) ** 0.5 for one in (of_ratio, of_mse)),
        *(one[1] for one in (of_ratio, of_mse)),
    )
    return found, (more - 1.0) * float(ratio.mean())


def growth(expected: ExpectedFit | None, gap: float | None) -> float:
    """Return by which factor squared errors of new rows exceed held-out ones.

    (1 - R^2) / (1 - R^2 - gap), at least 1; 1 if it is not known.
    """
    if expected is None or gap is None or gap <= 0.0:
        return 1.0
    left = 1.0 - expected.value
    return left / (left - gap) if left > gap else 1.0


def _growth(errors: Array, gap: float) -> float:
    """Factor of squared errors by the gap of their mean."""
    mean = float(errors.mean())
    return 1.0 + gap / mean if mean > 0.0 else 1.0


def _relative_error(
    terms: Array, influence: Array, groups: Array | None
) -> tuple[float, float]:
    """Standard error of the mean of `terms`, relative to it, and that of one row."""
    n, mean = len(terms), max(float(terms.mean()), TINY)
    own = sums(influence, groups)
    spread = float(np.sqrt(np.sum(own**2) / n)) / mean
    spread *= (len(own) / max(len(own) - 1, 1)) ** 0.5
    return spread / n**0.5, spread


class _SquaredErrors:
    """From predictions of held-out rows to minus squared errors, higher is better."""

    def __init__(self, data: Data, parts: Sequence[HeldOut]):
        self._tasks, self._scores = data.tasks, SplitScores(data, parts)

    def by_output(self, values: Sequence[Array]) -> Array:
        """Mean squared errors (n, n_outputs) over splits; NaN for other rows."""
        tasks = self._tasks
        return self._scores.mean(
            values,
            lambda rows, scores: (tasks[rows] - scores) ** 2,
            tasks.shape[1:],
        )

    def hits(self, values: Sequence[Array]) -> tuple[Array, Array]:
        """Minus the mean squared error of every row (n,), and which are judged."""
        errors = self.by_output(values).mean(axis=1)
        judged = np.isfinite(errors)
        return -np.where(judged, errors, 0.0), judged

    def is_constant(self, hits: Array, judged: Array) -> bool:
        """Constant machines get no credit for being the same in all splits."""
        return False
