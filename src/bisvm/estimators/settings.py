"""Settings that all estimators have, and how scores of class tasks become decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import _ovr_decision_function

from bisvm.optimizers import Optimizer, Scan, get_optimizer


def check_common(estimator: Any, choices: Mapping[str, Sequence[Any]]) -> None:
    """Refuse a choice that is not known, a limit that is none, a callback likewise."""
    for name, known in choices.items():
        if getattr(estimator, name) not in known:
            raise ValueError(
                f"{name}={getattr(estimator, name)!r} is not known; expected one of "
                + ", ".join(repr(choice) for choice in known)
                + "."
            )
    for name in ("tol", "time_limit"):
        given = getattr(estimator, name)
        if name == "time_limit" and given is None:
            continue
        if not isinstance(given, Real) or not float(given) > 0:
            raise ValueError(f"{name} must be positive, got {given!r}.")
    if estimator.callback is not None and not callable(estimator.callback):
        raise ValueError(f"callback must be callable, got {estimator.callback!r}.")


def own_optimizer(estimator: Any, *, kinked_line: bool = False) -> Optimizer:
    """A name stands for the optimizer at the estimator's tol and max_iter.

    "auto" is BFGS; but along one hyperparameter of the exact hinge H has flat stretches
    and kinks, where a descent would stay, and it is a scan.
    """
    optimizer = get_optimizer(estimator.optimizer)
    if isinstance(estimator.optimizer, str):
        if kinked_line and estimator.optimizer == "auto":
            optimizer = Scan()
        optimizer = optimizer.within(estimator.tol, estimator.max_iter)
    return optimizer.validate()


def decisions(scores: np.ndarray, n_classes: int, multi_class: str) -> np.ndarray:
    """(n,) for two classes, (n, n_classes) for more, from the scores of class tasks."""
    if n_classes == 2:
        return scores[:, 0]
    if multi_class == "ovo":
        return _ovr_decision_function(scores < 0, -scores, n_classes)
    return scores


def chosen(decision: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class of every decision."""
    if decision.ndim == 1:
        return classes[(decision > 0).astype(int)]
    return classes[decision.argmax(axis=1)]
