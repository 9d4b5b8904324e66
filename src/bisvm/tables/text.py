"""Text files: separator, decimal sign and header.

All cells are read as text; `columns.py` detects the types of whole columns.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bisvm.tables.errors import DataError, pandas
from bisvm.tables.format import TableFormat
from bisvm.tables.sources import Source
from bisvm.tables.units import parts_of, unit_of, units_in_words, without_units

if TYPE_CHECKING:
    from pandas import DataFrame, Series

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
# Rows from which separator, header and decimal sign are detected.
SAMPLE = 200
# Rows of equal length below a line that is shorter, and no header for that.
LEAST_ROWS = 10
# Lines above a table that are skipped at most, and what comments begin with.
MOST_TITLE_LINES, COMMENTS = 10, ("#", "//")
# Words for missing values, in lower case.
MISSING = (
    *("", "na", "n/a", "n.a.", "nan", "<na>", "null", "none", "nil"),
    *("?", "-", "--", "---", "\u2013", "."),
    *("k.a.", "k. a.", "keine angabe"),
    # What spreadsheets write if a formula fails.
    *("#n/a", "#nv", "#n/v", "#div/0!", "#value!", "#wert!", "#ref!", "#bezug!"),
    *("#name?", "#num!", "#zahl!", "#null!"),
)

# Thousands do not begin with a zero: "0.125" is a fraction.
POINT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
POINT_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
COMMA = re.compile(r"[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?")
COMMA_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d*)?")
# Whole numbers with thousands signs, and those that need none.
WHOLE_GROUPS = {
    sign: re.compile(rf"[+-]?[1-9]\d{{0,2}}({re.escape(sign)}\d{{3}})+")
    for sign in ".,"
}
BELOW_THOUSAND = re.compile(r"[+-]?[1-9]\d{0,2}")
# The minus of typesetters, before a number or a currency.
LONG_MINUS = re.compile(r"^\u2212(?=[\d.,€$£¥₹])")


def read_text(
    source: Source,
    separator: str | None,
    header: bool | None,
    missing: Sequence[str],
    decimal: str | None,
    skip: int | None = None,
) -> tuple[DataFrame, DataFrame, TableFormat, list[str]]:
    """Read a text; arguments that are None are detected.

    Returns
    -------
    frame : data frame of text: numbers with a decimal point, NaN for missing cells
    cells : the same as spelled in the file; empty cells are NaN
    form : format of the file
    notes : what was detected, in words, with the option that says otherwise
    """
    notes = list(source.notes)
    separator = separator or source.separator
    if separator is None:
        separator = guess_separator(sample_of(source.text))
        if separator != ",":
            sign = SEPARATORS[separator]
            notes.append(f"fields are separated by {sign}s (--separator)")
    text, skipped = without_title(source.text, separator, skip)
    if skipped and skip is None:
        lines = "1 line is" if skipped == 1 else f"{skipped} lines are"
        notes.append(f"{lines} skipped above the table (--skip-lines 0)")
    cells = cells_of(text, separator)
    notes += irregular_in_words(irregular_lines(text, separator, skipped))
    words = missing_words(missing)
    # The header is kept apart, since a name may be such a word: Na is sodium.
    first, rows = cells.iloc[0], without_words(cells.head(SAMPLE), words)
    guessed = header is None
    header = source.header if header is None else header
    if header is None:
        header = has_header(rows, corner=not isinstance(first.iloc[0], str))
    names = names_of(first) if header else numbered(len(first))
    cells = below(cells, names, header)
    frame, units = without_units(with_minus(without_words(cells, words)))
    notes += units_in_words(units)
    typed = [names[place] for place in source.typed if place < len(names)]
    spelled = frame.drop(columns=typed)
    if decimal is None:
        comma = decimal_comma(spelled.head(SAMPLE), separator)
    else:
        comma = decimal == ","
    if decimal is None and separator != "," and not comma:
        notes += unclear_in_words(spelled.head(SAMPLE))
    changed, numbers, grouped = in_english(spelled, comma)
    frame[changed.columns] = changed
    if header and guessed and _has_number_above(rows):
        notes.append("the first row has the names of columns (--header no)")
    if not header:
        option = " (--header yes)" if guessed else ""
        notes.append(f"there is no header; columns are named by their numbers{option}")
    if comma:
        option = " (--decimal point)" if decimal is None else ""
        notes.append(f"the decimal sign is a comma{option}")
    form = TableFormat(
        kind="text",
        columns=tuple(names),
        named=header,
        separator=separator,
        decimal="," if comma else decimal or _point(frame, grouped),
        thousands=("." if comma else ",") if grouped else None,
        numbers=numbers,
        missing=words,
        # Plain pairs: a file of a model holds no other types.
        units=tuple((one.column, one.text) for one in units),
    )
    return frame, cells, form, notes


def without_title(text: str, separator: str, skip: int | None) -> tuple[str, int]:
    """The text below title and comments, and how many lines were left out.

    Lines above the header have a single cell that is not empty, where most lines have
    several, or begin with a sign of comments.
    """
    if skip is None:
        skip = _title_lines(text, separator)
    if not skip:
        return text, 0
    lines = text.splitlines(keepends=True)
    if skip >= len(lines):
        raise DataError(f"there are {len(lines)} lines; {skip} cannot be skipped.")
    return "".join(lines[skip:]), skip


def _title_lines(text: str, separator: str) -> int:
    lines = text[: 1 << 16].splitlines()[:SAMPLE]
    fields = [_fields(line, separator) for line in lines]
    usual = Counter(len(row) for row in fields if len(row) > 1).most_common(1)
    if not usual:
        return 0
    width, padded = usual[0][0], False
    if _is_summary(fields, width) and lines[0].count('"') % 2 == 0:
        return 1
    for number, (line, row) in enumerate(zip(lines, fields, strict=True)):
        comment = line.lstrip().startswith(COMMENTS) and len(row) < width
        # An odd number of quotation marks: the cell goes on in the next line.
        whole = line.count('"') % 2 == 0
        title = sum(1 for cell in row if cell.strip()) <= 1 and whole
        if not (comment or title):
            # Where a title is filled up with separators, a header has to follow.
            fits = number <= MOST_TITLE_LINES and (not padded or _are_names(row, width))
            return number if fits else 0
        padded = padded or len(row) >= width
    return 0


def _is_summary(fields: Sequence[Sequence[str]], width: int) -> bool:
    """Whether the first line has counts or names of classes, and all others are rows.

    A header may lack the name of the first column, and rows may lack their last fields:
    both differ by less.
    """
    rows = fields[1:]
    regular = len(rows) >= LEAST_ROWS and all(len(row) == width for row in rows)
    return regular and 2 * len(fields[0]) <= width


def _are_names(row: Sequence[str], width: int) -> bool:
    whole = len(row) == width and all(cell.strip() for cell in row)
    return whole and not any(_is_number(cell.strip()) for cell in row)


def sample_of(text: str) -> list[str]:
    """The first lines."""
    lines = text[: 1 << 20].splitlines()[:SAMPLE]
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise DataError("the file is empty; expected a table.")
    return lines


class Irregular(NamedTuple):
    """Lines of a text file that are no whole rows, by their numbers from one.

    short : rows with fewer fields than the first, each with its number of fields
    blank : empty lines before the last row
    fields : of the first row
    """

    short: list[tuple[int, int]]
    blank: list[int]
    fields: int


def irregular_lines(text: str, separator: str, skipped: int = 0) -> Irregular:
    """Find lines that the parser would fill up or skip.

    skipped : number of lines above the text, which count
    """
    short: list[tuple[int, int]] = []
    blank: list[int] = []
    waiting: list[int] = []
    fields = 0
    for number, row in _rows_of(text, separator):
        number += skipped
        if len(row) < 2 and not "".join(row).strip():
            waiting.append(number)
            continue
        if fields:
            blank += waiting
        waiting = []
        fields = fields or len(row)
        if len(row) < fields:
            short.append((number, len(row)))
    return Irregular(short, blank, fields)


def _rows_of(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Fields of every row, and the number of its last line."""
    lines = io.StringIO(text, newline="")
    if separator == " ":
        yield from ((k, line.split()) for k, line in enumerate(lines, 1))
        return
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error:
        # A field that is too long for this reader: the parser decides.
        return


def irregular_in_words(found: Irregular) -> list[str]:
    """Notes on lines that were filled up or skipped."""
    notes = []
    if found.short:
        count, (line, saw) = len(found.short), found.short[0]
        notes.append(
            f"{count} row{'s have' if count > 1 else ' has'} fewer fields than the "
            f"first line (line {line}: {saw} of {found.fields}); the others are read "
            "as missing values"
        )
    if found.blank:
        count = len(found.blank)
        notes.append(
            f"{count} blank line{'s are' if count > 1 else ' is'} skipped (line "
            f"{found.blank[0]})"
        )
    return notes


def cells_of(text: str, separator: str) -> DataFrame:
    """All cells as text without spaces around it; empty cells are NaN."""
    cells = _parsed(text, separator).apply(lambda column: column.str.strip())
    return cells.mask(cells == "")


def below(cells: DataFrame, names: Sequence[str], header: bool) -> DataFrame:
    """The rows below the header, with names of columns."""
    cells = cells.iloc[1:].reset_index(drop=True) if header else cells.copy()
    cells.columns = list(names)
    if not len(cells):
        raise DataError("there is a header but no row below it.")
    return cells


def missing_words(
    more: Sequence[str], known: Sequence[str] = MISSING
) -> tuple[str, ...]:
    """Words for missing values in lower case, each once."""
    return tuple(dict.fromkeys([*known, *(one.strip().lower() for one in more)]))


def without_words(frame: DataFrame, words: Sequence[str]) -> DataFrame:
    """Replace words for missing values by NaN, in columns of text."""
    nothing, frame = set(words), frame.copy()
    for name in frame:
        if is_text(frame[name]):
            found = frame[name].str.strip().str.lower().isin(nothing)
            frame[name] = frame[name].mask(found)
    return frame


def with_minus(frame: DataFrame) -> DataFrame:
    """Write the long minus of negative numbers as a hyphen, in columns of text."""
    frame = frame.copy()
    for name in frame:
        if is_text(frame[name]):
            frame[name] = frame[name].str.replace(LONG_MINUS, "-", regex=True)
    return frame


def is_text(column: Series) -> bool:
    """Whether all cells that are not missing are text."""
    types = pandas().api.types
    if column.dtype == object:
        return str(types.infer_dtype(column, skipna=True)) == "string"
    return bool(types.is_string_dtype(column))


def _point(frame: DataFrame, grouped: bool) -> str | None:
    """The sign of an English file; None if it has whole numbers without thousands."""
    return "." if grouped or _has_points(frame) else None


def _has_points(frame: DataFrame) -> bool:
    """Whether any number has a decimal point."""
    for name in frame:
        cells = frame[name].dropna()
        cells = cells[cells.str.contains(".", regex=False)]
        if len(cells) and pandas().to_numeric(cells, errors="coerce").notna().any():
            return True
    return False


def guess_separator(lines: Sequence[str]) -> str:
    """The separator by which most lines have the same number of fields, at least two.

    Commas and spaces are tried last, since numbers and names contain them, too. Other
    signs may stand in the cells below a header without them: lists such as a;b.
    """
    usual = {sign: _usual_fields(lines, sign) for sign in SEPARATORS}
    regular = max(usual[sign][1] * (usual[sign][0] > 1) for sign in ";\t|,")
    best, most = ",", (0.0, 0)
    for separator in (";", "\t", "|", ",", " "):
        fields, agreeing = usual[separator]
        score = (round(agreeing / len(lines), 1), fields)
        if fields > 1 and score > most and not (separator in ", " and score[0] < 0.5):
            best, most = separator, score
        sure = separator in ";\t|" and score[0] > 0.9 and agreeing == regular
        if fields > 1 and sure:
            return separator
        if separator == " " and score == most and _are_decimal(lines):
            return separator
    return best


def _usual_fields(lines: Sequence[str], separator: str) -> tuple[int, int]:
    """The most frequent number of fields, and how many lines have it."""
    counts = Counter(len(_fields(line, separator)) for line in lines)
    return counts.most_common(1)[0]


def _are_decimal(lines: Sequence[str]) -> bool:
    """Whether every comma stands between two digits, as in decimal fractions."""
    return not any(re.search(r"(?<!\d),|,(?!\d)", line) for line in lines)


def _fields(line: str, separator: str) -> list[str]:
    if separator == " ":
        return line.split()
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return [line]


def _parsed(text: str, separator: str) -> DataFrame:
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
        raise DataError("the file is empty; expected a table.") from None
    except (pd.errors.ParserError, ValueError, csv.Error, OverflowError) as error:
        raise _explained(str(error)) from None


def _explained(said: str) -> DataError:
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", said)
    if found is None:
        if "inside string" in said:
            said = "a quotation mark is opened and never closed."
        return DataError(f"the table cannot be read: {said.splitlines()[0]}")
    expected, line, saw = found.groups()
    return DataError(
        f"line {line} has {saw} fields, but the first line has {expected}: every row "
        "needs the same number. Put text that contains separators in quotation marks."
    )


def names_of(cells: Iterable[object]) -> list[str]:
    """Names of all columns; repeated names get a number."""
    names: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = cell if isinstance(cell, str) and cell else f"column {number}"
        count, own = 2, name
        while own in names:
            own, count = f"{name} ({count})", count + 1
        names.append(own)
    return names


def numbered(count: int) -> list[str]:
    """Names for columns without names."""
    return [f"column {number}" for number in range(1, count + 1)]


def has_header(rows: DataFrame, corner: bool = False) -> bool:
    """Whether the first row is a header: it has words above numbers.

    If no column is numeric, it is one of the rows if a cell of it is found again below,
    in its column. Else a complete first row is a header. So is one that is complete but
    for its first cell: R writes names of rows below it.
    """
    if len(rows) < 2:
        return not any(_is_number(cell) for cell in rows.iloc[0])
    votes = header_votes(rows)
    whole = bool(rows.iloc[0, 1:].notna().all())
    if corner and whole and rows.shape[1] > 1 and rows.iloc[1:, 0].notna().all():
        return True
    if votes:
        return any(votes)
    return not _found_again(rows) and whole and bool(rows.iloc[0].notna().all())


def _found_again(rows: DataFrame) -> bool:
    """Whether a cell of the first row is found below, in its column."""
    return any((rows[name].iloc[1:] == rows[name].iloc[0]).any() for name in rows)


def header_votes(rows: DataFrame) -> list[bool]:
    """For every numeric column, whether its first cell is not a number."""
    votes = []
    for name in rows:
        first, rest = rows[name].iloc[0], rows[name].iloc[1:].dropna()
        if isinstance(first, str) and len(rest) and _are_numbers(rest):
            votes.append(not _is_number(first) and parts_of(first) is None)
    return votes


def _has_number_above(rows: DataFrame) -> bool:
    """Whether the first cell of a column of numbers is a number, too."""
    return not all(header_votes(rows))


def _are_numbers(cells: Series) -> bool:
    """Whether most cells are numbers, with a unit or without."""
    return bool(cells.map(_is_number).mean() > 0.7) or unit_of(cells) is not None


def _is_number(cell: object) -> bool:
    patterns = (POINT, COMMA, POINT_GROUPS, COMMA_GROUPS)
    return isinstance(cell, str) and any(p.fullmatch(cell) for p in patterns)


def decimal_comma(rows: DataFrame, separator: str) -> bool:
    """Whether numbers are written 1.234,5 (German) and not 1,234.5 (English).

    Unambiguous cells decide. If there are none, columns with thousands signs do. If
    there are none of these, cells such as "1,234" are German, unless fields are
    separated by commas.
    """
    german, english, unclear = notations(c for n in rows for c in rows[n].dropna())
    if german or english:
        return german > english
    grouped = Counter(thousands_sign(rows[name].dropna()) for name in rows)
    if grouped["."] != grouped[","]:
        return grouped["."] > grouped[","]
    return unclear[","] > 0 and separator != ","


def unclear_in_words(rows: DataFrame) -> list[str]:
    """A note on points that may separate thousands, if no number tells."""
    cells = [cell for name in rows for cell in rows[name].dropna()]
    german, english, unclear = notations(cells)
    if german or english or not unclear["."]:
        return []
    one = next(cell for cell in cells if COMMA_GROUPS.fullmatch(cell))
    return [f"{one!r} and the like have a decimal point (--decimal comma)"]


def thousands_sign(cells: Series) -> str | None:
    """The sign that separates thousands in a column of whole numbers, if that is clear.

    "1.250" beside "950" is no fraction: a program that writes three decimals writes
    "950.000", and one that leaves out zeros at the end writes "1.25".
    """
    bare = cells[cells.str.fullmatch(BELOW_THOUSAND)]
    for sign, pattern in WHOLE_GROUPS.items():
        signed = cells[cells.str.fullmatch(pattern)]
        whole = len(bare) + len(signed) == len(cells)
        if whole and bare.nunique() > 1 and signed.str.endswith("0").any():
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
        if not len(cells) or not fits.mean() > 0.9:
            continue
        if _in_other_notation(cells, str(name), comma):
            continue
        frame.loc[fits.index[fits], name] = english_number(cells[fits], comma)
        numbers.append(str(name))
        any_grouped = any_grouped or bool((grouped & ~plain).any())
    return frame, tuple(numbers), any_grouped


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
    return cells.str.fullmatch(plain), cells.str.fullmatch(grouped)


def english_number(cells: Series, comma: bool) -> Series:
    """Numbers with a decimal point and without thousands signs."""
    group, sign = (".", ",") if comma else (",", ".")
    return cells.str.replace(group, "", regex=False).str.replace(sign, ".", regex=False)
