"""The way between two SVMs, from breakpoint to breakpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bisvm.hinge.active_set import ABSENT, ERROR, MARGIN, REST, ActiveSet
from bisvm.hinge.events import STILL, first_event

# The direction in which a gap closes.
_SIDE = np.array([-1.0, 0.0, 1.0, 0.0])

# A solution of the margin system is refined if it misses by more than this, relatively;
# if once is not enough, the factor has worn out and is computed anew.
_RESIDUAL = 1e-13
_SOLVES = 5
# Solutions of the margin system that are not checked after one that was right.
_TRUST = 10
# Breakpoints at the same eta before ties are broken at random, and before giving up.
_PATIENCE = 20
# Breakpoints between two computations of the gaps from scratch.
_REFRESH = 256


class PathError(RuntimeError):
    """The path cannot be followed in floating point: too many breakpoints in a tie."""


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
        self.diagonal = sets.gram.diagonal() + sets.margin.shift
        self.surplus, self.trust = sets.balance(), 0
        self.moving, self.asking = np.flatnonzero(dc), np.flatnonzero(dp)
        pushing = self._pushing()
        # What the points in error push the function by: sum_E y_i dc_i k(x_i, .).
        self.push = sets.gram.functions(pushing, (sets.y * dc)[pushing])
        self._weigh()

    def _pushing(self) -> np.ndarray:
        return self.moving[self.sets.state[self.moving] == ERROR]

    def _weigh(self) -> None:
        """The push as it is now: its size, and what the margin has to balance.

        supply = sum_E y_i dc_i, or zero if that is rounding. What y'alpha was off by at
        the start is balanced on the way.
        """
        self.given = np.abs(self.push).max() + np.abs(self.dp).max()
        self.sets.margin.hold(self.sets.y * self.dp - self.push)
        pushing = self._pushing()
        terms = self.sets.y[pushing] * self.dc[pushing]
        total = float(terms.sum()) + self.surplus
        size = np.abs(terms).sum() + self.sets.alpha.sum()
        self.supply = total if self.sets.bias and abs(total) > STILL * size else 0.0

    def direction(self) -> None:
        """Rates by eta: K_MM dbeta + db = y_M dp_M - push_M,  1'dbeta = -supply.

        The function is evaluated at all points, O(n |M|) for an array and O(n d) for a
        linear kernel: most of the price of a breakpoint. On M this is a check of the
        factor; after one that it has passed, M is left out for a while if that is most
        of the points. `size` is that of the terms which the rates of the gaps are sums
        of.
        """
        sets, system = self.sets, self.sets.margin
        M, y, self.dbeta, self.db = system.members, sets.y, np.zeros(len(system)), 0.0
        asked, df, self.size = y[M] * self.dp[M], self.push, self.given
        r, s = asked - df[M], -self.supply
        for attempt in range(_SOLVES if len(M) else 0):
            if attempt > 1:
                system.refactor()
            beta, b = system.solve(r, s) if attempt else system.solve_held(s)
            self.dbeta, self.db = self.dbeta + beta, self.db + b
            spread = system.scale * np.abs(self.dbeta).sum()
            self.size = self.given + spread + abs(self.db)
            if self.trust and 2 * len(M) > len(y):
                df, self.trust = self._outside(asked), self.trust - 1
                break
            df = self.push + system.functions(self.dbeta) + self.db
            r, s = asked - df[M], -self.supply - self.dbeta.sum()
            if np.abs(r).max() <= _RESIDUAL * self.size:
                self.trust = _TRUST
                break
        self.dg = y * df - self.dp

    def _outside(self, asked: np.ndarray) -> np.ndarray:
        """The rate of f where it is not known: on M it is what it was solved for."""
        sets, M = self.sets, self.sets.margin.members
        others = np.flatnonzero(sets.state != MARGIN)
        df = self.push + self.db
        df[others] += sets.gram.values(others, M, self.dbeta)
        df[M] = asked
        return df

    def next_event(self, luck: float) -> Event:
        """The point that is the first to meet the border of its set.

        In ERROR g_i rises to 0, at REST it falls to 0; on the MARGIN alpha_i falls to
        0, or meets c_i, which moves too.
        """
        sets, M = self.sets, self.sets.margin.members
        n, m = len(sets.y), len(M)
        rate, alpha = sets.y[M] * self.dbeta, sets.alpha[M]
        still = STILL * (np.abs(rate).max(initial=0.0) + self.size / self.diagonal[M])
        step, k = first_event(
            _SIDE[sets.state],
            sets.gap,
            self.dg,
            STILL * self.size,
            np.concatenate([alpha, sets.c[M] - alpha]),
            np.concatenate([-rate, rate - self.dc[M]]),
            np.concatenate([still, still]),
            luck,
        )
        if step == np.inf:
            return Event(np.inf, -1, ABSENT)
        if k < n:
            return Event(step, k, MARGIN)
        return Event(step, int(M[(k - n) % m]), REST if k < n + m else ERROR)

    def advance(self, step: float) -> None:
        """Move by a step along the direction."""
        sets, M = self.sets, self.sets.margin.members
        self.eta += step
        self.place(self.eta)
        sets.alpha[M] += step * sets.y[M] * self.dbeta
        sets.b += step * self.db
        sets.gap += step * self.dg
        sets.updates += 1

    def place(self, eta: float) -> None:
        """c and p at eta; alpha = c for the points in error."""
        sets, moving, asking = self.sets, self.moving, self.asking
        if len(moving):
            sets.c[moving] = np.maximum(self.c[moving] + eta * self.dc[moving], 0.0)
            pushing = self._pushing()
            sets.alpha[pushing] = sets.c[pushing]
        if len(asking):
            sets.p[asking] = self.p[asking] + eta * self.dp[asking]

    def refresh(self) -> None:
        """Start anew from here, without the rounding errors of the way."""
        self.sets.refresh()
        self.sets.refine()
        self.surplus = 0.0
        self._weigh()

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
            beta = np.array([sign * sets.y[i] * self.dc[i]])
            self.push = self.push + sets.gram.functions(np.array([i]), beta)
            self._weigh()

    def find_margin(self) -> None:
        """With no margin vector, b is free within an interval: to the end of it.

        If sum_E y_i dc_i > 0, only a positive point in error or a negative one at rest
        can balance it, and these are the ones that stop b as it rises.
        """
        sets = self.sets
        if len(sets.margin) or not self.supply:
            return
        sign = np.sign(self.supply)
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
        event = path.next_event(rng.uniform() if stalled > _PATIENCE else -1.0)
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
        stalled = stalled + 1 if event.step <= STILL * left else 0
        if stalled > 100 + len(dc):
            raise PathError(f"{passed} breakpoints, {stalled} of them at one eta.")
    path.place(1.0)
    if record:
        record(1.0)
    return passed
