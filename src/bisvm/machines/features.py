"""Kernel features k(x, z_j) of rows that are computed in blocks, and never held.

A landmark machine is a linear machine on the features K_nm = k(X, Z). They are n m
numbers, which with many rows take far more memory than X. `KernelFeatures` computes
them again in every pass over the rows, a few thousand rows at a time. X may be in
memory, in chunks on disk or on the workers of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import iadd
from typing import Self

import numpy as np

from bisvm.core.threads import in_threads
from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import Inputs, Result, RowBlocks, keep, reduce, stack
from bisvm.kernels import Factors, Kernel
from bisvm.kernels.base import DROPPED_ENTRIES, row_blocks

# Parts of a block that threads work on before their results are combined: more would
# hold more results, which are m x m matrices, in memory.
PARTS_AT_A_TIME = 4


class KernelFeatures(RowBlocks):
    """The (n, m) matrix k(x_i, z_j), of which only blocks of rows are in memory.

    Parameters
    ----------
    kernel : Kernel
    X : matrix or RowBlocks of shape (n, d)
    landmarks : matrix of shape (m, d)
    functions : applied to blocks of features, row by row
    """

    y = None
    is_sparse = False

    def __init__(
        self,
        kernel: Kernel,
        X: Inputs,
        landmarks: Matrix,
        functions: tuple[Callable[[Matrix], Matrix], ...] = (),
    ):
        self.kernel, self.X, self.landmarks = kernel, X, landmarks
        self._functions = functions
        self.shape = (X.shape[0], landmarks.shape[0])
        self.head = None

    def reduce(
        self,
        function: Callable[..., Result],
        *operands: Array,
        combine: Callable[[Result, Result], Result] = iadd,
    ) -> Result:
        """Combine the function of all blocks of features; see `RowBlocks`."""
        over = partial(_combined, self._of_rows, function, combine)
        return reduce(over, self.X, *operands, combine=combine)

    def stack(self, function: Callable[[Matrix], Array]) -> Array:
        """Stack the rows that the function returns for each block of features."""
        return stack(partial(_stacked, self._of_rows, function), self.X)

    def keep(self, rows: Array) -> Self:
        """Return the features of these rows alone."""
        kept = keep(self.X, rows)
        return type(self)(self.kernel, kept, self.landmarks, self._functions)

    def pullback(self, weights: Factors) -> Array:
        """Differentiate <weights, k(X, Z)> by the kernel's parameters: one pass."""
        by_rows = partial(_pullback, self._of_rows, weights.right)
        return reduce(by_rows, self.X, weights.left)

    def _in_memory(self) -> list[Matrix]:
        return [self.stack(_itself)]

    @property
    def _of_rows(self) -> FeatureMap:
        return FeatureMap(self.kernel, self.landmarks, self._functions)


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Rows to their features, and to what further functions make of these."""

    kernel: Kernel
    landmarks: Matrix
    functions: tuple[Callable[[Matrix], Matrix], ...] = ()

    def __call__(self, rows: Matrix) -> Array:
        features = self.kernel.gram(rows, self.landmarks)
        for function in self.functions:
            features = function(features)
        return features

    def parts(self, n: int) -> list[slice]:
        """Blocks of n rows whose features fit into the cache."""
        blocks = row_blocks(n, self.landmarks.shape[0], DROPPED_ENTRIES)
        return list(blocks) or [slice(0, 0)]


def _combined(
    features: FeatureMap,
    function: Callable[..., Result],
    combine: Callable[[Result, Result], Result],
    rows: Matrix,
    *operands: Array,
) -> Result:
    """function(features, operands), combined over parts of the rows, in their order."""

    def of_part(part: slice) -> Result:
        return function(features(rows[part]), *(operand[part] for operand in operands))

    total = None
    parts = features.parts(rows.shape[0])
    for first in range(0, len(parts), PARTS_AT_A_TIME):
        for found in in_threads(of_part, parts[first : first + PARTS_AT_A_TIME]):
            total = found if total is None else combine(total, found)
    assert total is not None
    return total


def _pullback(features: FeatureMap, right: Array, rows: Matrix, left: Array) -> Array:
    kernel, Z = features.kernel, features.landmarks

    def of_part(part: slice) -> Array:
        X, weights = rows[part], Factors(left[part], right)
        return kernel.pullback(X, Z, kernel.gram(X, Z), weights).theta

    total: Array = sum(in_threads(of_part, features.parts(rows.shape[0])))  # type: ignore[assignment]
    return total


def _stacked(
    features: FeatureMap, function: Callable[[Matrix], Array], rows: Matrix
) -> Array:
    parts = features.parts(rows.shape[0])
    return np.concatenate(
        in_threads(lambda part: function(features(rows[part])), parts)
    )


def _itself(block: Matrix) -> Array:
    return np.asarray(block)
