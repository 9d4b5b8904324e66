"""The adjoint of exact losses, whose curvature is infinite on the margin set M.

For D -> infinity in U = P - D lambda, lambda = K U - mu, lambda tends to 0 on M. With
v the limit of D lambda on M, and zero elsewhere, U = P - v and

    K_MM v_M + mu = (K P)_M,    1'v_M = 1'P,

the second line and mu for a free intercept only. A penalised intercept is a constant
1/rho added to the kernel.
"""

from __future__ import annotations

import numpy as np

from bisvm.hinge.margin import MarginSystem
from bisvm.machines.base import Machine, Tangent


def margin_of(curvature: np.ndarray) -> np.ndarray:
    """Rows on the margin of one column."""
    return np.flatnonzero(np.isinf(curvature))


def multipliers(
    block: np.ndarray, g: np.ndarray, total: float, *, free: bool
) -> tuple[np.ndarray, float]:
    """v_M and mu for block = K_MM and g = (K P)_M; mu = 0 if no intercept is free.

    Vectors that depend on others are left out of the system: they have v = 0.
    """
    v = np.zeros(len(g))
    if not len(g):
        return v, 0.0
    system = MarginSystem.of(block, bias=free)
    system.fill(np.arange(len(g)))
    M = system.members
    if not len(M):
        return v, 0.0
    v[M], mu = system.solve(g[M], total)
    # Once more with what is left, for the last digits.
    left = g[M] - block[np.ix_(M, M)] @ v[M] - mu
    correction, further = system.solve(left, total - v[M].sum())
    v[M] += correction
    return v, mu + further


def ends_of_intercept(machine: Machine, tangent: Tangent, k: int) -> np.ndarray:
    """The two points between which a free intercept is in the middle, if M is empty.

    b may rise until a positive hinge in error or a negative one at rest meets the
    margin, and fall until one of the others does. With v = 1'P / 2 on both, U is what
    the functions alone do to H: b follows them.
    """
    signs, targets = machine.loss.hinges(machine.labels[:, k])
    present = machine.weights[:, k] > 0
    # With no vector on the margin every dual is exactly at one of its bounds.
    error = signs * tangent.slope[:, k] < 0
    room = signs * targets - tangent.fitted[:, k]
    above = present & (error == (signs > 0))
    below = present & (error == (signs < 0))
    ends = []
    if above.any():
        ends.append(np.argmin(np.where(above, room, np.inf)))
    if below.any():
        ends.append(np.argmax(np.where(below, room, -np.inf)))
    return np.array(ends, dtype=int) % len(present)
