"""Files as text with separators: text itself, spreadsheets, and JSON.

A spreadsheet becomes text with commas, so that title rows, header, missing values and
units are detected as in any other text. So does JSON (`objects.py`). Text may be
compressed by gzip.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bisvm.tables.errors import DataError

GZIP = b"\x1f\x8b"
# Numbers that text of another notation would take for thousands.
THREE_DECIMALS = re.compile(r"-?[1-9]\d{0,2}\.\d{3}")
# Rows of a sheet that tell whether it has a table.
FIRST_ROWS = 50
# A word with a letter that encodings may take for another.
OTHER_LETTERS = re.compile(r"\w*[^\x00-\x7f]+\w*")
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


def of_text(path: Path, encoding: str | None) -> Source:
    """Return the text of a text file."""
    text, own = decoded(path, encoding)
    if encoding is not None or own in ("utf-8", "utf-8-sig"):
        return Source(text)
    word = OTHER_LETTERS.search(text)
    such = f", with words such as {word[0][:30]!r}" if word else ""
    note = f"the text is not UTF-8: read as {own}{such} (--encoding)"
    return Source(text, notes=(note,))


def decoded(path: Path, encoding: str | None = None) -> tuple[str, str]:
    """The text of a file, and its encoding.

    Letters with accents are single signs, however they were written.
    """
    raw = unpacked(path)
    for own in (encoding,) if encoding is not None else _encodings(raw):
        # Some programs write UTF-8's byte order mark before other encodings.
        known = own.startswith("utf")
        text = raw if known else raw.removeprefix(codecs.BOM_UTF8)
        try:
            decoded = text.decode(own).replace("\0", "").removeprefix("\ufeff")
        except UnicodeDecodeError:
            continue
        # DOS ends text with \x1a.
        return unicodedata.normalize("NFC", decoded.rstrip("\x1a")), own
    if encoding is not None:
        raise DataError(f"the text is not in the encoding {encoding}.")
    raise DataError(
        "the text is neither UTF-8, UTF-16 nor Windows-1252: name its --encoding."
    )


def _encodings(raw: bytes) -> tuple[str, ...]:
    """Encodings that are tried, by the first bytes."""
    if raw.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return ("utf-32",)
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return ("utf-16",)
    if b"\0" in raw[: 1 << 16]:
        raise DataError(
            "this is not a text file: it contains NUL bytes. If it is text in UTF-16, "
            "use --encoding utf-16-le or utf-16-be."
        )
    return ("utf-8-sig", "cp1252")


# --- spreadsheets ---------------------------------------------------------------------


def of_spreadsheet(path: Path, sheet: str | None) -> Source:
    """Return a sheet as text with commas: the one named, or the first with a table."""
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
        name = _first_table(book) if sheet is None else _sheet(names, sheet)
        values = _trimmed([list(row) for row in book[name].values])
        book.close()
        unknown = _formulas(openpyxl, path, name, values)
    except (DataError, MemoryError):
        raise
    except Exception as error:
        raise DataError(
            f"this is not an Excel file, or it is damaged: {str(error)[:200]}"
        ) from None
    notes = []
    if sheet is None and len(names) > 1:
        notes.append(f"there are {len(names)} sheets; {name!r} is read (--sheet)")
    if unknown:
        notes.append(
            f"column {unknown[0]!r} has formulas whose values are not stored, and is "
            "empty: open the file in a spreadsheet program, and save it"
        )
    filled = [row for row in values if _filled(row)]
    typed = places_of_numbers(filled)
    # A row without cells is a blank line, as in any text.
    rows = [_cells(row, typed) if _filled(row) else [] for row in values]
    return Source(with_commas(rows), ",", tuple(notes), typed=typed)


def _first_table(book: Any) -> str:
    """The first visible sheet with two rows and two columns, or else the first."""
    sheets = [one for one in book.worksheets if one.sheet_state == "visible"]
    for sheet in sheets:
        rows = _trimmed([list(row) for row in islice(sheet.values, FIRST_ROWS)])
        if len(rows) > 1 and max(map(_filled, rows)) > 1:
            return str(sheet.title)
    return str((sheets or book.worksheets)[0].title)


def _formulas(
    openpyxl: Any, path: Path, name: str, values: Sequence[Sequence[object]]
) -> list[str]:
    """Names of columns that have formulas, and no values of them."""
    columns = list(zip(*values, strict=True)) if len(values) > 1 else []
    if all(sum(not _is_empty(c) for c in column) > 1 for column in columns):
        return []
    book = openpyxl.load_workbook(path, read_only=True)
    written = zip(*_trimmed([list(row) for row in book[name].values]), strict=True)
    found = []
    for column in written:
        cells = [cell for cell in column if not _is_empty(cell)]
        if len(cells) > 1 and all(str(one).startswith("=") for one in cells[1:]):
            found.append(str(cells[0]))
    book.close()
    empty = [[str(c) for c in column if not _is_empty(c)][:2] for column in columns]
    return [one for one in found if [one] in empty]


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


def cell_of(value: object, typed: bool = True) -> str:
    """A cell as people would write it into a text file.

    typed : whether all cells of its column are numbers
        If not, 1.234 becomes 1.2340, which no notation takes for a thousand.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 1e15
        text = str(int(value)) if whole else str(value)
        return f"{text}0" if not typed and THREE_DECIMALS.fullmatch(text) else text
    if isinstance(value, datetime):
        whole = (value.hour, value.minute, value.second) == (0, 0, 0)
        return str(value.date()) if whole else value.isoformat(" ", "seconds")
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
    return str(value.isoformat() if isinstance(value, date) else value)


def _cells(row: Sequence[object], typed: Sequence[int]) -> list[str]:
    return [cell_of(one, place in typed) for place, one in enumerate(row)]


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


def places_of_numbers(rows: Sequence[Sequence[object]]) -> tuple[int, ...]:
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


def with_commas(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
