"""What all displays share: axes, scales, labels, and rows of small images.

matplotlib is imported inside functions, when something is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

import numpy as np

from bisvm.core.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Data = TypeVar("Data")
# One dark blue and three greys whose lightness differs in print as well.
INK, MEDIUM, LIGHT, PALE = "#2f5d8a", "0.45", "0.75", "0.94"
LINE_STYLES = ("-", "--", "-.", ":")
# The share of its cell that a small image fills, and the size of a cell in inches.
FILL, CELL = 0.9, 0.95


class Display(Generic[Data]):
    """A plot of `data`; create one by `from_estimator` of a subclass.

    Parameters
    ----------
    data : tuple
        What is drawn.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, *, data: Data):
        self.data = data

    def _open(self, ax: Axes | None, size: tuple[float, float]) -> Axes:
        """Set figure and axes: the given ones, or new ones of this size in inches."""
        if ax is None:
            self.figure_, self.ax_ = _new_axes(size)
        else:
            self.figure_, self.ax_ = ax.figure, ax  # type: ignore[assignment]
        return self.ax_


def _new_axes(size: tuple[float, float]) -> tuple[Figure, Axes]:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib, which is not installed: pip install bisvm[plots]"
        ) from error
    return plt.subplots(figsize=size, layout="constrained")


def literal(text: object, most: int = 48) -> str:
    """Text from data on one line of at most `most` characters; $ starts no formula."""
    shown = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    shown = shown if len(shown) <= most else shown[: most - 1] + "…"
    return shown.replace("$", r"\$")


def hide_frame(ax: Axes) -> None:
    """Hide the upper and the right edge."""
    ax.spines[["top", "right"]].set_visible(False)


def horizontal_bars(ax: Axes, names: Sequence[str]) -> None:
    """Name the bars of a horizontal chart, the first one at the top."""
    ax.set_yticks(range(len(names)), [literal(name) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    hide_frame(ax)


def log_axis(
    ax: Axes, axis: Literal["x", "y"], subs: Sequence[float] | None = None
) -> None:
    """Make an axis logarithmic, with plain numbers.

    subs : multiples of powers of ten that get a tick; by default the wider the range,
        the fewer
    """
    from matplotlib.ticker import LogLocator, NullLocator

    if axis == "x":
        ax.set_xscale("log")
        line, (low, high) = ax.xaxis, ax.get_xlim()
    else:
        ax.set_yscale("log")
        line, (low, high) = ax.yaxis, ax.get_ylim()  # type: ignore[assignment]
    few = (1, 2, 5) if high < 1e2 * low else (1, 3) if high < 1e4 * low else (1,)
    locator = LogLocator(subs=few if subs is None else subs, numticks=9)
    line.set_major_locator(locator)
    line.set_minor_locator(NullLocator())
    line.set_major_formatter("{x:.4g}")


# Ticks of a loss, which often stays within one power of ten.
LOSS_TICKS = (1, 1.5, 2, 3, 5, 7)


# --- rows of small images -------------------------------------------------------------


class Tiles(Display[Data]):
    """Small images in rows: filters, spectra, feature maps."""

    def _draw_tiles(
        self,
        cells: Sequence[Sequence[Array]],
        *,
        columns: Sequence[str],
        rows: Sequence[str],
        signed: Sequence[bool],
        ax: Axes | None,
    ) -> None:
        """Draw one image in each cell, each with its own scale.

        cells : rows of arrays: (length,) is drawn as a line, (height, width) in grey,
            (height, width, 3) in colour
        signed : for each column, whether zero is middle grey; else the lowest value is
            black
        """
        n_rows, n_columns = len(cells), len(cells[0])
        ax = self._open(ax, (max(1.0 + CELL * n_columns, 2.5), 0.5 + CELL * n_rows))
        for i, row in enumerate(cells):
            for j, cell in enumerate(row):
                draw = _draw_line if np.ndim(cell) == 1 else _draw_image
                draw(ax, np.asarray(cell, dtype=float), i, j, signed[j])
        ax.set_aspect("equal")
        ax.set_xlim(0, n_columns)
        ax.set_ylim(n_rows, 0)
        ax.set_xticks(np.arange(n_columns) + 0.5, [literal(one, 14) for one in columns])
        ax.set_yticks(np.arange(n_rows) + 0.5, [literal(name, 28) for name in rows])
        ax.tick_params(length=0, labelsize="small", labeltop=True, labelbottom=False)
        ax.spines[:].set_visible(False)


def _draw_image(ax: Axes, cell: Array, i: int, j: int, signed: bool) -> None:
    """As large as fits, with square pixels."""
    height, width = cell.shape[:2]
    x, y = 0.5 * FILL * np.array([width, height]) / max(height, width)
    left, right, bottom, top = j + 0.5 - x, j + 0.5 + x, i + 0.5 + y, i + 0.5 - y
    ax.imshow(
        _brightness(cell, signed),
        cmap="gray",
        vmin=0.0,
        vmax=1.0,
        extent=(left, right, bottom, top),
        interpolation="nearest",
    )
    outline = [left, right, right, left, left], [bottom, bottom, top, top, bottom]
    ax.plot(*outline, color="0.6", linewidth=0.6)


def _brightness(cell: Array, signed: bool) -> Array:
    """Map to [0, 1]: zero to the middle, or the lowest value to 0."""
    if signed:
        return 0.5 + 0.5 * cell / max(float(np.abs(cell).max()), 1e-300)
    low, high = float(cell.min()), float(cell.max())
    return (cell - low) / max(high - low, 1e-300)


def _draw_line(ax: Axes, cell: Array, i: int, j: int, signed: bool) -> None:
    level = cell / max(float(np.abs(cell).max()), 1e-300)
    x = j + 0.5 + FILL * (np.linspace(0.0, 1.0, len(cell)) - 0.5)
    ax.plot([x[0], x[-1]], [i + 0.5] * 2, color=LIGHT, linewidth=0.7)
    ax.plot(x, i + 0.5 - 0.5 * FILL * level, color=INK, linewidth=1.2)
