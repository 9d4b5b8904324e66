"""Where a search begins, and whether its end can be believed.

A descent is local: it ends in the basin where it began, and a plateau looks like a
minimum. Four simple rules, which cost little, say where to begin and what any answer
must be better than:

- the *guess*: the best constant, the same for all rows;
- the *default*: the machine at the start of all hyperparameters, a default SVC;
- the *local average* of the labels at each of several widths,

      f(x) = sum_j w_j k(x, x_j) y_j / sum_j w_j k(x, x_j),

  over the training rows j of a split (Nadaraya and Watson). It needs no training, sees
  structure at whatever scale it has, and its best width is near that of a machine;
- a *linear rule* on standardised features, by least squares: it does not depend on the
  units of the columns, as a kernel with one width does.

Where one hyperparameter alone is searched, it is scanned. Where a machine is worse than
one of these, the whole range of its widths and C is mapped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from bisvm.bilevel.evaluation import Evaluation
from bisvm.bilevel.objective import Objective
from bisvm.core.parts import INVERSE_WIDTH, PENALTY
from bisvm.criteria import get_criterion
from bisvm.data.pieces import Pieces
from bisvm.data.scaling import column_moments, positive
from bisvm.kernels import Kernel
from bisvm.search.gains import Gain
from bisvm.search.history import Looks
from bisvm.search.views import Tied

# Steps between neighbouring widths of the local average, of a scan, and of a map.
AVERAGE_STEP = np.log(10.0) / 2.0
SCAN_STEP = np.log(10.0)
MAP_STEP = np.log(5.0)
# Where a scan looks again about its best point, in its steps.
CLOSER = np.array([-2.0, -1.0, 1.0, 2.0]) / 3.0
# C of a map, in its natural units: machines from rigid to free.
MAP_C = np.log((1.0, 1e2, 1e4))
# Widths after which local averages end in any case, twenty decades of gamma.
MOST_WIDTHS = 40
# Factors of gamma and C at which a lower minimum is looked for: along a valley of wider
# kernels and larger C, at larger C, and with no more than FEW_ROWS on all sides.
VALLEY = ((0.2, 10.0), (1.0, 3.0))
ALL_SIDES = (
    *((1.0, 0.03), (1.0, 0.2), (1.0, 30.0)),
    *((0.25, 1.0), (0.6, 1.7), (0.7, 0.75), (0.1, 100.0)),
    *((4.0, 1.0), (15.0, 0.4), (3.0, 0.003), (100.0, 0.001)),
)
FEW_ROWS = 150
# Neighbours that rows must have in the median for a local average to be one.
FEW_NEIGHBOURS = 0.5
# A local average sees less than a machine of the same width, and is best where it is
# narrower: by this factor in gamma, in the median of forty data sets.
NARROWER = np.log(3.0)
# Starts nearer than this are one.
APART = np.log(3.5)
# Rows that simple rules are tried on, and that they learn from.
TRIED_ROWS = 300
LEARNED_ROWS = 20_000
# Entries up to which inputs, and squares of their differences, fit in single precision.
SINGLE_SIZE = 1e12
# Features up to which a linear rule is tried, and its penalty relative to the weights.
LINEAR_FEATURES = 200
LINEAR_RIDGE = 0.01
# Standard errors by which a simple rule must be better than the answer to be a reason
# for a map.
REFERENCE_ERRORS = 2.0
# A basin whose best look is higher than the best of all by this factor is left out.
NEARLY = 1.1
# Looks whose H differ by less than this, relatively, are on one plateau.
PLATEAU = 1e-3
BLEND = get_criterion("blend")


@dataclass(frozen=True)
class Reference:
    """A simple rule on the same splits, which a machine should not be worse than.

    words : what it is
    rows : the rows that it was tried on
    shares : (len(rows),), what is right at every row, weighted
    loss, guess : its loss on held-out rows, calibrated ("blend"), and a constant's
    start : where a machine that knows as much would begin, if it says that
    """

    words: str
    rows: np.ndarray
    shares: np.ndarray
    loss: float
    guess: float
    start: np.ndarray | None = None

    @property
    def seen(self) -> float:
        """How much it knows that a constant does not."""
        return max(self.guess - self.loss, 0.0)

    def beats(self, objective: Objective, best: Evaluation) -> bool:
        """Whether more of the same held-out rows are right than with a machine."""
        columns = objective.problem.columns
        decisions = np.zeros(columns.validation.shape)
        decisions[columns.outside] = best.held_out
        own = _right(decisions, columns.labels, columns.validation)[self.rows]
        weights = columns.validation[self.rows].sum(axis=1)
        parts = [own, self.shares, weights / weights.sum()]
        groups = objective.problem.groups
        if groups is not None:
            # Rows of one group are one observation.
            parts = [np.bincount(groups[self.rows], part) for part in parts]
        # A gain is what the losses fall by, and what is right has the opposite sign.
        gain = Gain.of(-parts[0], -parts[1], parts[2])
        return gain.exceeds(REFERENCE_ERRORS)


class _Trial:
    """Held-out rows on which simple rules are tried, and the rows they learn from.

    No more than `TRIED_ROWS` of the one and `LEARNED_ROWS` of the other, in single
    precision where the kernel has it: the answers are rough ones anyway.
    """

    def __init__(self, objective: Objective, random_state: np.random.RandomState):
        problem, columns = objective.problem, objective.problem.columns
        n = len(columns.labels)
        order = np.arange(n) if n <= TRIED_ROWS else random_state.permutation(n)
        self.rows = np.sort(order[:TRIED_ROWS])
        learned = np.sort(order[-LEARNED_ROWS:])
        X = _single(problem.model.kernel, problem.X)
        self.X, self.X_learned = X[self.rows], X[learned]
        self.train = columns.train[learned]
        self.signed, self.mean = _signed(self.train, columns.labels[learned])
        self._train, self._signed, self._trained = (
            a.astype(X.dtype, copy=False)
            for a in (self.train, self.signed, self.train > 0)
        )
        self._labels = columns.labels[self.rows]
        self._validation = columns.validation[self.rows]
        self._held_out = self._validation > 0
        self.guess = self.loss(np.broadcast_to(self.mean, self._labels.shape))

    def loss(self, decisions: np.ndarray) -> float:
        margins = (self._labels * decisions)[self._held_out]
        if not np.isfinite(margins).all():
            return np.inf
        weights = self._validation[self._held_out]
        return BLEND.evaluate(margins, weights / weights.sum()).value

    def reference(
        self, words: str, decisions: np.ndarray, start: np.ndarray | None = None
    ) -> Reference:
        shares = _right(decisions, self._labels, self._validation)
        return Reference(
            words, self.rows, shares, self.loss(decisions), self.guess, start
        )

    def local_average(self, kernel: Kernel) -> tuple[np.ndarray, float]:
        """The averages, and how many neighbours a row has in the median."""
        gram = kernel.gram(self.X, self.X_learned)
        near = gram @ self._train
        average = (gram @ self._signed) / np.where(near > 0, near, 1.0) + self.mean
        neighbours = np.median((gram @ self._trained)[self._held_out])
        return average, float(neighbours)

    def linear(self) -> np.ndarray:
        """Least squares on standardised features, (Z'WZ + rho tr(W) I) v = Z'W y."""
        moments = column_moments(self.X_learned)
        scale = np.sqrt(positive(moments.variance))
        Z, Z_learned = ((X - moments.mean) / scale for X in (self.X, self.X_learned))
        out = np.empty((len(Z), self.train.shape[1]))
        for k, weight in enumerate(self.train.T):
            matrix = (Z_learned.T * weight) @ Z_learned
            matrix[np.diag_indices_from(matrix)] += LINEAR_RIDGE * weight.sum()
            v = np.linalg.solve(matrix, Z_learned.T @ self.signed[:, k])
            out[:, k] = Z @ v + self.mean[k]
        return out


def _single(kernel: Kernel, X: Any) -> Any:
    """Inputs in single precision, if the kernel has it and they fit in."""
    size = 0.0 if sparse.issparse(X) else float(np.abs(X).max(initial=0.0))
    within = 1.0 / SINGLE_SIZE < size < SINGLE_SIZE
    single = kernel.single(X) if within else None
    return X if single is None else single


def references(
    objective: Objective, random_state: np.random.RandomState
) -> list[Reference]:
    """The best local average, and a linear rule on standardised features.

    None for machines that have no widths, no held-out points, or no rows in memory: a
    linear machine, say, is as good as its C.
    """
    problem, view = objective.problem, Tied(objective.space)
    widths = _moving(objective, view, INVERSE_WIDTH)
    in_blocks = isinstance(problem.X, Pieces)
    if problem.criterion.on_training or in_blocks or not len(widths):
        return []
    with np.errstate(all="ignore"):
        return _references(objective, view, widths, _Trial(objective, random_state))


def _references(
    objective: Objective, view: Tied, widths: np.ndarray, trial: _Trial
) -> list[Reference]:
    problem = objective.problem
    found: list[tuple[float, np.ndarray, np.ndarray]] = []
    for theta in _ladder(objective, view, widths):
        average, neighbours = trial.local_average(
            problem.model.kernel_at(objective.hyperparameters(theta))
        )
        if found and not neighbours >= FEW_NEIGHBOURS:
            break
        found.append((trial.loss(average), theta, average))
    _, theta, average = min(found, key=lambda one: one[0])
    start = view.reduce(theta)
    start[widths] -= NARROWER
    best = trial.reference("local averages of the labels", average, view.expand(start))
    few = problem.X.shape[1] <= LINEAR_FEATURES and not sparse.issparse(problem.X)
    if not few:
        return [best]
    words = "a linear rule on standardised features"
    return [best, trial.reference(words, trial.linear())]


def _signed(train: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Training weights times centred labels, and the mean labels."""
    mean = _mean_label(train, labels)
    return train * (labels - mean), mean


def _mean_label(train: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of every training problem."""
    return np.einsum("ij,ij->j", train, labels) / train.sum(axis=0)


def _right(
    decisions: np.ndarray, labels: np.ndarray, validation: np.ndarray
) -> np.ndarray:
    """Per row, the weight of the held-out points whose label is found."""
    return (validation * (labels * decisions > 0)).sum(axis=1)


def _moving(objective: Objective, view: Tied, role: str) -> np.ndarray:
    """The tied coordinates of this role."""
    return np.flatnonzero(view.holds(objective.space.has_role(role)))


def _ladder(
    objective: Objective, view: Tied, moving: np.ndarray
) -> Iterator[np.ndarray]:
    """theta at widths from the start to ever narrower ones, all moving together.

    Bounds do not hold them: a reference is to show what bounds leave out.
    """
    x = view.reduce(objective.theta0)
    for _ in range(MOST_WIDTHS):
        yield view.expand_freely(x)
        x = x.copy()
        x[moving] += AVERAGE_STEP


def first_looks(objective: Objective, known: list[Reference]) -> list[np.ndarray]:
    """Where H is looked at before a descent, the start first.

    All of the range where one coordinate is all there is; else the start, and where
    references say.
    """
    view, start = Tied(objective.space), objective.theta0
    penalty = _moving(objective, view, PENALTY)
    widths = _moving(objective, view, INVERSE_WIDTH)
    if len(penalty) == 0 or len(widths) == 0:
        looks = [start]
        entry = alone(objective)
        return looks if entry is None else [*looks, *_scan(view, start, entry)]
    others = [one.start for one in known if one.start is not None]
    return [start, *(x for x in others if np.abs(x - start).max() >= APART)]


def alone(objective: Objective) -> int | None:
    """The tied coordinate of C, or of the widths, if the other is not searched."""
    view = Tied(objective.space)
    found = [_moving(objective, view, role) for role in (PENALTY, INVERSE_WIDTH)]
    one = [moving for moving in found if len(moving)]
    return int(one[0][0]) if len(one) == 1 and len(one[0]) == 1 else None


def _scan(view: Tied, start: np.ndarray, entry: int) -> Iterator[np.ndarray]:
    """The range of one coordinate, from rigid machines to free ones."""
    x = view.reduce(start)
    low, high = (view.bounds[entry] - x[entry]) / SCAN_STEP
    # Bounds that are whole steps away are not to be missed by rounding.
    for step in range(math.ceil(low - 1e-6), math.floor(high + 1e-6) + 1):
        if step:
            moved = x.copy()
            moved[entry] += step * SCAN_STEP
            yield view.expand(moved)


def closer_looks(objective: Objective, theta: np.ndarray) -> list[np.ndarray]:
    """Between a point of a scan and its neighbours, where minima are shallow."""
    view, entry = Tied(objective.space), alone(objective)
    if entry is None:
        return []
    low, high = view.bounds[entry]
    found = []
    for step in CLOSER * SCAN_STEP:
        x = view.reduce(theta)
        x[entry] += step
        if low < x[entry] < high:
            found.append(view.expand(x))
    return found


def whole_map(objective: Objective, known: list[Reference]) -> list[np.ndarray]:
    """A coarse map of widths and C, from the widest kernel worth a look on."""
    view, start = Tied(objective.space), objective.theta0
    penalty = _moving(objective, view, PENALTY)
    widths = _moving(objective, view, INVERSE_WIDTH)
    origin = view.reduce(start)
    room = (view.bounds[widths, 1] - origin[widths]).max()
    steps = np.arange(-2.0 * MAP_STEP, room, MAP_STEP)
    looks = []
    for step, C in product(steps, MAP_C if len(penalty) else [0.0]):
        x = origin.copy()
        x[widths] += step
        x[penalty] += C
        looks.append(view.expand(np.clip(x, *view.bounds.T)))
    return [*looks, *(one.start for one in known if one.start is not None)]


def neighbours(objective: Objective, theta: np.ndarray) -> list[np.ndarray]:
    """Where a lower minimum may be, near the one found.

    Along the valley of wider kernels and larger C there was one on several of forty
    data sets. With few rows H has shallow minima on all sides, and looks cost little.
    """
    view = Tied(objective.space)
    penalty = _moving(objective, view, PENALTY)
    widths = _moving(objective, view, INVERSE_WIDTH)
    if not (len(penalty) and len(widths)):
        return []
    few = len(objective.problem.sample_weight) <= FEW_ROWS
    found = []
    for narrower, larger in (*VALLEY, *(ALL_SIDES if few else ())):
        x = view.reduce(theta)
        x[widths] += np.log(narrower)
        x[penalty] += np.log(larger)
        if np.all((x >= view.bounds[:, 0]) & (x <= view.bounds[:, 1])):
            found.append(view.expand(x))
    return found


class Look(NamedTuple):
    """A point, H there, and whether the machines were solved."""

    theta: np.ndarray
    value: float
    solved: bool = True


def lowest(looks: list[Look]) -> Look:
    """The lowest of the looks; of those on a plateau the nearest to the first."""
    finite = [look for look in looks if np.isfinite(look.value)] or looks[:1]
    level = min(look.value for look in finite)
    level += PLATEAU * abs(level)
    return min(
        (look for look in finite if not look.value > level),
        key=lambda look: _distance(look, looks[0]),
        default=looks[0],
    )


def basins(looks: list[Look]) -> list[Look]:
    """Where to descend: the lowest of the looks, and one that is far and nearly as low.

    Far is further than a step and a half of a scan.
    """
    best = lowest(looks)
    good = [look for look in looks if look.value <= NEARLY * best.value]
    far = [look for look in good if _distance(look, best) >= 1.5 * SCAN_STEP]
    # On the plateau of the best nothing else is to be found.
    far = [look for look in far if abs(look.value - best.value) > PLATEAU * best.value]
    return [best, *sorted(far, key=lambda look: look.value)[:1]]


def looks_of(objective: Objective, seen: list[Look], end: Evaluation) -> Looks:
    """What a certificate says of the points that were looked at."""
    scales = [scale for _, scale in objective.space.coordinates]
    log = np.array([scale == "log" for scale in scales])

    def natural(theta: np.ndarray) -> tuple[float, ...]:
        values = np.where(log, np.exp(np.where(log, theta, 0.0)), theta)
        return tuple(values.tolist())

    return Looks(
        len(objective.problem.sample_weight),
        tuple(objective.names),
        tuple(natural(one.theta) for one in seen),
        tuple(float(one.value) for one in seen),
        natural(end.theta),
        float(end.value),
    )


def _distance(one: Look, other: Look) -> float:
    return float(np.abs(one.theta - other.theta).max())


def gain_over_guess(objective: Objective, best: Evaluation) -> Gain:
    """By how much the criterion is lower than that of the best constant.

    The constant of a training part is its mean label, or the label of its majority:
    whichever the criterion prefers.
    """
    columns = objective.problem.columns
    mean, shape = _mean_label(columns.train, columns.labels), columns.labels.shape
    constants = (np.broadcast_to(b, shape) for b in (mean, np.sign(mean)))
    _, shares = min(map(objective.loss_of, constants), key=lambda one: one[0])
    return Gain.of(shares, best.shares, best.share_weights)
