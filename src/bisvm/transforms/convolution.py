"""Convolutions of signals and images with filters that are learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from bisvm.core.parts import Parameter
from bisvm.transforms.arguments import (
    check_choice,
    check_seed,
    grid,
    grid_shape,
    index_labels,
    sample_shape,
    sizes,
    within_ball,
)
from bisvm.transforms.base import Transform, TransformGradient
from bisvm.transforms.filters import STARTS
from bisvm.transforms.windows import Pair, Windows

PADDINGS = ("valid", "same")


class _Convolution(Transform):
    """What convolutions of signals and of images share; a signal has height one."""

    dimensions = 0

    def __init__(
        self,
        filters: Any = None,
        *,
        n_filters: int = 4,
        filter_shape: Any = 5,
        start: str = "cosine",
        shape: Any = None,
        stride: Any = 1,
        padding: str = "valid",
        normalize: str | None = None,
        random_state: int = 0,
    ):
        self.filters = filters
        self.n_filters = n_filters
        self.filter_shape = filter_shape
        self.start = start
        self.shape = shape
        self.stride = stride
        self.padding = padding
        self.normalize = normalize
        self.random_state = random_state

    @property
    def linear(self) -> bool:
        return True

    def validate(self) -> Any:
        sizes(self, "stride", self.dimensions)
        check_choice(self, "padding", PADDINGS)
        if self.normalize is not None:
            check_choice(self, "normalize", ("ball",))
        if self.filters is not None:
            self._check_filters()
            return self
        self.check_count("n_filters")
        sizes(self, "filter_shape", self.dimensions)
        check_choice(self, "start", STARTS)
        check_seed(self)
        return self

    @property
    def open(self) -> bool:
        return self.filters is None

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        ball = None if self.normalize is None else 1.0
        filters = within_ball(self._settled(X, sample_weight), ball)
        return (
            Parameter(
                "filters",
                filters,
                (-np.inf, np.inf),
                scale="linear",
                labels=index_labels(filters.shape),
                ball=ball,
            ),
        )

    def apply(self, X: Any) -> np.ndarray:
        """(n, positions..., m): one map for each filter."""
        filters, shape = self._settled(X), sample_shape(self, X, self.dimensions)
        X = grid(X, shape, self.dimensions)
        windows = self._windows(shape, filters)
        F = filters.reshape(len(filters), -1)
        out = np.empty((len(X), *windows.places, len(F)))
        for block in windows.blocks(len(X), X.shape[3]):
            maps = F @ windows.columns(X[block])
            out[block] = maps.T.reshape(out[block].shape)
        return out[:, 0] if self.dimensions == 1 else out

    def pullback(
        self, X: Any, cotangent: np.ndarray, *, inputs: bool = True
    ) -> TransformGradient:
        """With windows as the columns of a matrix M, maps Z = F M and cotangent G,

        d/dF = G M',    d/dM = F'G, added up where the windows lie.
        """
        filters, shape = self._settled(X), sample_shape(self, X, self.dimensions)
        given, X = np.shape(X), grid(X, shape, self.dimensions)
        windows = self._windows(shape, filters)
        F = filters.reshape(len(filters), -1)
        by_filters = np.zeros(F.shape)
        by_inputs = np.empty(X.shape) if inputs else None
        for block in windows.blocks(len(X), X.shape[3]):
            G = np.reshape(cotangent[block], (-1, len(F))).T
            by_filters += G @ windows.columns(X[block]).T
            if by_inputs is not None:
                n, channels = block.stop - block.start, X.shape[3]
                by_inputs[block] = windows.scatter(F.T @ G, n, channels)
        theta = by_filters.ravel()
        if by_inputs is None:
            return TransformGradient(theta)
        return TransformGradient(theta, by_inputs.reshape(given))

    def sample_gradients(self, X: Any, cotangents: np.ndarray) -> np.ndarray:
        """d/dF = G M' of a pullback, with the columns of one sample in M at a time."""
        filters, shape = self._settled(X), sample_shape(self, X, self.dimensions)
        X = grid(X, shape, self.dimensions)
        windows, r, m = self._windows(shape, filters), len(cotangents), len(filters)
        out = np.empty((r, len(X), filters.size))
        G = np.reshape(cotangents, (r, len(X), -1, m)).swapaxes(2, 3)
        for block in windows.blocks(len(X), X.shape[3]):
            n = block.stop - block.start
            columns = windows.columns(X[block]).reshape(filters[0].size, n, -1)
            by_filters = G[:, block] @ columns.transpose(1, 2, 0)
            out[:, block] = by_filters.reshape(r, n, -1)
        return out

    def _settled(self, X: Any, sample_weight: Any = None) -> np.ndarray:
        """The filters, (m, size...[, channels]); those that X starts from if none."""
        self.validate()
        shape = sample_shape(self, X, self.dimensions)
        if self.filters is not None:
            filters = np.asarray(self.filters, dtype=float)
            self._check_fit(filters.shape[1:], shape)
            return filters
        size = sizes(self, "filter_shape", self.dimensions)
        form = (self.n_filters, *size, *shape[self.dimensions :])
        self._check_fit(form[1:], shape)
        bank = STARTS[self.start](
            self.n_filters,
            grid_shape(form[1:], self.dimensions),
            grid(X, shape, self.dimensions),
            sample_weight,
            self.random_state,
        )
        return bank.reshape(form)

    def _windows(self, shape: tuple[int, ...], filters: np.ndarray) -> Windows:
        height, width, _ = grid_shape(shape, self.dimensions)
        rows, columns, _ = grid_shape(filters.shape[1:], self.dimensions)
        stride: Pair = (1, *sizes(self, "stride", self.dimensions))[-2:]  # type: ignore[assignment]
        make = Windows.same if self.padding == "same" else Windows.valid
        return make((height, width), (rows, columns), stride)

    def _check_filters(self) -> None:
        found = np.shape(self.filters)
        allowed = (self.dimensions + 1, self.dimensions + 2)
        if len(found) not in allowed or 0 in found:
            size = "length" if self.dimensions == 1 else "height, width"
            raise ValueError(
                f"{type(self).__name__}: filters must have the shape (m, {size}) or "
                f"(m, {size}, channels); got an array of shape {found}."
            )
        if not np.all(np.isfinite(np.asarray(self.filters, dtype=float))):
            raise ValueError(f"{type(self).__name__}: filters must be finite.")

    def _check_fit(self, form: tuple[int, ...], shape: tuple[int, ...]) -> None:
        *size, channels = grid_shape(form, self.dimensions)
        *room, found = grid_shape(shape, self.dimensions)
        if channels != found:
            raise ValueError(
                f"{type(self).__name__}: the filters have {channels} channels, the "
                f"samples of shape {shape} have {found}."
            )
        # Patches are cut out of the samples, whatever the padding.
        cut = self.filters is None and self.start == "patches"
        too_large = any(s > r for s, r in zip(size, room, strict=True))
        if too_large and (cut or self.padding == "valid"):
            raise ValueError(
                f"{type(self).__name__}: filters of shape {form} do not "
                f"fit into samples of shape {shape}; use smaller filters, or "
                "padding='same'."
            )


class Convolution1D(_Convolution):
    """z_ik = sum_tc filters_ktc x_(i stride + t, c), a map for each of m filters.

    This is the cross-correlation: windows slide over the signal and are multiplied with
    the filter as it stands, X'f with the windows for the columns of X (seed 002,
    section 3.1). A convolution in the sense of signal processing has the filter
    reversed; learned filters do not care.

    Inputs are (n, length), (n, length, channels), or flat with `shape`; outputs are
    (n, positions, m).

    Parameters
    ----------
    filters : array of shape (m, length) or (m, length, channels), optional
        Where None, `n_filters`, `filter_shape` and `start` say which filters to start
        from.
    n_filters : int
    filter_shape : int
        The length of the filters.
    start : {"cosine", "delta", "patches", "random"}
        "cosine" takes the lowest cosines on the window, the mean first; "delta" leaves
        the signal as it is, or moves it; "patches" are centres of the whitened patches
        of X, by k-means. All are made such that the squared norms add up to one. Until
        `with_values` has settled the filters, each call starts from its own X.
    shape : (length,) or (length, channels), optional
        What the features are, where X is flat.
    stride : int
    padding : {"valid", "same"}
        "same" pads with zeros for length / stride positions (rounded up), the odd zero
        at the end.
    normalize : None or "ball"
        "ball" keeps the sum of the squared norms of the filters within one, and shrinks
        a start that is outside.
    random_state : int
        For the starts "patches" and "random".
    """

    dimensions = 1


class Convolution2D(_Convolution):
    """z_ijk = sum_stc filters_kstc x_(i stride + s, j stride + t, c).

    This is the cross-correlation: windows slide over the image and are multiplied with
    the filter as it stands, X'f with the windows for the columns of X (seed 002,
    section 3.1). A convolution in the sense of signal processing has the filter
    reversed; learned filters do not care.

    Inputs are (n, height, width), (n, height, width, channels), or flat with `shape`;
    outputs are (n, rows, columns, m). Colour planes that share one filter can be
    stacked: shape (3 height, width).

    Parameters
    ----------
    filters : array (m, height, width) or (m, height, width, channels), optional
        Where None, `n_filters`, `filter_shape` and `start` say which filters to start
        from.
    n_filters : int
    filter_shape : int or (height, width)
    start : {"cosine", "delta", "patches", "random"}
        "cosine" takes the lowest cosines on the window, the mean first; "delta" leaves
        the image as it is, or moves it; "patches" are centres of the whitened patches
        of X, by k-means. All are made such that the squared norms add up to one. Until
        `with_values` has settled the filters, each call starts from its own X.
    shape : (height, width) or (height, width, channels), optional
        What the features are, where X is flat.
    stride : int or (vertical, horizontal)
    padding : {"valid", "same"}
        "same" pads with zeros for length / stride positions (rounded up) in both
        directions, the odd zero at the end.
    normalize : None or "ball"
        "ball" keeps the sum of the squared norms of the filters within one, and shrinks
        a start that is outside.
    random_state : int
        For the starts "patches" and "random".
    """

    dimensions = 2
