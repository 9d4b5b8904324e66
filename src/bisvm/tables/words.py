"""Words for missing values, and columns of text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bisvm.tables.errors import pandas

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Words for missing values, in lower case.
MISSING = (
    *("", "na", "n/a", "n.a.", "n.a", "nan", "<na>", "null", "none", "nil"),
    *("?", ":", "/", "-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "\u2026"),
    *("k.a.", "k. a.", "keine angabe", "leer", "fehlt", "s/d"),
    *("missing", "(missing)", "(null)", "\\n", "not available", "no data", "n.d."),
    # Missing values of SAS and Stata, each with its reason.
    *(f".{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"),
    # What MySQL writes for a date that is not known.
    *("0000-00-00", "0000-00-00 00:00:00"),
    # What spreadsheets write if a formula fails.
    *("#n/a", "#nv", "#n/v", "#div/0!", "#value!", "#wert!", "#ref!", "#bezug!"),
    *("#name?", "#num!", "#zahl!", "#null!"),
)
WHOLE = re.compile(r"-?\d+")
# Words that a note shows, and columns of each.
MOST_SHOWN = 3
# Words for missing values that are hardly names of classes.
ABBREVIATIONS = ("na", "n/a", "n.a.", "nan", "<na>", "null", "#n/a")


def missing_words(
    more: Sequence[str], known: Sequence[str] = MISSING
) -> tuple[str, ...]:
    """Words for missing values in lower case, each once."""
    return tuple(dict.fromkeys([*known, *(one.strip().lower() for one in more)]))


def without_words(frame: DataFrame, words: Sequence[str]) -> DataFrame:
    """Replace words for missing values by NaN, in columns of text.

    The word -999 means -999.00, too.
    """
    nothing, frame = set(words), frame.copy()
    numbers = "|".join(one for one in words if WHOLE.fullmatch(one))
    for name in frame:
        if is_text(frame[name]):
            cells = frame[name].str.strip().str.lower()
            found = cells.isin(nothing)
            if numbers:
                found |= cells.str.fullmatch(rf"({numbers})[.,]0+", na=False)
            frame[name] = frame[name].mask(found)
    return frame


def missing_in_words(
    cells: DataFrame, frame: DataFrame, asked: Sequence[str]
) -> list[str]:
    """A note on the usual words for missing values that were found.

    Parameters
    ----------
    cells : as spelled in the file
    frame : the same without words for missing values
    asked : words that were given, in lower case; they are no guess
    """
    found: dict[str, dict[str, int]] = {}
    for name in cells:
        words = cells[name][cells[name].notna() & frame[name].isna()]
        for word, count in words.value_counts().items():
            own = str(word).lower()
            if own in MISSING and own not in asked:
                found.setdefault(str(word), {})[str(name)] = int(count)
    if not found:
        return []
    order = sorted(found, key=lambda word: -sum(found[word].values()))
    parts = [f"{word!r} in {_columns_in_words(found[word])}" for word in order]
    more = f"; and {len(parts) - MOST_SHOWN} more words" * (len(parts) > MOST_SHOWN)
    said = "; ".join(parts[:MOST_SHOWN])
    return [f"words for missing values: {said}{more}"]


def _columns_in_words(counts: Mapping[str, int]) -> str:
    """Columns with the number of their cells, the largest first."""
    order = sorted(counts, key=lambda name: -counts[name])
    # With one column more, its name is as short as a word on it.
    most = len(order) if len(order) <= MOST_SHOWN + 1 else MOST_SHOWN
    shown = [
        f"{name!r} ({counts[name]} cell{'s' * (counts[name] > 1)})"
        for name in order[:most]
    ]
    more = len(order) - most
    return ", ".join(shown) + (f" and {more} more columns" if more else "")


def is_text(column: Series) -> bool:
    """Whether all cells that are not missing are text."""
    types = pandas().api.types
    if column.dtype == object:
        return str(types.infer_dtype(column, skipna=True)) == "string"
    return bool(types.is_string_dtype(column))
