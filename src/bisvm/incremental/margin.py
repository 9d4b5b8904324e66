"""The linear system of the margin vectors, and its factor kept up to date."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
from scipy.linalg import cholesky, qr_delete
from scipy.linalg.lapack import dtrtrs

# A point whose pivot is this small, relative to its diagonal entry, depends on the
# margin vectors: what is left of it is rounding.
DEPENDENT = 1e-13


class MarginSystem:
    """[K_MM 1; 1' 0] [beta; b] = [r; s] for the margin set M.

    With 1'beta = s, K may be replaced by A = K + shift 11' if b is replaced by
    b - shift s. A_MM is positive definite exactly where the bordered matrix is regular,
    so that one Cholesky factor R'R = A_MM serves: with A_MM u = 1 and A_MM v = r,

        b - shift s = (1'v - s) / 1'u,        beta = v - (b - shift s) u.

    A point is appended, or taken out by rotations, in O(m^2).

    Parameters
    ----------
    gram : (n, n) array; only rows of members are read, and kept beside each other.
    shift : positive float, of the size of the diagonal of K.
    """

    def __init__(self, gram: np.ndarray, shift: float):
        self.gram = gram
        self.shift = shift
        self.members = np.empty(0, dtype=int)
        self.factor = np.empty((0, 0))
        self._rows = np.empty((0, gram.shape[1]))
        self._slots = np.empty(0, dtype=int)
        self._shared = False

    def __len__(self) -> int:
        return len(self.members)

    def copy(self) -> Self:
        """A copy, independent of this one: the rows are copied by whoever adds one."""
        self._shared = True
        return copy(self)

    def rebind(self, gram: np.ndarray) -> None:
        """Another Gram matrix, the same for the members; points may have been added."""
        self.gram = gram
        self._rows = gram[self.members]
        self._slots = np.arange(len(self))
        self._shared = False

    def fill(self, members: np.ndarray) -> bool:
        """Make these the members by one factorisation; False if they are dependent."""
        A = self.gram[np.ix_(members, members)] + self.shift
        try:
            factor = cholesky(A, check_finite=False)
        except np.linalg.LinAlgError:
            return False
        if np.any(factor.diagonal() ** 2 <= DEPENDENT * A.diagonal()):
            return False
        self.members = np.asarray(members, dtype=int)
        self.factor = np.asfortranarray(factor)
        self.rebind(self.gram)
        return True

    def append(self, i: int) -> bool:
        """Let point i in; False, and nothing done, if it depends on the members."""
        column = self._column(i)
        diagonal = self.gram[i, i] + self.shift
        pivot = diagonal - column @ column
        if pivot <= DEPENDENT * diagonal:
            return False
        m = len(self)
        factor = np.zeros((m + 1, m + 1), order="F")
        factor[:m, :m] = self.factor
        factor[:m, m] = column
        factor[m, m] = np.sqrt(pivot)
        self.factor = factor
        self.members = np.append(self.members, i)
        self._store(i)
        return True

    def remove(self, i: int) -> None:
        """Take point i out: rotations bring the factor without its column back."""
        k = int(np.flatnonzero(self.members == i)[0])
        m = len(self)
        _, factor = qr_delete(np.eye(m), self.factor, k, which="col")
        self.factor = np.asfortranarray(factor[: m - 1])
        self.members = np.delete(self.members, k)
        self._slots = np.delete(self._slots, k)

    def solve(self, r: np.ndarray, s: float) -> tuple[np.ndarray, float]:
        """beta and b of the bordered system."""
        u, v = self._solve(np.column_stack([np.ones(len(self)), r])).T
        shifted = (v.sum() - s) / u.sum()
        return v - shifted * u, float(shifted + self.shift * s)

    def combination(self, i: int) -> np.ndarray:
        """v with k(x_i, .) + sum_j v_j k(x_j, .) = 0, if point i is dependent."""
        return -self._solve(self.gram[i, self.members] + self.shift)

    def functions(self, beta: np.ndarray) -> np.ndarray:
        """sum_j beta_j k(x_j, .) at all points."""
        spread = np.zeros(len(self._rows))
        spread[self._slots] = beta
        return spread @ self._rows

    def _column(self, i: int) -> np.ndarray:
        if not len(self):
            return np.empty(0)
        a = self.gram[i, self.members] + self.shift
        return dtrtrs(self.factor, a, trans=1)[0]

    def _solve(self, r: np.ndarray) -> np.ndarray:
        return dtrtrs(self.factor, dtrtrs(self.factor, r, trans=1)[0])[0]

    def _store(self, i: int) -> None:
        used = np.zeros(len(self._rows) + 1, dtype=bool)
        used[self._slots] = True
        slot = int(np.argmin(used))
        if slot == len(self._rows):
            more = np.zeros((8 + slot // 4, self.gram.shape[1]))
            self._rows = np.concatenate([self._rows, more])
        elif self._shared:
            self._rows = self._rows.copy()
        self._shared = False
        self._rows[slot] = self.gram[i]
        self._slots = np.append(self._slots, slot)
