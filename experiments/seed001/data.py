"""The public data of seed 001, section 4, and their folds.

Features are scaled to [-1, 1], and every class is in each of five folds in its share.
The paper says no more. Two things it leaves open, each in two variants:

- PUBLISHED: no intercept, and a square of connect-4 is two columns, "has an o" and
  "has an x", 0 or 1. So the program at github.com/Antongz/SVM-SGD-DCD has it, and so
  the published accuracies come out.
- INTERCEPT: a constant column, whose weight is penalised like all others, and a square
  of connect-4 is one column, o = -1, blank = 0, x = 1; the paper counts 42 features.

Cancer has 683 rows without a missing value, of 699. Connect-4 is win against loss: the
61,108 rows that are no draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedKFold

from bisvm import datasets
from bisvm.published import LinearFolds

SETS = {
    "cancer": "breast_cancer_wisconsin_original",
    "pima": "pima_diabetes",
    "svmguide1": "svmguide1",
    "connect-4": "connect4",
    "magic04": "magic04",
}
PUBLISHED, INTERCEPT = "as published", "with an intercept"
VARIANTS = (PUBLISHED, INTERCEPT)
FOLDS = 5

# Codes of the archive.
O, X_MARK = 1, 2
DRAW = 0


@dataclass(frozen=True)
class Sample:
    """Scaled rows, the constant column among them if there is one, and labels ±1."""

    X: np.ndarray
    y: np.ndarray
    intercept: bool


def load(name: str, variant: str = PUBLISHED) -> Sample:
    """One of SETS, in one of VARIANTS."""
    X, y = datasets.load(SETS[name], return_X_y=True)
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    keep = ~np.isnan(X).any(axis=1)
    if name == "connect-4":
        keep &= y != DRAW
    X, y = X[keep], y[keep]
    X = board(X, variant) if name == "connect-4" else scaled(X)
    return sample_of(X, np.where(y == y.max(), 1.0, -1.0), variant)


def sample_of(X: np.ndarray, y: np.ndarray, variant: str) -> Sample:
    intercept = variant == INTERCEPT
    if intercept:
        X = np.column_stack([X, np.ones(len(X))])
    return Sample(np.ascontiguousarray(X), y, intercept)


def scaled(X: np.ndarray) -> np.ndarray:
    """Every column stretched to [-1, 1]."""
    low, high = X.min(axis=0), X.max(axis=0)
    return 2.0 * (X - low) / np.where(high > low, high - low, 1.0) - 1.0


def board(squares: np.ndarray, variant: str) -> np.ndarray:
    """Squares of connect-4 as columns between -1 and 1."""
    o, x = squares == O, squares == X_MARK
    if variant == PUBLISHED:
        return np.hstack([o, x]).astype(float)
    return x.astype(float) - o


def folds_of(sample: Sample, seed: int) -> LinearFolds:
    """Five stratified folds in a random order; H is the mean over them of their means.

    Column k trains on all rows but those of fold k, each with weight 1.
    """
    train = np.ones((len(sample.y), FOLDS))
    validation = np.zeros_like(train)
    cv = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    for k, (_, out) in enumerate(cv.split(sample.X, sample.y)):
        train[out, k] = 0.0
        validation[out, k] = 1.0 / (FOLDS * len(out))
    labels = np.repeat(sample.y[:, None], FOLDS, axis=1)
    return LinearFolds(sample.X, labels, train, validation, sample.intercept)
