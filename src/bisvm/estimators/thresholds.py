"""Where a decision value is enough: the threshold that is best on held-out points.

Tuning leaves the decision value of every held-out point behind, by a machine that was
not trained on it. The best threshold for a goal is read off these, without a fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bisvm.search.data import Data
from bisvm.search.expectation import HeldOut
from bisvm.search.settings import Settings

GOALS = ("accuracy", "balanced_accuracy", "f1")
# Scores that differ by less are equal.
EQUAL = 1e-12


@dataclass(frozen=True)
class HeldOutDecisions:
    """Decision values of held-out points of two classes.

    positive : whether they are of the second class
    weight : their sample weights
    """

    values: np.ndarray
    positive: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, data: Data, part: HeldOut) -> HeldOutDecisions:
        rows = np.nonzero(part.where)[0]
        return cls(part.values, data.y[rows] == 1, data.sample_weight[rows])

    def best_threshold(self, goal: Any, classes: np.ndarray) -> float:
        """The threshold with the best score; zero if that is among the best.

        Between two neighbouring values all thresholds are the same: the middle is
        taken. Below and above all values it is as far off as they are apart.
        """
        values, first = np.unique(self.values, return_inverse=True)
        n = len(values)
        # Weight of both classes above each of the n + 1 gaps, from the lowest up.
        hits, alarms = (
            np.append(np.cumsum(np.bincount(first, w, n)[::-1])[::-1], 0.0)
            for w in (self.weight * self.positive, self.weight * ~self.positive)
        )
        scores = _scores(hits, alarms, goal, classes)
        spread = max(values[-1] - values[0], abs(values[0]), np.finfo(float).tiny)
        edges = np.concatenate([[values[0] - spread], values, [values[-1] + spread]])
        best = np.flatnonzero(scores >= scores.max() - EQUAL)
        # A value is above a threshold if it is larger: zero may be one itself.
        if np.any((edges[best] <= 0.0) & (edges[best + 1] > 0.0)):
            return 0.0
        middle = 0.5 * (edges[best] + edges[best + 1])
        return float(middle[np.abs(middle).argmin()])


def _scores(
    hits: np.ndarray, alarms: np.ndarray, goal: Any, classes: np.ndarray
) -> np.ndarray:
    """From true and false positives at every threshold to scores, higher is better."""
    P, N = hits[0], alarms[0]
    if isinstance(goal, Mapping):
        cost = [float(goal.get(one, 1.0)) for one in classes.tolist()]
        return -(cost[1] * (P - hits) + cost[0] * alarms) / (cost[1] * P + cost[0] * N)
    if goal == "accuracy":
        return (hits + N - alarms) / (P + N)
    if goal == "balanced_accuracy":
        return 0.5 * (hits / P + (N - alarms) / N)
    if goal == "f1" or goal[1] == classes[1]:
        return 2.0 * hits / (P + hits + alarms)
    right = N - alarms
    return 2.0 * right / (N + right + P - hits)


def check_goal(goal: Any, classes: np.ndarray) -> None:
    """Refuse a goal that is not known, or that has no one threshold."""
    if len(classes) > 2:
        raise ValueError(
            f"A threshold is between two classes; y has {len(classes)}. To weigh the "
            "errors of several classes use criterion=Weighted(..., class_weight=...)."
        )
    if isinstance(goal, Mapping):
        unknown = set(goal) - set(classes.tolist())
        if unknown:
            raise ValueError(
                f"The costs of a threshold name classes that y does not have: "
                f"{sorted(unknown, key=str)}; y has {classes.tolist()}."
            )
        if goal and all(
            isinstance(c, Real) and 0 < float(c) < np.inf for c in goal.values()
        ):
            return
    elif isinstance(goal, str) and goal in GOALS:
        return
    elif isinstance(goal, (tuple, list)) and len(goal) == 2 and goal[0] == "f1":
        if goal[1] in classes.tolist():
            return
        raise ValueError(
            f"threshold={goal!r} names a class that y does not have; y has "
            f"{classes.tolist()}."
        )
    raise ValueError(
        f"threshold={goal!r} is not understood; expected "
        + ", ".join(map(repr, GOALS))
        + ", ('f1', class), or what an error costs as a dict from class to a positive "
        "number."
    )


class ThresholdMixin:
    """Thresholds of a fitted classifier, from the held-out points of its tuning."""

    threshold: Any
    criterion: Any
    classes_: np.ndarray
    intercept_: np.ndarray
    # None for a model that is fitted for a callback, too.
    _decisions: HeldOutDecisions | None = None

    def best_threshold(self, goal: Any) -> float:
        """The decision value above which to say the second class.

        It is read off the held-out points of the tuning, and costs nothing. For use
        with scikit-learn's `FixedThresholdClassifier`; the setting `threshold=goal`
        makes it part of the model.

        Parameters
        ----------
        goal : {"accuracy", "balanced_accuracy", "f1"}, ("f1", class) or dict
            What is to be large; F1 is that of the second class, `classes_[1]`, or of
            the one named. A dict from class to number is what an error on one of its
            members costs, 1 if it is not named.

        Returns
        -------
        threshold : float
            0 is what `predict` uses. Of an ensemble the mean over its members.
        """
        check_is_fitted(self)
        check_goal(goal, self.classes_)
        members = getattr(self, "estimators_", None)
        if members is not None:
            # Each has moved its own zero, and the function is their mean.
            return float(np.mean([one.best_threshold(goal) for one in members]))
        found = self._decisions
        if found is None or len(np.unique(found.positive)) < 2:
            raise ValueError(
                "No points of both classes were held out in tuning: there is nothing "
                "to choose a threshold by. Use a criterion on held-out points, and "
                "splits that hold out both classes."
            )
        return found.best_threshold(goal, self.classes_)

    def _set_threshold(
        self, data: Data, known: list[HeldOut | None]
    ) -> list[HeldOut | None]:
        """Move zero to where the setting wants it; what is known of points moves too.

        The machine's intercept takes the threshold up: whoever uses it sees one zero.
        """
        self.threshold_ = 0.0
        part = known[0] if len(self.classes_) == 2 else None
        self._decisions = None if part is None else HeldOutDecisions.of(data, part)
        if part is None or self.threshold is None:
            return known
        self.threshold_ = self.best_threshold(self.threshold)
        moved = part.moved(self.threshold_)
        self.intercept_ = self.intercept_ - self.threshold_
        self._decisions = HeldOutDecisions.of(data, moved)
        return [moved]


def check_threshold(settings: Settings, classes: np.ndarray) -> None:
    """Refuse a setting before any work is done."""
    goal = settings.threshold
    if goal is None:
        return
    check_goal(goal, classes)
    if settings.criterion.on_training:
        raise ValueError(
            f"threshold={goal!r} is chosen by held-out points, and "
            f"criterion={settings.arguments['criterion']!r} holds none out."
        )
