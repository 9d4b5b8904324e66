"""Groups of samples that have a C of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np


@dataclass(frozen=True, eq=False)
class SampleGroups:
    """g(i), the group of every sample.

    names : labels of the groups, sorted
    codes : (n,), g(i) as a place among the names
    """

    names: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, labels: Any) -> Self:
        """Groups from one label a sample, of any type that can be sorted."""
        return cls(*np.unique(labels, return_inverse=True))

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, rows: np.ndarray) -> SampleGroups:
        """The groups of some samples. None is forgotten, though it have no member."""
        return SampleGroups(self.names, self.codes[rows])

    def spread(self, values: np.ndarray) -> np.ndarray:
        """(n,), every sample gets its group's value."""
        return np.asarray(values)[self.codes]

    def gathered(self, values: np.ndarray) -> np.ndarray:
        """(n_groups,), sums of (n,) values over the samples of each group."""
        return np.bincount(self.codes, values, minlength=len(self))
