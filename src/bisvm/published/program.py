"""The bilevel program of hinge machines as one nonlinear program.

Problem 6 of M. Sangnier, J. Gauthier and A. Rakotomamonjy, "Kernel learning as
minimization of the single validation estimate", MLSP 2014.

The machines below are replaced by their Karush-Kuhn-Tucker conditions:

    minimise    sum_v w_v mu_v + prior(theta)    over theta, b, a, xi, mu
    subject to  mu_v >= 0,   y_v f(x_v) + mu_v >= 1                held-out points v
                xi_t >= 0,   s_t = y_t f(x_t) + xi_t - 1 >= 0      trained points t
                0 <= a_t <= 1,   sum_t y_t W_t a_t = 0
                (1 - a_t) xi_t <= eps,   a_t s_t <= eps

with f = sum_t y_t W_t a_t k_theta(x_t, .) + b in every column: a split of a class task
has its own b, a, xi and mu, and all share theta. With eps = 0 the constraints say that
f is the SVM of its column, and the objective is H(theta).

The paper has alpha = W a in place of a, W_t being C times the weight of the point. In
the share a the box does not move with C, points at their bound stay there as C changes,
both products are in units of the margin, and the balance does not depend on a common C:
all that is left to linearise is f itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from bisvm.core.space import Space
from bisvm.core.types import Array, Matrix
from bisvm.data.columns import FoldColumns, SampleGroups
from bisvm.hinge.exchange import exchange
from bisvm.hinge.solution import solve
from bisvm.machines import KernelMachine, Sensitivity
from bisvm.machines.model import Model
from bisvm.optimizers.base import Ball, into_balls
from bisvm.published.jacobians import function_gradients
from bisvm.search.descent import View
from bisvm.solvers import Solver

# Optimality residual asked of a batch of SVMs.
EXACT = 1e-10


@dataclass(frozen=True)
class ProgramPoint:
    """A point of the program.

    x : (p,), coordinates of theta
    b : (q,), intercepts
    a, xi : (m,), one for every trained point of every column
    mu : (r,), one for every held-out point of every column
    """

    x: Array
    b: Array
    a: Array
    xi: Array
    mu: Array

    def flat(self) -> Array:
        return np.concatenate([self.x, self.b, self.a, self.xi, self.mu])


@dataclass(frozen=True)
class Values:
    """The program at a point.

    objective : its value
    constraints : (l,), in the order of `BilevelProgram.limits`
    gram, weights, beta, margins : K (n, n), W and y W a (n, q), and y f (n, q)
    """

    objective: float
    constraints: Array
    theta: Array
    gram: Array
    weights: Array
    beta: Array
    margins: Array


@dataclass(frozen=True)
class Linearized:
    """The program to first order: values, gradient (N,) and Jacobian (l, N), sparse."""

    values: Values
    gradient: Array
    jacobian: sparse.csr_array


@dataclass(frozen=True)
class BilevelProgram:
    """Values, Jacobian and feasible points of the program above.

    regularization : value and gradient by theta of what is added to the criterion
    coordinates : x, theta as the search sees it

    Constraints are stacked as margins s (m), held-out margins (r), balances (q), the
    products (1 - a) xi (m) and a s (m), and the squared norms of balls.
    """

    model: Model
    space: Space
    X: Matrix
    columns: FoldColumns
    solver: Solver
    coordinates: View
    regularization: Callable[[Array], tuple[float, Array]]
    sample_groups: SampleGroups | None = None

    def on(self, columns: FoldColumns) -> BilevelProgram:
        """Return the same program on another partition of the points."""
        return replace(self, columns=columns)

    # --- where things are -------------------------------------------------------------

    @cached_property
    def trained(self) -> tuple[Array, Array]:
        """Return columns and rows of the trained points, column after column."""
        columns, rows = np.nonzero(self.columns.train.T > 0)
        return columns, rows

    @cached_property
    def held_out(self) -> tuple[Array, Array]:
        columns, rows = np.nonzero(self.columns.validation.T > 0)
        return columns, rows

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """p, q, m and r: entries of x, columns, trained and held-out points."""
        p, q = len(self.coordinates.bounds), self.columns.labels.shape[1]
        return p, q, len(self.trained[0]), len(self.held_out[0])

    def point(self, flat: Array) -> ProgramPoint:
        p, q, m, _ = self.sizes
        return ProgramPoint(*np.split(flat, np.cumsum([p, q, m, m])))

    def projected(self, x: Array) -> Array:
        """Return the coordinates within bounds and balls."""
        return into_balls(
            np.clip(x, *self.coordinates.bounds.T), self.coordinates.balls
        )

    def bounds(self) -> Array:
        """Return the bounds of all variables, (N, 2)."""
        _, q, m, r = self.sizes
        return np.concatenate(
            [
                self.coordinates.bounds,
                np.tile([-np.inf, np.inf], (q, 1)),
                np.tile([0.0, 1.0], (m, 1)),
                np.tile([0.0, np.inf], (m + r, 1)),
            ]
        )

    def limits(self, eps: float) -> Array:
        """Return the limits of the constraints, (l, 2)."""
        _, q, m, r = self.sizes
        return np.concatenate(
            [
                np.tile([0.0, np.inf], (m, 1)),
                np.tile([1.0, np.inf], (r, 1)),
                np.zeros((q, 2)),
                np.tile([-np.inf, eps], (2 * m, 1)),
                *([[-np.inf, radius**2]] for _, radius in self._balls()),
            ]
        )

    @property
    def products(self) -> slice:
        """Return which constraints are the products of complementarity."""
        _, q, m, r = self.sizes
        return slice(m + r + q, 3 * m + r + q)

    def _balls(self) -> list[Ball]:
        return [ball for ball in self.coordinates.balls if np.isfinite(ball[1])]

    # --- values -----------------------------------------------------------------------

    def evaluate(self, point: ProgramPoint) -> Values:
        """Return objective and constraints."""
        labels, theta = self.columns.labels, self.coordinates.expand(point.x)
        gram, weights = self._parts(theta)
        columns, rows = self.trained
        beta = np.zeros(labels.shape)
        beta[rows, columns] = labels[rows, columns] * point.a
        beta *= weights
        margins = labels * (gram @ beta + point.b)
        gap = margins[rows, columns] + point.xi - 1.0
        held = margins[self.held_out[1], self.held_out[0]] + point.mu
        constraints = np.concatenate(
            [
                gap,
                held,
                beta.sum(axis=0) / weights.sum(axis=0),
                (1.0 - point.a) * point.xi,
                point.a * gap,
                [point.x[entries] @ point.x[entries] for entries, _ in self._balls()],
            ]
        )
        objective = float(self._shares() @ point.mu) + self.regularization(theta)[0]
        return Values(objective, constraints, theta, gram, weights, beta, margins)

    def violation(self, point: ProgramPoint, values: Values, eps: float) -> Array:
        """Return by how much each variable and constraint is beyond its limits."""
        flat = np.concatenate([point.flat(), values.constraints])
        limits = np.concatenate([self.bounds(), self.limits(eps)])
        return np.maximum(np.maximum(limits[:, 0] - flat, flat - limits[:, 1]), 0.0)

    def residual(self, point: ProgramPoint) -> float:
        """Return the largest violation with eps = 0: how far f is from the SVM."""
        return float(self.violation(point, self.evaluate(point), 0.0).max())

    # --- derivatives ------------------------------------------------------------------

    def linearize(
        self, point: ProgramPoint, values: Values | None = None
    ) -> Linearized:
        """Return the gradient of the objective and the Jacobian of the constraints.

        What f adds is dense within a column of the machine, and zero elsewhere.
        """
        at = self.evaluate(point) if values is None else values
        p, q, m, r = self.sizes
        by_theta = self._functions(at)
        gap = self._stacked(m, xi=_diagonal(np.ones(m)), **by_theta(*self.trained))
        held = self._stacked(r, mu=_diagonal(np.ones(r)), **by_theta(*self.held_out))
        error = self._stacked(m, a=_diagonal(-point.xi), xi=_diagonal(1.0 - point.a))
        rest = self._stacked(m, a=_diagonal(at.constraints[:m]))
        rest = rest + _diagonal(point.a) @ gap
        blocks = [gap, held, self._balance(at), error, rest, self._of_balls(point)]
        gradient = np.zeros(gap.shape[1])
        prior = self.regularization(at.theta)[1]
        gradient[:p] = self.coordinates.pullback(at.theta, prior)
        gradient[p + q + 2 * m :] = self._shares()
        return Linearized(at, gradient, sparse.csr_array(sparse.vstack(blocks)))

    # --- feasible points --------------------------------------------------------------

    def trained_at(self, x: Array) -> ProgramPoint:
        """Return the point of the exact SVMs at x, where all constraints hold."""
        columns = self.columns
        machine = self.model.machine(
            self.space.values(self.coordinates.expand(x)),
            self.X,
            columns.labels,
            columns.train,
            sample_groups=self.sample_groups,
        )
        assert isinstance(machine, KernelMachine)
        solution = self.solver.solve(machine, None, EXACT)
        alpha = columns.labels * solution.x.coef
        return self.completed(x, alpha, solution.x.intercept, machine.gram)

    def completed(self, x: Array, alpha: Array, b: Array, gram: Array) -> ProgramPoint:
        """Return the point of duals alpha (n, q): xi and mu are the hinges at these."""
        labels = self.columns.labels
        weights = self.weights_at(x)
        hinges = np.maximum(0.0, 1.0 - labels * (gram @ (labels * alpha) + b))
        columns, rows = self.trained
        a = np.clip(alpha[rows, columns] / weights[rows, columns], 0.0, 1.0)
        mu = hinges[self.held_out[1], self.held_out[0]]
        return ProgramPoint(
            x.copy(), np.array(b, dtype=float), a, hinges[rows, columns], mu
        )

    # --- terms ------------------------------------------------------------------------

    def _parts(self, theta: Array) -> tuple[Array, Array]:
        kernel = self.model.kernel_at(self.space.values(theta))
        return kernel.gram(self.X), self._weights(theta)

    def weights_at(self, x: Array) -> Array:
        """Return W, the largest alpha of every point and column, (n, q)."""
        return self._weights(self.coordinates.expand(x))

    def _weights(self, theta: Array) -> Array:
        return self.model.regularization.weights(
            self.space.values(theta)["C"], self.columns.train, self.sample_groups
        )

    def _shares(self) -> Array:
        columns, rows = self.held_out
        return self.columns.validation[rows, columns]

    def _functions(self, at: Values) -> Callable[..., dict[str, Array]]:
        """Derivatives of y f, at the points asked for, by x, b and a."""
        kernel = self.model.kernel_at(self.space.values(at.theta))
        by_kernel = function_gradients(kernel, self.X, at.gram, at.beta)
        labels = self.columns.labels
        own, t = self.trained
        slope = labels[t, own] * at.weights[t, own]

        def at_points(columns: Array, rows: Array) -> dict[str, Array]:
            y = labels[rows, columns][:, None]
            by_x = [
                self._by_x(at, k, at.gram[i] * at.beta[:, k], by_kernel[i, k])
                for k, i in zip(columns, rows, strict=True)
            ]
            same = columns[:, None] == own
            by_a = np.where(same, y * at.gram[np.ix_(rows, t)] * slope, 0.0)
            by_b = y * (columns[:, None] == np.arange(labels.shape[1]))
            return {"x": y * np.array(by_x), "b": by_b, "a": by_a}

        return at_points

    def _by_x(
        self, at: Values, k: int, by_log_weights: Array, by_kernel: Array
    ) -> Array:
        """From d/d log W of column k, and d/d kernel parameters, to d/dx."""
        weights = np.zeros(at.weights.shape)
        weights[:, k] = by_log_weights
        gradient = self.model.gradient(
            self.space.values(at.theta),
            Sensitivity(weights, kernel=by_kernel),
            self.space.parameters,
            self.sample_groups,
        )
        return self.coordinates.pullback(at.theta, self.space.restrict(gradient))

    def _balance(self, at: Values) -> sparse.csr_array:
        """Derivatives of sum_t y W a / sum_t W."""
        _, q, _, _ = self.sizes
        own, rows = self.trained
        total = at.weights.sum(axis=0)
        share = at.weights / total
        by_log = at.beta / total - share * (at.beta.sum(axis=0) / total)
        nothing = np.zeros(sum(p.size for p in self.space.parameters))
        by_x = [self._by_x(at, k, by_log[:, k], nothing) for k in range(q)]
        by_a = (self.columns.labels * share)[rows, own]
        by_a = np.where(own == np.arange(q)[:, None], by_a, 0.0)
        return self._stacked(q, x=np.array(by_x), a=by_a)

    def _of_balls(self, point: ProgramPoint) -> sparse.csr_array:
        balls = self._balls()
        by_x = np.zeros((len(balls), len(point.x)))
        for row, (entries, _) in zip(by_x, balls, strict=True):
            row[entries] = 2.0 * point.x[entries]
        return self._stacked(len(balls), x=by_x)

    def _stacked(self, height: int, **blocks: Matrix) -> sparse.csr_array:
        """Rows of the Jacobian, from what depends on x, b, a, xi and mu; else zero."""
        p, q, m, r = self.sizes
        widths = {"x": p, "b": q, "a": m, "xi": m, "mu": r}
        row = [
            sparse.csr_array(blocks.get(name, (height, width)))
            for name, width in widths.items()
        ]
        return sparse.csr_array(sparse.hstack(row))


def _diagonal(entries: Array) -> sparse.csr_array:
    return sparse.diags_array(entries, format="csr")


@dataclass(frozen=True)
class Swaps:
    """The partitions of a `SwapHoldout`, one after the other (algorithm 1).

    columns : of all partitions, each a split
    every : number of accepted iterations between two exchanges
    passed : exchanges so far
    """

    columns: FoldColumns
    every: int
    passed: int = 0

    @property
    def current(self) -> FoldColumns:
        numbers = np.unique(self.columns.split)
        return self.columns.of_split(numbers[self.passed % len(numbers)])

    def advanced(self) -> Swaps:
        """Return the swaps after the next exchange; the first follow the last."""
        return replace(self, passed=self.passed + 1)


def carried(
    old: BilevelProgram, new: BilevelProgram, point: ProgramPoint
) -> ProgramPoint:
    """Return the point of the exact SVMs of a new partition, from those of the old one.

    theta stays; alpha and b follow the path on which points leave and come (the
    incremental SVM), and xi and mu are the hinges there.
    """
    values = old.evaluate(point)
    before, after = old.columns, new.columns
    target = new.weights_at(point.x)
    alpha, b = np.zeros(before.labels.shape), np.empty(len(point.b))
    for k in range(len(b)):
        start = np.abs(values.beta[:, k])
        sets, _ = solve(values.gram, before.labels[:, k], values.weights[:, k], start)
        was, is_ = before.train[:, k] > 0, after.train[:, k] > 0
        come = np.flatnonzero(is_ & ~was)
        leaving = np.flatnonzero(was & ~is_)
        sets, _ = exchange(sets, leaving, come, target[come, k])
        alpha[:, k], b[k] = sets.alpha, sets.b
    return new.completed(point.x, alpha, b, values.gram)
