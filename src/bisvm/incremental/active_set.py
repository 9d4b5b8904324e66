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

# A rate this small, relative to the sums it comes from, is rounding.
_STILL = 1e-12
# The margin system is solved again if its rows miss by more than this, relatively.
_RESIDUAL = 1e-13
# Breakpoints at the same eta before ties are broken at random, and before giving up.
_PATIENCE = 20


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

    def functions(self, rows: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """sum of beta_j k(x_j, .) over these rows, at all points."""
        rows, beta = rows[beta != 0.0], beta[beta != 0.0]
        return beta @ self.gram[rows] if len(rows) else np.zeros(len(self.y))

    def refresh(self) -> None:
        """Gaps from alpha and b, without what the updates have lost."""
        support = np.flatnonzero(self.state % ABSENT != REST)
        f = self.functions(support, (self.y * self.alpha)[support])
        self.gap = self.y * (f + self.b) - self.p

    def refine(self) -> None:
        """One step of iterative refinement: margin gaps and y'alpha to zero."""
        M = self.margin.members
        if not len(M):
            return
        y = self.y
        beta, b = self.margin.solve(-y[M] * self.gap[M], -float(y @ self.alpha))
        self.alpha[M] = np.clip(self.alpha[M] + y[M] * beta, 0.0, self.c[M])
        self.b += b
        self.gap += y * (self.margin.functions(beta) + b)

    def violation(self) -> np.ndarray:
        """How far the gaps are on the wrong side."""
        wrong = np.where(self.state == MARGIN, np.abs(self.gap), 0.0)
        wrong = np.where(self.state == ERROR, np.maximum(self.gap, 0.0), wrong)
        return np.where(self.state == REST, np.maximum(-self.gap, 0.0), wrong)

    def residual(self) -> float:
        """Largest violation of the optimality conditions, in units of the margin."""
        unbalanced = abs(self.y @ self.alpha) / max(self.alpha.sum(), 1e-300)
        return float(max(self.violation().max(initial=0.0), unbalanced))

    def enter(self, i: int) -> tuple[int, int]:
        """Point i, whose gap is zero, joins the margin.

        If k(x_i, .) is a combination of the margin's, the solution is not unique: alpha
        moves along the combination, on which no gap depends, until a point has reached
        a bound. That one stays out. Returns it and its new state.
        """
        before = int(self.state[i])
        if self.margin.append(i):
            self.state[i] = MARGIN
            return i, MARGIN
        out, bound = self._slide(i, 1.0 if before == REST else -1.0)
        if out != i:
            self.leave(out, bound)
            if not self.margin.append(i):
                raise PathError(f"point {i} depends on what is left of the margin.")
            self.state[i] = MARGIN
        return out, bound

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
        if rows[last] == i:
            self.state[i] = bound
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
        moving = np.flatnonzero((sets.state == ERROR) & (dc != 0.0))
        # What the points in error push the function by: sum_E y_i dc_i k(x_i, .).
        self.push = sets.functions(moving, (sets.y * dc)[moving])

    @property
    def supply(self) -> float:
        """sum_E y_i dc_i, which the margin has to balance; zero if it is rounding."""
        sets = self.sets
        terms = (sets.y * self.dc)[sets.state == ERROR]
        total = float(terms.sum())
        return total if abs(total) > _STILL * np.abs(terms).sum() else 0.0

    def direction(self) -> None:
        """Rates by eta: K_MM dbeta + db = y_M dp_M - push_M,  1'dbeta = -supply."""
        sets, M = self.sets, self.sets.margin.members
        y, self.dbeta, self.db = sets.y, np.zeros(len(M)), 0.0
        want, total = y[M] * self.dp[M] - self.push[M], -self.supply
        if not len(M):
            self.df = self.push
            return
        for _ in range(3):
            beta, b = sets.margin.solve(want, total)
            self.dbeta, self.db = self.dbeta + beta, self.db + b
            self.df = self.push + sets.margin.functions(self.dbeta) + self.db
            want = y[M] * self.dp[M] - self.df[M]
            total = -self.supply - self.dbeta.sum()
            if np.abs(want).max() <= _RESIDUAL * self._size():
                break

    def _size(self) -> float:
        """Size of the terms that dg is a sum of."""
        pushed = np.abs(self.push).max(initial=0.0) + np.abs(self.dp).max(initial=0.0)
        return float(
            self.sets.margin.shift * np.abs(self.dbeta).sum() + pushed + abs(self.db)
        )

    def next_event(self, rng: np.random.Generator | None) -> Event:
        """The point that is the first to meet the border of its set.

        MARGIN   alpha_i reaches 0, or c_i, which moves too
        ERROR    g_i rises to 0        REST   g_i falls to 0
        """
        sets, M = self.sets, self.sets.margin.members
        y, state = sets.y, sets.state
        dg = y * self.df - self.dp
        dg[np.abs(dg) <= _STILL * self._size()] = 0.0
        outside = np.flatnonzero(
            ((state == ERROR) & (dg > 0)) | ((state == REST) & (dg < 0))
        )
        falls, rises = y[M] * self.dbeta, y[M] * self.dbeta - self.dc[M]
        still = _STILL * np.abs(self.dbeta).max(initial=0.0)
        low, high = falls < -still, rises > still
        points = np.concatenate([outside, M[low], M[high]])
        rates = np.abs(np.concatenate([dg[outside], falls[low], rises[high]]))
        room = np.concatenate(
            [
                np.where(state[outside] == ERROR, -1, 1) * sets.gap[outside],
                sets.alpha[M[low]],
                (sets.c - sets.alpha)[M[high]],
            ]
        )
        to = np.repeat([MARGIN, REST, ERROR], [len(outside), low.sum(), high.sum()])
        if not len(points):
            return Event(np.inf, -1, ABSENT)
        steps = np.maximum(room, 0.0) / rates
        k = _first(steps, rates, rng)
        return Event(float(steps[k]), int(points[k]), int(to[k]))

    def advance(self, step: float) -> None:
        """Move by a step along the direction."""
        sets, M = self.sets, self.sets.margin.members
        self.eta += step
        sets.c = np.maximum(self.c + self.eta * self.dc, 0.0)
        sets.p = self.p + self.eta * self.dp
        sets.alpha[M] += step * sets.y[M] * self.dbeta
        error = sets.state == ERROR
        sets.alpha[error] = sets.c[error]
        sets.b += step * self.db
        sets.gap += step * (sets.y * self.df - self.dp)

    def change(self, event: Event) -> None:
        """Move a point, or the one that makes room for it, between the sets."""
        sets, i = self.sets, event.point
        before = int(sets.state[i])
        if event.state == MARGIN:
            sets.gap[i] = 0.0
            point, bound = sets.enter(i)
            if point != i:
                self._account(point, MARGIN, bound)
        else:
            sets.leave(i, event.state)
        self._account(i, before, int(sets.state[i]))

    def _account(self, i: int, before: int, after: int) -> None:
        sign = int(after == ERROR) - int(before == ERROR)
        if sign and self.dc[i]:
            self.push = self.push + sign * self.sets.y[i] * self.dc[i] * self._row(i)

    def _row(self, i: int) -> np.ndarray:
        return self.sets.gram[i]

    def find_margin(self) -> None:
        """With no margin vector, b is free within an interval: to the end of it.

        If sum_E y_i dc_i > 0, only a positive point in error or a negative one at rest
        can balance it, and these are the ones that stop b as it rises.
        """
        sets, supply = self.sets, self.supply
        if len(sets.margin) or not supply:
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
    limit = _PATIENCE * (10 + int(np.sum(sets.state != ABSENT)))
    while True:
        path.find_margin()
        if record:
            record(path.eta)
        path.direction()
        event = path.next_event(rng if stalled > _PATIENCE else None)
        left = 1.0 - path.eta
        path.advance(min(event.step, left))
        if record:
            record(path.eta)
        if event.step >= left:
            break
        path.change(event)
        passed += 1
        stalled = stalled + 1 if event.step <= _STILL * left else 0
        if stalled > 100 + len(dc) or passed > limit + 1000:
            raise PathError(f"{passed} breakpoints, {stalled} of them at one eta.")
    sets.c, sets.p = np.maximum(path.c + path.dc, 0.0), path.p + path.dp
    error = sets.state == ERROR
    sets.alpha[error] = sets.c[error]
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
