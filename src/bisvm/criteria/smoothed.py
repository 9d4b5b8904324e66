r"""Counts of errors made smooth: the misclassification rate, and F1.

With v_i the margin of held-out point i and s the root of their mean square::

    e_i = 1 / (1 + exp(v_i / (width s))),        s^2 = sum_i w_i v_i^2

is nearly 1 for a point on the wrong side, nearly 0 on the right one, and in between
where it is near the boundary. Since s is of the size of the margins, neither e nor its
slopes vanish as decision values shrink or grow: only their proportions count.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.special import expit

from bisvm.core.types import Array
from bisvm.criteria.validation import TINY, CriterionValue, ScaleFree, required
from bisvm.data.columns import Points


class _Smoothed(ScaleFree):
    """A function of soft errors, which a subclass implements (`_count`)."""

    def __init__(self, width: float = 0.25) -> None:
        self.width = width

    def validate(self) -> Self:
        self.check_positive("width")
        return self

    def at_zero(self, n_classes: int = 2) -> float:
        return 0.5

    def _count(self, e: Array, weights: Array, points: Points | None) -> CriterionValue:
        """H, its influences H + dH/dw_i, and the slopes dH/de_i / w_i."""
        raise NotImplementedError

    def _in_units(
        self, v: Array, size: float, w: Array, points: Points | None
    ) -> CriterionValue:
        r"""H, its influences and slopes.

        With z = v / s and q_i = dH/dz_i at fixed s, what s adds is

            dH/dv_i = (q_i - w_i z_i sum_j q_j z_j) / s
            dH/dw_i = ... - (z_i^2 - 1) / 2 sum_j q_j z_j
        """
        scale = float(np.sqrt(w @ v**2))
        z = v / max(scale, TINY)
        e = expit(-z / self.width)
        count = self._count(e, w, points)
        q = -w * count.slopes * e * (1.0 - e) / self.width
        pull = float(q @ z)
        slopes = (q - w * z * pull) / max(scale * size, TINY)
        if scale == 0.0:
            return CriterionValue(count.value, count.losses, np.zeros_like(v))
        losses = count.losses - 0.5 * pull * (z**2 - 1.0)
        return CriterionValue(count.value, losses, slopes)


class SmoothedError(_Smoothed):
    """H = sum_i w_i e_i: a misclassification rate that has a gradient.

    Unlike convex losses it does not go on punishing a point that is far on the wrong
    side: what cannot be right is given up.

    Parameters
    ----------
    width : float, default=0.25
        In units of the root mean square of the margins: points within about twice this
        of the boundary are neither right nor wrong. Narrower is nearer to the true
        rate, and is seen by fewer points.
    """

    def _count(self, e: Array, weights: Array, points: Points | None) -> CriterionValue:
        return CriterionValue(float(weights @ e), e, np.ones_like(e))


class SmoothedF1(_Smoothed):
    """H = 1 - F1 = (FP + FN) / (2 TP + FP + FN), from soft counts.

    Soft errors are counted over all held-out points of all splits: FN = sum of w e over
    the positive points, FP over the negative ones, TP = sum of w (1 - e) over the
    positive ones. Each class task has its own F1, and H is 1 - their mean: that
    of the second class for two classes, the mean over classes for one-vs-rest.

    Parameters
    ----------
    width : float, default=0.25
        As in `SmoothedError`.
    """

    def _count(self, e: Array, weights: Array, points: Points | None) -> CriterionValue:
        """For every task sum_i w_i e_i / sum_i w_i d_i.

        d_i = 2 - e_i for positive points, e_i for others.
        """
        points = required(points, self)
        total, losses, slopes = 0.0, np.zeros_like(e), np.zeros_like(e)
        for task in np.unique(points.task):
            own = np.flatnonzero(points.task == task)
            mass = float(weights[own].sum())
            if not mass > 0.0:
                continue
            errors, w, sign = e[own], weights[own] / mass, points.labels[own]
            d = np.where(sign > 0, 2.0 - errors, errors)
            size = max(float(w @ d), TINY)
            value = float(w @ errors) / size
            total += mass * value
            losses[own] = value + (errors - value * d) / size
            slopes[own] = (1.0 + value * sign) / size
        return CriterionValue(total, losses, slopes)
