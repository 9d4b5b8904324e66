"""Convolutions of signals and images with filters that are learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, Self

import numpy as np

from bisvm.core.parts import Parameters
from bisvm.core.types import Array, ArrayLike, Matrix
from bisvm.transforms.arguments import (
    check_seed,
    sizes,
    unbounded_parameter,
)
from bisvm.transforms.base import TransformGradient
from bisvm.transforms.filters import STARTS
from bisvm.transforms.grids import GridTransform, Windows


@dataclass(eq=False, repr=False)
class _Convolution(GridTransform):
    """A convolution of signals or images."""

    linear = True

    filters: ArrayLike | None = None
    _: KW_ONLY
    n_filters: int = 4
    filter_shape: int | Sequence[int] = 5
    start: Literal["cosine", "delta", "patches", "random"] = "cosine"
    shape: Sequence[int] | None = None
    stride: int | Sequence[int] = 1
    padding: Literal["valid", "same"] = "valid"
    normalize: Literal["ball"] | None = None
    random_state: int = 0

    @property
    def needs_data(self) -> bool:
        return self.filters is None

    def validate(self) -> Self:
        sizes(self, "stride", self.dimensions)
        self.check_choice("padding", ("valid", "same"))
        if self.normalize is not None:
            self.check_choice("normalize", ("ball",))
        if self.filters is not None:
            self._check_filters()
            return self
        self.check_count("n_filters")
        sizes(self, "filter_shape", self.dimensions)
        self.check_choice("start", STARTS)
        check_seed(self)
        return self

    def parameters(self, X: Matrix, sample_weight: Array | None = None) -> Parameters:
        ball = None if self.normalize is None else 1.0
        filters = self._values(X, sample_weight)
        return (unbounded_parameter("filters", filters, ball),)

    def apply(self, X: Matrix) -> Array:
        """Return (n, positions..., m): one map for each filter."""
        filters, X, windows = self.on_grid(X)
        F = filters.reshape(len(filters), -1)
        out = np.empty((len(X), *windows.places, len(F)))
        for block in windows.blocks(len(X), X.shape[3]):
            maps = F @ windows.columns(X[block])
            out[block] = maps.T.reshape(out[block].shape)
        return out[:, 0] if self.dimensions == 1 else out

    def pullback(
        self, X: Matrix, cotangent: Array, *, inputs: bool = True
    ) -> TransformGradient:
        """With windows as the columns of a matrix M, maps Z = F M and cotangent G,

        d/dF = G M',    d/dM = F'G, added up where the windows lie.
        """
        given = np.shape(X)
        filters, X, windows = self.on_grid(X)
        F = filters.reshape(len(filters), -1)
        by_filters = np.zeros(F.shape)
        by_inputs = np.empty(X.shape) if inputs else None
        for block in windows.blocks(len(X), X.shape[3]):
            G = np.reshape(cotangent[block], (-1, len(F))).T
            by_filters += G @ windows.columns(X[block]).T
            if by_inputs is not None:
                n, channels = block.stop - block.start, X.shape[3]
                by_inputs[block] = windows.scatter(F.T @ G, n, channels)
        by_X = None if by_inputs is None else by_inputs.reshape(given)
        return TransformGradient(by_filters.ravel(), by_X)

    def on_grid(self, X: Matrix) -> tuple[Array, Array, Windows]:
        """Return the filters, the samples on their grid, and the windows over it."""
        filters, shape = self._values(X), self._sample_shape(X)
        height, width, _ = self._grid_shape(shape)
        rows, columns, _ = self._grid_shape(filters.shape[1:])
        make = Windows.same if self.padding == "same" else Windows
        windows = make((height, width), (rows, columns), self._pair("stride"))
        return filters, self._grid(X, shape), windows

    def _values(self, X: Matrix, sample_weight: Array | None = None) -> Array:
        """The filters, (m, size...[, channels]), or their start from X."""
        self.validate()
        shape = self._sample_shape(X)
        if self.filters is not None:
            filters = np.asarray(self.filters, dtype=float)
            self._check_fit(filters.shape[1:], shape)
            return filters
        size = sizes(self, "filter_shape", self.dimensions)
        form = (self.n_filters, *size, *shape[self.dimensions :])
        self._check_fit(form[1:], shape)
        bank = STARTS[self.start](
            self.n_filters,
            self._grid_shape(form[1:]),
            self._grid(X, shape),
            sample_weight,
            self.random_state,
        )
        return bank.reshape(form)

    def _check_filters(self) -> None:
        filters = np.asarray(self.filters, dtype=float)
        found, dimensions = filters.shape, self.dimensions
        if len(found) not in (dimensions + 1, dimensions + 2) or 0 in found:
            size = "length" if dimensions == 1 else "height, width"
            raise ValueError(
                f"{type(self).__name__}: filters must have the shape (m, {size}) or "
                f"(m, {size}, channels); got an array of shape {found}."
            )
        if not np.all(np.isfinite(filters)):
            raise ValueError(f"{type(self).__name__}: filters must be finite.")

    def _check_fit(self, form: tuple[int, ...], shape: tuple[int, ...]) -> None:
        *size, channels = self._grid_shape(form)
        *room, found = self._grid_shape(shape)
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

    This is the cross-correlation: X'f with the windows of the signal as columns of X
    (Sugg 2018, section 3.1). A convolution in signal processing reverses the filter;
    for learned filters there is no difference.

    Inputs are (n, length), (n, length, channels), or flat with `shape`; outputs are
    (n, positions, m).

    Parameters
    ----------
    filters : array of shape (m, length) or (m, length, channels), optional
        If None, `n_filters`, `filter_shape` and `start` determine the first filters,
        and each call starts from its own X until `with_values` sets them.
    n_filters : int
    filter_shape : int
        Length of the filters.
    start : {"cosine", "delta", "patches", "random"}
        "cosine" takes the lowest cosines on the window, the mean first; "delta" copies
        or shifts the signal; "patches" takes k-means centres of whitened patches of X;
        "random" is Gaussian noise. The squared norms of the filters sum to one.
    shape : (length,) or (length, channels), optional
        Shape of a sample, if X is flat.
    stride : int
    padding : {"valid", "same"}
        "same" pads with zeros for length / stride positions (rounded up); an odd
        number of zeros has one more at the end.
    normalize : {None, "ball"}
        "ball" keeps the sum of the squared norms of the filters at most one, and
        shrinks a larger start.
    random_state : int
        For the starts "patches" and "random".

    Examples
    --------
    >>> Convolution1D([[1.0, -1.0]])(np.array([[1.0, 4.0, 9.0]]))[0].T
    array([[-3., -5.]])
    """

    dimensions = 1


class Convolution2D(_Convolution):
    """z_ijk = sum_stc filters_kstc x_(i stride + s, j stride + t, c).

    This is the cross-correlation, as in `Convolution1D`.

    Inputs are (n, height, width), (n, height, width, channels), or flat with `shape`;
    outputs are (n, rows, columns, m). Colour planes that share one filter can be
    stacked: shape (3 height, width).

    Parameters
    ----------
    filters : array (m, height, width) or (m, height, width, channels), optional
    filter_shape : int or (height, width)
    shape : (height, width) or (height, width, channels), optional
        Shape of a sample, if X is flat.
    stride : int or (vertical, horizontal)
    n_filters, start, padding, normalize, random_state
        As in `Convolution1D`.

    Examples
    --------
    >>> Convolution2D(np.ones((1, 2, 2)))(np.ones((1, 3, 3)))[0, :, :, 0]
    array([[4., 4.],
           [4., 4.]])
    """

    dimensions = 2
