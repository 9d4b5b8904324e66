"""Frozen data classes as bytes, data as digests, and settings as text.

All that a search stores in a file goes through `packed` and `unpacked`. They take the
fields from the class, so a field that is added later is stored as well. A record that
lacks a field, or has another version, is refused; it is not completed with defaults.
Numbers come back bit for bit, and a digest detects bytes that were changed. `digest`
and `described` distinguish one run from another.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeAlias, TypeVar, get_args, get_type_hints

import numpy as np
from scipy import sparse

from bisvm.core.types import Array
from bisvm.data.matrices import RowBlocks

Record = TypeVar("Record")
# A data class, or the value of one of its fields.
Value: TypeAlias = Any

VERSION = 1
_HEAD = "head"
_DIGEST_BYTES = 32
# Entries of an array or list that are written out in a description.
_FEW = 16

# --- data classes as bytes ------------------------------------------------------------


def packed(record: object) -> bytes:
    """Return all fields of a data class, those of data classes inside it included."""
    arrays, absent = _collected(record, "")
    head = {"kind": type(record).__name__, "version": VERSION, "absent": absent}
    stream = io.BytesIO()
    everything: dict[str, Value] = {_HEAD: json.dumps(head), **arrays}
    np.savez(stream, **everything)
    return sealed(stream.getvalue())


def unpacked(kind: type[Record], data: object) -> Record:
    """Return the data class that `packed` has written.

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
        raise ValueError(f"it is not a record of {kind.__name__}: {error}") from None
    if (head.get("kind"), head.get("version")) != (kind.__name__, VERSION):
        raise ValueError(
            f"it is a record of {head.get('kind')}, version {head.get('version')}; "
            f"expected {kind.__name__}, version {VERSION}"
        )
    return _rebuilt(kind, "", {**arrays, **dict.fromkeys(head["absent"])})


def sealed(data: bytes) -> bytes:
    """Return the bytes after their digest."""
    return hashlib.sha256(data).digest() + data


def unsealed(data: object) -> bytes:
    """Return the bytes without their digest; ValueError if it is wrong."""
    if not isinstance(data, bytes):
        raise ValueError(f"it holds {type(data).__name__} instead of bytes")
    if sealed(data[_DIGEST_BYTES:]) != data:
        raise ValueError("its digest is wrong")
    return data[_DIGEST_BYTES:]


def _collected(record: object, prefix: str) -> tuple[dict[str, Array], list[str]]:
    """All fields as arrays by their names, and the names of those that are None."""
    arrays: dict[str, Array] = {}
    absent: list[str] = []
    own: Value = type(record)
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


def _rebuilt(
    kind: type[Record], prefix: str, found: Mapping[str, Array | None]
) -> Record:
    values: dict[str, Value] = {}
    own: Value = kind
    for name, (inner, optional) in _types(own).items():
        key = prefix + name
        if is_dataclass(inner) and any(one.startswith(f"{key}.") for one in found):
            values[name] = _rebuilt(inner, f"{key}.", found)
            continue
        if key not in found or (found[key] is None and not optional):
            raise ValueError(f"{kind.__name__} lacks {name}")
        values[name] = _read(inner, found[key])
    return kind(**values)


def _read(kind: type, array: Array | None) -> Value:
    if array is None or kind is np.ndarray:
        return array
    value = array.item() if array.ndim == 0 else array
    if not isinstance(value, kind):
        raise ValueError(f"expected {kind.__name__}, got {value!r}")
    return value


@cache
def _types(kind: type) -> dict[str, tuple[type, bool]]:
    """Type of every field, and whether it may be None."""
    hints = get_type_hints(kind)
    return {field.name: _plain(hints[field.name]) for field in fields(kind)}


def _plain(hint: Value) -> tuple[type, bool]:
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    kinds = [one for one in options if one is not NoneType]
    known = len(kinds) == 1 and (
        kinds[0] in (str, bool, int, float, np.ndarray) or is_dataclass(kinds[0])
    )
    if not known:
        raise TypeError(f"{hint!r} is not a type that a checkpoint can keep.")
    return kinds[0], len(kinds) < len(options)


# --- data as digests, settings as text ------------------------------------------------


def digest(*parts: object) -> str:
    """Return a digest of arrays, sparse matrices, data in blocks, and text."""
    found = hashlib.sha256()
    for part in parts:
        for block in _bytes_of(part):
            found.update(block)
    return found.hexdigest()[:32]


def _bytes_of(part: object) -> list[bytes | memoryview]:
    if isinstance(part, RowBlocks):
        # One reading: every entry counts in a product with numbers that no two share.
        probe = np.sqrt(np.arange(2.0, 2.0 + part.shape[1]))
        return _bytes_of(np.asarray(part @ probe[:, None]))
    if sparse.issparse(part):
        whole: Value = part
        arrays = (whole.data, whole.indices, whole.indptr)
        return [block for one in arrays for block in _bytes_of(one)]
    if isinstance(part, np.ndarray) and part.dtype != object:
        head = f"{part.dtype.str}{part.shape}".encode()
        flat = np.ascontiguousarray(part)
        # Text and times have no buffer.
        return [head, flat.data if part.dtype.kind in "fiub" else flat.tobytes()]
    return [described(part).encode()]


def described(value: Value) -> str:
    """Return an argument as text that is the same in every process."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        given = sorted(value.get_params(deep=False).items())
        inside = ", ".join(f"{name}={described(one)}" for name, one in given)
        return f"{type(value).__qualname__}({inside})"
    if isinstance(value, np.ndarray):
        if value.size <= _FEW:
            return described(value.tolist())
        text = value.tolist() if value.dtype == object else value
        return f"array{value.shape} {digest(text)}"
    if isinstance(value, Mapping):
        pairs = sorted(f"{described(k)}: {described(v)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        text = "[" + ", ".join(map(described, value)) + "]"
        return text if len(value) <= _FEW else f"{len(value)} values {digest(text)}"
    if isinstance(value, np.generic):
        return repr(value.item())
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    # Addresses change from process to process.
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
