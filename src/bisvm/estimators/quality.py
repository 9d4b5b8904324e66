"""How useful predictions are, counted on rows that the machine was not trained on.

Accuracy alone misleads where one class is frequent: always predicting it is right
nearly every time. Let N be the confusion matrix, n_c the rows of class c, and g the
largest class. Predictions are better than guessing if one of these exceeds two, and if
the held-out loss of a search is lower than that of a constant by more than two standard
errors (`Certificate.gain_over_constant`):

    z_accuracy = (a - b) / sqrt(a + b),
    a = sum over c != g of N_cc,   b = n_g - N_gg,

the rows that only the machine has right and those that only "always g" has right
(McNemar 1947), or

    z_balanced = (mean over c of N_cc / n_c - 1 / K) / sqrt(sum q_c (1 - q_c) / n_c) K,

with q_c the share of rows that are predicted to be c: if predictions say nothing about
the classes, balanced accuracy has mean 1 / K and about this standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from bisvm.core.types import Array
from bisvm.data.columns import decisions
from bisvm.search.history import CONSTANT_ERRORS, ENOUGH_ROWS, Certificate
from bisvm.search.results import HeldOut, SplitScores, all_or_none
from bisvm.search.settings import Data, TaskKind

# From this share of the largest class on, accuracy says little: a constant prediction
# is right on three rows of four.
UNBALANCED = 0.75
# 95% of a normal distribution lie within this many standard deviations.
NORMAL = 1.959964
# Bins of probabilities for the calibration error, and rows that each has at least.
MOST_BINS, LEAST_ROWS = 10, 20
NO_BETTER = "No better than guessing"
TOO_FEW = "Too few rows to say whether this is better than guessing"
# Where rows are that machines of the splits have predicted.
IN_FOLDS = "rows in cross-validation"


class Measure(NamedTuple):
    """A measure with its 95% interval, and what guessing would give."""

    name: str
    value: float
    low: float
    high: float
    guess: float


def share_in_words(value: float, low: float, high: float, level: int = 95) -> str:
    """Return a share with its interval: 80.1% (95% interval 73.3% to 85.8%)."""
    return f"{value:.1%} ({level}% interval {low:.1%} to {high:.1%})"


@dataclass(frozen=True, eq=False)
class Quality:
    """How useful predictions are, on rows that were not used for training.

    `print(quality)` shows a summary.

    Attributes
    ----------
    classes : array of shape (n_classes,)
    confusion : array of shape (n_classes, n_classes)
        Number of rows by true class (first axis) and predicted class. A row that is
        held out several times counts as one in total.
    auc : float or None
        Area under the ROC curve: the probability that a row of the second class has a
        higher decision value than one of the first. With several classes the mean over
        one class against the rest. None if rows of one class only are held out.
    log_loss : float or None
        Mean of -log p of the true class; None without probabilities.
    calibration_error : float or None
        Mean distance between the highest probability of a row and how often the class
        that has it is right, over bins of rows.
    gain_over_constant : float or None
        By how much the validation loss is lower than that of a constant, in standard
        errors; known of the held-out rows of a search only.
    calibration_noise : float or None
        What the calibration error is on average, by chance, if all probabilities are
        right.
    guessed : int or None
        Number of the class that guessing predicts, the largest of the training rows;
        None for the largest of these rows.
    alike : bool
        Whether the classes count alike, whatever their size, since the model has a
        threshold or class weights for that.
    """

    classes: Array
    confusion: Array
    auc: float | None = None
    log_loss: float | None = None
    calibration_error: float | None = None
    gain_over_constant: float | None = None
    # Model files that were written before this was known have none.
    guessed: int | None = None
    alike: bool = False
    calibration_noise: float | None = None

    @classmethod
    def of(
        cls,
        y: Array,
        decision: Array,
        log_proba: Array | None,
        classes: Array,
        *,
        weight: Array | None = None,
        gain_over_constant: float | None = None,
        guessed: int | None = None,
        alike: bool = False,
    ) -> Quality:
        """Count from decision values.

        Parameters
        ----------
        y : (n,), numbers of the true classes
        decision : (n,) for two classes, or (n, n_classes)
        log_proba : (n, n_classes), or None
        classes : labels
        weight : (n,), what every row counts; 1 by default
        """
        weight = np.ones(len(y)) if weight is None else weight
        votes = _votes(decision)
        predicted, k = votes.argmax(axis=1), len(classes)
        counts = np.bincount(k * y + predicted, weight, minlength=k * k)
        log_loss = error = noise = None
        if log_proba is not None:
            own = -log_proba[np.arange(len(y)), y]
            log_loss = float(np.average(own, weights=weight))
            likely = log_proba.argmax(axis=1)
            stated = np.exp(log_proba.max(axis=1))
            error, noise = _calibration_error(stated, likely == y)
        return cls(
            classes,
            counts.reshape(k, k),
            _auc(y, votes, weight),
            log_loss,
            error,
            gain_over_constant,
            guessed,
            alike,
            noise,
        )

    # --- figures ----------------------------------------------------------------------

    @property
    def rows(self) -> Array:
        """Number of rows of every class."""
        total: Array = self.confusion.sum(axis=1)
        return total

    @property
    def accuracy(self) -> float:
        return float(np.trace(self.confusion) / self.confusion.sum())

    @property
    def guess(self) -> float:
        """Accuracy of always predicting the largest class of the training rows."""
        return float(self.rows[self._guess] / self.rows.sum())

    @property
    def _guess(self) -> int:
        return int(self.rows.argmax()) if self.guessed is None else self.guessed

    @property
    def recall(self) -> Array:
        """Share of the rows of every class that are predicted to be of it."""
        return _ratio(np.diag(self.confusion), self.rows)

    @property
    def precision(self) -> Array:
        """Share of the predictions of every class that are right; NaN if never made."""
        return _ratio(np.diag(self.confusion), self.confusion.sum(axis=0))

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the recalls; a constant prediction has 1 / n_classes."""
        return float(np.nanmean(self.recall))

    def accuracy_interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the accuracy."""
        p, n, z2 = self.accuracy, float(self.rows.sum()), NORMAL**2
        middle = (p + 0.5 * z2 / n) / (1.0 + z2 / n)
        half = NORMAL * sqrt(p * (1.0 - p) / n + 0.25 * z2 / n**2) / (1.0 + z2 / n)
        # At 0 and 1 the ends are p itself, but for rounding errors.
        return min(max(middle - half, 0.0), p), max(min(middle + half, 1.0), p)

    def balanced_interval(self) -> tuple[float, float]:
        """95% interval of the balanced accuracy, normal, two hits and misses added."""
        hits, rows = np.diag(self.confusion), self.rows
        known = rows > 0
        share = (hits[known] + 2.0) / (rows[known] + 4.0)
        error = np.sqrt(np.sum(share * (1.0 - share) / (rows[known] + 4.0)))
        half = NORMAL * float(error) / int(known.sum())
        middle = self.balanced_accuracy
        return max(middle - half, 0.0), min(middle + half, 1.0)

    @property
    def log_loss_of_guess(self) -> float:
        """Log-loss of the shares of the classes, whatever the row."""
        share = self.rows / self.rows.sum()
        return abs(float(np.sum(xlogy(share, share))))

    @property
    def constant(self) -> str | None:
        """The class that every row is predicted to be of, if it is one."""
        found = np.flatnonzero(self.confusion.sum(axis=0))
        return str(self.classes[found[0]]) if len(found) == 1 else None

    # --- verdicts ---------------------------------------------------------------------

    @property
    def unbalanced(self) -> bool:
        """Whether accuracy says little, since one class is so frequent."""
        return self.guess >= UNBALANCED

    @property
    def balanced(self) -> bool:
        """Whether balanced accuracy is the measure that matters."""
        return self.unbalanced or self.alike

    @property
    def gains(self) -> tuple[float, float]:
        """z_accuracy and z_balanced, gains over guessing in standard deviations."""
        hits, rows = np.diag(self.confusion), self.rows
        largest, known = self._guess, rows > 0
        here, there = hits.sum() - hits[largest], rows[largest] - hits[largest]
        z_accuracy = (here - there) / max(np.sqrt(here + there), 1e-300)
        share = self.confusion.sum(axis=0)[known] / rows.sum()
        k = int(known.sum())
        deviation = np.sqrt(np.sum(share * (1.0 - share) / rows[known])) / k
        excess = self.balanced_accuracy - 1.0 / k
        return float(z_accuracy), float(excess / deviation) if deviation else 0.0

    @property
    def no_better_than_guessing(self) -> bool:
        """Whether these rows do not show that predictions are better than guessing."""
        gain = self.gain_over_constant
        if gain is not None and not gain > CONSTANT_ERRORS:
            return True
        return not max(self.gains) > CONSTANT_ERRORS

    @property
    def too_few_to_tell(self) -> bool:
        """Whether so few rows cannot show it, even if all predictions are right."""
        few = round(float(self.rows.sum())) < ENOUGH_ROWS
        return few and self.no_better_than_guessing

    @property
    def ranks(self) -> bool:
        """Whether decision values tell the classes apart, whatever is predicted."""
        gain = self.gain_over_constant
        return gain is not None and gain > CONSTANT_ERRORS

    # --- words ------------------------------------------------------------------------

    @property
    def measure(self) -> Measure:
        """The measure that matters: accuracy, or balanced accuracy."""
        if self.balanced:
            guess = 1.0 / int(np.sum(self.rows > 0))
            value, interval = self.balanced_accuracy, self.balanced_interval()
            return Measure("balanced accuracy", value, *interval, guess)
        value, interval = self.accuracy, self.accuracy_interval()
        return Measure("accuracy", value, *interval, self.guess)

    @property
    def largest_class(self) -> str:
        """The largest class of the training rows."""
        return str(self.classes[self._guess])

    def figures_on(self, where: str = IN_FOLDS) -> str:
        """The measure that matters on these rows, and what guessing would give."""
        n, one = f"{round(float(self.rows.sum())):,}", self.measure
        if self.constant is not None:
            return (
                f"class {self.constant!r} is predicted for all {n} {where}; "
                f"{self.accuracy:.1%} of them belong to it"
            )
        return (
            f"{one.name} {share_in_words(one.value, one.low, one.high)} on {n} "
            f"{where}; guessing (always {self.largest_class!r}) gives {one.guess:.1%}"
        )

    @property
    def doubt(self) -> str:
        """What is said of predictions that are not shown to be better than guessing."""
        return TOO_FEW if self.too_few_to_tell else NO_BETTER

    @property
    def headline(self) -> str:
        """The verdict, and the measure that matters."""
        said = self.figures_on()
        if self.no_better_than_guessing:
            return f"{self.doubt}: {said}."
        return f"{said[0].upper()}{said[1:]}."

    @property
    def on_balance(self) -> list[str]:
        """Why balanced accuracy is the measure, if it is."""
        if not self.balanced:
            return []
        if not self.unbalanced:
            return [
                "Balanced accuracy is the mean of the classes' recalls; the threshold "
                f"or the class weights aim at it. Accuracy is {self.accuracy:.1%}."
            ]
        return [
            f"{self.guess:.1%} of the rows are of class {self.largest_class!r}, so "
            f"accuracy ({self.accuracy:.1%}) says little; balanced accuracy is the "
            "mean of the classes' recalls."
        ]

    @property
    def on_ranking(self) -> list[str]:
        """What to do about useless predictions of a search that has learned."""
        if not (self.no_better_than_guessing and self.ranks):
            return []
        auc = "" if self.auc is None else f" (AUC {self.auc:.2f})"
        text = f"In cross-validation, decision values do rank the rows{auc}"
        if len(self.classes) == 2:
            text += (
                ": another threshold would use that (threshold='balanced_accuracy', or "
                "--threshold balanced_accuracy)"
            )
        return [f"{text}."]

    @property
    def remarks(self) -> list[str]:
        """What the headline needs to be understood."""
        return self.on_balance + self.on_ranking

    def __str__(self) -> str:
        said = [self.headline, *self.remarks, *self.table(), self.summary()]
        return "\n".join(said)

    @property
    def _usual_error(self) -> str:
        """What the calibration error would be by chance, in words."""
        if self.calibration_noise is None:
            return ""
        noise = 100 * self.calibration_noise
        return f" (right probabilities would be off by about {noise:.1f}, by chance)"

    def table(self, rows: str = "rows") -> list[str]:
        """Rows, recall and precision of every class; `rows` heads their number."""
        names = [str(one) for one in self.classes]
        width, wide = max(5, *(min(len(name), 40) for name in names)), max(5, len(rows))
        head = f"  {'class':<{width}}  {rows:>{wide}}  recall  precision"
        lines = [
            f"  {cut(name, width):<{width}}  {n:{wide}.0f}  {_percent(recall):>6}  "
            f"{_percent(precision):>9}"
            for name, n, recall, precision in self.by_class()
        ]
        return [head, *lines]

    def by_class(self) -> list[tuple[str, float, float, float]]:
        """Name, rows, recall and precision of every class."""
        names = [str(one) for one in self.classes]
        figures = self.rows.tolist(), self.recall.tolist(), self.precision.tolist()
        return list(zip(names, *figures, strict=True))

    def summary(self, where: str = "the same rows") -> str:
        """What the headline leaves out of the figures of these rows, in one line."""
        # A remark has said the accuracy if balanced accuracy is the measure.
        other = f"balanced accuracy {self.balanced_accuracy:.1%}"
        said = [] if self.balanced else [other]
        if self.auc is not None:
            said.append(f"AUC {self.auc:.3f}")
        if self.log_loss is not None:
            guess = self.log_loss_of_guess
            said.append(f"log-loss {self.log_loss:.3f} ({guess:.3f} if guessing)")
        sentences = [f"On {where}: {', '.join(said)}."] if said else []
        if self.calibration_error is not None:
            error = 100 * self.calibration_error
            sentences.append(
                "Of predictions with a probability of, say, 80%, about 80% should be "
                f"right; on average, this is off by {error:.1f} percentage points"
                f"{self._usual_error}."
            )
        return " ".join(sentences)


def cut(name: str, width: int) -> str:
    """Return a name, cut to at most `width` characters."""
    return name if len(name) <= width else f"{name[: width - 3]}..."


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:.1%}"


def _ratio(above: Array, below: Array) -> Array:
    nothing = np.full(len(below), np.nan)
    return np.asarray(np.divide(above, below, out=nothing, where=below > 0))


def _votes(decision: Array) -> Array:
    """(n, n_classes); the largest is predicted."""
    return np.column_stack([-decision, decision]) if decision.ndim == 1 else decision


def _auc(y: Array, votes: Array, weight: Array) -> float | None:
    """Mean over classes that some rows have and others have not."""
    found = np.unique(y)
    if len(found) < 2:
        return None
    if votes.shape[1] == 2:
        found = found[1:]
    areas = [_area(y == c, votes[:, c], weight) for c in found]
    return float(np.mean(areas))


def _area(positive: Array, values: Array, weight: Array) -> float:
    """Share of pairs in which the positive row has the higher value; ties count half.

    By weight: every row stands for as many rows.
    """
    names, place = np.unique(values, return_inverse=True)
    of_positive, of_negative = (
        np.bincount(place, weight * own, minlength=len(names))
        for own in (positive, ~positive)
    )
    below = np.cumsum(of_negative) - 0.5 * of_negative
    return float(of_positive @ below / (of_positive.sum() * of_negative.sum()))


def _calibration_error(stated: Array, right: Array) -> tuple[float, float]:
    """Mean over bins of |mean probability - share that is right|, by their rows.

    And what it is by chance: |share - p| is sqrt(2 p (1 - p) / (pi n)) on average, for
    n rows that are right with probability p.
    """
    n_bins = int(np.clip(len(stated) // LEAST_ROWS, 1, MOST_BINS))
    bins = np.array_split(np.argsort(stated, kind="stable"), n_bins)
    sizes = np.array([len(b) for b in bins])
    p = np.array([stated[b].mean() for b in bins])
    found = np.array([right[b].mean() for b in bins])
    chance = np.sqrt(2.0 * p * (1.0 - p) / (np.pi * sizes))
    error, noise = (sizes @ one / len(stated) for one in (np.abs(p - found), chance))
    return float(error), float(noise)


def held_out_quality(
    multi_class: TaskKind,
    data: Data,
    parts: Sequence[HeldOut | None],
    pair_scale: float | None,
    log_proba: Callable[[Array], Array] | None,
    certificates: Sequence[Certificate],
) -> Quality | None:
    """Return the quality on the rows that the splits of a search hold out.

    None without held-out rows, or if no row has a decision value in all class tasks.

    Parameters
    ----------
    log_proba : from decision values to log-probabilities, if they are calibrated
    certificates : of all sets of hyperparameters
    """
    known = all_or_none(parts)
    if not known:
        return None
    kind = len(data.classes), multi_class, pair_scale
    values = [part.values for part in known]
    found = [
        (rows, decisions(scores, *kind))
        for rows, scores in SplitScores(data, known).of(values)
    ]
    if not found:
        return None
    rows = np.concatenate([own for own, _ in found])
    decision = np.concatenate([own for _, own in found])
    gains = [one.gain_over_constant for one in certificates]
    return Quality.of(
        data.y[rows],
        decision,
        None if log_proba is None else log_proba(decision),
        data.classes,
        weight=1.0 / np.bincount(rows)[rows],
        gain_over_constant=max((g for g in gains if g is not None), default=None),
    )
