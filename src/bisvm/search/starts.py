"""Where a search starts, and simple rules that its answer must not be worse than.

A descent is local: it ends in the basin where it began, and a plateau looks like a
minimum. Baselines that cost little say where to begin and what to compare with:

- the best *constant*, the same for all rows;
- the machine at the start of all hyperparameters, a default SVC or SVR;
- the *local average* of the labels or targets at each of several widths,

      f(x) = sum_j w_j k(x, x_j) y_j / sum_j w_j k(x, x_j),

  over the training rows j of a split (Nadaraya and Watson). It needs no training, sees
  structure at any scale, and its best width is close to that of a machine;
- a *linear rule* on standardised features, by least squares: it does not depend on the
  units of the features, as a kernel with one width does.

A single hyperparameter is scanned over its range. With few rows the largest C is tried
with kernels of all widths. Where a machine is worse than a baseline, H is evaluated on
a grid of all widths and C.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.random import RandomState
from scipy import sparse

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Evaluation
from bisvm.core.parts import INVERSE_WIDTH, PENALTY
from bisvm.core.types import Array, Matrix
from bisvm.criteria import Criterion
from bisvm.data.leave_one_out import leaves_one_out
from bisvm.data.matrices import RowBlocks, column_moments, positive
from bisvm.kernels import Kernel
from bisvm.search.descent import SharedValues
from bisvm.search.history import PairedDifference, TriedStarts

# Steps in log gamma or log C: half a decade between widths of the local average, a
# decade between points of a scan, as in the usual grids, and a factor of five between
# widths of a grid.
AVERAGE_STEP = np.log(10.0) / 2.0
SCAN_STEP = np.log(10.0)
GRID_STEP = np.log(5.0)
# Where H is evaluated again about the best point of a scan, in its steps.
BETWEEN = np.array([-2.0, -1.0, 1.0, 2.0]) / 3.0
# log C of a grid, in natural units: machines from rigid to free.
GRID_C = np.log((1.0, 1e2, 1e4))
# Largest number of widths of the local average: twenty decades of gamma.
MOST_WIDTHS = 40
# Factors of gamma and C at which a lower minimum is looked for: along a valley of wider
# kernels and larger C, and at larger C, where several of forty data sets had one; with
# few rows across that valley too, and with one coordinate alone on either side.
VALLEY = ((0.2, 10.0), (1.0, 3.0))
ACROSS = ((2.0, 2.0), (0.5, 0.5))
SIDES = (0.4, 0.6, 1.7, 2.5)
# Rows up to which H has many shallow minima, and costs little. Then the largest C is
# tried with kernels from this factor of the first gamma on, in steps of half a
# GRID_STEP: with longer steps the lowest minimum of four of forty sets was missed.
FEW_ROWS = 200
WIDEST = -6.0 * GRID_STEP
# Neighbours that rows must have in the median for a local average to be one.
FEW_NEIGHBOURS = 0.5
# A local average smooths more than a machine of the same width, and is best where it is
# narrower: by this factor in gamma, in the median of forty sets (docs/defaults.md).
AVERAGE_NARROWER = np.log(3.0)
# Starts closer than this, about half a decade, count as one.
DISTINCT = np.log(3.5)
# Rows that baselines are tried on, for a standard error of 3 points in accuracy, and
# rows that they learn from, which bounds the time.
TRIED_ROWS = 300
LEARNED_ROWS = 20_000
# Entries up to which inputs, and squares of their differences, fit in single precision.
SINGLE_SIZE = 1e12
# Features up to which a linear rule is tried, since it costs their cube, and its ridge
# relative to the weights.
LINEAR_FEATURES = 200
LINEAR_RIDGE = 0.01
# Standard errors by which a baseline must be better than the answer to count: chance
# alone does that in one case of forty.
BASELINE_ERRORS = 2.0
# Standard errors of a difference of H below which two minima are equally good, and of
# their errors above which one of them is better nevertheless.
TIED_ERRORS = 1.0
# A second start is left out if its H is higher than the lowest by this factor.
NEARLY = 1.1
# Points whose H differ by less than this, relatively, are on one plateau (as `tol`).
PLATEAU = 1e-3
# A scan ends on a plateau whose H is below this part of the highest one: the plateau of
# rigid machines, at which scans begin, is not the last. There H changes by less than
# this with a step of the scan.
WELL_BELOW = 0.9
LEVEL = 1e-2
# Starts further apart than this are in different valleys, of which so many are tried.
FAR = 1.5 * SCAN_STEP
MOST_VALLEYS = 3

# --- baselines ------------------------------------------------------------------------


@dataclass(frozen=True)
class Baseline:
    """A simple rule on the same splits, which a machine should not be worse than.

    words : what it is
    rows : the rows that it was tried on
    errors : (len(rows),), what counts against it at every row (`Criterion.errors`)
    loss, constant_loss : its loss on held-out rows (`Criterion.for_baselines`), and
        that of a constant
    start : where a machine that is about as good would begin, if it says that
    """

    words: str
    rows: Array
    errors: Array
    loss: float
    constant_loss: float
    start: Array | None = None

    @property
    def skill(self) -> float:
        """How much lower its loss is than that of a constant."""
        return max(self.constant_loss - self.loss, 0.0)

    def beats(self, objective: Objective, best: Evaluation) -> bool:
        """Whether it makes fewer errors on the same held-out rows than a machine."""
        errors = errors_of(objective, best)[self.rows]
        fewer = _fewer_errors(objective, errors, self.errors, self.rows)
        return fewer.exceeds(BASELINE_ERRORS)


class _HeldOutRows:
    """Held-out rows on which baselines are tried, and the rows they learn from.

    No more than `TRIED_ROWS` of the one and `LEARNED_ROWS` of the other, in single
    precision where the kernel has it: a rough answer is enough.
    """

    def __init__(self, objective: Objective, random_state: RandomState):
        problem, columns = objective.problem, objective.problem.columns
        n = len(columns.labels)
        order = np.arange(n) if n <= TRIED_ROWS else random_state.permutation(n)
        self.rows = np.sort(order[:TRIED_ROWS])
        learned = np.sort(order[-LEARNED_ROWS:])
        X = _single(problem.model.kernel, problem.X)
        self.X, self.X_learned = X[self.rows], X[learned]
        self.train, self._own_train = columns.train[learned], columns.train[self.rows]
        # Which of the rows learned from a tried row is itself, if any.
        self._itself = np.equal.outer(self.rows, learned).nonzero()
        labels = columns.labels[learned]
        self.mean = _mean_label(self.train, labels)
        # Training weights times centred labels.
        self.signed = self.train * (labels - self.mean)
        self._train, self._signed, self._trained = (
            a.astype(X.dtype, copy=False)
            for a in (self.train, self.signed, self.train > 0)
        )
        self._labels = columns.labels[self.rows]
        self._validation = columns.validation[self.rows]
        self._held_out = self._validation > 0
        self._points = columns.points_at(_rows_of(columns.validation, self.rows))
        self._criterion = problem.criterion
        self._judge = problem.criterion.for_baselines()
        self.constant_loss = self.loss(np.broadcast_to(self.mean, self._labels.shape))

    def loss(self, decisions: Array) -> float:
        of_held_out = decisions[self._held_out], self._labels[self._held_out]
        u, _ = self._judge.variable(*of_held_out)
        if not np.isfinite(u).all():
            return np.inf
        weights = self._validation[self._held_out]
        return self._judge.evaluate(u, weights / weights.sum(), self._points).value

    def baseline(
        self, words: str, decisions: Array, start: Array | None = None
    ) -> Baseline:
        at_rows = decisions, self._labels, self._validation
        errors, loss = _errors(self._criterion, *at_rows), self.loss(decisions)
        return Baseline(words, self.rows, errors, loss, self.constant_loss, start)

    def local_average(self, kernel: Kernel) -> tuple[Array, float]:
        """The averages, and how many neighbours a row has in the median.

        No row votes for itself: leave-one-out has training weights for all rows.
        """
        gram = kernel.gram(self.X, self.X_learned)
        gram[self._itself] = 0.0
        mass = gram @ self._train
        average = (gram @ self._signed) / np.where(mass > 0, mass, 1.0) + self.mean
        neighbours = np.median((gram @ self._trained)[self._held_out])
        return average, float(neighbours)

    def linear(self) -> Array:
        """Least squares on standardised features, (Z'WZ + rho tr(W) I) v = Z'W y.

        A row i that is trained on is left out: (f_i - h_i y_i) / (1 - h_i) with its
        leverage h_i, which is 0 where a split holds it out.
        """
        moments = column_moments(self.X_learned)
        scale = np.sqrt(positive(moments.variance))
        Z, Z_learned = ((X - moments.mean) / scale for X in (self.X, self.X_learned))
        out = np.empty((len(Z), self.train.shape[1]))
        for k, weight in enumerate(self.train.T):
            matrix = (Z_learned.T * weight) @ Z_learned
            matrix[np.diag_indices_from(matrix)] += LINEAR_RIDGE * weight.sum()
            v = np.linalg.solve(matrix, Z_learned.T @ self.signed[:, k])
            own = np.einsum("id,di->i", Z, np.linalg.solve(matrix, Z.T))
            own = (own + 1.0 / weight.sum()) * self._own_train[:, k]
            fitted = Z @ v + self.mean[k]
            out[:, k] = (fitted - own * self._labels[:, k]) / (1.0 - own)
        return out


def _single(kernel: Kernel, X: Matrix) -> Matrix:
    """Inputs in single precision, if the kernel has it and they fit in."""
    size = 0.0 if sparse.issparse(X) else float(np.abs(X).max(initial=0.0))
    fits = 1.0 / SINGLE_SIZE < size < SINGLE_SIZE
    single = kernel.single(X) if fits else None
    return X if single is None else single


def baselines(
    objective: Objective, random_state: RandomState, share: float = 1.0
) -> list[Baseline]:
    """Return the best local average, and a linear rule on standardised features.

    None for machines without widths, held-out points, or rows in memory: a linear
    machine, say, is as good as its C. On a subsample with a `share` of all rows,
    averages are tried with the same widths as on all of them.
    """
    problem, shared = objective.problem, _Shared.of(objective)
    in_blocks = isinstance(problem.X, RowBlocks)
    if problem.criterion.on_training or in_blocks or not len(shared.widths):
        return []
    with np.errstate(all="ignore"):
        held_out = _HeldOutRows(objective, random_state)
        fewest = FEW_NEIGHBOURS * share
        found = [_best_local_average(objective, shared, held_out, fewest)]
        few = problem.X.shape[1] <= LINEAR_FEATURES
        if few and not sparse.issparse(problem.X):
            words = "a linear rule on standardised features"
            found.append(held_out.baseline(words, held_out.linear()))
        return found


def local_average_loss(objective: Objective, seed: int) -> float:
    """Return the held-out loss of the best local average with a kernel's distances.

    It needs no training. Kernels are compared on the same rows by the same `seed`.
    """
    found = baselines(objective, RandomState(seed))
    return found[0].loss if found else np.inf


def _best_local_average(
    objective: Objective, shared: _Shared, held_out: _HeldOutRows, fewest: float
) -> Baseline:
    """The local average of the lowest loss, from the first widths to narrow ones.

    With these, rows have no fewer neighbours than `fewest` in the median. All widths
    move together. Bounds do not hold them: a baseline is to show what bounds leave out.
    """
    found: list[tuple[float, Array, Array]] = []
    view = shared.view
    x = view.reduce(objective.theta0)
    for _ in range(MOST_WIDTHS):
        theta = view.expand_unbounded(x)
        kernel = objective.problem.model.kernel_at(objective.hyperparameters(theta))
        average, neighbours = held_out.local_average(kernel)
        if found and not neighbours >= fewest:
            break
        found.append((held_out.loss(average), theta, average))
        x = shared.moved(x, AVERAGE_STEP)
    _, theta, average = min(found, key=lambda one: one[0])
    start = shared.moved(view.reduce(theta), -AVERAGE_NARROWER)
    words = f"local averages of the {objective.problem.columns.targets.words}"
    return held_out.baseline(words, average, view.expand(start))


def _mean_label(train: Array, labels: Array) -> Array:
    """Of every training problem."""
    mean: Array = np.einsum("ij,ij->j", train, labels) / train.sum(axis=0)
    return mean


def _errors(
    criterion: Criterion, decisions: Array, labels: Array, validation: Array
) -> Array:
    """Per row, what counts against the decision values of its held-out points."""
    total: Array = criterion.errors(decisions, labels, validation).sum(axis=1)
    return total


def errors_of(objective: Objective, found: Evaluation) -> Array:
    """(n,), what counts against the machines of an evaluation at every row."""
    columns = objective.problem.columns
    decisions = np.zeros(columns.validation.shape)
    decisions[columns.outside] = found.held_out
    return _errors(
        objective.problem.criterion, decisions, columns.labels, columns.validation
    )


def _fewer_errors(
    objective: Objective, errors: Array, others: Array, rows: Array
) -> PairedDifference:
    """How many fewer the others are, both at these rows."""
    weights = objective.problem.columns.validation[rows].sum(axis=1)
    parts = [errors, others, weights / weights.sum()]
    groups = objective.problem.groups
    if groups is not None:
        # Rows of one group are one observation.
        parts = [np.bincount(groups[rows], part) for part in parts]
    return PairedDifference.of(*parts)


def better_of(objective: Objective, one: Evaluation, other: Evaluation) -> Evaluation:
    """Return the one of lower H, or of fewer errors where H does not tell them apart.

    H does not where its difference is below its standard error.
    """
    low, high = sorted((one, other), key=lambda found: found.value)
    if not (np.isfinite(high.value) and np.isfinite(low.value)):
        return low
    if PairedDifference.between(high, low).exceeds(TIED_ERRORS):
        return low
    rows = np.arange(len(objective.problem.sample_weight))
    fewer = _fewer_errors(
        objective, errors_of(objective, low), errors_of(objective, high), rows
    )
    return high if fewer.exceeds(TIED_ERRORS) else low


def _rows_of(validation: Array, rows: Array) -> Array:
    """(n, q), the held-out points among some of the rows."""
    chosen = np.zeros((len(validation), 1), dtype=bool)
    chosen[rows] = True
    found: Array = chosen & (validation > 0)
    return found


def gain_over_constant(objective: Objective, best: Evaluation) -> PairedDifference:
    """Return by how much the criterion is lower than that of the best constant.

    The constant of a training part is one that `Criterion.constants` proposes, such as
    its mean label or the label of its majority: whichever the criterion prefers.
    """
    columns, criterion = objective.problem.columns, objective.problem.criterion
    values = criterion.constants(columns.labels, columns.train)
    constants = (np.broadcast_to(b, columns.labels.shape) for b in values)
    _, shares = min(map(objective.loss_of, constants), key=lambda one: one[0])
    return PairedDifference.of(shares, best.shares, best.share_weights)


# --- starts ---------------------------------------------------------------------------


class Start(NamedTuple):
    """A start, H there, and whether the machines were solved."""

    theta: Array
    value: float
    solved: bool = True

    def distance(self, other: Start) -> float:
        return float(np.abs(self.theta - other.theta).max())


class _Shared(NamedTuple):
    """Shared values of all widths and of C, and which coordinates they are."""

    view: SharedValues
    widths: Array
    penalty: Array

    @classmethod
    def of(cls, objective: Objective) -> _Shared:
        view, space = SharedValues(objective.space), objective.space
        widths, penalty = (
            view.coordinates_of(space.has_role(role))
            for role in (INVERSE_WIDTH, PENALTY)
        )
        return cls(view, widths, penalty)

    @property
    def both(self) -> bool:
        return bool(len(self.widths) and len(self.penalty))

    @property
    def single(self) -> int | None:
        """The coordinate of C, or of the widths, if the other is not searched."""
        one = [entries for entries in self[1:] if len(entries)]
        return int(one[0][0]) if len(one) == 1 and len(one[0]) == 1 else None

    def moved(self, x: Array, narrower: float = 0.0, larger: float = 0.0) -> Array:
        """Return x with these changes of log gamma and log C."""
        x = x.copy()
        x[self.widths] += narrower
        x[self.penalty] += larger
        return x

    def within(self, x: Array) -> Array:
        """Return theta at x, within the bounds."""
        return self.view.expand(np.clip(x, *self.view.bounds.T))


def _few_rows(objective: Objective) -> bool:
    return len(objective.problem.sample_weight) <= FEW_ROWS


def first_starts(objective: Objective, known: list[Baseline]) -> list[Array]:
    """Return where H is evaluated before a descent, theta0 first.

    The whole range if one coordinate is all there is; else theta0, and what baselines
    propose.
    """
    shared, theta0 = _Shared.of(objective), objective.theta0
    if not shared.both:
        entry = shared.single
        return [theta0, *([] if entry is None else _scan(shared.view, theta0, entry))]
    proposed = [one.start for one in known if one.start is not None]
    return [theta0, *(x for x in proposed if np.abs(x - theta0).max() >= DISTINCT)]


def is_scanned(objective: Objective) -> bool:
    """Whether one coordinate is all there is, whose whole range is evaluated."""
    shared = _Shared.of(objective)
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
    return _on_either_side(_Shared.of(objective), theta, BETWEEN * SCAN_STEP)


def _on_either_side(shared: _Shared, theta: Array, steps: Array) -> list[Array]:
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
    shared = _Shared.of(objective)
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
    shared, few = _Shared.of(objective), _few_rows(objective)
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
    shared = _Shared.of(objective)
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
