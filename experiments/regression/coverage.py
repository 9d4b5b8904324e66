"""Coverage of intervals and quantiles: shares of test rows, in the mean over all sets.

`BilevelSVR("ard")` on random halves of UCI sets with up to 700 rows, and on functions
whose noise differs from row to row. Intervals of 80, 90 and 95%, plain and locally
scaled, each with their mean width in standard deviations of y; and quantiles of 10, 50
and 90%, by one more fit each.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVR
from experiments.common import Context, Result, Table
from experiments.generalisation.rows import Rows
from experiments.regression import record

TITLE = "Coverage of intervals and of quantiles"
FITS = ("coverage_fits.csv",)

MOST, SPLITS = 700, 2
LEVELS, QUANTILES = (0.8, 0.9, 0.95), (0.1, 0.5, 0.9)
DRAWN, NEW = 300, 2000
FIGURES = (
    *(f"{kind} {what} {level}" for kind in ("plain", "scaled") for level in LEVELS
      for what in ("held", "width")),
    *(f"below {q}" for q in QUANTILES),
    "seconds",
)  # fmt: skip


def noisy(name: str, seed: int) -> record.RegressionSet:
    """Return a function of three features whose noise grows with the first."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(DRAWN + NEW, 3))
    size = 0.1 + 0.5 * np.abs(X[:, 0]) if name == "growing" else np.full(len(X), 0.3)
    noise = rng.normal(size=len(X)) if name != "tails" else rng.standard_t(3, len(X))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + size * noise
    rows = np.arange(len(X))
    return record.RegressionSet(name, X, y, [(rows[:DRAWN], rows[DRAWN:])])


def run(context: Context) -> Result:
    assert context.output is not None
    path = context.output / "regression" / "coverage_fits.csv"
    held = Rows(path, ("set", "split"), FIGURES)
    found: dict[str, dict[str, float]] = {}
    for name in context.chosen(["even", "growing", "tails", *record.uci_names()]):
        fits = [
            held.need((name, k), partial(_figures, name, k))
            for k in range(SPLITS)
            if name in ("even", "growing", "tails") or len(record.uci(name).y) <= MOST
        ]
        if fits:
            found[name] = {f: float(np.mean([one[f] for one in fits])) for f in FIGURES}
    return Result([_table(found)])


def _table(found: dict[str, dict[str, float]]) -> Table:
    columns = {"set": ""}
    columns |= {name: ".3f" for name in FIGURES if name != "seconds"}
    rows: list[list[Any]] = [
        [name, *(own[figure] for figure in FIGURES[:-1])] for name, own in found.items()
    ]
    means = np.mean([row[1:] for row in rows], axis=0)
    return Table("Shares and widths", columns, [*rows, ["mean", *means]])


def _figures(name: str, split: int) -> dict[str, float]:
    X, y, X_test, y_test = _part(name, split)
    scaler, unit = StandardScaler().fit(X), float(y.std())
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    figures = {}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model = BilevelSVR("ard", random_state=0).fit(X, y)
        for level in LEVELS:
            for kind in ("plain", "scaled"):
                low, high = model.predict_interval(X_test, level, kind == "scaled").T
                inside = (low <= y_test) & (y_test <= high)
                figures[f"{kind} held {level}"] = float(inside.mean())
                width = float(np.mean(high - low)) / unit
                figures[f"{kind} width {level}"] = width
        for q in QUANTILES:
            own = BilevelSVR("ard", quantile=q, random_state=0).fit(X, y)
            figures[f"below {q}"] = float(np.mean(y_test < own.predict(X_test)))
    return figures


def _part(name: str, split: int) -> tuple[np.ndarray, ...]:
    if name in ("even", "growing", "tails"):
        return noisy(name, split).part(0)
    data = record.uci(name)
    order = np.random.default_rng(split).permutation(len(data.y))
    half = len(order) // 2
    train, test = order[:half], order[half:]
    return data.X[train], data.y[train], data.X[test], data.y[test]
