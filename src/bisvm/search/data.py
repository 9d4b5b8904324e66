"""Validated training data, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bisvm.data.sample_groups import SampleGroups
from bisvm.data.splits import Split


@dataclass(frozen=True, eq=False)
class Data:
    """Validated training data: rows of positive weight, classes as numbers.

    X : dense, CSR, or in blocks of rows; row numbers with a precomputed kernel
    y : (n,), numbers of the classes
    rows : where each row stands in the X that was given
    weight : sample weight times class weight
    sample_weight : as it was given
    held_weight : that of held-out points, with class weights of the criterion's own
    tasks : (n, n_tasks), binary labels of every class task, 0 for "no part in it"
    splits : index pairs (train, validation) into the rows
    classes : labels of the classes
    n_features : of the X that was given
    feature_names : of the X that was given, or None
    groups : (n,), numbers of groups that splits keep together, or None
    sample_groups : those that have a C of their own, or None
    matrix : values of a precomputed kernel between the rows, or None
    """

    X: Any
    y: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    sample_weight: np.ndarray
    held_weight: np.ndarray
    tasks: np.ndarray
    splits: list[Split]
    classes: np.ndarray
    n_features: int
    feature_names: list[str] | None = None
    groups: np.ndarray | None = None
    sample_groups: SampleGroups | None = None
    matrix: np.ndarray | None = None

    @property
    def training_share(self) -> float:
        """Mean training weight of the splits, relative to the total."""
        inside = [self.weight[train].sum() for train, _ in self.splits]
        return float(np.mean(inside) / self.weight.sum())
