"""Labels of groups: what they must be, and when they say little."""

from __future__ import annotations

import numpy as np

from bisvm.core.types import Array, Matrix, UserVector
from bisvm.core.warning import warn_user
from bisvm.data.columns import SampleGroups
from bisvm.data.matrices import RowBlocks

# Names of groups that a message lists.
_FEW_NAMES = 5


def group_labels(given: UserVector, X: Matrix | RowBlocks, name: str) -> Array:
    """One label per sample, all of one type, none missing."""
    labels = np.asarray(given)
    if labels.ndim != 1:
        raise ValueError(
            f"{name} has shape {labels.shape}, expected one label per sample."
        )
    if len(labels) != X.shape[0]:
        raise ValueError(f"{name} has {len(labels)} labels for {X.shape[0]} samples.")
    refuse_missing(labels, name, "give them their own group, or drop them")
    try:
        np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(
            f"{name} has labels of several types, {', '.join(kinds)}, which cannot be "
            "sorted: make them all text."
        ) from None
    return labels


def refuse_missing(labels: Array, name: str, advice: str) -> None:
    missing = (
        np.array([_is_missing(label) for label in labels], dtype=bool)
        if labels.dtype == object
        else np.asarray(labels != labels)
    )
    if missing.any():
        raise ValueError(
            f"{name} has no label for {missing.sum()} samples, such as sample "
            f"{missing.argmax()}: {advice}."
        )


def _is_missing(label: object) -> bool:
    """None, NaN, and pandas' NA, which does not say whether it equals itself."""
    try:
        return label is None or not bool(label == label)
    except TypeError:
        return True


def warn_of_small_groups(groups: SampleGroups) -> None:
    """Warn of groups whose learned C says little about how far to trust them."""
    if len(groups) == 1:
        warn_user(
            f"sample_groups has one group only, {groups.names[0]!s}: its C is that of "
            "regularization='shared'."
        )
    members = np.bincount(groups.codes)
    alone = groups.names[members == 1]
    if len(alone):
        warn_user(
            f"Groups with one sample only: {first_names(alone)}. Their C rests on it "
            "alone, and mostly on the prior; join small groups if they are alike."
        )


def warn_of_one_class(groups: SampleGroups, y: Array) -> None:
    """Warn of groups whose C also weighs one class against the others."""
    members = np.bincount(groups.codes)
    present = np.zeros((len(groups), y.max() + 1), dtype=bool)
    present[groups.codes, y] = True
    one_class = groups.names[(present.sum(axis=1) == 1) & (members > 1)]
    if len(one_class):
        warn_user(
            f"Groups with one class only: {first_names(one_class)}. Their C also "
            "weighs that class against the others, and says less about the group."
        )


def first_names(names: Array) -> str:
    more = len(names) - _FEW_NAMES
    listed = ", ".join(str(name) for name in names[:_FEW_NAMES])
    return f"{listed} and {more} more" if more > 0 else listed
