"""The linear system of the margin vectors, with a factor that is updated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.linalg import lapack

from bisvm.core.compiling import njit
from bisvm.core.types import Array
from bisvm.hinge.gram import Gram, as_gram

# A point whose pivot is this small, relative to its diagonal entry, depends on the
# margin vectors: what is left of it is rounding.
DEPENDENT = 1e-13

# Points factored at a time by `fill`: a square array of them is held.
_CHUNK = 2000

# What the compiler may do with sums.
_FAST = {"reassoc", "contract"}


@dataclass(eq=False)
class MarginSystem:
    """[K_MM 1; 1' 0] [beta; b] = [r; s] for the margin set M.

    With 1'beta = s, K may be replaced by A = K + shift 11' if b is replaced by
    b - shift s. A_MM is positive definite exactly where the bordered matrix is regular,
    so that one Cholesky factor L L' = A_MM serves: with L e = 1 and L z = r,

        b - shift s = (e'z - s) / e'e,        L'beta = z - (b - shift s) e.

    Without a bias there is no border: K_MM beta = r, b = 0, and no shift. A point is
    appended, or removed by rotations, in O(m^2). e, and z of a right-hand side that is
    held, are updated together with L, so that only L' is left to solve with.

    It is changed in place, by its own methods alone: L is the leading part of an array
    with room to grow. Copies share that array until one of them changes it.

    Attributes
    ----------
    gram : Gram
    bias : whether there is a border.
    scale : size of the diagonal of the Gram matrix that the system was made for.
    members : (m,), M.
    """

    gram: Gram
    bias: bool
    scale: float
    members: Array
    _L: Array
    # Right-hand sides 1 and r at all points (2, n), and e and z (2, m).
    _right: Array
    _z: Array
    _shared: bool = False

    @classmethod
    def of(cls, gram: Gram | Array, bias: bool = True) -> Self:
        """Return the system without members."""
        gram, nobody = as_gram(gram), np.empty(0, dtype=int)
        L, right = np.empty((0, 0), order="F"), _ones_and(0.0, len(gram))
        return cls(gram, bias, gram.scale(), nobody, L, right, np.empty((2, 0)))

    @property
    def shift(self) -> float:
        return self.scale if self.bias else 0.0

    def __len__(self) -> int:
        return len(self.members)

    @property
    def factor(self) -> Array:
        """L, (m, m)."""
        return np.tril(self._L[: len(self), : len(self)])

    def copy(self) -> Self:
        """Return a copy; whichever changes the factor first copies it."""
        self._shared = True
        return replace(self)

    def moved(self, gram: Gram, members: Array) -> Self:
        """Return this system where the members have other numbers; it takes the factor.

        No right-hand side is held.
        """
        z = self._z.copy()
        z[1] = 0.0
        right = _ones_and(0.0, len(gram))
        return replace(self, gram=gram, members=members, _right=right, _z=z)

    def hold(self, r: Array) -> None:
        """Set the right-hand side at all points (n,) for `solve_held`."""
        z = r[self.members]
        forward(self._L, z)
        self._right = _ones_and(r, len(r))
        self._z = np.stack([self._z[0], z])

    def refactor(self) -> bool:
        """Compute the factor from scratch; return False if that is impossible."""
        factor = _cholesky(self._matrix(self.members)) if len(self) else None
        if factor is None:
            return False
        self._keep(factor, self.members)
        return True

    def fill(self, points: Array) -> Array:
        """Make independent ones of these points the members; return the others.

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
        """Add point i, unless it depends on the members; return whether it did not."""
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
        """Remove point i."""
        k = int(np.flatnonzero(self.members == i)[0])
        self._own(len(self))
        delete_row(self._L, self._z, k)
        self._z = self._z[:, :-1].copy()
        self.members = np.delete(self.members, k)

    def solve(self, r: Array, s: float = 0.0) -> tuple[Array, float]:
        """Return beta and b of the system, r (m,)."""
        z = np.array(r, dtype=float)
        forward(self._L, z)
        return self._finish(z, s)

    def solve_held(self, s: float = 0.0) -> tuple[Array, float]:
        """Return beta and b for the right-hand side that is held."""
        return self._finish(self._z[1].copy(), s)

    def _finish(self, z: Array, s: float) -> tuple[Array, float]:
        e = self._z[0]
        shifted = (e @ z - s) / (e @ e) if self.bias else 0.0
        z -= shifted * e
        backward(self._L, z)
        return z, float(shifted + self.shift * s)

    def combination(self, i: int) -> Array:
        """Return v with k(x_i, .) + sum_j v_j k(x_j, .) = 0 of a dependent point."""
        row = self._row(i)
        forward(self._L, row)
        backward(self._L, row)
        return -row

    def functions(self, beta: Array) -> Array:
        """Return sum_j beta_j k(x_j, .) at all points."""
        return self.gram.functions(self.members, beta)

    def _matrix(self, points: Array) -> Array:
        return self.gram.block(points, points) + self.shift

    def _row(self, i: int) -> Array:
        row: Array = self.gram.block(np.array([i]), self.members)[0] + self.shift
        return row

    def _keep(self, factor: Array, members: Array) -> None:
        self._L, self._shared, self.members = factor, False, members
        self._z = np.ascontiguousarray(self._right[:, members])
        for z in self._z:
            forward(self._L, z)

    def _own(self, m: int) -> None:
        """Make the factor one that is not shared, with room for m members."""
        if m > len(self._L) or self._shared:
            k, size = len(self), max(m + 8 + m // 8, len(self._L))
            room = np.empty((size, size), order="F")
            room[:k, :k] = self._L[:k, :k]
            self._L, self._z, self._shared = room, self._z.copy(), False


def _ones_and(r: Array | float, n: int) -> Array:
    return np.stack([np.ones(n), np.broadcast_to(r, n)])


def _cholesky(A: Array) -> Array | None:
    """Return the lower factor, or None if a point depends on those before it."""
    factor, failed = lapack.dpotrf(A, lower=1, clean=0)
    if failed or np.any(factor.diagonal() ** 2 <= DEPENDENT * A.diagonal()):
        return None
    lower: Array = factor
    return lower


def _pivoted_cholesky(A: Array) -> tuple[Array, Array, int]:
    """Return the factor of A[order][:, order] up to the rank, the order, and the rank.

    A is scaled to a diagonal of ones, so that every pivot is relative to its entry.
    """
    size = np.sqrt(A.diagonal())
    size[size == 0] = 1.0
    factor, pivots, rank, _ = lapack.dpstrf(
        A / np.outer(size, size), tol=DEPENDENT, lower=1
    )
    order = pivots - 1
    factor = np.asfortranarray(factor[:rank, :rank] * size[order[:rank], None])
    return factor, order, int(rank)


# A factor L L' = A is the leading (m, m) part of an array in Fortran order with room to
# grow, so that columns are contiguous and nothing is copied when m changes. Only the
# lower triangle is read or written. Loops handle four columns at a time: they are
# limited by memory.


@njit(cache=True, fastmath=_FAST)
def forward(L: Array, z: Array) -> None:
    """Overwrite z (m,) with the solution of L x = z."""
    m = len(z)
    whole = m - m % 4
    for j in range(0, whole, 4):
        l0, l1, l2, l3 = L[:, j], L[:, j + 1], L[:, j + 2], L[:, j + 3]
        x0 = z[j] / l0[j]
        x1 = (z[j + 1] - x0 * l0[j + 1]) / l1[j + 1]
        x2 = (z[j + 2] - x0 * l0[j + 2] - x1 * l1[j + 2]) / l2[j + 2]
        x3 = (z[j + 3] - x0 * l0[j + 3] - x1 * l1[j + 3] - x2 * l2[j + 3]) / l3[j + 3]
        z[j], z[j + 1], z[j + 2], z[j + 3] = x0, x1, x2, x3
        for i in range(j + 4, m):
            z[i] -= x0 * l0[i] + x1 * l1[i] + x2 * l2[i] + x3 * l3[i]
    for j in range(whole, m):
        z[j] /= L[j, j]
        for i in range(j + 1, m):
            z[i] -= z[j] * L[i, j]


@njit(cache=True, fastmath=_FAST)
def backward(L: Array, z: Array) -> None:
    """Overwrite z (m,) with the solution of L'x = z."""
    m = len(z)
    whole = m - m % 4
    for j in range(m - 1, whole - 1, -1):
        for i in range(j + 1, m):
            z[j] -= L[i, j] * z[i]
        z[j] /= L[j, j]
    for j in range(whole - 4, -1, -4):
        l0, l1, l2, l3 = L[:, j], L[:, j + 1], L[:, j + 2], L[:, j + 3]
        s0 = s1 = s2 = s3 = 0.0
        for i in range(j + 4, m):
            s0 += l0[i] * z[i]
            s1 += l1[i] * z[i]
            s2 += l2[i] * z[i]
            s3 += l3[i] * z[i]
        x3 = (z[j + 3] - s3) / l3[j + 3]
        x2 = (z[j + 2] - s2 - x3 * l2[j + 3]) / l2[j + 2]
        x1 = (z[j + 1] - s1 - x2 * l1[j + 2] - x3 * l1[j + 3]) / l1[j + 1]
        x0 = (z[j] - s0 - x1 * l0[j + 1] - x2 * l0[j + 2] - x3 * l0[j + 3]) / l0[j]
        z[j], z[j + 1], z[j + 2], z[j + 3] = x0, x1, x2, x3


@njit(cache=True, fastmath=_FAST)
def delete_row(L: Array, z: Array, k: int) -> None:
    """Remove row k of the factor; rotations of columns make it triangular again.

    Rows below move up by one and reach one column too far. The rotation of columns j
    and j + 1 clears entry (j, j + 1), for j from k on. Where L z = r was, it is again
    for r without r_k: rows of z (q, m) are rotated too, and lose their last entry.
    """
    m = z.shape[1]
    for j in range(k):
        column = L[:, j]
        for i in range(k, m - 1):
            column[i] = column[i + 1]
    for j in range(k, m - 1):
        left, right = L[:, j], L[:, j + 1]
        length = np.hypot(left[j + 1], right[j + 1])
        cos, sin = left[j + 1] / length, right[j + 1] / length
        left[j] = length
        for i in range(j + 2, m):
            low, high = left[i], right[i]
            left[i - 1] = cos * low + sin * high
            right[i] = cos * high - sin * low
        for q in range(len(z)):
            low, high = z[q, j], z[q, j + 1]
            z[q, j], z[q, j + 1] = cos * low + sin * high, cos * high - sin * low
