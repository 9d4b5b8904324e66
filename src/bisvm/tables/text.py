"""Tables in text: which separator, which decimal sign, and whether there is a header.

Everything is read as text first; what a column holds is decided when all of it has been
seen (`columns.py`).
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bisvm.tables.errors import DataError, pandas
from bisvm.tables.format import TableFormat

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

# Groups of three digits do not begin with a zero: "0.125" is no number of thousands.
POINT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
POINT_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
COMMA = re.compile(r"[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?")
COMMA_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d*)?")


def read_text(
    path: Path,
    *,
    separator: str | None,
    header: bool | None,
    missing: Sequence[str],
    decimal: str | None,
) -> tuple[Any, Any, TableFormat, list[str]]:
    """Read a text file; what is None is guessed.

    Returns
    -------
    frame : data frame of text: numbers in English notation, NaN for missing cells
    cells : the same as the file has it; empty cells are NaN
    form : how the file is written
    notes : what was guessed, in words
    """
    text, encoding = decoded(path)
    sample = sample_of(text, path)
    notes = []
    if separator is None:
        separator = guess_separator(sample)
        if separator != ",":
            notes.append(f"fields are separated by {SEPARATORS[separator]}s")
    cells = cells_of(text, separator, path)
    words = missing_words(missing)
    # A name may be one of these words: Na is sodium.
    first, rows = cells.iloc[0], without_words(cells.head(SAMPLE), words)
    if header is None:
        header = has_header(rows, corner=not isinstance(first.iloc[0], str))
    names = names_of(first) if header else numbered(len(first))
    cells = below(cells, names, header, path)
    frame = without_words(cells, words)
    if decimal is None:
        comma = decimal_comma(frame.head(SAMPLE), separator)
    else:
        comma = decimal == ","
    frame, numbers, grouped = in_english(frame, comma)
    if encoding not in ("utf-8", "utf-8-sig"):
        notes.append(f"the text is not UTF-8: read as {encoding}")
    if not header:
        notes.append("there is no header: columns are called by their numbers")
    if comma:
        notes.append("the decimal sign is a comma")
    form = TableFormat(
        kind="text",
        columns=tuple(names),
        named=header,
        separator=separator,
        decimal="," if comma else decimal or ("." if _has_points(frame) else None),
        thousands=("." if comma else ",") if grouped else None,
        numbers=numbers,
        missing=words,
    )
    return frame, cells, form, notes


def sample_of(text: str, path: Path) -> list[str]:
    """The first lines, from which separators are guessed."""
    lines = text[: 1 << 20].splitlines()[:SAMPLE]
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise DataError("the file is empty; expected a table.", path=path)
    return lines


def cells_of(text: str, separator: str, path: Path) -> Any:
    """All cells as text without spaces around it; those that are empty are NaN."""
    cells = _parsed(text, separator, path).apply(lambda column: column.str.strip())
    return cells.mask(cells == "")


def below(cells: Any, names: Sequence[str], header: bool, path: Path) -> Any:
    """The rows below the header, with the names of the columns."""
    cells = cells.iloc[1:].reset_index(drop=True) if header else cells.copy()
    cells.columns = list(names)
    if not len(cells):
        raise DataError("there is a header and no row below it.", path=path)
    return cells


def missing_words(more: Sequence[str], known: Sequence[str] = MISSING) -> Any:
    """Words for missing values in lower case, each once."""
    return tuple(dict.fromkeys([*known, *(one.strip().lower() for one in more)]))


def without_words(frame: Any, words: Sequence[str]) -> Any:
    """Replace words for missing values by NaN, in columns of text."""
    nothing, frame = set(words), frame.copy()
    for name in frame:
        if is_text(frame[name]):
            found = frame[name].str.strip().str.lower().isin(nothing)
            frame[name] = frame[name].mask(found)
    return frame


def is_text(column: Any) -> bool:
    """Whether all cells that are not missing are text."""
    types = pandas().api.types
    if column.dtype == object:
        return str(types.infer_dtype(column, skipna=True)) == "string"
    return bool(types.is_string_dtype(column))


def _has_points(frame: Any) -> bool:
    """Whether any number has a decimal point."""
    for name in frame:
        cells = frame[name].dropna()
        cells = cells[cells.str.contains(".", regex=False)]
        if len(cells) and pandas().to_numeric(cells, errors="coerce").notna().any():
            return True
    return False


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


def names_of(cells: Any) -> list[str]:
    """Names of all columns, each once."""
    names: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = cell if isinstance(cell, str) and cell else f"column {number}"
        count, own = 2, name
        while own in names:
            own, count = f"{name} ({count})", count + 1
        names.append(own)
    return names


def numbered(count: int) -> list[str]:
    """Names of columns that have none."""
    return [f"column {number}" for number in range(1, count + 1)]


def has_header(rows: Any, corner: bool = False) -> bool:
    """Whether the first row is one: it has words where the others have numbers.

    Where no column has numbers that tell, a first row without holes is a header; and in
    any case one whose corner alone is empty: so R writes the names of rows.
    """
    if len(rows) < 2:
        return not any(_is_number(cell) for cell in rows.iloc[0])
    votes = header_votes(rows)
    whole = bool(rows.iloc[0, 1:].notna().all())
    if corner and whole and rows.shape[1] > 1 and rows.iloc[1:, 0].notna().all():
        return True
    return any(votes) if votes else whole and bool(rows.iloc[0].notna().all())


def header_votes(rows: Any) -> list[bool]:
    """For every column of numbers, whether its first cell is something else."""
    votes = []
    for name in rows:
        first, rest = rows[name].iloc[0], rows[name].iloc[1:].dropna()
        if isinstance(first, str) and len(rest) and rest.map(_is_number).mean() > 0.7:
            votes.append(not _is_number(first))
    return votes


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
    german, english, unclear = notations(c for n in rows for c in rows[n].dropna())
    if german or english:
        return german > english
    return unclear[","] > 0 and separator != ","


def notations(cells: Iterable[str]) -> tuple[int, int, Counter[str]]:
    """Count numbers that are German only, English only, or both with another value.

    The last are counted by the sign that they have: "1,234" or "1.234".
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


def in_english(frame: Any, comma: bool) -> tuple[Any, tuple[str, ...], bool]:
    """Numbers with a decimal point and without groups, where a whole column has them.

    Other columns stay as they are. Also says which columns these are, and whether any
    number has a thousands sign.
    """
    frame, numbers, any_grouped = frame.copy(), [], False
    for name in frame:
        cells = frame[name].dropna()
        if not cells.str.contains(",", regex=False).any() and not comma:
            continue
        plain, grouped = match_numbers(cells, comma)
        fits = plain | grouped
        if not len(cells) or not fits.mean() > 0.9:
            continue
        frame.loc[fits.index[fits], name] = english_number(cells[fits], comma)
        numbers.append(str(name))
        any_grouped = any_grouped or bool((grouped & ~plain).any())
    return frame, tuple(numbers), any_grouped


def match_numbers(cells: Any, comma: bool) -> tuple[Any, Any]:
    """Which cells are numbers without, and which with thousands signs."""
    plain, grouped = (COMMA, COMMA_GROUPS) if comma else (POINT, POINT_GROUPS)
    return cells.str.fullmatch(plain), cells.str.fullmatch(grouped)


def english_number(cells: Any, comma: bool) -> Any:
    """Without thousands signs, and with a decimal point."""
    group, sign = (".", ",") if comma else (",", ".")
    return cells.str.replace(group, "", regex=False).str.replace(sign, ".", regex=False)
