"""Where a search starts.

A search starts at the initial values of all hyperparameters, and at the values that
baselines suggest. A single hyperparameter is scanned over its range. With few rows, the
largest C is tried with kernels of all widths. If a machine is worse than a baseline, H
is evaluated on a grid of widths and C.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Evaluation
from bisvm.core.types import Array
from bisvm.data.leave_one_out import leaves_one_out
from bisvm.search.baselines import Baseline, WidthsAndC
from bisvm.search.descent import SharedValues
from bisvm.search.history import TriedStarts

# Steps in log gamma or log C: a decade between points of a scan, as in the usual grids,
# and a factor of five between widths of a grid.
SCAN_STEP = np.log(10.0)
GRID_STEP = np.log(5.0)
# Where H is evaluated again about the best point of a scan, in its steps.
BETWEEN = np.array([-2.0, -1.0, 1.0, 2.0]) / 3.0
# log C of a grid, in natural units: machines from rigid to free.
GRID_C = np.log((1.0, 1e2, 1e4))
# Factors of gamma and C at which a lower minimum is looked for: along a valley of wider
# kernels and larger C, and at larger C, where several of forty data sets had one; with
# few rows across that valley too, and with one coordinate alone on either side.
VALLEY = ((0.2, 10.0), (1.0, 3.0))
ACROSS = ((2.0, 2.0), (0.5, 0.5), (0.6, 7.0))
SIDES = (0.4, 0.6, 1.7, 2.5)
# Rows up to which H has many shallow minima, and costs little. Then the largest C is
# tried with kernels from this factor of the first gamma on, in steps of half a
# GRID_STEP: with longer steps the lowest minimum of four of forty sets was missed.
FEW_ROWS = 200
WIDEST = -6.0 * GRID_STEP
# Starts closer than this, about half a decade, count as one.
DISTINCT = np.log(3.5)
# A second start is left out if its H is higher than the lowest by this factor.
NEARLY = 1.1
# Points whose H differ by less than this, relatively, are on one plateau (as `tol`).
PLATEAU = 1e-3
# A scan ends on a plateau whose H is below this part of the highest one: the plateau of
# rigid machines, at which scans begin, is not the last. There H changes by less than
# this with a step of the scan.
WELL_BELOW = 0.9
LEVEL = 1e-2
# Starts further apart than this are in different valleys; this many valleys are tried.
FAR = 1.5 * SCAN_STEP
MOST_VALLEYS = 3


class Start(NamedTuple):
    """A start, H there, and whether the machines were solved."""

    theta: Array
    value: float
    solved: bool = True

    def distance(self, other: Start) -> float:
        return float(np.abs(self.theta - other.theta).max())


def _few_rows(objective: Objective) -> bool:
    return len(objective.problem.sample_weight) <= FEW_ROWS


def first_starts(objective: Objective, known: list[Baseline]) -> list[Array]:
    """Return where H is evaluated before a descent, theta0 first.

    The whole range if one coordinate is all there is; else theta0, and what baselines
    propose.
    """
    shared, theta0 = WidthsAndC.of(objective), objective.theta0
    if not shared.both:
        entry = shared.single
        return [theta0, *([] if entry is None else _scan(shared.view, theta0, entry))]
    proposed = [one.start for one in known if one.start is not None]
    return [theta0, *(x for x in proposed if np.abs(x - theta0).max() >= DISTINCT)]


def is_scanned(objective: Objective) -> bool:
    """Whether one coordinate is all there is, whose whole range is evaluated."""
    shared = WidthsAndC.of(objective)
    return not shared.both and shared.single is not None


def _scan(view: SharedValues, start: Array, entry: int) -> Iterator[Array]:
    """The range of one coordinate, from rigid machines to free ones."""
    x = view.reduce(start)
    low, high = (view.bounds[entry] - x[entry]) / SCAN_STEP
    # Bounds that are whole steps away are not to be missed by rounding.
    for step in range(math.ceil(low - 1e-6), math.floor(high + 1e-6) + 1):
        if step:
            moved = x.copy()
            moved[entry] += step * SCAN_STEP
            yield view.expand(moved)


def has_levelled_off(starts: list[Start]) -> bool:
    """Whether a scan from rigid machines to free ones has come to its lower plateau.

    Machines that separate the rows stay the same at larger C, and take ever longer.
    """
    values = [start.value for start in starts[1:]]
    if len(values) < 2 or not values[-1] < WELL_BELOW * max(values):
        return False
    return abs(values[-1] - values[-2]) <= LEVEL * abs(values[-1])


def starts_between(objective: Objective, theta: Array) -> list[Array]:
    """Return points between a point of a scan and its neighbours."""
    return _on_either_side(WidthsAndC.of(objective), theta, BETWEEN * SCAN_STEP)


def _on_either_side(shared: WidthsAndC, theta: Array, steps: Array) -> list[Array]:
    """The only coordinate moved by these steps, as far as its bounds allow."""
    view, entry = shared.view, shared.single
    if entry is None:
        return []
    low, high = view.bounds[entry]
    found = []
    for step in steps:
        x = view.reduce(theta)
        x[entry] += step
        if low < x[entry] < high:
            found.append(view.expand(x))
    return found


def grid_of_starts(objective: Objective, known: list[Baseline]) -> list[Array]:
    """Return a coarse grid of widths and C, from the widest useful kernel on."""
    shared = WidthsAndC.of(objective)
    origin = shared.view.reduce(objective.theta0)
    room = (shared.view.bounds[shared.widths, 1] - origin[shared.widths]).max()
    steps = np.arange(-2.0 * GRID_STEP, room, GRID_STEP)
    found = [
        shared.within(shared.moved(origin, step, C))
        for step, C in product(steps, GRID_C if len(shared.penalty) else [0.0])
    ]
    return [*found, *(one.start for one in known if one.start is not None)]


def nearby_starts(objective: Objective, theta: Array) -> list[Array]:
    """Return points around a minimum, from which a lower one may be reached."""
    shared, few = WidthsAndC.of(objective), _few_rows(objective)
    if not shared.both:
        return _on_either_side(shared, theta, np.log(SIDES)) if few else []
    x, (low, high) = shared.view.reduce(theta), shared.view.bounds.T
    factors = np.log((*VALLEY, *(ACROSS if few else ())))
    moved = [shared.moved(x, *pair) for pair in factors]
    return [shared.view.expand(x) for x in moved if np.all((x >= low) & (x <= high))]


def largest_C_starts(objective: Objective, theta: Array) -> list[Array]:
    """Return kernels of all widths down to that of theta, with the largest C.

    Such machines separate the rows if they can. With few rows H often has a second
    valley there, at wider kernels than those of a minimum with a smaller C. None for
    leave-one-out, whose correction is least accurate there: up to 16% below the true
    value on moons, and lower than any true minimum.
    """
    shared = WidthsAndC.of(objective)
    one_by_one = leaves_one_out(objective.problem.columns)
    if one_by_one or not (_few_rows(objective) and shared.both):
        return []
    view, widths = shared.view, shared.widths
    origin, at = view.reduce(objective.theta0), view.reduce(theta)
    widest = max(WIDEST, (view.bounds[widths, 0] - origin[widths]).max())
    narrowest = (at[widths] - origin[widths]).max() + GRID_STEP
    return [
        shared.within(shared.moved(origin, step, np.inf))
        for step in np.arange(widest, narrowest, 0.5 * GRID_STEP)
    ]


def lowest(starts: list[Start], plateau: float = PLATEAU) -> Start:
    """Return the start of lowest H; on a plateau, the nearest to the first start.

    plateau : relative differences of H that do not count
    """
    finite = [start for start in starts if np.isfinite(start.value)] or starts[:1]
    level = min(start.value for start in finite)
    level += plateau * abs(level)
    return min(
        (start for start in finite if not start.value > level),
        key=lambda start: start.distance(starts[0]),
        default=starts[0],
    )


def best_starts(starts: list[Start], plateau: float = PLATEAU) -> list[Start]:
    """Return where to descend: the lowest start, and one far away and nearly as low.

    Far is further than a step and a half of a scan. No start that is so close to it is
    lower: there it would only be on the way to another one.
    """
    best = lowest(starts, plateau)
    good = [start for start in starts if start.value <= NEARLY * best.value]
    far = [start for start in good if start.distance(best) >= FAR]
    far = [one for one in far if _is_lowest_nearby(one, starts)]
    # On the plateau of the best nothing else is to be found.
    far = [one for one in far if abs(one.value - best.value) > plateau * best.value]
    return [best, *sorted(far, key=lambda start: start.value)[:1]]


def _is_lowest_nearby(one: Start, starts: list[Start]) -> bool:
    near = (other for other in starts if other.distance(one) < FAR)
    return all(not other.value < one.value for other in near)


def other_valleys(found: Evaluation, starts: list[Start]) -> list[Start]:
    """Return starts nearly as low as a minimum, in other valleys than one another.

    A start that is lower than the minimum may be close to it.
    """
    kept = [Start(found.theta, found.value)]
    for one in sorted(starts, key=lambda start: start.value):
        nearly = one.solved and one.value <= NEARLY * found.value
        others = kept[1:] if one.value < found.value else kept
        if nearly and all(one.distance(other) >= FAR for other in others):
            kept.append(one)
    return kept[1 : 1 + MOST_VALLEYS]


def tried_starts(
    objective: Objective, starts: list[Start], end: Evaluation
) -> TriedStarts:
    """Return what a certificate says of the starts."""
    log = np.array([scale == "log" for _, scale in objective.space.coordinates])

    def natural(theta: Array) -> tuple[float, ...]:
        values = np.where(log, np.exp(np.where(log, theta, 0.0)), theta)
        return tuple(values.tolist())

    return TriedStarts(
        len(objective.problem.sample_weight),
        tuple(objective.names),
        tuple(natural(one.theta) for one in starts),
        tuple(float(one.value) for one in starts),
        natural(end.theta),
        float(end.value),
    )
