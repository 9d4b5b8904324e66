"""Data drawn after the search was written: does the search find what a grid finds?

The comparison of `structure` on the sets of `later_data`, which were chosen and written
without reading the search. No set was changed or left out after the first run.

Where a fit is below the grid, both machines are tested once more, on 10,000 further
rows of the same set: half a set has too few rows to tell chance from a loss.

The grid's results are kept in `later_grid.csv`.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

from sklearn.svm import SVC

from bisvm import BilevelSVC
from experiments.answers.data import Halves
from experiments.answers.later_data import SETS, Drawing
from experiments.answers.structure import compare, grid_name, kept_grids, results
from experiments.common import Context, Result, Table
from experiments.generalisation.rows import Rows

TITLE = "Answers: data drawn after the search was written, against a grid"
FITS = ("later_fits.csv", "later_further.csv")

FURTHER = 10_000
FIGURES = ("accuracy",)


def run(context: Context) -> Result:
    return compare_twice(context, "later", SETS)


def compare_twice(context: Context, title: str, sets: dict[str, Drawing]) -> Result:
    """The comparison, and the second test of fits that are below the grid."""
    result = compare(context, title, sets, lambda name: sets[name].halves())
    below = {row[0]: row[-1] for row in result.tables[0].rows if row[-1]}
    again = _again(context, title, sets, below)
    return Result([*result.tables, again], notes=result.notes)


def _again(
    context: Context, title: str, sets: dict[str, Drawing], below: dict[str, str]
) -> Table:
    """The second test, of the fits that are named for each set."""
    folder, rows = results(context), []
    held = Rows(folder / f"{title}_further.csv", ("set", "rows", "machine"), FIGURES)
    for name, flags in below.items():
        key, data = (name, FURTHER), sets[name].halves()
        found = kept_grids(folder, title).held[name, str(len(data.y)), grid_name()]
        machine = SVC(C=found["C"], gamma=found["gamma"])
        grid = held.need((*key, "grid"), partial(_tested, sets[name], data, machine))
        for flag in flags.split(", "):
            kernel = flag.rstrip("!")
            model = BilevelSVC(kernel, cv=data.folds, random_state=0)
            fit = held.need((*key, kernel), partial(_tested, sets[name], data, model))
            both = grid["accuracy"], fit["accuracy"]
            rows.append([name, flag, *both, both[1] - both[0]])
    columns = {"set": "", "kernel": "", "grid": ".2f", "fit": ".2f"}
    columns |= {"fit - grid": "+.2f"}
    words = f"Those below the grid, on {FURTHER} further rows: accuracy in %"
    return Table(words, columns, rows, name="again")


def _tested(drawing: Drawing, data: Halves, model: Any) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.X, data.y)
    return {"accuracy": 100.0 * model.score(*drawing.further(FURTHER))}
