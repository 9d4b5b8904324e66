"""Test error against the number of training rows, beside the grid search.

50, 100 and 200 rows of ten sets that have enough of them; means over the splits, on the
same rows for all methods.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.common import Context, Result, Table, drawing
from experiments.generalisation import methods, ranks
from experiments.generalisation.factors import compute
from experiments.generalisation.rows import Rows, of_fits

TITLE = "Generalisation: test error against the number of training rows"
FITS = ("curves_fits.csv",)

SIZES = (50, 100, 200)
SETS = (
    "ida_banana",
    "ida_diabetis",
    "ida_image",
    "ida_splice",
    "australian",
    "svmguide1",
    "magic04",
    "a1a",
    "moons + 10 noise",
    "xor + 8 noise",
)
METHODS = ("grid", methods.DEFAULT, "bilevel, one per feature", "bilevel, auto")


def run(context: Context) -> Result:
    rows = of_fits(context, *FITS)
    compute(rows, SETS, SIZES, list(METHODS), context.splits)
    curves = {name: _curves(rows, name, context.splits) for name in SETS}
    body = [
        [name, *(f"{curve[k]:.1f}" for k in range(len(SIZES)) for curve in by_method)]
        for name, by_method in curves.items()
    ]
    means = np.mean([np.array(by_method).T.ravel() for by_method in curves.values()], 0)
    body.append(["mean", *(f"{mean:.2f}" for mean in means)])
    columns = [f"{method}, {size}" for size in SIZES for method in METHODS]
    table = Table(
        f"Test error in %, mean over {context.splits} splits", ["set", *columns], body
    )
    notes = [_verdict(rows, curves, method, context.splits) for method in METHODS[1:]]
    return Result([table], {"": _picture(curves)}, notes)


def _curves(rows: Rows, name: str, splits: int) -> list[np.ndarray]:
    """Mean errors by size, one curve a method."""
    return [
        np.mean([rows.over_splits("error", name, n, m, splits) for n in SIZES], axis=1)
        for m in METHODS
    ]


def _verdict(
    rows: Rows, curves: dict[str, list[np.ndarray]], method: str, splits: int
) -> str:
    """On how many of the points the curve lies below that of the grid."""
    number = METHODS.index(method)
    below = [np.sum(c[number] < c[0]) for c in curves.values()]
    above = [np.sum(c[number] > c[0]) for c in curves.values()]
    p_worse = []
    for name in curves:
        for size in SIZES:
            own = rows.over_splits("error", name, size, method, splits)
            other = rows.over_splits("error", name, size, "grid", splits)
            overlap = rows.values("overlap", name, size, 0, "grid")
            p_worse.append(ranks.p_greater(own - other, overlap))
    worse = int(np.sum(ranks.holm(np.array(p_worse)) < ranks.LEVEL))
    return (
        f"{method}: below the grid on {sum(below)} of {len(p_worse)} points, above it "
        f"on {sum(above)}, beyond chance (Holm, 5%) on {worse}."
    )


def _picture(curves: dict[str, list[np.ndarray]]) -> Any:
    with drawing() as plt:
        figure, grid = plt.subplots(2, 5, figsize=(10, 4), sharex=True)
        for axes, (name, by_method) in zip(grid.flat, curves.items(), strict=False):
            for method, curve in zip(METHODS, by_method, strict=True):
                axes.plot(SIZES, curve, "o-", label=method)
            axes.set_title(name)
            axes.set_xscale("log")
            axes.set_xticks(SIZES, [str(size) for size in SIZES])
            axes.minorticks_off()
        grid[0, 0].set_ylabel("test error in %")
        grid[1, 0].set_ylabel("test error in %")
        figure.legend(
            *grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4
        )
    return figure
