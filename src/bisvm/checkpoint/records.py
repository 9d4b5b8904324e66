"""Frozen data classes as JSON values, whole: every field is written and read.

What a run keeps on file goes through `stored` and `restored`. They take the fields from
the class, so that a field that is added later is kept as well, and a file that lacks
one is refused instead of being filled up with defaults.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_type_hints

import numpy as np

Record = TypeVar("Record")

# Arrays of up to so many numbers are written as a list that people can read, longer
# ones as base64 of their bytes.
READABLE = 64


def stored(record: Any) -> dict[str, Any]:
    """All fields of a data class, as JSON values.

    Numbers come back bit for bit; infinities and NaN are written as text.
    """
    kind: Any = type(record)
    types = _types(kind)
    return {name: _written(getattr(record, name), types[name]) for name in types}


def restored(kind: type[Record], values: Any) -> Record:
    """The data class that `stored` has written.

    Raises
    ------
    ValueError
        If a field is missing or of another type.
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"expected the fields of {kind.__name__}, got {values!r}")
    types = _types(cast("Any", kind))
    missing = [name for name in types if name not in values]
    if missing:
        raise ValueError(f"{kind.__name__} lacks {', '.join(missing)}")
    try:
        read = {name: _read(values[name], types[name]) for name in types}
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{kind.__name__} has a wrong value: {error}") from None
    return kind(**read)


@cache
def _types(kind: Any) -> dict[str, tuple[type, bool]]:
    """Type of every field, and whether it may be None."""
    hints = get_type_hints(kind)
    return {field.name: _plain(hints[field.name]) for field in fields(kind)}


def _plain(hint: Any) -> tuple[type, bool]:
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    kinds = [one for one in options if one is not NoneType]
    if len(kinds) != 1 or kinds[0] not in _WRITE:
        raise TypeError(f"{hint!r} is no type that a checkpoint can keep.")
    return kinds[0], len(kinds) < len(options)


def _written(value: Any, kind: tuple[type, bool]) -> Any:
    return None if value is None and kind[1] else _WRITE[kind[0]](value)


def _read(value: Any, kind: tuple[type, bool]) -> Any:
    return None if value is None and kind[1] else _READ[kind[0]](value)


def _number(value: float) -> float | str:
    value = float(value)
    return value if np.isfinite(value) else str(value)


def _numbers(array: np.ndarray) -> list[float | str] | str:
    if len(array) <= READABLE:
        return [_number(one) for one in array]
    raw = np.ascontiguousarray(array, dtype="<f8").tobytes()
    return base64.b64encode(raw).decode("ascii")


def _array(values: Any) -> np.ndarray:
    if isinstance(values, str):
        raw = base64.b64decode(values, validate=True)
        return np.frombuffer(raw, dtype="<f8").astype(float)
    return np.array([float(one) for one in values])


# How a value of each type is written, and how it is read again.
_WRITE: dict[type, Any] = {
    str: str,
    bool: bool,
    int: int,
    float: _number,
    np.ndarray: _numbers,
}
_READ: dict[type, Any] = {
    str: str,
    bool: bool,
    int: int,
    float: float,
    np.ndarray: _array,
}
