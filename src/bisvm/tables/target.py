"""The target of a table, and the rows that are held out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, train_test_split

from bisvm.core.types import Array, UserData
from bisvm.tables.checks import same_labels, sentinel_of
from bisvm.tables.columns import are_codes, texts
from bisvm.tables.dates import date_format
from bisvm.tables.errors import DataError, listed, no_column, pandas
from bisvm.tables.table import Table
from bisvm.tables.words import ABBREVIATIONS, MISSING, is_text, without_words

if TYPE_CHECKING:
    from pandas import Series

# With more different values, they are a quantity or names, and not classes.
MOST_CLASSES = 100
# Whole numbers with more different values are a quantity; 26 letters are still classes.
MOST_WHOLE = 30
# Numbers with fractions are rarely codes of classes: fewer different values are enough.
MOST_FRACTIONS = 20
# More different values than this are a quantity if they have fewer rows in the mean.
MOST_SMALL, FEW = 10, 4
# Classes that are whole numbers, from which on a note says how they are understood.
NOTED = 3
# Training rows that a class must keep: a fold holds out one of them.
LEAST = 2
# Share of the known rows that have numbers, where the target is taken for a quantity
# and other cells for errors.
MOSTLY = 0.5
# What columns are that were split off.
TARGET, GROUPS = "the target", "the column of groups"

TargetTask = Literal["auto", "classification", "regression"]


def split_target(
    table: Table,
    target: str | None,
    task: TargetTask = "auto",
    merge: bool = False,
    keep: Sequence[str] = (),
) -> tuple[Table, Array, str, list[str]]:
    """Split a table into features and target.

    A target of numbers with many different values is a quantity: y then holds floating
    point numbers, for regression. Other targets are classes. Labels are spelled as in
    the file. Empty cells are missing. The usual words for missing values are classes
    here, but those given to `read_table(missing=...)` are not, and neither is "NA" or
    the like if a column of numbers has it, or the target is a quantity but for it.

    Parameters
    ----------
    table : Table
    target : a name, or a number from one; negative numbers count from the end
        None means the labels that the format has, or else the last column.
    task : {"auto", "classification", "regression"}
        What the target holds; "auto" decides by its values.
    merge : bool
        Whether labels that differ in case or spaces only are one class.
    keep : sequence of str
        Words such as "NA" that are classes, though columns of numbers have them.

    Returns
    -------
    rest : Table without the target
    y : labels as text, or numbers
    name : name of the target
    notes : list of str, what was guessed
    """
    try:
        name, labels, rest = _take(table, target)
        labels, nothing = _without_marks(table, name, labels, keep)
        known = np.flatnonzero(labels.notna())
        if not len(known):
            raise DataError("the target has no value at all.", column=name)
        dropped, labels = len(labels) - len(known), labels.iloc[known]
        y, notes = _values(table, name, labels, known, task, merge)
    except DataError as error:
        raise error.at(table.path) from None
    rest = rest[known] if table.is_sparse else rest.iloc[known]
    numeric = y.dtype.kind == "f"
    classes = () if numeric else tuple(str(one) for one in np.unique(y))
    form, roles = replace(table.form, labels=classes), table.roles
    if table.labels is None:
        roles = (*roles, (name, TARGET))
        if target is None:
            notes.append(f"no --target was given; the last column, {name!r}, is used")
        columns = [] if table.cells is None or numeric else list(rest)
        like = [one for one in columns if table.cells[one].isin(classes).all()]
        form = replace(form, target=name, like_labels=tuple(like))
    if dropped:
        where = "as in other columns" if classes else "among numbers"
        why = f"; {listed(nothing)} means a missing value, {where}"
        # Among numbers, a word cannot be a class.
        option = f" (--keep-label {nothing[0]})" if classes and nothing else ""
        more = f"{why}{option}" if nothing else ""
        notes.append(f"{dropped} rows without a target are dropped{more}")
    notes += [
        f"{one!r} is a class of {name!r}; use --missing={one} if it means a missing "
        "value"
        for one in classes
        if one.lower() in MISSING
    ]
    notes += sentinels_in_words(name, y)
    rest_table = replace(
        table, frame=rest, labels=None, form=form, cells=None, roles=roles
    )
    return rest_table, y, name, notes


def _values(
    table: Table,
    name: str,
    labels: Series,
    known: Array,
    task: TargetTask,
    merge: bool,
) -> tuple[Array, list[str]]:
    """Numbers or spelled classes, and notes on which of both they are."""
    numbers = None
    if task != "classification":
        numbers = _numbers(table, name, labels, known, task == "regression")
    if task == "regression" and numbers is None:
        raise DataError(
            "the target has values that are not numbers, and regression needs numbers. "
            "Choose another --target, or --task classification.",
            column=name,
        )
    different = 0 if numbers is None else len(np.unique(numbers))
    if task == "regression" or (numbers is not None and _is_quantity(numbers)):
        assert numbers is not None
        if different < 2:
            raise DataError(
                f"all {len(numbers)} rows have the target {numbers[0]:g}: expected two "
                "or more values.",
                column=name,
            )
        note = (
            f"{name!r} holds {different} different numbers: regression. Use --task "
            "classification if they are classes"
        )
        return numbers, [] if task == "regression" else [note]
    y = _spelled(labels, name)
    y = merged(y) if merge else y
    _check_classes(name, y, numbers is None and task == "auto")
    note = (
        f"{name!r} holds {different} different numbers, which are taken for classes. "
        "Use --task regression to predict them as numbers"
    )
    return y, [note] if different >= NOTED else []


def _numbers(
    table: Table, name: str, labels: Series, known: Array, sure: bool
) -> Array | None:
    """The target as numbers, in the decimal sign of the file; None if it has text.

    sure : whether the target holds numbers; else codes such as 01067 are classes
    """
    if not sure and is_text(labels) and are_codes(labels):
        return None
    read = labels if table.cells is None else table.frame[name].iloc[known]
    found: Array = pandas().to_numeric(read, errors="coerce").to_numpy(dtype=float)
    finite = np.isfinite(found)
    if finite.all():
        return found
    if finite.mean() > MOSTLY and _is_quantity(found[finite]):
        word = str(labels.iloc[int(np.argmin(finite))])
        raise DataError(
            f"{word[:60]!r} is not a number, but most values of the target are: "
            "correct it, or declare it a missing value by --missing. If they are "
            "classes, use --task classification.",
            column=name,
            row=int(labels.index[int(np.argmin(finite))]) + 1,
        )
    return None


def sentinels_in_words(name: str, y: Array) -> list[str]:
    """A note on a number such as -9999 among the values of a target."""
    numbers = pandas().to_numeric(pandas().Series(y), errors="coerce")
    found = sentinel_of(numbers) if numbers.notna().all() else None
    if found is None:
        return []
    return [
        f"{found} is a value of {name!r}, far from all others; use --missing={found} "
        "if it means a missing value"
    ]


def merged(y: Array) -> Array:
    """Labels in their most frequent spelling."""
    usual = {other: name for name, others in same_labels(y).items() for other in others}
    return np.array([usual.get(str(one), str(one)) for one in y])


def _take(table: Table, target: str | None) -> tuple[str, Series, UserData]:
    """Name, labels, and the other columns; missing labels are NaN."""
    if table.labels is not None:
        name, rest = target or "y", table.frame
        labels = pandas().Series(np.asarray(table.labels))
    elif table.is_sparse:
        raise DataError("the file has no labels.")
    else:
        name = _column(table, target)
        # As spelled in the file.
        labels = (table.frame if table.cells is None else table.cells)[name]
        if labels.dtype == object:
            labels = labels.map(str, na_action="ignore")
        rest = table.frame.drop(columns=name)
        if not rest.shape[1]:
            raise DataError("the target is the only column.")
    if is_text(labels):
        words = ("", *table.missing)
        labels = without_words(labels.to_frame("target"), words)["target"]
    return name, labels, rest


def _without_marks(
    table: Table, name: str, labels: Series, keep: Sequence[str]
) -> tuple[Series, list[str]]:
    """Labels without words that mean nothing in columns of numbers, and these words."""
    if table.cells is None or not is_text(labels):
        return labels, []
    kept = {word.strip().lower() for word in keep}
    used = sorted(one for one in labels.dropna().unique() if one.lower() not in kept)
    among_numbers = [one for one in used if one.lower() in MISSING]
    words = [one for one in used if one.lower() in ABBREVIATIONS]
    if not among_numbers:
        return labels, []
    if _are_many_numbers(table.frame[name][~labels.isin(among_numbers)]):
        return labels.mask(labels.isin(among_numbers)), among_numbers
    if not words:
        return labels, []
    cells = table.cells.drop(columns=name)
    numbers = [one for one in cells if _is_numeric(table.frame[one])]
    found = [word for word in words if cells[numbers].eq(word).any(axis=None)]
    return labels.mask(labels.isin(found)), found


def _are_many_numbers(column: Series) -> bool:
    """Whether the target is a quantity but for words for missing values."""
    known = column.dropna()
    return _is_numeric(known) and _is_quantity(known.to_numpy(dtype=float))


def _is_numeric(column: Series) -> bool:
    """Whether all cells that are not missing are numbers."""
    known = column.dropna()
    return len(known) > 0 and bool(
        pandas().to_numeric(known, errors="coerce").notna().all()
    )


def _spelled(labels: Series, name: str) -> Array:
    try:
        spelled: Array = texts(labels).to_numpy(dtype=object).astype(str)
    except DataError as error:
        raise error.of(name) from None
    return spelled


def _column(table: Table, target: str | None) -> str:
    names = [str(name) for name in table.frame.columns]
    if target is None:
        return names[-1]
    if target in names:
        return target
    if target in dict(table.roles):
        raise DataError(
            f"this is {dict(table.roles)[target]}: choose another column.",
            column=target,
        )
    if target.lstrip("+-").isdigit() and len(target) < 10:
        number = int(target)
        if 1 <= abs(number) <= len(names):
            return names[number - 1 if number > 0 else number]
    said = no_column(target, names)
    if not table.form.named and table.cells is not None:
        first = table.cells.iloc[0].isin([target]).any()
        said += " The first row has it: use --header yes." if first else ""
    raise DataError(said).advised(table.separator_hint)


def _check_classes(name: str, y: Array, guessed: bool) -> None:
    """Refuse one class, classes of one row, and names, if classes are a guess."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise DataError(
            f"all {len(y)} rows have the target {str(classes[0])[:60]!r}: expected "
            "two or more classes.",
            column=name,
        )
    names = guessed and len(classes) > max(MOST_CLASSES, len(y) // 4)
    dates = guessed and len(classes) > MOST_WHOLE and _are_dates(classes)
    if names or dates:
        like = "dates or times" if dates else "names"
        made = "numbers, such as days or minutes," if dates else "classes"
        raise DataError(
            f"the target has {len(classes)} different values in {len(y)} rows, like "
            f"{like}; expected classes or numbers. Choose another --target, or make "
            f"{made} of it.",
            column=name,
        )
    if np.sum(counts > 1) < 2:
        raise DataError(
            f"{len(classes)} classes in {len(y)} rows, and fewer than two of them have "
            "two rows: add rows, or choose another --target.",
            column=name,
        )


def _are_dates(classes: Array) -> bool:
    return date_format(pandas().Series(classes)) is not None


def _is_quantity(numbers: Array) -> bool:
    """Whether numbers have too many different values to be classes."""
    values = np.unique(numbers)
    fractions = bool(np.any(values % 1 != 0))
    few_rows = len(values) > max(MOST_SMALL, len(numbers) / FEW)
    return few_rows or len(values) > (MOST_FRACTIONS if fractions else MOST_WHOLE)


def take_groups(table: Table, column: str) -> tuple[Table, Array]:
    """Split off the column that says which rows belong together.

    Parameters
    ----------
    table : Table without its target
    column : a name, or a number from one; negative numbers count from the end

    Returns
    -------
    rest : Table without the column
    groups : array of text; a row without a group is one of its own
    """
    try:
        if table.is_sparse:
            raise DataError("a sparse matrix has no column of groups.")
        name = _column(table, column)
        cells = table.frame[name]
        alone = [f"(row {number})" for number in range(1, len(cells) + 1)]
        groups = texts(cells.fillna(pandas().Series(alone, index=cells.index)))
        if groups.nunique() < 2:
            raise DataError("all rows are in one group.", column=name)
    except DataError as error:
        raise error.at(table.path) from None
    rest = table.frame.drop(columns=name)
    if not rest.shape[1]:
        raise DataError("the groups are the only column.", path=table.path)
    rest_table = replace(table, frame=rest, roles=(*table.roles, (name, GROUPS)))
    return rest_table, groups.to_numpy(dtype=object).astype(str)


def hold_out(
    y: Array, share: float, random_state: int = 0, groups: Array | None = None
) -> tuple[Array, Array]:
    """Split rows into training and held-out rows, with the same shares of classes.

    Numbers are held out at random. A class that would keep fewer than two training rows
    is not held out.

    Parameters
    ----------
    y : labels, or numbers
    share : share of the rows to hold out, from 0 to 1
    random_state : int
    groups : array, optional
        Rows of one group stay together.

    Returns
    -------
    train, held_out : indices of the rows, in ascending order
    """
    count = math.ceil(share * len(y))
    if not count:
        return np.arange(len(y)), np.arange(0)
    numbers = y.dtype.kind == "f"
    if numbers and groups is None:
        if len(y) - count < LEAST:
            raise ValueError(
                f"{len(y)} rows are too few to hold out {count}: choose another "
                "--test-size, or 0 to hold out none."
            )
        order = np.random.RandomState(random_state).permutation(len(y))
        return np.sort(order[count:]), np.sort(order[:count])
    classes, codes, sizes = np.unique(y, return_inverse=True, return_counts=True)
    if groups is not None:
        kinds = np.zeros_like(codes) if numbers else codes
        return _hold_out_groups(kinds, share, random_state, groups)
    # The only row of a class is for training.
    single = np.flatnonzero((sizes == 1)[codes])
    rest = np.setdiff1d(np.arange(len(y)), single)
    n_classes = int(np.sum(sizes > 1))
    if min(count, len(rest) - count) < n_classes:
        raise ValueError(
            f"{len(y)} rows of {len(classes)} classes are too few to hold out {count}: "
            "choose another --test-size, or 0 to hold out none."
        )
    train, test = train_test_split(
        rest, test_size=count, stratify=y[rest], random_state=random_state
    )
    left = np.bincount(codes[train], minlength=len(classes))
    short = (left < np.minimum(sizes, LEAST))[codes]
    train = np.concatenate([train, single, test[short[test]]])
    return np.sort(train), np.sort(test[~short[test]])


def _hold_out_groups(
    codes: Array, share: float, random_state: int, groups: Array
) -> tuple[Array, Array]:
    """Hold out one of 1 / share folds; groups whose class has no others stay."""
    own = np.unique(groups, return_inverse=True)[1]
    n_folds = min(max(round(1.0 / share), 2), own.max() + 1)
    folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        # Classes with fewer members than folds are told of elsewhere.
        warnings.simplefilter("ignore")
        train, test = next(folds.split(codes, codes, own))
    absent = ~np.isin(codes[test], codes[train])
    back = np.isin(own[test], own[test][absent])
    return np.sort(np.append(train, test[back])), np.sort(test[~back])
