"""What is compared: ways to tune an SVM, and one setting of ours at a time.

Around `BilevelSVC("rbf")`, with one gamma, one setting after the other is
changed. All methods but those that are about splits see the same five folds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.model_selection import (
    GridSearchCV,
    GroupShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_score,
)
from sklearn.svm import SVC

from bisvm import BilevelSVC
from bisvm.criteria import VALIDATION
from bisvm.published.swapping import SwapHoldout
from experiments.generalisation.data import Part

GRID = {"C": np.logspace(-2, 3, 11), "gamma": np.logspace(-4, 1, 11)}
TRIALS = 100
HELD_OUT = 0.3

Pairs = list[tuple[np.ndarray, np.ndarray]]
Fit = Callable[[Part, int], Any]


# --- splits ---------------------------------------------------------------------------


def folds(part: Part, seed: int, n_folds: int = 5) -> Pairs:
    """Stratified folds that keep groups together; fewer where a class is small."""
    n_folds = min(n_folds, int(np.unique(part.y, return_counts=True)[1].min()))
    kind = StratifiedKFold if part.groups is None else StratifiedGroupKFold
    splitter = kind(n_folds, shuffle=True, random_state=seed)
    return list(splitter.split(part.X, part.y, part.groups))


def repeated(part: Part, seed: int) -> Pairs:
    """Three times five folds, the first five of which are those of `folds`."""
    seeds = [seed, 1000 + seed, 2000 + seed]
    return [pair for one in seeds for pair in folds(part, one)]


def hold_out(part: Part, seed: int) -> Pairs:
    kind = StratifiedShuffleSplit if part.groups is None else GroupShuffleSplit
    splitter = kind(1, test_size=HELD_OUT, random_state=seed)
    return list(splitter.split(part.X, part.y, part.groups))


# --- ways to tune ---------------------------------------------------------------------


def bilevel(kernel: Any = "rbf", *, cv: Any = folds, **settings: Any) -> Fit:
    """`BilevelSVC` with some settings; `cv` makes the splits of a part."""

    def fit(part: Part, seed: int) -> Any:
        splits = cv(part, seed) if callable(cv) else cv
        model = BilevelSVC(kernel, cv=splits, random_state=seed, **settings)
        return model.fit(part.X, part.y, groups=part.groups)

    return fit


def grid(part: Part, seed: int) -> Any:
    return GridSearchCV(SVC(), GRID, cv=folds(part, seed)).fit(part.X, part.y)


def optuna(part: Part, seed: int) -> Any:
    """Tree-structured Parzen estimators, within the bounds of the grid."""
    import optuna as library

    library.logging.set_verbosity(library.logging.ERROR)
    splits = folds(part, seed)

    def accuracy(trial: Any) -> float:
        values = {
            name: trial.suggest_float(name, axis[0], axis[-1], log=True)
            for name, axis in GRID.items()
        }
        return cross_val_score(SVC(**values), part.X, part.y, cv=splits).mean()

    sampler = library.samplers.TPESampler(seed=seed)
    search = library.create_study(direction="maximize", sampler=sampler)
    search.optimize(accuracy, n_trials=TRIALS)
    return SVC(**search.best_params).fit(part.X, part.y)


# --- the study's table ----------------------------------------------------------------

DEFAULT = "bilevel, one gamma"

METHODS: dict[str, Fit] = {
    "grid": grid,
    **({"optuna": optuna} if find_spec("optuna") else {}),
    DEFAULT: bilevel(),
    "bilevel, one per feature": bilevel("ard"),
    "bilevel, auto": bilevel("auto"),
}

FACTORS: dict[str, dict[str, Fit]] = {
    "criterion": {
        **{name: bilevel(criterion=name) for name in VALIDATION if name != "auto"},
        "auto, balanced": bilevel(class_weight="balanced"),
        **{
            name: bilevel(criterion=name)
            for name in ("balanced_blend", "balanced_smoothed_error")
        },
    },
    "splits": {
        "3 folds": bilevel(cv=lambda part, seed: folds(part, seed, 3)),
        "10 folds": bilevel(cv=lambda part, seed: folds(part, seed, 10)),
        "3 x 5 folds": bilevel(cv=repeated),
        "hold-out": bilevel(cv=hold_out),
        "swapping hold-out": bilevel(cv=SwapHoldout()),
    },
    "machine": {
        "no intercept": bilevel(fit_intercept=False),
        "penalised intercept": bilevel(fit_intercept="penalized"),
        "exact hinge": bilevel(loss="hinge"),
    },
}

# What the default is called among the choices of its own factor.
DEFAULT_CHOICE = {
    "criterion": "auto",
    "splits": "5 folds",
    "machine": "free intercept",
}

ALL: dict[str, Fit] = {
    **METHODS,
    **{k: v for f in FACTORS.values() for k, v in f.items()},
}

# Points that change places would tear groups apart.
NOT_WITH_GROUPS = {"swapping hold-out"}


def test_error(method: str, part: Part, seed: int) -> float:
    """In per cent; warnings about convergence are not the study's subject."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ALL[method](part, seed)
    return 100.0 * (1.0 - model.score(part.X_test, part.y_test))
