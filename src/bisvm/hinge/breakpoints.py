"""The path between two SVMs, from breakpoint to breakpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bisvm.core.compiling import njit
from bisvm.core.types import Array
from bisvm.hinge.active_set import ABSENT, ERROR, MARGIN, REST, STILL, ActiveSet, first

# The direction in which a gap closes, by state.
_SIDE = np.array([-1.0, 0.0, 1.0, 0.0])

# A solution of the margin system is refined if it misses by more than this, relatively;
# if once is not enough, the factor has lost its digits and is computed from scratch.
_RESIDUAL = 1e-13
_SOLVES = 5
# Solutions of the margin system that are not checked after one that was right.
_TRUST = 10
# Breakpoints at the same eta before ties are broken at random; after this many more,
# and one for every point, the path is given up.
_PATIENCE = 20
_STALLED = 100
# Breakpoints between two computations of the gaps from scratch.
_REFRESH = 256


class PathError(RuntimeError):
    """The path cannot be followed in floating point: too many breakpoints in a tie."""


class Event(NamedTuple):
    """A point that changes its state after a step of that length."""

    step: float
    point: int
    state: int


class Rates(NamedTuple):
    """Derivatives by eta: of y alpha on the margin (m,), of b, and of all gaps (n,).

    size : that of the terms which the rates of the gaps are sums of
    """

    beta: Array
    b: float
    gap: Array
    size: float


class _Path:
    """The line c + eta dc, p + eta dp, from eta = 0 to 1, and where we are on it.

    push : what the points in error add to f, sum_E y_i dc_i k(x_i, .), (n,)
    supply : what the margin has to balance, sum_E y_i dc_i
    surplus : y'alpha at the start, which should be zero and is balanced on the way
    trust : solutions of the margin system that need no check
    """

    def __init__(self, sets: ActiveSet, dc: Array, dp: Array):
        self.sets, self.dc, self.dp = sets, dc, dp
        self.c, self.p, self.eta = sets.c.copy(), sets.p.copy(), 0.0
        self.diagonal = sets.gram.diagonal() + sets.margin.shift
        self.surplus, self.trust = sets.balance(), 0
        self.moving, self.aiming = np.flatnonzero(dc), np.flatnonzero(dp)
        pushing = self._pushing()
        self.push = sets.gram.functions(pushing, (sets.y * dc)[pushing])
        self.size, self.supply = 0.0, 0.0
        self._weigh()

    def _pushing(self) -> Array:
        pushing: Array = self.moving[self.sets.state[self.moving] == ERROR]
        return pushing

    def _weigh(self) -> None:
        """Set size and supply of the present push; supply is zero if it is rounding."""
        self.size = np.abs(self.push).max() + np.abs(self.dp).max()
        self.sets.margin.hold(self.sets.y * self.dp - self.push)
        pushing = self._pushing()
        terms = self.sets.y[pushing] * self.dc[pushing]
        total = float(terms.sum()) + self.surplus
        size = np.abs(terms).sum() + self.sets.alpha.sum()
        self.supply = total if self.sets.bias and abs(total) > STILL * size else 0.0

    def rates(self) -> Rates:
        """Solve K_MM dbeta + db = y_M dp_M - push_M,  1'dbeta = -supply.

        (9) of Sangnier et al. 2014, divided by d eta, with beta = y alpha and dp = 0:
        push and supply are its sums over T+ and V+, while these are in ERROR.

        The function is evaluated at all points, O(n |M|) for an array and O(n d) for a
        linear kernel: most of the cost of a breakpoint. On M this checks the factor;
        after a check that it has passed, M is left out for a while if that is most of
        the points.
        """
        sets, system = self.sets, self.sets.margin
        M, y = system.members, sets.y
        dbeta, db, df, size = np.zeros(len(system)), 0.0, self.push, self.size
        target = y[M] * self.dp[M]
        r, s = target - df[M], -self.supply
        for attempt in range(_SOLVES if len(M) else 0):
            if attempt > 1:
                system.refactor()
            beta, b = system.solve(r, s) if attempt else system.solve_held(s)
            dbeta, db = dbeta + beta, db + b
            size = self.size + system.scale * np.abs(dbeta).sum() + abs(db)
            if self.trust and 2 * len(M) > len(y):
                df, self.trust = self._function_rate(dbeta, db, target), self.trust - 1
                break
            df = self.push + system.functions(dbeta) + db
            r, s = target - df[M], -self.supply - dbeta.sum()
            if np.abs(r).max() <= _RESIDUAL * size:
                self.trust = _TRUST
                break
        return Rates(dbeta, db, y * df - self.dp, size)

    def _function_rate(self, dbeta: Array, db: float, target: Array) -> Array:
        """Return the rate of f; on M it is what the system was solved for."""
        sets, M = self.sets, self.sets.margin.members
        others = np.flatnonzero(sets.state != MARGIN)
        df: Array = self.push + db
        df[others] += sets.gram.values(others, M, dbeta)
        df[M] = target
        return df

    def next_event(self, rates: Rates, draw: float) -> Event:
        """Return the first point that reaches the border of its set.

        In ERROR g_i rises to 0, at REST it falls to 0; on the MARGIN alpha_i falls to
        0, or meets c_i, which moves too: (10) and (11) of Sangnier et al. 2014.
        """
        sets, M = self.sets, self.sets.margin.members
        n, m = len(sets.y), len(M)
        rate, alpha = sets.y[M] * rates.beta, sets.alpha[M]
        still = STILL * (np.abs(rate).max(initial=0.0) + rates.size / self.diagonal[M])
        step, k = first_event(
            _SIDE[sets.state],
            sets.gap,
            rates.gap,
            STILL * rates.size,
            np.concatenate([alpha, sets.c[M] - alpha]),
            np.concatenate([-rate, rate - self.dc[M]]),
            np.concatenate([still, still]),
            draw,
        )
        if step == np.inf:
            return Event(np.inf, -1, ABSENT)
        if k < n:
            return Event(step, k, MARGIN)
        return Event(step, int(M[(k - n) % m]), REST if k < n + m else ERROR)

    def advance(self, step: float, rates: Rates) -> None:
        """Move by a step."""
        self.eta += step
        self.place(self.eta)
        self.sets.step(step * rates.beta, step * rates.b, step * rates.gap)

    def place(self, eta: float) -> None:
        """Set c and p to those at eta."""
        moving, aiming = self.moving, self.aiming
        if len(moving):
            c = np.maximum(self.c[moving] + eta * self.dc[moving], 0.0)
            self.sets.place(moving, c)
        if len(aiming):
            self.sets.aim(aiming, self.p[aiming] + eta * self.dp[aiming])

    def refresh(self) -> None:
        """Remove the rounding errors that have added up."""
        self.sets.refresh()
        self.sets.refine()
        self.surplus = 0.0
        self._weigh()

    def change(self, event: Event) -> None:
        """Move a point, or the one that makes room for it, between the sets."""
        sets, i = self.sets, event.point
        before = int(sets.state[i])
        if event.state == MARGIN:
            for point, bound in sets.enter(i):
                self._update_push(point, MARGIN, bound)
        else:
            sets.leave(i, event.state)
        self._update_push(i, before, int(sets.state[i]))

    def _update_push(self, i: int, before: int, after: int) -> None:
        sign = int(after == ERROR) - int(before == ERROR)
        if sign and self.dc[i]:
            sets = self.sets
            beta = np.array([sign * sets.y[i] * self.dc[i]])
            self.push = self.push + sets.gram.functions(np.array([i]), beta)
            self._weigh()

    def find_margin(self) -> None:
        """Without a margin vector, move b to the end of its interval.

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
        sets.shift_intercept(sign * abs(sets.gap[i]))
        self.change(Event(0.0, i, MARGIN))


def follow(
    sets: ActiveSet,
    dc: Array,
    dp: Array | None = None,
    record: Callable[[float], None] | None = None,
) -> int:
    """Move to the solution for c + dc and p + dp.

    For points that come (V+) and leave (T+) this is section 3.2 of Sangnier et al.
    2014: `_Path.rates` solves (9), and `_Path.next_event` takes the longest step within
    (10) and (11). Their sets I, M and O are ERROR, MARGIN and REST. eta counts from the
    start of the path, theirs from the last breakpoint.

    Parameters
    ----------
    sets : ActiveSet
        The solution for c and p, which is changed.
    dc, dp : arrays of shape (n,)
        Changes of the largest alphas and of the target margins; None for no change.
    record : callable, optional
        Called with eta at the start, on both sides of every breakpoint (where b may
        jump), and at the end.

    Returns
    -------
    int
        The number of breakpoints passed.

    Raises
    ------
    PathError
        If rounding errors make the path impossible to follow; `sets` is then at some
        point of the path.
    """
    path = _Path(sets, dc, np.zeros_like(dc) if dp is None else dp)
    rng, stalled, passed = np.random.default_rng(0), 0, 0
    while True:
        path.find_margin()
        if record:
            record(path.eta)
        rates = path.rates()
        event = path.next_event(rates, rng.uniform() if stalled > _PATIENCE else -1.0)
        left = 1.0 - path.eta
        path.advance(min(event.step, left), rates)
        if event.step >= left:
            break
        if record:
            record(path.eta)
        path.change(event)
        passed += 1
        if passed % _REFRESH == 0:
            path.refresh()
        stalled = stalled + 1 if event.step <= STILL * left else 0
        if stalled > _STALLED + len(dc):
            raise PathError(f"{passed} breakpoints, {stalled} of them at one eta.")
    path.place(1.0)
    if record:
        record(1.0)
    return passed


@njit(cache=True)
def first_event(
    side: Array,
    gap: Array,
    dg: Array,
    still_gap: float,
    room: Array,
    speed: Array,
    still: Array,
    draw: float,
) -> tuple[float, int]:
    """Return the shortest step to a border, and the number of the candidate there.

    Candidates are the n gaps, which close where side_i dg_i > 0, and then q quantities
    that run out of room. The step is infinite if nothing reaches its border.

    Parameters
    ----------
    side, gap, dg : (n,), the direction in which a gap closes (0: never), gaps, rates.
    still_gap : rates of gaps up to this are rounding.
    room, speed, still : (q,), what is left, how fast it goes, and what is rounding.
    draw : in [0, 1), which of several equal steps to take; negative: the fastest.
    """
    n = len(gap)
    steps = np.full(n + len(room), np.inf)
    rates = np.zeros(n + len(room))
    for i in range(n):
        rate = side[i] * dg[i]
        if rate > still_gap:
            steps[i], rates[i] = max(-side[i] * gap[i], 0.0) / rate, rate
    for j in range(len(room)):
        if speed[j] > still[j]:
            steps[n + j], rates[n + j] = max(room[j], 0.0) / speed[j], speed[j]
    return first(steps, rates, draw)
