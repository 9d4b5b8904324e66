"""From the scores of class tasks to decisions, and from decisions to classes."""

from __future__ import annotations

import numpy as np
from sklearn.utils.multiclass import _ovr_decision_function

from bisvm.core.types import Array
from bisvm.search.settings import MultiClass


def decisions(scores: Array, n_classes: int, multi_class: MultiClass) -> Array:
    """(n,) for two classes, (n, n_classes) for more, from the scores of class tasks."""
    if n_classes == 2:
        return scores[:, 0]
    if multi_class == "ovo":
        votes: Array = _ovr_decision_function(scores < 0, -scores, n_classes)
        return votes
    return scores


def chosen(decision: Array, classes: Array) -> Array:
    """The class of every decision."""
    if decision.ndim == 1:
        decision = np.column_stack([-decision, decision])
    return np.asarray(classes[decision.argmax(axis=1)])
