"""The filters of a convolutional machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bisvm.core.types import Array, UserData
from bisvm.estimators.convolutional import convolution_of
from bisvm.plots.canvas import (
    INK,
    LIGHT,
    LINE_STYLES,
    MEDIUM,
    Data,
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

    def planes(self) -> tuple[list[list[Array]], list[str]]:
        """Return images of every task's filters, and names of the columns.

        Three channels of an image are drawn in colour, others as one image each.

        Returns
        -------
        rows : list of lists of arrays, one list for each task
        names : list of str
        """
        bank, names = self.filters, []
        spatial = 1 if self.signal else 2
        channels = bank.shape[2 + spatial] if bank.ndim > 2 + spatial else 1
        whole = bank.ndim == 2 + spatial or (not self.signal and channels == 3)
        rows: list[list[Array]] = [[] for _ in bank]
        for k in range(bank.shape[1]):
            for c in [None] if whole else range(channels):
                names.append(f"{k + 1}" if c is None else f"{k + 1}, ch. {c + 1}")
                for row, filters in zip(rows, bank, strict=True):
                    row.append(filters[k] if c is None else filters[k][..., c])
        return rows, names


def filters_data(estimator: BaseEstimator) -> FiltersData:
    """Collect the learned filters of a fitted estimator.

    Parameters
    ----------
    estimator : fitted estimator
        A ConvolutionalSVC, a ConvolutionalLinearSVC, or a BilevelSVC whose kernel has
        a convolution.

    Returns
    -------
    data : FiltersData
    """
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
    found = [
        np.asarray(one.filters, dtype=float)
        for one in map(convolution_of, kernels)
        if one is not None
    ]
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


class FiltersDisplay(Tiles[FiltersData]):
    """Draw the learned filters, one row for each class task.

    Filters of images are in grey with zero in the middle, each on its own scale.
    Filters of signals are lines.

    Parameters
    ----------
    data : FiltersData
    """

    _data_of = staticmethod(filters_data)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw; the arguments are those of `from_estimator`."""
        cells, names = self.data.planes()
        signed = [True] * len(names)
        self._draw_tiles(
            cells, columns=names, rows=self.data.tasks, signed=signed, ax=ax
        )
        self.ax_.set_xlabel("filter", fontsize="small")
        return self


class FrequencyResponseDisplay(Tiles[FiltersData]):
    """Draw the frequency responses of the learned filters.

    For signals it draws |h(f)| against f, up to half a cycle per sample. For images it
    draws |h(f)| over the plane of frequencies: zero is in the middle, half a cycle per
    pixel at the edges, and white is the largest. Channels are added up by their
    squares.

    Parameters
    ----------
    data : FiltersData
        The filters.
    sampling_rate : float, optional
        Samples per second of a signal.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    responses_ : array (n_tasks, n_filters, ...), the magnitudes drawn
    """

    def __init__(self, *, data: FiltersData, sampling_rate: float | None = None):
        super().__init__(data=data)
        self.sampling_rate = sampling_rate

    @classmethod
    def from_estimator(  # type: ignore[override]
        cls,
        estimator: BaseEstimator,
        *,
        sampling_rate: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the frequency responses of a fitted estimator's filters.

        Parameters
        ----------
        estimator : fitted ConvolutionalSVC, or BilevelSVC with a convolution
        sampling_rate : float, optional
            Samples per second of a signal: the axis is then in hertz, else in cycles
            per sample.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        """
        display = cls(data=filters_data(estimator), sampling_rate=sampling_rate)
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw; the arguments are those of `from_estimator`."""
        self.responses_ = responses(self.data)
        if self.data.signal:
            self._draw_lines(ax)
            return self
        n = self.responses_.shape[1]
        self._draw_tiles(
            [list(row) for row in self.responses_],
            columns=[f"{k + 1}" for k in range(n)],
            rows=self.data.tasks,
            signed=[False] * n,
            ax=ax,
        )
        self.ax_.set_xlabel("frequency response of filter", fontsize="small")
        return self

    def _draw_lines(self, ax: Axes | None) -> None:
        ax = self._open(ax, (6.4, 3.4))
        rate = self.sampling_rate
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


class FeatureMapsData(NamedTuple):
    """Images or signals, and their feature maps.

    images : (n, *image_shape)
    maps : (n, n_filters, *map_shape)
    names : of the images
    """

    images: Array
    maps: Array
    names: tuple[str, ...]


def feature_maps_data(
    estimator: BaseEstimator,
    X: UserData,
    task: int = 0,
    names: Sequence[str] | None = None,
) -> FeatureMapsData:
    """Compute feature maps of some images.

    Parameters
    ----------
    estimator : fitted ConvolutionalSVC or ConvolutionalLinearSVC
    X : array of shape (n_samples, n_features) or (n_samples, *image_shape)
    task : int, default=0
        Number of the class task.
    names : sequence of str, optional
        Of the images; 1, 2, ... by default.

    Returns
    -------
    data : FeatureMapsData
    """
    check_is_fitted(estimator)
    if not hasattr(estimator, "feature_maps"):
        raise ValueError(
            f"{type(estimator).__name__} has no feature maps; fit a "
            "ConvolutionalLinearSVC."
        )
    X = np.asarray(X, dtype=float)
    images = X.reshape(len(X), *estimator.image_shape_)
    if images.ndim == 4 and images.shape[-1] != 3:
        images = images.mean(axis=-1)
    names = [f"{k + 1}" for k in range(len(X))] if names is None else names
    if len(names) != len(X):
        raise ValueError(f"{len(names)} names given for {len(X)} images.")
    maps = estimator.feature_maps(X, task)
    return FeatureMapsData(images, maps, tuple(str(name) for name in names))


class FeatureMapsDisplay(Tiles[FeatureMapsData]):
    """Draw some images, each followed by its feature maps, with zero in middle grey.

    Parameters
    ----------
    data : FeatureMapsData
    """

    @classmethod
    def from_estimator(  # type: ignore[override]
        cls,
        estimator: BaseEstimator,
        X: UserData,
        *,
        task: int = 0,
        names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw feature maps of a fitted ConvolutionalLinearSVC.

        Parameters
        ----------
        estimator : fitted ConvolutionalLinearSVC
        X : a few images, as for `predict`
        task : int
            Which class task's filters are used, see `tasks_`.
        names : sequence of str, optional
            Names of the images; numbers by default.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        """
        return cls(data=feature_maps_data(estimator, X, task, names)).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw; the arguments are those of `from_estimator`."""
        images, maps, names = self.data
        n = maps.shape[1]
        self._draw_tiles(
            [[image, *own] for image, own in zip(images, maps, strict=True)],
            columns=["input", *(f"map {k + 1}" for k in range(n))],
            rows=names,
            signed=[False, *[True] * n],
            ax=ax,
        )
        return self
