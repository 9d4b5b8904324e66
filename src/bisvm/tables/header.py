"""The rows at the top of a table: names of columns, units, or none of both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bisvm.tables.errors import DataError
from bisvm.tables.numbers import are_numbers, is_number
from bisvm.tables.units import parts_of
from bisvm.tables.words import without_words

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Rows from which the header is detected.
SAMPLE = 200
# Lines of signs below a header or around a table: -----+-----, |---|---:|, =====.
RULE = re.compile(r"[\s|+:=\u2500-\u257f-]*[=\u2500-\u257f-]{3}[\s|+:=\u2500-\u257f-]*")
# Units above numbers, as [mm] and (kg).
IN_BRACKETS = re.compile(r"\[.*\]|\(.*\)")
# One unit above the only column of numbers is shorter than this.
SHORT = 12
# Whole numbers that are names of columns.
YEARS = range(1800, 2101)
# Rows that are equal to the first, of all rows: more are no repeated header.
FEW = 0.1


class Head(NamedTuple):
    """The rows above the data.

    names : of the columns
    rows : number of these rows
    notes : what was guessed, in words
    given : the cells that the names are made of
    second : pairs (name, cell) of a second row that is left out, such as units
    """

    names: list[str]
    rows: int
    notes: tuple[str, ...] = ()
    given: tuple[object, ...] = ()
    second: tuple[tuple[str, str], ...] = ()


def head_of(cells: DataFrame, words: Sequence[str], known: bool | None) -> Head:
    """Find the names of the columns.

    Parameters
    ----------
    cells : all rows
    words : for missing values
    known : bool, optional
        Whether there is a header, of one row; detected by default.
    """
    # The header is kept apart, since a name may be such a word: Na is sodium.
    first, rows = cells.iloc[0], without_words(cells.head(SAMPLE), words)
    two = None if known is not None else two_rows(cells, rows)
    if two is not None:
        return two
    corner = not isinstance(first.iloc[0], str)
    if has_header(rows, corner=corner) if known is None else known:
        names = names_of(first)
        notes = repeated_in_words(first, names)
        if known is None and not _is_sure(rows):
            notes.append("the first row has the names of columns (--header no)")
        return Head(names, 1, tuple(notes))
    option = " (--header yes)" if known is None else ""
    note = f"there is no header; columns are named by their numbers{option}"
    return Head(numbered(len(first)), 0, (note,))


def below(cells: DataFrame, head: Head) -> DataFrame:
    """The rows below the header, with names of columns."""
    cells = cells.iloc[head.rows :].reset_index(drop=True)
    cells.columns = list(head.names)
    if not len(cells):
        raise DataError("there is a header but no row below it.")
    return cells


def names_of(cells: Iterable[object]) -> list[str]:
    """Names of all columns; repeated names get a number."""
    names: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = cell if isinstance(cell, str) and cell else f"column {number}"
        count, own = 2, name
        while own in names:
            own, count = f"{name} ({count})", count + 1
        names.append(own)
    return names


def repeated_in_words(given: Iterable[object], names: Sequence[str]) -> list[str]:
    """A note on names that several columns have."""
    pairs = zip(given, names, strict=True)
    renamed = [(one, own) for one, own in pairs if isinstance(one, str) and one != own]
    if not renamed:
        return []
    one, own = renamed[0]
    more = f", and {len(renamed) - 1} more" if renamed[1:] else ""
    return [f"several columns are named {one!r}: a later one is called {own!r}{more}"]


def numbered(count: int) -> list[str]:
    """Names for columns without names."""
    return [f"column {number}" for number in range(1, count + 1)]


# --- one row --------------------------------------------------------------------------


def has_header(rows: DataFrame, corner: bool = False) -> bool:
    """Whether the first row is a header: it has words above numbers.

    If no column is numeric, it is one of the rows if a cell of it is found again below,
    in its column. Else a complete first row is a header. So is one that is complete but
    for its first cell: R writes names of rows below it. Years above numbers are names
    if words beside them are not found again.
    """
    if len(rows) < 2:
        return not any(is_number(cell) for cell in rows.iloc[0])
    votes = header_votes(rows)
    whole = bool(rows.iloc[0, 1:].notna().all())
    if corner and whole and rows.shape[1] > 1 and rows.iloc[1:, 0].notna().all():
        return True
    if votes:
        return any(votes) or _has_years(rows)
    return not _found_again(rows) and whole and bool(rows.iloc[0].notna().all())


def _has_years(rows: DataFrame) -> bool:
    """Whether the first row has years, and words that no other row has."""
    words = [n for n in rows if not is_number(rows[n].iloc[0])]
    years = [str(rows[n].iloc[0]) for n in rows if n not in words]
    if not words or not all(_is_year(one) for one in years):
        return False
    if any(str(c) in years for n in rows if n not in words for c in rows[n].iloc[1:]):
        return False
    repeated = [rows[n].iloc[1:].duplicated(keep=False).mean() > 0.5 for n in words]
    return all(repeated) and not _found_again(rows[words])


def _is_year(cell: object) -> bool:
    return isinstance(cell, str) and cell.isdecimal() and int(cell) in YEARS


def _found_again(rows: DataFrame) -> bool:
    """Whether a cell of the first row is found below, in its column.

    A few rows that are equal to the first are not counted: a header may be repeated.
    """
    rest = rows.iloc[1:]
    equal = equal_rows(rest, rows.iloc[0])
    if equal.mean() < FEW:
        rest = rest[~equal]
    return any((rest[name] == rows[name].iloc[0]).any() for name in rows)


def equal_rows(rows: DataFrame, first: Series) -> Series:
    """Which rows are equal to the first, with at least two cells."""
    known = [name for name in rows if isinstance(first[name], str)]
    same = (rows[known] == first[known]).all(axis=1) & (len(known) > 1)
    return same & rows.drop(columns=known).isna().all(axis=1)


def header_votes(rows: DataFrame) -> list[bool]:
    """For every numeric column, whether its first cell is not a number."""
    votes = []
    for name in rows:
        first, rest = rows[name].iloc[0], rows[name].iloc[1:].dropna()
        if isinstance(first, str) and len(rest) and are_numbers(rest):
            votes.append(not is_number(first) and parts_of(first) is None)
    return votes


def _is_sure(rows: DataFrame) -> bool:
    """Whether the first row has words above numbers, and no number above numbers."""
    votes = header_votes(rows)
    return bool(votes) and all(votes)


# --- two rows -------------------------------------------------------------------------


def two_rows(cells: DataFrame, rows: DataFrame, least: int = 2) -> Head | None:
    """Names in the first two rows, or names and units; None if there is one row.

    The second row has words above numbers, as the first has. If the first row is whole,
    the second has units or descriptions. Else the second has the names, or those of the
    first, which stand above several columns, are put in front of them.

    Parameters
    ----------
    cells : all rows
    rows : the first of them, without words for missing values
    least : rows below them that are needed
    """
    if len(rows) < least + 2 or not _is_above_numbers(rows):
        return None
    first, second = cells.iloc[0], cells.iloc[1]
    given: Sequence[object] = tuple(first)
    left: tuple[tuple[str, str], ...] = ()
    if _are_names(first):
        pairs = zip(first, second, strict=True)
        left = tuple((name, cell) for name, cell in pairs if isinstance(cell, str))
        shown = next(cell for cell in second if isinstance(cell, str))
        said = (
            f"the second row has no data, but {shown!r} and the like, and is left out"
        )
    elif _are_names(second):
        given, said = tuple(second), "the names of columns are in the second row"
    else:
        given = _joined(first, second)
        shown = next(name for name in given if name)
        said = f"the names of columns are in two rows, such as {shown!r}"
    note = f"{said} (--header yes)"
    return Head(names_of(given), 2, (note,), tuple(given), left)


def _is_above_numbers(rows: DataFrame) -> bool:
    """Whether the second row has words above numbers, and so is none of the rows."""
    second, rest = rows.iloc[1], rows.iloc[2:]
    known = [name for name in rows if rest[name].notna().any()]
    numeric = [name for name in known if are_numbers(rest[name].dropna())]
    above = second[numeric].dropna()
    top = [cell for cell in rows.iloc[0][numeric].dropna() if not _is_year(cell)]
    if not len(above) or any(_is_quantity(cell) for cell in [*above, *top]):
        return False
    others = [name for name in rows if name not in numeric]
    # A word that other rows have, too, is one of the data.
    if any((rest[name] == second[name]).any() for name in rows):
        return False
    if len(above) > 1 or IN_BRACKETS.fullmatch(above.iloc[0]):
        return True
    return bool(second[others].isna().all()) and len(above.iloc[0]) < SHORT


def _is_quantity(cell: object) -> bool:
    return is_number(cell) or parts_of(cell) is not None


def _are_names(row: Series) -> bool:
    """Whether all cells are there, and all are different."""
    return bool(row.notna().all()) and row.nunique() == len(row)


def _joined(first: Series, second: Series) -> list[str]:
    """Cells of two rows; those of the first stand above several columns."""
    above = first.ffill()
    pairs = zip(above, second, strict=True)
    return [" ".join(cell for cell in pair if isinstance(cell, str)) for pair in pairs]
