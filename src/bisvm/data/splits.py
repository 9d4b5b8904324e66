"""Splits and groups: from labels or targets to the training problems, as columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
from scipy.special import log_expit
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import _ovr_decision_function

from bisvm.core.types import Array, ArrayLike, UserData, UserVector
from bisvm.core.warning import warn_user
from bisvm.data.targets import CLASS_LABELS, Targets, class_pairs

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


class Points(NamedTuple):
    """Which rows held-out margins belong to, for criteria that need to know.

    labels : +1 or -1, so that labels * margins are decision values; or targets
    task : number of the class task
    column : number of the training problem, one split of one task
    row : number of the held-out row, another one in every split. Points of one number
        hold the decision values of one row, one for each class task
    pairs : (n_tasks, 2), the classes of every task, the first of which has label +1;
        None if tasks are one class against the rest, or the only two classes

    Most criteria are given the points that have a weight. To one that `sees_all_tasks`
    a row's values of pairs without its class are points too, of label +1 and weight
    zero.
    """

    labels: Array
    task: Array
    column: Array
    row: Array
    pairs: Array | None = None

    def at(self, places: Array) -> Points:
        """Return some of the points: those at these places, numbers or a mask."""
        return self._replace(
            labels=self.labels[places],
            task=self.task[places],
            column=self.column[places],
            row=self.row[places],
        )

    @property
    def n_classes(self) -> int:
        """Number of classes: two if there is one task."""
        if self.pairs is not None:
            return int(self.pairs.max()) + 1
        return max(int(self.task.max(initial=0)) + 1, 2)


@dataclass(frozen=True, eq=False)
class SampleGroups:
    """g(i), the group of every sample.

    names : labels of the groups, sorted
    codes : (n,), g(i) as a place among the names
    """

    names: Array
    codes: Array

    @classmethod
    def of(cls, labels: ArrayLike) -> Self:
        """Groups from one label per sample, of any type that can be sorted."""
        return cls(*np.unique(labels, return_inverse=True))

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, rows: Array) -> SampleGroups:
        """The groups of some samples; groups without samples keep their number."""
        return SampleGroups(self.names, self.codes[rows])

    def spread(self, values: Array) -> Array:
        """(n,), the value of every sample's group."""
        found: Array = np.asarray(values)[self.codes]
        return found

    def gathered(self, values: Array) -> Array:
        """(n_groups,), sums of (n,) values over the samples of each group."""
        return np.bincount(self.codes, values, minlength=len(self))

    def by_name(self, C: ArrayLike) -> dict[Any, Any]:
        """C of every group; a list over the classes where each has its own."""
        values = np.moveaxis(np.asarray(C), -1, 0).tolist()
        return dict(zip(self.names.tolist(), values, strict=True))


@dataclass(frozen=True)
class FoldColumns:
    """Training problems as columns, one for every split and class task.

    labels : (n, q), +1 or -1, or the targets of a regression
    train : (n, q), relative weight of a point's training loss, 0 where it is held out
    validation : (n, q), weight of a point's validation loss; they sum to one, and all
        columns that hold out points of their classes have an equal share
    task : (q,), number of the class task of every column
    split : (q,), number of the split of every column
    pairs : (n_tasks, 2), as in `Points`
    targets : what the labels are
    """

    labels: Array
    train: Array
    validation: Array
    task: Array
    split: Array
    pairs: Array | None = None
    targets: Targets = CLASS_LABELS

    @property
    def points(self) -> Points:
        """The rows of held-out margins, in the order of `array[validation > 0]`."""
        return self.points_at(self.validation > 0)

    def points_at(self, where: Array) -> Points:
        """The rows of margins in the order of `array[where]`; where : mask (n, q)."""
        row, column = np.nonzero(where)
        row = row + len(where) * self.split[column]
        # Half the memory: there are few columns, and as many entries as points.
        column = column.astype(np.int32)
        task = self.task.astype(np.int32)[column]
        return Points(self.labels[where], task, column, row, self.pairs)

    @property
    def outside(self) -> Array:
        """(n, q), whether a split holds a point out, whatever its part in the task."""
        outside = self.validation > 0
        for number in np.unique(self.split):
            own = self.split == number
            outside[:, own] = outside[:, own].any(axis=1, keepdims=True)
        return outside

    def of_split(self, number: int) -> FoldColumns:
        """Those of one split alone."""
        return self.only(self.split == number)

    def only(self, own: Array) -> FoldColumns:
        """Some of the columns, in equal shares as before; own : mask (q,)."""
        share = self.validation[:, own].sum()
        return FoldColumns(
            self.labels[:, own],
            self.train[:, own],
            self.validation[:, own] / share,
            self.task[own],
            self.split[own],
            self.pairs,
            self.targets,
        )


def decisions(
    scores: Array, n_classes: int, multi_class: str, pair_scale: float | None = None
) -> Array:
    """(n,) for two classes, (n, n_classes) for more, from the scores of class tasks.

    Pairs of classes vote, or are pooled if the scale of their scores is known.
    """
    if n_classes == 2:
        return scores[:, 0]
    if multi_class == "ovr":
        return scores
    if pair_scale is not None:
        return pooled_pairs(pair_scale * scores, n_classes)
    votes: Array = _ovr_decision_function(scores < 0, -scores, n_classes)
    return votes


def pooled_pairs(scores: Array, n_classes: int) -> Array:
    """sum_l log 1 / (1 + exp(-f_kl)) for every class k, from f_kl = -f_lk."""
    first, second = pair_members(n_classes)
    pooled: Array = log_expit(scores) @ first + log_expit(-scores) @ second
    return pooled


def pair_members(n_classes: int) -> tuple[Array, Array]:
    """(n_pairs, n_classes), ones at the first and at the second class of every pair."""
    pairs, identity = class_pairs(n_classes), np.eye(n_classes)
    return identity[pairs[:, 0]], identity[pairs[:, 1]]


def chosen(decision: Array, classes: Array) -> Array:
    """The class of every decision."""
    if decision.ndim == 1:
        decision = np.column_stack([-decision, decision])
    return np.asarray(classes[decision.argmax(axis=1)])


def training_columns(
    tasks: Array, weight: Array, targets: Targets = CLASS_LABELS
) -> FoldColumns:
    """One column per task, trained on all points: the final machine."""
    inside = targets.inside(tasks)
    labels = np.where(inside, tasks, 1.0)
    train = np.where(inside, weight[:, None], 0.0)
    n = tasks.shape[1]
    number, split = np.arange(n), np.zeros(n, dtype=int)
    return FoldColumns(
        labels, train, np.zeros_like(train), number, split, targets=targets
    )


def split_columns(
    tasks: Array,
    splits: Sequence[Split],
    weight: Array,
    validation_weight: Array | None = None,
    targets: Targets = CLASS_LABELS,
) -> FoldColumns:
    """One column for every split and task that can be trained.

    A split that holds out all points of a class has no column for that class's task. A
    pair of classes of which no point is held out has a column without validation
    weight: held-out points of other classes have values there. Points have the same
    weight in training and validation unless `validation_weight` is given.
    """
    held_weight = weight if validation_weight is None else validation_weight
    whole = training_columns(tasks, weight, targets)
    inside_task = targets.inside(tasks)
    columns: list[tuple[Array, Array, Array, int, int]] = []
    for number, (rows, held_out) in enumerate(splits):
        inside, outside = np.zeros((2, len(weight)))
        inside[rows] = 1.0
        outside[held_out] = 1.0
        for k, labels in enumerate(whole.labels.T):
            fit = whole.train[:, k] * inside
            check = inside_task[:, k] * held_weight * outside
            trainable = targets.members(labels[:, None], fit[:, None])[0] > 0
            if trainable and held_weight[held_out].any():
                columns.append((labels, fit, check, k, number))
        if not any(one[-1] == number and one[2].any() for one in columns):
            raise ValueError(
                f"Split {number} cannot be used: {targets.untrainable}, "
                "or its validation part is empty. Use a stratified splitter or fewer "
                "folds."
            )
    _warn_of_untrained(len(columns), len(splits) * tasks.shape[1])
    labels, train, validation, number_of_task, number_of_split = zip(
        *columns, strict=True
    )
    return FoldColumns(
        np.stack(labels, axis=1),
        np.stack(train, axis=1),
        equal_shares(np.stack(validation, axis=1)),
        np.array(number_of_task),
        np.array(number_of_split),
        targets.pairs(tasks),
        targets,
    )


def equal_shares(weight: Array) -> Array:
    """Weights that sum to one, with equal shares of all columns that have some."""
    total = weight.sum(axis=0)
    some = total > 0
    out: Array = weight / np.where(some, total, 1.0) / max(np.sum(some), 1)
    return out


def _warn_of_untrained(n_columns: int, wanted: int) -> None:
    if n_columns < wanted:
        warn_user(
            f"Of {wanted} training problems (splits x class tasks) "
            f"{wanted - n_columns} are left out: their training part lacks a class. "
            "Use a stratified splitter, and groups that do not hold all rows of a "
            "class."
        )


def distinct_columns(labels: Array) -> tuple[Array, Array]:
    """The different columns among (n, q) labels, and which of them each column is.

    The folds of one task have the same labels. (`np.unique` along columns is slow: it
    makes records of n fields.)
    """
    seen: dict[bytes, int] = {}
    number = [seen.setdefault(column.tobytes(), len(seen)) for column in labels.T]
    _, first, which = np.unique(number, return_index=True, return_inverse=True)
    return labels[:, first], which


def row_kinds(labels: Array) -> Array:
    """(n,), the number of the combination of labels, +1 or -1, that a row has."""
    kind = np.zeros(len(labels), dtype=int)
    for column in distinct_columns(labels)[0].T:
        _, kind = np.unique(2 * kind + (column > 0), return_inverse=True)
    return kind


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
        An int stands for stratified, shuffled folds, which keep groups together. There
        are fewer folds, with a warning, if no class has so many members, or there are
        fewer groups. A class with fewer members is held out by some of the folds. The
        only member of a class is in the training parts alone, with a warning.
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
