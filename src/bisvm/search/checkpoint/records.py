"""Frozen data classes as bytes, whole: every field is written and read.

What a search keeps on file goes through `packed` and `unpacked`. They take the fields
from the class: a field that is added later is kept as well, and a record that lacks
one, or has another version, is refused instead of being filled up with defaults.
Numbers come back bit for bit, and a digest tells bytes that were changed.
"""

from __future__ import annotations

import hashlib
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
_HEAD = "head"
_DIGEST_BYTES = 32


def packed(record: Any) -> bytes:
    """All fields of a data class, those of data classes inside it included."""
    arrays, absent = _collected(record, "")
    head = {"kind": type(record).__name__, "version": VERSION, "absent": absent}
    stream = io.BytesIO()
    np.savez(stream, **{_HEAD: json.dumps(head), **arrays})
    return sealed(stream.getvalue())


def unpacked(kind: type[Record], data: bytes) -> Record:
    """The data class that `packed` has written.

    Raises
    ------
    ValueError
        If bytes were changed, a field is missing or of another type, or the record of
        another kind or version.
    """
    try:
        with np.load(io.BytesIO(unsealed(data)), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        head = json.loads(str(arrays.pop(_HEAD)))
    except (EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"it is no record of {kind.__name__}: {error}") from None
    if (head.get("kind"), head.get("version")) != (kind.__name__, VERSION):
        raise ValueError(
            f"it is a record of {head.get('kind')}, version {head.get('version')}; "
            f"expected {kind.__name__}, version {VERSION}"
        )
    return _rebuilt(kind, "", {**arrays, **dict.fromkeys(head["absent"])})


def sealed(data: bytes) -> bytes:
    """The bytes with their digest."""
    return hashlib.sha256(data).digest() + data


def unsealed(data: Any) -> bytes:
    """The bytes without their digest; ValueError if it is not theirs."""
    if not isinstance(data, bytes):
        raise ValueError(f"it holds {type(data).__name__} instead of bytes")
    if sealed(data[_DIGEST_BYTES:]) != data:
        raise ValueError("its digest is wrong")
    return data[_DIGEST_BYTES:]


def _collected(record: Any, prefix: str) -> tuple[dict[str, Any], list[str]]:
    """All fields as arrays by their names, and the names of those that are None."""
    arrays: dict[str, Any] = {}
    absent: list[str] = []
    own: Any = type(record)
    for name, (kind, _) in _types(own).items():
        key, value = prefix + name, getattr(record, name)
        if value is None:
            absent.append(key)
        elif is_dataclass(kind):
            inner, none = _collected(value, f"{key}.")
            arrays, absent = {**arrays, **inner}, [*absent, *none]
        else:
            arrays[key] = np.asarray(value, dtype=None if kind is np.ndarray else kind)
    return arrays, absent


def _rebuilt(kind: Any, prefix: str, found: dict[str, np.ndarray | None]) -> Any:
    values = {}
    for name, (inner, optional) in _types(kind).items():
        key = prefix + name
        if is_dataclass(inner) and any(one.startswith(f"{key}.") for one in found):
            values[name] = _rebuilt(inner, f"{key}.", found)
            continue
        if key not in found or (found[key] is None and not optional):
            raise ValueError(f"{kind.__name__} lacks {name}")
        values[name] = _read(inner, found[key])
    return kind(**values)


def _read(kind: Any, array: np.ndarray | None) -> Any:
    if array is None or kind is np.ndarray:
        return array
    value = array.item() if array.ndim == 0 else array
    if not isinstance(value, kind):
        raise ValueError(f"expected {kind.__name__}, got {value!r}")
    return value


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
