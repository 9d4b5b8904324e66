"""Which samples have a C of their own: groups that are passed to `fit`, or classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from bisvm.core.warning import warn_user
from bisvm.data.sample_groups import SampleGroups
from bisvm.machines.penalties import Penalty, PerGroup, Shared, get_penalty
from bisvm.search.settings import Grouping


def learns_class_weight(estimator: Any) -> bool:
    given = estimator.class_weight
    return isinstance(given, str) and given == "learn"


def own_penalty(estimator: Any) -> Penalty:
    """What C is to an estimator; classes whose weights are learned are groups."""
    penalty = get_penalty(estimator.penalty)
    if not learns_class_weight(estimator):
        return penalty
    if not isinstance(penalty, Shared):
        raise ValueError(
            "class_weight='learn' gives every class a C of its own: it does not go "
            f"with penalty={estimator.penalty!r}. Use penalty='shared'."
        )
    return PerGroup(penalty.C_bounds)


def own_grouping(estimator: Any) -> Grouping | None:
    """Whose C is learned apart: "classes", "groups" or nobody's."""
    if learns_class_weight(estimator):
        return "classes"
    return "groups" if own_penalty(estimator).by_group else None


def by_name(groups: SampleGroups, C: Any) -> dict[Any, Any]:
    """C of every group; a list over the classes where each has its own."""
    values = np.moveaxis(np.asarray(C), -1, 0).tolist()
    return dict(zip(groups.names.tolist(), values, strict=True))


def check_sample_groups(
    given: Any, X: Any, rows: np.ndarray, grouping: str | None
) -> SampleGroups | None:
    """The groups of the rows that count; refuses labels that say nothing.

    grouping : "groups" if they have a C of their own; otherwise they are only spread
        over the folds, and a warning says so
    """
    if given is None:
        if grouping == "groups":
            raise ValueError(
                "penalty='per_group' has one C per group of samples and has to know "
                "them: fit(X, y, sample_groups=...), one label a sample."
            )
        return None
    labels = _one_a_sample(given, X)
    if grouping != "groups":
        warn_user(
            "sample_groups are given, but no group has a C of its own: they only "
            "settle how samples are spread over the folds. Use penalty='per_group'."
        )
    return SampleGroups.of(labels[rows])


def check_groups(given: Any, X: Any) -> np.ndarray | None:
    """Groups that splits keep together, one label a sample, or None."""
    return None if given is None else _one_a_sample(given, X, "groups")


def _one_a_sample(given: Any, X: Any, name: str = "sample_groups") -> np.ndarray:
    labels = np.asarray(given)
    if labels.ndim != 1:
        raise ValueError(
            f"{name} has shape {labels.shape}, expected one label a sample."
        )
    if len(labels) != X.shape[0]:
        raise ValueError(f"{name} has {len(labels)} labels for {X.shape[0]} samples.")
    missing = _missing(labels)
    if missing.any():
        raise ValueError(
            f"{name} has no label for {missing.sum()} samples, such as sample "
            f"{missing.argmax()}: give them a group of their own, or drop them."
        )
    try:
        np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(
            f"{name} has labels of several types, {', '.join(kinds)}, which cannot be "
            "sorted: make them all text."
        ) from None
    return labels


def _missing(labels: np.ndarray) -> np.ndarray:
    """None, NaN, and whatever else is not equal to itself."""
    if labels.dtype != object:
        return np.asarray(labels != labels)
    return np.array([_is_missing(label) for label in labels], dtype=bool)


def _is_missing(label: Any) -> bool:
    try:
        return label is None or not bool(label == label)
    except TypeError:  # pandas' NA does not say whether it equals itself
        return True


def warn_of_small_groups(groups: SampleGroups | None, y: np.ndarray) -> None:
    """Groups whose C is learned, but says little about how far they can be trusted."""
    assert groups is not None
    if len(groups) == 1:
        warn_user(
            f"sample_groups has one group only, {groups.names[0]!s}: its C is that of "
            "penalty='shared'."
        )
    members = np.bincount(groups.codes)
    alone = groups.names[members == 1]
    if len(alone):
        warn_user(
            f"Groups with one sample only: {_some(alone)}. Their C rests on it alone, "
            "and mostly on the prior; join small groups if they are alike."
        )
    present = np.zeros((len(groups), y.max() + 1), dtype=bool)
    present[groups.codes, y] = True
    one_class = groups.names[(present.sum(axis=1) == 1) & (members > 1)]
    if len(one_class):
        warn_user(
            f"Groups with one class only: {_some(one_class)}. Their C weighs that "
            "class against the others, too, and says less about the group."
        )


def _some(names: np.ndarray, most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(str(name) for name in names[:most]) + more
