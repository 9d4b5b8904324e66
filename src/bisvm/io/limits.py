"""Sizes that a model file declares, checked before any memory is spent on them.

A few megabytes of zip archive may unpack to terabytes: by compression, by entries that
share their bytes, by archives inside of archives, by arrays that are named many times.
What a file unpacks to is known from its directory, from the heads of its arrays, and
from the tree of JSON that names the arrays.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from typing import IO
from zipfile import ZipFile

from numpy.lib import format as npy

# The entry of a skops file that has the tree of objects.
TREE = "schema.json"
# `bisvm.save` compresses sparse matrices alone, which shrink to a tenth at most as a
# rule. A file may unpack to this many times its size, and always to FREE_BYTES.
MOST_TIMES = 20
FREE_BYTES = 2**25
# Text of a tree takes some 20 times its size when it is read, and is not compressed.
MOST_TIMES_OF_TREE = 2
FREE_BYTES_OF_TREE = 2**23


def check_sizes(archive: ZipFile, size: int) -> None:
    """Raise a ValueError if a model file asks for far more memory than its size.

    Parameters
    ----------
    archive : the file, open for reading
    size : bytes that it has on disk
    """
    most = FREE_BYTES + MOST_TIMES * size
    sizes: dict[str, int] = {}
    for entry in archive.infolist():
        sizes[entry.filename] = sizes.get(entry.filename, 0) + entry.file_size
    # Before the first entry is read: no entry gives more than it declares.
    _refuse_above(most, sum(sizes.values()), size)
    own = FREE_BYTES_OF_TREE + MOST_TIMES_OF_TREE * size
    _refuse_above(own, sizes.get(TREE, 0), size)
    for name in sizes:
        with archive.open(name) as file:
            sizes[name] += _beyond(file, sizes[name])
    _refuse_above(most, sum(sizes.values()), size)
    if TREE in sizes:
        named = sum(sizes.get(name, 0) for name in _named(archive.read(TREE)))
        _refuse_above(most, named, size)


def _refuse_above(most: int, asked: int, size: int) -> None:
    if asked > most:
        raise ValueError(
            f"it has {_amount(size)} on disk and asks for {_amount(asked)} of memory, "
            "as no file of bisvm.save does"
        )


def _amount(size: int) -> str:
    # Exact numbers first: a forged size may be too large for a float.
    return f"{size // 10**6} MB" if size >= 10**7 else f"{size / 1e6:.2g} MB"


def _beyond(file: IO[bytes], size: int) -> int:
    """Bytes that an entry asks for beyond its own size."""
    start = file.read(npy.MAGIC_LEN)
    if start.startswith(npy.MAGIC_PREFIX):
        return max(_array_bytes(start, file) - size, 0)
    if start.startswith(b"PK"):
        # Sparse matrices are archives themselves. Archives in those are not opened.
        with ZipFile(io.BytesIO(start + file.read())) as inner:
            return sum(entry.file_size for entry in inner.infolist())
    return 0


def _array_bytes(start: bytes, file: IO[bytes]) -> int:
    """Bytes of an array, by its head."""
    major, _ = npy.read_magic(io.BytesIO(start))
    read = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    return math.prod(shape) * int(dtype.itemsize)


def _named(tree: bytes) -> Iterator[str]:
    """The entries that the tree names, as often as they are read."""
    seen: set[tuple[str, str]] = set()
    waiting = [json.loads(tree)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            waiting += node.values()
            name, number = node.get("file"), node.get("__id__")
            if not isinstance(name, str):
                continue
            # Nodes of one number are one object, which is read once.
            if number is None or (name, repr(number)) not in seen:
                seen.add((name, repr(number)))
                yield name
