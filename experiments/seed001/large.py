"""Large linear problems: what tuning costs, beside plain cross-validations.

connect-4 (61,108 rows, 42 columns, win against loss): all of the tuning against five
five-fold cross-validations of scikit-learn's LinearSVC with the hinge, at its default C
and at the C that was found. And a sparse problem of 1,000,000 x 1,000 with one entry in
a hundred, drawn at random: time and memory of the whole process, data included.
"""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import LinearSVC

from bisvm import BilevelLinearSVC
from bisvm.published import FoldNewton, LinearFolds
from experiments.common import Context, Result, Table
from experiments.seed001.jacobian import load

TITLE = "Large linear problems: connect-4 and a sparse million"
MILLION = 1_000_000
WIDTH = 1_000
ENTRIES = 10


def run(context: Context) -> Result:
    return Result([connect4(*load("connect-4")), million()])


def connect4(X: np.ndarray, y: np.ndarray) -> Table:
    """Seconds, in units of one five-fold cross-validation of LinearSVC."""
    splits = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    tuned, seconds = _timed(lambda: BilevelLinearSVC(cv=splits).fit(X, y))
    folds = five_folds(np.column_stack([X, np.ones(len(X))]), y, splits)
    FoldNewton().alternate(five_folds(X[:500], y[:500], []))
    found, quick = _timed(lambda: FoldNewton().alternate(folds))
    rows = [
        ["BilevelLinearSVC, defaults", tuned.C_, _score(tuned.C_, X, y, splits)[0]],
        ["FoldNewton", found.C, _score(found.C, X, y, splits)[0]],
    ]
    plain = {C: _score(C, X, y, splits) for C in (1.0, found.C)}
    unit = min(one[1] for one in plain.values())
    rows = [
        [*row, taken, taken / unit]
        for row, taken in zip(rows, (seconds, quick), strict=True)
    ]
    rows += [
        [f"LinearSVC, one cross-validation, C = {C:.3g}", C, score, taken, taken / unit]
        for C, (score, taken) in plain.items()
    ]
    columns = {
        "connect-4": "",
        "C": ".3g",
        "accuracy % of LinearSVC at C": ".2f",
        "seconds": ".2f",
        "in cross-validations": ".2f",
    }
    return Table(
        "Tuning connect-4 in units of a five-fold cross-validation of LinearSVC",
        columns,
        rows,
        name="connect4",
    )


def five_folds(
    X: np.ndarray, y: np.ndarray, splits: list[tuple[np.ndarray, np.ndarray]]
) -> LinearFolds:
    splits = splits or list(StratifiedKFold(5).split(X, y))
    n = len(y)
    train, validation = np.zeros((n, len(splits))), np.zeros((n, len(splits)))
    for k, (inside, outside) in enumerate(splits):
        train[inside, k] = 1.0
        validation[outside, k] = 1.0 / (len(splits) * len(outside))
    labels = np.repeat(np.asarray(y, dtype=float)[:, None], len(splits), axis=1)
    return LinearFolds(np.ascontiguousarray(X), labels, train, validation)


def _score(
    C: float, X: np.ndarray, y: np.ndarray, splits: list[Any]
) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(C=C, loss="hinge")
        scores, seconds = _timed(lambda: cross_val_score(model, X, y, cv=splits))
    return 100.0 * float(scores.mean()), seconds


def _timed(function: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    out = function()
    return out, time.perf_counter() - began


def million(n: int = MILLION, d: int = WIDTH) -> Table:
    """Tuned in a process of its own, whose memory tells all."""
    with get_context("spawn").Pool(1) as pool:
        row = pool.apply(tune_sparse, (n, d))
    columns = {
        "rows x columns": "",
        "C": ".3g",
        "seconds": ".0f",
        "peak memory, GB": ".2f",
        "evaluations": "d",
        "accuracy %": ".2f",
        "of the true weights %": ".2f",
    }
    return Table("A sparse problem, tuned with defaults", columns, [row], name="sparse")


def sparse_problem(n: int, d: int, seed: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    """Ten entries a row, a fifth of the columns matter, and noise."""
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, d, size=n * ENTRIES).astype(np.int32)
    indptr = np.arange(0, n * ENTRIES + 1, ENTRIES, dtype=np.int32)
    X = sparse.csr_array((rng.normal(size=n * ENTRIES), indices, indptr), shape=(n, d))
    X.sum_duplicates()
    w = rng.normal(size=d) * (rng.random(d) < 0.2)
    return X, np.where(X @ w + rng.normal(size=n) > 0, 1, -1), w


def tune_sparse(n: int, d: int) -> list[Any]:
    X, y, w = sparse_problem(n, d)
    model, seconds = _timed(lambda: BilevelLinearSVC(random_state=0).fit(X, y))
    return [
        f"{n:,} x {d:,}",
        model.C_,
        seconds,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        len(model.history_),
        100.0 * model.score(X, y),
        100.0 * float(np.mean(np.where(X @ w > 0, 1, -1) == y)),
    ]
