"""Windows of a signal or an image, each reduced to one number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, Self

import numpy as np

from bisvm.core.types import Array, Matrix
from bisvm.transforms.arguments import sizes
from bisvm.transforms.base import TransformGradient
from bisvm.transforms.grids import GridTransform, Windows, sample_blocks


@dataclass(eq=False, repr=False)
class _Pool(GridTransform):
    """A pooling of signals or images."""

    window: int | Sequence[int] = 2
    kind: Literal["mean", "max", "energy"] = "mean"
    _: KW_ONLY
    stride: int | Sequence[int] | None = None
    shape: Sequence[int] | None = None

    @property
    def linear(self) -> bool:  # type: ignore[override]
        return self.kind == "mean"

    def validate(self) -> Self:
        sizes(self, "window", self.dimensions)
        if self.stride is not None:
            sizes(self, "stride", self.dimensions)
        self.check_choice("kind", ("mean", "max", "energy"))
        return self

    def apply(self, X: Matrix) -> Array:
        shape, X, windows = self._pooled(X)
        out = np.empty((len(X), *windows.places, X.shape[3]))
        for block in sample_blocks(len(X), X[:1].size):
            out[block] = self._reduced(X[block], windows)
        size = windows.places[1:] if self.dimensions == 1 else windows.places
        return out.reshape(len(X), *size, *shape[self.dimensions :])

    def pullback(
        self, X: Matrix, cotangent: Array, *, inputs: bool = True
    ) -> TransformGradient:
        """The derivative of a window's mean is 1 / size, that of its energy 2 x, that
        of its maximum one at the first place that has it.
        """
        if not inputs:
            return TransformGradient(np.empty(0))
        given = np.shape(X)
        _, X, windows = self._pooled(X)
        G = np.reshape(cotangent, (len(X), *windows.places, X.shape[3]))
        back = np.zeros(X.shape)
        for block in sample_blocks(len(X), X[:1].size):
            self._pull(X[block], G[block], back[block], windows)
        return TransformGradient(np.empty(0), back.reshape(given))

    def _reduced(self, X: Array, windows: Windows) -> Array:
        """Mean, maximum or energy of the windows."""
        start = -np.inf if self.kind == "max" else 0.0
        out = np.full((len(X), *windows.places, X.shape[3]), start)
        for _, seen in windows.offsets():
            if self.kind == "max":
                np.maximum(out, X[:, *seen], out=out)
            else:
                out += X[:, *seen] if self.kind == "mean" else X[:, *seen] ** 2
        return out / math.prod(windows.size) if self.kind == "mean" else out

    def _pull(self, X: Array, G: Array, back: Array, windows: Windows) -> None:
        """Add the gradient by X to `back`, one offset in the window after another."""
        if self.kind == "max":
            top, found = self._reduced(X, windows), np.full(G.shape, False)
        else:
            G = G / math.prod(windows.size) if self.kind == "mean" else 2.0 * G
        for _, seen in windows.offsets():
            if self.kind == "max":
                first = ~found & (X[:, *seen] == top)
                back[:, *seen] += G * first
                found |= first
            else:
                back[:, *seen] += G if self.kind == "mean" else G * X[:, *seen]

    def _pooled(self, X: Matrix) -> tuple[tuple[int, ...], Array, Windows]:
        """The shape of a sample, the samples on their grid, and the windows over it."""
        shape = self.validate()._sample_shape(X)
        X = self._grid(X, shape)
        height, width, window = X.shape[1], X.shape[2], self._pair("window")
        if window[0] > height or window[1] > width:
            raise ValueError(
                f"{type(self).__name__}: a window of {self.window} does not fit into "
                f"samples of size {(height, width)[-self.dimensions :]}; use a smaller "
                "one."
            )
        stride = window if self.stride is None else self._pair("stride")
        return shape, X, Windows((height, width), window, stride)


class Pool1D(_Pool):
    """z_ic = mean, maximum or energy (sum of squares) of x_tc in the i-th window.

    With the energy and windows side by side this is the pooling of Sangnier et al.
    2014, section 2.3, channel by channel.

    Inputs are (n, length), (n, length, channels), or flat with `shape`; outputs have as
    many axes.

    Parameters
    ----------
    window : int
        Length of the windows.
    kind : {"mean", "max", "energy"}
        If several points of a window are the largest, "max" has its gradient at the
        first.
    stride : int, optional
        Distance between windows; by default they lie side by side. What is left at the
        end of a sample is dropped.
    shape : (length,) or (length, channels), optional
        Shape of a sample, if X is flat.

    Examples
    --------
    >>> Pool1D(2)(np.array([[1.0, 3.0, 5.0, 7.0, 9.0]]))
    array([[2., 6.]])
    """

    dimensions = 1


class Pool2D(_Pool):
    """z_ijc = mean, maximum or energy (sum of squares) of x_stc in window (i, j).

    Inputs are (n, height, width), (n, height, width, channels), or flat with `shape`;
    outputs have as many axes.

    Parameters
    ----------
    window : int or (height, width)
    stride : int or (vertical, horizontal), optional
        Distance between windows; by default they lie side by side.
    shape : (height, width) or (height, width, channels), optional
        Shape of a sample, if X is flat.
    kind
        As in `Pool1D`.

    Examples
    --------
    >>> Pool2D(2, "max")(np.arange(16.0).reshape(1, 4, 4))[0]
    array([[ 5.,  7.],
           [13., 15.]])
    """

    dimensions = 2
