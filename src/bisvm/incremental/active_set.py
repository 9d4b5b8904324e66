"""Which points are on the margin, in error, or at rest; and the way between two SVMs.

    max  p'alpha - 1/2 alpha'Q alpha,    0 <= alpha_i <= c_i,   y'alpha = 0,

Q_ij = y_i y_j k(x_i, x_j), is the dual of a hinge machine whose point i has weight c_i
and asks for the margin p_i (one, as a rule). With the gaps
g_i = y_i (f(x_i) + b) - p_i, (alpha, b) is optimal if and only if

    ERROR     alpha_i = c_i          g_i <= 0
    MARGIN    0 <= alpha_i <= c_i    g_i  = 0
    REST      alpha_i = 0            g_i >= 0.

The sets are carried, and never read off alpha.

If c and p move along a line, c + eta dc and p + eta dp, the solution moves along one
too, until a point changes its set: a breakpoint. Adding points (c_i from 0 to C),
removing them (c_i to 0), another C, and the repair of a solution that is slightly wrong
(p from what it is optimal for to 1) are all `follow` with other directions.

M. Karasuyama and I. Takeuchi, "Multiple incremental decremental learning of support
vector machines", NIPS 2009; M. Karasuyama, N. Harada, M. Sugiyama and I. Takeuchi,
"Multi-parametric solution-path algorithm for instance-weighted support vector
machines", Machine Learning 88, 2012.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np

from bisvm.incremental.margin import MarginSystem

REST, MARGIN, ERROR, ABSENT = range(4)
# The direction in which a gap closes.
_SIDE = np.array([-1.0, 0.0, 1.0, 0.0])

# A rate this small, relative to the sums it comes from, is rounding.
_STILL = 1e-12
# A solution of the margin system is refined if it misses by more than this, relatively;
# if once is not enough, the factor has worn out and is computed anew.
_RESIDUAL = 1e-13
_SOLVES = 5
# Breakpoints at the same eta before ties are broken at random, and before giving up.
_PATIENCE = 20


# Rows of the Gram matrix that are copied at a time: they should stay in the cache.
_BLOCK = 16
# Breakpoints between two computations of the gaps from scratch.
_REFRESH = 256


class PathError(RuntimeError):
    """The path cannot be followed in floating point: too many breakpoints in a tie."""


class ActiveSet:
    """A solution of the problem above, with its sets. Changed in place.

    Parameters
    ----------
    gram : (n, n), the Gram matrix; it is not copied.
    y : (n,), labels +1 and -1.
    c : (n,), the largest alpha of every point.
    """

    def __init__(self, gram: np.ndarray, y: np.ndarray, c: np.ndarray):
        n = len(y)
        self.gram, self.y, self.c = gram, y, c
        self.p = np.ones(n)
        self.alpha = np.zeros(n)
        self.b = 0.0
        self.gap = -np.ones(n)
        self.state = np.full(n, ABSENT, dtype=np.int8)
        self.margin = MarginSystem(gram, _size(gram))

    def copy(self) -> Self:
        """A copy that shares the Gram matrix."""
        other = copy(self)
        for name in ("y", "c", "p", "alpha", "gap", "state"):
            setattr(other, name, getattr(self, name).copy())
        other.margin = self.margin.copy()
        return other

    def support(self) -> np.ndarray:
        """The points on the margin and in error."""
        return np.flatnonzero((self.state == MARGIN) | (self.state == ERROR))

    def functions(self, rows: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """sum of beta_j k(x_j, .) over these rows, at all points."""
        rows, beta = rows[beta != 0.0], beta[beta != 0.0]
        f = np.zeros(len(self.y))
        for block in range(0, len(rows), _BLOCK):
            part = slice(block, block + _BLOCK)
            f += beta[part] @ self.gram[rows[part]]
        return f

    def refresh(self) -> None:
        """Gaps from alpha and b, without what the updates have lost."""
        support = self.support()
        f = self.functions(support, (self.y * self.alpha)[support])
        self.gap = self.y * (f + self.b) - self.p

    def refine(self) -> None:
        """One step of iterative refinement: margin gaps and y'alpha to zero.

        Not taken if it leads out of the box: then the sets are wrong, not the numbers.
        """
        M, support, y = self.margin.members, self.support(), self.y
        if not len(M):
            return
        f = self.gram[np.ix_(M, support)] @ (y * self.alpha)[support] + self.b
        beta, b = self.margin.solve(y[M] * self.p[M] - f, -float(y @ self.alpha))
        alpha = self.alpha[M] + y[M] * beta
        inside = np.clip(alpha, 0.0, self.c[M])
        if np.all(np.abs(alpha - inside) <= _STILL * self.c[M]):
            self.alpha[M] = inside
            self.b += b

    def violation(self) -> np.ndarray:
        """How far the gaps are on the wrong side."""
        wrong = np.where(self.state == MARGIN, np.abs(self.gap), 0.0)
        wrong = np.where(self.state == ERROR, np.maximum(self.gap, 0.0), wrong)
        return np.where(self.state == REST, np.maximum(-self.gap, 0.0), wrong)

    def residual(self) -> float:
        """Largest violation of the optimality conditions, in units of the margin."""
        unbalanced = abs(self.y @ self.alpha) / max(self.alpha.sum(), 1e-300)
        return float(max(self.violation().max(initial=0.0), unbalanced))

    def enter(self, i: int) -> list[tuple[int, int]]:
        """Point i, whose gap is zero, joins the margin; who has to leave, and where to.

        If k(x_i, .) is a combination of the margin's, the solution is not unique: alpha
        moves along the combination, on which no gap depends, until a point has reached
        a bound. That one stays out, be it i or another.
        """
        sign = 1.0 if self.state[i] == REST else -1.0
        left: list[tuple[int, int]] = []
        while not self.margin.append(i):
            out, bound = self._slide(i, sign)
            if out == i:
                self.state[i] = bound
                return left
            self.leave(out, bound)
            left.append((out, bound))
        self.state[i] = MARGIN
        return left

    def leave(self, i: int, bound: int) -> None:
        """Margin point i has reached the bound REST or ERROR."""
        self.margin.remove(i)
        self.state[i] = bound
        self.alpha[i] = self.c[i] if bound == ERROR else 0.0

    def _slide(self, i: int, sign: float) -> tuple[int, int]:
        """The longest step along the combination of i; who ends it, at which bound."""
        rows = np.append(self.margin.members, i)
        beta = sign * self.y[i] * np.append(self.margin.combination(i), 1.0)
        rate = self.y[rows] * beta
        rate[np.abs(rate) <= 1e-9 * np.abs(rate).max()] = 0.0
        room = np.where(rate > 0, self.c[rows] - self.alpha[rows], self.alpha[rows])
        step = np.full(len(rows), np.inf)
        np.divide(np.maximum(room, 0.0), np.abs(rate), out=step, where=rate != 0)
        last = _first(step, np.abs(rate))
        self.alpha[rows] += step[last] * rate
        self.gap += self.y * self.functions(rows, step[last] * beta)
        bound = ERROR if rate[last] > 0 else REST
        self.alpha[rows[last]] = self.c[rows[last]] if bound == ERROR else 0.0
        return int(rows[last]), bound


@dataclass(frozen=True)
class Event:
    """Point i is about to change its state after a step of that length."""

    step: float
    point: int
    state: int


class _Path:
    """The straight line c + eta dc, p + eta dp, from eta = 0 to 1."""

    def __init__(self, sets: ActiveSet, dc: np.ndarray, dp: np.ndarray):
        self.sets, self.dc, self.dp = sets, dc, dp
        self.c, self.p, self.eta = sets.c.copy(), sets.p.copy(), 0.0
        self.surplus = float(sets.y @ sets.alpha)
        self.moving = np.flatnonzero(dc)
        pushing = self.moving[sets.state[self.moving] == ERROR]
        # What the points in error push the function by: sum_E y_i dc_i k(x_i, .).
        self.push = sets.functions(pushing, (sets.y * dc)[pushing])

    def supply(self) -> float:
        """sum_E y_i dc_i, which the margin has to balance; zero if it is rounding.

        What y'alpha was off by at the start is balanced on the way.
        """
        sets = self.sets
        pushing = self.moving[sets.state[self.moving] == ERROR]
        terms = sets.y[pushing] * self.dc[pushing]
        total = float(terms.sum() + self.surplus)
        size = np.abs(terms).sum() + sets.alpha.sum()
        return total if abs(total) > _STILL * size else 0.0

    def direction(self) -> None:
        """Rates by eta: K_MM dbeta + db = y_M dp_M - push_M,  1'dbeta = -supply.

        `size` is that of the terms which the rates of the gaps are sums of.
        """
        sets, M = self.sets, self.sets.margin.members
        y, self.dbeta, self.db = sets.y, np.zeros(len(M)), 0.0
        rhs, total = y[M] * self.dp[M] - self.push[M], -self.supply()
        given = np.abs(self.push).max() + np.abs(self.dp).max()
        df, r, s, self.size = self.push, rhs, total, given
        for attempt in range(_SOLVES if len(M) else 0):
            if attempt > 1:
                sets.margin.fill(M)
            beta, b = sets.margin.solve(r, s)
            self.dbeta, self.db = self.dbeta + beta, self.db + b
            df = self.push + sets.margin.functions(self.dbeta) + self.db
            r, s = y[M] * self.dp[M] - df[M], total - self.dbeta.sum()
            spread = sets.margin.shift * np.abs(self.dbeta).sum()
            self.size = given + spread + abs(self.db)
            if np.abs(r).max() <= _RESIDUAL * self.size:
                break
        self.dg = y * df - self.dp

    def next_event(self, rng: np.random.Generator | None) -> Event:
        """The point that is the first to meet the border of its set."""
        events = [self._gaps_that_close(), *self._bounds_that_come()]
        points, room, rates = (
            np.concatenate(part) for part in zip(*events, strict=True)
        )
        to = np.repeat([MARGIN, REST, ERROR], [len(event[0]) for event in events])
        if not len(points):
            return Event(np.inf, -1, ABSENT)
        steps = np.maximum(room, 0.0) / rates
        k = _first(steps, rates, rng)
        return Event(float(steps[k]), int(points[k]), int(to[k]))

    def _gaps_that_close(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """In ERROR g_i rises to 0, at REST it falls to 0: points, room and rates."""
        side = _SIDE[self.sets.state]
        rates = side * self.dg
        points = np.flatnonzero(rates > _STILL * self.size)
        return points, -side[points] * self.sets.gap[points], rates[points]

    def _bounds_that_come(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """On the MARGIN alpha_i falls to 0, or meets c_i, which moves too."""
        sets, M = self.sets, self.sets.margin.members
        rate, alpha = sets.y[M] * self.dbeta, sets.alpha[M]
        still = _STILL * np.abs(rate).max(initial=0.0)
        found = []
        for speed, room in ((-rate, alpha), (rate - self.dc[M], sets.c[M] - alpha)):
            near = speed > still
            found.append((M[near], room[near], speed[near]))
        return found

    def advance(self, step: float) -> None:
        """Move by a step along the direction."""
        sets, M = self.sets, self.sets.margin.members
        self.eta += step
        self.place(self.eta)
        sets.alpha[M] += step * sets.y[M] * self.dbeta
        sets.b += step * self.db
        sets.gap += step * self.dg

    def place(self, eta: float) -> None:
        """c and p at eta; alpha = c for the points in error."""
        sets, moving = self.sets, self.moving
        sets.c[moving] = np.maximum(self.c[moving] + eta * self.dc[moving], 0.0)
        pushing = moving[sets.state[moving] == ERROR]
        sets.alpha[pushing] = sets.c[pushing]
        sets.p = self.p + eta * self.dp

    def refresh(self) -> None:
        """Start anew from here, without the rounding errors of the way."""
        self.sets.refine()
        self.sets.refresh()
        self.surplus = 0.0

    def change(self, event: Event) -> None:
        """Move a point, or the one that makes room for it, between the sets."""
        sets, i = self.sets, event.point
        before = int(sets.state[i])
        if event.state == MARGIN:
            sets.gap[i] = 0.0
            for point, bound in sets.enter(i):
                self._account(point, MARGIN, bound)
        else:
            sets.leave(i, event.state)
        self._account(i, before, int(sets.state[i]))

    def _account(self, i: int, before: int, after: int) -> None:
        sign = int(after == ERROR) - int(before == ERROR)
        if sign and self.dc[i]:
            sets = self.sets
            self.push = self.push + sign * sets.y[i] * self.dc[i] * sets.gram[i]

    def find_margin(self) -> None:
        """With no margin vector, b is free within an interval: to the end of it.

        If sum_E y_i dc_i > 0, only a positive point in error or a negative one at rest
        can balance it, and these are the ones that stop b as it rises.
        """
        sets = self.sets
        supply = 0.0 if len(sets.margin) else self.supply()
        if not supply:
            return
        sign = np.sign(supply)
        fit = ((sets.state == ERROR) & (sets.y == sign)) | (
            (sets.state == REST) & (sets.y == -sign)
        )
        points = np.flatnonzero(fit)
        if not len(points):
            raise PathError("no point can balance the others: one class is left.")
        i = int(points[np.argmin(np.abs(sets.gap[points]))])
        jump = sign * abs(sets.gap[i])
        sets.b += jump
        sets.gap += sets.y * jump
        self.change(Event(0.0, i, MARGIN))


def follow(
    sets: ActiveSet,
    dc: np.ndarray,
    dp: np.ndarray | None = None,
    record: Callable[[float], None] | None = None,
) -> int:
    """Move to the solution for c + dc and p + dp; the number of breakpoints passed.

    `record(eta)` is called at the start, on both sides of every breakpoint (where b
    may jump), and at the end. PathError leaves `sets` somewhere on the way.
    """
    path = _Path(sets, dc, np.zeros_like(dc) if dp is None else dp)
    rng, stalled, passed = np.random.default_rng(0), 0, 0
    while True:
        path.find_margin()
        if record:
            record(path.eta)
        path.direction()
        event = path.next_event(rng if stalled > _PATIENCE else None)
        left = 1.0 - path.eta
        path.advance(min(event.step, left))
        if event.step >= left:
            break
        if record:
            record(path.eta)
        path.change(event)
        passed += 1
        if passed % _REFRESH == 0:
            path.refresh()
        stalled = stalled + 1 if event.step <= _STILL * left else 0
        if stalled > 100 + len(dc):
            raise PathError(f"{passed} breakpoints, {stalled} of them at one eta.")
    path.place(1.0)
    if record:
        record(1.0)
    return passed


def _first(
    steps: np.ndarray, rates: np.ndarray, rng: np.random.Generator | None = None
) -> int:
    """The smallest step; among equal ones that of the fastest, or one at random."""
    ties = np.flatnonzero(steps <= steps.min() * (1.0 + _STILL))
    if rng is not None:
        return int(rng.choice(ties))
    return int(ties[np.argmax(rates[ties])])


def _size(gram: np.ndarray) -> float:
    size = float(np.mean(np.abs(gram.diagonal())))
    return size if size > 0 else 1.0
