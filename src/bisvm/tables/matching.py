"""Reading a file by what a model knows of the file that it was trained on.

What differs is an error that says so: a file that is read in another way than the first
one gives wrong predictions without a word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bisvm.tables.errors import DataError
from bisvm.tables.format import TableFormat
from bisvm.tables.text import (
    SAMPLE,
    SEPARATORS,
    below,
    cells_of,
    decoded,
    english_number,
    guess_separator,
    header_votes,
    is_text,
    match_numbers,
    missing_words,
    names_of,
    notations,
    sample_of,
    without_words,
)

SIGNS = {",": "comma", ".": "point"}
# In fewer rows a column of numbers may hold nothing but labels by chance.
ENOUGH_ROWS = 10


def read_text_like(
    path: Path,
    like: TableFormat,
    *,
    separator: str | None,
    header: bool | None,
    missing: Sequence[str],
    decimal: str | None,
) -> tuple[Any, list[str]]:
    """The table of a text file, and notes; what is None is as in the model's file."""
    text, _ = decoded(path)
    sample = sample_of(text, path)
    guessed = guess_separator(sample)
    own = separator or like.separator or guessed
    try:
        cells = cells_of(text, own, path)
        if header is None and not like.named:
            _check_no_header(cells, like, path)
        header = like.named if header is None else header
        names = _names_like(cells.iloc[0], header, like, path)
    except DataError:
        if separator is not None or own == guessed:
            raise
        raise DataError(
            f"the fields seem to be separated by {SEPARATORS[guessed]}s, and those of "
            f"the file that the model was trained on by {SEPARATORS[own]}s: say "
            f"--separator {SEPARATORS[guessed]} if that is right.",
            path=path,
        ) from None
    cells = below(cells, names, header, path)
    notes = check_target(cells, like, by_name=header and like.named, path=path)
    return as_like(cells, like, missing, decimal, path), notes


def _check_no_header(cells: Any, like: TableFormat, path: Path) -> None:
    rows = without_words(cells.head(SAMPLE), like.missing)
    if any(header_votes(rows)):
        raise DataError(
            "the first row looks like a header, and the file that the model was "
            "trained on has none: say --header yes to skip it, or --header no if it "
            "is a row like the others.",
            path=path,
        )


def _names_like(
    first: Any, header: bool, like: TableFormat, path: Path
) -> Sequence[str]:
    """Names of the columns, as the model calls them."""
    if not (header and like.named):
        return names_by_place(len(first), like, path)
    names = names_of(first)
    if not set(names) & set(like.features):
        shown = ", ".join(map(repr, like.features[:3]))
        raise DataError(
            "the first row has none of the names of columns in the file that the model "
            f"was trained on, such as {shown}: add a header; or say --header no if the "
            "columns are the same, in the same order.",
            path=path,
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
        "some columns have no name, or one that others have too, and are known by "
        "their place: give all columns of the file that the model was trained on, in "
        "the same order, with or without the target.",
        path=path,
        column=one,
    )


def _names_of_places(columns: list[str]) -> set[str]:
    """Names that `names_of` has made: of empty cells, and of names that come twice."""
    found = {name for k, name in enumerate(columns, 1) if name == f"column {k}"}
    for name in columns:
        twice = re.fullmatch(r"(.*) \(\d+\)", name)
        if twice and twice[1] in columns:
            found |= {name, twice[1]}
    return found


def names_by_place(count: int, like: TableFormat, path: Path) -> Sequence[str]:
    """Names for columns without names: with or without the target."""
    for names in (like.columns, like.features):
        if count == len(names):
            return names
    target = ""
    if like.target is not None:
        place = like.columns.index(like.target) + 1
        target = f" with the target, column {place}, or {len(like.features)} without it"
    raise DataError(
        f"the file has {count} columns, and the file that the model was trained on has "
        f"{len(like.columns)}{target}. Columns without names are known by their place: "
        "give all of them, in the same order.",
        path=path,
    )


def check_target(
    cells: Any, like: TableFormat, *, by_name: bool, path: Path
) -> list[str]:
    """Whether the target is where it should be, or is left out; notes on it."""
    if like.target is None:
        return []
    if like.target not in cells:
        return [] if by_name else _without_target(cells, like, path)
    if not is_text(cells[like.target]):
        return []
    found = without_words(cells[[like.target]], like.missing)[like.target].dropna()
    strange = found[~found.isin(like.labels)]
    if not len(strange):
        return []
    said = f"{str(strange.iloc[0])[:60]!r}, which is no class of the model"
    if by_name or len(strange) < len(found):
        return [f"the target {like.target!r} holds {said}; it is not used"]
    raise DataError(
        f"this is the place of the target, and it holds {said}. Columns without names "
        "are known by their place: give all columns of the file that the model was "
        "trained on, in the same order; the target may be empty or left out.",
        path=path,
        column=like.target,
    )


def _without_target(cells: Any, like: TableFormat, path: Path) -> list[str]:
    """Refuse a file that has the target and lacks another column."""
    place = like.columns.index(str(like.target))
    for name in like.features[max(place - 1, 0) : place + 1]:
        labels = cells[name].isin(like.labels).all()
        if labels and name not in like.like_labels and len(cells) >= ENOUGH_ROWS:
            raise DataError(
                f"the file has {cells.shape[1]} columns, as many as the file that the "
                "model was trained on has without its target; but here are classes of "
                "the target. Another column seems to be missing: give all columns, in "
                "the same order, and the target (which may be empty).",
                path=path,
                column=name,
            )
    return [
        f"the columns are those of the file that the model was trained on without its "
        f"target, {like.target!r}"
    ]


def as_like(
    frame: Any,
    like: TableFormat,
    missing: Sequence[str],
    decimal: str | None,
    path: Path,
) -> Any:
    """Missing values and numbers in columns of text, as the model's file has them."""
    frame = without_words(frame, missing_words(missing, like.missing))
    names = [name for name in like.numbers if name in frame and is_text(frame[name])]
    sign = decimal or like.decimal or _own_sign(frame[names], path)
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
        _refuse(cells[other], name, path, _other_sign(sign))
        if not groups_known:
            _refuse(cells[grouped & ~plain & other_plain], name, path, _UNCLEAR)
        fits = plain | grouped
        frame.loc[fits.index[fits], name] = english_number(cells[fits], sign == ",")
    return frame


_UNCLEAR = (
    "may have a decimal or a thousands sign, and the file that the model was trained "
    "on does not tell: write it without one, or say --decimal comma or --decimal point."
)


def _other_sign(sign: str) -> str:
    other = SIGNS["." if sign == "," else ","]
    return (
        f"is no number with a decimal {SIGNS[sign]}, as those of the file that the "
        f"model was trained on: say --decimal {other} if this file is written so."
    )


def _own_sign(frame: Any, path: Path) -> str:
    """The decimal sign of this file: the model's has whole numbers only."""
    signed = {}
    for name in frame:
        cells = frame[name].dropna()
        signed[name] = cells[cells.str.contains(r"[.,]")]
    german, english, _ = notations(c for cells in signed.values() for c in cells)
    if not german and not english:
        for name, cells in signed.items():
            both = match_numbers(cells, True)[0] | match_numbers(cells, True)[1]
            _refuse(cells[both], str(name), path, _UNCLEAR)
    return "," if german > english else "."


def _refuse(cells: Any, name: str, path: Path, why: str) -> None:
    """Raise an error for the first of these cells, if there is one."""
    if len(cells):
        raise DataError(
            f"{str(cells.iloc[0])[:60]!r} {why}",
            path=path,
            column=name,
            row=int(cells.index[0]) + 1,
        )
