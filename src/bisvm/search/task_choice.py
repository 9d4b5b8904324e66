"""multi_class="auto": one machine for every class, or one for every pair of classes.

Both are tuned, the second with the kernel that was chosen for the first. Their
probabilities are compared on held-out rows, and the lower log-loss decides. If there
are many rows, a sample of them is used. With many classes there are too many pairs, and
every class has one machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bisvm.core.types import Array
from bisvm.search.calibration import held_out_losses
from bisvm.search.history import Comparison, PairedDifference
from bisvm.search.results import Searched
from bisvm.search.settings import Data, Settings, TaskKind

# Classes up to which pairs are tried: the machines of eleven classes have five times as
# many decision values as one for every class.
MANY_CLASSES = 11
# Rows by which the choice is made, if there are more; and members of every class that
# are among them, if it has so many.
ENOUGH_ROWS = 2000
ENOUGH_MEMBERS = 10

PAIRS = "pairs"
WORDS = {
    "ovr": "one machine for every class",
    "ovo": "one machine for every pair of classes",
}


@dataclass(frozen=True)
class TaskChoice:
    """What multi_class="auto" chose, and why; `str` says it in words.

    Attributes
    ----------
    name : "ovr" or "ovo"
    step : pairs of classes against single classes, on the same held-out rows
    n_rows : number of rows by which it was chosen
    n_svm_evaluations : lower-level problems that were solved for the choice
    """

    name: TaskKind
    step: Comparison
    n_rows: int
    n_svm_evaluations: int = 0

    @property
    def words(self) -> str:
        return WORDS[self.name]

    @property
    def reason(self) -> str:
        difference = self.step.difference
        change = "lower" if difference.value > 0.0 else "no lower"
        size = (
            f" by {difference.value:.3g}, {difference.in_standard_errors:.1f} standard "
            "errors"
            if difference.value > 0.0
            else ""
        )
        return (
            f"With {WORDS['ovo']} the log-loss of held-out rows is {change}{size} "
            f"({self.n_rows} rows)."
        )

    def __str__(self) -> str:
        return f"Chosen: {self.words}.\n- {self.reason}"


def task_kinds(settings: Settings, data: Data) -> tuple[TaskKind, ...]:
    """Return what may be tried, the first of which needs no comparison.

    Methods of their own, and criteria on the training problem, have one kind only.
    """
    if settings.multi_class != "auto":
        return (settings.multi_class,)
    optimizer = settings.optimizer
    usual = optimizer.uses_start and optimizer.any_machine and settings.method is None
    few = 2 < len(data.classes) <= MANY_CLASSES
    # Pairs that are tuned one by one have no rows in common.
    comparable = settings.shared and not settings.criterion.on_training
    possible = usual and few and comparable and _holds_out_pairs(data)
    return ("ovr", "ovo") if possible else ("ovr",)


def _holds_out_pairs(data: Data) -> bool:
    """Whether every split holds out rows of a class that it also trains."""
    return all(
        np.isin(data.y[held_out], data.y[train]).any()
        for train, held_out in data.splits
    )


def rows_to_choose_by(data: Data, seed: int) -> Array | None:
    """Return a sample of the rows that has members of all classes; None for all."""
    n = len(data.y)
    if n <= ENOUGH_ROWS:
        return None
    order = np.random.RandomState(seed).permutation(n)
    if not len(data.classes):
        return np.sort(order[:ENOUGH_ROWS])
    # Members of a class, in their order, are spread over the sample.
    place = np.empty(n)
    for k in range(len(data.classes)):
        members = order[data.y[order] == k]
        share = max(len(members) * ENOUGH_ROWS / n, ENOUGH_MEMBERS)
        place[members] = np.arange(len(members)) / share
    return np.flatnonzero(place < 1.0)


def compare(
    simple: tuple[Settings, Data, Sequence[Searched]],
    pairs: tuple[Settings, Data, Sequence[Searched]],
) -> Comparison | None:
    """Compare the log-loss of held-out rows; None if no row tells.

    Rows count that have decision values of all class tasks in both.
    """
    first, second = (
        held_out_losses(settings, data, [one.held_out for one in tuned])
        for settings, data, tuned in (simple, pairs)
    )
    if first is None or second is None:
        return None
    common = np.isfinite(first) & np.isfinite(second)
    if not common.any():
        return None
    data = simple[1]
    weight = np.where(common, data.weight, 0.0)
    weight /= weight.sum()
    groups = np.arange(len(weight)) if data.groups is None else data.groups
    before, after = (
        np.bincount(groups, weight * np.where(common, losses, 0.0))
        for losses in (first, second)
    )
    difference = PairedDifference.of(before, after, np.bincount(groups, weight))
    return Comparison(PAIRS, difference, 0.0)
