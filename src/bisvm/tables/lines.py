"""The lines of a text: separators, titles above the table, footnotes below it."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from bisvm.tables.errors import DataError
from bisvm.tables.header import RULE, is_year
from bisvm.tables.numbers import COMMA, is_number
from bisvm.tables.units import parts_of

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
# Rows from which separator and title are detected.
SAMPLE = 200
# Fields between spaces.
SPACED = re.compile(r'"(?:[^"]|"")*"|\S+')
# Rows of equal length below a line that is shorter, and no header for that.
LEAST_ROWS = 10
# Lines above a table that are skipped at most, and what comments begin with.
MOST_TITLE_LINES, COMMENTS = 50, ("#", "//")
# What footnotes begin with, and the first cell of a row of sums.
FOOTNOTE = re.compile(
    r"[*†‡§©¹²³]|\(c\)|\(?\d+ (rows?|records?|zeilen)\b|"
    r"(sources?|notes?|footnotes?|generated|exported|created|copyright|"
    r"quellen?|hinweise?|anmerkung(en)?|fu(ß|ss)noten?|stand|erstellt|"
    r"remarques?|nota|fuente|fonte)\b\s*[:*.(\d]",
    re.IGNORECASE,
)
# A line below the name of a column; those of Markdown may be short.
RULES = rf"{RULE.pattern}|:-+:?|-+:"
TOTAL = re.compile(
    r"(grand |sub|sub-|overall )?totals?|sum|(gesamt|zwischen)?summen?|insgesamt|"
    r"gesamt|somme|total général|suma|totale|totaal|mean|average|mittelwert|"
    r"durchschnitt|moyenne|median|all",
    re.IGNORECASE,
)


def lines_of(text: str) -> list[str]:
    """The lines of a text, with their ends.

    Text may contain other signs at which `splitlines` would end a line.
    """
    return list(io.StringIO(text, newline=""))


def sample_of(text: str) -> list[str]:
    """The first lines."""
    lines = [line.rstrip("\r\n") for line in lines_of(text[: 1 << 20])[:SAMPLE]]
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise DataError("the file is empty; expected a table.")
    return lines


def fields_of(line: str, separator: str) -> list[str]:
    """The fields of a line that is a whole row."""
    if separator == " ":
        return SPACED.findall(line)
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return [line]


# --- separators -----------------------------------------------------------------------


def guess_separator(lines: Sequence[str]) -> str:
    """The separator by which most lines have the same number of fields, at least two.

    Commas and spaces are tried last, since numbers and names contain them, too. Other
    signs may stand in the cells below a header without them: lists such as a;b.
    """
    usual = {sign: _usual_fields(lines, sign) for sign in SEPARATORS}
    regular = max(usual[sign][1] * (usual[sign][0] > 1) for sign in ";\t|,")
    scores = {
        sign: (round(agreeing / len(lines), 1), fields)
        for sign, (fields, agreeing) in usual.items()
        if fields > 1
    }
    for sign in ";\t|":
        sure = scores.get(sign, (0.0, 0))[0] > 0.9
        if sure and usual[sign][1] == regular:
            return " " if sign == "\t" and _is_spaced(lines) else sign
    likely = [s for s in ";\t|," if s in scores and (s != "," or scores[s][0] >= 0.5)]
    best = max(likely, key=lambda sign: scores[sign], default=",")
    most, spaces = scores.get(best, (0.0, 0)), scores.get(" ", (0.0, 0))
    # Spaces stand around other separators, and in text between them.
    decimal = best == "," and _are_decimal(lines)
    more = spaces[0] >= most[0] if decimal else spaces[0] > most[0]
    return " " if more and spaces[0] >= 0.5 else best


def better_separator(text: str, given: str) -> str:
    """A sentence on a separator that fits a text better than the one given, or "".

    By the better one, more lines have the same number of fields, at least two.
    """
    lines = sample_of(text)
    guessed = guess_separator(lines)
    fields, agreeing = _usual_fields(lines, given)
    others, more = _usual_fields(lines, guessed)
    if guessed == given or others < 2 or (fields > 1 and more <= agreeing):
        return ""
    return (
        f"The fields seem to be separated by {SEPARATORS[guessed]}s, not by "
        f"{SEPARATORS[given]}s: use --separator {SEPARATORS[guessed]}."
    )


def _usual_fields(lines: Sequence[str], separator: str) -> tuple[int, int]:
    """The most frequent number of fields, and how many lines have it."""
    counts = Counter(len(fields_of(line, separator)) for line in lines)
    return counts.most_common(1)[0]


def _is_spaced(lines: Sequence[str]) -> bool:
    """Whether most lines have numbers between several spaces, and tabs besides."""
    spaced = [fields_of(line, " ") for line in lines if "  " in line]
    regular = len(spaced) == len(lines) and len({len(row) for row in spaced}) == 1
    return regular and 2 * sum(map(is_number, spaced[0])) > len(spaced[0])


def _are_decimal(lines: Sequence[str]) -> bool:
    """Whether every comma is the decimal sign of a number between spaces."""
    cells = (cell for line in lines for cell in fields_of(line, " ") if "," in cell)
    return all(map(COMMA.fullmatch, cells))


# --- lines above the table ------------------------------------------------------------


def without_title(
    text: str, separator: str, skip: int | None, header: bool = True
) -> tuple[str, str]:
    """The text below title and comments, and the lines that were left out.

    Lines above the header have a single cell that is not empty, where most lines have
    several, or begin with a sign of comments. Lines of another
    number of fields, such as "Operator;Smith", are skipped if names of columns follow
    that stand above numbers; if such lines are filled up with separators, they have
    half the cells of a row at most, and a blank line follows.

    header : whether there may be one
    """
    if skip is None:
        skip = _title_lines(text, separator, header)
    if not skip:
        return text, ""
    lines = lines_of(text)
    if skip >= len(lines):
        raise DataError(f"there are {len(lines)} lines; {skip} cannot be skipped.")
    return "".join(lines[skip:]), "".join(lines[:skip])


def _title_lines(text: str, separator: str, header: bool) -> int:
    lines = [line.rstrip("\r\n") for line in lines_of(text[: 1 << 16])[:SAMPLE]]
    fields = [fields_of(line, separator) for line in lines]
    width = _usual_width(fields)
    if not width:
        return 0
    if _is_summary(fields, width) and lines[0].count('"') % 2 == 0:
        return 1
    kinds = [_kind_above(*pair, width) for pair in zip(lines, fields, strict=True)]
    first = kinds.index("") if "" in kinds else 0
    # Without a blank line below, these are names of groups of columns.
    while first and kinds[first - 1] == "padded":
        first -= 1
    if first > MOST_TITLE_LINES:
        return 0
    rows, entries = fields[first:], set(kinds[:first]) - {"title"}
    # Where a title is filled up with separators, a header has to follow. It may have
    # two rows.
    filled_up = any(len(row) >= width for row in fields[:first])
    names = header and any(_are_names(row, width) for row in rows[:2])
    if (entries or filled_up) and not names:
        return 0
    return 0 if entries and not _are_above_numbers(rows, width) else first


def _kind_above(line: str, row: Sequence[str], width: int) -> str:
    """What a line above a table is: "title", "entry", "padded", or "" for none."""
    cells = len(_filled(row))
    # An odd number of quotation marks: the cell goes on in the next line.
    whole = line.count('"') % 2 == 0
    if (cells <= 1 and whole) or (
        line.lstrip().startswith(COMMENTS) and len(row) < width
    ):
        return "title"
    if len(row) != width:
        return "entry" if whole else ""
    return "padded" if whole and 2 * cells <= width else ""


def _usual_width(fields: Sequence[Sequence[str]]) -> int:
    """The number of fields that most lines have; 0 if none has several."""
    usual = Counter(len(row) for row in fields if len(row) > 1).most_common(1)
    return usual[0][0] if usual else 0


def _filled(row: Sequence[str]) -> list[str]:
    return [cell.strip() for cell in row if cell.strip()]


def _is_summary(fields: Sequence[Sequence[str]], width: int) -> bool:
    """Whether the first line has counts or names of classes, and all others are rows.

    A header may lack the name of the first column, and rows may lack their last fields:
    both differ by less.
    """
    rows = fields[1:]
    regular = len(rows) >= LEAST_ROWS and all(len(row) == width for row in rows)
    return regular and 2 * len(fields[0]) <= width


def _are_names(row: Sequence[str], width: int) -> bool:
    """Whether most cells are there, and none is a number but for years."""
    cells = _filled(row)
    named = not any(is_number(cell) and not is_year(cell) for cell in cells)
    return len(row) == width and 2 * len(cells) > width and named


def _are_above_numbers(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether the cells of the first row are found in no other, and one has numbers."""
    whole = [row for row in rows if len(row) == width]
    columns = [[cell.strip() for cell in column] for column in zip(*whole, strict=True)]
    if any(cells[0] and cells[0] in cells[1:] for cells in columns):
        return False
    known = [[cell for cell in cells[1:] if cell] for cells in columns]
    return any(
        cells and sum(map(_has_number, cells)) > 0.7 * len(cells) for cells in known
    )


def _has_number(cell: str) -> bool:
    return is_number(cell) or parts_of(cell) is not None


# --- lines below the table ------------------------------------------------------------


def without_tail(
    text: str, separator: str, skip: int | None, sure: bool = False
) -> tuple[str, str]:
    """The text above footnotes and sums, and the lines that were left out.

    These are at the end of a file: comments, lines with one cell that is text, lines
    that begin with a word such as "Source:" or "Total", and what stands below a blank
    line if it has fewer fields than a row, or half as many cells at most. Blank lines
    at the end count as none of them.

    sure : whether only lines that cannot be rows are left out
    """
    lines = lines_of(text)
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    if skip is None:
        skip = end - _first_below(lines[:end], separator, sure)
    if not skip:
        return text, ""
    if skip >= end:
        raise DataError(f"there are {end} lines; the last {skip} cannot be skipped.")
    return "".join(lines[: end - skip]), "".join(lines[end - skip : end])


def _first_below(lines: Sequence[str], separator: str, sure: bool) -> int:
    """The number of the first line below the table."""
    width = _usual_width([fields_of(one, separator) for one in lines[:SAMPLE]])
    last = len(lines)
    # Lines of a cell with a quotation mark and several lines are none of these.
    if width < 2 or any(line.count('"') % 2 for line in lines[-SAMPLE:]):
        return last
    found = last
    for number in range(last - 1, max(last - SAMPLE, 0), -1):
        row = fields_of(lines[number], separator)
        if not _filled(row):
            continue
        below = _is_footnote(lines[number], row, width, sure)
        below = below or (not sure and _is_total(lines, row, separator))
        if not below:
            break
        found = number
    return found if sure else _first_of_block(lines, found, separator, width)


def _first_of_block(lines: Sequence[str], end: int, separator: str, width: int) -> int:
    """The first of the lines below a blank one that are no rows of the table."""
    found = end
    for number in range(end - 1, max(end - SAMPLE, 0), -1):
        row = fields_of(lines[number], separator)
        cells = _filled(row)
        shorter = len(row) < width and separator != " "
        if len(cells) > width // 2 and not shorter:
            break
        if not lines[number].strip():
            found = number
    return found if width > 2 else end


def _is_footnote(line: str, row: Sequence[str], width: int, sure: bool) -> bool:
    """Whether a line has text that is no row."""
    cells = _filled(row)
    if len(row) < width and line.lstrip().startswith(COMMENTS):
        return True
    if RULE.fullmatch(line.strip()) and len(row) < width:
        return True
    if FOOTNOTE.match(cells[0]) and (len(cells) == 1 or len(row) != width):
        return True
    # A cut row begins with a name or a number; a sentence has several words.
    words = len(cells) == 1 and cells[0] == row[0].strip() and " " in cells[0]
    return words and parts_of(cells[0]) is None and not (sure and len(row) >= width)


def _is_total(lines: Sequence[str], row: Sequence[str], separator: str) -> bool:
    """Whether a row at the end has sums: no other row begins with such a word."""
    word = _filled(row)[0].rstrip(":")
    if not TOTAL.fullmatch(word) or is_number(word):
        return False
    signs = re.escape(f'"{separator}')
    begins = re.compile(rf"[\s{signs}]*{re.escape(word)}\b", re.IGNORECASE)
    return sum(begins.match(line) is not None for line in lines) == 1


# --- lines that are no rows -----------------------------------------------------------


class Irregular(NamedTuple):
    """Lines of a text file that are no whole rows, by their numbers from one.

    short : rows with fewer fields than the first, each with its number of fields
    blank : empty lines before the last row
    comments : lines with nothing but a comment
    swallowed : last lines of cells that contain whole rows, as if a quotation mark were
        missing
    fields : of the first row
    """

    short: list[tuple[int, int]]
    blank: list[int]
    comments: list[int]
    swallowed: list[int]
    fields: int


def irregular_lines(text: str, separator: str, skipped: int = 0) -> Irregular:
    """Find lines that the parser would fill up or skip.

    skipped : number of lines above the text, which count
    """
    short: list[tuple[int, int]] = []
    blank: list[int] = []
    waiting: list[int] = []
    comments: list[int] = []
    swallowed: list[int] = []
    fields, rows = 0, 0
    for number, row in rows_of(text, separator):
        number += skipped
        if len(row) < 2 and not "".join(row).strip():
            waiting.append(number)
            continue
        if fields:
            blank += waiting
        waiting, rows = [], rows + 1
        fields = fields or len(row)
        if is_comment(row) and fields > 1:
            comments.append(number)
        elif len(row) < fields and not (rows == 2 and is_rule(row)):
            short.append((number, len(row)))
        if any("\n" in cell and _has_rows(cell, separator, fields) for cell in row):
            swallowed.append(number)
    return Irregular(short, blank, comments, swallowed, fields)


def _has_rows(cell: str, separator: str, fields: int) -> bool:
    """Whether a line of a cell, between the first and the last, is a row."""
    inside = cell.splitlines()[1:-1]
    return fields > 1 and any(line.count(separator) == fields - 1 for line in inside)


def is_comment(row: Sequence[str]) -> bool:
    """Whether a row has nothing but a comment in its first cell."""
    return row[0].lstrip().startswith(COMMENTS) and not _filled(row[1:])


def is_rule(row: Sequence[str]) -> bool:
    """Whether a row has nothing but lines: ----, ====, |:--|--:|."""
    cells = _filled(row)
    return bool(cells) and all(re.fullmatch(RULES, cell) for cell in cells)


def rows_of(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Fields of every row, and the number of its last line."""
    lines = io.StringIO(text, newline="")
    if separator == " ":
        yield from ((k, SPACED.findall(line)) for k, line in enumerate(lines, 1))
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
    for what, lines in (("blank line", found.blank), ("comment", found.comments)):
        if lines:
            are = f"{what}s are" if len(lines) > 1 else f"{what} is"
            notes.append(f"{len(lines)} {are} skipped (line {lines[0]})")
    if found.swallowed:
        notes.append(
            f"the cell that ends in line {found.swallowed[0]} contains whole rows: a "
            "quotation mark may be missing above it"
        )
    return notes


def skipped_in_words(above: str, below: str) -> list[str]:
    """Notes on lines above and below the table."""
    notes = []
    for text, where, option in (
        (above, "above", "--skip-lines 0"),
        (below, "below", "--skip-last 0"),
    ):
        lines = lines_of(text)
        are = "1 line is" if len(lines) == 1 else f"{len(lines)} lines are"
        shown = next(filter(None, (one.strip(" ,;|\t\r\n") for one in lines)), "")
        such = f": {shown[:40]!r}{' ...' if len(lines) > 1 else ''}" if shown else ""
        if lines:
            notes.append(f"{are} skipped {where} the table{such} ({option})")
    return notes


# --- layouts that become commas -------------------------------------------------------


def laid_out(text: str, separator: str) -> tuple[str, str, list[str]]:
    """The text with its separator, after a change of layout where one is needed.

    If all rows have one field more than the header, this gets one: at its end if those
    fields are empty, or else at its beginning for the names of rows, as R writes them.
    Columns that are aligned by spaces, and have empty cells or spaces inside, get
    commas. Returns notes on this, too.
    """
    place = _extra_field(islice(rows_of(text, separator), SAMPLE))
    if place is not None and _extra_field(rows_of(text, separator)) == place:
        if place == 0:
            note = "the header has no name for the first column, which names the rows"
            return f'""{separator}{text}', separator, [note]
        head, end, rest = text.partition("\n")
        return f"{head.rstrip(chr(13))}{separator}{end}{rest}", separator, []
    if separator == " ":
        widths = {len(row) for _, row in rows_of(text, separator) if row}
        aligned = _columns_by_place(text) if len(widths) > 1 else None
        if aligned is not None:
            return aligned, ",", []
    return text, separator, []


def _extra_field(rows: Iterable[tuple[int, list[str]]]) -> int | None:
    """The place of a field, 0 or -1, that all rows have more than the first.

    None of the names of columns is a number.
    """
    first, *rest = [row for _, row in rows if row] or [[]]
    if not (first and rest) or any(len(row) != len(first) + 1 for row in rest):
        return None
    if not any(row[-1] for row in rest):
        return -1
    names = _are_row_names([row[0] for row in rest])
    # Below a title, the first of these rows would be the header.
    numbers = any(map(_has_number, rest[0][1:])) and not any(map(is_number, first))
    return 0 if names and numbers else None


def _are_row_names(cells: Sequence[str]) -> bool:
    """Whether all are different: whole numbers that grow, or none is a number.

    Others may be a part of numbers with a decimal comma.
    """
    numbers = [int(cell) for cell in cells if cell.isdecimal()]
    grow = len(numbers) == len(cells) and numbers == sorted(numbers)
    words = len(cells) > 1 and not any(map(is_number, cells))
    return len(set(cells)) == len(cells) > 1 and (grow or words)


def _columns_by_place(text: str) -> str | None:
    """Lines with columns at the same places, with commas; None if there are none."""
    lines = [line.expandtabs().rstrip() for line in lines_of(text)]
    width = max(map(len, lines))
    everything = ["" if RULE.fullmatch(one) else one.ljust(width) for one in lines]
    padded = [line for line in everything if line]
    blank = [all(line[k] == " " for line in padded) for k in range(width)]
    bounds = [k for k in range(width) if not blank[k] and (not k or blank[k - 1])]
    # A column has a name; what has none belongs to the column before it.
    first = [k for j, k in enumerate(bounds) if not j or _name(padded[0], bounds, j)]
    names = [_name(padded[0], first, j) for j in range(len(first))]
    # A name, or the cells of most rows, have no spaces inside.
    fields = Counter(len(line.split()) for line in padded[1:]).most_common(1)
    known = {len(padded[0].split()), *(count for count, _ in fields)}
    if len(first) < 2 or len(set(names)) < len(names) or len(first) not in known:
        return None
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    for line in everything:
        writer.writerow(_name(line, first, j) for j in range(len(first) if line else 0))
    return out.getvalue()


def _name(line: str, first: Sequence[int], number: int) -> str:
    """The cell of a column that begins at a place, up to the next one."""
    end = first[number + 1] if number + 1 < len(first) else len(line)
    return line[first[number] : end].strip()
