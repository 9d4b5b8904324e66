"""Results go to standard output, messages to standard error."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

# What cells begin with that spreadsheets take for formulas (OWASP, CSV injection).
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def exit_code(signal: int) -> int:
    """The exit code of a program that a signal has ended, as shells count."""
    return 128 + signal


def visible(text: str) -> str:
    r"""Text whose control characters are written as escapes, such as \u001b.

    Names of columns and classes come from files, and a terminal would obey them. Tabs
    and ends of lines stay, and JSON stays the same JSON.
    """
    return "".join(
        c if c.isprintable() or c in "\t\n" else json.dumps(c)[1:-1] for c in text
    )


def message_of(error: Exception) -> str:
    """What an error says, in one line."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return one_line(f"{where}{error.strerror}")
    return one_line(str(error) or type(error).__name__)


def say(text: str) -> None:
    """Write a message to standard error."""
    print(visible(text), file=sys.stderr, flush=True)


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output."""
    for line in lines:
        print(visible(line))


def one_line(text: str) -> str:
    """Text on one line, without characters that control a terminal."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(shown.split())


def write_json(values: Mapping[str, object]) -> None:
    """Write one JSON object to standard output."""
    print(json_of(values))


def json_of(values: Mapping[str, object]) -> str:
    """One JSON object; NaN and infinity become null."""
    text = json.dumps(plain(values), indent=2, ensure_ascii=False, allow_nan=False)
    return visible(text)


def write_pairs(values: Mapping[str, object]) -> None:
    """Write lines of name, tab, value; nested names are joined by dots."""
    write_rows((visible(name), visible(_cell(value))) for name, value in flat(values))


def write_rows(
    rows: Iterable[Sequence[object]],
    stream: TextIO | None = None,
    separator: str = "\t",
) -> None:
    """Write rows as they are; on a terminal, control characters as escapes."""
    stream = sys.stdout if stream is None else stream
    if stream.isatty():
        rows = ([visible(str(cell)) for cell in row] for row in rows)
    csv.writer(stream, delimiter=separator, lineterminator="\n").writerows(rows)


def write_table(rows: Sequence[Sequence[object]]) -> None:
    """Write rows with columns below each other for people, with tabs for programs.

    The first column is text; the others are numbers.
    """
    if not sys.stdout.isatty():
        return write_rows(rows)
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    first, *widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for name, *numbers in cells:
        pairs = zip(numbers, widths, strict=True)
        shown = [f"{number:>{width}}" for number, width in pairs]
        print("  ".join([f"{name:<{first}}", *shown]))


def safe_for_spreadsheets(cell: str) -> str:
    """Put an apostrophe before a cell that a spreadsheet would run as a formula.

    Numbers, and signs that stand alone, are no formulas.
    """
    if not cell.startswith(FORMULA_STARTS) or len(cell) == 1:
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def rounded(value: float) -> str:
    """A number of six digits for people; whole numbers keep all of theirs."""
    return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"


def flat(
    values: Mapping[str, object], prefix: str = ""
) -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def plain(value: object) -> object:
    """Numbers, text, lists and dicts, as JSON has them."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    # Arrays and numbers of NumPy, which is not imported before a command runs.
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def _cell(value: object) -> str:
    value = plain(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)
