"""Splits: what `cv` asks for, drawn or checked, as pairs of row numbers.

Folds are drawn here (`_folds`). They keep the rows of one of the `groups` of `fit`
together, and spread those of one of its `sample_groups` over all folds (`spread`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_random_state

from bisvm.core.types import Array, ArrayLike, UserData, UserVector
from bisvm.core.warning import warn_user

Split: TypeAlias = tuple[Array, Array]


class Splitter(Protocol):
    """A splitter of scikit-learn, such as `StratifiedKFold(5)`."""

    def split(
        self, X: UserData, y: UserVector = None, groups: UserVector = None
    ) -> Iterable[Any]: ...


# What `cv` may be: a number of folds, leave-one-out, a splitter, or pairs of indices.
Folds: TypeAlias = int | Literal["loo"] | Splitter | Iterable[Split]

# Row numbers or classes that a message lists.
_FEW = 5


def freeze_splits(
    cv: Folds | object,
    X: UserData,
    y: Array,
    *,
    groups: UserVector = None,
    random_state: np.random.RandomState | None = None,
    names: Array | None = None,
    spread: Array | None = None,
    numbers: Array | None = None,
) -> list[Split]:
    """Draw or check the (train, validation) index pairs of `cv`.

    Both parts of a pair must have rows, and no row may be in both. Different pairs may
    overlap (`RepeatedKFold`, `ShuffleSplit`).

    Parameters
    ----------
    cv : int, splitter or iterable of index pairs
        An int stands for stratified, shuffled folds, which keep groups together. If no
        class has as many members, or there are fewer groups, there are fewer folds,
        with a warning. A class with fewer members is held out by some of the folds
        only. A class with a single member is never held out, with a warning.
    groups : array of shape (n,), optional
        Groups that splits keep together.
    names : array, optional
        Labels of classes 0, 1, ..., for messages.
    spread : array of shape (n,), optional
        Numbers of groups of which every fold gets its share, as of classes.
    numbers : array of shape (n,), optional
        Row numbers for messages, if the rows are some of more.

    Returns
    -------
    splits : list of (train, validation)
    """
    n = len(y)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        return _drawn_folds(int(cv), y, names, groups, spread, random_state)
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise ValueError(
            f"cv={cv!r} is not understood; expected a number of folds, a scikit-learn "
            "splitter, or a list of (train, validation) index pairs."
        )
    rule: Any = cv
    given = rule.split(X, y, groups) if hasattr(cv, "split") else rule
    own = np.arange(n) if numbers is None else numbers
    pairs = [_checked_pair(pair, k, own) for k, pair in enumerate(given)]
    if not pairs:
        source = (
            f"cv={cv!r} yields no split"
            if hasattr(cv, "split")
            else "cv is an empty list"
        )
        raise ValueError(
            f"{source}; expected one or more (train, validation) pairs of indices."
        )
    return pairs


def draw_folds(
    folds: int,
    n: int,
    groups: UserVector = None,
    spread: Array | None = None,
    random_state: np.random.RandomState | None = None,
) -> list[Split]:
    """Draw shuffled folds of n rows, whatever their targets.

    There are fewer, with a warning, if there are fewer rows or groups.

    Parameters
    ----------
    groups : array of shape (n,), optional
        Groups that folds keep together.
    spread : array of shape (n,), optional
        Numbers of groups of which every fold gets its share.
    """
    if folds < 2:
        raise ValueError(f"cv={folds}: at least two folds are needed.")
    if n < 2:
        raise ValueError(
            f"There is {n} sample only, and tuning holds some out: collect more, or "
            "use scikit-learn's SVR."
        )
    if n < folds:
        warn_user(f"There are {n} samples, fewer than cv={folds} folds; using {n}.")
    own = None if groups is None else np.asarray(groups)
    one_kind = np.zeros(n, dtype=int)
    return _folds(min(folds, n), one_kind, own, spread, random_state)


def validated_on(splits: Iterable[Split], rows: ArrayLike) -> list[Split]:
    """Restrict the validation parts of splits to some of the rows.

    Use it if only some groups of samples are like those to be predicted, or can be
    trusted.

    Parameters
    ----------
    splits : iterable of (train, validation)
    rows : boolean array of shape (n,)
        Rows that may be validated on.

    Returns
    -------
    splits : list of (train, validation)
    """
    kept = np.asarray(rows, dtype=bool)
    return [(train, held_out[kept[held_out]]) for train, held_out in splits]


def _drawn_folds(
    folds: int,
    y: Array,
    names: Array | None,
    groups: UserVector,
    spread: Array | None,
    random_state: np.random.RandomState | None,
) -> list[Split]:
    """Stratified folds; the only member of a class is in the training parts alone."""
    alone = only_members(y, names)
    rows = np.flatnonzero(~alone)
    folds = _possible_folds(folds, y[rows], names)
    groups = None if groups is None else np.asarray(groups)
    spread = None if spread is None else spread[rows]
    own = None if groups is None else groups[rows]
    with warnings.catch_warnings():
        # Members of a small class are in different folds: all training parts have some.
        warnings.filterwarnings("ignore", "The least populated class in y")
        splits = _folds(folds, y[rows], own, spread, random_state)
    return [_with_only_members(rows[held_out], alone, groups) for _, held_out in splits]


def _with_only_members(held_out: Array, alone: Array, groups: Array | None) -> Split:
    """The split that holds these rows out.

    A row that is never held out is not trained on beside held-out rows of its group.
    """
    trained = np.ones(len(alone), dtype=bool)
    trained[held_out] = False
    if groups is not None:
        trained &= ~(alone & np.isin(groups, groups[held_out]))
    return np.flatnonzero(trained), held_out


def only_members(y: Array, names: Array | None) -> Array:
    """(n,), whether a row is the only member of its class, with a warning of them."""
    classes, code, members = np.unique(y, return_inverse=True, return_counts=True)
    if members.max() == 1:
        raise ValueError(
            f"All {len(classes)} classes have one member only: no row can be held out, "
            "and nothing can be tuned. Collect more rows of every class, or use "
            "scikit-learn's SVC."
        )
    alone: Array = (members == 1)[code]
    if alone.any():
        which = _named(classes[members == 1], names)
        message = (
            f"{which} one member only, which is trained on and never held out: no row "
            "tells how well the class is recognised. Collect more rows of it, or drop "
            "it."
        )
        if np.sum(members > 1) == 1:
            left = _name(classes[members > 1][0], names)
            message += (
                f" All held-out rows are of class {left}: they hardly tell which "
                "hyperparameters are best."
            )
        warn_user(message)
    return alone


def _name(code: Any, names: Array | None) -> str:
    """The label of a class, for messages."""
    return str(code if names is None else names[code])


def _named(classes: Array, names: Array | None) -> str:
    """The beginning of a sentence on what these classes have."""
    if len(classes) == 1:
        return f"Class {_name(classes[0], names)} has"
    return f"Classes {_listed(classes if names is None else names[classes])} each have"


def _folds(
    folds: int,
    y: Array,
    groups: Array | None,
    spread: Array | None,
    random_state: np.random.RandomState | None,
) -> list[Split]:
    if groups is not None:
        folds = _folds_by_groups(folds, groups)
        return _folds_of_groups(folds, y, groups, spread, random_state)
    if spread is not None:
        return _dealt_folds(folds, (spread, y), random_state)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=random_state)
    return list(splitter.split(np.zeros(len(y)), y))


def _dealt_folds(
    folds: int,
    kinds: tuple[Array, ...],
    random_state: np.random.RandomState | None,
) -> list[Split]:
    """Sort rows by kinds, the last one first, and deal them out to the folds in turn.

    So every fold has its share of each value of the last kind, and of each combination
    of all, up to one row.
    """
    n = len(kinds[0])
    order = np.lexsort((check_random_state(random_state).permutation(n), *kinds))
    fold = np.empty(n, dtype=int)
    fold[order] = np.arange(n) % folds
    return [
        (np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(folds)
    ]


def _folds_of_groups(
    folds: int,
    y: Array,
    groups: UserVector,
    spread: Array | None,
    random_state: np.random.RandomState | None,
) -> list[Split]:
    """Folds that keep groups together, with about equal shares of `y` and `spread`."""
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=random_state)
    if spread is None:
        return list(splitter.split(np.zeros(len(y)), y, groups))
    both = y * (spread.max() + 1) + spread
    strata = both if np.bincount(both).max() >= folds else y
    return list(splitter.split(np.zeros(len(y)), strata, groups))


def _possible_folds(folds: int, y: Array, names: Array | None) -> int:
    """As many folds as rows of the largest class, with a warning of small classes."""
    if folds < 2:
        raise ValueError(f"cv={folds}: at least two folds are needed.")
    classes, members = np.unique(y, return_counts=True)
    most = int(members.max())
    if most < folds:
        warn_user(
            f"The largest class has {most} members, fewer than cv={folds} folds; using "
            f"{most} folds."
        )
        folds = most
    if members.min() < folds:
        warn_user(
            f"{_named(classes[members < folds], names)} fewer members than there are "
            f"folds ({folds}): some folds hold out none, and few rows tell how well "
            "the class is recognised. Collect more rows of it."
        )
    return folds


def _folds_by_groups(folds: int, groups: UserVector) -> int:
    """At most as many folds as there are groups."""
    count = len(np.unique(np.asarray(groups)))
    if count < 2:
        raise ValueError(
            f"groups has one group only, {np.asarray(groups)[0]!s}: its samples stay "
            "together, and none could be held out. Leave groups out, or collect others."
        )
    if count < folds:
        warn_user(
            f"There are {count} groups, fewer than cv={folds} folds; using {count} "
            "folds."
        )
    return min(folds, count)


def _checked_pair(pair: Any, k: int, numbers: Array) -> Split:
    """Split k as indices; `numbers` are those of the rows, for messages."""
    n = len(numbers)
    try:
        train, validation = pair
    except (TypeError, ValueError):
        raise ValueError(
            "cv must give (train, validation) pairs of indices; split "
            f"{k} is {_brief(pair)}."
        ) from None
    train, validation = _indices(train, n, k), _indices(validation, n, k)
    for part, name in ((train, "training"), (validation, "validation")):
        if not len(part):
            raise ValueError(
                f"Split {k} of cv has no {name} rows. Both parts of a split need some: "
                "leave the split out, or use a splitter with fewer folds."
            )
    inside = np.zeros(n, dtype=bool)
    inside[train] = True
    common = np.unique(validation[inside[validation]])
    if len(common):
        raise ValueError(
            f"Split {k} of cv trains on rows that it validates on: "
            f"{_listed(numbers[common])}. Held-out rows must be left out of training; "
            "use a splitter such as StratifiedKFold, or pairs without common rows."
        )
    return train, validation


def _brief(given: object) -> str:
    text = " ".join(repr(given).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _listed(named: Array) -> str:
    """The first few numbers or names, and how many more there are."""
    first = ", ".join(map(str, named[:_FEW].tolist()))
    more = len(named) - _FEW
    return f"{first} and {more} more" if more > 0 else first


def _indices(indices: ArrayLike, n: int, k: int) -> Array:
    given = np.asarray(indices)
    if given.ndim != 1:
        raise ValueError(
            f"Split {k} of cv must have two lists of row numbers; one of them is "
            f"{_brief(indices)}."
        )
    if given.dtype == bool:
        if len(given) != n:
            raise ValueError(f"cv has a mask of {len(given)} entries for {n} samples.")
        return np.flatnonzero(given)
    # NumPy makes an empty list an array of floats.
    if given.size and given.dtype.kind not in "iu":
        raise ValueError(
            f"Split {k} of cv must have row numbers, or a mask of {n} entries; got "
            f"{_brief(indices)}."
        )
    rows = given.astype(int)
    if rows.size and not (-n <= rows.min() and rows.max() < n):
        raise ValueError(
            f"cv has an index outside the data: expected 0 to {n - 1}, got "
            f"{rows.min()} to {rows.max()}."
        )
    return rows % n
