"""Figure 5.2: H over c with the iterates, iris.

Four panels: L-BFGS-B and RPROP from c = 9, modified logarithmic and quartic loss, over
the curve of H from a fine grid. Data, machine and what is not known are those of
Table 5.1; one split is shown, the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bisvm.optimizers import LBFGS
from bisvm.published import RPROP
from experiments.common import Context, Result, Table, drawing, seed_H
from experiments.seed000.descent import (
    LOSSES,
    Path,
    curve,
    descend,
    iris_splits,
    linear_objective,
)

TITLE = "Figure 5.2: H over c with the iterates, iris"
START = 9.0
OPTIMIZERS = {"L-BFGS-B": LBFGS(), "RPROP": RPROP()}


def run(context: Context) -> Result:
    data, *_ = iris_splits(1)[0]
    c = np.linspace(5.0, 150.0, 146)
    rows = []
    with drawing() as plt:
        figure, axes = plt.subplots(2, 2, figsize=(7, 5), sharex=True, sharey=True)
        for row, (loss_name, loss) in zip(axes, LOSSES.items(), strict=True):
            objective = linear_objective(data, loss)
            H = seed_H(curve(objective, c))
            for ax, (name, optimizer) in zip(row, OPTIMIZERS.items(), strict=True):
                path = descend(objective, optimizer, -np.log([START]))
                _panel(ax, c, H, path)
                ax.set_title(f"{name}, {loss_name}: {path.evaluations} evaluations")
                best_c = float(np.exp(-path.theta[path.best, 0]))
                rows.append([loss_name, name, path.evaluations, best_c, path.H.min()])
        for ax in axes[-1]:
            ax.set_xlabel("c")
        for ax in axes[:, 0]:
            ax.set_ylabel("H")
    columns = {"loss": "", "optimizer": "", "evaluations": "", "c": ".2f", "H": ".5f"}
    return Result([Table("From c = 9, first split", columns, rows)], {"": figure})


def _panel(ax: Any, c: np.ndarray, H: np.ndarray, path: Path) -> None:
    ax.plot(c, H, color="0.6")
    visited = np.exp(-path.theta[:, 0])
    ax.plot(visited, path.H, "o", mfc="none", mec="k")
    ax.plot(visited[path.best], path.H.min(), "k*", markersize=9)
    ax.set(xlim=(0, c[-1]), ylim=(0, 1.15 * H.max()))
