"""From labels and cross-validation splits to columns, the training problems below."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_random_state

from bisvm.data.points import Points

Split = tuple[np.ndarray, np.ndarray]

# Row numbers that a message lists.
_FEW_ROWS = 5


@dataclass(frozen=True)
class Columns:
    """Training problems side by side, one for every split and class task.

    labels : (n, q), +1 or -1
    train : (n, q), relative weight of a point's training loss, 0 where it is held out
    validation : (n, q), weight of a point's validation loss; they sum to one, and every
        column has an equal share
    task : (q,), number of the class task of every column
    split : (q,), number of the split of every column
    """

    labels: np.ndarray
    train: np.ndarray
    validation: np.ndarray
    task: np.ndarray
    split: np.ndarray

    @property
    def points(self) -> Points:
        """Whose held-out margins there are, in the order of `array[validation > 0]`."""
        held_out = self.validation > 0
        column = np.nonzero(held_out)[1]
        return Points(self.labels[held_out], self.task[column], column)

    @property
    def outside(self) -> np.ndarray:
        """(n, q), whether a split holds a point out, whatever its part in the task."""
        outside = self.validation > 0
        for number in np.unique(self.split):
            own = self.split == number
            outside[:, own] = outside[:, own].any(axis=1, keepdims=True)
        return outside

    def of_split(self, number: int) -> Columns:
        """Those of one split alone."""
        return self.only(self.split == number)

    def only(self, own: np.ndarray) -> Columns:
        """Some of the columns, in equal shares as before; own : mask (q,)."""
        share = self.validation[:, own].sum()
        return Columns(
            self.labels[:, own],
            self.train[:, own],
            self.validation[:, own] / share,
            self.task[own],
            self.split[own],
        )


def class_tasks(y: np.ndarray, n_classes: int, multi_class: str) -> np.ndarray:
    """Binary tasks (n, n_tasks): +1, -1, or 0 for a point that has no part in the task.

    y holds class numbers 0 .. n_classes - 1. Two classes are one task; more are one
    task a class ("ovr") or one a pair ("ovo", +1 for the first of the pair).
    """
    if multi_class not in ("ovr", "ovo"):
        raise ValueError(
            f"Unknown multi_class {multi_class!r}: expected 'ovr' or 'ovo'."
        )
    if n_classes == 2:
        return np.where(y == 1, 1.0, -1.0)[:, None]
    if multi_class == "ovr":
        return np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
    pairs = combinations(range(n_classes), 2)
    tasks = [1.0 * (y == first) - 1.0 * (y == second) for first, second in pairs]
    return np.stack(tasks, axis=1)


def training_columns(tasks: np.ndarray, weight: np.ndarray) -> Columns:
    """One column a task, trained on all points: the final machine."""
    labels = np.where(tasks == 0, 1.0, tasks)
    train = np.where(tasks == 0, 0.0, weight[:, None])
    n = tasks.shape[1]
    return Columns(
        labels, train, np.zeros_like(train), np.arange(n), np.zeros(n, dtype=int)
    )


def split_columns(
    tasks: np.ndarray,
    splits: Sequence[Split],
    weight: np.ndarray,
    validation_weight: np.ndarray | None = None,
) -> Columns:
    """One column for every split and task that can be trained and validated.

    A split that holds out all of a class says nothing about that class's task: such a
    column is left out. Points have the same weight in both parts unless they are given
    another one in validation.
    """
    held_weight = weight if validation_weight is None else validation_weight
    whole = training_columns(tasks, weight)
    labels, train, validation, task, split = [], [], [], [], []
    for number, (rows, held_out) in enumerate(splits):
        inside = np.zeros(len(weight))
        inside[rows] = 1.0
        outside = np.zeros(len(weight))
        outside[held_out] = 1.0
        kept = 0
        for k in range(tasks.shape[1]):
            fit = whole.train[:, k] * inside
            check = (tasks[:, k] != 0) * held_weight * outside
            one_sided = len(np.unique(tasks[fit > 0, k])) < 2
            if one_sided or not check.sum() > 0:
                continue
            labels.append(whole.labels[:, k])
            train.append(fit)
            validation.append(check / check.sum())
            task.append(k)
            split.append(number)
            kept += 1
        if not kept:
            raise ValueError(
                f"Split {number} cannot be used: its training part has one class only, "
                "or its validation part is empty. Use a stratified splitter or fewer "
                "folds."
            )
    wanted = len(splits) * tasks.shape[1]
    if len(labels) < wanted:
        warnings.warn(
            f"Of {wanted} training problems (splits x class tasks) "
            f"{wanted - len(labels)} are left out: their training part lacks "
            "a class, or their validation part is empty. A stratified splitter avoids "
            "that.",
            UserWarning,
            stacklevel=2,
        )
    shares = np.stack(validation, axis=1) / len(validation)
    return Columns(
        np.stack(labels, axis=1),
        np.stack(train, axis=1),
        shares,
        np.array(task),
        np.array(split),
    )


def distinct_columns(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different columns among (n, q) labels, and which of them each column is.

    The folds of one task have the same labels. `np.unique` along columns would make a
    record of n fields.
    """
    seen: dict[bytes, int] = {}
    number = [seen.setdefault(column.tobytes(), len(seen)) for column in labels.T]
    _, first, which = np.unique(number, return_index=True, return_inverse=True)
    return labels[:, first], which


def row_kinds(labels: np.ndarray) -> np.ndarray:
    """(n,), the number of the combination of labels, +1 or -1, that a row has."""
    kind = np.zeros(len(labels), dtype=int)
    for column in distinct_columns(labels)[0].T:
        _, kind = np.unique(2 * kind + (column > 0), return_inverse=True)
    return kind


def freeze_splits(
    cv: Any,
    X: Any,
    y: np.ndarray,
    *,
    groups: Any = None,
    random_state: np.random.RandomState | None = None,
    names: Any = None,
    spread: np.ndarray | None = None,
    numbers: np.ndarray | None = None,
) -> list[Split]:
    """The (train, validation) index pairs meant by `cv`.

    What a splitter yields is checked as a list of pairs is: both parts have rows, and
    no row is in both. Different splits may overlap (`RepeatedKFold`, `ShuffleSplit`).

    An int stands for stratified, shuffled folds, which keep groups together if there
    are any. Where a class has fewer members than folds, or there are fewer groups, the
    folds are fewer, with a warning. `names` are the labels of classes 0, 1, ..., for
    messages, and `numbers` those of the rows, where they are some of more; `spread` are
    numbers (n,) of groups that are to be in every fold in their share, as classes are.
    """
    n = len(y)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        folds = _possible_folds(int(cv), y, names)
        if groups is None and spread is not None:
            return _dealt_folds(folds, (spread, y), random_state)
        if groups is None:
            splitter = StratifiedKFold(folds, shuffle=True, random_state=random_state)
            return list(splitter.split(np.zeros(n), y))
        folds = _folds_by_groups(folds, groups)
        return _folds_of_groups(folds, y, groups, spread, random_state)
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise ValueError(
            f"cv={cv!r} is not understood; expected a number of folds, a scikit-learn "
            "splitter, or a list of (train, validation) index pairs."
        )
    given = cv.split(X, y, groups) if hasattr(cv, "split") else cv
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


def validated_on(splits: Iterable[Split], rows: Any) -> list[Split]:
    """The same splits, validated on some of the rows only.

    Held-out points say what is to be predicted: where only some groups of samples are
    like it, or can be trusted, let only those be held out.

    Parameters
    ----------
    splits : (train, validation) index pairs
    rows : mask of the rows that may be validated on
    """
    kept = np.asarray(rows, dtype=bool)
    return [(train, held_out[kept[held_out]]) for train, held_out in splits]


def _dealt_folds(
    folds: int,
    kinds: tuple[np.ndarray, ...],
    random_state: np.random.RandomState | None,
) -> list[Split]:
    """Rows sorted by kinds, the last one first, are dealt out to the folds in turn.

    So each value of the last kind, and each combination of all, is in every fold in its
    share, up to one row.
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
    y: np.ndarray,
    groups: Any,
    spread: np.ndarray | None,
    random_state: np.random.RandomState | None,
) -> list[Split]:
    """Groups kept together; classes, and what is to be spread, near their shares."""
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=random_state)
    if spread is None:
        return list(splitter.split(np.zeros(len(y)), y, groups))
    both = y * (spread.max() + 1) + spread
    strata = both if np.bincount(both).max() >= folds else y
    with warnings.catch_warnings():
        # Few members of one class in one group are no reason to worry.
        warnings.filterwarnings("ignore", "The least populated class in y")
        return list(splitter.split(np.zeros(len(y)), strata, groups))


def _possible_folds(folds: int, y: np.ndarray, names: Any) -> int:
    if folds < 2:
        raise ValueError(f"cv={folds}: at least two folds are needed.")
    classes, members = np.unique(y, return_counts=True)
    fewest = int(members.min())
    if fewest < 2:
        rare = classes[members.argmin()]
        rare = rare if names is None else names[rare]
        raise ValueError(
            f"Class {rare!s} has one member only: it cannot be in a training and a "
            "validation part. Drop it, or collect more of it."
        )
    if fewest < folds:
        warnings.warn(
            f"The smallest class has {fewest} members, fewer than cv={folds} folds; "
            f"using {fewest} folds.",
            UserWarning,
            stacklevel=2,
        )
    return min(folds, fewest)


def _folds_by_groups(folds: int, groups: Any) -> int:
    """No more folds than there are groups to be held out."""
    count = len(np.unique(np.asarray(groups)))
    if count < 2:
        raise ValueError(
            f"groups has one group only, {np.asarray(groups)[0]!s}: its samples stay "
            "together, and none could be held out. Leave groups out, or collect others."
        )
    if count < folds:
        warnings.warn(
            f"There are {count} groups, fewer than cv={folds} folds; using {count} "
            "folds.",
            UserWarning,
            stacklevel=3,
        )
    return min(folds, count)


def _checked_pair(pair: Any, k: int, numbers: np.ndarray) -> Split:
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


def _brief(given: Any) -> str:
    text = " ".join(repr(given).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _listed(rows: np.ndarray) -> str:
    """The first few row numbers, and how many more there are."""
    first = ", ".join(map(str, rows[:_FEW_ROWS].tolist()))
    more = len(rows) - _FEW_ROWS
    return f"{first} and {more} more" if more > 0 else first


def _indices(indices: Any, n: int, k: int) -> np.ndarray:
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
    rows = _whole_numbers(given)
    if rows is None:
        raise ValueError(
            f"Split {k} of cv must have row numbers, or a mask of {n} entries; got "
            f"{_brief(indices)}."
        )
    if rows.size and not (-n <= rows.min() and rows.max() < n):
        raise ValueError(
            f"cv has an index outside the data: expected 0 to {n - 1}, got "
            f"{rows.min()} to {rows.max()}."
        )
    return rows % n


def _whole_numbers(given: np.ndarray) -> np.ndarray | None:
    """The same values as integers; None if they are none."""
    if given.dtype.kind in "iu":
        return given.astype(int)
    try:
        values = given.astype(float)
    except (TypeError, ValueError):
        return None
    # Also the empty list, which is one of floats.
    whole = given.dtype.kind in "fO" and np.all(np.isfinite(values))
    if not whole or np.any(values != np.floor(values)):
        return None
    return values.astype(int)
