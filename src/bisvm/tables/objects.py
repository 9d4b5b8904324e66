"""JSON as text with commas: one object for every row, or one list for every column."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bisvm.tables.errors import DataError
from bisvm.tables.sources import (
    Source,
    cell_of,
    decoded,
    places_of_numbers,
    with_commas,
)

Row = Mapping[str, object]


def of_json(path: Path, encoding: str | None) -> Source:
    """Return JSON as text: a list of rows, a row on every line, or columns."""
    text = decoded(path, encoding)[0]
    if text.lstrip()[:1] == "[":
        rows, key = _loaded(text), None
        if rows and all(isinstance(row, list) for row in rows):
            return _of_lists(rows)
    else:
        rows, key = _of_object(text) or (_rows_of_lines(text), None)
    if not rows:
        raise DataError("the file is empty; expected one JSON object for every row.")
    flat = [_flat(row, number) for number, row in enumerate(rows, 1)]
    names = list(dict.fromkeys(name for row in flat for name in row))
    notes = (f"the rows are those of {key!r}",) if key is not None else ()
    cells, typed = _written([[row.get(name) for name in names] for row in flat], names)
    return Source(with_commas([names, *cells]), ",", notes, header=True, typed=typed)


def _written(
    values: Sequence[Sequence[object]], names: Sequence[str]
) -> tuple[list[list[str]], tuple[int, ...]]:
    """Cells as text, and the places of columns whose numbers are stored as numbers."""
    typed = places_of_numbers(values)
    cells = [
        [_cell(one, names[place], place in typed) for place, one in enumerate(row)]
        for row in values
    ]
    return cells, typed


def _of_lists(rows: Sequence[Sequence[object]]) -> Source:
    """Rows without names; the first of them may hold the names."""
    width = max(map(len, rows))
    full = [[*row, *[None] * (width - len(row))] for row in rows]
    cells, typed = _written(full, [f"column {k + 1}" for k in range(width)])
    return Source(with_commas(cells), ",", typed=typed)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"this is not JSON: {error}.") from None


def _unique(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """An object whose names are all different."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError("an object has two values of this name.", column=twice)
    return found


def _rows_of_lines(text: str) -> list[Row]:
    rows: list[Row] = []
    # Text may contain other signs at which `splitlines` would end a line.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_unique)
        except (json.JSONDecodeError, RecursionError) as error:
            raise DataError(
                f"line {number} is not JSON: {error}. Expected an object on every "
                "line, or a list of objects."
            ) from None
        if not isinstance(row, dict):
            raise DataError(f"line {number} is not a JSON object, such as {{'a': 1}}.")
        rows.append(row)
    return rows


def _of_object(text: str) -> tuple[list[Row], str | None] | None:
    """The rows of a table that is one object, and the key that holds them.

    Such an object has a list or an object for every column, or the parts "columns" and
    "data", or one list of rows; None if the text is none of these.
    """
    try:
        found = _loaded(text)
    except DataError:
        return None
    if not isinstance(found, dict) or not found:
        return None
    names, values = found.get("columns"), list(found.values())
    if isinstance(names, list) and _are_lists(found.get("data"), len(names)):
        pairs = [list(zip(map(str, names), row, strict=True)) for row in found["data"]]
        return [_unique(row) for row in pairs], "data"
    rows = [key for key, value in found.items() if _are_rows(value)]
    if len(rows) == 1:
        return found[rows[0]], rows[0]
    if isinstance(values[0], list) and _are_lists(values, len(values[0])):
        columns = zip(*values, strict=True)
        return [dict(zip(found, row, strict=True)) for row in columns], None
    if all(isinstance(one, dict) and one.keys() == values[0].keys() for one in values):
        return [{name: found[name][key] for name in found} for key in values[0]], None
    return None


def _are_lists(values: object, length: int) -> bool:
    """Whether a list holds lists of this length."""
    if not isinstance(values, list):
        return False
    return all(isinstance(one, list) and len(one) == length for one in values)


def _are_rows(value: object) -> bool:
    """Whether a list holds objects, at least one."""
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(row, dict) for row in value)


def _flat(row: object, number: int, prefix: str = "") -> dict[str, object]:
    """A row whose inner objects are columns of their own: a.b."""
    if not isinstance(row, dict):
        raise DataError(f"entry {number} is not a JSON object, such as {{'a': 1}}.")
    flat: dict[str, object] = {}
    for key, value in row.items():
        name = f"{prefix}{key}"
        inner = isinstance(value, dict) and value
        parts = _flat(value, number, f"{name}.") if inner else {name: value}
        for one, cell in parts.items():
            if one in flat:
                raise DataError(
                    "a row has two values of this name.", column=one, row=number
                )
            flat[one] = cell
    return flat


def _cell(value: object, name: str, typed: bool) -> str:
    if isinstance(value, (dict, list)):
        raise DataError(
            "a value is a list or an object; expected numbers or text.", column=name
        )
    return cell_of(value, typed)
