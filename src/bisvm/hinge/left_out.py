"""Exact leave-one-out decision values."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bisvm.core.threads import one_blas_thread
from bisvm.hinge.active_set import ABSENT, REST
from bisvm.hinge.exchange import exchange
from bisvm.hinge.svc import IncrementalSVC


def leave_one_out(model: IncrementalSVC) -> np.ndarray:
    """f_(-i)(x_i) of every point, from the machine trained without it.

    A point at rest, or of weight zero, changes nothing when it goes; any other is
    removed along the path, from a copy: the model stays as it is. The error is
    `mean((f > 0) != (y == model.classes_[1]))`.
    """
    check_is_fitted(model)
    order, sets = model._store.order, model._sets
    y = sets.y[order[sets.c[order] > 0]]
    counts = [int(np.sum(y == sign)) for sign in (-1.0, 1.0)]
    if min(counts) < 2:
        raise ValueError(
            "leave_one_out needs at least two points of each class; there are "
            f"{counts} of the classes {model.classes_}. Add a point of the smaller one."
        )
    with one_blas_thread():
        return np.array([_left_out(model, int(i)) for i in order])


def _left_out(model: IncrementalSVC, i: int) -> float:
    sets = model._sets
    if sets.state[i] not in (REST, ABSENT):
        sets = sets.copy()
        exchange(sets, np.array([i]), np.empty(0, dtype=int), np.empty(0))
    return float(sets.y[i] * (sets.gap[i] + sets.p[i]))
