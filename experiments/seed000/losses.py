"""Figures 2.3 to 2.5, 5.1 and 5.3: the losses, their derivatives, and fourclass.

The modified logarithmic loss (mu = 7.5) and the quartic one (epsilon = 2/5) beside
the hinge (2.3 to 2.5); both for the other parameters of Table 5.1 (5.1); the fourclass
points (5.3). The table says how far each loss is from the hinge, and the largest
curvature: as it comes closer, the second derivative grows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bisvm import datasets, losses
from experiments.common import Context, Result, Table, drawing

TITLE = "Figures 2.3-2.5, 5.1, 5.3: losses, their derivatives, fourclass"
MARGINS = np.linspace(-0.5, 2.5, 601)
FIRST = {
    "modified log., μ = 7.5": losses.ModifiedLog(7.5),
    "quartic, ε = 0.4": losses.Quartic(0.4),
}
LOGARITHMIC = (7.5, 12.0, 24.0, 32.0, 64.0)
QUARTIC = (0.4, 0.25, 0.125, 0.1)
DERIVATIVES = ("loss", "first derivative", "second derivative")


def run(context: Context) -> Result:
    figures = {"figures_2_3_to_2_5": _derivatives(), "figure_5_1": _parameters()}
    X, y = datasets.load("fourclass", return_X_y=True)
    figures["figure_5_3"] = _fourclass(X, y)
    return Result([_table()], figures, _notes(X, y))


def hinge(u: np.ndarray) -> np.ndarray:
    return np.maximum(0.0, 1.0 - u)


def distance(loss: losses.Loss) -> float:
    """The largest difference from the hinge."""
    return float(np.max(np.abs(loss.evaluate(MARGINS, 1.0)[0] - hinge(MARGINS))))


def _table() -> Table:
    every = [
        (f"modified log., mu = {mu:g}", losses.ModifiedLog(mu)) for mu in LOGARITHMIC
    ]
    every += [(f"quartic, eps = {eps:g}", losses.Quartic(eps)) for eps in QUARTIC]
    rows = [
        [name, distance(loss), float(np.max(loss.evaluate(MARGINS, 1.0)[2]))]
        for name, loss in every
    ]
    columns = {"loss": "", "largest distance from the hinge": ".4f"}
    columns["largest second derivative"] = ".2f"
    return Table("How close the losses come to the hinge", columns, rows)


def _derivatives() -> Any:
    with drawing() as plt:
        figure, axes = plt.subplots(1, 3, figsize=(9, 2.8))
        axes[0].plot(MARGINS, hinge(MARGINS), color="0.7", label="hinge")
        axes[1].plot(MARGINS, np.where(MARGINS < 1.0, -1.0, 0.0), color="0.7")
        for (name, loss), line in zip(FIRST.items(), ("k-", "k--"), strict=True):
            found = loss.evaluate(MARGINS, 1.0)
            for ax, values in zip(axes, found, strict=True):
                ax.plot(MARGINS, values, line, label=name)
        for ax, title in zip(axes, DERIVATIVES, strict=True):
            ax.set(title=title, xlabel="margin u = y f")
        axes[0].legend()
    return figure


def _parameters() -> Any:
    shades = [str(shade) for shade in np.linspace(0.7, 0.0, len(LOGARITHMIC))]
    columns = {
        "μ": [(mu, losses.ModifiedLog(mu)) for mu in LOGARITHMIC],
        "ε": [(eps, losses.Quartic(eps)) for eps in QUARTIC],
    }
    with drawing() as plt:
        figure, axes = plt.subplots(3, 2, figsize=(7, 6.5), sharex=True)
        for column, (symbol, every) in zip(axes.T, columns.items(), strict=True):
            for (value, loss), shade in zip(every, shades, strict=False):
                found = loss.evaluate(MARGINS, 1.0)
                for ax, values in zip(column, found, strict=True):
                    label = f"{symbol} = {value:g}"
                    ax.plot(MARGINS, values, color=shade, label=label)
            column[0].legend()
            column[-1].set_xlabel("margin u = y f")
        axes[0, 0].set_title("modified logarithmic")
        axes[0, 1].set_title("quartic")
        for ax, title in zip(axes[:, 0], DERIVATIVES, strict=True):
            ax.set_ylabel(title)
    return figure


def _fourclass(X: np.ndarray, y: np.ndarray) -> Any:
    with drawing() as plt:
        figure, ax = plt.subplots(figsize=(4, 3.6))
        for label, style in zip(np.unique(y), ("ko", "k+"), strict=True):
            rows = y == label
            ax.plot(*X[rows].T, style, mfc="w", markersize=3, label=f"class {label}")
        ax.set(xlabel="feature 1", ylabel="feature 2")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def _notes(X: np.ndarray, y: np.ndarray) -> list[str]:
    n = len(y)
    first = [f"{name}: {distance(loss):.3f}" for name, loss in FIRST.items()]
    return [
        "Largest distance from the hinge, figure 2.3: " + "; ".join(first) + ".",
        f"Fourclass: {n} points, {int(np.sum(y == y.max()))} of them of class "
        f"{y.max()}; the features are integers of the unscaled file.",
    ]
