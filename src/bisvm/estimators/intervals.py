"""Prediction intervals by CV+, from the splits of the search.

A search ends with one machine f_k for each split k, which has not seen the rows i that
the split k(i) holds out. With the residuals R_i = |y_i - f_k(i)(x_i)| of held-out rows,
the interval at x is

    [ lower quantile of f_k(i)(x) - R_i,    upper quantile of f_k(i)(x) + R_i ],

the floor(a (n + 1))-th smallest of the one, the ceil((1 - a) (n + 1))-th of the other,
for a = 1 - coverage (Barber, Candes, Ramdas and Tibshirani 2021). At least 1 - 2 a of
new rows from the same source are covered, whatever their distribution, up to a term
that vanishes with the number of rows; in practice about 1 - a.

Locally scaled intervals measure residuals in units of the typical residual nearby.
With a scale s_k(x) from held-out rows that split k does not hold out, they are

    [ lower quantile of f_k(i)(x) - s_k(i)(x) R_i / s_k(i)(x_i),    the same above ],

so that neither x_i nor x enters its own scale. The scale is a mean of |R_j| over
the nearest rows, and of all of them with the weight of a few rows (Papadopoulos,
Vovk and Gammerman 2011 have nearest neighbours in this place).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import RowBlocks, dense, scale_columns
from bisvm.data.targets import Numbers
from bisvm.estimators.decision_functions import DecisionFunctions
from bisvm.estimators.split_machines import SplitMachines, observation_weights
from bisvm.kernels import Kernel
from bisvm.search.results import FoldMachines
from bisvm.search.settings import Data

# Entries of a block of new rows times held-out rows that is sorted at a time: 16 MB.
BLOCK_ENTRIES = 1 << 21
# Rows by which the local scale of residuals is estimated, neighbours at least (else the
# root of the number of rows), and the weight of the mean over all rows, in rows.
MOST_POINTS = 2000
LEAST_NEIGHBOURS = 10
FEW = 5.0
# Ranks are known up to rounding errors of sums of weights.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class HeldOutResiduals:
    """Residuals of held-out rows, in units of y.

    residuals : (m, n_outputs), absolute values, larger by what the search gained on
        these rows alone (`RegressionFolds.grown`)
    split : (m,), numbers of the splits that hold them out, among those that are used
    weight : (m,), which sum to the number of observations
    y : (m, n_outputs), and `row` (m,), their numbers in the X that was given; None in
        model files of older versions
    """

    residuals: Array
    split: Array
    weight: Array
    y: Array | None = None
    row: Array | None = None

    def scaled_by(self, scales: Array) -> HeldOutResiduals:
        """Return the residuals in units of scales (m, n_outputs)."""
        return replace(self, residuals=self.residuals / scales)

    def bounds(
        self, values: Array, alpha: float, scales: Array | None = None
    ) -> tuple[Array, Array]:
        """Return lower and upper bounds (n, n_outputs).

        values : (n, n_splits, n_outputs), predictions by the machines of the splits
        scales : of the same shape, if residuals are in units of them
        """
        n, _, n_outputs = values.shape
        low, high = np.empty((2, n, n_outputs))
        step = max(BLOCK_ENTRIES // max(len(self.split), 1), 1)
        for first in range(0, n, step):
            rows = slice(first, first + step)
            for k in range(n_outputs):
                center, R = values[rows, :, k][:, self.split], self.residuals[:, k]
                if scales is not None:
                    R = R * scales[rows, :, k][:, self.split]
                high[rows, k] = self._upper(center + R, alpha)
                low[rows, k] = -self._upper(R - center, alpha)
        return low, high

    def _upper(self, scores: Array, alpha: float) -> Array:
        """The smallest score with weight (1 - alpha) (n + 1) up to it, for each row.

        Infinite if there are too few rows for this.
        """
        order = np.argsort(scores, axis=1)
        reached = np.cumsum(self.weight[order], axis=1)
        needed = (1.0 - alpha) * (self.weight.sum() + 1.0) * (1.0 - ROUNDING)
        place = np.sum(reached < needed, axis=1)
        ranked = np.take_along_axis(scores, order, axis=1)
        padded = np.column_stack([ranked, np.full(len(ranked), np.inf)])
        found: Array = padded[np.arange(len(padded)), place]
        return found


@dataclass(frozen=True, eq=False)
class LocalScale:
    """The size of held-out residuals near x, from rows that a split does not hold out.

        s_k(x) = (FEW R + sum of |R_j| over the nearest rows j) / (FEW + their number)

    with R the mean of all. Distances are Euclidean, with features in units of their
    standard deviations, times the roots of their relevances.

    factor : (d,), these units
    points : (m, d), some of the held-out rows, in them
    residuals : (m, n_outputs), absolute values, in units of y
    used : (n_splits, m), rows that a split does not hold out
    """

    factor: Array
    points: Matrix
    residuals: Array
    used: Array

    def at(self, X: Matrix) -> Array:
        """Return the scales (n, n_splits, n_outputs) at the rows of X."""
        parts, step = [], max(BLOCK_ENTRIES // len(self.residuals), 1)
        for first in range(0, X.shape[0], step):
            own = scale_columns(X[first : first + step], self.factor)
            products = dense(own @ self.points.T)
            # |x|^2 is the same for all points.
            distances = _squares(self.points) - 2.0 * products
            every = [self._means(distances, used) for used in self.used]
            parts.append(np.stack(every, axis=1))
        return np.concatenate(parts)

    def _means(self, distances: Array, used: Array) -> Array:
        """(n, n_outputs), from the points that may be used."""
        near, residuals = distances[:, used], self.residuals[used]
        count = min(max(round(len(residuals) ** 0.5), LEAST_NEIGHBOURS), len(residuals))
        nearest = np.argpartition(near, count - 1, axis=1)[:, :count]
        total = residuals[nearest].sum(axis=1) + FEW * residuals.mean(axis=0)
        scales: Array = total / (FEW + count)
        return np.where(scales > 0, scales, 1.0)


def local_scale(
    X: Matrix, relevance: Array, deviation: Array, held_out: HeldOutResiduals
) -> LocalScale | None:
    """Return the scale by held-out rows X (m, d); None if a split holds out all rows.

    relevance, deviation : (d,), of the features
    """
    chosen = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], MOST_POINTS)))
    chosen = chosen.astype(int)
    assert held_out.row is not None
    factor = np.sqrt(relevance) / np.where(deviation > 0, deviation, 1.0)
    row, splits = held_out.row, np.unique(held_out.split)
    used = [~np.isin(row[chosen], row[held_out.split == k]) for k in splits]
    if not all(own.any() for own in used):
        return None
    points = scale_columns(X[chosen], factor)
    return LocalScale(factor, points, held_out.residuals[chosen], np.array(used))


def _squares(X: Matrix) -> Array:
    squares = X * X if isinstance(X, np.ndarray) else X.multiply(X)
    return np.asarray(squares.sum(axis=1)).ravel()


@dataclass(frozen=True, eq=False)
class RegressionFolds:
    """The machines of all splits, with the residuals of the rows that these hold out.

    machines : in the order of the splits, those of a split in the order of outputs
    center, scale : (n_outputs,), from values of machines to units of y
    local : scale of the residuals near a row, and `local_scales` (m, n_outputs) at the
        held-out rows themselves; None if they are not known
    """

    machines: DecisionFunctions
    held_out: HeldOutResiduals
    n_splits: int
    center: Array
    scale: Array
    local: LocalScale | None = None
    local_scales: Array | None = None

    def interval(
        self,
        X: Matrix,
        kernels: Sequence[tuple[Kernel, Array]],
        alpha: float,
        scaled: bool = False,
    ) -> Array:
        """Return lower and upper bounds (n, n_outputs, 2).

        kernels : every kernel with the outputs that it serves
        scaled : whether residuals are scaled locally
        """
        values = self.machines.values_of_parts(X, kernels, self.n_splits)
        shaped = values.reshape(len(values), self.n_splits, len(self.scale))
        natural = self.center + self.scale * shaped
        if not scaled:
            return np.stack(self.held_out.bounds(natural, alpha), axis=-1)
        assert self.local is not None and self.local_scales is not None
        held_out = self.held_out.scaled_by(self.local_scales)
        bounds = held_out.bounds(natural, alpha, self.local.at(X))
        return np.stack(bounds, axis=-1)

    def grown(self, factor: float) -> RegressionFolds:
        """Return the same with squared residuals that are larger by a factor.

        Hyperparameters were chosen by these residuals, which are therefore too small:
        by the gap of the expected score.
        """
        if factor == 1.0:
            return self
        residuals = factor**0.5 * self.held_out.residuals
        return replace(self, held_out=replace(self.held_out, residuals=residuals))

    def with_local_scale(
        self, data: Data, relevance: Array | None, deviation: Array | None
    ) -> RegressionFolds:
        """Return the same with the local scale, if rows and features are at hand."""
        if relevance is None or deviation is None or isinstance(data.X, RowBlocks):
            return self
        assert self.held_out.row is not None
        X = data.X[np.searchsorted(data.rows, self.held_out.row)]
        local = local_scale(X, relevance, deviation, self.held_out)
        if local is None:
            return self
        own = local.at(X)[np.arange(X.shape[0]), self.held_out.split]
        return replace(self, local=local, local_scales=own)


def regression_folds(
    data: Data, parts: Sequence[FoldMachines | None], targets: Numbers
) -> RegressionFolds | None:
    """Return what intervals need of a search; None without held-out rows.

    parts : machines of the splits, for every set of hyperparameters
    """
    found = SplitMachines.of(data, parts)
    if found is None:
        return None
    row, split = found.held_out
    errors = targets.scale * np.abs(data.tasks[row] - np.concatenate(found.values))
    weight = observation_weights(data, row)
    y = targets.center + targets.scale * data.tasks[row]
    held_out = HeldOutResiduals(errors, split, weight, y, data.rows[row])
    units = targets.center, targets.scale
    return RegressionFolds(found.machines, held_out, len(found), *units)
