"""A criterion over all classes of a row beside the mean over class tasks.

Sets of Fernandez-Delgado et al. (2014) with 3 to 15 classes and at most 800 rows; their
four folds. `BilevelSVC("rbf")` is tuned on each training part by the default criterion,
a calibrated logistic loss of every class task by itself, and by the multinomial
log-loss. Accuracy and log-loss are those of the test rows; `predict_proba` is
calibrated on the held-out rows of the search whatever the criterion.

The default may be chosen by the first two folds; the last two have no say.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVC
from bisvm.criteria import Multinomial
from experiments.classes import record
from experiments.classes.probabilities import CHOSEN, REPORTED, scores
from experiments.classes.record import RecordSet
from experiments.common import Context, Result, Table
from experiments.generalisation.rows import Rows

TITLE = "Several classes: a loss of every class task, or of all classes of a row"
FITS = ("criteria_fits.csv",)

ROWS, CLASSES = 800, (3, 15)
CRITERIA: dict[str, Any] = {
    "auto": "auto",
    "multinomial": "multinomial",
    "multinomial, no intercepts": Multinomial(intercepts=False),
}
# Pairs of classes have no intercepts.
TRIED = [("ovr", name) for name in CRITERIA]
TRIED += [("ovo", "auto"), ("ovo", "multinomial")]
FIGURES = ("accuracy", "log-loss", "cpu seconds")


def run(context: Context) -> Result:
    assert context.output is not None
    held = Rows(
        context.output / "classes" / "criteria_fits.csv",
        ("set", "fold", "tasks", "criterion"),
        FIGURES,
    )
    found: dict[tuple[str, int, str, str], dict[str, Any]] = {}
    names = []
    for name in context.chosen(record.names()):
        data = record.load(name)
        if len(data.y) > ROWS or not CLASSES[0] <= data.n_classes <= CLASSES[1]:
            continue
        names.append(name)
        for fold in range(4):
            for tasks, criterion in TRIED:
                key = name, fold, tasks, criterion
                found[key] = held.need(
                    key, partial(_figures, data, fold, tasks, criterion)
                )
    rows = [
        _summary(found, names, *tried, what, folds)
        for what, folds in (("0 and 1", CHOSEN), ("2 and 3", REPORTED))
        for tried in TRIED
    ]
    columns = {"folds": "", "class tasks": "", "criterion": "", "sets": "d"}
    columns |= {"accuracy": ".2f", "log-loss": ".4f", "cpu seconds": ".1f"}
    columns |= {"sets more accurate": "d", "less": "d", "sets of lower log-loss": "d"}
    return Result([Table("Means over the sets", columns, rows)])


def _summary(
    found: dict[Any, dict[str, Any]],
    names: list[str],
    tasks: str,
    criterion: str,
    what: str,
    folds: tuple[int, ...],
) -> list[Any]:
    """Means, and on how many sets it is better than criterion="auto"."""

    def means(figure: str, whose: str) -> np.ndarray:
        return np.array(
            [
                np.mean([found[name, fold, tasks, whose][figure] for fold in folds])
                for name in names
            ]
        )

    own = {figure: means(figure, criterion) for figure in FIGURES}
    more = own["accuracy"] - means("accuracy", "auto")
    lower = own["log-loss"] < means("log-loss", "auto")
    return [
        what,
        tasks,
        criterion,
        len(names),
        *(own[figure].mean() for figure in FIGURES),
        int(np.sum(more > 0)),
        int(np.sum(more < 0)),
        int(np.sum(lower)),
    ]


def _figures(
    data: RecordSet, fold: int, tasks: Any, criterion: str
) -> dict[str, float]:
    train, test = data.folds[fold]
    model = BilevelSVC(
        "rbf", multi_class=tasks, criterion=CRITERIA[criterion], random_state=0
    )
    began = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model.fit(data.X[train], data.y[train])
    seconds = time.process_time() - began
    codes = np.searchsorted(model.classes_, data.y[test])
    figures = scores(model.predict_proba(data.X[test]), codes)
    return {
        "accuracy": 100.0 * float(model.score(data.X[test], data.y[test])),
        "log-loss": figures["log-loss"],
        "cpu seconds": seconds,
    }
