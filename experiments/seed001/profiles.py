"""Figure 1: accuracy and loss on the folds held out, iteration after iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bisvm.published import LinearFolds
from experiments.common import drawing

# In the order of the figure: colour of the line and its band, dashes.
LINES: dict[str, dict[str, Any]] = {
    "bilevel-SGD": {"color": "0.6", "linestyle": "-"},
    "SGD+DCD, single": {"color": "0.35", "linestyle": (0, (4, 1.5))},
    "SGD+DCD, sweep": {"color": "0.0", "linestyle": "-"},
}
ROWS = ("accuracy %", "hinge loss H")


class Panel(NamedTuple):
    """One data set.

    profiles : by method, (seeds, 2, iterations)
    steps : evaluations of H that ours takes, the median
    ends : accuracy and H at which ours ends, means
    """

    profiles: Mapping[str, np.ndarray]
    steps: float
    ends: tuple[float, float]


def profile(folds: LinearFolds, coefs: np.ndarray) -> np.ndarray:
    """Accuracy in per cent and hinge of weights (iterations, d, q); (2, iterations)."""
    out = np.zeros((2, len(coefs)))
    for k, weights in enumerate(folds.validation.T):
        rows = np.flatnonzero(weights)
        margins = folds.labels[rows, k, None] * (folds.X[rows] @ coefs[:, :, k].T)
        out[0] += 100.0 * weights[rows] @ (margins > 0)
        out[1] += weights[rows] @ np.maximum(0.0, 1.0 - margins)
    return out


def draw(panels: Mapping[str, Panel]) -> Any:
    with drawing() as plt:
        figure, axes = plt.subplots(
            2, len(panels), figsize=(2.1 * len(panels), 4.2), sharex=True, squeeze=False
        )
        for column, (name, panel) in zip(axes.T, panels.items(), strict=True):
            column[0].set_title(name)
            for row, ax in enumerate(column):
                _draw_lines(ax, panel, row)
            column[-1].set_xlabel("iteration")
        for ax, label in zip(axes[:, 0], ROWS, strict=True):
            ax.set_ylabel(label)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _draw_lines(ax: Any, panel: Panel, row: int) -> None:
    for name, style in LINES.items():
        values = panel.profiles[name][:, row]
        at = np.arange(1, values.shape[1] + 1)
        mean, deviation = values.mean(axis=0), values.std(axis=0)
        low, high = mean - deviation, mean + deviation
        ax.fill_between(at, low, high, color=style["color"], alpha=0.15, linewidth=0)
        ax.plot(at, mean, label=name, **style)
    end = panel.ends[row]
    ax.plot([panel.steps, at[-1]], [end, end], color="k", linestyle=":")
    ax.plot(
        panel.steps,
        end,
        "D",
        mfc="w",
        mec="k",
        label="FoldNewton, after its evaluations",
    )
    ax.set_xscale("log")
    ax.set_xticks([1, 10, 100], ["1", "10", "100"])
    if row == 1:
        means = [values[:, row].mean(axis=0) for values in panel.profiles.values()]
        ax.set_ylim(0.0, 1.1 * np.max(means))
