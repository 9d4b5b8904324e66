"""Unbalanced classes: criteria and thresholds made for a goal, beside the default.

Eight sets in which the second class is rare, 5 to 33% of the rows: generated, as they
are, one class against the rest, or thinned out. Training parts have 500 rows at most,
one gamma. Every model is judged on the test rows by balanced accuracy, F1 of the rare
class, area under the ROC curve, and what errors cost if a rare one that is missed costs
as much as ten false alarms; once as it is, and once with the threshold that is best for
the goal on the held-out rows of its tuning (`best_threshold`), which takes no fit.
scikit-learn's TunedThresholdClassifierCV tunes the default five times more for that.

Differences from the default as it is are tested set by set: t-test, one-sided,
corrected for test rows that splits have in common and for the number of sets (Holm).
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.datasets import make_classification, make_moons
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score
from sklearn.model_selection import TunedThresholdClassifierCV
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVC
from bisvm.criteria import Weighted
from experiments.common import Context, Result, Table, standardize
from experiments.generalisation import data, ranks
from experiments.generalisation.data import TEST_ROWS, TRAIN_ROWS, Part
from experiments.generalisation.methods import folds
from experiments.generalisation.rows import Rows, folder

TITLE = "Generalisation: unbalanced classes and costly errors"
FITS = ("unbalanced.csv",)

COSTS = {0: 1.0, 1: 10.0}
DEFAULT = "blend"


# --- data -----------------------------------------------------------------------------


def _clouds(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        n, 10, n_informative=5, weights=[0.95], class_sep=0.8, random_state=seed
    )


def _moons(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return make_moons(
        (round(0.95 * n), n - round(0.95 * n)), noise=0.35, random_state=seed
    )


def _generated(draw: Any) -> Callable[[int], Part]:
    def part(split: int) -> Part:
        X, y = draw(TRAIN_ROWS + TEST_ROWS, split)
        X = standardize(X, np.arange(TRAIN_ROWS))
        return Part(X[:TRAIN_ROWS], y[:TRAIN_ROWS], X[TRAIN_ROWS:], y[TRAIN_ROWS:])

    return part


def _against_rest(name: str, rare: Any, share: float | None = None) -> Callable:
    """One class of a set against the others, thinned out to a share of the rows."""

    def part(split: int) -> Part:
        rows = TRAIN_ROWS if share is None else 2 * TRAIN_ROWS
        own = data.part(name, split, rows)
        y, y_test = (1 * (labels == rare) for labels in (own.y, own.y_test))
        rng = np.random.default_rng([3, split])
        train = _thinned(y, share, TRAIN_ROWS, rng)
        test = _thinned(y_test, share, TEST_ROWS, rng)
        X = np.vstack([own.X[train], own.X_test[test]])
        # What has become constant has a deviation of rounding errors.
        constant = np.ptp(X[: len(train)], axis=0) == 0.0
        X[:, constant] -= X[0, constant]
        X = standardize(X, slice(len(train)))
        parts = X[: len(train)], y[train], X[len(train) :], y_test[test]
        return replace(Part(*parts), overlap=own.overlap)

    return part


def _thinned(
    y: np.ndarray, share: float | None, limit: int, rng: np.random.Generator
) -> np.ndarray:
    """Rows in which the rare class has this share, at most so many."""
    rare, rest = (rng.permutation(np.flatnonzero(y == code)) for code in (1, 0))
    if share is not None:
        n = min(limit, round(len(rest) / (1.0 - share)))
        rare, rest = rare[: round(share * n)], rest[: n - round(share * n)]
    return np.sort(np.concatenate([rare, rest]))


SETS: dict[str, Callable[[int], Part]] = {
    "clouds, 5%": _generated(_clouds),
    "moons, 5%": _generated(_moons),
    "splice, 5%": _against_rest("ida_splice", 1, 0.05),
    "magic04, 10%": _against_rest("magic04", 0, 0.1),
    "ijcnn1, 10%": _against_rest("ijcnn1", 1),
    "digits, 8 of ten": _against_rest("digits", 8),
    "a1a, 24%": _against_rest("a1a", 1),
    "thyroid, 33%": _against_rest("ida_thyroid", 1),
}

# --- models and scores ----------------------------------------------------------------

MODELS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "class_weight": {"class_weight": "balanced"},
    "balanced_blend": {"criterion": "balanced_blend"},
    "learned class_weight": {
        "criterion": "balanced_blend",
        "class_weight": "learn",
    },
    "smoothed_error": {"criterion": "smoothed_error"},
    "balanced_smoothed_error": {"criterion": "balanced_smoothed_error"},
    "f1": {"criterion": "f1"},
    "auc": {"criterion": "auc"},
    "costs": {"criterion": Weighted("blend", COSTS)},
}
STOCK = "TunedThresholdClassifierCV"

# Goal, whether more is better, and the criterion that was made for it.
GOALS: dict[str, tuple[Any, float]] = {
    "balanced accuracy": ("balanced_accuracy", 1.0),
    "F1": ("f1", 1.0),
    "AUC": (None, 1.0),
    "cost": (COSTS, -1.0),
}
MOVED = ", threshold"
FIGURES = (
    *GOALS,
    *(name + MOVED for name, (goal, _) in GOALS.items() if goal is not None),
    "overlap",
    "seconds",
)


def _score(name: str, y: np.ndarray, values: np.ndarray, threshold: float) -> float:
    """In per cent; costs in per cent of what it costs to miss all rare ones."""
    said = values > threshold
    if name == "balanced accuracy":
        return 100.0 * balanced_accuracy_score(y, said)
    if name == "F1":
        return 100.0 * f1_score(y, said, zero_division=0.0)
    if name == "AUC":
        return 100.0 * roc_auc_score(y, values)
    wrong = COSTS[1] * np.sum(y[~said] == 1) + COSTS[0] * np.sum(y[said] == 0)
    return 100.0 * float(wrong) / (COSTS[1] * np.sum(y == 1))


def _figures(own: Part, model: BilevelSVC) -> dict[str, float]:
    values = model.decision_function(own.X_test)
    found = {"overlap": own.overlap}
    for name, (goal, _) in GOALS.items():
        found[name] = _score(name, own.y_test, values, 0.0)
        if goal is not None:
            threshold = model.best_threshold(goal)
            found[name + MOVED] = _score(name, own.y_test, values, threshold)
    return found


def _fit(set_name: str, split: int, method: str) -> Callable[[], dict[str, float]]:
    def compute() -> dict[str, float]:
        own = SETS[set_name](split)
        model = BilevelSVC("rbf", random_state=split, **MODELS.get(method, {}))
        began = time.perf_counter()
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if method == STOCK:
                return {**_stock(own, model), "overlap": own.overlap}
            model.set_params(cv=folds(own, split)).fit(own.X, own.y)
        seconds = time.perf_counter() - began
        return {**_figures(own, model), "seconds": seconds}

    return compute


def _stock(own: Part, model: BilevelSVC) -> dict[str, float]:
    """scikit-learn's way to F1 alone, and what it takes."""
    began = time.perf_counter()
    tuned = TunedThresholdClassifierCV(
        model, scoring="f1", response_method="decision_function", random_state=0
    ).fit(own.X, own.y)
    found = dict.fromkeys(FIGURES, np.nan)
    found["seconds"] = time.perf_counter() - began
    found["F1" + MOVED] = 100.0 * f1_score(own.y_test, tuned.predict(own.X_test))
    return found


# --- tables ---------------------------------------------------------------------------


def run(context: Context) -> Result:
    rows = Rows(folder(context) / "unbalanced.csv", ("set", "split", "method"), FIGURES)
    for split in range(context.splits):
        for name in SETS:
            for method in (*MODELS, STOCK):
                rows.need((name, split, method), _fit(name, split, method))
        print(f"  split {split + 1}", file=sys.stderr, flush=True)
    tables = [_table(rows, goal, context.splits) for goal in GOALS]
    seconds = {
        method: np.median(_all(rows, "seconds", method, context.splits))
        for method in (*MODELS, STOCK)
    }
    notes = (
        "-* worse, +* better than the default beyond chance (Holm over the sets, 5%). "
        "Costs are in per cent of what it costs to miss every rare one.",
        f"Median seconds of a fit: {seconds[DEFAULT]:.2f} for the default, "
        f"{seconds[STOCK]:.2f} for {STOCK}; best_threshold takes none.",
    )
    return Result(tables, {}, notes)


def _all(rows: Rows, figure: str, method: str, splits: int) -> np.ndarray:
    return np.array(
        [
            [rows.values(figure, name, split, method) for split in range(splits)]
            for name in SETS
        ],
        dtype=float,
    )


def _table(rows: Rows, goal: str, splits: int) -> Table:
    """Ways to a goal in the rows, sets in the columns."""
    default = _all(rows, goal, DEFAULT, splits)
    overlap = _all(rows, "overlap", DEFAULT, splits)[:, 0]
    body = []
    for figure in (goal, goal + MOVED):
        for method in (*MODELS, STOCK):
            if figure in FIGURES and not _left_out(figure, method):
                found = _all(rows, figure, method, splits)
                words = method + (MOVED if figure != goal else "")
                marks = _marks(GOALS[goal][1] * (found - default), overlap)
                means = found.mean(axis=1)
                cells = [f"{m:.1f}{s}" for m, s in zip(means, marks, strict=True)]
                body.append([words, f"{means.mean():.2f}", *cells])
    better = "more" if GOALS[goal][1] > 0 else "less"
    return Table(
        f"{goal} on test rows in %, {better} is better; mean over {splits} splits",
        ["way", "mean", *SETS],
        body,
        name=goal.replace(" ", "_"),
    )


def _left_out(figure: str, method: str) -> bool:
    return method == STOCK and figure != "F1" + MOVED


def _marks(gains: np.ndarray, overlap: np.ndarray) -> list[str]:
    """Which sets a way is better or worse on than the default, beyond chance."""
    marks = [""] * len(gains)
    for sign, mark in ((1.0, " +*"), (-1.0, " -*")):
        p = [ranks.p_greater(sign * g, o) for g, o in zip(gains, overlap, strict=True)]
        for number in np.flatnonzero(ranks.holm(np.array(p)) < ranks.LEVEL):
            marks[number] = mark
    return marks
