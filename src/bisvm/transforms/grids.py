"""Samples on a grid (signals and images), and the windows that slide over them.

A grid is an array (n, height, width, channels); a signal has height one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import is_sparse
from bisvm.transforms.arguments import are_counts, sizes
from bisvm.transforms.base import Transform

# Entries of the matrix of one block: 4 MB in float64. It stays in the cache between
# its creation and its use; blocks of 32 MB took 1.5 times as long.
BLOCK_ENTRIES = 1 << 19

Pair = tuple[int, int]


class GridTransform(Transform):
    """A transform of signals (`dimensions` 1) or images (2).

    Samples come in their shape, with or without channels at its end, or flat with the
    argument `shape`.
    """

    dimensions = 0
    shape: Sequence[int] | None

    def _sample_shape(self, X: Matrix) -> tuple[int, ...]:
        """The shape of one sample, from X or from the argument `shape`."""
        name, dimensions = type(self).__name__, self.dimensions
        if is_sparse(X):
            raise TypeError(f"{name} needs a dense array: pass X.toarray().")
        found, given = np.shape(X)[1:], self.shape
        size = "length" if dimensions == 1 else "height, width"
        plain = f"({size},)" if dimensions == 1 else f"({size})"
        wanted = f"{plain} or ({size}, channels)"
        if given is None:
            if len(found) in (dimensions, dimensions + 1):
                return found
            raise ValueError(
                f"{name}: X has the shape {np.shape(X)}, and nothing says where its "
                f"features lie; give shape={wanted}, or X in that shape behind its "
                "samples."
            )
        if not are_counts(given) or len(given) not in (dimensions, dimensions + 1):
            raise ValueError(f"{name}: shape must be {wanted}; got {given!r}.")
        expected = tuple(int(size) for size in given)
        if math.prod(expected) != math.prod(found):
            raise ValueError(
                f"{name}: shape={expected} does not multiply to the number of "
                f"features: {math.prod(expected)} against {math.prod(found)} in X "
                f"of shape {np.shape(X)}."
            )
        if len(found) > 1 and self._grid_shape(found) != self._grid_shape(expected):
            raise ValueError(
                f"{name}: shape={expected}, but X has the shape {np.shape(X)}; leave "
                "shape out, or flatten X."
            )
        return expected

    def _grid_shape(self, shape: Sequence[int]) -> tuple[int, int, int]:
        """(height, width, channels) of samples or filters of this shape."""
        *size, channels = shape if len(shape) > self.dimensions else (*shape, 1)
        height, width = (1, *size) if self.dimensions == 1 else size
        return height, width, channels

    def _grid(self, X: Matrix, shape: Sequence[int]) -> Array:
        X = np.asarray(X, dtype=float)
        return X.reshape(len(X), *self._grid_shape(shape))

    def _pair(self, name: str) -> Pair:
        """An argument that is a size or a stride, vertically and horizontally."""
        *_, vertical, horizontal = (1, *sizes(self, name, self.dimensions))
        return vertical, horizontal


@dataclass(frozen=True)
class Windows:
    """Windows of a size, at every `stride`-th place of a padded grid.

    Pairs are vertical and horizontal: the grid without padding, size and stride of the
    windows, rows or columns of padding before and after the grid.
    """

    grid: Pair
    size: Pair
    stride: Pair
    before: Pair = (0, 0)
    after: Pair = (0, 0)

    @classmethod
    def same(cls, grid: Pair, size: Pair, stride: Pair) -> Windows:
        """Windows at ceil(length / stride) places; an odd padding is larger behind."""
        extra = [
            max((-(-length // step) - 1) * step + window - length, 0)
            for length, window, step in zip(grid, size, stride, strict=True)
        ]
        before = (extra[0] // 2, extra[1] // 2)
        after = (extra[0] - before[0], extra[1] - before[1])
        return cls(grid, size, stride, before, after)

    @property
    def padded(self) -> Pair:
        """Size of the padded grid."""
        (h, w), (top, left), (bottom, right) = self.grid, self.before, self.after
        return top + h + bottom, left + w + right

    @property
    def places(self) -> Pair:
        """Number of windows."""
        (h, w), (fh, fw), (sh, sw) = self.padded, self.size, self.stride
        return (h - fh) // sh + 1, (w - fw) // sw + 1

    @property
    def inside(self) -> tuple[slice, slice]:
        """Where the grid lies in the padded grid."""
        (top, left), (h, w) = self.before, self.grid
        return slice(top, top + h), slice(left, left + w)

    def offsets(self) -> Iterator[tuple[Pair, tuple[slice, slice]]]:
        """For each offset in a window, what all windows see there."""
        (H, W), (fh, fw), (sh, sw) = self.places, self.size, self.stride
        for i, j in np.ndindex(fh, fw):
            rows = slice(i, i + (H - 1) * sh + 1, sh)
            yield (i, j), (rows, slice(j, j + (W - 1) * sw + 1, sw))

    def blocks(self, n: int, channels: int) -> Iterator[slice]:
        """Samples whose windows fit into one block."""
        (H, W), (fh, fw) = self.places, self.size
        return sample_blocks(n, H * W * fh * fw * channels)

    def columns(self, X: Array) -> Array:
        """(offsets x channels, samples x places): what every window sees, copied.

        A convolution is a product with this matrix. It is copied from planes (channels,
        samples, height, width), where what all windows see at one offset lies in long
        runs.
        """
        sh, sw = self.stride
        planes = np.zeros((X.shape[3], X.shape[0], *self.padded))
        planes[:, :, *self.inside] = X.transpose(3, 0, 1, 2)
        views = sliding_window_view(planes, self.size, axis=(2, 3))
        views = views[:, :, ::sh, ::sw].transpose(4, 5, 0, 1, 2, 3)
        return views.reshape(views.shape[0] * views.shape[1] * views.shape[2], -1)

    def scatter(self, columns: Array, n: int, channels: int) -> Array:
        """The transpose of `columns`: add up what windows hold where they lie."""
        views = columns.reshape(*self.size, channels, n, *self.places)
        planes = np.zeros((channels, n, *self.padded))
        for offset, seen in self.offsets():
            planes[:, :, *seen] += views[offset]
        return planes[:, :, *self.inside].transpose(1, 2, 3, 0)


def sample_blocks(n: int, entries: int) -> Iterator[slice]:
    """Consecutive samples, each of this many entries, in blocks of BLOCK_ENTRIES."""
    step = max(1, BLOCK_ENTRIES // max(entries, 1))
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))
