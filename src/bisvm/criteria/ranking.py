r"""Pairwise ranking: a surrogate of the area under the ROC curve.

The area is the share of pairs, one point of each label, that are in the right order.
With pairs of one split and class task, weights a_i and b_j that sum to one over its
positive and its negative points, and m_c its weight among the others::

    H = min over a >= 0 of  sum_c m_c sum_ij a_i b_j max(0, 1 - a (f_i - f_j))^2

Values of different splits are not compared, since each machine has its own zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bisvm.core.compiling import njit
from bisvm.core.types import Array
from bisvm.criteria.validation import CriterionValue, ScaleFree, required
from bisvm.data.columns import Points

# Newton's method on a piecewise quadratic function ends after finitely many steps.
_MAX_STEPS = 100
_LAST_STEP = 1e-15


class PairwiseRanking(ScaleFree):
    """Squared hinge of differences of decision values, at their best common scale.

    It measures the order of the points of a split, not where zero lies: for predictions
    that need a threshold see `best_threshold`. By sorting, all pairs together take
    O(n log n). Splits that hold out points of one label only have no pairs, and do not
    count; without any pairs at all H is 1, as for decision values of zero.
    """

    def check(self, points: Points) -> None:
        """Raise a ValueError if no column of the points has one of both classes."""
        positive, negative = (
            points.column[sign * points.labels > 0] for sign in (1, -1)
        )
        if not np.isin(positive, negative).any():
            raise ValueError(
                "criterion 'auc' compares held-out points of different classes, and no "
                "split holds out points of both. Use fewer folds or a stratified "
                "splitter, or collect more rows of the rare class."
            )

    def _in_units(
        self, v: Array, size: float, w: Array, points: Points | None
    ) -> CriterionValue:
        r"""H, its influences and slopes.

        Since a is optimal its change contributes nothing. With the mean loss r_i of a
        point's pairs and pi the share of its label in its column, the influence of its
        weight is H_c - H + (r_i - H_c) / pi.
        """
        points = required(points, self)
        sides = _sides(points.labels * v, w, points)
        if sides is None:
            return CriterionValue(self.at_zero(), np.ones_like(v), np.zeros_like(v))
        a = _scale(sides[0])
        means = [side.means(a) for side in sides]
        column = sides[0].in_columns(means[0][:, 0])
        value = float(sides[0].mass @ column)
        losses, slopes = np.full_like(v, value), np.zeros_like(v)
        for side, mean in zip(sides, means, strict=True):
            of_column = column[side.column]
            influence = of_column - value + (mean[:, 0] - of_column) / side.share
            losses[side.rows] += influence / side.paired
            slopes[side.rows] = -2.0 * (a / size) * side.weight * mean[:, 1]
        return CriterionValue(value, losses, slopes)


class _Side(NamedTuple):
    """The points of one label, and those of the other that they are paired with.

    rows : their places in the criterion's arrays, by column and then by value
    values, column : decision values, turned so that they should be the larger, and
        columns of these points
    weight : m_c a_i; share : of the label in its column
    others, their_weight : values and b_j of the other label, by column and value
    starts, their_starts : where columns begin
    mass : m_c of every column
    paired : weight of all points that have pairs
    """

    rows: npt.NDArray[np.intp]
    values: Array
    column: npt.NDArray[np.intp]
    weight: Array
    share: Array
    others: Array
    their_weight: Array
    starts: npt.NDArray[np.intp]
    their_starts: npt.NDArray[np.intp]
    mass: Array
    paired: float

    def means(self, a: float) -> Array:
        return _pair_means(
            a,
            self.values,
            self.starts,
            self.others,
            self.their_weight,
            self.their_starts,
        )

    def in_columns(self, of_points: Array) -> Array:
        """Weighted means over the points of every column."""
        total = np.bincount(self.column, self.weight * of_points, len(self.mass))
        return total / np.where(self.mass > 0, self.mass, 1.0)


def _sides(f: Array, weights: Array, points: Points) -> tuple[_Side, _Side] | None:
    """Positive points with negative ones, and the other way round; None without any."""
    n_columns = int(points.column.max(initial=-1)) + 1
    positive, negative = (
        np.bincount(points.column, weights * own, n_columns).astype(float)
        for own in (points.labels > 0, points.labels < 0)
    )
    whole = positive + negative
    has_pairs = (positive > 0) & (negative > 0)
    paired = float(whole[has_pairs].sum())
    if not paired > 0.0:
        return None
    mass = np.where(has_pairs, whole, 0.0) / paired
    counted = (weights > 0) & has_pairs[points.column]

    def ordered(sign: int, turned: int) -> tuple[npt.NDArray[np.intp], ...]:
        rows = np.flatnonzero(counted & (sign * points.labels > 0))
        rows = rows[np.lexsort((turned * f[rows], points.column[rows]))]
        starts = np.searchsorted(points.column[rows], np.arange(n_columns + 1))
        return rows, starts

    def side(sign: int, mine: Array, theirs: Array) -> _Side:
        (rows, starts), (others, their_starts) = (
            ordered(sign, sign),
            ordered(-sign, sign),
        )
        own, column = points.column[rows], points.column[others]
        return _Side(
            rows=rows,
            values=sign * f[rows],
            column=own,
            weight=mass[own] * weights[rows] / mine[own],
            share=mine[own] / whole[own],
            others=sign * f[others],
            their_weight=weights[others] / theirs[column],
            starts=starts,
            their_starts=their_starts,
            mass=mass,
            paired=paired,
        )

    return side(1, positive, negative), side(-1, negative, positive)


def _scale(side: _Side) -> float:
    """The optimal a, by Newton's method from zero.

    phi is convex and piecewise quadratic, and its curvature falls with a, as pairs that
    are far enough apart drop out. So phi' is concave, and steps from the left never go
    too far. Zero if the pairs are on average in the wrong order.
    """
    a = 0.0
    for _ in range(_MAX_STEPS):
        means = side.means(a)
        slope = -2.0 * float(side.weight @ means[:, 2])
        curvature = 2.0 * float(side.weight @ means[:, 3])
        if slope >= 0.0 or not curvature > 0.0:
            break
        step = -slope / curvature
        a += step
        if step <= _LAST_STEP * a:
            break
    return a


@njit(cache=True, nogil=True)
def _pair_means(
    a: float,
    values: np.ndarray,
    starts: np.ndarray,
    others: np.ndarray,
    weight: np.ndarray,
    their_starts: np.ndarray,
) -> np.ndarray:
    """Means over each point's pairs of h^2, h, h d, and d^2 where h > 0: (n, 4).

    d = values_i - others_j and h = max(0, 1 - a d). Both are sorted in their columns:
    from the largest value down, pairs with h > 0 only ever come in.
    """
    means = np.zeros((len(values), 4))
    for c in range(len(starts) - 1):
        j = their_starts[c + 1] - 1
        b0, b1, b2 = 0.0, 0.0, 0.0
        for i in range(starts[c + 1] - 1, starts[c] - 1, -1):
            v = values[i]
            while j >= their_starts[c] and a * (v - others[j]) < 1.0:
                b0 += weight[j]
                b1 += weight[j] * others[j]
                b2 += weight[j] * others[j] * others[j]
                j -= 1
            t = 1.0 - a * v
            means[i, 0] = max(t * t * b0 + 2.0 * t * a * b1 + a * a * b2, 0.0)
            means[i, 1] = max(t * b0 + a * b1, 0.0)
            means[i, 2] = v * t * b0 + (v * a - t) * b1 - a * b2
            means[i, 3] = max(v * v * b0 - 2.0 * v * b1 + b2, 0.0)
    return means
