"""Memory and open files over many fits in one process: `python -m tools.soak`.

Fits small models of every kind, one after the other, and notes the resident memory and
the number of open files after each. Writes a table and a picture to
`experiments/results/trust`. Exits with 1 if, after the first fits (`WARM`), memory
grows by more than `MOST_GROWTH` bytes, or the number of open files grows at all.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits, make_classification

import bisvm
from bisvm import (
    BilevelLinearSVC,
    BilevelSVC,
    Chunks,
    ConvolutionalLinearSVC,
    ConvolutionalSVC,
    FeatureSelector,
)
from experiments.common import Result, Table, drawing
from tools.memory import resident

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "experiments" / "results" / "trust"
# Share of the fits in which libraries are loaded and pools of memory are filled.
WARM = 0.2
MOST_GROWTH = 5e7
QUICK: dict[str, Any] = {"cv": 2, "starts": 1, "max_iter": 3}

Fit = Callable[[int, Path], Any]


def rows(seed: int, classes: int = 2) -> tuple[Any, Any]:
    """A data set of 40 to 100 rows and 3 to 12 features."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(40, 101)), int(rng.integers(3, 13))
    X, y = make_classification(
        n, d, n_informative=3, n_redundant=0, n_classes=classes, random_state=seed
    )
    return X, y


def images(seed: int) -> tuple[Any, Any]:
    X, y = load_digits(n_class=2, return_X_y=True)
    chosen = np.random.default_rng(seed).permutation(len(y))[:60]
    return X[chosen] / 16.0, y[chosen]


def kernel(name: str, **settings: Any) -> Fit:
    def fit(seed: int, folder: Path) -> Any:
        machine = BilevelSVC(name, random_state=seed, **{**QUICK, **settings})
        return machine.fit(*rows(seed))

    return fit


def several_classes(seed: int, folder: Path) -> Any:
    machine = BilevelSVC("rbf", random_state=seed, shared=False, n_jobs=2, **QUICK)
    return machine.fit(*rows(seed, classes=3))


def linear(seed: int, folder: Path) -> Any:
    return BilevelLinearSVC(random_state=seed, **QUICK).fit(*rows(seed))


def linear_sparse(seed: int, folder: Path) -> Any:
    X, y = rows(seed)
    return BilevelLinearSVC(random_state=seed, **QUICK).fit(sparse.csr_array(X), y)


def linear_in_chunks(seed: int, folder: Path) -> Any:
    X, y = rows(seed)
    return BilevelLinearSVC(random_state=seed, **QUICK).fit(Chunks.of(X, y, rows=20))


def checkpointed(seed: int, folder: Path) -> Any:
    path = folder / "run.checkpoint"
    path.unlink(missing_ok=True)
    machine = BilevelSVC("rbf", random_state=seed, checkpoint=path, **QUICK)
    machine.fit(*rows(seed))
    return machine.fit(*rows(seed))


def saved(seed: int, folder: Path) -> Any:
    X, y = rows(seed)
    model = BilevelSVC("rbf", random_state=seed, **QUICK).fit(X, y)
    return bisvm.load(bisvm.save(model, folder / "model.skops")).predict(X)


def selecting(seed: int, folder: Path) -> Any:
    machine = BilevelSVC("ard", random_state=seed, **QUICK)
    return FeatureSelector(machine, n_pairs=2, random_state=seed).fit(*rows(seed))


def convolutional(seed: int, folder: Path) -> Any:
    machine = ConvolutionalSVC((8, 8), (3, 3), cv=2, max_iter=3, random_state=seed)
    return machine.fit(*images(seed))


def convolutional_linear(seed: int, folder: Path) -> Any:
    machine = ConvolutionalLinearSVC((8, 8), (3, 3), cv=2, max_iter=3)
    return machine.set_params(random_state=seed).fit(*images(seed))


def refused(seed: int, folder: Path) -> None:
    """A fit that fails leaves nothing behind either."""
    X, y = rows(seed)
    X[0, 0] = np.nan
    try:
        BilevelSVC(random_state=seed, checkpoint=folder / "no.checkpoint").fit(X, y)
    except ValueError:
        return
    raise AssertionError("NaN was accepted.")


FITS: tuple[Fit, ...] = (
    kernel("rbf"),
    kernel("ard"),
    kernel("auto"),
    kernel("matern32"),
    kernel("laplacian"),
    kernel("rbf", loss="hinge", learn="C"),
    kernel("rbf", approximation="nystroem"),
    several_classes,
    linear,
    linear_sparse,
    linear_in_chunks,
    checkpointed,
    saved,
    selecting,
    convolutional,
    convolutional_linear,
    refused,
)


class Sample(NamedTuple):
    """After one fit: bytes of resident memory, open files, seconds since the start."""

    fit: int
    memory: float
    handles: int
    seconds: float


def soak(count: int) -> list[Sample]:
    """Fit `count` models, and measure after each."""
    began, samples = time.perf_counter(), []
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(count):
            FITS[number % len(FITS)](number, Path(name))
            gc.collect()
            seconds = time.perf_counter() - began
            handles = len(os.listdir("/proc/self/fd"))
            samples.append(Sample(number + 1, resident("VmRSS"), handles, seconds))
    return samples


def growth(samples: Sequence[Sample]) -> tuple[float, int]:
    """Bytes and open files at the end, beyond those after the first fits."""
    first = samples[int(WARM * len(samples))]
    return samples[-1].memory - first.memory, samples[-1].handles - first.handles


def picture(samples: Sequence[Sample]) -> Any:
    with drawing() as plt:
        figure, ax = plt.subplots(figsize=(6, 3))
        ax.plot([s.fit for s in samples], [s.memory / 1e6 for s in samples], "#2f5d8a")
        ax.axvline(WARM * len(samples), color="0.75", linewidth=0.8)
        ax.set(xlabel="fits in one process", ylabel="resident memory (MB)")
        ax.set_ylim(0, 1.3 * max(s.memory for s in samples) / 1e6)
        handles = f"open files: {samples[0].handles} at first, {samples[-1].handles} at"
        ax.set_title(f"{handles} the end", loc="right")
    return figure


def result(samples: Sequence[Sample]) -> Result:
    bytes_, handles = growth(samples)
    chosen = [*samples[:: max(1, len(samples) // 10)], samples[-1]]
    columns = {"fits": "d", "memory (MB)": ".1f", "open files": "d", "seconds": ".0f"}
    rows = [(s.fit, s.memory / 1e6, s.handles, s.seconds) for s in chosen]
    return Result(
        tables=[Table("Memory and open files after so many fits", columns, rows)],
        figures={"": picture(samples)},
        notes=[
            f"After the first {WARM:.0%} of the fits, memory grew by "
            f"{bytes_ / 1e6:.1f} MB (limit {MOST_GROWTH / 1e6:.0f}), open files by "
            f"{handles}.",
            f"Made by `python -m tools.soak --fits {len(samples)}`.",
        ],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.soak")
    parser.add_argument("--fits", type=int, default=500)
    parser.add_argument("--output", type=Path, default=FOLDER)
    options = parser.parse_args(arguments)
    samples = soak(options.fits)
    done = result(samples)
    print(done.to_text())
    for path in done.write(options.output, "soak", "Many fits in one process"):
        print(f"  {path}")
    bytes_, handles = growth(samples)
    return int(bytes_ > MOST_GROWTH or handles > 0)


if __name__ == "__main__":
    sys.exit(main())
