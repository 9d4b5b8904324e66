"""Windows that slide over a grid, and the same windows as columns of a matrix.

A grid is an array (n, height, width, channels). A block of its samples is copied to
planes (channels, samples, height, width), where what one window offset sees lies in
long runs, and from there to a matrix with one row for each offset and channel and one
column for each sample and position: a convolution is a product with that matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

# Entries of the matrix of one block: 4 MB in float64. It stays in the cache between
# its making and its use; 32 MB took 1.5 times as long.
BLOCK_ENTRIES = 1 << 19

Pair = tuple[int, int]


@dataclass(frozen=True)
class Windows:
    """Windows of a size, at every `stride`-th place of a grid padded with zeros.

    grid : (height, width) without the padding
    size, stride : of the windows, vertically and horizontally
    before, after : zeros in front of and behind the grid
    """

    grid: Pair
    size: Pair
    stride: Pair = (1, 1)
    before: Pair = (0, 0)
    after: Pair = (0, 0)

    @classmethod
    def valid(cls, grid: Pair, size: Pair, stride: Pair) -> Windows:
        """Windows that lie within the grid."""
        return cls(grid, size, stride)

    @classmethod
    def same(cls, grid: Pair, size: Pair, stride: Pair) -> Windows:
        """Padded for ceil(length / stride) places, the odd zero behind the grid."""
        zeros = [
            max((-(-length // step) - 1) * step + window - length, 0)
            for length, window, step in zip(grid, size, stride, strict=True)
        ]
        before = (zeros[0] // 2, zeros[1] // 2)
        after = (zeros[0] - before[0], zeros[1] - before[1])
        return cls(grid, size, stride, before, after)

    @property
    def padded(self) -> Pair:
        (h, w), (top, left), (bottom, right) = self.grid, self.before, self.after
        return top + h + bottom, left + w + right

    @property
    def places(self) -> Pair:
        """How many windows there are, vertically and horizontally."""
        (h, w), (fh, fw), (sh, sw) = self.padded, self.size, self.stride
        return (h - fh) // sh + 1, (w - fw) // sw + 1

    def blocks(self, n: int, channels: int) -> Iterator[slice]:
        """Samples whose windows fit into one block."""
        (H, W), (fh, fw) = self.places, self.size
        return sample_blocks(n, H * W * fh * fw * channels)

    def columns(self, X: np.ndarray) -> np.ndarray:
        """(offsets x channels, samples x places): what every window sees, copied."""
        (sh, sw), inside = self.stride, self._inside()
        planes = np.zeros((X.shape[3], X.shape[0], *self.padded))
        planes[inside] = X.transpose(3, 0, 1, 2)
        views = sliding_window_view(planes, self.size, axis=(2, 3))
        views = views[:, :, ::sh, ::sw].transpose(4, 5, 0, 1, 2, 3)
        return views.reshape(views.shape[0] * views.shape[1] * views.shape[2], -1)

    def scatter(self, columns: np.ndarray, n: int, channels: int) -> np.ndarray:
        """The transpose of `columns`: what windows hold, added up where they lie."""
        (H, W), (fh, fw), (sh, sw) = self.places, self.size, self.stride
        views = columns.reshape(fh, fw, channels, n, H, W)
        planes = np.zeros((channels, n, *self.padded))
        for i, j in np.ndindex(fh, fw):
            rows = slice(i, i + (H - 1) * sh + 1, sh)
            planes[:, :, rows, j : j + (W - 1) * sw + 1 : sw] += views[i, j]
        return planes[self._inside()].transpose(1, 2, 3, 0)

    def _inside(self) -> tuple[slice, ...]:
        (top, left), (h, w) = self.before, self.grid
        return slice(None), slice(None), slice(top, top + h), slice(left, left + w)


def sample_blocks(n: int, entries: int) -> Iterator[slice]:
    """Consecutive samples, each of so many entries, in blocks of BLOCK_ENTRIES."""
    step = max(1, BLOCK_ENTRIES // max(entries, 1))
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))
