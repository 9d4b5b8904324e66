"""Results go to standard output, messages to standard error."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

import numpy as np


def exit_code(signal: int) -> int:
    """The exit code of a program that a signal has ended, as shells count."""
    return 128 + signal


def say(text: str) -> None:
    """Write a message to standard error."""
    print(text, file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """Text on one line, without characters that control a terminal."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(shown.split())


def write_json(values: Mapping[str, object]) -> None:
    """Write one JSON object; NaN and infinity become null."""
    print(json.dumps(plain(values), indent=2, ensure_ascii=False, allow_nan=False))


def write_pairs(values: Mapping[str, object]) -> None:
    """Write lines of name, tab, value; nested names are joined by dots."""
    write_rows((name, _cell(value)) for name, value in flat(values))


def write_rows(
    rows: Iterable[Sequence[object]],
    stream: TextIO | None = None,
    separator: str = "\t",
) -> None:
    stream = sys.stdout if stream is None else stream
    csv.writer(stream, delimiter=separator, lineterminator="\n").writerows(rows)


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
    if isinstance(value, (np.ndarray, np.generic)):
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
