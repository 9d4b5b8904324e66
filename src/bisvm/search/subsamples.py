"""Subsamples of the rows: where evaluations cost little, most steps are taken.

    400 rows  ->  a few times as many  ->  ...  ->  all rows

Each search starts from the optimum of the one before. What a richer model gains shows
on them too: by the same amount, with a standard error that falls like 1 / sqrt(rows).
"""

from __future__ import annotations

import numpy as np
from numpy.random import RandomState

from bisvm.bilevel.objective import Objective
from bisvm.core.parts import PENALTY
from bisvm.core.types import Array
from bisvm.search.descent import clipped

# Rows of the first subsample, which is used if there are twice as many or more. Gram
# matrices of this size cost next to nothing. Further ones grow by at most this ratio.
SAMPLE_ROWS = 400
SAMPLE_RATIO = 10.0
# Points of each sign that every training problem of a subsample must have.
SAMPLE_MEMBERS = 5
# The best C of a subsample shrinks with its size about like size^-0.2.
C_EXPONENT = 0.2


def sample_sizes(n: int) -> list[int]:
    """Return sizes of subsamples on the way to n rows, in equal ratios."""
    if n < 2 * SAMPLE_ROWS:
        return []
    steps = int(np.ceil(np.log(n / SAMPLE_ROWS) / np.log(SAMPLE_RATIO)))
    ratio = (n / SAMPLE_ROWS) ** (1.0 / steps)
    return [round(SAMPLE_ROWS * ratio**k) for k in range(steps)]


def sampled_rows(
    objective: Objective, size: int, random_state: RandomState
) -> Array | None:
    """Return rows with the shares of folds, classes and groups of samples.

    None if a class is too rare to be represented.
    """
    columns = objective.problem.columns
    n = len(columns.labels)
    fold = columns.validation.argmax(axis=1)
    kind = objective.problem.row_kinds
    order = np.lexsort((random_state.permutation(n), kind, fold))
    places = np.linspace(0, n - 1, size).round().astype(int)
    rows = np.sort(order[places])
    members = columns.targets.members(columns.labels[rows], columns.train[rows])
    return rows if members.min() >= SAMPLE_MEMBERS else None


def at_size(objective: Objective, theta: Array, ratio: float) -> Array:
    """Return theta for a subsample `ratio` times as large."""
    shrink = C_EXPONENT * np.log(ratio) * objective.space.has_role(PENALTY)
    return clipped(objective, theta - shrink)
