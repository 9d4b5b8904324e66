"""Sets of Fernandez-Delgado et al. (JMLR 2014), with the four folds they published.

They are read from `record/delgado/<name>.npz` in the directory `BISVM_DATA`: half of
the sets of the study. Features are standardised, categories coded as numbers.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bisvm.datasets.loading import VARIABLE

Fold = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class RecordSet:
    """A set, and its published folds (train, test)."""

    name: str
    X: np.ndarray
    y: np.ndarray
    folds: list[Fold]

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.y))

    def smallest_class(self, fold: int) -> int:
        """Members of the smallest class in a training part."""
        train, _ = self.folds[fold]
        return int(np.unique(self.y[train], return_counts=True)[1].min())


def names() -> list[str]:
    """Names of the sets at hand; FileNotFoundError if there are none."""
    folder = _folder()
    found = sorted(path.stem for path in folder.glob("*.npz"))
    if not found:
        raise FileNotFoundError(
            f"There are no sets in {folder}. Set {VARIABLE} to the directory that "
            "holds record/delgado/*.npz."
        )
    return found


def load(name: str) -> RecordSet:
    with np.load(_folder() / f"{name}.npz") as held:
        folds = [(held[f"train_{k}"], held[f"test_{k}"]) for k in range(4)]
        return RecordSet(name, held["X"].astype(float), held["y"], folds)


def _folder() -> Path:
    return Path(os.environ.get(VARIABLE, "")) / "record" / "delgado"
