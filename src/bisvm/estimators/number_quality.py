"""How well numbers are predicted, on rows that the machine was not trained on.

    R^2 = 1 - m / v,   m = mean over i of e_i,   v = mean over i of d_i,

with e_i = (y_i - f_i)^2 and d_i = (y_i - mean y)^2. The logarithm of m / v is taken to
be normal, with the variance sum_i (e_i / m - d_i / v)^2 / n^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bisvm.core.types import Array
from bisvm.data.targets import Numbers
from bisvm.estimators.quality import IN_FOLDS, NORMAL
from bisvm.search.results import HeldOut, SplitScores, all_or_none
from bisvm.search.settings import Data


@dataclass(frozen=True)
class NumberQuality:
    """How well numbers are predicted, on rows that were not used for training.

    `print(quality)` says it in words.

    Attributes
    ----------
    r2, low, high : float
        R^2, with a 95% interval.
    rmse, mae : float
        Root mean squared, and mean absolute error.
    constant : float
        Root mean squared error of always predicting the mean of the training rows.
    n : int
        Number of rows.
    """

    r2: float
    low: float
    high: float
    rmse: float
    mae: float
    constant: float
    n: int

    @classmethod
    def of(cls, y: Array, predicted: Array, mean: float) -> NumberQuality:
        """Compare predictions with y; `mean` is that of the training rows."""
        squares, spread = (y - predicted) ** 2, (y - y.mean()) ** 2
        m, v, n = float(squares.mean()), float(spread.mean()), len(y)
        constant = float(np.sqrt(np.mean((y - mean) ** 2)))
        errors = float(np.sqrt(m)), float(np.abs(y - predicted).mean()), constant, n
        if not (v > 0 and m > 0):
            r2 = 1.0 if m == 0 else 0.0
            return cls(r2, r2, r2, *errors)
        reach = NORMAL * float(np.sqrt(np.sum((squares / m - spread / v) ** 2))) / n
        left = m / v
        low, high = 1.0 - left * np.exp(reach), 1.0 - left * np.exp(-reach)
        return cls(1.0 - left, float(low), float(high), *errors)

    def figures_on(self, where: str = IN_FOLDS) -> str:
        """The errors on these rows, and that of guessing."""
        r2, low, high = (
            f"{round(one, 3) + 0.0:.3f}" for one in (self.r2, self.low, self.high)
        )
        return (
            f"R^2 {r2} (95% interval {low} to {high}), root mean squared error "
            f"{self.rmse:.4g}, mean absolute error {self.mae:.4g} on {self.n:,} "
            f"{where}; guessing (always the mean) has a root mean squared error of "
            f"{self.constant:.4g}"
        )

    def __str__(self) -> str:
        return f"{self.figures_on()}."


def held_out_number_quality(
    data: Data, parts: Sequence[HeldOut | None], targets: Numbers
) -> NumberQuality | None:
    """Return the quality on the rows that the splits of a search hold out.

    Rows that are held out several times have the mean of their predictions. None
    without held-out rows, or for several outputs.
    """
    known = all_or_none(parts)
    if not known or data.tasks.shape[1] > 1:
        return None
    scores = SplitScores(data, known)
    mean = scores.mean([part.values for part in known], lambda rows, own: own[:, 0])
    judged = np.isfinite(mean)
    if not judged.any():
        return None
    y, predicted = (
        targets.natural(own[judged, None])[:, 0] for own in (data.tasks[:, 0], mean)
    )
    return NumberQuality.of(y, predicted, float(y.mean()))
