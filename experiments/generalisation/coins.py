"""What `expected_score_` promises where there is nothing to learn.

Features are normal and labels are fair coins, so that the accuracy of every machine on
new rows is 0.5. Labels are drawn freely: a sample of n rows has one class more often by
about 0.4 / sqrt(n), which a constant machine finds again in stratified folds, and not
on new rows. For four shapes of data: how often the interval at 90% holds 0.5, and the
score of 1000 new rows; and which kernel was chosen, where it was open.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bisvm import BilevelLinearSVC, BilevelSVC
from bisvm.estimators.expected_score import ExpectedScore
from experiments.common import Context, Result, Table
from experiments.generalisation.rows import Rows, folder

TITLE = "Generalisation: expected scores on labels by chance"
FITS = ("coins_fits.csv",)

# Rows and features.
SHAPES = ((60, 5), (30, 20), (200, 10), (100, 2))
NEW_ROWS = 1000
KERNELS = ("linear", "rbf", "ard", "laplacian", "laplacian_ard", "groups")
FIGURES = ("expected", "n_effective", "gap", "new", "kernel", "seconds")

MODELS: dict[str, Callable[[int], Any]] = {
    "kernel chosen": lambda seed: BilevelSVC(random_state=seed),
    "one gamma": lambda seed: BilevelSVC("rbf", random_state=seed),
    "one C per feature": lambda seed: BilevelLinearSVC(
        regularization="per_feature", prior=None, starts=4, random_state=seed
    ),
}
# It takes ten times as long as the others: it has this part of the draws.
PARTS = {"one C per feature": 0.5}


def run(context: Context) -> Result:
    keys = ("rows", "features", "draw", "model")
    rows = Rows(folder(context) / "coins_fits.csv", keys, FIGURES)
    cases = []
    for n, d in SHAPES:
        for name in MODELS:
            draws = max(round(context.splits * PARTS.get(name, 1.0)), 1)
            found = [
                rows.need((n, d, draw, name), lambda key=(n, d, draw, name): _fit(*key))
                for draw in range(draws)
            ]
            cases.append((n, d, name, found))
        print(f"  {n} x {d}", file=sys.stderr, flush=True)
    columns = {
        "rows": "d",
        "features": "d",
        "machine": "",
        "draws": "d",
        "promise": ".1f",
        "expected": ".1f",
        "covered at 90%": ".1f",
        "too high": ".1f",
        "too low": ".1f",
        f"{NEW_ROWS} new rows": ".1f",
        "width": ".1f",
    }
    body = [[n, d, name, *_coverage(found)] for n, d, name, found in cases]
    table = Table("Per cent; the true accuracy is 50", columns, body)
    kernels = Table(
        "Kernels that were chosen, of all draws",
        ["rows", "features", *KERNELS],
        [
            [n, d, *_chosen(found)]
            for n, d, name, found in cases
            if name == "kernel chosen"
        ],
        name="kernels",
    )
    return Result([table, kernels])


def draw_data(n: int, d: int, draw: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([n, d, draw])
    return rng.normal(size=(n, d)), rng.integers(2, size=n)


def _fit(n: int, d: int, draw: int, name: str) -> dict[str, float]:
    X, y = draw_data(n, d, draw)
    model = MODELS[name](draw)
    began = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    choice = getattr(model, "kernel_choice_", None)
    score = model.expected_score_
    return {
        "seconds": time.perf_counter() - began,
        "expected": score.value,
        "n_effective": score.n_effective,
        "gap": model.generalization_gap_,
        "new": model.score(*draw_data(NEW_ROWS, d, draw)),
        "kernel": -1 if choice is None else KERNELS.index(choice.name),
    }


def _coverage(found: list[Mapping[str, float]]) -> list[Any]:
    expected, n_rows, gap, new = (
        np.array([row[figure] for row in found])
        for figure in ("expected", "n_effective", "gap", "new")
    )
    scores = [ExpectedScore(*pair) for pair in zip(expected, n_rows, strict=True)]
    low, high = np.array([score.interval() for score in scores]).T
    low_new, high_new = np.array([score.interval(NEW_ROWS) for score in scores]).T
    within = (low_new <= new + 1e-6) & (new - 1e-6 <= high_new)
    figures = (
        np.mean(expected + gap),
        np.mean(expected),
        np.mean((low <= 0.5) & (high >= 0.5)),
        np.mean(low > 0.5),
        np.mean(high < 0.5),
        np.mean(within),
        np.mean(high - low),
    )
    return [len(found), *(100.0 * figure for figure in figures)]


def _chosen(found: list[Mapping[str, float]]) -> list[str]:
    numbers = [round(row["kernel"]) for row in found]
    return [str(numbers.count(number)) for number in range(len(KERNELS))]
