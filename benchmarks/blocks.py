"""Kernel machines on rows that are not in memory: `python -m benchmarks blocks`.

    seconds and peak memory of BilevelSVC("rbf").fit(Chunks.of(memory map, y))

for 20 features and two classes: moons with 18 features of noise, and ringnorm (Breiman
1996), two normal distributions, one of them with four times the variance of the other.
Each fit is in a process of its own, on one thread. Notes extrapolate to ten million
rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_moons

from benchmarks.measure import code_version, measured, versions
from benchmarks.options import Options, say
from benchmarks.records import Row
from benchmarks.sets import chosen
from bisvm import BilevelSVC, Chunks
from experiments.common import Result, Table

N_FEATURES = 20
SHORT, FULL = (50_000,), (100_000, 1_000_000)
EXTRAPOLATED = 10_000_000
# Rows that are generated at a time, and new rows on which accuracy is measured.
GENERATED = 100_000
TESTED = 50_000

KEY = ("set", "method")
COLUMNS = (
    "n",
    "cpu",
    "wall",
    "memory",
    "evaluations",
    "landmarks",
    "H",
    "accuracy",
    "C",
    "gamma",
)
TABLE = {
    "set": "",
    "n": "d",
    "CPU, s": ".0f",
    "wall, s": ".0f",
    "memory, GB": ".2f",
    "evaluations on all rows": "d",
    "landmarks": "d",
    "H": ".4f",
    "accuracy on new rows": ".2%",
}

Rows = tuple[np.ndarray, np.ndarray]


def moons(n: int, seed: int) -> Rows:
    X, y = make_moons(n, noise=0.3, random_state=seed)
    noise = np.random.default_rng(seed).normal(size=(n, N_FEATURES - 2))
    return np.hstack([X, noise]), y


def ringnorm(n: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, N_FEATURES))
    shift = 2.0 / np.sqrt(N_FEATURES)
    return np.where(y[:, None] == 0, 2.0 * X, X + shift), y


FAMILIES: dict[str, Callable[[int, int], Rows]] = {"moons": moons, "ringnorm": ringnorm}


def stored(family: str, n: int, path: Path) -> Rows:
    """Write X to a file, some rows at a time; return it as a memory map, and y."""
    shape = (n, N_FEATURES)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=shape)
    y = np.empty(n, dtype=int)
    for seed, first in enumerate(range(0, n, GENERATED)):
        rows = slice(first, min(first + GENERATED, n))
        X[rows], y[rows] = FAMILIES[family](rows.stop - first, seed + 1)
    X.flush()
    return np.load(path, mmap_mode="r"), y


def run(options: Options) -> list[Row]:
    sizes = FULL if options.full else SHORT
    names = [f"{family}-{n}" for n in sizes for family in FAMILIES]
    records = options.records("blocks", KEY, COLUMNS)
    rows = []
    for name in chosen(names, options.only):
        key = {"set": name, "method": "defaults"}
        row = records.find(code_version(), options.limit, **key)
        if row is None:
            say(f"{name} in blocks")
            row = records.add({**key, **_fit(name)}, code_version(), options.limit)
        rows.append(row)
    return rows


def _fit(name: str) -> Row:
    family, size = name.split("-")
    with tempfile.TemporaryDirectory() as folder:
        X, y = stored(family, int(size), Path(folder) / "X.npy")
        model = BilevelSVC("rbf", random_state=0, max_memory=2e9)
        tested = FAMILIES[family](TESTED, 0)

        def told(fitted: BilevelSVC) -> Row:
            return _told(fitted, *tested)

        done = measured(lambda: model.fit(Chunks.of(X, y)), told)
    took = {"cpu": done.cpu, "wall": done.wall, "memory": done.memory}
    return {"n": int(size), **took, **done.value}


def _told(model: BilevelSVC, X: np.ndarray, y: np.ndarray) -> Row:
    return {
        "evaluations": sum(record.stage == "all rows" for record in model.history_),
        "landmarks": model.approximation_.n_landmarks,
        "H": model.criterion_value_,
        "accuracy": model.score(X, y),
        "C": model.C_,
        "gamma": model.hyperparameters_["gamma"],
    }


# --- report ---------------------------------------------------------------------------


def extrapolated(rows: list[Row], n: int) -> dict[str, float]:
    """Seconds and bytes at n rows, in proportion to the largest size.

    The part of the search that is done on a sample does not grow, and the number of
    landmarks hardly changes any more.
    """
    largest = max(rows, key=lambda row: int(row["n"]))
    return {what: largest[what] * n / largest["n"] for what in ("cpu", "memory")}


def report(options: Options) -> None:
    rows = run(options)
    notes = []
    for family in FAMILIES:
        own = [row for row in rows if row["set"].split("-")[0] == family]
        if own:
            far = extrapolated(own, EXTRAPOLATED)
            notes.append(
                f"{family}: in proportion to the largest size, {EXTRAPOLATED:,} rows "
                f"would take {far['cpu'] / 60:.0f} CPU minutes and "
                f"{far['memory'] / 1e9:.0f} GB."
            )
    notes.append(
        f"{N_FEATURES} features, two classes, C and one gamma, five folds, one thread; "
        "X is a memory map on disk. Memory is the rise of the process's peak."
    )
    notes.append(versions() + ".")
    table = Table("Kernel machines on blocks of rows", TABLE, [_cells(r) for r in rows])
    options.write(Result([table], notes=notes), "blocks", "Rows in blocks")


def _cells(row: Row) -> list[Any]:
    names = ("cpu", "wall", "memory", "evaluations", "landmarks", "H", "accuracy")
    cells = [row[name] for name in names]
    cells[2] = cells[2] / 1e9
    return [row["set"], row["n"], *cells]


if __name__ == "__main__":
    report(Options.parse(None, __doc__.splitlines()[0]))
