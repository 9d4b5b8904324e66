"""Passes over rows in blocks, each of which answers several questions at once.

A pass is expensive: blocks are read, and the features of a landmark machine computed.
So all that one pass can compute is requested at once, for all columns:

    V = X x + b,      X'A  with A a function of V,      [X 1]' diag(D_s) [X 1].

The last needs n m^2 operations for every D_s. The folds of one task differ by the rows
that they hold out, and hardly by their curvatures D_ik. With D_i the mean over those
columns that train row i, and G_p the sum over the rows that the same columns train,

    H_k = R + sum of G_p over p that k trains,     G_p = sum_{i in p} D_i x_i x_i',

costs no more for five folds than for one machine. The H_k are not quite the Hessians.
They are used for steps that end where the exact gradient is small, and to precondition
conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from bisvm.core.types import Array, Matrix
from bisvm.data.columns import distinct_columns
from bisvm.data.matrices import RowBlocks, weighted_squares
from bisvm.losses import Loss
from bisvm.machines.base import (
    Adjoint,
    Coefficients,
    Linearization,
    Tangent,
    column_dots,
)
from bisvm.machines.linear import DenseSystem, LinearMachine

# Columns whose patterns of rows are told apart by the bits of one integer.
MOST_COLUMNS = 62
# Passes of conjugate gradients with a preconditioner that is nearly the inverse.
MOST_PASSES = 60
# Relative residual above which they have failed.
ACCEPTABLE = 1e-4


# --- which rows count for which columns -----------------------------------------------


@dataclass(frozen=True, eq=False)
class Sharing:
    """Sums over rows from which the Hessians of all columns are made.

    groups : columns with the same labels, such as the folds of one task
    codes : (n, n_groups), number p of the sum that a row belongs to; -1 for none
    members : (n_sums, q), whether column k trains the rows of sum p
    """

    groups: tuple[Array, ...]
    codes: Array
    members: Array

    @classmethod
    def of(cls, labels: Array, weights: Array) -> Sharing | None:
        """Return the sums; None if there would be more of them than columns."""
        q = labels.shape[1]
        number = distinct_columns(labels)[1]
        groups = [np.flatnonzero(number == g) for g in range(number.max() + 1)]
        if max(map(len, groups)) > MOST_COLUMNS:
            return None
        codes: list[Array] = []
        members: list[Array] = []
        for group in groups:
            bits = (weights[:, group] > 0) @ (1 << np.arange(len(group)))
            patterns, code = np.unique(bits, return_inverse=True)
            trained = patterns > 0
            place = np.where(trained, np.cumsum(trained) - 1 + len(members), -1)
            codes.append(place[code])
            for pattern in patterns[trained]:
                member = np.zeros(q, dtype=bool)
                member[group] = (pattern >> np.arange(len(group))) & 1
                members.append(member)
        if len(members) > q:
            return None
        return cls(tuple(groups), np.stack(codes, axis=1), np.array(members))

    def mean(self, curvature: Array, weights: Array) -> Array:
        """Mean curvature of the columns of a group that train a row, for each: (n, q).

        Zero for columns that do not.
        """
        out = np.zeros_like(curvature)
        for group in self.groups:
            trained = weights[:, group] > 0
            counts = np.maximum(trained.sum(axis=1), 1)
            mean = curvature[:, group].sum(axis=1) / counts
            out[:, group] = np.where(trained, mean[:, None], 0.0)
        return out

    def by_sum(self, mean: Array, codes: Array) -> Array:
        """Mean curvatures of rows, each in the column of its sum: (n, n_sums)."""
        out = np.zeros((len(mean), len(self.members)))
        for group, code in zip(self.groups, codes.T, strict=True):
            rows = np.flatnonzero(code >= 0)
            out[rows, code[rows]] = mean[rows][:, group].max(axis=1)
        return out

    def of_columns(self, squares: Array) -> Iterator[Array]:
        """Yield the sum of the squares that count for each column."""
        for members in self.members.T:
            yield squares[members].sum(axis=0)

    def without_codes(self) -> Sharing:
        """Return the sums without the rows' codes, which travel with the rows."""
        return replace(self, codes=np.empty((0, 0)))


# --- one pass -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pass:
    """What one pass over the rows has found.

    values : (n, q) by blocks, V = X x + b
    products : (m + 1, q), [X 1]'A
    squares : (n_sums, m + 1, m + 1), or None if not asked for
    sizes : (m, q), |X|'W, or None if not asked for
    """

    values: list[Array]
    products: Array
    squares: Array | None = None
    sizes: Array | None = None

    def merge(self, other: Pass) -> Pass:
        """Append the values of the blocks that follow, and add up the sums."""
        return Pass(
            self.values + other.values,
            self.products + other.products,
            _sum(self.squares, other.squares),
            _sum(self.sizes, other.sizes),
        )


def _sum(first: Array | None, second: Array | None) -> Array | None:
    return None if first is None or second is None else first + second


class Wanted(NamedTuple):
    """A, curvatures by sum where squares are asked for, W where sizes are."""

    at_points: Array
    curvature: Array | None = None
    weights: Array | None = None


# (V, rows of the operands) -> what is asked of a block.
React = Callable[..., Wanted]


def pass_over(
    X: RowBlocks, x: Coefficients | None, react: React, *operands: Array
) -> Pass:
    """Compute V at x (no values if None), A = react(V, operands), and [X 1]'A."""
    found: Pass = X.reduce(partial(_pass, x, react), *operands, combine=Pass.merge)
    return found


def _pass(
    x: Coefficients | None, react: React, block: Matrix, *operands: Array
) -> Pass:
    values = None if x is None else block @ x.coef + x.intercept
    A, D, W = react(values, *operands)
    return Pass(
        [] if values is None else [values],
        np.vstack([block.T @ A, A.sum(axis=0)]),
        None if D is None else weighted_squares(block, D),
        None if W is None else np.abs(block).T @ W,
    )


def _given(values: None, *wanted: Array) -> Wanted:
    """A, D and W that do not depend on values."""
    return Wanted(*wanted)


def _times(values: Array, D: Array) -> Wanted:
    """A = D V."""
    return Wanted(D * values)


def _slopes(
    loss: Loss,
    sharing: Sharing | None,
    values: Array,
    Y: Array,
    W: Array,
    *codes: Array,
) -> Wanted:
    """A = S at the values; curvatures with `codes`."""
    _, S, D = loss.weighted(values, Y, W)
    if not codes:
        return Wanted(S)
    if sharing is None:
        return Wanted(S, D)
    return Wanted(S, sharing.by_sum(sharing.mean(D, W), codes[0]))


# --- a machine on blocks --------------------------------------------------------------


class Systems:
    """H_k of all columns, factorised; squares are overwritten."""

    def __init__(self, machine: LinearMachine, squares: Iterable[Array]):
        R, rho = machine.precision, machine.intercept_precision
        self.systems, size = [], None if machine.has_intercept else -1
        for k, H in enumerate(squares):
            H[:-1, :-1] += R if R.ndim == 2 else np.diag(R)
            H[-1, -1] += rho[k]
            self.systems.append(DenseSystem(np.ascontiguousarray(H[:size, :size])))

    def solve(self, rhs: Array) -> Array:
        """H_k^-1 r_k for the columns r_k of (m + 1, q); the last row is b's."""
        out = np.zeros_like(rhs)
        for k, system in enumerate(self.systems):
            m = len(system.scale)
            out[:m, k] = system.solve(rhs[:m, k])
        return out


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """A machine on blocks of rows, by passes over them."""

    machine: LinearMachine

    @property
    def X(self) -> RowBlocks:
        """The rows, in blocks."""
        assert isinstance(self.machine.X, RowBlocks)
        return self.machine.X

    @cached_property
    def _sharing(self) -> Sharing | None:
        return Sharing.of(self.machine.labels, self.machine.weights)

    def sharing(self, curvature: Array) -> Sharing | None:
        """Return the sums for curvatures D (n, q); None for a Hessian of every column.

        These are affordable if all columns together have no more than n active points.
        """
        few = np.count_nonzero(curvature) <= len(curvature)
        return None if few or self.machine.n_columns == 1 else self._sharing

    def systems(self, at_points: Array, curvature: Array) -> tuple[Systems, Array]:
        """Return the H_k at curvatures D (n, q), and [X 1]'A."""
        found, sharing = self._at_curvature(at_points, curvature)
        return self._made(found, sharing), found.products

    def newton_point(self, tangent: Tangent) -> tuple[Systems, Coefficients, Array]:
        """Return the H_k, H_k^-1 [X 1]'(D F - S) with the D of H_k, and |X|'W."""
        W, D = self.machine.weights, tangent.curvature
        sharing = self.sharing(D)
        D = D if sharing is None else sharing.mean(D, W)
        at_points = D * tangent.fitted - tangent.slope
        found, sharing = self._at_curvature(at_points, tangent.curvature, W)
        systems = self._made(found, sharing)
        assert found.sizes is not None
        return systems, coefficients(systems.solve(found.products)), found.sizes

    def _at_curvature(
        self, at_points: Array, curvature: Array, *weights: Array
    ) -> tuple[Pass, Sharing | None]:
        sharing, D = self.sharing(curvature), curvature
        if sharing is not None:
            D = sharing.mean(D, self.machine.weights)
            D = sharing.by_sum(D, sharing.codes)
        return pass_over(self.X, None, _given, at_points, D, *weights), sharing

    def reading(
        self, x: Coefficients, near: Array | None
    ) -> tuple[Array, Array, Systems | None]:
        """Return fitted values, the gradient of E, and the H_k there if asked for.

        near : (n, q), curvatures at a point nearby, which decide how the H_k are made;
            None if they are not asked for
        """
        machine = self.machine
        sharing = None if near is None else self.sharing(near)
        operands = [machine.labels, machine.weights]
        if near is not None:
            operands.append(machine.weights if sharing is None else sharing.codes)
        light = None if sharing is None else sharing.without_codes()
        react = partial(_slopes, machine.loss, light)
        found = pass_over(self.X, x, react, *operands)
        systems = None if near is None else self._made(found, sharing)
        return np.concatenate(found.values), found.products + self.penalty(x), systems

    def _made(self, found: Pass, sharing: Sharing | None) -> Systems:
        assert found.squares is not None
        if sharing is None:
            return Systems(self.machine, found.squares)
        return Systems(self.machine, sharing.of_columns(found.squares))

    def penalty(self, x: Coefficients) -> Array:
        """(R w, rho b), the gradient of the regulariser; 0 for no intercept."""
        border = self.machine.intercept_precision * x.intercept
        return np.vstack([self.machine.penalize(x.coef), border])

    def action(self, v: Array, D: Array) -> tuple[Array, Array]:
        """Return X v + b and (R + X'D_k X) v, bordered, for the columns of v."""
        x = coefficients(v)
        found = pass_over(self.X, x, _times, D)
        return np.concatenate(found.values), found.products + self.penalty(x)


def coefficients(v: Array) -> Coefficients:
    """Split (m + 1, q) into coefficients and intercepts."""
    return Coefficients(v[:-1], v[-1])


def stacked(x: Coefficients) -> Array:
    """Put coefficients and intercepts into one array, (m + 1, q)."""
    return np.vstack([x.coef, x.intercept])


class BlockLinearization(Linearization):
    """R + X'D_k X by conjugate gradients, with the H_k as preconditioner.

    One pass makes the H_k and the right-hand side. The values X s come with the passes
    of the iteration.
    """

    def __init__(self, machine: LinearMachine, tangent: Tangent):
        self.problem = BlockProblem(machine)
        self.tangent = tangent

    def minimizer(self) -> Coefficients:
        """(R + X'D X) x = X'(D F - S)."""
        tangent = self.tangent
        return self._solve(tangent.curvature * tangent.fitted - tangent.slope)[0]

    def direction(self, x: Coefficients) -> Coefficients:
        """(R + X'D X) d = -(X'S + R x)."""
        return self._solve(-self.tangent.slope, -self.problem.penalty(x))[0]

    def adjoint(self, cotangent: Array) -> Adjoint:
        """(R + X'D X) s = X'P, P the cotangent."""
        return Adjoint(*self._solve(cotangent))

    def _solve(
        self, at_points: Array, more: Array | float = 0.0
    ) -> tuple[Coefficients, Array]:
        """Solve for [X 1]'A + more; also return the values of the solution."""
        problem, machine, D = self.problem, self.problem.machine, self.tangent.curvature
        systems, rhs = problem.systems(at_points, D)
        rhs += more
        if not machine.has_intercept:
            rhs[-1] = 0.0
        found, values = np.zeros_like(rhs), np.zeros_like(at_points)
        z = systems.solve(rhs)
        r, p, size = rhs, z, column_dots(rhs, z)
        target, now = machine.rtol**2 * size, size
        for _ in range(MOST_PASSES):
            if np.all(now <= target):
                return coefficients(found), values
            at_rows, image = problem.action(p, D)
            image[-1] *= machine.has_intercept
            curved = column_dots(p, image)
            length = np.where(
                now > target, now / np.where(curved > 0, curved, 1.0), 0.0
            )
            found += length * p
            values += length * at_rows
            r = r - length * image
            z = systems.solve(r)
            last, now = now, column_dots(r, z)
            p = z + np.where(last > 0, now / np.where(last > 0, last, 1.0), 0.0) * p
        if not np.all(now <= ACCEPTABLE**2 * size):
            raise np.linalg.LinAlgError("conjugate gradients did not converge")
        return coefficients(found), values
