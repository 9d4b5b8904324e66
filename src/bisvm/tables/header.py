"""The rows at the top of a table: names of columns, units, or none of both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bisvm.tables.dates import date_format
from bisvm.tables.errors import DataError, pandas
from bisvm.tables.numbers import are_numbers, is_number
from bisvm.tables.units import parts_of
from bisvm.tables.words import without_words

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Rows from which the header is detected; fewer in tables with many columns.
SAMPLE, FEWEST, MOST_CELLS = 200, 30, 20_000
# Lines of signs below a header or around a table: -----+-----, |---|---:|, =====.
RULE = re.compile(
    r"[\s|+:=_\u2500-\u257f-]*[=_\u2500-\u257f-]{2}[\s|+:=_\u2500-\u257f-]*"
)
# Units above numbers, as [mm] and (kg).
IN_BRACKETS = re.compile(r"\[.*\]|\(.*\)")
# One unit above the only column of numbers is shorter than this.
SHORT = 12
# Whole numbers that are names of columns.
YEARS = range(1800, 2101)
# Numbers in equal steps that are names of columns, at least: beside words, and alone.
LEAST_NUMBERS, LEAST_ALONE = 3, 4
# Steps of any size up, or down, that tell names. Rows below that are compared.
MANY_STEPS, NEXT_ROWS = 9, 10
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
    count = min(SAMPLE, max(FEWEST, MOST_CELLS // cells.shape[1]))
    first, rows = cells.iloc[0], without_words(cells.head(count), words)
    two = None if known is not None else several_rows(cells, rows)
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
    for its first cell: R writes names of rows below it. Numbers may be names, too.
    """
    if len(rows) < 2:
        return not any(is_number(cell) for cell in rows.iloc[0])
    rows = rows.dropna(axis=1, how="all")
    votes = header_votes(rows)
    whole = bool(rows.iloc[0, 1:].notna().all())
    if corner and whole and rows.shape[1] > 1 and rows.iloc[1:, 0].notna().all():
        return True
    if votes:
        return any(votes) or _has_numbers_as_names(rows)
    return not _found_again(rows) and whole and bool(rows.iloc[0].notna().all())


def _has_numbers_as_names(rows: DataFrame) -> bool:
    """Whether the first row has years, counts or wavelengths, as names of columns.

    The words beside them are found in no other row. Years stand above other numbers.
    Other numbers go up or down in equal steps, or are many, and those of the next rows
    do not.
    """
    words = [n for n in rows if not is_number(rows[n].iloc[0])]
    above = [n for n in rows if n not in words]
    first, rest = rows[above].iloc[0], rows.iloc[1:]
    if not above or rows.iloc[0].isna().any() or _found_again(rows[words]):
        return False
    few = all(rest[n].duplicated(keep=False).mean() > 0.5 for n in words)
    years = all(map(is_year, first)) and not any(
        rest[n].dropna().map(is_year).mean() > 0.5 for n in above
    )
    if words and years and (len(above) > 1 or few):
        return True
    if len(above) < (LEAST_NUMBERS if words else LEAST_ALONE):
        return bool(words) and few and list(first) in (["0", "1"], ["1", "2"])
    next_rows = rest[above].head(NEXT_ROWS)
    return _is_sequence(first) and next_rows.apply(_is_sequence, axis=1).mean() < 0.5


def _is_sequence(row: Series) -> bool:
    """Whether numbers go up or down in equal steps, or are many."""
    cells = row.dropna().str.replace(",", ".", regex=False)
    steps = np.diff(pandas().to_numeric(cells, errors="coerce").to_numpy(dtype=float))
    if not len(steps) or not (np.all(steps > 0) or np.all(steps < 0)):
        return False
    return len(steps) >= MANY_STEPS or bool(np.allclose(steps, steps[0], rtol=1e-6))


def is_year(cell: object) -> bool:
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
    """For every column of numbers or dates, whether its first cell is none."""
    votes = []
    for name in rows:
        first, rest = rows[name].iloc[0], rows[name].iloc[1:].dropna()
        if isinstance(first, str) and len(rest) and _are_quantities(rest):
            votes.append(not _is_quantity(first))
    return votes


def _is_sure(rows: DataFrame) -> bool:
    """Whether the first row has words above numbers, and no number above numbers."""
    votes = header_votes(rows)
    return bool(votes) and all(votes)


# --- several rows ---------------------------------------------------------------------


def several_rows(cells: DataFrame, rows: DataFrame, least: int = 2) -> Head | None:
    """Names in the first two rows, or names and units; None if there is one row.

    The second row, and maybe the third, have words above numbers, as the first has. If
    the first row is whole, the others have units or descriptions. Else the second has
    the names, or those of the first, which stand above several columns, are put in
    front of them.

    Parameters
    ----------
    cells : all rows
    rows : the first of them, without words for missing values
    least : rows below them that are needed
    """
    count = _rows_above_numbers(rows, least)
    if count < 2:
        return None
    first, second = cells.iloc[0], cells.iloc[1]
    given: Sequence[object] = tuple(first)
    above, said = 1, ""
    if not _are_names(first):
        above, whole = 2, _are_names(second)
        given = tuple(second) if whole else _joined(first, second)
        shown = next(name for name in given if name)
        said = f"the names of columns are in two rows, such as {shown!r}"
        said = "the names of columns are in the second row" if whole else said
    left: tuple[tuple[str, str], ...] = ()
    if above < count:
        pairs = zip(names_of(given), cells.iloc[above], strict=True)
        left = tuple((name, cell) for name, cell in pairs if isinstance(cell, str))
        has = f"{'second' if above == 1 else 'third'} row has"
        has = "second and third rows have" if count - above > 1 else has
        are = "are" if count - above > 1 else "is"
        no_data = (
            f"the {has} no data, but {left[0][1]!r} and the like, and {are} left out"
        )
        said = f"{said}, and {no_data}" if said else no_data
    return Head(names_of(given), count, (f"{said} (--header yes)",), tuple(given), left)


def _rows_above_numbers(rows: DataFrame, least: int) -> int:
    """Number of rows at the top that have words above numbers, up to three."""
    without_second = rows.drop(index=rows.index[1:2])
    without_third = rows.drop(index=rows.index[2:3])
    if len(rows) >= least + 3 and all(
        map(_is_above_numbers, (without_second, without_third))
    ):
        return 3
    return 2 if len(rows) >= least + 2 and _is_above_numbers(rows) else 1


def _is_above_numbers(rows: DataFrame) -> bool:
    """Whether the second row has words above numbers, and so is none of the rows."""
    second, rest = rows.iloc[1], rows.iloc[2:]
    if any(map(is_number, second.dropna())):
        return False
    known = [name for name in rows if rest[name].notna().any()]
    numeric = [name for name in known if _are_quantities(rest[name].dropna())]
    above = second[numeric].dropna()
    top = [cell for cell in rows.iloc[0][numeric].dropna() if not is_year(cell)]
    if not len(above) or any(_is_quantity(cell) for cell in [*above, *top]):
        return False
    others = [name for name in rows if name not in numeric]
    # A word that other rows have, too, is one of the data.
    if any((rest[name] == second[name]).any() for name in rows):
        return False
    if len(above) > 1 or IN_BRACKETS.fullmatch(above.iloc[0]):
        return True
    return bool(second[others].isna().all()) and len(above.iloc[0]) < SHORT


def _are_quantities(cells: Series) -> bool:
    """Whether these are numbers or dates."""
    return are_numbers(cells) or date_format(cells) is not None


def _is_quantity(cell: object) -> bool:
    if is_number(cell) or parts_of(cell) is not None:
        return True
    return date_format(pandas().Series([cell], dtype=object)) is not None


def _are_names(row: Series) -> bool:
    """Whether all cells are there, and all are different."""
    return bool(row.notna().all()) and row.nunique() == len(row)


def _joined(first: Series, second: Series) -> list[str]:
    """Cells of two rows; those of the first stand above several columns."""
    above = first.ffill()
    pairs = zip(above, second, strict=True)
    return [" ".join(cell for cell in pair if isinstance(cell, str)) for pair in pairs]
