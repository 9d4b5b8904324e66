"""Regression sets with published splits or results, from the directory `BISVM_DATA`.

- `record/uci_reg/<name>.npz`: UCI sets with ten published 90/10 splits, those of Yang
  et al. (2015) and Wilson et al. (2016).
- `record/pmlb_regression/<name>.tsv.gz`: real sets of PMLB that SRBench (La Cava et al.
  2021) uses, and `record/reference/srbench_blackbox_results.csv`, its results.
"""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bisvm.datasets.loading import VARIABLE

Split = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class RegressionSet:
    """A set, and its splits (train, test)."""

    name: str
    X: np.ndarray
    y: np.ndarray
    splits: list[Split]

    def part(self, split: int) -> tuple[np.ndarray, ...]:
        """X and y of the training rows, X and y of the test rows."""
        train, test = self.splits[split]
        return self.X[train], self.y[train], self.X[test], self.y[test]


def uci_names() -> list[str]:
    """Names of the UCI sets at hand."""
    return _names("uci_reg", ".npz")


def uci(name: str) -> RegressionSet:
    with np.load(_folder() / "uci_reg" / f"{name}.npz") as held:
        masks = held["test_mask"].T
        splits = [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in masks]
        return RegressionSet(name, held["X"].astype(float), held["y"].ravel(), splits)


def srbench_names() -> list[str]:
    """Names of the sets of SRBench at hand."""
    return _names("pmlb_regression", ".tsv.gz")


def srbench(name: str, splits: int, most: int = 10_000) -> RegressionSet:
    """Return a set with random 75/25 splits; at most 10,000 rows, as SRBench has it."""
    path = _folder() / "pmlb_regression" / f"{name}.tsv.gz"
    with gzip.open(path, "rt") as file:
        names = file.readline().rstrip("\n").split("\t")
        table = np.loadtxt(file, delimiter="\t", ndmin=2)
    target = names.index("target")
    X, y = np.delete(table, target, axis=1), table[:, target]
    drawn = []
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(y))[:most]
        cut = round(0.75 * len(order))
        drawn.append((order[:cut], order[cut:]))
    return RegressionSet(name, X, y, drawn)


def srbench_results() -> dict[str, dict[str, float]]:
    """Published median R^2 on test parts: algorithm -> set -> R^2."""
    path = _folder() / "reference" / "srbench_blackbox_results.csv"
    found: dict[str, dict[str, float]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["r2_test"]:
                own = found.setdefault(row["algorithm"], {})
                own[row["dataset"]] = float(row["r2_test"])
    return found


def _names(kind: str, ending: str) -> list[str]:
    folder = _folder() / kind
    found = sorted(path.name.removesuffix(ending) for path in folder.glob(f"*{ending}"))
    if not found:
        raise FileNotFoundError(
            f"There are no sets in {folder}. Set {VARIABLE} to the directory that "
            f"holds record/{kind}/*{ending}."
        )
    return found


def _folder() -> Path:
    return Path(os.environ.get(VARIABLE, "")) / "record"
