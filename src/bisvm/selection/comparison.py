"""Usual methods, a grid search and a tuned machine on the same rows and folds.

`bisvm demo`, `bisvm compare`, the report and the benchmarks share this comparison and
its grid over C and gamma.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.svm import SVC, SVR
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from bisvm.core.types import Array, UserData, UserVector
from bisvm.data.leave_one_out import is_leave_one_out
from bisvm.data.matrices import RowBlocks
from bisvm.data.splits import Split, draw_folds, freeze_splits

# --- the grid -------------------------------------------------------------------------

# What a grid search covers, on features of variance one.
BOX = {"C": (1e-2, 1e3), "gamma": (1e-4, 1e1)}
# epsilon of an SVR in standard deviations of y, as it is by default if that is one.
TUBE = 0.1
# Points along each axis. Each grid has the points of the one before and those between.
SIZES = SMALL, USUAL, FINE = 6, 11, 21


def svc_grid(X: UserData, size: int = USUAL) -> dict[str, Array]:
    """Return `size` values of C and of gamma that suit an RBF kernel on X.

    They cover `BOX` in geometric steps. gamma is divided by the variance of X, and its
    range is extended to SVC's gamma="scale", 1 / (n_features variance), if needed.
    """
    if sparse.issparse(X):
        variance = float(X.multiply(X).mean() - X.mean() ** 2)
    else:
        variance = float(np.asarray(X, dtype=float).var())
    low, high = BOX["gamma"]
    gamma = np.geomspace(min(low, 1.0 / X.shape[1]), high, size)
    return {"C": np.geomspace(*BOX["C"], size), "gamma": gamma / max(variance, 1e-12)}


def grid_points(X: UserData) -> Iterator[dict[str, float]]:
    """Yield all points of the small grid, then those that finer grids add.

    The order within one grid is random, so that a search may stop at any time.
    """
    grid = svc_grid(X, FINE)
    rng = np.random.default_rng(0)
    seen: set[tuple[int, ...]] = set()
    for size in SIZES:
        axis = range(0, FINE, (FINE - 1) // (size - 1))
        new = [point for point in product(axis, repeat=2) if point not in seen]
        seen.update(new)
        for k in rng.permutation(len(new)):
            pairs = zip(grid.items(), new[k], strict=True)
            yield {name: float(values[i]) for (name, values), i in pairs}


# --- the methods ----------------------------------------------------------------------

# What needs no columns at all.
GUESSING, MEAN = "guessing", "always the mean"


@dataclass(frozen=True)
class Entry:
    """The result of one method.

    Attributes
    ----------
    method : name
    tuned : number of hyperparameters that it tuned
    detail : what it tried
    cross_validated : mean accuracy, or R^2, on the folds on which hyperparameters were
        chosen
    scores : of the test rows (`Rows.scores`); None without test rows
    seconds : time to tune and fit
    """

    method: str
    tuned: int
    detail: str
    cross_validated: float | None
    scores: Array | None
    seconds: float


@dataclass(frozen=True)
class Rows:
    """Training and test rows as the machines see them, and the folds that all share.

    This class is for classes, `NumberRows` for numbers.
    """

    X: UserData
    y: Array
    X_test: UserData
    y_test: Array | None
    folds: list[Split]
    sample_weight: UserVector = None

    def scores(self, model: BaseEstimator) -> Array | None:
        """Which test rows the model predicts correctly: their mean is the accuracy."""
        if self.y_test is None:
            return None
        return np.asarray(model.predict(self.X_test) == self.y_test)

    def machine(self, **values: float) -> BaseEstimator:
        """Return scikit-learn's machine with these values of C and gamma."""
        return SVC(**values)

    def rivals(self) -> dict[str, BaseEstimator]:
        """Guessing and four usual methods with their default settings."""
        found: dict[str, BaseEstimator] = {
            GUESSING: DummyClassifier(strategy="most_frequent"),
            "logistic regression": LogisticRegression(max_iter=1000),
            "random forest": RandomForestClassifier(random_state=0),
            "boosting": HistGradientBoostingClassifier(random_state=0),
            "default SVC": SVC(),
        }
        return self._possible(found)

    def _possible(self, found: dict[str, BaseEstimator]) -> dict[str, BaseEstimator]:
        if sparse.issparse(self.X):
            # It takes dense rows only.
            del found["boosting"]
        return found

    @property
    def fit_params(self) -> dict[str, Array]:
        weight = self.sample_weight
        return {} if weight is None else {"sample_weight": np.asarray(weight)}

    def score(self, model: BaseEstimator) -> float:
        """Mean accuracy, or R^2, of an unfitted model on the folds."""
        params = self.fit_params or None
        scores = cross_val_score(model, self.X, self.y, cv=self.folds, params=params)
        return float(scores.mean())


@dataclass(frozen=True)
class NumberRows(Rows):
    """The same for a target of numbers."""

    def scores(self, model: BaseEstimator) -> Array | None:
        """1 - squared error / variance of y, for every test row: their mean is R^2."""
        if self.y_test is None:
            return None
        spread = float(np.var(self.y_test)) or 1.0
        return np.asarray(
            1.0 - (model.predict(self.X_test) - self.y_test) ** 2 / spread
        )

    def machine(self, **values: float) -> BaseEstimator:
        """C and epsilon of an SVR are in units of y."""
        scale = float(np.std(self.y)) or 1.0
        C = scale * values.get("C", 1.0)
        return SVR(**{**values, "C": C, "epsilon": TUBE * scale})

    def rivals(self) -> dict[str, BaseEstimator]:
        found: dict[str, BaseEstimator] = {
            MEAN: DummyRegressor(),
            "linear regression": RidgeCV(np.geomspace(1e-3, 1e3, 13)),
            "random forest": RandomForestRegressor(random_state=0),
            "boosting": HistGradientBoostingRegressor(random_state=0),
            "default SVR": SVR(),
        }
        return self._possible(found)


def rows_for(model: BaseEstimator) -> type[Rows]:
    """Return the kind of rows that a machine is compared on."""
    return NumberRows if is_regressor(model) else Rows


def folds_of(
    machine: BaseEstimator, X: UserData, y: UserVector, groups: UserVector = None
) -> list[Split]:
    """The splits of the fit if its `random_state` is a number, else similar ones."""
    regression = is_regressor(machine)
    codes = np.asarray(y) if regression else np.unique(y, return_inverse=True)[1]
    own_way = getattr(machine.cv, "swaps_rows", False) or is_leave_one_out(machine.cv)
    cv = 5 if own_way else machine.cv
    seed = machine.random_state
    state = check_random_state(seed if isinstance(seed, (int, np.integer)) else 0)
    if regression and isinstance(cv, (int, np.integer)):
        return draw_folds(int(cv), len(codes), groups, None, state)
    return freeze_splits(cv, X, codes, groups=groups, random_state=state)


def rival_entry(
    name: str, rival: BaseEstimator, rows: Rows, cross_validate: bool = True
) -> Entry:
    """A method with its own settings, on one thread.

    Threads that wait for each other make boosting slow where processors are shared.
    """
    began = time.perf_counter()
    with warnings.catch_warnings(), threadpool_limits(1):
        # A rival that has not converged is still what people get.
        warnings.simplefilter("ignore")
        fitted = clone(rival).fit(rows.X, rows.y, **rows.fit_params)
        seconds = time.perf_counter() - began
        score = rows.score(rival) if cross_validate else None
    return Entry(name, 0, "default settings", score, rows.scores(fitted), seconds)


def default_entry(rows: Rows) -> Entry:
    """An SVC, or for numbers an SVR, with scikit-learn's default settings."""
    default = type(rows.machine())()
    entry = rival_entry(f"default {type(default).__name__}", default, rows)
    return replace(entry, detail='C = 1, gamma = "scale"')


def grid_entry(rows: Rows, *, size: int = FINE, seconds: float = math.inf) -> Entry:
    """The best point of a grid; with a time limit, of as many as were tried."""
    began = time.perf_counter()
    tried, best, score = 0, rows.machine(), -math.inf
    for values in grid_points(rows.X):
        if tried == size**2 or (tried and time.perf_counter() - began >= seconds):
            break
        candidate = rows.machine(**values)
        own = rows.score(candidate)
        tried += 1
        if own > score:
            best, score = candidate, own
    model = best.fit(rows.X, rows.y, **rows.fit_params)
    took = time.perf_counter() - began
    points = "1 point" if tried == 1 else f"{tried} points"
    detail = f"{points}; C = {best.C:.3g}, gamma = {best.gamma:.3g}"
    return Entry("grid search", 2, detail, score, rows.scores(model), took)


def own_entry(
    machine: BaseEstimator, rows: Rows, seconds: float, method: str = "bisvm"
) -> Entry:
    """A tuned machine, and its learned values cross-validated on the same folds."""
    held = None if isinstance(rows.X, RowBlocks) else on_folds(machine)
    score = None if held is None else rows.score(held)
    tuned = len(getattr(machine, "coordinates_", ()))
    detail = f"{len(machine.history_)} evaluations"
    return Entry(method, tuned, detail, score, rows.scores(machine), seconds)


def disagreement(one: Array, other: Array) -> tuple[int, int, bool]:
    """Count rows that only one method has right; say whether the difference is chance.

    If two methods are equally good, each of the n rows on which they differ is right
    by either with probability 1/2: up to two standard deviations, 2 sqrt(n), is chance.
    """
    gained = int(np.sum(one & ~other))
    lost = int(np.sum(other & ~one))
    return gained, lost, abs(gained - lost) <= 2 * math.sqrt(gained + lost)


def balanced_difference(one: Array, other: Array, y: Array) -> tuple[float, bool]:
    """Difference of balanced accuracies, and whether that is chance.

    Of the n_c rows of class c, only the one method has g_c right and only the other
    l_c. As in `disagreement`, up to two standard deviations are chance:

        |sum over c of (g_c - l_c) / n_c|  <=  2 sqrt(sum over c of (g_c + l_c) / n_c^2)
    """
    classes, codes, rows = np.unique(y, return_inverse=True, return_counts=True)
    weight = 1.0 / rows[codes]
    gained, lost = weight[one & ~other], weight[other & ~one]
    change = float(gained.sum() - lost.sum())
    deviation = math.sqrt(float(np.sum(gained**2) + np.sum(lost**2)))
    return change / len(classes), abs(change) <= 2.0 * deviation


def paired_difference(one: Array, other: Array) -> tuple[float, bool]:
    """Mean difference of the scores of the same rows, and whether that is chance.

    A difference of up to two standard errors is chance.
    """
    change = one - other
    error = float(change.std(ddof=1)) / math.sqrt(len(change)) if len(change) > 1 else 0
    return float(change.mean()), abs(float(change.mean())) <= 2.0 * error


# --- a machine at learned values ------------------------------------------------------


def predicted_on_folds(machine: BaseEstimator, rows: Rows) -> Array | None:
    """Predict every row by a machine trained without it; None if that cannot be."""
    held = None if isinstance(rows.X, RowBlocks) else on_folds(machine)
    validated = np.concatenate([validation for _, validation in rows.folds])
    if held is None or sorted(validated.tolist()) != list(range(len(rows.y))):
        return None
    predicted: Array = cross_val_predict(
        held, rows.X, rows.y, cv=rows.folds, params=rows.fit_params or None
    )
    return predicted


def on_folds(machine: BaseEstimator) -> BaseEstimator | None:
    """`fixed`, for fits on parts of the rows, where a class may have a single row."""
    held = fixed(machine)
    if held is None or is_regressor(machine):
        return held
    return held.set_params(cv=Halves())


class Halves:
    """Hold out half of every class, rounded down: single rows are never held out."""

    def split(self, X: UserData, y: Array, groups: UserVector = None) -> list[Split]:
        order = np.argsort(y, kind="stable")
        first = np.concatenate([[True], np.diff(np.asarray(y)[order]) != 0])
        place = np.arange(len(order)) - np.flatnonzero(first)[np.cumsum(first) - 1]
        held_out = np.zeros(len(order), dtype=bool)
        held_out[order] = place % 2 == 1
        return [(np.flatnonzero(~held_out), np.flatnonzero(held_out))]


def fixed(machine: BaseEstimator) -> BaseEstimator | None:
    """Return an unfitted estimator with the learned values of a tuned one.

    It learns no hyperparameters. None if no estimator can have these values: class
    tasks with different hyperparameters, groups of samples that only `fit` is given,
    and ensembles.
    """
    if not machine.shared or getattr(machine, "group_names_", None) is not None:
        return None
    if getattr(machine, "estimators_", None) is not None:
        return None
    nothing = dict(callback=None, checkpoint=None)
    if hasattr(machine, "maps_"):
        strengths = dict(lambda_w=machine.lambda_w_, lambda_f=machine.lambda_f_)
        return clone(machine).set_params(
            image_shape=machine.image_shape_, learn=None, **nothing, **strengths
        )
    own = getattr(machine, "machine_", machine)
    held = clone(own).set_params(
        C=own.C_, learn=(), cv=2, starts=1, n_jobs=None, **nothing
    )
    if "kernel" in held.get_params(deep=False) and not own._pairwise:
        held.set_params(kernel=own.kernel_)
    if is_regressor(own):
        return held if own.epsilon_ is None else held.set_params(epsilon=own.epsilon_)
    kind = own.multi_class_
    if len(own.classes_) > 2 or own.threshold is not None:
        # The rows that the splits hold out decide about thresholds between classes.
        held.set_params(cv=own.cv)
    return held.set_params(multi_class=kind)
