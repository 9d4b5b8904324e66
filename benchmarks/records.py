"""Measured rows in a CSV file: each is written at once, and found again."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]


class Records:
    """A CSV file to which rows are added; of rows with one key the last one counts.

    Parameters
    ----------
    path : of the file; it need not exist
    key : columns that say what was measured
    columns : all others; "version" and "limit" are added
    fresh : whether rows that are in the file already are measured again
    keep : whether rows of another version of the code will do
    """

    def __init__(
        self,
        path: Path,
        key: Sequence[str],
        columns: Sequence[str],
        *,
        fresh: bool = False,
        keep: bool = False,
    ):
        self.path, self.keep = path, keep
        self.key = tuple(key)
        self.columns = (*self.key, *columns, "status", "limit", "version")
        self._rows: dict[tuple[str, ...], Row] = {}
        if path.is_file():
            self._read()
        self._old = set(self._rows) if fresh else set()

    def _read(self) -> None:
        with self.path.open(newline="") as lines:
            reader = csv.reader(lines)
            if tuple(next(reader, ())) != self.columns:
                raise ValueError(
                    f"{self.path} has other columns than are measured now: move it "
                    "away, or write to another folder with --output."
                )
            for cells in reader:
                # A run that was killed may leave half a line.
                if len(cells) == len(self.columns):
                    pairs = zip(self.columns, cells, strict=True)
                    self._remember({name: _value(cell) for name, cell in pairs})

    def _remember(self, row: Row) -> None:
        self._rows[self._key(row)] = row

    def _key(self, row: Row) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in self.key)

    def find(self, version: str, limit: float = np.inf, **key: Any) -> Row | None:
        """The row of that key, if it need not be measured again.

        One that was not run for its time is tried again under a larger limit.
        """
        row = self._rows.get(self._key(key))
        if row is None or self._key(key) in self._old:
            return None
        if str(row["version"]) != version and not self.keep:
            return None
        return None if row["status"] and limit > row["limit"] else row

    def add(self, row: Row, version: str, limit: float = np.inf) -> Row:
        """Write a row at once; what it lacks is empty."""
        row = {"status": "", **row, "version": version, "limit": limit}
        row = {name: row.get(name) for name in self.columns}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.is_file() or self.path.stat().st_size == 0
        with self.path.open("a", newline="") as lines:
            writer = csv.writer(lines, lineterminator="\n")
            if new:
                writer.writerow(self.columns)
            elif not _ends_a_line(self.path):
                lines.write("\n")
            writer.writerow([_cell(value) for value in row.values()])
        row = {name: _value(_cell(value)) for name, value in row.items()}
        self._remember(row)
        self._old.discard(self._key(row))
        return row

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read() == b"\n"


def _cell(value: Any) -> str:
    """Numbers to nine digits, vectors as numbers apart by blanks."""
    if value is None:
        return ""
    if isinstance(value, np.ndarray):
        return " ".join(_cell(float(entry)) for entry in value)
    if isinstance(value, float | np.floating):
        return f"{value:.9g}"
    return str(value)


def _value(cell: str) -> Any:
    if not cell:
        return ""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            pass
    return cell


def vector(cell: Any) -> Any:
    """A number, or the vector that a cell holds."""
    if isinstance(cell, str):
        return np.array([float(entry) for entry in cell.split()])
    return float(cell)
