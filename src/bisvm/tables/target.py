"""The column that is to be predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from bisvm.tables.columns import _texts
from bisvm.tables.errors import DataError, pandas
from bisvm.tables.reading import Table
from bisvm.tables.text import MISSING, is_text, without_words

# A target of numbers with more different values than this is a quantity.
MOST_CLASSES = 100


def split_target(
    table: Table, target: str | None
) -> tuple[Table, np.ndarray, str, list[str]]:
    """The table without its target, the labels, the target's name, and notes.

    Labels are spelled as in the file. Empty cells are missing; words for missing values
    are classes, unless they were asked for (`read_table(missing=...)`).

    target : a name, or a number from one; negative ones count from the end. None stands
        for the labels that the format has, or else for the last column.
    """
    notes: list[str] = []
    if table.labels is not None:
        labels, name, rest = _texts_of(table.labels), target or "y", table.frame
    elif table.is_sparse:
        raise DataError("the file has no labels.", path=table.path)
    else:
        name = _column(table, target)
        if target is None:
            notes.append(f"no --target was given: {name!r}, the last column, is it")
        labels, rest = _cells(table, name), table.frame.drop(columns=name)
        labels = labels.map(str, na_action="ignore") if _mixed(labels) else labels
        if not rest.shape[1]:
            raise DataError("the target is the only column.", path=table.path)
    if is_text(labels):
        words = ("", *table.missing)
        labels = without_words(labels.to_frame("target"), words)["target"]
    there = np.asarray(pandas().notna(labels))
    if not there.all():
        notes.append(f"{int((~there).sum())} rows without a target are left out")
    kept = np.flatnonzero(there)
    if not len(kept):
        raise DataError("the target has no value at all.", path=table.path, column=name)
    labels = pandas().Series(labels).iloc[kept]
    rest = rest[kept] if table.is_sparse else rest.iloc[kept]
    try:
        y = _texts(labels).to_numpy(dtype=object).astype(str)
    except DataError as error:
        raise error.of(name).at(table.path) from None
    _check_classes(table, name, y, labels)
    classes = tuple(str(one) for one in np.unique(y))
    notes += [
        f"{one!r} is a class of {name!r}: say --missing={one} if it stands for a "
        "missing value"
        for one in classes
        if one.lower() in MISSING
    ]
    form = replace(table.form, labels=classes)
    if table.labels is None:
        columns = [] if table.cells is None else list(rest)
        like = [one for one in columns if table.cells[one].isin(classes).all()]
        form = replace(form, target=name, like_labels=tuple(like))
    rest_table = replace(table, frame=rest, labels=None, form=form, cells=None)
    return rest_table, y, name, notes


def _cells(table: Table, name: str) -> Any:
    """A column as the file spells it."""
    return (table.frame if table.cells is None else table.cells)[name]


def _texts_of(labels: Any) -> Any:
    return pandas().Series(np.asarray(labels))


def _mixed(labels: Any) -> bool:
    return labels.dtype == object


def _column(table: Table, target: str | None) -> str:
    names = [str(name) for name in table.frame.columns]
    if target is None:
        return names[-1]
    if target in names:
        return target
    if target.lstrip("+-").isdigit() and len(target) < 10:
        number = int(target)
        if 1 <= abs(number) <= len(names):
            return names[number - 1 if number > 0 else number]
    near = get_close_matches(target, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
    raise DataError(
        f"there is no column {target!r}; there are {shown}.{hint}", path=table.path
    )


def _check_classes(table: Table, name: str, y: np.ndarray, labels: Any) -> None:
    classes, first, counts = np.unique(y, return_index=True, return_counts=True)
    where: Mapping[str, Any] = dict(path=table.path, column=name)
    if len(classes) < 2:
        raise DataError(
            f"all {len(y)} rows have the target {str(classes[0])[:60]!r}: expected "
            "two or more classes.",
            **where,
        )
    # Numbers in English notation, where the file has another.
    values = classes if table.cells is None else table.frame[name].dropna().unique()
    if len(classes) > max(MOST_CLASSES, len(y) // 4) or _is_quantity(values, len(y)):
        raise DataError(
            f"the target has {len(classes)} different values in {len(y)} rows: that is "
            "a quantity or a name, and this is a classifier. Name another --target, or "
            "make classes of it.",
            **where,
        )
    if counts.min() < 2:
        alone = int(np.argmin(counts))
        row = int(labels.index[first[alone]]) + 1
        word = str(classes[alone])[:60]
        hint = ""
        if word.lower() in MISSING:
            hint = f" Say --missing={word} if it stands for a missing value."
        raise DataError(
            f"class {word!r} has one row only, and cannot be both learned and checked: "
            f"add rows of it, or remove it.{hint}",
            row=row,
            **where,
        )


def _is_quantity(classes: Any, n: int) -> bool:
    """Fractions, more of them than classes could be."""
    if len(classes) <= 20 or len(classes) * 5 < n:
        return False
    numbers = pandas().to_numeric(pandas().Series(classes), errors="coerce")
    return bool(numbers.notna().all() and (numbers % 1 != 0).any())
