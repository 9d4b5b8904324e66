"""Ways to tune an SVM, on thirty sets: grid, Optuna, and ours.

Test errors, mean ranks with Friedman's test and Nemenyi's critical difference, and set
by set a paired test against the grid search, one-sided, corrected for the number of
sets (Holm). Rows are those of `factors`.
"""

from __future__ import annotations

import numpy as np

from experiments.common import Context, Result, Table
from experiments.generalisation import methods, ranks
from experiments.generalisation.data import SETS, TRAIN_ROWS
from experiments.generalisation.factors import Family, compute, reported
from experiments.generalisation.rows import Rows, of_fits

TITLE = "Generalisation: ways to tune an SVM on many sets"
FITS = ("ways_fits.csv",)


def run(context: Context) -> Result:
    rows = of_fits(context, *FITS)
    names = list(methods.METHODS)
    compute(rows, SETS, [TRAIN_ROWS], names, context.splits)
    family = Family(rows, "method", names, context.splits)
    against = against_grid(rows, names[1:], context.splits)
    return reported([family], (_widths(family),), (against,))


def _widths(family: Family) -> str:
    """One gamma per feature against one, where it is worst."""
    one, each = (
        family.members.index(name)
        for name in (methods.DEFAULT, "bilevel, one per feature")
    )
    worse = {
        name: by_method[each].mean() - by_method[one].mean()
        for name, by_method in family.errors.items()
    }
    name = max(worse, key=worse.__getitem__)
    return f"One gamma per feature against one: at worst {worse[name]:+.2f} ({name})."


def against_grid(rows: Rows, names: list[str], splits: int) -> Table:
    """Set by set: difference from the grid, and whether it is beyond chance."""
    marks = {m: _marks(rows, m, splits) for m in names}
    body = [[name, *(marks[m][name] for m in names)] for name in SETS]
    for sign, word in (("-", "better"), ("+", "worse")):
        counts = [
            sum(t.endswith(f" {sign}*") for t in marks[m].values()) for m in names
        ]
        body.append([f"sets {word} (Holm, 5%)", *map(str, counts)])
    return Table(
        "Difference from the grid search in points of test error; -* better, +* worse "
        "beyond chance",
        ["set", *names],
        body,
        name="against_grid",
    )


def _marks(rows: Rows, method: str, splits: int) -> dict[str, str]:
    differences, better, worse = [], [], []
    for name in SETS:
        pair = [
            rows.over_splits("error", name, TRAIN_ROWS, m, splits)
            for m in (method, "grid")
        ]
        overlap = rows.values("overlap", name, TRAIN_ROWS, 0, "grid") or 0.0
        difference = pair[0] - pair[1]
        differences.append(difference.mean())
        better.append(ranks.p_greater(-difference, overlap))
        worse.append(ranks.p_greater(difference, overlap))
    signs = [
        " -*" if down < ranks.LEVEL else " +*" if up < ranks.LEVEL else ""
        for down, up in zip(
            ranks.holm(np.array(better)), ranks.holm(np.array(worse)), strict=True
        )
    ]
    return {
        name: f"{difference:+z.2f}{sign}"
        for name, difference, sign in zip(SETS, differences, signs, strict=True)
    }
