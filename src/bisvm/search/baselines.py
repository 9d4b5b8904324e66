"""Baselines: simple rules that the result of a search must not be worse than.

A descent is local: it ends in the basin where it began, and a plateau looks like a
minimum. Cheap baselines suggest where to start, and what to compare the result with:

- the best *constant*, the same for all rows;
- the machine at the initial values of all hyperparameters, a default SVC or SVR;
- the *local average* of the labels or targets at each of several widths,

      f(x) = sum_j w_j k(x, x_j) y_j / sum_j w_j k(x, x_j),

  over the training rows j of a split (Nadaraya and Watson). It needs no training, sees
  structure at any scale, and its best width is close to that of a machine;
- a *linear rule* on standardised features, by least squares. Unlike a kernel with one
  width, it does not depend on the units of the features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import RandomState
from scipy import sparse

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Evaluation
from bisvm.core.parts import INVERSE_WIDTH, PENALTY
from bisvm.core.types import Array, Matrix
from bisvm.criteria import Criterion
from bisvm.data.matrices import RowBlocks, column_moments, positive
from bisvm.kernels import Kernel
from bisvm.search.descent import SharedValues
from bisvm.search.history import PairedDifference

# Steps in log gamma between widths of the local average: half a decade. The largest
# number of them is twenty decades.
AVERAGE_STEP = np.log(10.0) / 2.0
MOST_WIDTHS = 40
# Neighbours that rows must have in the median for a local average to be one.
FEW_NEIGHBOURS = 0.5
# A local average smooths more than a machine of the same width, and is best where it is
# narrower: by this factor in gamma, in the median of forty sets (docs/defaults.md).
AVERAGE_NARROWER = np.log(3.0)
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


class WidthsAndC(NamedTuple):
    """Shared values of all widths and of C, and which coordinates they are."""

    view: SharedValues
    widths: Array
    penalty: Array

    @classmethod
    def of(cls, objective: Objective) -> WidthsAndC:
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
    problem, shared = objective.problem, WidthsAndC.of(objective)
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
    objective: Objective, shared: WidthsAndC, held_out: _HeldOutRows, fewest: float
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

    H does not where its difference is below its standard error; only the default
    criterion lets errors decide then.
    """
    low, high = sorted((one, other), key=lambda found: found.value)
    by_errors = objective.problem.criterion.ties_by_errors
    if not (by_errors and np.isfinite(high.value) and np.isfinite(low.value)):
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
