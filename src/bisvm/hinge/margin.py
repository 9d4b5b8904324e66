"""The linear system of the margin vectors, and its factor kept up to date."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from scipy.linalg import lapack

from bisvm.hinge.gram import Gram, as_gram
from bisvm.hinge.triangular import backward, delete_row, forward

# A point whose pivot is this small, relative to its diagonal entry, depends on the
# margin vectors: what is left of it is rounding.
DEPENDENT = 1e-13

# Points factored at a time by `fill`: a square array of them is held.
_CHUNK = 2000


class MarginSystem:
    """[K_MM 1; 1' 0] [beta; b] = [r; s] for the margin set M.

    With 1'beta = s, K may be replaced by A = K + shift 11' if b is replaced by
    b - shift s. A_MM is positive definite exactly where the bordered matrix is regular,
    so that one Cholesky factor L L' = A_MM serves: with L e = 1 and L z = r,

        b - shift s = (e'z - s) / e'e,        L'beta = z - (b - shift s) e.

    Without a bias there is no border: K_MM beta = r, b = 0, and no shift. A point is
    appended, or taken out by rotations, in O(m^2); e, and z of a right-hand side that
    is held, are kept up to date beside L, so that only L' is left to solve with.

    Parameters
    ----------
    gram : Gram, or (n, n) array.
    bias : whether there is a border.
    """

    def __init__(self, gram: Gram | np.ndarray, bias: bool = True):
        self.gram = as_gram(gram)
        self.bias = bias
        self.scale = self.gram.scale()
        self.shift = self.scale if bias else 0.0
        self.members = np.empty(0, dtype=int)
        self._L, self._shared = np.empty((0, 0), order="F"), False
        # Right-hand sides 1 and r at all points, and e and z.
        self._right, self._z = _ones_and(0.0, len(self.gram)), np.empty((2, 0))

    def __len__(self) -> int:
        return len(self.members)

    @property
    def factor(self) -> np.ndarray:
        """L, (m, m)."""
        return np.tril(self._L[: len(self), : len(self)])

    def copy(self) -> Self:
        """A copy, independent of this one: who changes the factor first copies it."""
        self._shared = True
        return copy(self)

    def moved(self, gram: Gram, members: np.ndarray) -> Self:
        """The same system where the members have other numbers; it takes the factor.

        No right-hand side is held.
        """
        other = copy(self)
        other.gram, other.members = gram, members
        other._right, other._z = _ones_and(0.0, len(gram)), self._z.copy()
        other._z[1] = 0.0
        return other

    def hold(self, r: np.ndarray) -> None:
        """A right-hand side at all points (n,), for `solve_held`."""
        z = r[self.members]
        forward(self._L, z)
        self._right = _ones_and(r, len(r))
        self._z = np.stack([self._z[0], z])

    def refactor(self) -> bool:
        """Compute the factor anew; False, and nothing done, if that is impossible."""
        factor = _cholesky(self._matrix(self.members)) if len(self) else None
        if factor is None:
            return False
        self._keep(factor, self.members)
        return True

    def fill(self, points: np.ndarray) -> np.ndarray:
        """Make independent ones of these points the members; the others are returned.

        Each chunk is one factorisation, with pivoting if it has to be.
        """
        self.members, rest = np.empty(0, dtype=int), [np.empty(0, dtype=int)]
        for start in range(0, len(points), _CHUNK):
            candidates = np.append(self.members, points[start : start + _CHUNK])
            A = self._matrix(candidates)
            factor = _cholesky(A)
            order, rank = np.arange(len(A)), len(A)
            if factor is None:
                factor, order, rank = _pivoted_cholesky(A)
            self._keep(factor, candidates[order[:rank]])
            rest.append(candidates[order[rank:]])
        return np.concatenate(rest)

    def append(self, i: int) -> bool:
        """Let point i in; False, and nothing done, if it depends on the members."""
        m, row = len(self), self._row(i)
        diagonal = float(self.gram.diagonal()[i]) + self.shift
        forward(self._L, row)
        pivot = diagonal - float(row @ row)
        if pivot <= DEPENDENT * diagonal:
            return False
        self._own(m + 1)
        self._L[m, :m] = row
        self._L[m, m] = np.sqrt(pivot)
        z = (self._right[:, i] - self._z @ row) / self._L[m, m]
        self._z = np.column_stack([self._z, z])
        self.members = np.append(self.members, i)
        return True

    def remove(self, i: int) -> None:
        """Take point i out."""
        k = int(np.flatnonzero(self.members == i)[0])
        self._own(len(self))
        delete_row(self._L, self._z, k)
        self._z = self._z[:, :-1].copy()
        self.members = np.delete(self.members, k)

    def solve(self, r: np.ndarray, s: float = 0.0) -> tuple[np.ndarray, float]:
        """beta and b of the system, r (m,)."""
        z = np.array(r, dtype=float)
        forward(self._L, z)
        return self._finish(z, s)

    def solve_held(self, s: float = 0.0) -> tuple[np.ndarray, float]:
        """The same for the right-hand side that is held."""
        return self._finish(self._z[1].copy(), s)

    def _finish(self, z: np.ndarray, s: float) -> tuple[np.ndarray, float]:
        e = self._z[0]
        shifted = (e @ z - s) / (e @ e) if self.bias else 0.0
        z -= shifted * e
        backward(self._L, z)
        return z, float(shifted + self.shift * s)

    def combination(self, i: int) -> np.ndarray:
        """v with k(x_i, .) + sum_j v_j k(x_j, .) = 0, if point i is dependent."""
        row = self._row(i)
        forward(self._L, row)
        backward(self._L, row)
        return -row

    def functions(self, beta: np.ndarray) -> np.ndarray:
        """sum_j beta_j k(x_j, .) at all points."""
        return self.gram.functions(self.members, beta)

    def _matrix(self, points: np.ndarray) -> np.ndarray:
        return self.gram.block(points, points) + self.shift

    def _row(self, i: int) -> np.ndarray:
        return self.gram.block(np.array([i]), self.members)[0] + self.shift

    def _keep(self, factor: np.ndarray, members: np.ndarray) -> None:
        self._L, self._shared, self.members = factor, False, members
        self._z = np.ascontiguousarray(self._right[:, members])
        for z in self._z:
            forward(self._L, z)

    def _own(self, m: int) -> None:
        """A factor that nobody else has, with room for m members."""
        if m > len(self._L) or self._shared:
            k, size = len(self), max(m + 8 + m // 8, len(self._L))
            room = np.empty((size, size), order="F")
            room[:k, :k] = self._L[:k, :k]
            self._L, self._z, self._shared = room, self._z.copy(), False


def _ones_and(r: Any, n: int) -> np.ndarray:
    return np.stack([np.ones(n), np.broadcast_to(r, n)])


def _cholesky(A: np.ndarray) -> Any:
    """The lower factor, or None if a point depends on those before it."""
    factor, failed = lapack.dpotrf(A, lower=1, clean=0)
    if failed or np.any(factor.diagonal() ** 2 <= DEPENDENT * A.diagonal()):
        return None
    return factor


def _pivoted_cholesky(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Lower factor of A[order][:, order] up to the rank, the order, and the rank.

    Of A with a diagonal of ones, so that every pivot is relative to its own entry.
    """
    size = np.sqrt(A.diagonal())
    size[size == 0] = 1.0
    factor, pivots, rank, _ = lapack.dpstrf(
        A / np.outer(size, size), tol=DEPENDENT, lower=1
    )
    order = pivots - 1
    factor = np.asfortranarray(factor[:rank, :rank] * size[order[:rank], None])
    return factor, order, int(rank)
