"""What `expected_score_` promises, and what the test rows give.

For machines with one gamma and with one per feature, on training parts of 500 and of 60
rows: by how much the accuracy of held-out rows is too good, by how much the expected
score is, and how often the interval at 90%, for a test set of that size, holds the test
score. Each of 85 to 95% is what was asked for.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVC
from bisvm.estimators.expected_score import ExpectedScore
from experiments.common import Context, Result, Spread, Table, drawing
from experiments.generalisation.data import SETS, part
from experiments.generalisation.methods import folds
from experiments.generalisation.rows import Rows, folder

TITLE = "Generalisation: expected scores and their intervals"
FITS = ("promises_fits.csv",)

SIZES = (500, 60)
KERNELS = {"one gamma": "rbf", "one per feature": "ard"}
FIGURES = ("test", "expected", "n_effective", "gap", "test_rows", "seconds")


def run(context: Context) -> Result:
    path = folder(context) / "promises_fits.csv"
    rows = Rows(path, ("set", "size", "split", "kernel"), FIGURES)
    rows.need_all(context.splits, SETS, SIZES, list(KERNELS), _fit)
    cases = {
        (words, size): _Case(rows, words, size, context.splits)
        for words in KERNELS
        for size in SIZES
    }
    columns = {
        "machine": "",
        "rows": "d",
        "promise - test": ".2f",
        "expected - test": ".2f",
        "covered at 90%": ".1f",
        "test below": ".1f",
        "test above": ".1f",
        "width": ".1f",
    }
    table = Table(
        f"Per cent, {context.splits} splits of {len(SETS)} sets",
        columns,
        [[words, size, *case.row()] for (words, size), case in cases.items()],
    )
    by_set = Table(
        "Intervals that hold the test score, of all splits, by set",
        ["set", *(f"{words}, {size}" for words, size in cases)],
        [[name, *(case.of_set(name) for case in cases.values())] for name in SETS],
        name="by_set",
    )
    notes = (
        "Spreads are standard deviations over fits: they hold the noise of training "
        "and test rows, and not the error of the mean.",
    )
    return Result([table, by_set], {"": _picture(cases)}, notes)


def _fit(name: str, size: int, split: int, words: str) -> dict[str, float]:
    own = part(name, split, size)
    model = BilevelSVC(KERNELS[words], cv=folds(own, split), random_state=split)
    began = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(own.X, own.y, groups=own.groups)
    return {
        "seconds": time.perf_counter() - began,
        "test": model.score(own.X_test, own.y_test),
        "expected": model.expected_score_.value,
        "n_effective": model.expected_score_.n_effective,
        "gap": model.generalization_gap_,
        "test_rows": len(own.y_test),
    }


class _Case:
    """All fits of one machine on parts of one size."""

    def __init__(self, rows: Rows, words: str, size: int, splits: int):
        found = [
            [rows.values(figure, name, size, split, words) for figure in FIGURES]
            for name in SETS
            for split in range(splits)
        ]
        self.splits = splits
        figures = np.array(found, dtype=float).T
        self.test, self.expected, self.rows, self.gap, self.test_rows, _ = figures
        self.low, self.high = np.array(
            [
                ExpectedScore(value, n).interval(int(n_new))
                for value, n, n_new in zip(
                    self.expected, self.rows, self.test_rows, strict=True
                )
            ]
        ).T

    @property
    def below(self) -> np.ndarray:
        return self.test < self.low - 1e-6

    @property
    def above(self) -> np.ndarray:
        return self.test > self.high + 1e-6

    def row(self) -> list[Any]:
        return [
            Spread.of(100.0 * (self.expected + self.gap - self.test)),
            Spread.of(100.0 * (self.expected - self.test)),
            100.0 * np.mean(~self.below & ~self.above),
            100.0 * np.mean(self.below),
            100.0 * np.mean(self.above),
            100.0 * np.mean(self.high - self.low),
        ]

    def of_set(self, name: str) -> str:
        first = SETS.index(name) * self.splits
        inside = (~self.below & ~self.above)[first : first + self.splits]
        return f"{inside.sum()} of {self.splits}"


def _picture(cases: dict[tuple[str, int], _Case]) -> Any:
    with drawing() as plt:
        figure, row = plt.subplots(1, len(cases), figsize=(10, 2.8), sharey=True)
        for axes, ((words, size), case) in zip(row, cases.items(), strict=True):
            spread = np.abs(np.array([case.low, case.high]) - case.expected)
            style = {"fmt": ".", "lw": 0.5, "alpha": 0.5}
            axes.errorbar(case.expected, case.test, xerr=spread, **style)
            axes.plot([0.4, 1.0], [0.4, 1.0], color="black", lw=0.8)
            axes.set(title=f"{words}, {size} rows", xlabel="expected score")
        row[0].set_ylabel("test score")
    return figure
