"""Which loss and which criterion are the defaults: RMSE on test rows, and seconds.

UCI sets with 90 to 700 rows; `BilevelSVR("ard")` on standardised features tunes on
each training part, with every loss, and with every criterion for two of them. The
first five published splits choose. The next three had no say.

Errors are relative to the lowest of the row's set and split; ranks are means over sets
and splits.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVR
from experiments.common import Context, Result, Table
from experiments.generalisation.rows import Rows
from experiments.regression import record

TITLE = "Losses and criteria of BilevelSVR on UCI sets"
FITS = ("choices_fits.csv",)

FEWEST, MOST = 90, 700
CHOSEN, REPORTED = (0, 1, 2, 3, 4), (5, 6, 7)
LOSSES = (
    "squared",
    "huber",
    "smooth_epsilon_insensitive",
    "squared_epsilon_insensitive",
)
CRITERIA = ("mse", "mae", "huber", "student")
WAYS = [(loss, "mse") for loss in LOSSES] + [
    (loss, criterion) for loss in ("squared", "huber") for criterion in CRITERIA[1:]
]


def run(context: Context) -> Result:
    assert context.output is not None
    path = context.output / "regression" / "choices_fits.csv"
    held = Rows(path, ("set", "split", "loss", "criterion"), ("rmse", "seconds"))
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for name in context.chosen(record.uci_names()):
        data = record.uci(name)
        if not FEWEST <= len(data.y) <= MOST:
            continue
        for split in (*CHOSEN, *REPORTED):
            found[name, split] = [
                held.need((name, split, *way), partial(_figures, data, split, *way))
                for way in WAYS
            ]
    tables = [
        _table(title, {k: v for k, v in found.items() if k[1] in splits}, name)
        for title, splits, name in (
            ("Splits that choose", CHOSEN, "chosen"),
            ("Splits that had no say", REPORTED, "reported"),
        )
    ]
    return Result(tables)


def _table(title: str, found: dict[Any, list[dict[str, Any]]], name: str) -> Table:
    rmse = np.array([[one["rmse"] for one in fits] for fits in found.values()])
    seconds = np.array([[one["seconds"] for one in fits] for fits in found.values()])
    relative = rmse / rmse.min(axis=1, keepdims=True)
    ranks = np.argsort(np.argsort(rmse, axis=1), axis=1) + 1
    columns = {"loss": "", "criterion": "", "RMSE / lowest": ".3f", "worst": ".2f"}
    columns |= {"rank": ".2f", "seconds": ".2f"}
    rows = [
        [*way, own.mean(), own.max(), rank.mean(), float(np.median(time))]
        for way, own, rank, time in zip(
            WAYS, relative.T, ranks.T, seconds.T, strict=True
        )
    ]
    return Table(f"{title}: {len(found)} fits each", columns, rows, name)


def _figures(
    data: record.RegressionSet, split: int, loss: str, criterion: str
) -> dict[str, float]:
    X, y, X_test, y_test = data.part(split)
    machine = BilevelSVR("ard", loss=loss, criterion=criterion, random_state=0)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model = make_pipeline(StandardScaler(), machine).fit(X, y)
    return {"rmse": float(root_mean_squared_error(y_test, model.predict(X_test)))}
