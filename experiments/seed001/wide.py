"""More features than rows: "more efficient for a high dimensional dataset".

The paper (section 5) expects SGD+DCD to be efficient where there are more features than
rows, and shows it on two private sets (551 and 146 patients, 943 features): there
SGD+DCD takes 1.00 and 1.15 times as long as bilevel-SGD, and 1.6 to 2.8 times on its
low dimensional sets. Two public sets stand for the private ones: colon (62 tissues,
2,000 genes) and Prostate-GE (102, 5,966).

150 iterations as in Table 1, features scaled to [-1, 1], no intercept, five stratified
folds. "Sweep" visits every coordinate in an iteration, "single" one, as the listing
says. Besides, after how many iterations the accuracy on the held-out rows is within
half a point of its highest. That is not the other stopping rule which the paper names,
an accuracy that is set beforehand.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat

from experiments.common import Context, Result, Spread, Table
from experiments.published import Cell, read
from experiments.seed001.data import PUBLISHED, Sample, folds_of, sample_of, scaled
from experiments.seed001.exact import accuracy
from experiments.seed001.table_1 import (
    BILEVEL,
    FIRST_SEED,
    METHODS,
    OURS,
    SINGLE,
    SWEEP,
    TABLE_1,
    compile_all,
)

TITLE = "More features than rows: SGD+DCD and bilevel-SGD on public sets"
SETS = ("colon", "Prostate-GE")
SEEDS = 5
NEAR = 0.5
TO_THE_TOP = "iterations to the top"
# Accuracy, as a share, at which the first author's program stops.
THRESHOLD = 0.97
LOW = ("cancer", "pima", "svmguide1", "connect-4", "magic04")
# Published seconds of SGD+DCD by those of bilevel-SGD.
PUBLISHED_RATIOS = {
    "cancer": 0.49 / 0.30,
    "pima": 0.91 / 0.33,
    "svmguide1": 2.43 / 1.21,
    "connect-4": 148.39 / 89.36,
    "magic04": 47.39 / 22.80,
    "xerostomia": 2.57 / 2.56,
    "xerostomia recovery": 0.45 / 0.39,
}


def load(name: str) -> Sample:
    """One of SETS, from the archive of Li et al. (2017), scikit-feature."""
    folder = os.environ.get("BISVM_DATA")
    path = Path(folder or "") / "record" / "skfeature" / f"{name}.mat"
    if folder is None or not path.is_file():
        raise FileNotFoundError(f"{path} is not there: set BISVM_DATA to the data.")
    data = loadmat(path)
    X, y = np.asarray(data["X"], dtype=float), np.ravel(data["Y"])
    return sample_of(scaled(X), np.where(y == y.max(), 1.0, -1.0), PUBLISHED)


def run(context: Context) -> Result:
    compile_all()
    seeds = range(FIRST_SEED, FIRST_SEED + min(context.splits, SEEDS))
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    shapes = {}
    for name in SETS:
        sample = load(name)
        shapes[name] = sample.X.shape
        for method in METHODS:
            found[name, method] = [outcome(sample, method, seed) for seed in seeds]
    tables = [_table(found, shapes), _ratios(found), _ranges(found)]
    return Result(tables, notes=_notes(found))


def outcome(sample: Sample, method: str, seed: int) -> tuple[float, ...]:
    """Accuracy in per cent, C, seconds, iterations until the accuracy is near its top.

    FoldNewton has no iterations of its own to look at: its evaluations are counted. The
    seconds are those of one run.
    """
    folds = folds_of(sample, seed)
    began = time.perf_counter()
    result = METHODS[method].alternate(folds, seed=seed)
    seconds = time.perf_counter() - began
    correct = accuracy(folds, folds.labels * (folds.X @ result.coef))
    if method == OURS:
        return correct, float(result.C), seconds, float(result.nit)
    watched = METHODS[method].alternate(folds, seed=seed, record=True)
    along = [accuracy(folds, folds.labels * (folds.X @ w)) for w in watched.coefs]
    first = int(np.argmax(np.array(along) >= max(along) - NEAR)) + 1
    return correct, float(result.C), seconds, float(first)


def _table(found: dict, shapes: dict) -> Table:
    rows: list[list[Any]] = []
    for (name, method), every in found.items():
        correct, C, seconds, first = zip(*every, strict=True)
        shape = "{} x {}".format(*shapes[name])
        cells = [Spread.of(correct), float(np.median(C)), float(np.median(seconds))]
        rows.append([name, shape, method, *cells, float(np.median(first))])
    columns = {
        "data set": "",
        "rows x features": "",
        "method": "",
        "accuracy %": ".2f",
        "C": ".3g",
        "seconds": ".3f",
        TO_THE_TOP: ".0f",
    }
    return Table("150 iterations, held-out accuracy of five folds", columns, rows)


def ratio(found: dict, name: str, method: str) -> float:
    """Seconds of a method by those of bilevel-SGD."""
    return _seconds(found, name, method) / _seconds(found, name, BILEVEL)


def _seconds(found: dict, name: str, method: str) -> float:
    return float(np.median([one[2] for one in found[name, method]]))


def _low(name: str, method: str) -> float:
    """The same on a set of Table 1, from its result file."""
    seconds = [
        read("seed001", Cell("table_1", "seconds", {"data set": name, "method": m}))[0]
        for m in (method, BILEVEL)
    ]
    return seconds[0] / seconds[1]


def _ratios(found: dict) -> Table:
    rows: list[list[Any]] = [
        [name, PUBLISHED_RATIOS[name], _low(name, SWEEP), _low(name, SINGLE)]
        for name in LOW
    ]
    rows += [
        [n, PUBLISHED_RATIOS[n], None, None] for n in PUBLISHED_RATIOS if n[0] == "x"
    ]
    rows += [
        [name, None, ratio(found, name, SWEEP), ratio(found, name, SINGLE)]
        for name in SETS
    ]
    columns = {
        "data set": "",
        "published": ".2f",
        "sweep": ".2f",
        "single": ".2f",
    }
    title = "Time of SGD+DCD by that of bilevel-SGD"
    return Table(title, columns, rows, name="ratios")


def _spans(found: dict) -> dict[str, list[float]]:
    """Times of sweeps by those of bilevel-SGD: on the sets of Table 1, and on these."""
    return {
        "Table 1": [_low(name, SWEEP) for name in LOW],
        "more features than rows": [ratio(found, name, SWEEP) for name in SETS],
    }


def _ranges(found: dict) -> Table:
    rows = [[name, min(all_), max(all_)] for name, all_ in _spans(found).items()]
    columns = {"data sets": "", "least": ".2f", "largest": ".2f"}
    title = "The same, SGD+DCD in sweeps, least and largest"
    return Table(title, columns, rows, name="ranges")


def _notes(found: dict) -> list[str]:
    low, wide = _spans(found).values()
    holds = max(wide) < min(low)
    gains = {name: gain(found, name) for name in SETS}
    behind = [name for name, points in gains.items() if points < 0.0]
    newton = [
        _seconds(found, name, OURS) / _seconds(found, name, SWEEP) for name in SETS
    ]
    return [
        f"Sweeps take {min(wide):.2f} to {max(wide):.2f} times as long as bilevel-SGD "
        f"on these sets, {min(low):.2f} to {max(low):.2f} times on those of Table 1. "
        "'More efficient where there are more features than rows', as a statement on "
        "the time relative to bilevel-SGD alone: "
        f"{'holds' if holds else 'does not hold throughout'}.",
        "Accuracy of sweeps minus that of bilevel-SGD: "
        + ", ".join(f"{points:+.1f} ({name})" for name, points in gains.items())
        + " points. Published: +0.5 and -2.8 on the private sets. "
        + (
            f"Sweeps are less accurate on {' and '.join(behind)}."
            if behind
            else "Sweeps are nowhere less accurate."
        ),
        f"FoldNewton takes {min(newton):.1f} to {max(newton):.1f} times as long as "
        "sweeps on these sets. It is made for many rows and few features.",
        f"Times here are medians over {len(found[SETS[0], SWEEP])} seeds of single "
        "runs; those of Table 1 are medians of the shortest of three.",
        f"'{TO_THE_TOP[0].upper()}{TO_THE_TOP[1:]}': the first iteration with an "
        f"accuracy within {NEAR} points of the method's own best, the median over the "
        "seeds; for FoldNewton the evaluations of H. It is known in hindsight only. "
        "The stopping rule of the paper is a threshold that is set beforehand; the "
        f"first author's program has {THRESHOLD}, which {_reaching()} reaches.",
    ]


def _reaching() -> str:
    """Which published accuracies are at the program's threshold or above."""
    names = [
        f"{data}, {method}"
        for data, columns in TABLE_1.items()
        for method, (correct, *_) in columns.items()
        if correct >= 100.0 * THRESHOLD
    ]
    return " and ".join(names) or "no final accuracy in Table 1"


def gain(found: dict, name: str) -> float:
    """Accuracy of sweeps minus that of bilevel-SGD, in points, mean over the seeds."""
    pairs = zip(found[name, SWEEP], found[name, BILEVEL], strict=True)
    return float(np.mean([sweep[0] - bilevel[0] for sweep, bilevel in pairs]))
