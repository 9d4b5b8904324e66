"""The filters of a convolutional machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bisvm.core.types import Array
from bisvm.plots.canvas import (
    INK,
    LIGHT,
    LINE_STYLES,
    MEDIUM,
    Display,
    hide_frame,
    literal,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Frequencies along each axis of a two-dimensional spectrum, and of a signal's.
SPECTRUM, LINE = 33, 256
# The share of its cell that a small image fills, and the size of a cell in inches.
FILL, CELL = 0.9, 0.95


class FiltersData(NamedTuple):
    """Learned filters.

    filters : (n_tasks, n_filters, *shape), where shape is (length,) or (height, width),
        followed by channels if there are several
    tasks : names of the class tasks; one empty name if they share their filters
    signal : whether filters are one-dimensional
    """

    filters: Array
    tasks: tuple[str, ...]
    signal: bool

    def planes(self) -> tuple[Array, list[str]]:
        """Images of every task's filters, and names of the columns.

        Three channels of an image are drawn in colour, others as one image each.
        """
        bank = self.filters
        n_tasks, n = bank.shape[:2]
        spatial = 1 if self.signal else 2
        in_colour = not self.signal and bank.shape[-1] == 3
        if bank.ndim == 2 + spatial or in_colour:
            return bank, [f"{k + 1}" for k in range(n)]
        planes = np.moveaxis(bank, -1, 2)
        names = [f"{k + 1}, ch. {c + 1}" for k, c in np.ndindex(planes.shape[1:3])]
        return planes.reshape(n_tasks, -1, *planes.shape[3:]), names


def filters_data(estimator: BaseEstimator) -> FiltersData:
    """Collect the filters of a fitted ConvolutionalSVC, or of a convolution kernel."""
    check_is_fitted(estimator)
    filters = getattr(estimator, "filters_", None)
    if filters is None:
        filters = _filters_of_kernel(estimator)
    filters = np.asarray(filters, dtype=float)
    shape = getattr(estimator, "image_shape_", None)
    # A signal with channels has filters of four dimensions, as images have.
    signal = filters.ndim == 3 or (shape is not None and len(shape) == 1)
    if filters.shape[-1] == 1 and filters.ndim > (3 if signal else 4):
        filters = filters[..., 0]
    return FiltersData(filters, _task_names(estimator, len(filters)), signal)


def _filters_of_kernel(estimator: BaseEstimator) -> Array:
    kernels = getattr(estimator, "kernel_", None)
    kernels = kernels if isinstance(kernels, list) else [kernels]
    found = []
    for kernel in kernels:
        transform = getattr(kernel, "transform", None)
        first = getattr(transform, "transforms", (transform,))[0]
        filters = getattr(first, "filters", None)
        if filters is not None:
            found.append(np.asarray(filters, dtype=float))
    if len(found) != len(kernels):
        raise ValueError(
            f"{type(estimator).__name__} has no filters; fit a ConvolutionalSVC, or a "
            "kernel on a convolution, such as RBF() @ Convolution1D()."
        )
    return np.stack(found)


def _task_names(estimator: BaseEstimator, n: int) -> tuple[str, ...]:
    tasks = getattr(estimator, "tasks_", None)
    if n == 1 or tasks is None or len(tasks) != n:
        return tuple("" if n == 1 else f"task {k + 1}" for k in range(n))
    return tuple(
        f"{one} / {'rest' if other is None else other}" for one, other in tasks
    )


class FiltersDisplay(Display[FiltersData]):
    """Draw the learned filters, one row for each class task.

    Filters of images are in grey with zero in the middle, each on its own scale.
    Filters of signals are lines.
    """

    _data_of = staticmethod(filters_data)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw on these axes, or on those of a new figure."""
        planes, names = self.data.planes()
        self._draw_tiles(planes, names, ax, signed=True)
        self.ax_.set_xlabel("filter", fontsize="small")
        return self

    def _draw_tiles(
        self, planes: Array, columns: list[str], ax: Axes | None, *, signed: bool
    ) -> None:
        """Draw one image in each cell, each with its own scale.

        planes : (rows, columns, ...) arrays: (length,) is drawn as a line, (height,
            width) in grey, (height, width, 3) in colour
        signed : whether zero is middle grey; else the lowest value is black
        """
        n_rows, n_columns = planes.shape[:2]
        ax = self._open(ax, (max(1.0 + CELL * n_columns, 2.5), 0.5 + CELL * n_rows))
        for i, j in np.ndindex(n_rows, n_columns):
            if planes.ndim == 3:
                _draw_line(ax, planes[i, j], i, j)
            else:
                _draw_image(ax, planes[i, j], i, j, signed)
        ax.set_aspect("equal")
        ax.set_xlim(0, n_columns)
        ax.set_ylim(n_rows, 0)
        ax.set_xticks(np.arange(n_columns) + 0.5, columns)
        rows = [literal(name, 28) for name in self.data.tasks]
        ax.set_yticks(np.arange(n_rows) + 0.5, rows)
        ax.tick_params(length=0, labelsize="small", labeltop=True, labelbottom=False)
        ax.spines[:].set_visible(False)


def _draw_image(ax: Axes, cell: Array, i: int, j: int, signed: bool) -> None:
    """As large as fits, with square pixels."""
    height, width = cell.shape[:2]
    x, y = 0.5 * FILL * np.array([width, height]) / max(height, width)
    left, right, bottom, top = j + 0.5 - x, j + 0.5 + x, i + 0.5 + y, i + 0.5 - y
    high = max(float(np.abs(cell).max()), 1e-300)
    low = -high if signed else cell.min()
    ax.imshow(
        (cell - low) / max(high - low, 1e-300),
        cmap="gray",
        vmin=0.0,
        vmax=1.0,
        extent=(left, right, bottom, top),
        interpolation="nearest",
    )
    outline = [left, right, right, left, left], [bottom, bottom, top, top, bottom]
    ax.plot(*outline, color="0.6", linewidth=0.6)


def _draw_line(ax: Axes, cell: Array, i: int, j: int) -> None:
    level = cell / max(float(np.abs(cell).max()), 1e-300)
    x = j + 0.5 + FILL * (np.linspace(0.0, 1.0, len(cell)) - 0.5)
    ax.plot([x[0], x[-1]], [i + 0.5] * 2, color=LIGHT, linewidth=0.7)
    ax.plot(x, i + 0.5 - 0.5 * FILL * level, color=INK, linewidth=1.2)


class FrequencyResponseDisplay(FiltersDisplay):
    """Draw the frequency responses of the learned filters.

    For signals it draws |h(f)| against f, up to half a cycle per sample. For images it
    draws |h(f)| over the plane of frequencies: zero is in the middle, half a cycle per
    pixel at the edges, and white is the largest. Channels are added up by their
    squares.

    Attributes
    ----------
    responses_ : array (n_tasks, n_filters, ...), the magnitudes drawn
    """

    def plot(
        self, *, ax: Axes | None = None, sampling_rate: float | None = None
    ) -> Self:
        """Draw on these axes, or on those of a new figure.

        sampling_rate : samples per second of a signal: the axis is then in hertz, else
            in cycles per sample
        """
        self.responses_ = responses(self.data)
        if self.data.signal:
            self._draw_lines(ax, sampling_rate)
            return self
        names = [f"{k + 1}" for k in range(self.responses_.shape[1])]
        self._draw_tiles(self.responses_, names, ax, signed=False)
        self.ax_.set_xlabel("frequency response of filter", fontsize="small")
        return self

    def _draw_lines(self, ax: Axes | None, rate: float | None) -> None:
        ax = self._open(ax, (6.4, 3.4))
        frequency = np.linspace(0.0, 0.5 * (1.0 if rate is None else rate), LINE)
        several = len(self.data.tasks) > 1
        for t, bank in enumerate(self.responses_):
            for k, response in enumerate(bank):
                name = f"filter {k + 1}"
                name += f", {literal(self.data.tasks[t], 20)}" if several else ""
                place = t * len(bank) + k
                color = (INK, MEDIUM, LIGHT)[(place // 4) % 3]
                style = LINE_STYLES[place % 4]
                ax.plot(frequency, response, style, color=color, label=name)
        unit = "cycles per sample" if rate is None else "Hz"
        ax.set_xlabel(f"frequency ({unit})")
        ax.set_ylabel("magnitude of the response")
        ax.set_xlim(0.0, frequency[-1])
        ax.set_ylim(bottom=0.0)
        ax.legend(frameon=False, fontsize="small")
        hide_frame(ax)


def responses(data: FiltersData) -> Array:
    """|sum_t h_t e^{-2 pi i f t}|, the root of the sum of squares over channels."""
    bank, spatial = data.filters, 1 if data.signal else 2
    if bank.ndim == 2 + spatial:
        bank = bank[..., None]
    if data.signal:
        spectrum = np.fft.rfft(bank, n=2 * (LINE - 1), axis=2)
    else:
        spectrum = np.fft.fft2(bank, s=(SPECTRUM, SPECTRUM), axes=(2, 3))
        spectrum = np.fft.fftshift(spectrum, axes=(2, 3))
    magnitude: Array = np.sqrt(np.sum(np.abs(spectrum) ** 2, axis=-1))
    return magnitude
