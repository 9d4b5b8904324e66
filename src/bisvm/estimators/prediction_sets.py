"""Prediction sets by cross-conformal prediction, from the splits of the search.

A search ends with one machine for each split, which has not seen the rows i that the
split k(i) holds out. How poorly class c fits x is measured by
s_k(x, c) = -log p_c(x), and S_i = s_k(i)(x_i, y_i) is what it was for the true class of
a held-out row. Class c is in the set of x if

    p(x, c) = (1 + sum_i w_i [S_i >= s_k(i)(x, c)]) / (n + 1) > 1 - coverage

for n observations with weights w_i that sum to n. Vovk (2015) calls p the p-value of a
cross-conformal predictor; the set is that of CV+ (Barber, Candes, Ramdas and
Tibshirani 2021; for classes Romano, Sesia and Candes 2020). With class-conditional
coverage only held-out rows of class c count for class c. With smoothing, the row itself
and held-out rows of the same score count half (mid-p-values).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bisvm.core.types import Array, Matrix
from bisvm.estimators.decision_functions import DecisionFunctions
from bisvm.estimators.split_machines import SplitMachines, observation_weights
from bisvm.kernels import Kernel
from bisvm.search.results import FoldMachines
from bisvm.search.settings import Data

# Scores that differ by less, relatively, are equal: machines in single precision are
# known to some 1e-5. Rows with equal features have equal scores.
TIES = 1e-4
# P-values that differ by less are equal: rounding errors of sums of weights.
EQUAL = 1e-12

LogProba = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """S_i = -log p of the true class, for all held-out rows, from low to high.

    y : numbers of their classes
    split : numbers of the splits that hold them out, among those that are used
    weight : w_i, which sum to the number of observations
    weight_in_class : the same, of each class by itself
    row : their numbers in the X that was given; None in older model files
    """

    scores: Array
    y: Array
    split: Array
    weight: Array
    weight_in_class: Array
    row: Array | None = None

    def p_values(
        self, scores: Sequence[Array], class_conditional: bool, smoothing: bool = False
    ) -> Array:
        """Return p(x, c) from s_k(x, c), (n, n_classes) for every split k."""
        equal = 0.5 if smoothing else 1.0
        total = np.full_like(scores[0], equal)
        if not class_conditional:
            for k, own in enumerate(scores):
                rows = self.split == k
                total += self._weight_above(own, rows, self.weight, equal)
            total /= 1.0 + self.weight.sum()
            return total
        for c in range(total.shape[1]):
            rows = self.y == c
            for k, own in enumerate(scores):
                held_out = rows & (self.split == k)
                weight = self.weight_in_class
                total[:, c] += self._weight_above(own[:, c], held_out, weight, equal)
            total[:, c] /= 1.0 + self.weight_in_class[rows].sum()
        return total

    def _weight_above(
        self, scores: Array, rows: Array, weight: Array, equal: float
    ) -> Array:
        """Sum of the weights of these rows whose S_i is higher.

        equal : part of the weight that counts if S_i is the same
        """
        above = np.append(np.cumsum(weight[rows][::-1])[::-1], 0.0)
        first = np.searchsorted(self.scores[rows], (1.0 - TIES) * scores)
        last = np.searchsorted(self.scores[rows], (1.0 + TIES) * scores, "right")
        found: Array = equal * above[first] + (1.0 - equal) * above[last]
        return found


@dataclass(frozen=True, eq=False)
class Folds:
    """The machines of all splits, with the scores of the rows that these hold out.

    machines : in the order of the splits, those of a split in the order of class tasks
    """

    machines: DecisionFunctions
    held_out: HeldOutScores
    n_splits: int

    def p_values(
        self,
        X: Matrix,
        kernels: Sequence[tuple[Kernel, Array]],
        log_proba: LogProba,
        *,
        class_conditional: bool,
        smoothing: bool,
    ) -> Array:
        """Return p-values (n, n_classes).

        kernels : every kernel with the class tasks that it serves
        log_proba : from decision values of the class tasks to log-probabilities
        """
        values = self.machines.values_of_parts(X, kernels, self.n_splits)
        scores = [-log_proba(own) for own in np.split(values, self.n_splits, axis=1)]
        return self.held_out.p_values(scores, class_conditional, smoothing)


def folds_of(
    data: Data,
    parts: Sequence[FoldMachines | None],
    shift: Array,
    log_proba: LogProba,
) -> Folds | None:
    """Return what prediction sets need of a search.

    None without held-out rows, and if no split has machines for all class tasks.

    Parameters
    ----------
    data : Data
    parts : machines of the splits, for every set of hyperparameters
    shift : (n_tasks,), what the calibration adds to the machines' intercepts
    log_proba : from decision values of the class tasks to log-probabilities
    """
    found = SplitMachines.of(data, parts)
    if found is None:
        return None
    log_p = [log_proba(own + shift) for own in found.values]
    held_out = _held_out_scores(data, found, log_p)
    return Folds(_shifted(found.machines, shift), held_out, len(found))


def _shifted(machines: DecisionFunctions, shift: Array) -> DecisionFunctions:
    n_splits = len(machines.intercept) // len(shift)
    intercept = machines.intercept + np.tile(shift, n_splits)
    return replace(machines, intercept=intercept)


def _held_out_scores(
    data: Data, splits: SplitMachines, log_p: Sequence[Array]
) -> HeldOutScores:
    """log_p : log-probabilities of the rows that each split holds out"""
    row, split = splits.held_out
    y = data.y[row]
    scores = -np.concatenate(log_p)[np.arange(len(row)), y]
    in_class = np.empty(len(row))
    for c in np.unique(y):
        in_class[y == c] = observation_weights(data, row[y == c])
    order = np.argsort(scores, kind="stable")
    found = scores, y, split, observation_weights(data, row), in_class, data.rows[row]
    return HeldOutScores(*(one[order] for one in found))
