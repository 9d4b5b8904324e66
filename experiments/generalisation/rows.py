"""Rows of figures in a CSV file, written one by one: a stopped run goes on."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import Context

Key = tuple[str, ...]

# Methods that are not of this library.
RIVALS = ("grid", "optuna")


@dataclass
class Rows:
    """Figures by key: the first columns name a row, the others hold its numbers.

    words : those of the figures that are text
    rivals : values of the last key; their rows are kept in `rivals.csv`, since changes
        of the library leave them as they are
    """

    path: Path
    keys: Sequence[str]
    figures: Sequence[str]
    held: dict[Key, dict[str, Any]] = field(default_factory=dict)
    words: Sequence[str] = ()
    rivals: Sequence[str] = ()

    def __post_init__(self) -> None:
        for path in (self.path, self._path_of_rivals) if self.rivals else (self.path,):
            if path.exists():
                self._load(path)

    @property
    def _path_of_rivals(self) -> Path:
        return self.path.with_name("rivals.csv")

    def _load(self, path: Path) -> None:
        with path.open(newline="") as file:
            table = csv.DictReader(file)
            expected = [*self.keys, *self.figures]
            if table.fieldnames != expected:
                raise ValueError(
                    f"{path} has the columns {table.fieldnames}; expected "
                    f"{expected}. Move it away to begin anew."
                )
            for row in table:
                # The last row of a run that was killed may be torn.
                if all(row[name] for name in expected):
                    key = tuple(row[name] for name in self.keys)
                    self.held[key] = self._read(row)

    def need(
        self, key: Iterable[Any], compute: Callable[[], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """The figures of this key; computed, timed and written if they are not held."""
        named = tuple(str(part) for part in key)
        if named not in self.held:
            began = time.perf_counter()
            figures = dict(compute())
            figures.setdefault("seconds", time.perf_counter() - began)
            # As a later run will read them.
            texts = {
                name: figures[name] if name in self.words else f"{figures[name]:.6g}"
                for name in self.figures
            }
            self._append(named, texts)
            self.held[named] = self._read(texts)
        return self.held[named]

    def need_all(
        self,
        splits: int,
        sets: Iterable[str],
        sizes: Sequence[int],
        kernels: Sequence[str],
        compute: Callable[[str, int, int, str], Mapping[str, Any]],
    ) -> None:
        """The figures of every (set, size, split, kernel), split by split."""
        pairs = list(product(sets, sizes, kernels))
        for split in range(splits):
            for name, size, kernel in pairs:
                key = (name, size, split, kernel)
                self.need(key, partial(compute, *key))
            print(f"  split {split + 1}", file=sys.stderr, flush=True)

    def _read(self, texts: Mapping[str, str]) -> dict[str, Any]:
        return {
            name: texts[name] if name in self.words else float(texts[name])
            for name in self.figures
        }

    def _append(self, key: Key, texts: Mapping[str, str]) -> None:
        path = self._path_of_rivals if key[-1] in self.rivals else self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            file.seek(0)
            text = file.read()
            if not text:
                writer.writerow([*self.keys, *self.figures])
            elif not text.endswith("\n"):
                file.write("\n")
            writer.writerow([*key, *texts.values()])

    def values(self, figure: str, *key: Any) -> Any:
        row = self.held.get(tuple(str(part) for part in key))
        return None if row is None else row[figure]

    def over_splits(
        self, figure: str, name: str, size: int, method: str, splits: int
    ) -> np.ndarray | None:
        """(splits,) figures of one method on one set; None if one is missing."""
        found = [self.values(figure, name, size, k, method) for k in range(splits)]
        return None if None in found else np.array(found, dtype=float)


def of_fits(context: Context, name: str) -> Rows:
    """Test error in % and seconds of every fit of an experiment."""
    return Rows(
        folder(context) / name,
        ("set", "size", "split", "method"),
        ("error", "seconds", "test_rows", "overlap"),
        rivals=RIVALS,
    )


def folder(context: Context) -> Path:
    if context.output is None:
        return Path(__file__).parents[1] / "results" / "generalisation"
    return context.output / "generalisation"
