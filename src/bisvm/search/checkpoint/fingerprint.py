"""Data as digests and settings as text, to tell one run from another."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from bisvm.data.pieces import Pieces

# Entries of an array or list that are written out.
_FEW = 16


def digest(*parts: Any) -> str:
    """A digest of arrays, sparse matrices, matrices in pieces, and text."""
    found = hashlib.sha256()
    for part in parts:
        _feed(found, part)
    return found.hexdigest()[:32]


def _feed(found: Any, part: Any) -> None:
    if isinstance(part, Pieces):
        # One reading: every entry counts in a product with numbers that no two share.
        probe = np.sqrt(np.arange(2.0, 2.0 + part.shape[1]))
        _feed(found, np.asarray(part @ probe[:, None]))
    elif sparse.issparse(part):
        for one in (part.data, part.indices, part.indptr):
            _feed(found, one)
    elif isinstance(part, np.ndarray) and part.dtype != object:
        found.update(f"{part.dtype.str}{part.shape}".encode())
        whole = np.ascontiguousarray(part)
        # Text and times have no buffer of their own.
        found.update(whole.data if part.dtype.kind in "fiub" else whole.tobytes())
    else:
        found.update(described(part).encode())


def described(value: Any) -> str:
    """An argument as text that is the same in every process."""
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
