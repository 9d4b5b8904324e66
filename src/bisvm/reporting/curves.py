"""What thresholds between two classes find and miss: ROC and precision-recall."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import average_precision_score, roc_auc_score

from bisvm.core.types import Array, UserData, UserVector

# Thresholds that can be chosen on the page.
MOST_POINTS = 80


class Thresholds(NamedTuple):
    """Counts above thresholds of the class of interest, from high to low.

    positive, negative : names of both classes
    value : threshold of the probability, or of the decision value
    is_probability : which of the two it is
    hits, alarms : rows of the class and of the other that are above it
    used : place of the threshold that the model uses
    """

    positive: str
    negative: str
    value: list[float]
    is_probability: bool
    hits: list[int]
    alarms: list[int]
    n_positive: int
    n_negative: int
    used: int
    auc: float
    average_precision: float

    @property
    def roc(self) -> list[tuple[float, float]]:
        """False positive rate and recall."""
        return [
            (a / self.n_negative, h / self.n_positive)
            for h, a in zip(self.hits, self.alarms, strict=True)
        ]

    @property
    def precision_recall(self) -> list[tuple[float, float]]:
        return [
            (h / self.n_positive, h / (h + a) if h + a else 1.0)
            for h, a in zip(self.hits, self.alarms, strict=True)
        ]

    @property
    def points(self) -> list[list[float]]:
        """Threshold, hits and alarms, for the page's script."""
        rows = zip(self.value, self.hits, self.alarms, strict=True)
        return [[round(v, 4), h, a] for v, h, a in rows]


def thresholds_of(
    model: BaseEstimator, X: UserData, y: UserVector, positive: str | None = None
) -> Thresholds | None:
    """Count at every threshold; None unless there are rows of exactly two classes.

    positive : the class of interest; by default the rarer one
    """
    classes = model.classes_
    y = np.asarray(y)
    known = np.isin(y, classes)
    if len(classes) != 2 or len(np.unique(y[known])) < 2:
        return None
    place = _place(classes, y[known], positive)
    is_probability = hasattr(model, "predict_proba")
    sign = 1.0 if place == 1 else -1.0
    decision = sign * model.decision_function(X)[known]
    values = model.predict_proba(X)[known, place] if is_probability else decision
    is_class = y[known] == classes[place]
    # `predict` decides by the sign of the decision value.
    used = 0.0
    if is_probability:
        used = float(np.exp(model._log_proba_of(np.zeros(1))[0, place]))
    levels = _levels(values, used)
    hits = [int(np.sum(is_class & (values >= level))) for level in levels]
    alarms = [int(np.sum(~is_class & (values >= level))) for level in levels]
    return Thresholds(
        str(classes[place]),
        str(classes[1 - place]),
        levels.tolist(),
        is_probability,
        hits,
        alarms,
        int(is_class.sum()),
        int((~is_class).sum()),
        int(np.flatnonzero(levels == used)[0]),
        float(roc_auc_score(is_class, decision)),
        float(average_precision_score(is_class, decision)),
    )


def _place(classes: Array, y: Array, positive: str | None) -> int:
    names = [str(one) for one in classes]
    if positive in names:
        return names.index(str(positive))
    return int(np.sum(y == classes[1]) <= np.sum(y == classes[0]))


def _levels(values: Array, used: float) -> Array:
    """Thresholds from above all values to the lowest, and the one in use."""
    every = np.unique(values)
    if len(every) > MOST_POINTS:
        every = every[np.linspace(0, len(every) - 1, MOST_POINTS).astype(int)]
    top = np.nextafter(every[-1], np.inf)
    return np.union1d(every, [top, used])[::-1]
