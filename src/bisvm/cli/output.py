"""What is written where: results to standard output, words to standard error."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import numpy as np


def say(text: str) -> None:
    """A line for people."""
    print(text, file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """Text on one line, without characters that steer a terminal."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(shown.split())


def write_json(values: Mapping[str, Any]) -> None:
    """One object; numbers that JSON does not have are null."""
    text = json.dumps(plain(values), indent=2, ensure_ascii=False, allow_nan=False)
    print(text)


def write_pairs(values: Mapping[str, Any]) -> None:
    """name, tab, value: one line each; what is nested gets names with dots."""
    write_rows((name, _cell(value)) for name, value in flat(values))


def write_rows(
    rows: Iterable[Sequence[Any]], stream: TextIO | None = None, separator: str = "\t"
) -> None:
    stream = sys.stdout if stream is None else stream
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n")
    writer.writerows(rows)


def flat(values: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def plain(value: Any) -> Any:
    """Numbers, text, lists and dicts, as JSON has them."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def _cell(value: Any) -> str:
    value = plain(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)
