"""Thresholds of two-class machines, for a goal that held-out rows are judged by."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real

import numpy as np

from bisvm.core.types import Array
from bisvm.estimators.arguments import Goal
from bisvm.search.settings import Data, Settings

GOALS = ("accuracy", "balanced_accuracy", "f1")
# Scores that differ by less are equal: rounding errors of sums of weights.
EQUAL = 1e-12


def best_threshold(
    values: Array, positive: Array, weight: Array, goal: Goal, classes: Array
) -> float:
    """Return the threshold with the best score; zero if that is among the best.

    All thresholds between two neighbouring values are equal: their middle is
    returned. Below and above all values it is as far off as these are apart.

    Parameters
    ----------
    values : (n,), decision values of held-out rows
    positive : (n,), whether a row is of the second class
    weight : (n,), sample weights
    goal : what is best, as the argument `threshold` says it
    classes : both labels
    """
    values, first = np.unique(values, return_inverse=True)
    n = len(values)
    # Weight of both classes above each of the n + 1 gaps, from the lowest up.
    hits, alarms = (
        np.append(np.cumsum(np.bincount(first, w, n)[::-1])[::-1], 0.0)
        for w in (weight * positive, weight * ~positive)
    )
    scores = _goal_scores(hits, alarms, goal, classes)
    spread = max(values[-1] - values[0], abs(values[0]), np.finfo(float).tiny)
    edges = np.concatenate([[values[0] - spread], values, [values[-1] + spread]])
    best = np.flatnonzero(scores >= scores.max() - EQUAL)
    # A value is above a threshold if it is larger: zero may be a value itself.
    if np.any((edges[best] <= 0.0) & (edges[best + 1] > 0.0)):
        return 0.0
    middle = 0.5 * (edges[best] + edges[best + 1])
    return float(middle[np.abs(middle).argmin()])


def _goal_scores(hits: Array, alarms: Array, goal: Goal, classes: Array) -> Array:
    """From true and false positives at every threshold to scores, higher is better."""
    P, N = hits[0], alarms[0]
    scores: Array
    if isinstance(goal, Mapping):
        cost = [float(goal.get(one, 1.0)) for one in classes.tolist()]
        total = cost[1] * P + cost[0] * N
        scores = -(cost[1] * (P - hits) + cost[0] * alarms) / total
    elif goal == "accuracy":
        scores = (hits + N - alarms) / (P + N)
    elif goal == "balanced_accuracy":
        scores = 0.5 * (hits / P + (N - alarms) / N)
    elif goal == "f1" or goal[1] == classes[1]:
        scores = 2.0 * hits / (P + hits + alarms)
    else:
        right = N - alarms
        scores = 2.0 * right / (N + right + P - hits)
    return scores


def check_goal(goal: object, classes: Array) -> None:
    """Refuse a goal that is not known, or that has no single threshold."""
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


def check_threshold(settings: Settings, data: Data) -> None:
    """Refuse the argument `threshold` before any work is done."""
    goal = settings.threshold
    check_goal(goal, data.classes)
    if settings.criterion.on_training:
        raise ValueError(
            f"threshold={goal!r} is chosen by held-out points, and "
            f"criterion={settings.arguments['criterion']!r} holds none out."
        )
    held_out = np.concatenate([rows for _, rows in data.splits])
    if len(np.unique(data.y[held_out])) < 2:
        raise ValueError(
            f"threshold={goal!r} is chosen by held-out points of both classes, and "
            "those of one class only are held out. Use splits that hold out both, "
            "collect more rows of the rare class, or use threshold=None."
        )
