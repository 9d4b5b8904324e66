"""Trained machines as functions of new rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import dense
from bisvm.kernels import Kernel

# Entries of a block of the Gram matrix between new rows and support vectors: 64 MB.
BLOCK_ENTRIES = 1 << 23


@dataclass(frozen=True, eq=False)
class DecisionFunctions:
    """f_q(x) = sum_j coef_jq k(x, z_j) + intercept_q, for machines q.

    A linear machine has the features of x in place of k(x, z_j). With a precomputed
    kernel, x holds its values at all rows of the training data.

    coef : (m, q), dense or CSR
    intercept : (q,)
    support : (m,), numbers of the points z_j with a precomputed kernel, or None
    vectors : (m, d), the points z_j with any other kernel, or None
    """

    coef: Matrix
    intercept: Array
    support: Array | None = None
    vectors: Matrix | None = None

    def values(self, X: Matrix, kernels: Sequence[tuple[Kernel, Array]]) -> Array:
        """Return decision values (n, q).

        kernels : every kernel with the numbers of the machines that it serves
        """
        if self.vectors is None:
            inputs = X if self.support is None else X[:, self.support]
            return np.asarray(inputs @ self.coef + self.intercept)
        X = sparse.csr_array(X) if sparse.issparse(self.vectors) else dense(X)
        out = np.empty((X.shape[0], len(self.intercept)))
        for kernel, own in kernels:
            coef = self.coef[:, own]
            out[:, own] = kernel.values(X, self.vectors, coef, BLOCK_ENTRIES)
        out += self.intercept
        return out

    def values_of_parts(
        self, X: Matrix, kernels: Sequence[tuple[Kernel, Array]], n_parts: int
    ) -> Array:
        """Return decision values (n, q) of machines in `n_parts` parts of equal size.

        kernels : every kernel with the numbers of its machines within a part
        """
        first = np.arange(n_parts)[:, None] * (len(self.intercept) // n_parts)
        blocks = [(kernel, (first + own).ravel()) for kernel, own in kernels]
        return self.values(X, blocks)

    def part(self, number: int, n_parts: int) -> DecisionFunctions:
        """Return one of `n_parts` parts of equal size, with the points that it uses."""
        size = len(self.intercept) // n_parts
        own = np.arange(number * size, (number + 1) * size)
        coef, support, vectors = self.coef[:, own], self.support, self.vectors
        if vectors is None and support is None:
            return DecisionFunctions(coef, self.intercept[own])
        coef = dense(coef)
        used = np.flatnonzero(coef.any(axis=1))
        return DecisionFunctions(
            coef[used],
            self.intercept[own],
            None if support is None else support[used],
            None if vectors is None else vectors[used],
        )
