"""Points leave and come, along one path."""

from __future__ import annotations

import numpy as np

from bisvm.hinge.active_set import ABSENT, ERROR, MARGIN, REST, ActiveSet
from bisvm.hinge.breakpoints import PathError
from bisvm.hinge.solution import settle, solve
from bisvm.hinge.working_set import travel


def exchange(sets: ActiveSet, out: np.ndarray, new: np.ndarray, c: np.ndarray) -> int:
    """Points `out` leave and `new` ones come, together; the number of breakpoints.

        c_i: alpha_i -> 0 for i that leave,     c_i: 0 -> c for i that come.

    A point that leaves the margin has its alpha for a bound at once: it is in error by
    zero. One that comes has alpha = c = 0, in error or at rest by the sign of its gap,
    which has to be known; with c = 0 it stays absent.
    """
    _dismiss(sets, out)
    _admit(sets, new[c > 0])
    dc = np.zeros(len(sets.y))
    dc[new], dc[out] = c, -sets.c[out]
    target = sets.c + dc
    target[out] = 0.0
    try:
        passed = travel(sets, dc)
        _bury(sets, out)
        return passed + settle(sets)
    except PathError:
        fresh, passed = solve(sets.gram, sets.y, target, bias=sets.bias)
        vars(sets).update(vars(fresh))
        return passed


def _dismiss(sets: ActiveSet, out: np.ndarray) -> None:
    for i in out[sets.state[out] == MARGIN]:
        sets.c[i] = sets.alpha[i]
        sets.leave(int(i), ERROR)
    _bury(sets, out[sets.state[out] == REST])


def _admit(sets: ActiveSet, new: np.ndarray) -> None:
    sets.state[new] = np.where(sets.gap[new] < 0, ERROR, REST)
    sets.alpha[new] = sets.c[new] = 0.0


def _bury(sets: ActiveSet, out: np.ndarray) -> None:
    """Points whose alpha is zero are gone, from whatever set they were in."""
    for i in out[sets.state[out] == MARGIN]:
        sets.margin.remove(int(i))
    sets.state[out] = ABSENT
    sets.alpha[out] = sets.c[out] = 0.0
