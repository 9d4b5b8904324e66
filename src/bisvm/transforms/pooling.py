"""Windows of a signal or an image summed up, each in one number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from bisvm.transforms.arguments import (
    check_choice,
    grid,
    sample_shape,
    sizes,
)
from bisvm.transforms.base import Transform, TransformGradient
from bisvm.transforms.windows import Pair, sample_blocks

KINDS = ("mean", "max", "energy")


class _Pool(Transform):
    """What poolings of signals and of images share; a signal has height one."""

    dimensions = 0

    def __init__(
        self,
        window: Any = 2,
        kind: str = "mean",
        *,
        stride: Any = None,
        partial: bool = False,
        shape: Any = None,
    ):
        self.window = window
        self.kind = kind
        self.stride = stride
        self.partial = partial
        self.shape = shape

    @property
    def linear(self) -> bool:
        return self.kind == "mean"

    def validate(self) -> Self:
        sizes(self, "window", self.dimensions)
        if self.stride is not None:
            sizes(self, "stride", self.dimensions)
        check_choice(self, "kind", KINDS)
        return self

    def apply(self, X: Any) -> np.ndarray:
        shape, X = self._grid(X)
        places = self._places(X.shape[1:3])
        out = np.empty((len(X), *places, X.shape[3]))
        for block in sample_blocks(len(X), X[:1].size):
            out[block] = self._pooled(X[block], places)
        return out.reshape(self._form(out.shape, shape))

    def pullback(
        self, X: Any, cotangent: np.ndarray, *, inputs: bool = True
    ) -> TransformGradient:
        """d/dx of a window's mean is 1 / size, of its energy 2 x, of its maximum one
        at the first place that has it.
        """
        if not inputs:
            return TransformGradient(np.empty(0))
        given, (_, X) = np.shape(X), self._grid(X)
        places = self._places(X.shape[1:3])
        G = np.reshape(cotangent, (len(X), *places, X.shape[3]))
        back = np.zeros(X.shape)
        for block in sample_blocks(len(X), X[:1].size):
            self._pull(X[block], G[block], back[block])
        return TransformGradient(np.empty(0), back.reshape(given))

    def _pooled(self, X: np.ndarray, places: Pair) -> np.ndarray:
        least = -np.inf if self.kind == "max" else 0.0
        out = np.full((len(X), *places, X.shape[3]), least)
        for seen, part in self._offsets(X.shape[1:3]):
            here = out[part]
            if self.kind == "max":
                np.maximum(here, X[seen], out=here)
            else:
                here += X[seen] if self.kind == "mean" else X[seen] ** 2
        return out / self._counts(X.shape[1:3]) if self.kind == "mean" else out

    def _pull(self, X: np.ndarray, G: np.ndarray, back: np.ndarray) -> None:
        """Add the gradient by X to `back`, one offset in the window after another."""
        if self.kind == "mean":
            G = G / self._counts(X.shape[1:3])
        elif self.kind == "energy":
            G = 2.0 * G
        else:
            top = self._pooled(X, G.shape[1:3])
            open_ = np.full(G.shape, True)
        for seen, part in self._offsets(X.shape[1:3]):
            if self.kind == "mean":
                back[seen] += G[part]
            elif self.kind == "energy":
                back[seen] += G[part] * X[seen]
            else:
                first = open_[part] & (X[seen] == top[part])
                back[seen] += G[part] * first
                open_[part] &= ~first

    def _offsets(self, size: Any) -> Iterator[tuple[Any, Any]]:
        """For each offset in the window: what all windows see there, and which do.

        At the end of the grid a partial window lacks some offsets.
        """
        (H, W), (fh, fw), (sh, sw) = self._places(size), self._window(), self._step()
        for i, j in np.ndindex(fh, fw):
            rows = min(H, -(-(size[0] - i) // sh))
            columns = min(W, -(-(size[1] - j) // sw))
            if rows > 0 and columns > 0:
                down = slice(i, i + (rows - 1) * sh + 1, sh)
                right = slice(j, j + (columns - 1) * sw + 1, sw)
                part = (slice(None), slice(0, rows), slice(0, columns))
                yield (slice(None), down, right), part

    def _counts(self, size: Any) -> np.ndarray:
        """How many points each window holds, (1, rows, columns, 1)."""
        counts = np.zeros((1, *self._places(size), 1))
        for _, part in self._offsets(size):
            counts[part] += 1.0
        return counts

    def _places(self, size: Any) -> Pair:
        rest = [s - w for s, w in zip(size, self._window(), strict=True)]
        if min(rest) < 0 and not self.partial:
            raise ValueError(
                f"{type(self).__name__}: a window of {self.window} does not fit into "
                f"samples of size {tuple(size)[-self.dimensions :]}; use a smaller "
                "one, or partial=True."
            )
        (down, right), (height, width) = self._step(), size
        if not self.partial:
            return rest[0] // down + 1, rest[1] // right + 1
        # One more where an end is left, unless it would begin beyond that end.
        rows, columns = -(-max(rest[0], 0) // down), -(-max(rest[1], 0) // right)
        return min(rows + 1, -(-height // down)), min(columns + 1, -(-width // right))

    def _window(self) -> Pair:
        return (1, *sizes(self, "window", self.dimensions))[-2:]  # type: ignore[return-value]

    def _step(self) -> Pair:
        if self.stride is None:
            return self._window()
        return (1, *sizes(self, "stride", self.dimensions))[-2:]  # type: ignore[return-value]

    def _grid(self, X: Any) -> tuple[tuple[int, ...], np.ndarray]:
        self.validate()
        shape = sample_shape(self, X, self.dimensions)
        return shape, grid(X, shape, self.dimensions)

    def _form(self, pooled: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the output: with channels if the samples have them."""
        n, rows, columns, channels = pooled
        size = (columns,) if self.dimensions == 1 else (rows, columns)
        return (n, *size, channels) if len(shape) > self.dimensions else (n, *size)


class Pool1D(_Pool):
    """z_ic = mean, maximum or energy (sum of squares) of x_tc in the i-th window.

    With the energy and the stride of the window this is the pooling of seed 004,
    section 2.3, channel by channel.

    Inputs are (n, length), (n, length, channels), or flat with `shape`; outputs have as
    many axes.

    Parameters
    ----------
    window : int
        The length of the windows.
    kind : {"mean", "max", "energy"}
        Where several points of a window are the largest, "max" has its gradient at the
        first.
    stride : int, optional
        From window to window; None for windows side by side.
    partial : bool
        Keep the last windows that reach over the end, with what they hold; otherwise
        such an end is dropped.
    shape : (length,) or (length, channels), optional
        What the features are, where X is flat.
    """

    dimensions = 1


class Pool2D(_Pool):
    """z_ijc = mean, maximum or energy (sum of squares) of x_stc in window (i, j).

    Inputs are (n, height, width), (n, height, width, channels), or flat with `shape`;
    outputs have as many axes.

    Parameters
    ----------
    window : int or (height, width)
    kind : {"mean", "max", "energy"}
        Where several points of a window are the largest, "max" has its gradient at the
        first, row by row.
    stride : int or (vertical, horizontal), optional
        From window to window; None for windows side by side.
    partial : bool
        Keep the last windows that reach over the end, with what they hold; otherwise
        such an end is dropped.
    shape : (height, width) or (height, width, channels), optional
        What the features are, where X is flat.
    """

    dimensions = 2
