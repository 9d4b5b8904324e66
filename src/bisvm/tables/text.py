"""Tables in text: which separator, which decimal sign, and whether there is a header.

Everything is read as text first; what a column holds is decided when all of it has been
seen (`columns.py`).
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bisvm.tables.errors import DataError, pandas

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
# Rows from which separator, header and decimal sign are guessed.
SAMPLE = 200
# What stands for nothing, whatever its case.
MISSING = (
    *("", "na", "n/a", "n.a.", "nan", "<na>", "null", "none", "nil"),
    *("?", "-", "--", "---", "\u2013", "."),
    *("k.a.", "k. a.", "keine angabe"),
    # What spreadsheets write where a formula has failed.
    *("#n/a", "#nv", "#n/v", "#div/0!", "#value!", "#wert!", "#ref!", "#bezug!"),
    *("#name?", "#num!", "#zahl!", "#null!"),
)
BOM = b"\xef\xbb\xbf"

POINT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
POINT_GROUPS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
COMMA = re.compile(r"[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?")
COMMA_GROUPS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d*)?")


def read_text(
    path: Path, separator: str | None, header: bool | None, missing: Sequence[str]
) -> tuple[Any, list[str]]:
    """A frame of text with numbers in English notation, and what was guessed."""
    text, encoding = decoded(path)
    sample = text[: 1 << 20].splitlines()[:SAMPLE]
    sample = [line for line in sample if line.strip()]
    if not sample:
        raise DataError("the file is empty; expected a table.", path=path)
    given = separator
    separator = separator or guess_separator(sample)
    frame = _parsed(text, separator, path)
    nothing = {*MISSING, *(one.strip().lower() for one in missing)}
    frame = frame.apply(lambda column: column.str.strip())
    # A name may be one of these words: Na is sodium.
    first = frame.iloc[0]
    frame = frame.mask(frame.apply(lambda column: column.str.lower().isin(nothing)))
    rows = frame.head(SAMPLE)
    corner = not isinstance(first.iloc[0], str)
    named = has_header(rows, corner) if header is None else header
    if named:
        names, frame = _names(first), frame.iloc[1:].reset_index(drop=True)
    else:
        names = [f"column {number}" for number in range(1, frame.shape[1] + 1)]
    frame.columns = names
    if not len(frame):
        raise DataError("there is a header and no row below it.", path=path)
    comma = decimal_comma(frame.head(SAMPLE), separator)
    notes = []
    if not given and separator != ",":
        notes.append(f"fields are separated by {SEPARATORS[separator]}s")
    if encoding not in ("utf-8", "utf-8-sig"):
        notes.append(f"the text is not UTF-8: read as {encoding}")
    if not named:
        notes.append("there is no header: columns are called by their numbers")
    if comma:
        notes.append("the decimal sign is a comma")
    return in_english(frame, comma), notes


def decoded(path: Path) -> tuple[str, str]:
    """The text of a file, and its encoding."""
    raw = path.read_bytes()
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encodings = ["utf-16"]
    elif b"\0" in raw[: 1 << 16]:
        raise DataError("this is no text: it has NUL bytes in it.", path=path)
    else:
        encodings = ["utf-8-sig", "cp1252", "latin-1"]
    for encoding in encodings:
        # The mark of UTF-8 stands before other encodings too, and is no part of a name.
        known = encoding in ("utf-8-sig", "utf-16")
        text = raw if known else raw.removeprefix(BOM)
        try:
            # DOS ended text with a character of its own.
            return text.decode(encoding).replace("\0", "").rstrip("\x1a"), encoding
        except UnicodeDecodeError:
            continue
    raise DataError("the text is neither UTF-8, UTF-16 nor Latin 1.", path=path)


def guess_separator(lines: Sequence[str]) -> str:
    """The separator that gives most lines the same number of fields, two or more.

    Commas and spaces come last among equals: they are in numbers and names, too.
    """
    best, most = ",", (0.0, 0)
    for separator in (";", "\t", "|", ",", " "):
        counts = Counter(len(_fields(line, separator)) for line in lines)
        fields, agreeing = counts.most_common(1)[0]
        score = (round(agreeing / len(lines), 1), fields)
        if fields > 1 and score > most and not (separator in ", " and score[0] < 0.5):
            best, most = separator, score
        if fields > 1 and separator in ";\t|" and score[0] > 0.9:
            return separator
    return best


def _fields(line: str, separator: str) -> list[str]:
    if separator == " ":
        return line.split()
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return [line]


def _parsed(text: str, separator: str, path: Path) -> Any:
    """All cells as text. A row that is too long is named."""
    pd = pandas()
    spaces = separator == " "
    try:
        return pd.read_csv(
            io.StringIO(text),
            sep=r"\s+" if spaces else separator,
            header=None,
            dtype="str",
            keep_default_na=False,
            na_values=[""],
            skipinitialspace=True,
            quoting=csv.QUOTE_MINIMAL,
        )
    except pd.errors.EmptyDataError:
        raise DataError("the file is empty; expected a table.", path=path) from None
    except (pd.errors.ParserError, ValueError, csv.Error, OverflowError) as error:
        raise _explained(str(error), path) from None


def _explained(said: str, path: Path) -> DataError:
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", said)
    if found is None:
        if "inside string" in said:
            said = "a quotation mark is opened and never closed."
        return DataError(f"the table cannot be read: {said.splitlines()[0]}", path=path)
    expected, line, saw = found.groups()
    return DataError(
        f"line {line} has {saw} fields, and the first line has {expected}: each row "
        "needs the same number; text with separators in it belongs in quotation marks.",
        path=path,
    )


def _names(cells: Any) -> list[str]:
    """Names of all columns, each once."""
    names: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = cell if isinstance(cell, str) and cell else f"column {number}"
        count, own = 2, name
        while own in names:
            own, count = f"{name} ({count})", count + 1
        names.append(own)
    return names


def has_header(rows: Any, corner: bool = False) -> bool:
    """Whether the first row is one: it has words where the others have numbers.

    Where no column has numbers that tell, a first row without holes is a header; and in
    any case one whose corner alone is empty: so R writes the names of rows.
    """
    if len(rows) < 2:
        return not any(_is_number(cell) for cell in rows.iloc[0])
    votes = []
    for name in rows:
        first, rest = rows[name].iloc[0], rows[name].iloc[1:].dropna()
        if isinstance(first, str) and len(rest) and rest.map(_is_number).mean() > 0.7:
            votes.append(not _is_number(first))
    whole = bool(rows.iloc[0, 1:].notna().all())
    if corner and whole and rows.shape[1] > 1 and rows.iloc[1:, 0].notna().all():
        return True
    return any(votes) if votes else whole and bool(rows.iloc[0].notna().all())


def _is_number(cell: Any) -> bool:
    patterns = (POINT, COMMA, POINT_GROUPS, COMMA_GROUPS)
    return isinstance(cell, str) and any(p.fullmatch(cell) for p in patterns)


def decimal_comma(rows: Any, separator: str) -> bool:
    """Whether numbers are written 1.234,5 and not 1,234.5.

    Decided by cells that can be one of them only; "1,234" could be both, and is German
    where fields are separated by something else than commas.
    """
    if separator == ",":
        # Commas inside fields are quoted then: rare, and worth a look all the same.
        cells = [c for name in rows for c in rows[name].dropna() if "," in c]
        if not cells:
            return False
    german = english = unclear = 0
    for name in rows:
        for cell in rows[name].dropna():
            is_german = bool(COMMA.fullmatch(cell) or COMMA_GROUPS.fullmatch(cell))
            is_english = bool(POINT.fullmatch(cell) or POINT_GROUPS.fullmatch(cell))
            german += is_german and not is_english
            english += is_english and not is_german
            unclear += is_german and is_english and "," in cell
    if german or english:
        return german > english
    return bool(unclear) and separator != ","


def in_english(frame: Any, comma: bool) -> Any:
    """Numbers with a decimal point and without groups, where a whole column has them.

    Other columns stay as they are.
    """
    plain, grouped = (COMMA, COMMA_GROUPS) if comma else (POINT, POINT_GROUPS)
    group, sign = (".", ",") if comma else (",", ".")
    frame = frame.copy()
    for name in frame:
        cells = frame[name].dropna()
        if not cells.str.contains(",", regex=False).any() and not comma:
            continue
        fits = cells.str.fullmatch(plain) | cells.str.fullmatch(grouped)
        if not len(cells) or not fits.mean() > 0.9:
            continue
        changed = cells.str.replace(group, "", regex=False)
        changed = changed.str.replace(sign, ".", regex=False)
        frame.loc[fits.index[fits], name] = changed[fits]
    return frame
