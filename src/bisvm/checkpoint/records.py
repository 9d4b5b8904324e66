"""Frozen data classes as bytes, whole: every field is written and read.

What a search keeps on file goes through `packed` and `unpacked`. They take the fields
from the class: a field that is added later is kept as well, and a record that lacks
one, or has another version, is refused instead of being filled up with defaults.
Numbers come back bit for bit.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np

Record = TypeVar("Record")

VERSION = 1
_NAMES = "fields"


def packed(record: Any) -> bytes:
    """All fields of a data class, those of data classes inside it included."""
    arrays: dict[str, np.ndarray] = {}
    names = _collect(record, "", arrays)
    head = {"kind": type(record).__name__, "version": VERSION, "fields": names}
    stream = io.BytesIO()
    np.savez(stream, **{_NAMES: np.array(json.dumps(head))}, **arrays)
    return stream.getvalue()


def unpacked(kind: type[Record], data: bytes) -> Record:
    """The data class that `packed` has written.

    Raises
    ------
    ValueError
        If a field is missing, of another type, or the record of another version.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            head = json.loads(str(file[_NAMES]))
            arrays = {name: file[name] for name in head["fields"]}
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"it is no record of {kind.__name__}: {error}") from None
    if (head.get("kind"), head.get("version")) != (kind.__name__, VERSION):
        raise ValueError(
            f"it is a record of {head.get('kind')}, version {head.get('version')}; "
            f"expected {kind.__name__}, version {VERSION}"
        )
    return _rebuilt(kind, "", arrays)


def _collect(record: Any, prefix: str, arrays: dict[str, np.ndarray]) -> list[str]:
    """Put all fields that are not None into `arrays`; the answer is their names."""
    types = _types(type(record))
    for name, (kind, _) in types.items():
        value = getattr(record, name)
        if value is None:
            continue
        if is_dataclass(kind):
            _collect(value, f"{prefix}{name}.", arrays)
        elif kind is str:
            arrays[prefix + name] = np.array(value)
        else:
            arrays[prefix + name] = np.asarray(value)
    return list(arrays)


def _rebuilt(kind: Any, prefix: str, arrays: dict[str, np.ndarray]) -> Any:
    values = {}
    for name, (inner, optional) in _types(kind).items():
        key = prefix + name
        if is_dataclass(inner):
            present = any(one.startswith(f"{key}.") for one in arrays)
            value = _rebuilt(inner, f"{key}.", arrays) if present else None
        else:
            value = _read(inner, arrays[key]) if key in arrays else None
        if value is None and not optional:
            raise ValueError(f"{kind.__name__} lacks {name}")
        values[name] = value
    return kind(**values)


def _read(kind: Any, array: np.ndarray) -> Any:
    if kind is np.ndarray:
        return array
    if array.ndim:
        raise ValueError(f"expected one {kind.__name__}, got {array.shape}")
    return kind(array.item())


@cache
def _types(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Type of every field, and whether it may be None."""
    hints = get_type_hints(kind)
    return {field.name: _plain(hints[field.name]) for field in fields(kind)}


def _plain(hint: Any) -> tuple[Any, bool]:
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    kinds = [one for one in options if one is not NoneType]
    known = len(kinds) == 1 and (
        kinds[0] in (str, bool, int, float, np.ndarray) or is_dataclass(kinds[0])
    )
    if not known:
        raise TypeError(f"{hint!r} is no type that a checkpoint can keep.")
    return kinds[0], len(kinds) < len(options)
