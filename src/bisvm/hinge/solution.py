"""An exact solution from an approximate one.

Where only the end of a path matters, few points have to be watched: a point whose gap
is far from zero usually keeps its set. So the path is followed on a working set, with
what the other points add to f and to y'alpha held fixed:

    W = margin vectors, points whose c or p moves, and those with the smallest |g_i|.

Its end is optimal for the whole problem if no other point has a gap on the wrong side;
those that have are repaired by another path (`make_exact`). Every path ends at a larger
dual value, so that this comes to an end.
"""

from __future__ import annotations

import numpy as np

from bisvm.core.types import Array
from bisvm.hinge.active_set import ABSENT, ERROR, MARGIN, REST, ActiveSet
from bisvm.hinge.breakpoints import PathError, follow
from bisvm.hinge.gram import DenseGram, Gram, as_gram
from bisvm.hinge.libsvm import libsvm

# Violations that are rounding, and those that cannot be made smaller, relative to the
# terms of the gaps.
_ROUNDING = 1e-13
_EXACT = 1e-15
# Repairs at the most, each on a working set twice as large.
_ROUNDS = 20
# An alpha this close to its bound, relatively, is there.
_AT_BOUND = 1e-12
# Updates of the gaps before they are computed from scratch.
_UPDATES = 20
# A path from nothing has targets that differ by this much, and so no ties.
_SPREAD = 1e-3
# The least size of a working set, and the points in it besides the margin vectors: at
# least, and per margin vector. Few margin vectors are cheap: others are watched too.
_SIZE = 1000
_LEAST = 400
_SHARE = 0.25


def solve(
    gram: Gram | Array,
    y: Array,
    c: Array,
    start: Array | None = None,
    bias: bool = True,
    p: Array | None = None,
) -> tuple[ActiveSet, int]:
    """Solve a hinge machine exactly.

    Parameters
    ----------
    gram : Gram, or (n, n) array
    y : (n,), labels +1 and -1
    c : (n,), the largest alpha of every point; points with c_i = 0 are absent
    start : (n,), alpha to begin with; what is 0 or c_i exactly is at its bound. None:
        that of LIBSVM for an array with a bias, else the path from c = 0, which passes
        a breakpoint or more for every point.
    bias : whether there is a b
    p : (n,), target margins; None for ones

    Returns
    -------
    ActiveSet, int
        The solution, and how many breakpoints were passed.
    """
    gram = as_gram(gram)
    present = np.flatnonzero(c > 0)
    p = np.ones(len(y)) if p is None else p
    try:
        if start is None and bias and isinstance(gram, DenseGram):
            start = libsvm(gram, y[None], p[None], c)
        if start is None:
            sets, passed = _grow(gram, y, c.astype(float), p, present, bias)
            return sets, passed + make_exact(sets)
        sets = ActiveSet.absent(gram, y, c.astype(float), bias, p)
        sets.begin(present, start)
        return sets, make_exact(sets)
    except PathError as error:
        raise RuntimeError(
            f"The SVM with C up to {c.max():g} cannot be solved exactly: {error} The "
            "Gram matrix may be far from positive semidefinite, or C too large for it; "
            "scale the data, or take a smaller C."
        ) from error


def _grow(
    gram: Gram, y: Array, c: Array, p: Array, present: Array, bias: bool
) -> tuple[ActiveSet, int]:
    """Follow the path from c = 0, where alpha = c: all points in error.

    Their target margins differ a little until c is reached.
    """
    spread = _SPREAD * np.random.default_rng(0).uniform(size=len(c))
    sets = ActiveSet.absent(gram, y, np.zeros_like(c), bias, p + spread)
    sets.admit(present)
    passed = follow(sets, c)
    sets.refresh()
    return sets, passed + follow(sets, np.zeros_like(c), p - sets.p)


def make_exact(sets: ActiveSet) -> int:
    """Make a nearly optimal solution exactly optimal.

    Every solution is optimal for some target margins p. The path from these to the ones
    meant ends at the exact solution, whatever the violations are now.

    Parameters
    ----------
    sets : ActiveSet
        The solution; it is changed in place.

    Returns
    -------
    passed : int
        Number of breakpoints passed.
    """
    passed = 0
    _polish(sets)
    for attempt in range(_ROUNDS):
        if _relative_residual(sets) <= _ROUNDING:
            break
        passed += _repair(sets, reach=2.0**attempt)
        _polish(sets)
    _release_margin(sets)
    # Optimality is that of the solution, not of gaps that were updated.
    sets.refresh()
    if not len(sets.margin):
        sets.centre_intercept()
    return passed


def _polish(sets: ActiveSet) -> None:
    """Remove the rounding errors of the updates from gaps and solution."""
    if sets.updates > _UPDATES:
        sets.refresh()
    if _relative_residual(sets) > _EXACT:
        sets.refine()


def _relative_residual(sets: ActiveSet) -> float:
    """Return the residual, relative to the terms that a gap is the sum of."""
    size: float = 1.0 + sets.margin.scale * sets.alpha.sum()
    return sets.residual() / size


def _release_margin(sets: ActiveSet) -> None:
    """Let the margin go if all of it is at a bound: then b is not unique.

    Either set would be right. Without a margin vector b is put in the middle of its
    interval, as LIBSVM does, and does not depend on how the solution was found.
    """
    M = sets.margin.members if sets.bias else sets.margin.members[:0]
    # Relative to the others, and not to c: separable data leave a huge c unused.
    low = sets.alpha[M] <= _AT_BOUND * sets.alpha.max(initial=0.0)
    high = sets.c[M] - sets.alpha[M] <= _AT_BOUND * sets.c[M]
    if np.all(low | high):
        for i, at_zero in zip(M, low, strict=True):
            sets.leave(int(i), REST if at_zero else ERROR)


def _repair(sets: ActiveSet, reach: float) -> int:
    """Follow the path from p for which the solution is optimal, strictly, to p.

    How strictly is drawn at random: else all wrong gaps would close at the same eta.
    """
    wrong = sets.violation() * np.random.default_rng(0).uniform(1.5, 2.5, len(sets.y))
    dp = np.where(sets.state == REST, wrong, -wrong)
    dp = np.where(sets.state == MARGIN, -sets.gap, dp)
    sets.lower_targets(dp)
    return follow_working_set(sets, np.zeros_like(sets.c), dp, reach)


def follow_working_set(
    sets: ActiveSet, dc: Array, dp: Array | None = None, reach: float = 1.0
) -> int:
    """Do as `follow`, but to a solution that is optimal on the working set alone.

    `reach` makes the working set larger; one of more than half of the points is all of
    them.
    """
    dp = np.zeros_like(dc) if dp is None else dp
    W = _working_set(sets, (dc != 0) | (dp != 0), reach)
    if 2 * len(W) > len(dc):
        return follow(sets, dc, dp)
    part = sets.restricted(W)
    try:
        passed = follow(part, dc[W], dp[W])
    except PathError:
        return follow(sets, dc, dp)
    sets.absorb(part, W)
    return passed


def _working_set(sets: ActiveSet, moving: Array, reach: float) -> Array:
    needed = moving | (sets.state == MARGIN)
    others = np.flatnonzero(~needed & (sets.state != ABSENT))
    m = len(sets.margin)
    count = int(reach * max(_SIZE - m, _LEAST, _SHARE * m))
    if count < len(others):
        others = others[np.argpartition(np.abs(sets.gap[others]), count)[:count]]
    return np.sort(np.append(np.flatnonzero(needed), others))
