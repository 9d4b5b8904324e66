"""Files that are broken in many ways, the same ones for the same seed."""

from __future__ import annotations

import datetime
import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from copy import deepcopy
from decimal import Decimal
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

WORDS = (
    "",
    " ",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "1e-999",
    "0x10",
    "1_000",
    "1,5",
    "1.234,5",
    "--",
    "?",
    '"',
    "'",
    '""',
    "\\",
    "\t",
    ";",
    "|",
    "a b",
    "ß",
    "日本",
    "\u202e",
    "\ufeff",
    "\x1b[31m",
    "=1+1",
    "<script>",
    "{}",
    "{0}",
    "%s",
    "None",
    "True",
    "2020-13-45",
    "0000-00-00",
    "31.02.2021",
    "9" * 400,
    "x" * 5000,
    "-0",
    "\r",
    "\r\n",
    "\x00",
    "__class__",
    "a__b",
)


def table(rng: np.random.Generator, separator: str = ",") -> str:
    """A small table of two numbers, a category, a date and a class."""
    lines = [separator.join(("a", "b", "colour", "day", "class"))]
    for i in range(24):
        k = i % 2
        number = f"{k + rng.normal() * 0.3:.3f}"
        colour = ("red", "green", "blue")[rng.integers(3)]
        day = f"2021-{1 + i % 12:02d}-{1 + i % 28:02d}"
        lines.append(
            separator.join((number, f"{rng.normal():.2f}", colour, day, "uv"[k]))
        )
    return "\n".join(lines) + "\n"


def mutated_text(rng: np.random.Generator, text: str) -> bytes:
    """Cells replaced, lines cut, doubled or shuffled, bytes flipped."""
    lines = text.split("\n")
    for _ in range(rng.integers(1, 6)):
        what, row = rng.integers(8), int(rng.integers(len(lines)))
        if what <= 2:
            cells = lines[row].split(",")
            cells[rng.integers(len(cells))] = WORDS[rng.integers(len(WORDS))]
            lines[row] = ",".join(cells)
        elif what == 3:
            lines[row] = lines[row][: rng.integers(len(lines[row]) + 1)]
        elif what == 4:
            lines.insert(row, lines[row] + WORDS[rng.integers(len(WORDS))])
        elif what == 5:
            del lines[row : row + rng.integers(1, 30)]
            lines = lines or [""]
        elif what == 6:
            column = int(rng.integers(5))
            word = WORDS[rng.integers(len(WORDS))]
            for k, line in enumerate(lines):
                cells = line.split(",")
                if len(cells) > column:
                    cells[column] = word
                    lines[k] = ",".join(cells)
        else:
            rng.shuffle(lines)
    raw = "\n".join(lines).encode("utf-8", "surrogatepass")
    return mutated_bytes(rng, raw) if rng.random() < 0.3 else raw


def mutated_bytes(rng: np.random.Generator, raw: bytes) -> bytes:
    """Some bytes changed, or a piece cut out, or the end cut off."""
    out = bytearray(raw)
    if not out:
        return b""
    what = rng.integers(4)
    if what == 0:
        del out[rng.integers(len(out)) :]
    elif what == 1:
        first = int(rng.integers(len(out)))
        del out[first : first + int(rng.integers(1, 200))]
    else:
        for place in rng.integers(len(out), size=rng.integers(1, 40)):
            out[place] = rng.integers(256)
    return bytes(out)


def libsvm(rng: np.random.Generator) -> bytes:
    lines = []
    for i in range(24):
        pairs = " ".join(f"{d}:{rng.normal() + i % 2:.3f}" for d in (1, 2, 5))
        lines.append(f"{i % 2} {pairs}")
    for _ in range(rng.integers(1, 5)):
        row, what = int(rng.integers(len(lines))), rng.integers(5)
        line = lines[row]
        word = WORDS[rng.integers(len(WORDS))]
        lines[row] = (
            line.replace(":", word, 1),
            line + f" 7:{word}",
            line + f" {word}:1",
            f"{word} " + line,
            line + " 3:1 99999999999:1",
        )[what]
    raw = "\n".join(lines).encode("utf-8", "surrogatepass")
    return mutated_bytes(rng, raw) if rng.random() < 0.3 else raw


def parquet(rng: np.random.Generator, good: bytes) -> bytes:
    """Bytes changed, which the footer hardly survives; or whole, with odd columns."""
    return mutated_bytes(rng, good) if rng.random() < 0.3 else odd_parquet(rng)


def odd_parquet(rng: np.random.Generator) -> bytes:
    """A sound file whose columns hold what tables seldom do."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = int(rng.choice([0, 1, 2, 24]))
    k = list(range(n))
    far = datetime.datetime(9999, 12, 31, 23)
    odd = {
        "list": pa.array([[i] for i in k], pa.list_(pa.int64())),
        "struct": pa.array([{"a": i} for i in k], pa.struct([("a", pa.int64())])),
        "map": pa.array([[("a", i)] for i in k], pa.map_(pa.string(), pa.int64())),
        "binary": pa.array([b"\xff\x00"] * n, pa.binary()),
        "decimal": pa.array([Decimal(i) for i in k], pa.decimal128(38, 20)),
        "null": pa.nulls(n),
        "large": pa.array([2**64 - 1 - i for i in k], pa.uint64()),
        "infinite": pa.array([np.inf, *([1.5] * n)][:n], pa.float64()),
        "nan": pa.array([np.nan] * n, pa.float64()),
        "half": pa.array(np.arange(n, dtype=np.float16)),
        "moment": pa.array([far] * n, pa.timestamp("us")),
        "zone": pa.array([far] * n, pa.timestamp("us", tz="UTC")),
        "day": pa.array([far.date()] * n, pa.date32()),
        "time": pa.array([far.time()] * n, pa.time64("us")),
        "span": pa.array(k, pa.duration("ns")),
        "dictionary": pa.array([str(i % 3) for i in k]).dictionary_encode(),
        "truth": pa.array([[True, None][i % 2] for i in k], pa.bool_()),
        "text": pa.array([WORDS[rng.integers(len(WORDS))] for _ in k], pa.string()),
        "number": pa.array(rng.normal(size=n)),
    }  # fmt: skip
    if int(pa.__version__.split(".")[0]) < 15:
        odd["half"] = odd["number"]  # earlier versions do not write it
    names = [str(one) for one in rng.choice(list(odd), size=rng.integers(1, 5))]
    columns = [odd[name] for name in names]
    called = [str(rng.choice([name, "a", "", *WORDS[:30]])) for name in names]
    if rng.random() < 0.8:
        columns.append(pa.array([i % 2 for i in k], pa.int64()))
        called.append("class")
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, names=called), buffer)
    return buffer.getvalue()


def npz(rng: np.random.Generator) -> bytes:
    X = rng.normal(size=(20, 3)) + (np.arange(20) % 2)[:, None]
    y: Any = np.arange(20) % 2
    what = rng.integers(7)
    if what == 0:
        y = y[:-1]
    elif what == 1:
        X = X[0]
    elif what == 2:
        y = np.array([{}] * 20)
    elif what == 3:
        X[rng.integers(20), rng.integers(3)] = np.inf
    elif what == 6:
        # Unusual, and nothing is wrong with it.
        X, y = X.astype(np.float16), np.array(["b\x00", "\u202e"])[y]
    buffer = io.BytesIO()
    np.savez(buffer, **({"Z": X} if what == 4 else {"X": X, "y": y}))
    raw = buffer.getvalue()
    return mutated_bytes(rng, raw) if what == 5 else raw


def mutated_model(rng: np.random.Generator, raw: bytes) -> bytes:
    """An archive that is whole, and whose tree has some values changed."""
    out = io.BytesIO()
    with ZipFile(io.BytesIO(raw)) as old, ZipFile(out, "w") as new:
        for entry in old.namelist():
            data = old.read(entry)
            if entry == "schema.json":
                tree = json.loads(data)
                for _ in range(rng.integers(1, 4)):
                    _change_a_value(rng, tree)
                data = json.dumps(tree).encode()
            elif rng.random() < 0.02:
                data = mutated_bytes(rng, data)
            new.writestr(entry, data)
    return out.getvalue()


def _change_a_value(rng: np.random.Generator, tree: Any) -> None:
    places = list(_places(tree))
    inside, key = places[rng.integers(len(places))]
    values = ("0", "-1", "null", "[]", "{}", "x", "os", "builtins", "1e308", None, 7)
    other, name = places[rng.integers(len(places))]
    drawn = rng.integers(len(values) + 3)
    # A copy: what holds the place itself would otherwise become a ring.
    inside[key] = values[drawn] if drawn < len(values) else deepcopy(other[name])


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        yield tree, key
        if isinstance(value, (dict, list)):
            yield from _places(value)


KINDS = ("csv", "libsvm", "parquet", "npz")


def tables(
    kind: str, count: int, seed: int, good_parquet: bytes
) -> Iterator[tuple[str, bytes]]:
    """Names and contents of broken tables of a format."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        name = f"t{number}.{kind}"
        if kind == "libsvm":
            yield name, libsvm(rng)
        elif kind == "parquet":
            yield name, parquet(rng, good_parquet)
        elif kind == "npz":
            yield name, npz(rng)
        elif number % 5 == 4:
            raw = rng.integers(256, size=rng.integers(0, 300)).astype(np.uint8)
            yield name, raw.tobytes()
        else:
            text = table(rng, (",", ";", "\t", ",")[number % 5])
            yield name, mutated_text(rng, text)


STRANGE = (None, -1, 2.5, float("inf"), "x", "[]", "\ud7ff", b"", b"\x00", 9 * 10**17)
CHANGES = (
    "update answers set question = ? where number = 2",
    "update answers set evaluation = ? where number = 2",
    "update answers set number = ? where number = 2",
    "update answers set search = ? where number = 2",
    "update warm_starts set value = ?",
    "update head set value = ?",
    "delete from answers where number <> ?",
    "delete from warm_starts where value <> ?",
    "delete from head where value <> ?",
)
TABLES = ("head", "answers", "warm_starts")


def checkpoint(rng: np.random.Generator, path: Path) -> bool:
    """Cut or flip a checkpoint, or let it say what cannot be.

    Returns whether somebody has changed its rows on purpose, so that SQLite finds
    nothing wrong.
    """
    content, what = path.read_bytes(), rng.integers(6)
    place = rng.integers(len(content))
    if what == 0:
        path.write_bytes(content[:place])
    elif what == 1:
        out = bytearray(content)
        for place in rng.integers(len(out), size=rng.integers(1, 9)):
            out[place] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(out))
    elif what == 2:
        junk = rng.integers(256, size=rng.integers(1, 400)).astype(np.uint8).tobytes()
        path.write_bytes(content[:place] + junk + content[place:])
    elif what == 3:
        _execute(path, f"drop table {rng.choice(TABLES)}")
    else:
        value = STRANGE[rng.integers(len(STRANGE))]
        # What a table refuses leaves the file as it was.
        with suppress(sqlite3.IntegrityError):
            _execute(path, str(rng.choice(CHANGES)), value)
    return what >= 3


def _execute(path: Path, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql, values[: sql.count("?")])
