"""The same rows, inputs and folds for an SVC as it comes and for a grid search.

The grid gets the time that tuning took: a coarse grid over C and gamma first, then
steps half as wide, and half as wide again, in random order, until the time is up.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from bisvm.data.pieces import Pieces
from bisvm.data.splits import Split, freeze_splits
from bisvm.plots.landscape import stock_grid

# Beyond these rows a single SVC takes too long for a report.
MOST_ROWS = 10_000
LEVELS = 3


@dataclass(frozen=True)
class Entry:
    """One way to set hyperparameters.

    tuned : how many
    detail : what was tried
    folds : cross-validated accuracy, on the folds that hyperparameters were chosen on
    right : which of the held-out rows are right, None without such rows
    """

    method: str
    tuned: int
    detail: str
    folds: float | None
    right: np.ndarray | None
    seconds: float


@dataclass(frozen=True)
class Rows:
    """Inputs of the machine and labels, to learn from and held out."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray | None
    folds: list[Split]
    sample_weight: Any = None

    def right(self, model: Any) -> np.ndarray | None:
        if self.y_test is None:
            return None
        return np.asarray(model.predict(self.X_test) == self.y_test)

    @property
    def params(self) -> dict[str, Any]:
        weight = self.sample_weight
        return {} if weight is None else {"sample_weight": np.asarray(weight)}


def why_not(machine: Any, X: Any, n_rows: int) -> str | None:
    """Why there is nothing to compare with, or None."""
    if getattr(machine, "_pairwise", False):
        return "the kernel is precomputed"
    if isinstance(X, Pieces):
        return "the rows are not in memory"
    if n_rows > MOST_ROWS:
        return f"{n_rows:,} rows are too many for an SVC to be tuned in a report"
    return None


def folds_of(machine: Any, X: Any, y: Any, groups: Any = None) -> list[Split]:
    """The splits of the fit, if its seed is a number; others of their kind if not."""
    codes = np.unique(y, return_inverse=True)[1]
    cv = 5 if getattr(machine.cv, "swaps_rows", False) else machine.cv
    seed = machine.random_state
    state = check_random_state(seed if isinstance(seed, (int, np.integer)) else 0)
    return freeze_splits(cv, X, codes, groups=groups, random_state=state)


def default_entry(rows: Rows) -> Entry:
    began = time.perf_counter()
    model = SVC().fit(rows.X, rows.y, **rows.params)
    seconds = time.perf_counter() - began
    folds = _score(SVC(), rows)
    detail = 'C = 1, gamma = "scale"'
    return Entry("SVC as it comes", 0, detail, folds, rows.right(model), seconds)


def grid_entry(rows: Rows, seconds: float) -> Entry:
    """The best of as many points of ever finer grids as the time allows."""
    began = time.perf_counter()
    tried, best, score = 0, SVC(), -1.0
    for settings in finer_grids(stock_grid(rows.X)):
        if tried and time.perf_counter() - began >= seconds:
            break
        candidate = SVC(**settings)
        own = _score(candidate, rows)
        tried += 1
        if own > score:
            best, score = candidate, own
    model = best.fit(rows.X, rows.y, **rows.params)
    took = time.perf_counter() - began
    detail = f"{tried} points; C = {best.C:.3g}, gamma = {best.gamma:.3g}"
    return Entry("grid search over an SVC", 2, detail, score, rows.right(model), took)


def finer_grids(grid: dict[str, np.ndarray]) -> list[dict[str, float]]:
    """Points of the grid, then those between them, and between those."""
    rng = np.random.default_rng(0)
    seen: set[tuple[int, ...]] = set()
    out: list[dict[str, float]] = []
    finest = 2 ** (LEVELS - 1)
    logs = [np.log(values) for values in grid.values()]
    for level in range(LEVELS):
        step = finest >> level
        axes = [range(0, finest * (len(values) - 1) + 1, step) for values in logs]
        new = [point for point in product(*axes) if point not in seen]
        seen.update(new)
        for place in rng.permutation(len(new)):
            values = [
                float(np.exp(np.interp(k / finest, np.arange(len(log)), log)))
                for k, log in zip(new[place], logs, strict=True)
            ]
            out.append(dict(zip(grid, values, strict=True)))
    return out


def _score(model: Any, rows: Rows) -> float:
    scores = cross_val_score(
        model, rows.X, rows.y, cv=rows.folds, params=rows.params or None
    )
    return float(scores.mean())


def own_entry(machine: Any, rows: Rows, seconds: float, tuned: int) -> Entry:
    """The machine itself, and its learned values on the folds once more."""
    held = on_folds(machine)
    here = held is not None and not isinstance(rows.X, Pieces)
    folds = _score(held, rows) if here else None
    detail = f"{len(machine.history_)} evaluations"
    right = rows.right(machine)
    return Entry("bisvm", tuned, detail, folds, right, seconds)


def predicted_on_folds(machine: Any, rows: Rows) -> np.ndarray | None:
    """Every row predicted by a machine that has not seen it; None if that cannot be."""
    held = None if isinstance(rows.X, Pieces) else on_folds(machine)
    validated = np.concatenate([validation for _, validation in rows.folds])
    if held is None or sorted(validated.tolist()) != list(range(len(rows.y))):
        return None
    return cross_val_predict(
        held, rows.X, rows.y, cv=rows.folds, params=rows.params or None
    )


def on_folds(machine: Any) -> Any:
    """The same, to be fitted on some of the rows, or None: see `fixed`.

    Of a small class a single row may be left there, which no fold could hold out.
    """
    held = fixed(machine)
    return None if held is None else held.set_params(cv=Halves())


class Halves:
    """Half of every class is held out, rounded down: single rows never are."""

    def split(self, X: Any, y: Any, groups: Any = None) -> list[Split]:
        order = np.argsort(y, kind="stable")
        first = np.concatenate([[True], np.diff(np.asarray(y)[order]) != 0])
        place = np.arange(len(order)) - np.flatnonzero(first)[np.cumsum(first) - 1]
        held_out = np.zeros(len(order), dtype=bool)
        held_out[order] = place % 2 == 1
        return [(np.flatnonzero(~held_out), np.flatnonzero(held_out))]


def fixed(machine: Any) -> Any:
    """An estimator that learns no hyperparameters, but has those of a tuned one.

    None where there is no such: classes with hyperparameters of their own, groups of
    samples that only `fit` is told of, and the members of an ensemble.
    """
    if not machine.shared or getattr(machine, "group_names_", None) is not None:
        return None
    if getattr(machine, "estimators_", None) is not None:
        return None
    if hasattr(machine, "maps_"):
        strengths = dict(lambda_w=machine.lambda_w_, lambda_f=machine.lambda_f_)
        return clone(machine).set_params(
            image_shape=machine.image_shape_,
            learn=None,
            callback=None,
            checkpoint=None,
            **strengths,
        )
    own = getattr(machine, "machine_", machine)
    held = clone(own).set_params(
        C=own.C_,
        learn=(),
        cv=2,
        refit="same",
        starts=1,
        callback=None,
        checkpoint=None,
        n_jobs=None,
    )
    if "kernel" in held.get_params(deep=False) and not own._pairwise:
        held.set_params(kernel=own.kernel_)
    return held
