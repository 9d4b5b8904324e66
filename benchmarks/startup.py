"""Imports and first fits, in fresh processes: `python -m benchmarks startup`."""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from typing import Any

from benchmarks.measure import versions
from benchmarks.options import Options, say
from experiments.common import Result, Table

IMPORTS = ("import sklearn.svm", "import bisvm", "from bisvm import BilevelSVC")
TIMED_IMPORT = """
import time
began = time.perf_counter()
{statement}
print(time.perf_counter() - began)
"""
TWO_FITS = """
import time
from sklearn.datasets import make_moons
from bisvm import BilevelSVC
X, y = make_moons(300, noise=0.25, random_state=0)
for _ in range(2):
    began = time.perf_counter()
    BilevelSVC(kernel={kernel!r}, random_state=0).fit(X, y)
    print(time.perf_counter() - began)
"""


def seconds(code: str) -> list[float]:
    """The numbers that a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"A fresh interpreter failed:\n{done.stderr}")
    return [float(line) for line in done.stdout.split()]


def imports(repetitions: int) -> list[list[Any]]:
    """Medians, measured by turns; once before, so that files are in the cache."""
    turns = [
        [seconds(TIMED_IMPORT.format(statement=s))[0] for s in IMPORTS]
        for _ in range(repetitions + 1)
    ][1:]
    reference = median(turn[0] for turn in turns)
    rows = []
    for statement, times in zip(IMPORTS, zip(*turns, strict=True), strict=True):
        rows.append([statement, median(times), median(times) / reference])
    return rows


def fits(repetitions: int) -> list[list[Any]]:
    """A first process fills the cache of compiled code."""
    rows = []
    for kernel in ("rbf", "ard"):
        code = TWO_FITS.format(kernel=kernel)
        pairs = [seconds(code) for _ in range(repetitions + 1)][1:]
        first, second = (median(column) for column in zip(*pairs, strict=True))
        gap = median(a - b for a, b in pairs)
        rows.append([f"BilevelSVC({kernel!r})", first, second, gap])
    return rows


def report(options: Options) -> None:
    say("imports and first fits")
    # Processes take seconds each, and the spread is small.
    repetitions = max(1, options.repetitions - 2)
    columns = {"": "", "seconds": ".2f", "ratio": ".2f"}
    fit_columns = {
        "moons, n = 300": "",
        "first, s": ".2f",
        "second, s": ".2f",
        "difference, s": ".2f",
    }
    tables = [
        Table("Imports", columns, imports(repetitions), name="imports"),
        Table("Fits in a fresh process", fit_columns, fits(repetitions), name="fits"),
    ]
    notes = [
        f"Wall-clock seconds, medians of {repetitions} fresh processes by turns, files "
        "and compiled code cached.",
        versions() + ".",
    ]
    options.write(Result(tables, notes=notes), "startup", "Start-up")
