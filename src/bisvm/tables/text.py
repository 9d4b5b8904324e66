"""Text files: separator, header, missing values and numbers.

All cells are read as text; `columns.py` detects the types of whole columns.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bisvm.tables.errors import DataError, pandas
from bisvm.tables.format import TableFormat
from bisvm.tables.header import Head, below, equal_rows, head_of
from bisvm.tables.lines import (
    COMMENTS,
    SEPARATORS,
    guess_separator,
    irregular_in_words,
    irregular_lines,
    is_rule,
    laid_out,
    lines_of,
    sample_of,
    skipped_in_words,
    without_tail,
    without_title,
)
from bisvm.tables.numbers import read_numbers
from bisvm.tables.sources import Source
from bisvm.tables.words import missing_in_words, missing_words, without_words

if TYPE_CHECKING:
    from pandas import DataFrame

# What cells may begin or end with, and nobody sees.
INVISIBLE = "\u200b\u2060\ufeff"


def read_text(
    source: Source,
    separator: str | None,
    header: bool | None,
    missing: Sequence[str],
    decimal: str | None,
    skip: int | None = None,
    skip_last: int | None = None,
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
    text, title = without_title(source.text, separator, skip)
    text, tail = without_tail(text, separator, skip_last)
    notes += skipped_in_words(
        title if skip is None else "", tail if skip_last is None else ""
    )
    above = len(lines_of(title))
    text, sign, laid = laid_out(text, separator)
    notes += laid
    cells = cells_of(text, sign, above)
    if cells.shape[1] == 1:
        notes.append("there is one column (--separator, if that is wrong)")
    irregular = irregular_lines(text, sign, above)
    check_spaces(irregular.short, irregular.fields, sign)
    notes += irregular_in_words(irregular)
    words = missing_words(missing)
    head = head_of(cells, words, source.header if header is None else header)
    cells, again = without_headers(cells, head)
    notes += [*again, *head.notes]
    frame = without_words(cells, words)
    notes += missing_in_words(cells, frame, missing)
    typed = [head.names[place] for place in source.typed if place < len(head.names)]
    numbers = read_numbers(frame, decimal, separator, typed)
    notes += numbers.notes
    # Columns that are empty and have no name are no columns.
    used = [
        k for k, name in enumerate(head.names) if not _is_edge(cells, name, k, head)
    ]
    form = TableFormat(
        kind="text",
        columns=tuple(head.names),
        named=head.rows > 0,
        separator=separator,
        decimal=numbers.decimal,
        thousands=numbers.thousands,
        numbers=numbers.columns,
        others=numbers.others,
        grouped=numbers.grouped,
        negative=numbers.negative,
        missing=words,
        # Plain pairs: a file of a model holds no other types.
        units=tuple((one.column, one.text) for one in numbers.units),
        head=head.rows,
        second=head.second,
    )
    return numbers.frame.iloc[:, used], cells.iloc[:, used], form, notes


def _is_edge(cells: DataFrame, name: str, place: int, head: Head) -> bool:
    """Whether a column has neither a name nor a cell."""
    made = head.rows > 0 and name == f"column {place + 1}"
    return made and bool(cells[name].isna().all())


def check_spaces(short: Sequence[tuple[int, int]], fields: int, separator: str) -> None:
    """Refuse rows with a missing cell that may be any, between spaces."""
    if separator == " " and short:
        line, saw = short[0]
        raise DataError(
            f"line {line} has {saw} fields, but the first line has {fields}, and "
            "spaces do not tell which are missing: align the columns, or separate them "
            "by another sign."
        )


def cells_of(text: str, separator: str, above: int = 0) -> DataFrame:
    """All cells as text without spaces around it; empty cells are NaN.

    ="01067" is how programs write text that a spreadsheet must not take for a number.

    above : number of lines above the text, for messages
    """
    cells = _parsed(text, separator, above).apply(lambda column: column.str.strip())
    if any(sign in text for sign in INVISIBLE):
        edges = rf"^[{INVISIBLE}\s]+|[{INVISIBLE}\s]+$"
        cells = cells.apply(lambda column: column.str.replace(edges, "", regex=True))
    if '="' in text:
        kept = r'^="(.*)"$'
        cells = cells.apply(lambda column: column.str.replace(kept, r"\1", regex=True))
    cells = without_quotes(cells.mask(cells == ""))
    if len(cells) > 1 and is_rule(list(cells.iloc[1].dropna())):
        cells = cells.drop(index=1)
    comments = cells.iloc[:, 0].str.startswith(COMMENTS, na=False)
    if comments.any() and cells.shape[1] > 1:
        cells = cells[~(comments & cells.iloc[:, 1:].isna().all(axis=1))]
    return cells.reset_index(drop=True)


def without_quotes(cells: DataFrame) -> DataFrame:
    """Cells without single quotes, if all cells of the first row have some."""
    quoted = r"^'(.*)'$"
    first = cells.iloc[0].dropna()
    if not len(first) or not first.str.fullmatch(quoted).all():
        return cells
    return cells.apply(lambda column: column.str.replace(quoted, r"\1", regex=True))


def without_headers(cells: DataFrame, head: Head) -> tuple[DataFrame, list[str]]:
    """The rows below the header, without those that repeat it, and a note on these."""
    rows = below(cells, head)
    first = cells.iloc[0].set_axis(rows.columns)
    again = equal_rows(rows, first) if head.rows else None
    if again is None or not again.any():
        return rows, []
    count, place = int(again.sum()), int(again.to_numpy().argmax()) + 1
    lines = "row repeats" if count == 1 else "rows repeat"
    note = f"{count} {lines} the header and {'is' if count == 1 else 'are'} left out"
    rows = rows[~again].reset_index(drop=True)
    return rows, [f"{note} (data row {place})"]


def _parsed(text: str, separator: str, above: int) -> DataFrame:
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
        raise _explained(str(error), above) from None


def _explained(said: str, above: int) -> DataError:
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", said)
    if found is None:
        if "inside string" in said:
            said = "a quotation mark is opened and never closed."
        return DataError(f"the table cannot be read: {said.splitlines()[0]}")
    expected, line, saw = map(int, found.groups())
    return DataError(
        f"line {line + above} has {saw} fields, but the first line has {expected}: "
        "every row needs the same number. Put text that contains separators in "
        "quotation marks, or use --skip-lines if the table begins further down."
    )
