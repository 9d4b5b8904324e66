"""Points that leave and come, along one path."""

from __future__ import annotations

import numpy as np

from bisvm.core.types import Array
from bisvm.hinge.active_set import ActiveSet
from bisvm.hinge.breakpoints import PathError
from bisvm.hinge.solution import follow_working_set, make_exact, solve


def exchange(
    sets: ActiveSet, out: Array, new: Array, c: Array
) -> tuple[ActiveSet, int]:
    """Remove points `out` and add `new` ones, along one path.

        c_i: alpha_i -> 0 for i that leave,     c_i: 0 -> c for i that come.

    A point that leaves the margin gets its alpha as its bound at once: it is in error
    by zero. One that comes has alpha = c = 0, in error or at rest by the sign of its
    gap, which has to be known; with c = 0 it stays absent.

    Returns
    -------
    ActiveSet, int
        The solution, which is `sets` unless the path was lost, and how many breakpoints
        were passed.
    """
    sets.release(out)
    sets.admit(new[c > 0])
    dc = np.zeros(len(sets.y))
    dc[new], dc[out] = c, -sets.c[out]
    target = sets.c + dc
    target[out] = 0.0
    try:
        passed = follow_working_set(sets, dc)
        sets.drop(out)
        return sets, passed + make_exact(sets)
    except PathError:
        return solve(sets.gram, sets.y, target, bias=sets.bias)
