"""The machines of a search's splits, and the rows that each of them has not seen.

Prediction sets and prediction intervals come from both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from bisvm.core.types import Array, Matrix
from bisvm.data.leave_one_out import is_leave_one_out
from bisvm.estimators.decision_functions import DecisionFunctions
from bisvm.search.results import FoldMachines, all_or_none
from bisvm.search.settings import Data

# Coefficients are stored as a sparse matrix if so few of them are not zero: it then
# takes less than half of the memory.
FEW_NONZERO = 0.25


@dataclass(frozen=True, eq=False)
class SplitMachines:
    """The machines of the splits that have one for every task.

    machines : of all those splits, the tasks of the first split first
    rows : for each split, the rows that it holds out
    values : for each split, the machines' values (n_rows, n_tasks) at these rows
    """

    machines: DecisionFunctions
    rows: list[Array]
    values: list[Array]

    @classmethod
    def of(
        cls, data: Data, parts: Sequence[FoldMachines | None]
    ) -> SplitMachines | None:
        """Return them; None without held-out rows, and if no split has all tasks.

        parts : machines of the splits, for every set of hyperparameters
        """
        known = all_or_none(parts)
        if not known:
            return None
        columns = _columns_of_splits(data, known)
        used = np.flatnonzero((columns >= 0).all(axis=1))
        if not len(used):
            return None
        every = [values for part in known for values in part.values]
        return cls(
            _stacked(data, known, columns[used].ravel()),
            [data.splits[k][1] for k in used],
            [np.column_stack([every[j] for j in columns[k]]) for k in used],
        )

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def held_out(self) -> tuple[Array, Array]:
        """Numbers of all held-out rows, and of the splits that hold them out."""
        sizes = [len(own) for own in self.rows]
        return np.concatenate(self.rows), np.repeat(np.arange(len(sizes)), sizes)


def _columns_of_splits(data: Data, parts: Sequence[FoldMachines]) -> Array:
    """(n_splits, n_tasks), places of columns among those of all parts; -1 for none."""
    n_tasks = data.tasks.shape[1]
    places = np.full((len(data.splits), n_tasks), -1)
    first_task = first_column = 0
    for part in parts:
        places[part.split, first_task + part.task] = first_column + np.arange(
            len(part.task)
        )
        first_task += n_tasks // len(parts)
        first_column += len(part.task)
    return places


def _stacked(
    data: Data, parts: Sequence[FoldMachines], columns: Array
) -> DecisionFunctions:
    """The machines of all parts, with common rows, in the order of `columns`."""
    intercept = np.concatenate([part.intercept for part in parts])[columns]
    belong = [part.rows for part in parts if part.rows is not None]
    if not belong:
        coef = np.hstack([part.coef for part in parts])[:, columns]
        return DecisionFunctions(coef, intercept)
    rows = np.unique(np.concatenate(belong))
    every = []
    for part, own in zip(parts, belong, strict=True):
        coef = np.zeros((len(rows), part.coef.shape[1]))
        coef[np.searchsorted(rows, own)] = part.coef
        every.append(coef)
    coef = _compact(np.hstack(every)[:, columns])
    if data.matrix is not None:
        return DecisionFunctions(coef, intercept, support=data.rows[rows])
    return DecisionFunctions(coef, intercept, vectors=data.X[rows])


def _compact(coef: Array) -> Matrix:
    """A CSR matrix if most entries are zero, as with pairs of classes."""
    few = np.count_nonzero(coef) < FEW_NONZERO * coef.size
    return sparse.csr_array(coef) if few else coef


def observation_weights(data: Data, row: Array) -> Array:
    """Weights of held-out rows, which sum to the number of observations.

    A row that several splits hold out shares its weight among them. The rows of a group
    are one observation, and share a weight of one.
    """
    times = np.bincount(row)[row]
    weight = data.sample_weight[row] / times
    if data.groups is None:
        return np.asarray(weight * len(np.unique(row)) / weight.sum())
    group = data.groups[row]
    return np.asarray(weight / np.bincount(group, weight)[group])


def refuse_leave_one_out(estimator: Any, what: str) -> None:
    """Raise an AttributeError if a search by leave-one-out has no such machines."""
    if is_leave_one_out(estimator.cv):
        raise AttributeError(
            f"{what} come from the machines of splits, and cv='loo' trains one machine "
            "on all rows. Fit with cv=5."
        )


def check_coverage(
    coverage: object, meaning: str = "whose class should be in their set"
) -> float:
    """Return the coverage, or raise a ValueError if it is none.

    meaning : of the rows that are covered
    """
    if isinstance(coverage, Real) and not isinstance(coverage, bool):
        value = float(coverage)
        if 0.0 < value < 1.0:
            return value
    raise ValueError(
        f"coverage={coverage!r} is not understood; expected a number between 0 and 1, "
        f"such as 0.9: the share of new rows {meaning}."
    )
