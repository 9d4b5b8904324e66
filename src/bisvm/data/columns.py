"""From labels or targets and splits to the training problems, as columns.

A column is one class task, or one output, on one split: its labels, weights in training
and weights in validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import log_expit
from sklearn.utils.multiclass import _ovr_decision_function

from bisvm.core.types import Array, ArrayLike
from bisvm.core.warning import warn_user
from bisvm.data.splits import Split
from bisvm.data.targets import CLASS_LABELS, Targets, class_pairs


class Points(NamedTuple):
    """Which rows held-out margins belong to, for criteria that need to know.

    labels : +1 or -1, so that labels * margins are decision values; or targets
    task : number of the class task
    column : number of the training problem, one split of one task
    row : number of the held-out row, another one in every split. Points of one number
        hold the decision values of one row, one for each class task
    pairs : (n_tasks, 2), the classes of every task, the first of which has label +1;
        None if tasks are one class against the rest, or the only two classes

    Most criteria are given the points that have a weight. To one that `sees_all_tasks`
    a row's values of pairs without its class are points too, of label +1 and weight
    zero.
    """

    labels: Array
    task: Array
    column: Array
    row: Array
    pairs: Array | None = None

    def at(self, places: Array) -> Points:
        """Return some of the points: those at these places, numbers or a mask."""
        return self._replace(
            labels=self.labels[places],
            task=self.task[places],
            column=self.column[places],
            row=self.row[places],
        )

    @property
    def n_classes(self) -> int:
        """Number of classes: two if there is one task."""
        if self.pairs is not None:
            return int(self.pairs.max()) + 1
        return max(int(self.task.max(initial=0)) + 1, 2)


@dataclass(frozen=True, eq=False)
class SampleGroups:
    """g(i), the group of every sample.

    names : labels of the groups, sorted
    codes : (n,), g(i) as a place among the names
    """

    names: Array
    codes: Array

    @classmethod
    def of(cls, labels: ArrayLike) -> Self:
        """Groups from one label per sample, of any type that can be sorted."""
        return cls(*np.unique(labels, return_inverse=True))

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, rows: Array) -> SampleGroups:
        """The groups of some samples; groups without samples keep their number."""
        return SampleGroups(self.names, self.codes[rows])

    def spread(self, values: Array) -> Array:
        """(n,), the value of every sample's group."""
        found: Array = np.asarray(values)[self.codes]
        return found

    def gathered(self, values: Array) -> Array:
        """(n_groups,), sums of (n,) values over the samples of each group."""
        return np.bincount(self.codes, values, minlength=len(self))

    def by_name(self, C: ArrayLike) -> dict[Any, Any]:
        """C of every group; a list over the classes where each has its own."""
        values = np.moveaxis(np.asarray(C), -1, 0).tolist()
        return dict(zip(self.names.tolist(), values, strict=True))


@dataclass(frozen=True)
class FoldColumns:
    """Training problems as columns, one for every split and class task.

    The sum of the columns' losses is H_T of Klatzer 2014, (2.10). It has the gradient
    (2.11), (2.12): one adjoint system for each column.

    labels : (n, q), +1 or -1, or the targets of a regression
    train : (n, q), relative weight of a point's training loss, 0 where it is held out
    validation : (n, q), weight of a point's validation loss; they sum to one, and all
        columns that hold out points of their classes have an equal share
    task : (q,), number of the class task of every column
    split : (q,), number of the split of every column
    pairs : (n_tasks, 2), as in `Points`
    targets : what the labels are
    """

    labels: Array
    train: Array
    validation: Array
    task: Array
    split: Array
    pairs: Array | None = None
    targets: Targets = CLASS_LABELS

    @property
    def points(self) -> Points:
        """The rows of held-out margins, in the order of `array[validation > 0]`."""
        return self.points_at(self.validation > 0)

    def points_at(self, where: Array) -> Points:
        """The rows of margins in the order of `array[where]`; where : mask (n, q)."""
        row, column = np.nonzero(where)
        row = row + len(where) * self.split[column]
        # Half the memory: there are few columns, and as many entries as points.
        column = column.astype(np.int32)
        task = self.task.astype(np.int32)[column]
        return Points(self.labels[where], task, column, row, self.pairs)

    @cached_property
    def outside(self) -> Array:
        """(n, q), whether a split holds a point out, whatever its part in the task."""
        outside = self.validation > 0
        for number in np.unique(self.split):
            own = self.split == number
            outside[:, own] = outside[:, own].any(axis=1, keepdims=True)
        return outside

    def of_split(self, number: int) -> FoldColumns:
        """Those of one split alone."""
        return self.only(self.split == number)

    def only(self, own: Array) -> FoldColumns:
        """Some of the columns, in equal shares as before; own : mask (q,)."""
        share = self.validation[:, own].sum()
        return FoldColumns(
            self.labels[:, own],
            self.train[:, own],
            self.validation[:, own] / share,
            self.task[own],
            self.split[own],
            self.pairs,
            self.targets,
        )


def decisions(
    scores: Array, n_classes: int, multi_class: str, pair_scale: float | None = None
) -> Array:
    """(n,) for two classes, (n, n_classes) for more, from the scores of class tasks.

    Pairs of classes vote, or are pooled if the scale of their scores is known.
    """
    if n_classes == 2:
        return scores[:, 0]
    if multi_class == "ovr":
        return scores
    if pair_scale is not None:
        return pooled_pairs(pair_scale * scores, n_classes)
    votes: Array = _ovr_decision_function(scores < 0, -scores, n_classes)
    return votes


def pooled_pairs(scores: Array, n_classes: int) -> Array:
    """sum_l log 1 / (1 + exp(-f_kl)) for every class k, from f_kl = -f_lk."""
    first, second = pair_members(n_classes)
    pooled: Array = log_expit(scores) @ first + log_expit(-scores) @ second
    return pooled


def pair_members(n_classes: int) -> tuple[Array, Array]:
    """(n_pairs, n_classes), ones at the first and at the second class of every pair."""
    pairs, identity = class_pairs(n_classes), np.eye(n_classes)
    return identity[pairs[:, 0]], identity[pairs[:, 1]]


def chosen(decision: Array, classes: Array) -> Array:
    """The class of every decision."""
    if decision.ndim == 1:
        decision = np.column_stack([-decision, decision])
    return np.asarray(classes[decision.argmax(axis=1)])


def training_columns(
    tasks: Array, weight: Array, targets: Targets = CLASS_LABELS
) -> FoldColumns:
    """One column per task, trained on all points: the final machine."""
    inside = targets.inside(tasks)
    labels = np.where(inside, tasks, 1.0)
    train = np.where(inside, weight[:, None], 0.0)
    n = tasks.shape[1]
    number, split = np.arange(n), np.zeros(n, dtype=int)
    return FoldColumns(
        labels, train, np.zeros_like(train), number, split, targets=targets
    )


def split_columns(
    tasks: Array,
    splits: Sequence[Split],
    weight: Array,
    validation_weight: Array | None = None,
    targets: Targets = CLASS_LABELS,
) -> FoldColumns:
    """One column for every split and task that can be trained.

    A split that holds out all points of a class has no column for that class's task. A
    pair of classes of which no point is held out has a column without validation
    weight: held-out points of other classes have values there. Points have the same
    weight in training and validation unless `validation_weight` is given.
    """
    held_weight = weight if validation_weight is None else validation_weight
    whole = training_columns(tasks, weight, targets)
    inside_task = targets.inside(tasks)
    columns: list[tuple[Array, Array, Array, int, int]] = []
    for number, (rows, held_out) in enumerate(splits):
        inside, outside = np.zeros((2, len(weight)))
        inside[rows] = 1.0
        outside[held_out] = 1.0
        for k, labels in enumerate(whole.labels.T):
            fit = whole.train[:, k] * inside
            check = inside_task[:, k] * held_weight * outside
            trainable = targets.members(labels[:, None], fit[:, None])[0] > 0
            if trainable and held_weight[held_out].any():
                columns.append((labels, fit, check, k, number))
        if not any(one[-1] == number and one[2].any() for one in columns):
            raise ValueError(
                f"Split {number} cannot be used: {targets.untrainable}, "
                "or its validation part is empty. Use a stratified splitter or fewer "
                "folds."
            )
    _warn_of_untrained(len(columns), len(splits) * tasks.shape[1])
    labels, train, validation, number_of_task, number_of_split = zip(
        *columns, strict=True
    )
    return FoldColumns(
        np.stack(labels, axis=1),
        np.stack(train, axis=1),
        equal_shares(np.stack(validation, axis=1)),
        np.array(number_of_task),
        np.array(number_of_split),
        targets.pairs(tasks),
        targets,
    )


def equal_shares(weight: Array) -> Array:
    """Weights that sum to one, with equal shares of all columns that have some."""
    total = weight.sum(axis=0)
    some = total > 0
    out: Array = weight / np.where(some, total, 1.0) / max(np.sum(some), 1)
    return out


def _warn_of_untrained(n_columns: int, wanted: int) -> None:
    if n_columns < wanted:
        warn_user(
            f"Of {wanted} training problems (splits x class tasks) "
            f"{wanted - n_columns} are left out: their training part lacks a class. "
            "Use a stratified splitter, and groups that do not hold all rows of a "
            "class."
        )


def distinct_columns(labels: Array) -> tuple[Array, Array]:
    """The different columns among (n, q) labels, and which of them each column is.

    The folds of one task have the same labels. (`np.unique` along columns is slow: it
    makes records of n fields.)
    """
    seen: dict[bytes, int] = {}
    number = [seen.setdefault(column.tobytes(), len(seen)) for column in labels.T]
    _, first, which = np.unique(number, return_index=True, return_inverse=True)
    return labels[:, first], which


def row_kinds(labels: Array) -> Array:
    """(n,), the number of the combination of labels, +1 or -1, that a row has."""
    kind = np.zeros(len(labels), dtype=int)
    for column in distinct_columns(labels)[0].T:
        _, kind = np.unique(2 * kind + (column > 0), return_inverse=True)
    return kind
