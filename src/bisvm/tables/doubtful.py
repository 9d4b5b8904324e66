"""Columns of a data frame that are not used, or not as what they look like.

`pipeline_for` warns of them, in the words of Python. The command line has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bisvm.tables.checks import BEGINS, NUMBER_FIRST
from bisvm.tables.columns import (
    CATEGORY,
    COUNTER,
    FEW_CATEGORIES,
    MOSTLY,
    UNNAMED,
    ColumnTypes,
    are_codes,
)
from bisvm.tables.errors import DataError, listed, pandas
from bisvm.tables.numbers import is_number, read_numbers
from bisvm.tables.units import parts_of
from bisvm.tables.words import MISSING, is_text, without_words

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Rows that tell whether text looks like numbers.
SAMPLE = 2000


def doubtful_columns(types: ColumnTypes, frame: DataFrame) -> Iterator[str]:
    """Say which columns are not used, or taken for categories, and how to change it.

    Silent about columns that were asked for or against, about names of rows, and about
    the index that a program has written.

    Parameters
    ----------
    types : fitted on the frame
    frame : data frame
    """
    asked = {*types.drop, *types.keep, *types.categorical, *types.codes_}
    for name in frame.columns:
        if name in asked:
            continue
        why = types.dropped_.get(name)
        if why == COUNTER:
            if not UNNAMED.fullmatch(name):
                yield (
                    f"Column {name!r} is not used, because it {COUNTER}: "
                    f"keep=[{name!r}] uses it, drop=[{name!r}] leaves it out without "
                    "this warning."
                )
        elif types.kinds_.get(name, CATEGORY) == CATEGORY and is_text(frame[name]):
            cells = frame[[name]].head(SAMPLE)
            # Maps of categories cannot give tuples with pandas 2.2.
            cells = without_words(cells, MISSING)[name].dropna().astype(object)
            if cells.nunique() > 1:
                yield from _of_text(name, why, frame[name].nunique(), cells)


def _of_text(name: str, why: str | None, count: int, cells: Series) -> Iterator[str]:
    """Whether text looks like numbers, and what to do.

    why : why the column is not used; None if it is
    count : number of different texts
    """
    if are_codes(cells):
        if why is not None:
            yield (
                f"Column {name!r} is not used, because it {why}: numeric=[{name!r}] if "
                f"these are numbers, keep=[{name!r}] if they are categories."
            )
        return
    readable = _can_be_read(cells)
    begins = cells.str.match(NUMBER_FIRST).mean() >= BEGINS
    # Few texts such as "10-20" and "1st" are categories.
    many = why is not None or count > FEW_CATEGORIES
    if not readable and not (begins and many):
        return
    what = (
        f"is taken for categories: it has {count} different texts, such as "
        f"{str(cells.iloc[0])[:30]!r}."
        if why is None
        else f"is not used, because it {why}."
    )
    argument = "categorical" if why is None else "keep"
    yield (
        f"Column {name!r} {what} {_advice(cells, readable)}; {argument}=[{name!r}] if "
        "they are categories."
    )


def _can_be_read(cells: Series) -> bool:
    """Whether `read_table` would read this text as numbers."""
    name = str(cells.name)
    try:
        found = read_numbers(cells.to_frame(name), None, ";").frame[name]
    except DataError:
        return False
    return bool(pandas().to_numeric(found, errors="coerce").notna().mean() >= MOSTLY)


def _advice(cells: Series, readable: bool) -> str:
    if readable:
        return (
            "These look like numbers: read the file by bisvm.tables.read_table, which "
            "knows units and decimal commas, or convert them"
        )
    parts, alone = cells.map(parts_of), cells.map(is_number)
    units = sorted({unit for _, unit in parts.dropna()} - {""})
    if parts.notna().mean() >= BEGINS and len(units) > 1:
        return f"These have several units, {listed(units, 3)}: convert them to one"
    if alone.all():
        return "Some have a decimal point, others a decimal comma: write them alike"
    if alone.mean() >= BEGINS:
        other = str(cells[~alone].iloc[0])[:30]
        return f"Most of these are numbers, but {other!r} is not: correct it"
    return "If these are numbers or dates, convert them"
