"""Permutation importance on rows that a machine was not trained on.

Rows that are held out from the whole search are predicted by the final machine. Without
such rows, row i of the search is predicted by the machine of the split k(i) that holds
it out. Let x_i^c be x_i with column c taken from another row j(i). The importance of
the column is

    I_c = mean over i of  s_k(i)(x_i, y_i) - s_k(i)(x_i^c, y_i)

with s = 1 if the prediction is right, and 0 if it is wrong: I_c is the fall of the
accuracy if the column says nothing about the row (Breiman 2001). With log p of the true
class in place of s, it is the rise of the log-loss. For numbers, s is minus the squared
residual over the variance of y, so that I_c is the fall of R^2; the loss is the
absolute residual. All are means over several drawings of j. Features of one column,
such as the categories of a text, are replaced together. No machine is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from bisvm.core.types import Array, Matrix
from bisvm.data.columns import chosen
from bisvm.estimators.decision_functions import DecisionFunctions
from bisvm.estimators.prediction_sets import LogProba
from bisvm.estimators.quality import NORMAL, UNBALANCED
from bisvm.kernels import Kernel

# The measure of numbers; shares of rows are told in percentage points.
R2 = "R^2"
# Drawings of other rows for every column.
REPEATS = 30
# Values of the kernel that are computed at most, some five seconds: with more columns
# there are fewer drawings, then fewer rows.
MOST_VALUES = 4e8
# Drawings and rows that are kept however many columns there are.
LEAST_REPEATS, LEAST_ROWS = 2, 200


@dataclass(frozen=True, eq=False)
class Importance:
    """How much worse predictions get if a column is shuffled.

    `print(importance)` shows a table.

    Attributes
    ----------
    names : tuple of str
        Columns, the most important first.
    values, errors : arrays of shape (n_columns,)
        The fall of `measure`, and its standard error.
    losses, loss_errors : arrays of shape (n_columns,)
        The rise of the log-loss (for numbers, of the mean absolute error), and its
        standard error.
    measure : "accuracy", or "balanced accuracy" if one class has most of the rows;
        "R^2" for numbers
    n_rows : number of rows
    cross_validated : whether these are the training rows, each predicted by the machine
        of a split that holds it out
    """

    names: tuple[str, ...]
    values: Array
    errors: Array
    losses: Array
    loss_errors: Array
    measure: str
    n_rows: int
    # Model files that were written before this was known have none.
    cross_validated: bool = False

    def interval(self) -> tuple[Array, Array]:
        """95% intervals of `values`."""
        half = NORMAL * self.errors
        return self.values - half, self.values + half

    @property
    def matters(self) -> Array:
        """Which columns make predictions worse beyond noise if they are shuffled."""
        by_hits = self.values > NORMAL * self.errors
        return np.asarray(by_hits | (self.losses > NORMAL * self.loss_errors))

    @property
    def meaning(self) -> str:
        """What the figures are, and on which rows."""
        n = f"{self.n_rows:,}"
        where = (
            f"in cross-validation on {n}" if self.cross_validated else f"on {n} test"
        )
        unit = "" if self.measure == R2 else " in percentage points"
        return (
            f"Fall of {self.measure}{unit} if a column is shuffled, {where} rows (95% "
            "intervals)"
        )

    def in_words(self, value: float) -> str:
        """Return a figure in the unit of `meaning`."""
        number, digits = (value, 3) if self.measure == R2 else (100.0 * value, 1)
        # No minus sign before zeros.
        return f"{round(float(number), digits) + 0.0:.{digits}f}"

    def __str__(self) -> str:
        width = max(len(name) for name in self.names)
        rows = [
            [self.in_words(one) for one in row]
            for row in zip(self.values, *self.interval(), strict=True)
        ]
        lines = [
            f"  {name:<{width}}  {value:>6} ({low} to {high})"
            for name, (value, low, high) in zip(self.names, rows, strict=True)
        ]
        return "\n".join([f"{self.meaning}:", *lines])


class Judged(NamedTuple):
    """How well rows are predicted, such as 1 if they are right, and their losses."""

    score: Array
    loss: Array


class Verdict(Protocol):
    """What predictions of rows are worth."""

    def judge(self, values: Array, y: Array) -> Judged:
        """Judge values of machines, (n, n_tasks), by the true y of the rows."""

    def weights(self, y: Array) -> tuple[Array, str]:
        """Return weights of the rows, which sum to one, and the name of the mean."""


@dataclass(frozen=True)
class ClassVerdict:
    """Whether classes are right, from decision values of class tasks.

    decide : from these to decision values of classes
    threshold : what is subtracted from them before they predict
    alike : whether classes count alike, whatever their size
    """

    n_classes: int
    decide: Callable[[Array], Array]
    log_proba: LogProba
    threshold: float = 0.0
    alike: bool = False

    def judge(self, values: Array, y: Array) -> Judged:
        classes = np.arange(self.n_classes)
        predicted = chosen(self.decide(values) - self.threshold, classes)
        logs = self.log_proba(values)
        return Judged(predicted == y, -logs[np.arange(len(y)), y])

    def weights(self, y: Array) -> tuple[Array, str]:
        counts = np.bincount(y)
        if not self.alike and counts.max() < UNBALANCED * len(y):
            return even(len(y)), "accuracy"
        return 1.0 / (counts[y] * np.sum(counts > 0)), "balanced accuracy"


@dataclass(frozen=True)
class NumberVerdict:
    """Squared residuals over the variance of y, and absolute ones.

    variance : (n_outputs,), of y; several outputs count alike
    center, scale : from values of machines to units of y
    """

    variance: Array
    center: Array | float = 0.0
    scale: Array | float = 1.0

    def judge(self, values: Array, y: Array) -> Judged:
        residuals = y - (self.center + self.scale * values)
        shares = residuals**2 / np.where(self.variance > 0, self.variance, 1.0)
        return Judged(-shares.mean(axis=1), np.abs(residuals).mean(axis=1))

    def weights(self, y: Array) -> tuple[Array, str]:
        return even(len(y)), R2


def even(n: int) -> Array:
    """Return equal weights, which sum to one."""
    return np.full(n, 1.0 / n)


@dataclass(frozen=True)
class RowJudge:
    """Judges rows by machines that have not seen them.

    parts : machines, as functions from rows to values of their tasks, each with the
        places of the rows that it judges
    y : (n,), numbers of the true classes; (n, n_outputs) for numbers
    vectors : mean number of support vectors, what a row costs
    verdict : what the values are worth
    by_splits : whether the machines are those of the splits of a search
    """

    parts: Sequence[tuple[Callable[[Matrix], Array], Array]]
    y: Array
    vectors: float
    verdict: Verdict
    by_splits: bool = False

    def judge(self, X: Matrix) -> Judged:
        n = len(self.y)
        score, loss = np.empty(n), np.empty(n)
        for machine, rows in self.parts:
            found = self.verdict.judge(machine(X[rows]), self.y[rows])
            score[rows], loss[rows] = found
        return Judged(score, loss)

    def of(self, rows: Array) -> RowJudge:
        """Return a judge of some of the rows, given in ascending order."""
        place = np.full(len(self.y), -1)
        place[rows] = np.arange(len(rows))
        parts = [(machine, place[own]) for machine, own in self.parts]
        kept = [(machine, own[own >= 0]) for machine, own in parts]
        return replace(self, parts=kept, y=self.y[rows])


def judge_of_splits(
    machines: DecisionFunctions,
    n_splits: int,
    split: Array,
    y: Array,
    kernels: Sequence[tuple[Kernel, Array]],
    verdict: Verdict,
) -> RowJudge:
    """Return a judge of the rows that splits hold out.

    machines : of all splits, in the order of the splits
    split : (n,), numbers of the splits that hold out the rows
    kernels : every kernel with the tasks that it serves
    """
    of_splits = [machines.part(k, n_splits) for k in range(n_splits)]
    parts = [
        (partial(machine.values, kernels=kernels), np.flatnonzero(split == k))
        for k, machine in enumerate(of_splits)
    ]
    vectors = float(np.mean([machine.coef.shape[0] for machine in of_splits]))
    return RowJudge(parts, y, vectors, verdict, by_splits=True)


def check_rows_of_fit(X: Matrix, row: Array | None) -> Array:
    """Return the numbers of held-out rows, or raise if X cannot be where they are."""
    if row is None or row.max() >= X.shape[0]:
        raise ValueError(
            f"X has {X.shape[0]} rows; expected those that the model was fitted on, or "
            "y with the labels or numbers of new rows. A model of an older version has "
            "to be fitted again."
        )
    return row


def importance_of(
    judge: RowJudge,
    X: Matrix,
    columns: Sequence[str],
    *,
    groups: Array | None = None,
    n_repeats: int | None = None,
    random_state: int = 0,
) -> Importance:
    """Return the importance of every column.

    Parameters
    ----------
    X : (n, d), the rows that are judged
    columns : names, one for every feature; features of one name belong together
    groups : (n,), rows that belong together count as one observation
    """
    names = list(dict.fromkeys(columns))
    rng = np.random.default_rng(random_state)
    size = _size(len(judge.y), len(names), judge.vectors, n_repeats)
    if size.rows < len(judge.y):
        rows = np.sort(rng.permutation(len(judge.y))[: size.rows])
        judge, X = judge.of(rows), X[rows]
        groups = None if groups is None else groups[rows]
    weight, measure = judge.verdict.weights(judge.y)
    own = None if groups is None else np.unique(groups, return_inverse=True)[1]
    before, found = judge.judge(X), []
    for name in names:
        features = np.flatnonzero([one == name for one in columns])
        drawn = [_shuffled(judge, X, features, rng) for _ in range(size.repeats)]
        fall = before.score - np.mean([one.score for one in drawn], axis=0)
        rise = np.mean([one.loss for one in drawn], axis=0) - before.loss
        found.append((*_mean(fall, weight, own), *_mean(rise, even(len(rise)), own)))
    figures = np.array(found)
    # Columns that change no prediction are told apart by the loss.
    order = np.lexsort([-figures[:, 2], -figures[:, 0]])
    values, errors, losses, loss_errors = figures[order].T
    return Importance(
        tuple(names[k] for k in order),
        *(values, errors, losses, loss_errors),
        measure,
        len(weight),
        judge.by_splits,
    )


class _Size(NamedTuple):
    rows: int
    repeats: int


def _size(rows: int, columns: int, vectors: float, repeats: int | None) -> _Size:
    """How many rows, and drawings for every column."""
    affordable = MOST_VALUES / max(columns * vectors, 1.0)
    if repeats is None:
        repeats = int(np.clip(affordable / rows, LEAST_REPEATS, REPEATS))
    most = max(int(affordable / repeats), LEAST_ROWS)
    return _Size(min(rows, most), repeats)


def _shuffled(
    judge: RowJudge, X: Matrix, features: Array, rng: np.random.Generator
) -> Judged:
    """Judge the rows with some features of other rows."""
    other = rng.permutation(X.shape[0])
    if not isinstance(X, np.ndarray):
        changed = X.tolil(copy=True)
        changed[:, features] = X[other][:, features]
        return judge.judge(changed.tocsr())
    changed = X.copy()
    changed[:, features] = X[np.ix_(other, features)]
    return judge.judge(changed)


def _mean(values: Array, weight: Array, groups: Array | None) -> tuple[float, float]:
    """Weighted mean of the rows, and its standard error."""
    mean = float(weight @ values)
    spread = weight * (values - mean)
    if groups is not None:
        spread = np.asarray(np.bincount(groups, spread), dtype=float)
    n = len(spread)
    return mean, float(np.sqrt(np.sum(spread**2) * n / max(n - 1, 1)))
