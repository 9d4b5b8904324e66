"""Prediction intervals by CV+, from the splits of the search.

A search ends with one machine f_k for each split k, which has not seen the rows i that
the split k(i) holds out. With the residuals R_i = |y_i - f_k(i)(x_i)| of held-out rows,
the interval at x is

    [ lower quantile of f_k(i)(x) - R_i,    upper quantile of f_k(i)(x) + R_i ],

the floor(a (n + 1))-th smallest of the one, the ceil((1 - a) (n + 1))-th of the other,
for a = 1 - coverage (Barber, Candes, Ramdas and Tibshirani 2021). At least 1 - 2 a of
new rows from the same source are covered, whatever their distribution, up to a term
that vanishes with the number of rows; in practice about 1 - a.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bisvm.core.types import Array, Matrix
from bisvm.data.targets import Numbers
from bisvm.estimators.decision_functions import DecisionFunctions
from bisvm.estimators.prediction_sets import (
    columns_of_splits,
    observation_weights,
    stacked,
)
from bisvm.kernels import Kernel
from bisvm.search.results import FoldMachines
from bisvm.search.settings import Data

# Entries of a block of new rows times held-out rows that is sorted at a time: 16 MB.
BLOCK_ENTRIES = 1 << 21
# Ranks are known up to rounding errors of sums of weights.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class HeldOutResiduals:
    """Residuals of held-out rows, in units of y.

    residuals : (m, n_outputs), absolute values
    split : (m,), numbers of the splits that hold them out, among those that are used
    weight : (m,), which sum to the number of observations
    """

    residuals: Array
    split: Array
    weight: Array

    def bounds(self, values: Array, alpha: float) -> tuple[Array, Array]:
        """Return lower and upper bounds (n, n_outputs).

        values : (n, n_splits, n_outputs), predictions by the machines of the splits
        """
        n, _, n_outputs = values.shape
        low, high = np.empty((2, n, n_outputs))
        step = max(BLOCK_ENTRIES // max(len(self.split), 1), 1)
        for first in range(0, n, step):
            rows = slice(first, first + step)
            for k in range(n_outputs):
                center, R = values[rows, :, k][:, self.split], self.residuals[:, k]
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
class RegressionFolds:
    """The machines of all splits, with the residuals of the rows that these hold out.

    machines : in the order of the splits, those of a split in the order of outputs
    center, scale : (n_outputs,), from values of machines to units of y
    """

    machines: DecisionFunctions
    held_out: HeldOutResiduals
    n_splits: int
    center: Array
    scale: Array

    def interval(
        self, X: Matrix, kernels: Sequence[tuple[Kernel, Array]], alpha: float
    ) -> Array:
        """Return lower and upper bounds (n, n_outputs, 2).

        kernels : every kernel with the outputs that it serves
        """
        n_outputs = len(self.scale)
        first = np.arange(self.n_splits)[:, None] * n_outputs
        blocks = [(kernel, (first + own).ravel()) for kernel, own in kernels]
        values = self.machines.values(X, blocks)
        shaped = values.reshape(len(values), self.n_splits, n_outputs)
        natural = self.center + self.scale * shaped
        return np.stack(self.held_out.bounds(natural, alpha), axis=-1)


def regression_folds(
    data: Data, parts: Sequence[FoldMachines | None], targets: Numbers
) -> RegressionFolds | None:
    """Return what intervals need of a search; None without held-out rows.

    parts : machines of the splits, for every set of hyperparameters
    """
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    columns = columns_of_splits(data, known)
    used = np.flatnonzero((columns >= 0).all(axis=1))
    if not len(used):
        return None
    every = [values for part in known for values in part.values]
    values = [np.column_stack([every[j] for j in columns[k]]) for k in used]
    rows = [data.splits[k][1] for k in used]
    row = np.concatenate(rows)
    residuals = targets.scale * np.abs(data.tasks[row] - np.concatenate(values))
    split = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
    held_out = HeldOutResiduals(residuals, split, observation_weights(data, row))
    machines = stacked(data, known, columns[used].ravel())
    units = targets.center, targets.scale
    return RegressionFolds(machines, held_out, len(used), *units)
