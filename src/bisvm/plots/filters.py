"""What a convolutional machine has learned to look for."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bisvm.plots.canvas import INK, LIGHT, MEDIUM, axes, literal, plain
from bisvm.plots.tiles import draw_tiles

# Frequencies of a two-dimensional spectrum, and of a line.
SPECTRUM = 33
LINE = 256
STYLES = ("-", "--", "-.", ":")


class FiltersData(NamedTuple):
    """Learned filters, (n_tasks, n_filters, *shape), and what the tasks are called.

    shape is (length,), (height, width), or either with channels behind.
    tasks : one name, empty, if all class tasks share their filters
    signal : whether filters are one-dimensional
    """

    filters: np.ndarray
    tasks: tuple[str, ...]
    signal: bool

    def planes(self) -> tuple[list[list[np.ndarray]], list[str]]:
        """Pictures of every task's filters, and what the columns are called.

        Three channels of an image are one picture in colour, others one each.
        """
        bank, names = self.filters, []
        spatial = 1 if self.signal else 2
        channels = bank.shape[2 + spatial] if bank.ndim > 2 + spatial else 1
        whole = bank.ndim == 2 + spatial or (not self.signal and channels == 3)
        rows: list[list[np.ndarray]] = [[] for _ in bank]
        for k in range(bank.shape[1]):
            for c in [None] if whole else range(channels):
                names.append(f"{k + 1}" if c is None else f"{k + 1}, ch. {c + 1}")
                for row, filters in zip(rows, bank, strict=True):
                    row.append(filters[k] if c is None else filters[k][..., c])
        return rows, names


def filters_data(estimator: Any) -> FiltersData:
    """The filters of a fitted ConvolutionalSVC, or of a kernel on a convolution."""
    check_is_fitted(estimator)
    filters = getattr(estimator, "filters_", None)
    if filters is None:
        filters = _of_a_kernel(estimator)
    filters = np.asarray(filters, dtype=float)
    shape = getattr(estimator, "image_shape_", None)
    if shape is not None:
        # A filter that covers the whole of an axis may be as long as the image has.
        signal = len(shape) == 1 or filters.ndim == 3
    else:
        signal = filters.ndim == 3
    if filters.shape[-1] == 1 and filters.ndim > (3 if signal else 4):
        filters = filters[..., 0]
    return FiltersData(filters, _task_names(estimator, len(filters)), signal)


def _of_a_kernel(estimator: Any) -> np.ndarray:
    kernels = getattr(estimator, "kernel_", None)
    kernels = kernels if isinstance(kernels, list) else [kernels]
    found = []
    for kernel in kernels:
        transform = getattr(kernel, "transform", None)
        first = getattr(transform, "transforms", (transform,))[0]
        filters: Any = getattr(first, "filters", None)
        if filters is not None:
            found.append(np.asarray(filters, dtype=float))
    if len(found) != len(kernels):
        raise ValueError(
            f"{type(estimator).__name__} has no filters; fit a ConvolutionalSVC, or a "
            "kernel on a convolution, such as RBF() @ Convolution1D()."
        )
    return np.stack(found)


def _task_names(estimator: Any, n: int) -> tuple[str, ...]:
    tasks = getattr(estimator, "tasks_", None)
    if n == 1 or tasks is None or len(tasks) != n:
        return tuple("" if n == 1 else f"task {k + 1}" for k in range(n))
    return tuple(
        f"{one} / {'rest' if other is None else other}" for one, other in tasks
    )


class FiltersDisplay:
    """Learned filters, one column each and one row a class task.

    Use `FiltersDisplay.from_estimator` to create one. Of images middle grey is zero,
    and every filter has its own scale; of signals the filters are lines.

    Parameters
    ----------
    data : FiltersData
        What is drawn.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    """

    def __init__(self, *, data: FiltersData):
        self.data = data

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the filters of a fitted estimator.

        Parameters
        ----------
        estimator : fitted ConvolutionalSVC, or BilevelSVC with a convolution
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        """
        return cls(data=filters_data(estimator)).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw; the arguments are those of `from_estimator`."""
        cells, names = self.data.planes()
        self.figure_, self.ax_ = draw_tiles(
            cells, columns=names, rows=self.data.tasks, signed=True, ax=ax
        )
        self.ax_.set_xlabel("filter", fontsize="small")
        return self


class FrequencyResponseDisplay:
    """What learned filters let through, by frequency.

    Use `FrequencyResponseDisplay.from_estimator` to create one. Of signals |h(f)|
    against f, up to half a cycle a sample; of images |h(f)| over the plane of
    frequencies, zero in the middle, half a cycle a pixel at the edges, white the
    largest. Channels are added up by their squares.

    Parameters
    ----------
    data : FiltersData
        The filters.
    sampling_rate : float
        Samples a second, of signals.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    responses_ : array (n_tasks, n_filters, ...), the magnitudes drawn
    """

    def __init__(self, *, data: FiltersData, sampling_rate: float | None = None):
        self.data = data
        self.sampling_rate = sampling_rate

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, sampling_rate: float | None = None, ax: Any = None
    ) -> Self:
        """Draw the frequency responses of a fitted estimator's filters.

        Parameters
        ----------
        estimator : fitted ConvolutionalSVC, or BilevelSVC with a convolution
        sampling_rate : float, optional
            Of signals: the axis is in hertz then, else in cycles a sample.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        """
        display = cls(data=filters_data(estimator), sampling_rate=sampling_rate)
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw; the arguments are those of `from_estimator`."""
        self.responses_ = responses(self.data)
        if self.data.signal:
            self._draw_lines(ax)
            return self
        names = [f"{k + 1}" for k in range(self.responses_.shape[1])]
        self.figure_, self.ax_ = draw_tiles(
            [list(row) for row in self.responses_],
            columns=names,
            rows=self.data.tasks,
            signed=False,
            ax=ax,
        )
        self.ax_.set_xlabel("frequency response of filter", fontsize="small")
        return self

    def _draw_lines(self, ax: Any) -> None:
        self.figure_, self.ax_ = axes(ax, (6.4, 3.4))
        rate = self.sampling_rate
        frequency = np.linspace(0.0, 0.5 * (1.0 if rate is None else rate), LINE)
        several = len(self.data.tasks) > 1
        for t, bank in enumerate(self.responses_):
            for k, response in enumerate(bank):
                name = f"filter {k + 1}"
                name += f", {literal(self.data.tasks[t], 20)}" if several else ""
                place = t * len(bank) + k
                self.ax_.plot(
                    frequency,
                    response,
                    STYLES[place % 4],
                    color=(INK, MEDIUM, LIGHT)[(place // 4) % 3],
                    label=name,
                )
        unit = "cycles a sample" if rate is None else "Hz"
        self.ax_.set_xlabel(f"frequency ({unit})")
        self.ax_.set_ylabel("magnitude of the response")
        self.ax_.set_xlim(0.0, frequency[-1])
        self.ax_.set_ylim(bottom=0.0)
        self.ax_.legend(frameon=False, fontsize="small")
        plain(self.ax_)


def responses(data: FiltersData) -> np.ndarray:
    """|sum_t h_t e^{-2 pi i f t}|, root mean square over channels."""
    bank, spatial = data.filters, 1 if data.signal else 2
    if bank.ndim == 2 + spatial:
        bank = bank[..., None]
    if data.signal:
        spectrum = np.fft.rfft(bank, n=2 * (LINE - 1), axis=2)
    else:
        spectrum = np.fft.fft2(bank, s=(SPECTRUM, SPECTRUM), axes=(2, 3))
        spectrum = np.fft.fftshift(spectrum, axes=(2, 3))
    return np.sqrt(np.sum(np.abs(spectrum) ** 2, axis=-1))


class FeatureMapsData(NamedTuple):
    """Images or signals, and what the filters make of each: (n, n_filters, ...)."""

    images: np.ndarray
    maps: np.ndarray
    names: tuple[str, ...]


def feature_maps_data(
    estimator: Any, X: Any, task: int = 0, names: Any = None
) -> FeatureMapsData:
    """Feature maps of some images by a fitted ConvolutionalSVC."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "feature_maps"):
        raise ValueError(
            f"{type(estimator).__name__} has no feature maps; fit a ConvolutionalSVC."
        )
    X = np.asarray(X, dtype=float)
    images = X.reshape(len(X), *estimator.image_shape_)
    if images.ndim == 4 and images.shape[-1] not in (3,):
        images = images.mean(axis=-1)
    names = [f"{k + 1}" for k in range(len(X))] if names is None else names
    if len(names) != len(X):
        raise ValueError(f"{len(names)} names given for {len(X)} images.")
    maps = estimator.feature_maps(X, task)
    return FeatureMapsData(images, maps, tuple(str(name) for name in names))


class FeatureMapsDisplay:
    """Some images, and beside each what the learned filters make of it.

    Use `FeatureMapsDisplay.from_estimator` to create one. Middle grey is zero.

    Parameters
    ----------
    data : FeatureMapsData
        What is drawn.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    """

    def __init__(self, *, data: FeatureMapsData):
        self.data = data

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        task: int = 0,
        names: Any = None,
        ax: Any = None,
    ) -> Self:
        """Draw feature maps of a fitted ConvolutionalSVC.

        Parameters
        ----------
        estimator : fitted ConvolutionalSVC
        X : a few images, as for `predict`
        task : int
            Number of the class task whose filters are used, see `tasks_`.
        names : sequence of str, optional
            What the images are called; numbers by default.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        """
        return cls(data=feature_maps_data(estimator, X, task, names)).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw; the arguments are those of `from_estimator`."""
        n = self.data.maps.shape[1]
        cells = [
            [image, *maps]
            for image, maps in zip(self.data.images, self.data.maps, strict=True)
        ]
        self.figure_, self.ax_ = draw_tiles(
            cells,
            columns=["input", *(f"map {k + 1}" for k in range(n))],
            rows=self.data.names,
            signed=[False, *[True] * n],
            ax=ax,
        )
        return self
