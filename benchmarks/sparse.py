"""Tuning C of linear machines on large and sparse data: `python -m benchmarks.sparse`.

    ratio = seconds of BilevelLinearSVC().fit  /  seconds of 15 fits of LinearSVC

The 15 fits are one five-fold cross-validation of scikit-learn's LinearSVC over three
values of C, on the same folds, in the same process and with one thread. Our seconds
hold the final machine on all rows, theirs do not. Seconds are CPU time.

A million rows take a few minutes (`--full`); the sets that are archived are measured
where there are archives.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.measure import versions
from bisvm import BilevelLinearSVC, BilevelObjective
from bisvm.datasets import load
from experiments.common import Result, Table

RESULTS = Path(__file__).parent / "results"
VALUES = {"C": [0.1, 1.0, 10.0]}
ARCHIVES = (
    "a9a",
    "ijcnn1",
    "mushrooms",
    "reuters_money_fx",
    "rcv1_small",
)
# A hundred training problems of 62,061 features at a time: only if asked for by name.
LONG_ARCHIVES = ("news20_multiclass",)
UNSEEN = 20_000
# Rows of generated data that are drawn at a time.
CHUNK = 50_000
COLUMNS = {
    "data": "",
    "n": "d",
    "features": "d",
    "classes": "d",
    "C": ".3g",
    "C, LinearSVC": ".3g",
    "H": ".4f",
    "H at its C": ".4f",
    "test accuracy": ".2%",
    "test, LinearSVC": ".2%",
    "evaluations": "d",
    "tune, s": ".2f",
    "15 fits, s": ".2f",
    "ratio": ".2f",
    "data, MB": ".0f",
    "peak, MB": ".0f",
}


@dataclass(frozen=True)
class Sample:
    """Training and test part, and the folds on which all is compared."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray

    @classmethod
    def archived(cls, name: str) -> Sample:
        """With the official test part, or a quarter of the rows."""
        data = load(name)
        if data.X_test is not None:
            return cls(name, data.X, data.y, data.X_test, data.y_test)
        parts = train_test_split(data.X, data.y, stratify=data.y, random_state=0)
        return cls(name, parts[0], parts[2], parts[1], parts[3])

    @classmethod
    def generated(cls, name: str, n: int, **kind: Any) -> Sample:
        X, y = generate(n + UNSEEN, **kind)
        return cls(name, X[:n], y[:n], X[n:], y[n:])

    @property
    def folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        return list(folds.split(self.y, self.y))


def generate(
    n: int,
    d: int = 1000,
    density: float = 0.01,
    *,
    binary: bool = False,
    positive: float = 0.5,
) -> tuple[sparse.csr_matrix, np.ndarray]:
    """CSR rows of Gaussian entries (or ones), and labels by a noisy linear function.

    Three features of ten count. Drawn in chunks: nothing dense is ever made.
    """
    rng = np.random.default_rng(0)
    w = rng.normal(size=d) * (rng.random(d) < 0.3)
    draw = np.ones if binary else rng.standard_normal
    rows, values = [], []
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        entries = rng.binomial(d, density, size=size)
        indices = rng.integers(d, size=entries.sum(), dtype=np.int32)
        indptr = np.concatenate([[0], np.cumsum(entries)])
        X = sparse.csr_matrix((draw(len(indices)), indices, indptr), shape=(size, d))
        X.sum_duplicates()
        rows.append(X)
        values.append(X @ w + 0.5 * np.sqrt(d * density * 0.3) * rng.normal(size=size))
    f = np.concatenate(values)
    return sparse.vstack(rows, format="csr"), 1 * (f > np.quantile(f, 1 - positive))


def samples(*, full: bool, only: list[str] | None) -> Iterator[Sample]:
    """Sets that are made here, and archived ones where there are any."""
    folder = Path(os.environ.get("BISVM_DATA", ""))
    makers = {
        name: partial(Sample.archived, name)
        for name in ARCHIVES + (LONG_ARCHIVES if only else ())
        if (folder / f"{name}.npz").is_file()
    }
    web = {"d": 300, "density": 0.04, "binary": True, "positive": 0.03}
    makers["like_w8a"] = partial(Sample.generated, "like_w8a", 50_000, **web)
    makers["sparse"] = partial(Sample.generated, "sparse", 100_000)
    if full:
        makers["million"] = partial(Sample.generated, "million", 1_000_000)
    for name, make in makers.items():
        if only is None or name in only:
            yield make()


# --- measuring ------------------------------------------------------------------------


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


def megabytes(X: Any) -> float:
    return (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e6


def with_peak(call: Callable[[], Any]) -> tuple[Any, float | None]:
    """The result, and by how many MB memory grew; None where the system does not say.

    Linux forgets the largest size of a process if it is told to.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        result = call()
        return result, _status("VmHWM") - before
    except OSError:
        return call(), None


def _status(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1e3
    raise OSError(f"the system does not tell {name}")


def measure(sample: Sample) -> list[Any]:
    """One row of the table."""
    X, y = sample.X, sample.y
    tuned = BilevelLinearSVC(cv=sample.folds, random_state=0)
    (_, seconds), peak = with_peak(lambda: timed(lambda: tuned.fit(X, y)))
    search = GridSearchCV(LinearSVC(), VALUES, cv=sample.folds, refit=False)
    _, reference = timed(lambda: search.fit(X, y))
    plain = LinearSVC(**search.best_params_).fit(X, y)
    H, H_of_plain = criterion_at(tuned, sample, tuned.C_, plain.C)
    return [
        sample.name,
        len(y),
        X.shape[1],
        len(tuned.classes_),
        tuned.C_,
        plain.C,
        H,
        H_of_plain,
        tuned.score(sample.X_test, sample.y_test),
        plain.score(sample.X_test, sample.y_test),
        len(tuned.history_),
        seconds,
        reference,
        seconds / reference,
        megabytes(X),
        peak,
    ]


def criterion_at(
    tuned: BilevelLinearSVC, sample: Sample, *values: float
) -> list[float]:
    """H, without the prior, at these values of C, each to a relative error of 1e-5."""
    objective = BilevelObjective(tuned, sample.X, sample.y)
    thetas = [objective.space.theta({"C": C}) for C in values]
    return [objective.evaluate(theta, accuracy=1e-5).criterion for theta in thetas]


# --- report ---------------------------------------------------------------------------


def run(chosen: Iterator[Sample]) -> Result:
    rows = []
    with threadpool_limits(1):
        # Code is compiled, or loaded, before anything is measured.
        X, y = generate(2000)
        BilevelLinearSVC(random_state=0).fit(X, y)
        for sample in chosen:
            print(f"  {sample.name}, n = {len(sample.y)}", file=sys.stderr, flush=True)
            rows.append(measure(sample))
    return Result(
        tables=[Table("Tuning C of linear machines", COLUMNS, rows)],
        notes=[
            "ratio = seconds to tune C, final machine included / seconds of a "
            f"five-fold cross-validation of LinearSVC over C in {VALUES['C']}.",
            "H is the validation loss that is minimised, at the C found and at the C "
            "that LinearSVC's cross-validated accuracy chose.",
            "peak = by how much memory grew at most during the fit.",
            "Seconds are CPU time, one thread.",
            versions() + ".",
        ],
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sparse", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--full", action="store_true", help="a million rows as well")
    parser.add_argument("--only", nargs="+", help="names of data sets")
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="folder of results"
    )
    options = parser.parse_args(arguments)
    chosen = samples(full=options.full, only=options.only)
    result = run(chosen)
    print(result.to_text())
    if options.only is None:
        for path in result.write(options.output, "sparse", "Sparse linear machines"):
            print(f"  {path}")


if __name__ == "__main__":
    main()
