"""Files as text with separators: text itself, spreadsheets, and JSON.

A spreadsheet and JSON become text with commas, so that title rows, header, missing
values and units are detected as in any other text. Text may be compressed by gzip.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import NamedTuple

from bisvm.tables.errors import DataError

GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
# What a spreadsheet or an archive of text may have at most, unpacked: 1 GB.
MOST_BYTES = 1 << 30


class Source(NamedTuple):
    """The text of a file.

    separator : what separates its fields, if that is known
    notes : what was guessed, in words
    header : whether the first line has names, if that is known
    typed : places of the columns whose numbers are stored as numbers, not as text
    """

    text: str
    separator: str | None = None
    notes: tuple[str, ...] = ()
    header: bool | None = None
    typed: tuple[int, ...] = ()


def source_of(path: Path, kind: str, sheet: str | None = None) -> Source:
    """Return the text of a file.

    kind : {"csv", "tsv", "excel", "jsonl"}
    sheet : name of a sheet, or its number from one; by default the first
    """
    if kind == "excel":
        return _of_spreadsheet(path, sheet)
    if kind == "jsonl":
        return _of_json(path)
    text, encoding = decoded(path)
    if encoding in ("utf-8", "utf-8-sig"):
        return Source(text)
    return Source(text, notes=(f"the text is not UTF-8: read as {encoding}",))


def is_packed(path: Path) -> bool:
    """Whether a file is compressed by gzip."""
    with path.open("rb") as file:
        return file.read(2) == GZIP


def unpacked(path: Path, most: int = MOST_BYTES + 1) -> bytes:
    """The first bytes of a file, or of what gzip has compressed in it."""
    if not is_packed(path):
        with path.open("rb") as file:
            return file.read() if most > MOST_BYTES else file.read(most)
    try:
        with gzip.open(path) as inner:
            found = inner.read(most)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"the file is compressed, and damaged: {error}.") from None
    if len(found) > MOST_BYTES:
        raise DataError(f"the file has more than {MOST_BYTES:,} bytes unpacked.")
    return found


def decoded(path: Path) -> tuple[str, str]:
    """The text of a file, and its encoding."""
    raw = unpacked(path)
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encodings = ["utf-16"]
    elif b"\0" in raw[: 1 << 16]:
        raise DataError("this is not a text file: it contains NUL bytes.")
    else:
        encodings = ["utf-8-sig", "cp1252", "latin-1"]
    for encoding in encodings:
        # Some programs write UTF-8's byte order mark before other encodings.
        known = encoding in ("utf-8-sig", "utf-16")
        text = raw if known else raw.removeprefix(BOM)
        try:
            # DOS ends text with \x1a.
            return text.decode(encoding).replace("\0", "").rstrip("\x1a"), encoding
        except UnicodeDecodeError:
            continue
    raise DataError("the text is neither UTF-8, UTF-16 nor Latin 1.")


# --- spreadsheets ---------------------------------------------------------------------


def _of_spreadsheet(path: Path, sheet: str | None) -> Source:
    try:
        import openpyxl
    except ImportError:
        raise ImportError(
            "Excel files need openpyxl, which is not installed: pip install "
            "openpyxl, or save the table as CSV"
        ) from None
    _check_size(path)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        names = book.sheetnames
        name = _sheet(names, sheet)
        values = _trimmed([list(row) for row in book[name].values])
        book.close()
    except (DataError, MemoryError):
        raise
    except Exception as error:
        raise DataError(
            f"this is not an Excel file, or it is damaged: {str(error)[:200]}"
        ) from None
    several = sheet is None and len(names) > 1
    note = f"there are {len(names)} sheets; {name!r} is read (--sheet)"
    # A row without cells is a blank line, as in any text.
    rows = [[_cell(one) for one in row] if _filled(row) else [] for row in values]
    typed = _places_of_numbers([row for row in values if _filled(row)])
    return Source(_with_commas(rows), ",", (note,) if several else (), typed=typed)


def _check_size(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(one.file_size for one in archive.infolist())
    except zipfile.BadZipFile as error:
        raise DataError(f"this is not an Excel file: {error}.") from None
    if size > MOST_BYTES:
        raise DataError(f"the file has {size:,} bytes unpacked: save it as CSV.")


def _sheet(names: Sequence[str], sheet: str | None) -> str:
    if sheet is None:
        return names[0]
    if sheet in names:
        return sheet
    if sheet.isdigit() and 1 <= int(sheet) <= len(names):
        return names[int(sheet) - 1]
    raise DataError(f"there is no sheet {sheet!r}; there are {list(names)}.")


def _cell(value: object) -> str:
    """A cell as people would write it into a text file."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime):
        whole = (value.hour, value.minute, value.second) == (0, 0, 0)
        return str(value.date()) if whole else value.isoformat(" ", "seconds")
    return str(value.isoformat() if isinstance(value, date) else value)


def _trimmed(rows: list[list[object]]) -> list[list[object]]:
    """Rows of equal length, without empty columns and rows at the edges."""
    widest = max((_filled(row) for row in rows), default=0)
    filled = [k for k, row in enumerate(rows) if _filled(row)]
    rows = rows[filled[0] : filled[-1] + 1] if filled else []
    left = min((_empty(row) for row in rows if _filled(row)), default=0)
    return [(row + [None] * widest)[left:widest] for row in rows]


def _is_empty(cell: object) -> bool:
    return cell is None or cell == ""


def _filled(row: Sequence[object]) -> int:
    return max((k for k, cell in enumerate(row, 1) if not _is_empty(cell)), default=0)


def _empty(row: Sequence[object]) -> int:
    return next((k for k, cell in enumerate(row) if not _is_empty(cell)), len(row))


def _places_of_numbers(rows: Sequence[Sequence[object]]) -> tuple[int, ...]:
    """Columns that have numbers, and below the first of them nothing else."""
    return tuple(
        place
        for place, column in enumerate(zip(*rows, strict=True))
        if _are_numbers_below(column)
    )


def _are_numbers_below(column: Sequence[object]) -> bool:
    cells = [cell for cell in column if not _is_empty(cell)]
    first = next((k for k, cell in enumerate(cells) if _is_number(cell)), len(cells))
    return first < len(cells) and all(map(_is_number, cells[first:]))


def _is_number(cell: object) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)


def _with_commas(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


# --- JSON -----------------------------------------------------------------------------


def _of_json(path: Path) -> Source:
    """One object for every row: a list of them, or one on every line."""
    text = decoded(path)[0]
    rows = _listed_rows(text) if text.lstrip()[:1] == "[" else _rows_of_lines(text)
    if not rows:
        raise DataError("the file is empty; expected one JSON object for every row.")
    names = dict.fromkeys(str(name) for row in rows for name in row)
    values = [[row.get(name) for name in names] for row in rows]
    cells = [
        [_json_cell(one, name) for one, name in zip(row, names, strict=True)]
        for row in values
    ]
    text = _with_commas([list(names), *cells])
    return Source(text, ",", header=True, typed=_places_of_numbers(values))


def _listed_rows(text: str) -> list[Mapping[str, object]]:
    try:
        rows: list[Mapping[str, object]] = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"this is not JSON: {error}.") from None
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise DataError(f"entry {number} is not a JSON object, such as {{'a': 1}}.")
    return rows


def _rows_of_lines(text: str) -> list[Mapping[str, object]]:
    rows: list[Mapping[str, object]] = []
    # Text may contain other signs at which `splitlines` would end a line.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise DataError(
                f"line {number} is not JSON: {error}. Expected an object on every "
                "line, or a list of objects."
            ) from None
        if not isinstance(row, dict):
            raise DataError(f"line {number} is not a JSON object, such as {{'a': 1}}.")
        rows.append(row)
    return rows


def _json_cell(value: object, name: str) -> str:
    if isinstance(value, (dict, list)):
        raise DataError(
            "a value is a list or an object; expected numbers or text.", column=name
        )
    return _cell(value)
