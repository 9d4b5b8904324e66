"""Prediction sets from the splits of a search, beside split-conformal prediction.

Sets of Fernandez-Delgado et al. (2014) with at most 1300 rows, and five members of
every class in a training part; their four folds. `BilevelSVC("rbf")` tunes C and gamma
on each training part; its sets come with the fit. Beside it stands split-conformal
prediction as usual, by crepes: three quarters of the training part train an `SVC` with
the same C and gamma and with probabilities (`CalibratedClassifierCV`, five folds), the
other quarter calibrates the sets. C and gamma have seen that quarter, in its favour.

Both count ties in full (crepes without smoothing). Coverage is the share of test rows
whose class is in their set; the size of a set is its number of classes.

Needs crepes (`pip install bisvm[bench]`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVC
from experiments.classes import record
from experiments.classes.record import RecordSet
from experiments.common import Context, Result, Table
from experiments.generalisation.rows import Rows

TITLE = "Prediction sets: those of the search beside split-conformal prediction"
FITS = ("prediction_sets_fits.csv",)

ROWS, MEMBERS = 1300, 5
LEVELS = (0.80, 0.90, 0.95)
KINDS = ("all", "class")
WHOSE = ("ours", "smoothed", "split")
SCORES = ("coverage", "rarest", "size", "empty")
FIGURES = tuple(
    f"{score} {level:.2f} {kind} {whose}"
    for level in LEVELS
    for kind in KINDS
    for whose in WHOSE
    for score in SCORES
)


def run(context: Context) -> Result:
    assert context.output is not None
    folder = context.output / "classes"
    folder.mkdir(parents=True, exist_ok=True)
    held = Rows(folder / "prediction_sets_fits.csv", ("set", "fold"), FIGURES)
    found: dict[tuple[str, int], dict[str, Any]] = {}
    classes = {}
    for name in context.chosen(record.names()):
        data = record.load(name)
        fewest = min(data.smallest_class(fold) for fold in range(4))
        if len(data.y) > ROWS or fewest < MEMBERS:
            continue
        classes[name] = data.n_classes
        for fold in range(4):
            key = name, fold
            found[key] = held.need(key, partial(_figures, data, fold))
    parts = {
        "two classes": [name for name, n in classes.items() if n == 2],
        "several classes": [name for name, n in classes.items() if n > 2],
    }
    titles = "Coverage of all rows", "Class-conditional coverage"
    return Result(
        [
            _table(title, found, parts, kind)
            for title, kind in zip(titles, KINDS, strict=True)
        ]
    )


def _table(
    title: str,
    found: dict[tuple[str, int], dict[str, Any]],
    parts: dict[str, list[str]],
    kind: str,
) -> Table:
    """Means over the folds of each set, and over the sets."""
    columns = {"sets with": "", "number": "d", "asked for": ".0%"}
    for score in ("coverage", "rarest class", "classes in a set", "empty sets"):
        style = ".2f" if score == "classes in a set" else ".1%"
        columns |= {f"{score}, {whose}": style for whose in WHOSE}
    rows = []
    for what, names in parts.items():
        for level in LEVELS if names else ():
            cells: list[Any] = [what, len(names), level]
            for score in SCORES:
                for whose in WHOSE:
                    figure = f"{score} {level:.2f} {kind} {whose}"
                    every = [found[name, k][figure] for name in names for k in range(4)]
                    cells.append(float(np.mean(every)))
            rows.append(cells)
    return Table(title, columns, rows, name=kind)


def _figures(data: RecordSet, fold: int) -> dict[str, float]:
    train, test = data.folds[fold]
    out: dict[str, float] = {}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model = BilevelSVC("rbf", random_state=0).fit(data.X[train], data.y[train])
        for kind, level, whose, sets in _sets(model, data, fold):
            known = scores(sets, data.y[test], model.classes_)
            for score, value in known.items():
                out[f"{score} {level:.2f} {kind} {whose}"] = value
    return out


def _sets(
    model: BilevelSVC, data: RecordSet, fold: int
) -> Iterator[tuple[str, float, str, np.ndarray]]:
    """Kind, level, whose, and the sets of the test rows."""
    train, test = data.folds[fold]
    X_test = data.X[test]
    split, rest = _split_machine(model, data.X[train], data.y[train])
    for kind in KINDS:
        per_class = kind == "class"
        split.calibrate(*rest, class_cond=per_class, seed=0)
        for level in LEVELS:
            ours = model.predict_set(X_test, level, class_conditional=per_class)
            theirs = split.predict_set(
                X_test, labels=False, confidence=level, smoothing=False
            )
            yield kind, level, "ours", ours
            smoothed = model.predict_set(X_test, level, per_class, smoothing=True)
            yield kind, level, "smoothed", smoothed
            yield kind, level, "split", theirs.astype(bool)


def _split_machine(
    model: BilevelSVC, X: np.ndarray, y: np.ndarray
) -> tuple[Any, tuple[np.ndarray, np.ndarray]]:
    """An SVC with the learned C and gamma on three quarters, and the other rows."""
    from crepes import WrapClassifier

    X_fit, X_rest, y_fit, y_rest = train_test_split(
        X, y, test_size=0.25, stratify=y, random_state=0
    )
    svc = SVC(C=model.C_, gamma=model.hyperparameters_["gamma"])
    folds = min(5, int(np.unique(y_fit, return_counts=True)[1].min()))
    splits = StratifiedKFold(folds, shuffle=True, random_state=0)
    wrapped = WrapClassifier(CalibratedClassifierCV(svc, ensemble=False, cv=splits))
    wrapped.fit(X_fit, y_fit)
    return wrapped, (X_rest, y_rest)


def scores(sets: np.ndarray, y: np.ndarray, classes: np.ndarray) -> dict[str, float]:
    """Coverage of all rows and of the rarest class, mean size, share of empty sets."""
    codes = np.searchsorted(classes, y)
    covered = sets[np.arange(len(y)), codes]
    members = np.bincount(codes, minlength=len(classes))
    rarest = np.argmin(np.where(members > 0, members, len(y) + 1))
    return {
        "coverage": float(covered.mean()),
        "rarest": float(covered[codes == rarest].mean()),
        "size": float(sets.sum(axis=1).mean()),
        "empty": float(np.mean(~sets.any(axis=1))),
    }
