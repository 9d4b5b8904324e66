"""Numbers with a unit: 15.900,00 €, 2705 lbs, 25 mpg, 18,0 %, CHF 5'000.-, (1,234).

A column has a unit if nearly all cells are a number with the same sign or letters, and
the others are bare numbers. Letters before a number are a unit only if they are those
of a currency: "Type 2" and "Week 12" are names.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from bisvm.tables.errors import DataError
from bisvm.tables.words import is_text

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Share of the cells that must have the unit; bare numbers may be the others.
NEARLY_ALL = 0.9
# Rows that tell a column of text from one of numbers.
FIRST_ROWS = 50
# Signs of currencies, and the abbreviations that stand before or after a number.
SIGNS = "$€£¥￥¢₠-⃀"
CURRENCIES = (
    rf"[^\W\d_]{{0,3}}[{SIGNS}]|EUR|USD|GBP|CHF|JPY|CNY|RMB|INR|SEK|NOK|DKK|ISK|PLN|CZK|"
    r"HUF|RON|RUB|TRY|BRL|MXN|ZAR|KRW|AUD|CAD|NZD|SGD|HKD|S?[Ff]r\.|kr\.?|Kč|zł|Rs\.?|"
    r"Rp\.?"
)
# Apostrophes and spaces between thousands: 5'000, 12 500; the last may be narrow.
SPACES = "'\u2019\u02bc\u00b4`\u00a0\u202f\u2009\u2007 "
NUMBER = (
    rf"[+-]?(?:\d[\d.,{SPACES}]*\d|\d)(?:[.,]|[eE][+-]?\d+)?|"
    r"[+-]?[.,]\d+(?:[eE][+-]?\d+)?"
)
# Letters and signs, no digit first: km/h, m², l/100km, °C, %.
UNIT = rf"[^\W\d_]{{1,12}}\S{{0,8}}|[%‰°µΩ{SIGNS}][^\s\d]{{0,8}}"
QUANTITY = re.compile(
    rf"(?P<sign>[+-])?\s*(?P<before>{CURRENCIES})?\s*(?P<number>{NUMBER})"
    rf"(?P<round>[.,](?:--?|[–—]))?\s*(?P<after>{UNIT})?"
)
PLAIN = r"[+-]?[0-9]+([.,][0-9]+)?"
SPACE = re.compile(rf"[{SPACES}]")
GROUPED = re.compile(
    rf"[+-]?[1-9]\d{{0,2}}(?P<group>[{SPACES}])\d{{3}}(?:(?P=group)\d{{3}})*(?:[.,]\d*)?"
)
# Negative numbers of accountants: (1,234), $(1,234.50), 1.234,50-.
BRACKETS = re.compile(
    r"(?P<before>[^\d()+-]{0,5})\((?P<inside>[^()+-]*\d[^()+-]*)\)(?P<after>[^\d()+-]*)"
)
MINUS_BEHIND = re.compile(
    r"(?P<before>)(?P<inside>[^()+-]*\d)\s?-(?P<after>[^\d()+-]*)"
)
# Minus signs of typesetters, before a number or a currency.
LONG_MINUS = re.compile(
    rf"^(?:[\u2212\u2010-\u2013\ufe63\uff0d]\s?|-\s)(?=[\d.,{SIGNS}])"
)
# Numbers in digits of other scripts.
OTHER_DIGITS = re.compile(r"(?=.*[^\x00-\x7f])[\d.,٫٬٪%+-]+")
# Numbers as Fortran writes them.
FORTRAN = re.compile(r"([+-]?\d*\.?\d+\.?)[dD]([+-]\d{2,3})")
ARABIC_SIGNS = str.maketrans("٫٬٪", ".,%")


class Unit(NamedTuple):
    """The unit of a column, before or after its numbers.

    It is empty if there are only spaces or apostrophes between thousands.
    """

    column: str
    text: str


def parts_of(cell: object) -> tuple[str, str] | None:
    """Number and unit of a cell; the unit is empty for a bare number, None for text."""
    found = QUANTITY.fullmatch(cell.strip()) if isinstance(cell, str) else None
    if found is None or (found["before"] and found["after"]):
        return None
    number = found["number"]
    if SPACE.search(number):
        if not GROUPED.fullmatch(number):
            return None
        number = SPACE.sub("", number)
    if found["sign"] and number[0] in "+-":
        return None
    if found["round"]:
        number += f"{found['round'][0]}00"
    return (found["sign"] or "") + number, found["before"] or found["after"] or ""


def unit_of(cells: Series) -> str | None:
    """The unit of a column's cells; None if these are text, or plain numbers."""
    known = cells.dropna()
    if known.dtype == "category":
        # Maps of categories cannot give tuples with pandas 2.2.
        known = known.astype(object)
    if not len(known) or _are_texts(known.head(FIRST_ROWS)):
        return None
    if known.str.fullmatch(PLAIN).all():
        return None
    parts = known.map(parts_of)
    units = Counter(one[1] for one in parts if one is not None)
    total = sum(units.values())
    del units[""]
    if total < NEARLY_ALL * len(known):
        return None
    if not units:
        spaced = known[parts.notna()].str.strip().str.contains(SPACE)
        return "" if spaced.any() else None
    ((unit, count),) = units.most_common(1)
    return unit if count >= NEARLY_ALL * total else None


def _are_texts(cells: Series) -> bool:
    """Whether these cells cannot be those of a column of numbers."""
    return bool(cells.map(parts_of).isna().mean() > 0.5)


def without_units(frame: DataFrame) -> tuple[DataFrame, tuple[Unit, ...]]:
    """Leave the numbers alone in columns that have a unit.

    A cell that is in another unit, or is no number, stays as it is.
    """
    units: list[Unit] = []
    for name in frame:
        unit = unit_of(frame[name])
        if unit is None:
            continue
        if not units:
            frame = frame.copy()
        units.append(Unit(str(name), unit))
        frame[name] = numbers_in(frame[name], units[-1])
    return frame, tuple(units)


def without_any(cells: Series) -> Series:
    """Which cells of a column of numbers are bare numbers."""
    return cells.dropna().map(lambda cell: (parts_of(cell) or ("", "?"))[1] == "")


def numbers_in(cells: Series, unit: Unit) -> Series:
    """The numbers of cells in a unit, or without one; other cells stay."""

    def number(cell: str) -> str:
        parts = parts_of(cell)
        return cell if parts is None or parts[1] not in ("", unit.text) else parts[0]

    return cells.map(number, na_action="ignore")


def without_unit(cells: Series, unit: Unit) -> Series:
    """Numbers of a column in this unit, or without one; another unit is an error."""
    known = cells.dropna()
    others = known[in_another(known, unit)]
    if len(others):
        wanted = f"in {unit.text!r}" if unit.text else "without a unit"
        raise DataError(
            f"{others.iloc[0][:60]!r} is not {wanted}, as in the training file "
            f"({len(others)} of {len(known)} cells): write all numbers of the column "
            f"{wanted}.",
            column=unit.column,
            row=int(others.index[0]) + 1,
        )
    return numbers_in(cells, unit)


def in_another(cells: Series, unit: Unit) -> Series:
    """Which cells are numbers in another unit."""

    def is_other(cell: str) -> bool:
        parts = parts_of(cell)
        return parts is not None and parts[1] not in ("", unit.text)

    return cells.map(is_other).astype(bool)


def units_in_words(
    frame: DataFrame, units: tuple[Unit, ...], most: int = 3
) -> list[str]:
    """Notes on the columns that were read as numbers.

    frame : the cells with their units
    """
    notes = []
    named = [_unit_in_words(frame[one.column], one) for one in units if one.text]
    spaced = [f"{one.column!r}" for one in units if not one.text]
    for names, said in (
        (named, "units are left out: "),
        (spaced, "spaces or apostrophes between thousands are left out: "),
    ):
        more = f" and {len(names) - most} more" if len(names) > most else ""
        if names:
            notes.append(
                f"{said}{', '.join(names[:most])}{more} (--categorical COLUMN)"
            )
    return notes


def _unit_in_words(cells: Series, unit: Unit) -> str:
    """A column and its unit, and cells without it."""
    known = cells.dropna()
    bare, others = int(without_any(known).sum()), known[in_another(known, unit)]
    said = [f"{bare} cells have none"] * bool(bare)
    if len(others):
        cells_are = "1 cell is" if len(others) == 1 else f"{len(others)} cells are"
        said.append(f"{cells_are} in another unit, such as {others.iloc[0][:30]!r}")
    return f"{unit.column!r} ({'; '.join([unit.text, *said])})"


# --- signs ----------------------------------------------------------------------------


def with_plain_signs(frame: DataFrame) -> DataFrame:
    """Write a long minus as a hyphen, and all digits as 0 to 9, in columns of text."""
    frame = frame.copy()
    for name in frame:
        if is_text(frame[name]):
            cells = frame[name]
            other = cells.str.contains(r"[^\x00-\x7f]|^- |\d\.?[dD][+-]\d", na=False)
            if other.any():
                frame[name] = cells.mask(other, cells[other].map(_with_plain_signs))
    return frame


def _with_plain_signs(cell: str) -> str:
    own = LONG_MINUS.sub("-", FORTRAN.sub(r"\1E\2", cell))
    if not OTHER_DIGITS.fullmatch(own):
        return own
    own = own.translate(ARABIC_SIGNS)
    return re.sub(r"\d", lambda one: str(unicodedata.digit(one[0])), own)


def with_minus(frame: DataFrame) -> tuple[DataFrame, tuple[str, ...]]:
    """Write numbers such as (1,234) and 1,234- with a minus in front.

    Nearly all cells of a column must be numbers, and some of them positive: (1), (2),
    (3) are numbers of footnotes. Returns the frame, and the columns that were changed.
    """
    changed = []
    for name in frame:
        known = frame[name].dropna()
        if not is_text(known) or not len(known) or _are_written(known):
            continue
        signed = minus_in_front(known)
        other = signed != known
        numbers = signed.map(parts_of).notna()
        if 0 < other.sum() < len(known) and numbers.mean() >= NEARLY_ALL:
            frame = frame.assign(**{str(name): minus_in_front(frame[name])})
            changed.append(str(name))
    return frame, tuple(changed)


def _are_written(cells: Series) -> bool:
    """Whether no cell has a negative number as accountants write them."""
    return not cells.str.contains(r"[)-]\D*$", regex=True).any()


def minus_in_front(cells: Series) -> Series:
    """Cells with (1,234) and 1,234- as -1,234."""

    def changed(cell: str) -> str:
        bare = parts_of(cell)
        found = BRACKETS.fullmatch(cell) or MINUS_BEHIND.fullmatch(cell)
        if bare is not None or found is None:
            return cell
        return f"-{found['before']}{found['inside']}{found['after']}"

    return cells.map(changed, na_action="ignore")
