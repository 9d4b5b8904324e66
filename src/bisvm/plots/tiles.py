"""Small pictures side by side on one pair of axes: filters, spectra, feature maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bisvm.plots.canvas import INK, LIGHT, axes, literal

# Part of a cell that its picture fills.
FILL = 0.9
INCHES = 0.95


def draw_tiles(
    cells: Sequence[Sequence[np.ndarray]],
    *,
    columns: Sequence[str],
    rows: Sequence[str],
    signed: bool | Sequence[bool],
    ax: Any = None,
) -> tuple[Any, Any]:
    """Figure and axes with one picture a cell.

    cells : rows of arrays, (length,) for a line, (height, width) for grey values or
        (height, width, 3) for colours. Each has a scale of its own.
    signed : of every column, whether zero is middle grey; else the least value is black
    """
    n_rows, n_columns = len(cells), len(cells[0])
    flags = [signed] * n_columns if isinstance(signed, bool) else list(signed)
    size = 1.0 + INCHES * n_columns, 0.5 + INCHES * n_rows
    figure, ax = axes(ax, (max(size[0], 2.5), size[1]))
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            draw = _draw_line if np.ndim(cell) == 1 else _draw_image
            draw(ax, np.asarray(cell, dtype=float), i, j, flags[j])
    ax.set_aspect("equal")
    ax.set_xlim(0, n_columns)
    ax.set_ylim(n_rows, 0)
    ax.set_xticks(np.arange(n_columns) + 0.5, [literal(name, 14) for name in columns])
    ax.set_yticks(np.arange(n_rows) + 0.5, [literal(name, 28) for name in rows])
    ax.tick_params(length=0, labelsize="small", labeltop=True, labelbottom=False)
    ax.spines[:].set_visible(False)
    return figure, ax


def _draw_image(ax: Any, cell: np.ndarray, i: int, j: int, signed: bool) -> None:
    """As large as fits, with square pixels."""
    height, width = cell.shape[:2]
    half = 0.5 * FILL * np.array([width, height]) / max(height, width)
    extent = (
        j + 0.5 - half[0],
        j + 0.5 + half[0],
        i + 0.5 + half[1],
        i + 0.5 - half[1],
    )
    ax.imshow(
        _brightness(cell, signed),
        cmap="gray",
        vmin=0.0,
        vmax=1.0,
        extent=extent,
        interpolation="nearest",
    )
    outline = np.array(extent)[[0, 1, 1, 0, 0]], np.array(extent)[[2, 2, 3, 3, 2]]
    ax.plot(*outline, color="0.6", linewidth=0.6)


def _brightness(cell: np.ndarray, signed: bool) -> np.ndarray:
    """Between 0 and 1: zero in the middle, or from the least to the largest value."""
    if signed:
        return 0.5 + 0.5 * cell / max(float(np.abs(cell).max()), 1e-300)
    low, high = float(cell.min()), float(cell.max())
    return (cell - low) / max(high - low, 1e-300)


def _draw_line(ax: Any, cell: np.ndarray, i: int, j: int, signed: bool) -> None:
    level = cell / max(float(np.abs(cell).max()), 1e-300)
    x = j + 0.5 + FILL * (np.linspace(0.0, 1.0, len(cell)) - 0.5)
    ax.plot([x[0], x[-1]], [i + 0.5] * 2, color=LIGHT, linewidth=0.7)
    ax.plot(x, i + 0.5 - 0.5 * FILL * level, color=INK, linewidth=1.2)
