"""How strongly a prior should pull the widths of a regression together.

`BilevelSVR("ard")` with its usual loss and criterion, and priors of several strengths,
on the UCI sets and splits of `choices`, and on Friedman's first function with 20
features of noise. The first five published splits choose; the next three had no say.
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
from bisvm.criteria.priors import Shrinkage
from experiments.common import Context, Result, Table
from experiments.generalisation.rows import Rows
from experiments.regression import record
from experiments.regression.choices import CHOSEN, FEWEST, MOST, REPORTED
from experiments.regression.friedman import among_noise

TITLE = "Strength of the prior on widths in regression"
FITS = ("priors_fits.csv",)

STRENGTHS = (0.1, 0.03, 0.01, 0.003)
DRAWS = 5


def run(context: Context) -> Result:
    assert context.output is not None
    path = context.output / "regression" / "priors_fits.csv"
    held = Rows(path, ("set", "split", "strength"), ("rmse", "seconds"))
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for name, data in _sets(context):
        for split in (*CHOSEN, *REPORTED):
            if split < len(data.splits):
                found[name, split] = [
                    held.need((name, split, tau), partial(_figures, data, split, tau))
                    for tau in STRENGTHS
                ]
    parts = (
        ("UCI, splits that choose", CHOSEN, False),
        ("UCI, splits that had no say", REPORTED, False),
        ("Friedman 1 with 20 features of noise", range(DRAWS), True),
    )
    rows = []
    for title, splits, drawn in parts:
        own = [
            fits
            for (name, split), fits in found.items()
            if split in splits and name.startswith("friedman") == drawn
        ]
        if own:
            rmse = np.array([[one["rmse"] for one in fits] for fits in own])
            relative = rmse / rmse.min(axis=1, keepdims=True)
            rows.append([title, len(own), *relative.mean(axis=0)])
    columns = {"sets": "", "fits": "d"} | {f"tau = {tau}": ".3f" for tau in STRENGTHS}
    return Result([Table("RMSE relative to the lowest, means", columns, rows)])


def _sets(context: Context) -> list[tuple[str, record.RegressionSet]]:
    sets = [(name, record.uci(name)) for name in record.uci_names()]
    found = [(name, one) for name, one in sets if FEWEST <= len(one.y) <= MOST]
    found += [(f"friedman_{n}", among_noise(n, DRAWS)) for n in (200, 500)]
    chosen = context.chosen([name for name, _ in found])
    return [pair for pair in found if pair[0] in chosen]


def _figures(data: record.RegressionSet, split: int, tau: float) -> dict[str, float]:
    X, y, X_test, y_test = data.part(split)
    machine = BilevelSVR("ard", prior=Shrinkage(tau), random_state=0)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model = make_pipeline(StandardScaler(), machine).fit(X, y)
    return {"rmse": float(root_mean_squared_error(y_test, model.predict(X_test)))}
