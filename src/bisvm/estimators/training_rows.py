"""The rows of positive weight, their groups and splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bisvm.core.types import Array
from bisvm.core.warning import warn_user
from bisvm.data.columns import SampleGroups
from bisvm.data.matrices import keep
from bisvm.data.splits import Folds, Split, freeze_splits
from bisvm.estimators.group_labels import group_labels, warn_of_small_groups
from bisvm.estimators.inputs import Checked
from bisvm.search.settings import Data, Grouping


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows of positive weight; others have no part in a fit.

    given : all rows
    rows : (n,), their numbers among all rows
    spread : the sample groups of these rows, or None; splits spread each over the folds
    """

    given: Checked
    rows: Array
    spread: SampleGroups | None

    @classmethod
    def of(
        cls, given: Checked, weight: Array, grouping: Grouping | None
    ) -> TrainingRows:
        """Return the rows of positive weight.

        weight : (n,), of all rows
        grouping : {"groups", "classes"}, optional, what has its own C
        """
        rows = np.flatnonzero(weight > 0)
        return cls(given, rows, _sample_groups(given, rows, grouping))

    @property
    def groups(self) -> Array | None:
        """(n,), labels of groups that splits keep together."""
        groups = self.given.groups
        return None if groups is None else groups[self.rows]

    @property
    def spread_codes(self) -> Array | None:
        """(n,), numbers of the sample groups."""
        return None if self.spread is None else self.spread.codes

    def splits(
        self, cv: Folds, y: Array, random_state: np.random.RandomState
    ) -> list[Split]:
        """Index pairs of a splitter, or those given, into these rows.

        A splitter divides these rows alone; given index pairs refer to all rows.

        y : (n,), or (n, n_outputs), of all rows
        """
        rows = self.rows
        if hasattr(cv, "split") and not isinstance(cv, str):
            return freeze_splits(
                cv,
                keep(self.given.X, rows),
                y[rows],
                groups=self.groups,
                random_state=random_state,
                numbers=rows,
            )
        pairs = freeze_splits(cv, self.given.X, y, random_state=random_state)
        place = np.full(len(y), -1)
        place[rows] = np.arange(len(rows))
        places = [(place[train], place[held_out]) for train, held_out in pairs]
        return [(train[train >= 0], out[out >= 0]) for train, out in places]

    def data(self, **known: Any) -> Data:
        """Return what a search needs; known : what depends on what y holds."""
        groups = self.groups
        numbers = None if groups is None else np.unique(groups, return_inverse=True)[1]
        return Data(
            X=keep(self.given.X, self.rows),
            rows=self.rows,
            sample_weight=self.given.sample_weight[self.rows],
            n_features=self.given.n_features,
            feature_names=self.given.feature_names,
            groups=numbers,
            **known,
        )


def _sample_groups(
    given: Checked, rows: Array, grouping: Grouping | None
) -> SampleGroups | None:
    """The groups of these rows; a warning if they have no C of their own."""
    if given.sample_groups is None:
        if grouping == "groups":
            raise ValueError(
                "regularization='per_group' needs the group of every sample: "
                "fit(X, y, sample_groups=...), one label per sample."
            )
        return None
    labels = group_labels(given.sample_groups, given.X, "sample_groups")
    groups = SampleGroups.of(labels[rows])
    if grouping == "groups":
        warn_of_small_groups(groups)
    else:
        warn_user(
            "sample_groups are given, but no group has a C of its own: they only "
            "decide how samples are spread over the folds. "
            "Use regularization='per_group'."
        )
    return groups
