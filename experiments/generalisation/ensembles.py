"""Ensembles: does the mean of machines tuned on splits drawn anew do better?

One machine, and the mean of five (`ensemble=5`), whose first member is that machine;
with one gamma and with one per feature. Of the ensemble's members the mean error is
told as well: what the mean decision gains beyond it is due to averaging. Differences on
test rows are paired, and tested as in `factors`.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVC
from experiments.common import Context, Result, Table
from experiments.generalisation import ranks
from experiments.generalisation.data import part
from experiments.generalisation.rows import Rows, folder

TITLE = "Generalisation: ensembles of machines tuned on splits drawn anew"
FITS = ("ensembles_fits.csv",)

SETS = (
    "ida_banana",
    "ida_breast_cancer",
    "ida_diabetis",
    "ida_heart",
    "ida_thyroid",
    "ionosphere",
    "parkinsons",
    "svmguide1",
    "moons + 10 noise",
    "make_classification",
)
SIZES = (200,)
KERNELS = {"one gamma": "rbf", "one per feature": "ard"}
MEMBERS = 5
FIGURES = ("single", "member", "ensemble", "overlap", "seconds_single", "seconds")


def run(context: Context) -> Result:
    rows = Rows(
        folder(context) / "ensembles_fits.csv",
        ("set", "size", "split", "kernel"),
        FIGURES,
    )
    rows.need_all(context.splits, SETS, SIZES, list(KERNELS), _figures)
    tables, notes = [], []
    for words in KERNELS:
        for size in SIZES:
            table, note = _table(rows, words, size, context.splits)
            tables.append(table)
            notes.append(note)
    return Result(tables, notes=notes)


def _figures(name: str, size: int, split: int, words: str) -> dict[str, float]:
    own = part(name, split, size)
    model = BilevelSVC(KERNELS[words], ensemble=MEMBERS, random_state=split)
    began = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(own.X, own.y, groups=own.groups)
    seconds = time.process_time() - began
    errors = [_error(member, own) for member in model.estimators_]
    return {
        "single": errors[0],
        "member": float(np.mean(errors)),
        "ensemble": _error(model, own),
        "overlap": own.overlap,
        "seconds_single": seconds / MEMBERS,
        "seconds": seconds,
    }


def _error(model: Any, own: Any) -> float:
    return 100.0 * (1.0 - model.score(own.X_test, own.y_test))


def _table(rows: Rows, words: str, size: int, splits: int) -> tuple[Table, str]:
    body, gains, p_better, p_worse = [], [], [], []
    for name in SETS:
        single, member, ensemble, overlap = (
            np.array([rows.values(figure, name, size, k, words) for k in range(splits)])
            for figure in FIGURES[:4]
        )
        change = ensemble - single
        gains.append(change.mean())
        p_better.append(ranks.p_greater(-change, overlap[0]))
        p_worse.append(ranks.p_greater(change, overlap[0]))
        error = change.std(ddof=1) / np.sqrt(splits) if splits > 1 else 0.0
        body.append(
            [name, single.mean(), member.mean(), ensemble.mean(), change.mean(), error]
        )
    body.append(["mean", *np.mean([row[1:5] for row in body], axis=0), None])
    columns = {
        "set": "",
        "one machine": ".2f",
        "members": ".2f",
        f"mean of {MEMBERS}": ".2f",
        "change": "+.2f",
        "± its error": ".2f",
    }
    table = Table(
        f"Test error in %, {words}, {size} rows, {splits} splits",
        columns,
        body,
        name=f"{KERNELS[words]}_{size}",
    )
    better = int(np.sum(ranks.holm(np.array(p_better)) < ranks.LEVEL))
    worse = int(np.sum(ranks.holm(np.array(p_worse)) < ranks.LEVEL))
    spread = np.std(gains, ddof=1) / np.sqrt(len(gains))
    note = (
        f"{words}, {size} rows: {np.mean(gains):+.2f} ± {spread:.2f} points over "
        f"{len(SETS)} sets, lower on {int(np.sum(np.array(gains) < 0))} and higher on "
        f"{int(np.sum(np.array(gains) > 0))}; beyond chance (Holm, 5%) better on "
        f"{better} and worse on {worse}."
    )
    return table, note
