"""Accuracy with its interval, validation loss and probabilities on test rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest
from sklearn.base import BaseEstimator

from bisvm.core.types import Array, UserData, UserVector
from bisvm.criteria import Points, get_criterion
from bisvm.data.targets import class_tasks
from bisvm.estimators.class_inputs import class_factors
from bisvm.estimators.pipelines import last_step
from bisvm.estimators.quality import Quality

# Bins of probabilities, and rows that each has at least.
MOST_BINS, LEAST_ROWS = 8, 40


class Share(NamedTuple):
    """A share of n rows, with Wilson's 95% interval."""

    value: float
    low: float
    high: float
    n: int


def share_of(right: Array) -> Share:
    """(p + z^2/2n +- z sqrt(p (1 - p)/n + z^2/4n^2)) / (1 + z^2/n), z = 1.96."""
    found = binomtest(int(np.sum(right)), len(right))
    interval = found.proportion_ci(0.95, method="wilson")
    return Share(float(np.mean(right)), interval.low, interval.high, len(right))


def measured(right: Array, y: Array, balanced: bool) -> Share:
    """Accuracy of predictions that are right or wrong, or balanced accuracy."""
    if not balanced:
        return share_of(right)
    classes, codes = np.unique(y, return_inverse=True)
    hits = np.bincount(codes, right, len(classes))
    wrong = np.bincount(codes, ~right, len(classes))
    # Which other class was predicted does not matter.
    confusion = np.diag(hits) + np.roll(np.diag(wrong), 1, axis=1)
    found = Quality(classes, confusion)
    return Share(found.balanced_accuracy, *found.balanced_interval(), len(right))


def quality_of(model: BaseEstimator, X: UserData, y: UserVector) -> Quality | None:
    """The quality of a model on rows with known labels; None if it knows none of them.

    model : a fitted classifier, or a pipeline that ends with one
    """
    classes = model.classes_
    known = np.isin(y, classes)
    if not known.any():
        return None
    codes = np.searchsorted(classes, np.asarray(y)[known])
    logs = model.predict_log_proba(X) if hasattr(model, "predict_log_proba") else None
    decision = model.decision_function(X)[known]
    training = getattr(last_step(model), "quality_", None)
    return Quality.of(
        codes,
        decision,
        None if logs is None else logs[known],
        classes,
        guessed=None if training is None else int(training.rows.argmax()),
        alike=training is not None and training.alike,
    )


class Losses(NamedTuple):
    """The validation loss in cross-validation and on test rows.

    error : standard error of the second
    """

    folds: float
    held_out: float
    error: float

    @property
    def excess(self) -> float:
        """The difference in standard errors; positive if test rows are worse."""
        return (self.held_out - self.folds) / max(self.error, 1e-300)


def losses_of(machine: BaseEstimator, X: UserData, y: UserVector) -> Losses | None:
    """Evaluate the criterion of the upper level on other rows.

    None if it is undefined there: criteria on training rows, one-versus-one tasks.
    """
    criterion = get_criterion(machine.criterion)
    classes = machine.classes_
    known = np.isin(y, classes)
    pairs = len(classes) > 2 and machine.multi_class_ != "ovr"
    if criterion.on_training or pairs or not known.any():
        return None
    if not np.isfinite(machine.criterion_value_):
        return None
    # The search has minimised the loss of values without a threshold.
    scores = machine.decision_function(X)[known] + machine.threshold_
    codes = np.searchsorted(classes, np.asarray(y)[known])
    labels = class_tasks(codes, len(classes), "ovr")
    margins = labels * scores.reshape(labels.shape)
    n, n_tasks = margins.shape
    ones = np.ones(n)
    weight = class_factors(criterion.class_weight, classes, codes, ones)[codes]
    weight /= weight.sum()
    task = np.tile(np.arange(n_tasks), n)
    weights = np.repeat(weight / n_tasks, n_tasks)
    points = Points(labels.ravel(), task, task, np.repeat(np.arange(n), n_tasks))
    try:
        criterion.check(points)
    except ValueError:
        # A ranking criterion needs rows of both classes.
        return None
    done = criterion.evaluate(margins.ravel(), weights, points)
    by_row = np.asarray(done.losses).reshape(margins.shape).mean(axis=1)
    deviation = weight * (by_row - weight @ by_row)
    error = math.sqrt(float(np.sum(deviation**2)) * n / max(n - 1, 1))
    return Losses(float(machine.criterion_value_), float(done.value), error)


class Reliability(NamedTuple):
    """How often predictions are right, by the probabilities that they had.

    stated, right : in each bin of the probability, its mean and the share that is right
    rows : in each bin
    """

    stated: Array
    right: Array
    rows: Array


def reliability_of(
    machine: BaseEstimator, X: UserData, y: UserVector
) -> Reliability | None:
    """Compare probabilities with what happened; None if there are none."""
    known = np.isin(y, machine.classes_)
    if not known.any() or not hasattr(machine, "predict_proba"):
        return None
    p = machine.predict_proba(X)[known]
    codes = np.searchsorted(machine.classes_, np.asarray(y)[known])
    highest, hit = p.max(axis=1), p.argmax(axis=1) == codes
    # Bins of equal numbers of rows.
    n_bins = int(np.clip(len(codes) // LEAST_ROWS, 1, MOST_BINS))
    bins = np.array_split(np.argsort(highest, kind="stable"), n_bins)
    return Reliability(
        np.array([highest[rows].mean() for rows in bins]),
        np.array([hit[rows].mean() for rows in bins]),
        np.array([len(rows) for rows in bins]),
    )
