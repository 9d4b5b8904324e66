"""Read a text file in the format of the file that a model was trained on.

Differences are errors: a file that is read differently gives wrong predictions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bisvm.tables.errors import DataError
from bisvm.tables.format import TableFormat
from bisvm.tables.sources import Source
from bisvm.tables.text import (
    SAMPLE,
    SEPARATORS,
    below,
    cells_of,
    english_number,
    guess_separator,
    header_votes,
    irregular_lines,
    is_text,
    match_numbers,
    missing_words,
    names_of,
    notations,
    sample_of,
    with_minus,
    without_title,
    without_words,
)
from bisvm.tables.units import Unit, without_unit

if TYPE_CHECKING:
    from pandas import DataFrame, Series

SIGNS = {",": "comma", ".": "point"}
# In fewer rows, a column of numbers may equal the labels by chance.
ENOUGH_ROWS = 10


def read_text_like(
    source: Source,
    like: TableFormat,
    separator: str | None,
    header: bool | None,
    missing: Sequence[str],
    decimal: str | None,
    skip: int | None = None,
) -> tuple[DataFrame, list[str]]:
    """Read a text; arguments that are None are those of the training file."""
    guessed = source.separator or guess_separator(sample_of(source.text))
    own = separator or source.separator or like.separator or guessed
    text, skipped = without_title(source.text, own, skip)
    try:
        cells = cells_of(text, own)
        if header is None and not like.named:
            _check_no_header(cells, like)
        header = like.named if header is None else header
        names = _names_like(cells.iloc[0], header, like)
    except DataError:
        if separator is not None or own == guessed:
            raise
        raise DataError(
            f"the fields seem to be separated by {SEPARATORS[guessed]}s, but those of "
            f"the training file are separated by {SEPARATORS[own]}s: use --separator "
            f"{SEPARATORS[guessed]} if that is right."
        ) from None
    _check_lines_are_rows(text, own, skipped)
    cells = below(cells, names, header)
    notes = check_target(cells, like, by_name=header and like.named)
    typed = [names[place] for place in source.typed if place < len(names)]
    return as_like(cells, like, missing, decimal, typed), notes


def _check_lines_are_rows(text: str, separator: str, skipped: int) -> None:
    """Refuse lines that are no whole rows: each line must have its prediction."""
    found = irregular_lines(text, separator, skipped)
    if found.short:
        line, saw = found.short[0]
        raise DataError(
            f"line {line} has {saw} fields, but the first line has {found.fields}: "
            "every row needs the same number. Leave a cell empty if its value is "
            "missing, with its separator."
        )
    if found.blank:
        raise DataError(
            f"line {found.blank[0]} is blank, and the predictions of the rows below "
            "would be off by a line: remove it."
        )


def _check_no_header(cells: DataFrame, like: TableFormat) -> None:
    rows = without_words(cells.head(SAMPLE), like.missing)
    if any(header_votes(rows)):
        raise DataError(
            "the first row looks like a header, but the training file has none: use "
            "--header yes to skip it, or --header no if it is a row of data."
        )


def _names_like(first: Series, header: bool, like: TableFormat) -> Sequence[str]:
    """Names of the columns in the training file."""
    if not (header and like.named):
        return names_by_place(len(first), like)
    names = names_of(first)
    if not set(names) & set(like.features):
        shown = ", ".join(map(repr, like.features[:3]))
        raise DataError(
            f"the first row has no column name of the training file, such as {shown}: "
            "add a header, or use --header no if the columns are the same, in the same "
            "order."
        )
    given = [cell if isinstance(cell, str) else "" for cell in first]
    unclear = _names_of_places(list(like.columns)) | {
        name
        for name, cell in zip(names, given, strict=True)
        if not cell or Counter(given)[cell] > 1
    }
    if not unclear & set(like.used) or tuple(names) == like.columns:
        return names
    if like.target is not None and len(names) == len(like.features):
        place = like.columns.index(like.target)
        for cell in (like.target, "", re.sub(r" \(\d+\)$", "", like.target)):
            whole = names_of([*given[:place], cell, *given[place:]])
            if tuple(whole) == like.columns:
                return like.features
    one = next(name for name in like.used if name in unclear)
    raise DataError(
        "some columns have no name, or share one, and are identified by position: "
        "give all columns of the training file in the same order, with or without the "
        "target.",
        column=one,
    )


def _names_of_places(columns: list[str]) -> set[str]:
    """Names that `names_of` made from empty cells and from repeated names."""
    found = {name for k, name in enumerate(columns, 1) if name == f"column {k}"}
    for name in columns:
        twice = re.fullmatch(r"(.*) \(\d+\)", name)
        if twice and twice[1] in columns:
            found |= {name, twice[1]}
    return found


def names_by_place(count: int, like: TableFormat) -> Sequence[str]:
    """Names for columns without names, with or without the target."""
    for names in (like.columns, like.features):
        if count == len(names):
            return names
    target = ""
    if like.target is not None:
        place = like.columns.index(like.target) + 1
        target = f" with the target, column {place}, or {len(like.features)} without it"
    raise DataError(
        f"the file has {count} columns, but the training file has "
        f"{len(like.columns)}{target}. Columns without names are identified by "
        "position: give all of them, in the same order."
    )


def check_target(cells: DataFrame, like: TableFormat, *, by_name: bool) -> list[str]:
    """Check that the target is in its place, or absent; return notes."""
    if like.target is None:
        return []
    if like.target not in cells:
        return [] if by_name else _without_target(cells, like)
    # A target of numbers has no classes.
    if not is_text(cells[like.target]) or not like.labels:
        return []
    found = without_words(cells[[like.target]], like.missing)[like.target].dropna()
    strange = found[~found.isin(like.labels)]
    if not len(strange):
        return []
    said = f"{str(strange.iloc[0])[:60]!r}, which is not a class of the model"
    if by_name or len(strange) < len(found):
        return [f"the target {like.target!r} holds {said}; it is not used"]
    raise DataError(
        f"the target has this position, but it holds {said}. Columns without names are "
        "identified by position: give all columns of the training file in the same "
        "order; the target may be empty or absent.",
        column=like.target,
    )


def _without_target(cells: DataFrame, like: TableFormat) -> list[str]:
    """Refuse a file that has the target but lacks another column."""
    place = like.columns.index(str(like.target))
    for name in like.features[max(place - 1, 0) : place + 1]:
        labels = cells[name].isin(like.labels).all()
        if labels and name not in like.like_labels and len(cells) >= ENOUGH_ROWS:
            raise DataError(
                f"the file has {cells.shape[1]} columns, as many as the training file "
                "without its target, but this column holds classes of the target. "
                "Another column seems to be missing: give all columns and the target "
                "(which may be empty) in the same order.",
                column=name,
            )
    return [
        f"the columns are those of the training file without the target, "
        f"{like.target!r}"
    ]


def as_like(
    frame: DataFrame,
    like: TableFormat,
    missing: Sequence[str],
    decimal: str | None,
    typed: Sequence[str] = (),
) -> DataFrame:
    """Read missing values and numbers in text columns as in the training file.

    typed : columns whose numbers have a decimal point in any case
    """
    frame = with_minus(without_words(frame, missing_words(missing, like.missing)))
    read = set(like.used or like.columns) & set(frame)
    for unit in (Unit(*pair) for pair in like.units):
        if unit.column in read and is_text(frame[unit.column]):
            frame[unit.column] = without_unit(frame[unit.column], unit)
    texts = [name for name in like.numbers if name in frame and name not in typed]
    names = [name for name in texts if is_text(frame[name])]
    sign = decimal or like.decimal or _own_sign(frame[names])
    groups_known = decimal is not None or like.thousands is not None
    for name in names:
        cells = frame[name].dropna()
        if sign == ".":
            cells = cells[cells.str.contains(",", regex=False)]
        if not len(cells):
            continue
        plain, grouped = match_numbers(cells, sign == ",")
        other_plain, other_grouped = match_numbers(cells, sign != ",")
        other = ~plain & ~grouped & (other_plain | other_grouped)
        _refuse(cells[other], name, _other_sign(sign))
        if not groups_known:
            _refuse(cells[grouped & ~plain & other_plain], name, _UNCLEAR)
        fits = plain | grouped
        frame.loc[fits.index[fits], name] = english_number(cells[fits], sign == ",")
    return frame


_UNCLEAR = (
    "may have a decimal or a thousands sign, and the training file does not tell: "
    "write it without one, or use --decimal comma or --decimal point."
)


def _other_sign(sign: str) -> str:
    other = SIGNS["." if sign == "," else ","]
    return (
        f"is not a number with a decimal {SIGNS[sign]}, as in the training file: use "
        f"--decimal {other} if this file is different."
    )


def _own_sign(frame: DataFrame) -> str:
    """The decimal sign of this file; the training file has whole numbers only."""
    signed = {}
    for name in frame:
        cells = frame[name].dropna()
        signed[name] = cells[cells.str.contains(r"[.,]")]
    german, english, _ = notations(c for cells in signed.values() for c in cells)
    if not german and not english:
        for name, cells in signed.items():
            both = match_numbers(cells, True)[0] | match_numbers(cells, True)[1]
            _refuse(cells[both], str(name), _UNCLEAR)
    return "," if german > english else "."


def _refuse(cells: Series, name: str, why: str) -> None:
    """Raise an error for the first of these cells, if any."""
    if len(cells):
        raise DataError(
            f"{str(cells.iloc[0])[:60]!r} {why}",
            column=name,
            row=int(cells.index[0]) + 1,
        )
