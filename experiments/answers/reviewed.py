"""Data of a hostile review: does the search find what a grid finds?

The comparison of `structure` on the sets of `reviewed_data`, written after the search
by a reviewer who looked for its failures. Fits below the grid are tested once more, on
10,000 further rows, as in `later`.

The grid's results are kept in `reviewed_grid.csv`.
"""

from __future__ import annotations

from experiments.answers.later import compare_twice
from experiments.answers.reviewed_data import SETS
from experiments.common import Context, Result

TITLE = "Answers: data of a hostile review, against a grid"
FITS = ("reviewed_fits.csv", "reviewed_further.csv")


def run(context: Context) -> Result:
    return compare_twice(context, "reviewed", SETS)
