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
from bisvm.tables.header import (
    Head,
    below,
    equal_rows,
    header_votes,
    names_of,
    several_rows,
)
from bisvm.tables.lines import (
    SAMPLE,
    SEPARATORS,
    TOTAL,
    guess_separator,
    irregular_lines,
    laid_out,
    lines_of,
    sample_of,
    skipped_in_words,
    without_tail,
    without_title,
)
from bisvm.tables.numbers import english_number, match_numbers, notations
from bisvm.tables.sources import Source
from bisvm.tables.text import cells_of, check_spaces
from bisvm.tables.units import (
    NEARLY_ALL,
    Unit,
    minus_in_front,
    with_plain_signs,
    without_any,
    without_unit,
)
from bisvm.tables.words import is_text, missing_words, without_words

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
    skip_last: int | None = None,
) -> tuple[DataFrame, list[str]]:
    """Read a text; arguments that are None are those of the training file."""
    guessed = source.separator or guess_separator(sample_of(source.text))
    own = separator or source.separator or like.separator or guessed
    named = like.named if header is None else header
    text, title = without_title(source.text, own, skip, named)
    text, tail = without_tail(text, own, skip_last, sure=True)
    notes = list(source.notes)
    notes += skipped_in_words(
        title if skip is None else "", tail if skip_last is None else ""
    )
    above = len(lines_of(title))
    text, sign, _ = laid_out(text, own)
    try:
        cells = cells_of(text, sign, above)
        if header is None and not like.named:
            _check_no_header(cells, like)
        head = _head_like(cells, header, like)
    except DataError:
        if separator is not None or own == guessed:
            raise
        raise DataError(
            f"the fields seem to be separated by {SEPARATORS[guessed]}s, but those of "
            f"the training file are separated by {SEPARATORS[own]}s: use --separator "
            f"{SEPARATORS[guessed]} if that is right."
        ) from None
    _check_lines_are_rows(text, sign, above, head.rows)
    rows = below(cells, head)
    _check_header_is_once(rows, cells, head)
    notes += sum_in_words(rows)
    by_name = like.named and head.rows > 0
    notes += [*head.notes, *check_target(rows, like, by_name=by_name)]
    typed = [head.names[place] for place in source.typed if place < len(head.names)]
    frame, more = as_like(rows, like, missing, decimal, typed)
    return frame, [*notes, *more]


def _check_lines_are_rows(text: str, separator: str, skipped: int, head: int) -> None:
    """Refuse lines that are no whole rows: each line must have its prediction."""
    found = irregular_lines(text, separator, skipped)
    check_spaces(found.short, found.fields, separator)
    if found.short:
        line, saw = found.short[0]
        raise DataError(
            f"line {line} has {saw} fields, but the first line has {found.fields}: "
            "every row needs the same number. Leave a cell empty if its value is "
            "missing, with its separator; use --skip-last if the table ends above."
        )
    if found.swallowed:
        raise DataError(
            f"the cell that ends in line {found.swallowed[0]} contains whole rows: a "
            "quotation mark seems to be missing above it."
        )
    # A blank line may stand between the header and the rows.
    blank = [line for line in found.blank if not (head and line == skipped + head + 1)]
    for lines, what in ((blank, "blank"), (found.comments, "a comment")):
        if lines:
            raise DataError(
                f"line {lines[0]} is {what}, and the predictions of the rows below "
                "would be off by a line: remove it."
            )


def _check_header_is_once(rows: DataFrame, cells: DataFrame, head: Head) -> None:
    if not head.rows:
        return
    again = equal_rows(rows, cells.iloc[0].set_axis(rows.columns)).to_numpy()
    if again.any():
        raise DataError(
            "the row repeats the header, and the predictions of the rows below would "
            "be off by a line: remove it.",
            row=int(again.argmax()) + 1,
        )


def _check_no_header(cells: DataFrame, like: TableFormat) -> None:
    rows = without_words(cells.head(SAMPLE), like.missing)
    if any(header_votes(rows)):
        raise DataError(
            "the first row looks like a header, but the training file has none: use "
            "--header yes to skip it, or --header no if it is a row of data."
        )


def _head_like(cells: DataFrame, header: bool | None, like: TableFormat) -> Head:
    """Names of the columns in the training file, and the rows above the data."""
    two = None
    if header is None and like.named:
        rows = without_words(cells.head(SAMPLE), like.missing)
        two = several_rows(cells, rows, least=1 if like.head > 1 else 2)
    header = like.named if header is None else header
    if not (header and like.named):
        return Head(list(names_by_place(cells.shape[1], like)), int(header))
    if two is not None and set(two.names) & set(like.used):
        _check_second_row(two, like)
        first, count, notes = two.given, two.rows, two.notes
    else:
        first, count, notes = tuple(cells.iloc[0]), 1, ()
    return Head(list(_names_like(first, like)), count, notes)


def _check_second_row(head: Head, like: TableFormat) -> None:
    """Refuse other units below the names of columns."""
    before, own = dict(like.second), dict(head.second)
    for name in like.used:
        if name in before and name in own and before[name] != own[name]:
            raise DataError(
                f"the second row has {own[name]!r}, but that of the training file has "
                f"{before[name]!r}.",
                column=name,
            )


def _names_like(first: Sequence[object], like: TableFormat) -> Sequence[str]:
    """Names of the columns in the training file, from the cells of its header."""
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


def sum_in_words(rows: DataFrame) -> list[str]:
    """A note on a last row that may hold sums; it is predicted, as all rows are."""
    known = [cell for cell in rows.iloc[-1] if isinstance(cell, str)]
    if not known or not TOTAL.fullmatch(known[0].rstrip(":")):
        return []
    return [f"the last row begins with {known[0]!r}; a sum has no prediction"]


def unknown_columns(frame: DataFrame, like: TableFormat) -> list[str]:
    """Columns with cells that the training file does not have."""
    if not like.named:
        return []
    unknown = [name for name in frame if name not in like.columns]
    return [name for name in unknown if frame[name].notna().any()]


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
) -> tuple[DataFrame, list[str]]:
    """Read missing values and numbers in text columns as in the training file.

    typed : columns whose numbers have a decimal point in any case

    Returns
    -------
    frame : data frame
    notes : what was taken to be as in the training file, in words
    """
    words = missing_words(missing, like.missing)
    frame, notes = with_plain_signs(without_words(frame, words)), []
    read = set(like.used or like.columns) & set(frame)
    for name in like.negative:
        if name in read and is_text(frame[name]):
            frame[name] = minus_in_front(frame[name])
    for unit in (Unit(*pair) for pair in like.units):
        if unit.column in read and is_text(frame[unit.column]):
            bare = without_any(frame[unit.column])
            if unit.text and bare.mean() > 1 - NEARLY_ALL:
                notes.append(
                    f"{bare.mean():.0%} of the cells of {unit.column!r} have no unit; "
                    f"they are taken to be in {unit.text!r}, as in the training file"
                )
            frame[unit.column] = without_unit(frame[unit.column], unit)
    texts = [name for name in like.numbers if name in frame and name not in typed]
    names = [name for name in texts if is_text(frame[name])]
    usual = decimal or like.decimal or _own_sign(frame[names])
    groups_known = decimal is not None or like.thousands is not None
    for name in names:
        cells = frame[name].dropna()
        exchanged = decimal is None and name in like.others
        sign = usual if not exchanged else "." if usual == "," else ","
        if sign == ".":
            cells = cells[cells.str.contains(",", regex=False)]
        if not len(cells):
            continue
        plain, grouped = match_numbers(cells, sign == ",")
        other_plain, other_grouped = match_numbers(cells, sign != ",")
        other = ~plain & ~grouped & (other_plain | other_grouped)
        _refuse(cells[other], name, _other_sign(sign))
        if not (groups_known or (exchanged and name in like.grouped)):
            _refuse(cells[grouped & ~plain & other_plain], name, _UNCLEAR)
        fits = plain | grouped
        frame.loc[fits.index[fits], name] = english_number(cells[fits], sign == ",")
    return frame, notes


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
