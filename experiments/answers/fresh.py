"""Data of other kinds: does the search find what a grid finds?

The comparison of `structure` on the sets of `fresh_data`, which were written after
the search and without reading its code. No set was changed or left out after a run.

The grid's results are kept in `fresh_grid.csv`.
"""

from __future__ import annotations

from experiments.answers.fresh_data import SETS, halves
from experiments.answers.structure import compare
from experiments.common import Context, Result

TITLE = "Answers: data of other kinds, against a grid"
FITS = ("fresh_fits.csv",)


def run(context: Context) -> Result:
    return compare(context, "fresh", SETS, halves)
