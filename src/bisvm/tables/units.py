"""Numbers with a unit: 15.900,00 €, 2705 lbs, 25 mpg, 18,0 %.

A column has a unit if nearly all cells are a number with the same sign or letters, and
the others are bare numbers. Letters before a number are a unit only if they are those
of a currency: "Type 2" and "Week 12" are names.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from bisvm.tables.errors import DataError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Share of the cells that must have the unit; bare numbers may be the others.
NEARLY_ALL = 0.9
CURRENCIES = r"[€$£¥₹]|EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CZK|AUD|CAD|Fr\.|kr"
NUMBER = r"[+-]?(?:\d[\d.,'\u00a0\u202f ]*\d|\d)(?:[.,]|[eE][+-]?\d+)?|[+-]?[.,]\d+"
# Letters and signs, no digit first: km/h, m², l/100km, °C, %.
UNIT = r"[^\W\d_]{1,12}\S{0,8}|[%‰°€$£¥₹µΩ][^\s\d]{0,8}"
QUANTITY = re.compile(
    rf"(?P<sign>[+-](?=\s*(?:{CURRENCIES})))?\s*(?P<before>{CURRENCIES})?\s*"
    rf"(?P<number>{NUMBER})\s*(?P<after>{UNIT})?"
)
# Spaces and apostrophes between thousands: 5'000, 12 500.
SPACES = re.compile(r"['\u00a0\u202f ]")
THOUSANDS = re.compile(r"(?<=\d)['\u00a0\u202f ](?=\d{3}(?:\D|$))")


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
    number = THOUSANDS.sub("", found["number"])
    if SPACES.search(number) or (found["sign"] and number[0] in "+-"):
        return None
    return (found["sign"] or "") + number, found["before"] or found["after"] or ""


def unit_of(cells: Series) -> str | None:
    """The unit of a column's cells; None if these are text, or plain numbers."""
    known = cells.dropna()
    if not len(known) or parts_of(known.iloc[0]) is None:
        return None
    parts = known.map(parts_of)
    if parts.isna().any():
        return None
    counts = Counter(unit for _, unit in parts)
    bare = counts.pop("", 0)
    if not counts and known.str.strip().str.contains(SPACES).any():
        return ""
    if len(counts) != 1:
        return None
    ((unit, count),) = counts.items()
    return unit if count >= NEARLY_ALL * (count + bare) else None


def without_units(frame: DataFrame) -> tuple[DataFrame, tuple[Unit, ...]]:
    """Leave the numbers alone in columns that have a unit."""
    units: list[Unit] = []
    for name in frame:
        unit = unit_of(frame[name])
        if unit is None:
            continue
        if not units:
            frame = frame.copy()
        frame[name] = frame[name].map(_number, na_action="ignore")
        units.append(Unit(str(name), unit))
    return frame, tuple(units)


def _number(cell: str) -> str:
    parts = parts_of(cell)
    return cell if parts is None else parts[0]


def without_unit(cells: Series, unit: Unit) -> Series:
    """Numbers of a column in this unit, or without one; another unit is an error."""
    for place, cell in cells.dropna().items():
        parts = parts_of(cell)
        if parts is not None and parts[1] not in ("", unit.text):
            raise DataError(
                f"{cell[:60]!r} is not in {unit.text!r}, as in the training file.",
                column=unit.column,
                row=int(place) + 1,
            )
    return cells.map(_number, na_action="ignore")


def units_in_words(units: tuple[Unit, ...], most: int = 3) -> list[str]:
    """Notes on the columns that were read as numbers."""
    if not units:
        return []
    shown = ", ".join(
        f"{one.column!r} ({one.text or 'spaces'})" for one in units[:most]
    )
    more = f" and {len(units) - most} more" if len(units) > most else ""
    return [f"units are left out: {shown}{more} (--categorical COLUMN)"]
