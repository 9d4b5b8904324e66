"""How many rows are right, how sure that is, and whether the folds were over-fitted."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bisvm.criteria import Points, get_criterion
from bisvm.data.splits import class_tasks
from bisvm.estimators.data import class_factors

# Of a normal distribution, 95% lie within this many standard deviations.
NORMAL = 1.959964


class Share(NamedTuple):
    """A share of n rows, with Wilson's interval (95%)."""

    value: float
    low: float
    high: float
    n: int


def share_of(right: np.ndarray) -> Share:
    n, z = len(right), NORMAL
    p = float(np.mean(right))
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
    # With all right, or none, rounding must not leave the share outside.
    return Share(p, min(centre - half, p), max(centre + half, p), n)


class Losses(NamedTuple):
    """The validation loss on the folds, and on rows that were held out from all.

    error : standard error of the latter
    """

    folds: float
    held_out: float
    error: float

    @property
    def excess(self) -> float:
        """By how many standard errors the second is higher."""
        return (self.held_out - self.folds) / max(self.error, 1e-300)


def losses_of(machine: Any, inputs: Any, y: Any) -> Losses | None:
    """The upper level's criterion on other rows; None where it has no meaning.

    A criterion on the training rows has none, nor do classes in pairs.
    """
    criterion = get_criterion(machine.criterion)
    classes = machine.classes_
    known = np.isin(y, classes)
    pairs = len(classes) > 2 and machine.multi_class != "ovr"
    if criterion.on_training or pairs or not known.any():
        return None
    if not np.isfinite(machine.criterion_value_):
        return None
    scores = machine.decision_function(inputs)[known]
    codes = np.searchsorted(classes, np.asarray(y)[known])
    labels = class_tasks(codes, len(classes), "ovr")
    margins = labels * scores.reshape(labels.shape)
    n, n_tasks = margins.shape
    ones = np.ones(n)
    weight = class_factors(criterion.class_weight, classes, codes, ones)[codes]
    weight /= weight.sum()
    task = np.tile(np.arange(n_tasks), n)
    weights = np.repeat(weight / n_tasks, n_tasks)
    points = Points(labels.ravel(), task, task)
    try:
        criterion.check(points)
    except ValueError:
        # Rows of one class have no pairs to be ranked.
        return None
    done = criterion.evaluate(margins.ravel(), weights, points)
    by_row = np.asarray(done.losses).reshape(margins.shape).mean(axis=1)
    apart = weight * (by_row - weight @ by_row)
    error = math.sqrt(float(np.sum(apart**2)) * n / max(n - 1, 1))
    return Losses(float(machine.criterion_value_), float(done.value), error)


def disagreement(one: np.ndarray, other: np.ndarray) -> tuple[int, int, bool]:
    """Rows that only the one has right, only the other, and whether that is chance.

    Rows on which two equal methods disagree fall to either side at random.
    """
    gained = int(np.sum(one & ~other))
    lost = int(np.sum(other & ~one))
    return gained, lost, abs(gained - lost) <= 2 * math.sqrt(gained + lost)
