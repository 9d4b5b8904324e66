"""What y holds, classes or numbers, and the tasks that machines are trained for.

A *task* is one column of labels or targets: one class against the rest, a pair of
classes, or one output of a regression.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from bisvm.core.types import Array

# Standard deviation of y, relative to its largest value, below which y is constant.
SAME = 1e-14


class Targets(ABC):
    """What the tasks of a training problem are.

    Attributes
    ----------
    words : str
        What y holds.
    untrainable : str
        What the training part of a split lacks if no machine can be trained.
    """

    words: ClassVar[str]
    untrainable: ClassVar[str]

    @property
    def common_scale(self) -> float:
        """Unit of y in which all tasks are; 1 if there is none, or several."""
        return 1.0

    @abstractmethod
    def tasks(self, y: Array, kind: str) -> Array:
        """Return the tasks (n, n_tasks) of validated y; kind : "ovr" or "ovo"."""

    @abstractmethod
    def inside(self, tasks: Array) -> Array:
        """(n, n_tasks), whether a row has a part in a task."""

    @abstractmethod
    def members(self, labels: Array, train: Array) -> Array:
        """(q,), training rows of every column, of the rarer label if there are two."""

    @abstractmethod
    def pairs(self, tasks: Array) -> Array | None:
        """(n_tasks, 2), the classes of every task, if tasks are pairs of classes."""


@dataclass(frozen=True)
class ClassLabels(Targets):
    """Labels +1 and -1 of classes; 0 for a row that is not in a task."""

    n_classes: int = 2

    words: ClassVar[str] = "labels"
    untrainable: ClassVar[str] = "its training part has one class only"

    def tasks(self, y: Array, kind: str) -> Array:
        return class_tasks(y, self.n_classes, kind)

    def inside(self, tasks: Array) -> Array:
        return np.asarray(tasks != 0)

    def members(self, labels: Array, train: Array) -> Array:
        signs = labels * (train > 0)
        rarer: Array = np.minimum((signs > 0).sum(axis=0), (signs < 0).sum(axis=0))
        return rarer

    def pairs(self, tasks: Array) -> Array | None:
        return pairs_of(tasks)


CLASS_LABELS = ClassLabels()


@dataclass(frozen=True, eq=False)
class Numbers(Targets):
    """Outputs of a regression, (y - center) / scale.

    center, scale : (n_outputs,), in units of y
    """

    center: Array
    scale: Array

    words: ClassVar[str] = "targets"
    untrainable: ClassVar[str] = "its training part is empty"

    @classmethod
    def of(cls, y: Array, weight: Array, *, centred: bool) -> Numbers:
        """Return mean and standard deviation of y (n, n_outputs); 1 if that is zero.

        Not `centred`, the origin stays where it is, for machines without a free
        intercept. Squares are those of y over its largest value, which cannot overflow.
        """
        share = weight / weight.sum()
        size = np.abs(y).max(axis=0)
        size = np.where(size > 0.0, size, 1.0)
        unit = y / size
        mean = share @ unit
        deviation = np.sqrt(share @ (unit - mean) ** 2)
        varies = deviation > SAME
        scale = size * np.where(varies, deviation, 1.0)
        return cls(size * mean if centred else 0.0 * mean, scale)

    @property
    def common_scale(self) -> float:
        return float(self.scale[0]) if len(self.scale) == 1 else 1.0

    def natural(self, values: Array) -> Array:
        """Return predictions (..., n_outputs) in units of y."""
        out: Array = self.center + self.scale * values
        return out

    def tasks(self, y: Array, kind: str) -> Array:
        scaled: Array = (y.reshape(len(y), -1) - self.center) / self.scale
        return scaled

    def inside(self, tasks: Array) -> Array:
        return np.ones(tasks.shape, dtype=bool)

    def members(self, labels: Array, train: Array) -> Array:
        return np.asarray((train > 0).sum(axis=0))

    def pairs(self, tasks: Array) -> Array | None:
        return None


def class_tasks(y: Array, n_classes: int, multi_class: str) -> Array:
    """Binary tasks (n, n_tasks): +1, -1, or 0 for a point that is not in the task.

    y holds class numbers 0 .. n_classes - 1. Two classes are one task; more are one
    task per class ("ovr") or per pair ("ovo", +1 for the first of the pair).
    """
    if multi_class not in ("ovr", "ovo"):
        raise ValueError(
            f"Unknown multi_class {multi_class!r}: expected 'ovr' or 'ovo'."
        )
    if n_classes == 2:
        return np.where(y == 1, 1.0, -1.0)[:, None]
    if multi_class == "ovr":
        return np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
    pairs = class_pairs(n_classes)
    tasks = [1.0 * (y == first) - 1.0 * (y == second) for first, second in pairs]
    return np.stack(tasks, axis=1)


def class_pairs(n_classes: int) -> Array:
    """(n_pairs, 2), all pairs of classes: 0 and 1, 0 and 2, ..."""
    return np.array(list(combinations(range(n_classes), 2)))


def pairs_of(tasks: Array) -> Array | None:
    """The classes of every task, if tasks are several pairs of classes."""
    n_tasks = tasks.shape[1]
    if n_tasks == 1 or np.all(tasks != 0):
        return None
    # n_tasks = K (K - 1) / 2 for K classes.
    return class_pairs(round(np.sqrt(2.0 * n_tasks) + 0.5))
