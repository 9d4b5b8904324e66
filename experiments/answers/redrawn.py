"""Sets on which a fit was more than two points below a grid, drawn five times more.

In `structure` and `fresh`, a few hundred rows test every machine, which does not tell
chance from a loss: the standard error of a difference is about 1.5 points. Here both
machines learn from five other draws of the same sets, and 10,000 rows test them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from experiments.answers.data import Drawn, Halves, checkerboard, sine
from experiments.answers.fresh_data import oblique_xor, sine_product
from experiments.answers.structure import accuracies_of, results
from experiments.common import Context, Result, Table
from experiments.generalisation.rows import Rows

TITLE = "Answers: five further draws of sets that were below a grid"
FITS = ("redrawn_rows.csv",)

DRAWS = 5
TEST_ROWS = 10_000
KERNELS = ("auto", "rbf")
METHODS = ("grid", *KERNELS)

# How many rows are trained on, and the generator.
SETS: dict[str, tuple[int, Callable[..., Drawn]]] = {
    "sin(12x) sin(12y)": (500, partial(sine_product, j=12, k=12)),
    "oblique XOR of sines": (400, oblique_xor),
    "sin(25x) + 1 noise": (700, partial(sine, k=25, noise=1)),
    "checkerboard 3 + 2 noise": (600, partial(checkerboard, squares=3, noise=2)),
}


def run(context: Context) -> Result:
    path = results(context) / "redrawn_rows.csv"
    held = Rows(path, ("set", "rows", "draw"), METHODS)
    for name in context.chosen(SETS):
        rows, generate = SETS[name]
        for draw in range(1, DRAWS + 1):
            data = _drawn(generate, rows, draw)
            held.need((name, rows, draw), partial(accuracies_of, data, KERNELS))
    columns = {"set": "", "rows": "d", **dict.fromkeys(METHODS, ".2f")}
    columns |= {f"{kernel} - grid": "" for kernel in KERNELS}
    words = f"Accuracy in % on {TEST_ROWS} rows, mean of {DRAWS} draws"
    return Result([Table(words, columns, list(_lines(held)), name="means")])


def _drawn(generate: Callable[..., Drawn], rows: int, draw: int) -> Halves:
    X, y = generate(rows + TEST_ROWS, draw=draw)
    return Halves(X[:rows], y[:rows], X[rows:], y[rows:])


def _lines(held: Rows) -> Iterator[list[object]]:
    """Means, and mean differences with their standard errors over the draws."""
    for name, (rows, _) in SETS.items():
        keys = [(name, str(rows), str(draw)) for draw in range(1, DRAWS + 1)]
        if not all(key in held.held for key in keys):
            continue
        found = {
            method: np.array([held.held[key][method] for key in keys])
            for method in METHODS
        }
        means = [float(values.mean()) for values in found.values()]
        yield [name, rows, *means, *_differences(found)]


def _differences(found: dict[str, np.ndarray]) -> Iterator[str]:
    for kernel in KERNELS:
        differences = found[kernel] - found["grid"]
        error = differences.std(ddof=1) / DRAWS**0.5
        yield f"{differences.mean():+.2f} +- {error:.2f}"
