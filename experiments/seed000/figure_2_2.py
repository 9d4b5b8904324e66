"""Figure 2.2: the validation error H over c, iris.

The thesis evaluates H for 1 <= c <= 10^4 to show that it is not convex. It does not say
which split or loss was used: both losses are drawn for the first split, and the quartic
loss for all others in grey. Data and machine are those of Table 5.1.
"""

from __future__ import annotations

import numpy as np

from experiments.common import Context, Result, Spread, Table, drawing, seed_H
from experiments.seed000.descent import LOSSES, curve, iris_splits, linear_objective

TITLE = "Figure 2.2: H over c, iris"
LINES = {"modified log.": "--", "quartic": "-"}


def run(context: Context) -> Result:
    c = np.geomspace(1.0, 1e4, 81)
    curves = {name: [] for name in LOSSES}
    for data, *_ in iris_splits(context.splits):
        for name, loss in LOSSES.items():
            curves[name].append(seed_H(curve(linear_objective(data, loss), c)))
    with drawing() as plt:
        figure, ax = plt.subplots(figsize=(5, 3.2))
        ax.plot(c, np.transpose(curves["quartic"][1:]), color="0.8", linewidth=0.7)
        for name, line in LINES.items():
            ax.plot(c, curves[name][0], "k" + line, label=name)
        ax.set(xscale="log", xlabel="c", ylabel="H", ylim=(0, None))
        ax.legend(title="first split")
    columns = {"loss": "", "c at the minimum": ".1f", "H": ".4f", "H at c = 1": ".3f"}
    columns |= {"H at c = 10^4": ".3f"}
    rows = [_row(name, c, np.array(ours)) for name, ours in curves.items()]
    return Result([Table("Least H on the curve", columns, rows)], {"": figure})


def _row(name: str, c: np.ndarray, H: np.ndarray) -> list:
    return [
        name,
        Spread.of(c[H.argmin(axis=1)]),
        Spread.of(H.min(axis=1)),
        Spread.of(H[:, 0]),
        Spread.of(H[:, -1]),
    ]
