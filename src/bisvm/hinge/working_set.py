"""The way between two SVMs where only the end counts: few points have to be watched.

A point whose gap is far from zero keeps its set, as a rule. So the path is followed on
a few points, the working set, with what the others add to f and to y'alpha held fixed:

    W = margin vectors, points whose c or p moves, and those with the smallest |g_i|.

Its end is optimal for the whole problem if no point outside has a gap on the wrong
side; those that have are repaired by another path (`solution.settle`). Every path ends
at a larger dual value, so that this comes to an end.
"""

from __future__ import annotations

import numpy as np

from bisvm.hinge.active_set import ABSENT, MARGIN, ActiveSet
from bisvm.hinge.breakpoints import PathError, follow

# The least size of a working set; points beside the margin vectors, at least and for
# each of them. Few margin vectors are cheap, and others may as well be watched.
_SIZE = 1000
_LEAST = 400
_SHARE = 0.25


def travel(
    sets: ActiveSet, dc: np.ndarray, dp: np.ndarray | None = None, reach: float = 1.0
) -> int:
    """As `follow`, but to a solution that is optimal on the working set alone.

    `reach` makes the working set larger; one of more than half of the points is all of
    them.
    """
    dp = np.zeros_like(dc) if dp is None else dp
    W = _working_set(sets, (dc != 0) | (dp != 0), reach)
    if 2 * len(W) > len(dc):
        return follow(sets, dc, dp)
    part = _restricted(sets, W)
    try:
        passed = follow(part, dc[W], dp[W])
    except PathError:
        return follow(sets, dc, dp)
    _absorb(sets, part, W)
    return passed


def _absorb(sets: ActiveSet, part: ActiveSet, W: np.ndarray) -> None:
    """Take over a solution of these points; all gaps change by the difference."""
    beta = part.y * (part.alpha - sets.alpha[W])
    changed = np.flatnonzero(beta)
    f = sets.gram.functions(W[changed], beta[changed])
    sets.gap += sets.y * (f + part.b - sets.b)
    sets.gap[W] -= part.p - sets.p[W]
    sets.updates += 1
    for name in ("c", "p", "alpha", "state"):
        getattr(sets, name)[W] = getattr(part, name)
    sets.b = part.b
    sets.margin = part.margin.moved(sets.gram, W[part.margin.members])


def _working_set(sets: ActiveSet, moving: np.ndarray, reach: float) -> np.ndarray:
    needed = moving | (sets.state == MARGIN)
    others = np.flatnonzero(~needed & (sets.state != ABSENT))
    m = len(sets.margin)
    count = int(reach * max(_SIZE - m, _LEAST, _SHARE * m))
    if count < len(others):
        near = np.argpartition(np.abs(sets.gap[others]), count)[:count]
        others = others[near]
    return np.sort(np.append(np.flatnonzero(needed), others))


def _restricted(sets: ActiveSet, W: np.ndarray) -> ActiveSet:
    """The problem of these points, all others as they are."""
    part = ActiveSet(sets.gram.restricted(W), sets.y[W], sets.c[W], sets.bias)
    for name in ("p", "alpha", "gap", "state"):
        setattr(part, name, getattr(sets, name)[W])
    part.b = sets.b
    beta = part.y * part.alpha
    own = part.gram.functions(np.flatnonzero(beta), beta[beta != 0])
    part.outer = part.y * (part.gap + part.p) - part.b - own
    part.outer_balance = sets.balance() - float(beta.sum())
    members = np.searchsorted(W, sets.margin.members)
    part.margin = sets.margin.copy().moved(part.gram, members)
    return part
