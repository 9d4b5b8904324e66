"""Numbers as people write them: decimal sign, thousands, units, negative numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bisvm.tables.errors import DataError, pandas
from bisvm.tables.units import (
    CURRENCIES,
    Unit,
    unit_of,
    units_in_words,
    with_minus,
    with_plain_signs,
    without_units,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Rows from which the decimal sign is detected.
SAMPLE = 200
# A column with more than this share of numbers is one of numbers.
MOST = 0.9
# Thousands do not begin with a zero: "0.125" is a fraction. In India groups of two
# digits follow the first three: "12,34,567".
POINT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
POINT_GROUPS = re.compile(
    r"[+-]?([1-9][0-9]{0,2}(,[0-9]{3})+|[1-9][0-9]?(,[0-9]{2})+,[0-9]{3})(\.[0-9]*)?"
)
COMMA = re.compile(r"[+-]?([0-9]+,?[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?")
COMMA_GROUPS = re.compile(r"[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+(,[0-9]*)?")
# Whole numbers with thousands signs, and those that need none.
WHOLE_GROUPS = {
    sign: re.compile(rf"[+-]?[1-9]\d{{0,2}}({re.escape(sign)}\d{{3}})+")
    for sign in ".,"
}
# Fractions of which one has fewer than three decimals, with a probability of 0.95.
ENOUGH = 30
BELOW_THOUSAND = re.compile(r"[+-]?[1-9]\d{0,2}")


@dataclass(frozen=True)
class ReadNumbers:
    """Columns of text whose numbers were read.

    frame : numbers with a decimal point; cells that are none as they were
    decimal : decimal sign; None if there are whole numbers only
    thousands : thousands sign; None if there is none
    columns : columns whose numbers are written with these signs
    others : those of them with the two signs exchanged
    grouped : those of these that have a thousands sign and no decimals
    units : columns whose numbers have a unit
    negative : columns with negative numbers such as (1,234) or 1,234-
    notes : what was guessed, in words
    """

    frame: DataFrame
    decimal: str | None
    thousands: str | None
    columns: tuple[str, ...]
    others: tuple[str, ...]
    grouped: tuple[str, ...]
    units: tuple[Unit, ...]
    negative: tuple[str, ...]
    notes: tuple[str, ...]


def read_numbers(
    frame: DataFrame,
    decimal: str | None,
    separator: str,
    typed: Sequence[str] = (),
) -> ReadNumbers:
    """Read the numbers in columns of text.

    Parameters
    ----------
    frame : data frame of text, NaN for missing cells
    decimal : {".", ","}, optional
        Detected by default.
    separator : what separates the fields
    typed : columns whose numbers have a decimal point in any case
    """
    frame, negative = with_minus(with_plain_signs(frame))
    signed = frame
    frame, units = without_units(signed)
    notes = units_in_words(signed, units)
    if negative:
        shown = ", ".join(map(repr, negative[:3]))
        notes.append(
            f"brackets, or a minus behind, make numbers negative: {shown} "
            "(--categorical COLUMN)"
        )
    spelled = frame.drop(columns=list(typed))
    head = spelled.head(SAMPLE)
    money = {one.column for one in units if re.fullmatch(CURRENCIES, one.text)}
    signs = {name: thousands_sign(head[name].dropna(), name in money) for name in head}
    comma = decimal_comma(head, signs, separator) if decimal is None else decimal == ","
    # Columns with the decimal sign of the others between thousands.
    swapped = [name for name, sign in signs.items() if sign == ".,"[comma]]
    swapped = [
        name
        for name in swapped
        if decimal is None and thousands_sign(spelled[name].dropna(), name in money)
    ]
    changed, columns, grouped = in_english(spelled.drop(columns=swapped), comma)
    others: tuple[str, ...] = ()
    if comma or decimal is None:
        rest = spelled.drop(columns=list(columns))
        rest, others = in_other_notation(rest, comma, swapped)
        changed[rest.columns] = rest
    if comma:
        option = " (--decimal point)" if decimal is None else ""
        notes.append(f"the decimal sign is a comma{option}")
    if swapped:
        name, option = swapped[0], f"--decimal {'comma' if comma else 'point'}"
        one = next(c for c in spelled[name].dropna() if not BELOW_THOUSAND.fullmatch(c))
        notes.append(
            f"{one!r} of column {name!r} is {english_text(one, not comma)}, with a "
            f"thousands sign, unlike elsewhere ({option})"
        )
    if set(others) - set(swapped):
        sign = "point" if comma else "comma"
        shown = ", ".join(repr(name) for name in others if name not in swapped)
        notes.append(f"the decimal sign of {shown} is a {sign}, unlike elsewhere")
    if decimal is None:
        notes += unclear_in_words(spelled, columns, others, comma, separator)
    frame = frame.copy()
    frame[changed.columns] = changed
    return ReadNumbers(
        frame,
        "," if comma else decimal or ("." if grouped or _has_points(frame) else None),
        ("." if comma else ",") if grouped else None,
        (*columns, *others),
        others,
        tuple(swapped),
        units,
        negative,
        tuple(notes),
    )


def _has_points(frame: DataFrame) -> bool:
    """Whether any number has a decimal point."""
    for name in frame:
        cells = frame[name].dropna()
        cells = cells[cells.str.contains(".", regex=False)]
        if len(cells) and pandas().to_numeric(cells, errors="coerce").notna().any():
            return True
    return False


def is_number(cell: object) -> bool:
    """Whether a cell is a number in any notation, without a unit."""
    patterns = (POINT, COMMA, POINT_GROUPS, COMMA_GROUPS)
    return isinstance(cell, str) and any(p.fullmatch(cell) for p in patterns)


def are_numbers(cells: Series) -> bool:
    """Whether most cells are numbers, with a unit or without."""
    return bool(cells.map(is_number).mean() > 0.7) or unit_of(cells) is not None


# --- the decimal sign of a file -------------------------------------------------------


def decimal_comma(
    rows: DataFrame, signs: Mapping[str, str | None], separator: str
) -> bool:
    """Whether numbers are written 1.234,5 (German) and not 1,234.5 (English).

    Unambiguous cells decide. If there are none, columns with thousands signs do. If
    there are none of these, cells such as "1,234" are German, unless fields are
    separated by commas.

    signs : the thousands signs of the columns
    """
    german, english, unclear = notations(c for n in rows for c in rows[n].dropna())
    if german or english:
        return german > english
    grouped = Counter(signs.values())
    if grouped["."] != grouped[","]:
        return grouped["."] > grouped[","]
    return unclear[","] > 0 and separator != ","


def thousands_sign(cells: Series, money: bool = False) -> str | None:
    """The sign that separates thousands in a column of whole numbers, if that is clear.

    "1.250" beside "950" is no fraction: a program that writes three decimals writes
    "950.000", and one that leaves out zeros at the end writes "1.25". It writes about
    every tenth number with two decimals or fewer. Money of 10 or more has no three
    decimals.
    """
    bare = cells[cells.str.fullmatch(BELOW_THOUSAND)]
    for sign, pattern in WHOLE_GROUPS.items():
        signed = cells[cells.str.fullmatch(pattern)]
        if not len(signed) or len(bare) + len(signed) < len(cells):
            continue
        sure = signed.str.endswith("0").any() or signed.nunique() >= ENOUGH
        large = money and signed.str.match(r"[+-]?\d{2}").any()
        if large or (bare.nunique() > 1 and sure):
            return sign
    return None


def notations(cells: Iterable[str]) -> tuple[int, int, Counter[str]]:
    """Count numbers that are German only, English only, or ambiguous.

    The last are counted by their sign: "1,234" or "1.234".
    """
    german = english = 0
    unclear: Counter[str] = Counter()
    for cell in cells:
        is_german = bool(COMMA.fullmatch(cell) or COMMA_GROUPS.fullmatch(cell))
        is_english = bool(POINT.fullmatch(cell) or POINT_GROUPS.fullmatch(cell))
        german += is_german and not is_english
        english += is_english and not is_german
        if is_german and is_english:
            unclear.update(sign for sign in ",." if sign in cell)
    return german, english, unclear


def unclear_in_words(
    spelled: DataFrame,
    columns: Sequence[str],
    others: Sequence[str],
    comma: bool,
    separator: str,
) -> list[str]:
    """Notes on cells such as "1.234" that other cells of their column do not explain.

    With a decimal point and commas between fields, "1.234" is clear.
    """
    group = "." if comma else ","
    decimals, thousands = [], []
    for name in spelled.columns:
        sample = spelled[name].dropna().head(SAMPLE)
        one = next((cell for cell in sample if _is_unclear(cell)), None)
        if one is None or str(name) in others or _is_clear(sample):
            continue
        cells = spelled[name].dropna()
        if _is_clear(cells) or thousands_sign(cells) == group:
            continue
        if group in one and str(name) in columns:
            thousands.append((str(name), one))
        elif "." in one and not comma and separator != ",":
            decimals.append((str(name), one))
    notes = []
    option = f"--decimal {'point' if comma else 'comma'}"
    if decimals:
        name, one = decimals[0]
        more = f", and of {len(decimals) - 1} more columns," if decimals[1:] else ""
        notes.append(
            f"{one!r} and the like of column {name!r}{more} have a decimal point "
            f"({option})"
        )
    if thousands:
        name, one = thousands[0]
        more = f", and {len(thousands) - 1} more columns" if thousands[1:] else ""
        notes.append(
            f"{one!r} of column {name!r} is {english_text(one, comma)}, with a "
            f"thousands sign{more} ({option})"
        )
    return notes


def _is_unclear(cell: str) -> bool:
    """Whether a cell has one sign that may be the decimal sign, or not."""
    return bool(
        (COMMA.fullmatch(cell) and POINT_GROUPS.fullmatch(cell))
        or (POINT.fullmatch(cell) and COMMA_GROUPS.fullmatch(cell))
    )


def _is_clear(cells: Series) -> bool:
    """Whether a cell is a number in one notation only."""
    german, english, _ = notations(cells)
    return german + english > 0


# --- one notation for all -------------------------------------------------------------


def in_english(
    frame: DataFrame, comma: bool
) -> tuple[DataFrame, tuple[str, ...], bool]:
    """Write numeric columns with a decimal point and without thousands signs.

    Returns the frame, the columns that were changed, and whether any number had a
    thousands sign.
    """
    frame, numbers, any_grouped = frame.copy(), [], False
    for name in frame:
        cells = frame[name].dropna()
        if not cells.str.contains(",", regex=False).any() and not comma:
            continue
        plain, grouped = match_numbers(cells, comma)
        fits = plain | grouped
        if not len(cells) or not fits.mean() > MOST:
            continue
        if _in_other_notation(cells, str(name), comma):
            continue
        frame.loc[fits.index[fits], name] = english_number(cells[fits], comma)
        numbers.append(str(name))
        any_grouped = any_grouped or bool((grouped & ~plain).any())
    return frame, tuple(numbers), any_grouped


def in_other_notation(
    frame: DataFrame, comma: bool, known: Sequence[str] = ()
) -> tuple[DataFrame, tuple[str, ...]]:
    """The same for columns with the two signs exchanged, and some cells that say so.

    known : those of them that need no such cells
    """
    others = list(known)
    for name in frame.drop(columns=others):
        cells = frame[name].dropna()
        # Numbers with one point need no change.
        if not cells.str.contains(r",|\..*\.").any():
            continue
        plain, grouped = match_numbers(cells, not comma)
        own = match_numbers(cells, comma)
        only = (plain | grouped) & ~(own[0] | own[1])
        if only.any() and (plain | grouped).mean() > MOST:
            others.append(str(name))
    if not others:
        return frame, ()
    read, changed, _ = in_english(frame[others], not comma)
    return frame.assign(**read), changed


def _in_other_notation(cells: Series, name: str, comma: bool) -> bool:
    """Whether a column of a German file has English numbers, and no German ones.

    Raises an error if it has both. (In English files, a German number is a cell that is
    no number, which is an error later, if the column is used.)
    """
    if not comma:
        return False
    german, english = (match_numbers(cells, sign) for sign in (True, False))
    is_german, is_english = german[0] | german[1], english[0] | english[1]
    strange = cells[is_english & ~is_german]
    if len(strange) and (is_german & ~is_english).any():
        raise DataError(
            f"{str(strange.iloc[0])[:60]!r} has a decimal point, but other numbers of "
            "the column have a decimal comma: correct it, or declare it a missing "
            "value by --missing.",
            column=name,
            row=int(strange.index[0]) + 1,
        )
    return len(strange) > 0


def match_numbers(cells: Series, comma: bool) -> tuple[Series, Series]:
    """Which cells are numbers without, and which with thousands signs."""
    plain, grouped = (COMMA, COMMA_GROUPS) if comma else (POINT, POINT_GROUPS)
    # Text as a pattern, since pandas is faster with it.
    return cells.str.fullmatch(plain.pattern), cells.str.fullmatch(grouped.pattern)


def english_number(cells: Series, comma: bool) -> Series:
    """Numbers with a decimal point and without thousands signs."""
    group, sign = (".", ",") if comma else (",", ".")
    return cells.str.replace(group, "", regex=False).str.replace(sign, ".", regex=False)


def english_text(cell: str, comma: bool) -> str:
    """One of them."""
    group, sign = (".", ",") if comma else (",", ".")
    return cell.replace(group, "").replace(sign, ".")
