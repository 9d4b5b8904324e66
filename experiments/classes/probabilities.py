"""Probabilities from the held-out rows of a search, beside CalibratedClassifierCV.

Sets of Fernandez-Delgado et al. (2014) with at most 1300 rows, 12 classes, and five
members of every class in a training part; their four folds. `BilevelSVC("rbf")` tunes C
and gamma on each training part; its probabilities come with the fit. Beside it stands
scikit-learn's `CalibratedClassifierCV(ensemble=False)` around an `SVC` with the same C
and gamma, five folds.

Log-loss and Brier score are means over test rows, the calibration error is the expected
one with ten bins of the highest probability, in points. The map from decision values to
probabilities was chosen on the first two folds; the last two had no say.

A second table has labels by chance: how far probabilities of new rows are from the
share of their class, which is all that can be known.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVC
from bisvm.estimators import fitted
from experiments.classes import record
from experiments.classes.record import RecordSet
from experiments.common import Context, Result, Table
from experiments.generalisation.rows import Rows

TITLE = "Probabilities: those of the search beside CalibratedClassifierCV"
FITS = ("probabilities_fits.csv",)

ROWS, CLASSES, MEMBERS = 1300, 12, 5
SCORES = ("log-loss", "Brier", "calibration", "accuracy")
FIGURES = (
    *(f"{score} {whose}" for whose in ("ours", "theirs") for score in SCORES),
    "argmax is predict",
    "share of time",
)
CHOSEN, REPORTED = (0, 1), (2, 3)
# Rows, columns and classes of sets with labels by chance.
CHANCE = ((60, 5, 2), (100, 5, 2), (400, 10, 2), (150, 5, 3))
DRAWS = 20


def run(context: Context) -> Result:
    assert context.output is not None
    folder = context.output / "classes"
    folder.mkdir(parents=True, exist_ok=True)
    held = Rows(folder / "probabilities_fits.csv", ("set", "fold", "tasks"), FIGURES)
    found: dict[tuple[str, int, str], dict[str, Any]] = {}
    for name in context.chosen(record.names()):
        data = record.load(name)
        if len(data.y) > ROWS or data.n_classes > CLASSES:
            continue
        if min(data.smallest_class(fold) for fold in range(4)) < MEMBERS:
            continue
        for fold in range(4):
            for tasks in ("ovr", "ovo") if data.n_classes > 2 else ("two",):
                key = name, fold, tasks
                found[key] = held.need(key, partial(_figures, data, fold, tasks))
    parts = [("chosen by", CHOSEN), ("not chosen by", REPORTED)]
    rows = [
        _summary(f"{tasks}, folds {what}", found, folds, tasks)
        for tasks in ("two", "ovr", "ovo")
        for what, folds in parts
        if any(kind == tasks for _, _, kind in found)
    ]
    columns = {"class tasks": "", "sets": "d"}
    for score in SCORES:
        columns |= {f"{score}, ours": ".3f", f"{score}, theirs": ".3f"}
    columns |= {"log-loss no worse": ".0%", "Brier no worse": ".0%"}
    columns |= {"argmax is predict": ".1%", "share of the fit's time": ".1%"}
    return Result([Table("Means over the sets", columns, rows), by_chance()])


def by_chance() -> Table:
    """Labels by chance: distance of probabilities from the shares of the classes."""
    rows = []
    for n, d, K in CHANCE:
        found = np.array([_distances(n, d, K, seed) for seed in range(DRAWS)])
        rows.append([f"{n} x {d}", K, DRAWS, *found.mean(axis=0), found[:, 1].max()])
    columns = {"rows x columns": "", "classes": "d", "draws": "d"}
    columns |= dict.fromkeys(("mean distance", "largest in a draw, mean"), ".3f")
    columns |= {"largest": ".3f"}
    title = "Labels by chance: distance of probabilities from the share of the class"
    return Table(title, columns, rows, "by_chance")


def _distances(n: int, d: int, K: int, seed: int) -> tuple[float, float]:
    """Mean and largest, over 500 new rows."""
    rng = np.random.default_rng(seed)
    X, y, new = (
        rng.normal(size=(n, d)),
        rng.integers(0, K, n),
        rng.normal(size=(500, d)),
    )
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model = BilevelSVC("rbf", random_state=0).fit(X, y)
    off = np.abs(model.predict_proba(new) - np.bincount(y) / n)
    return float(off.mean()), float(off.max())


def _summary(
    title: str, found: dict[Any, dict[str, Any]], folds: tuple[int, ...], tasks: str
) -> list[Any]:
    names = sorted({name for name, _, kind in found if kind == tasks})
    means = {
        figure: np.array(
            [
                np.mean([found[name, fold, tasks][figure] for fold in folds])
                for name in names
            ]
        )
        for figure in FIGURES
    }
    cells: list[Any] = [title, len(names)]
    for score in SCORES:
        cells += [means[f"{score} {whose}"].mean() for whose in ("ours", "theirs")]
    for score in ("log-loss", "Brier"):
        cells.append(np.mean(means[f"{score} ours"] <= means[f"{score} theirs"]))
    cells.append(means["argmax is predict"].mean())
    cells.append(np.median(means["share of time"]))
    return cells


def _figures(data: RecordSet, fold: int, tasks: str) -> dict[str, float]:
    train, test = data.folds[fold]
    X, y, X_test = data.X[train], data.y[train], data.X[test]
    kind: Any = "ovr" if tasks == "two" else tasks
    model = BilevelSVC("rbf", multi_class=kind, random_state=0)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        share = _timed(model, X, y)
        C, gamma = model.C_, model.hyperparameters_["gamma"]
        svc = SVC(C=C, gamma=gamma, decision_function_shape=kind)
        splits = StratifiedKFold(5, shuffle=True, random_state=0)
        theirs = CalibratedClassifierCV(svc, ensemble=False, cv=splits).fit(X, y)
    p, codes = (
        model.predict_proba(X_test),
        np.searchsorted(model.classes_, data.y[test]),
    )
    agree = model.classes_[p.argmax(axis=1)] == model.predict(X_test)
    other = theirs.predict_proba(X_test)
    return {
        **{f"{score} ours": one for score, one in scores(p, codes).items()},
        **{f"{score} theirs": one for score, one in scores(other, codes).items()},
        "argmax is predict": float(np.mean(agree)),
        "share of time": share,
    }


def _timed(model: BilevelSVC, X: np.ndarray, y: np.ndarray) -> float:
    """Fit; return the share of CPU time that the calibration takes."""
    own = fitted.calibrate
    spent = []

    def watched(*given: Any) -> Any:
        began = time.process_time()
        out = own(*given)
        spent.append(time.process_time() - began)
        return out

    fitted.calibrate = watched
    try:
        began = time.process_time()
        model.fit(X, y)
        return sum(spent) / (time.process_time() - began)
    finally:
        fitted.calibrate = own


def scores(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Log-loss, Brier score, calibration error in points, accuracy in percent."""
    rows = np.arange(len(y))
    truth = np.eye(p.shape[1])[y]
    highest, right = p.max(axis=1), p.argmax(axis=1) == y
    bins = np.minimum((10 * highest).astype(int), 9)
    off = np.bincount(bins, right - highest, minlength=10)
    return {
        "log-loss": float(-np.mean(np.log(np.maximum(p[rows, y], 1e-15)))),
        "Brier": float(np.mean(np.sum((p - truth) ** 2, axis=1))),
        "calibration": 100.0 * float(np.abs(off).sum()) / len(y),
        "accuracy": 100.0 * float(right.mean()),
    }
