"""Which point is the first to meet the border of its set."""

from __future__ import annotations

import numpy as np
from numba import njit

# What is this small, relative to the sums it comes from, is rounding.
STILL = 1e-12


@njit(cache=True)
def first_event(
    side: np.ndarray,
    gap: np.ndarray,
    dg: np.ndarray,
    still_gap: float,
    room: np.ndarray,
    speed: np.ndarray,
    still: np.ndarray,
    luck: float,
) -> tuple[float, int]:
    """The shortest step to a border, and the number of the candidate that is there.

    Candidates are the n gaps, which close where side_i dg_i > 0, and then q quantities
    that run out of room. The step is infinite if nothing comes near.

    Parameters
    ----------
    side, gap, dg : (n,), the direction in which a gap closes (0: never), gaps, rates.
    still_gap : rates of gaps up to this are rounding.
    room, speed, still : (q,), what is left, how fast it goes, and what is rounding.
    luck : in [0, 1), which of several equal steps to take; negative: the fastest.
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
    return first(steps, rates, luck)


@njit(cache=True)
def first(steps: np.ndarray, rates: np.ndarray, luck: float) -> tuple[float, int]:
    """The smallest step; among equal ones that of the fastest, or one by luck."""
    shortest = np.inf
    for step in steps:
        shortest = min(shortest, step)
    ties = np.flatnonzero(steps <= shortest * (1.0 + STILL))
    if luck >= 0.0:
        found = ties[int(luck * len(ties))]
    else:
        found = ties[np.argmax(rates[ties])]
    return steps[found], found
