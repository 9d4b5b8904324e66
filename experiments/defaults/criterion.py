"""Which criterion, with one width and with one for each feature.

Test error on the published splits of the IDA sets and on two half moons among ten
columns of noise, for a grid search and for `BilevelSVC` with each criterion; everything
else at its default (five folds, free intercept, climb from one width to many). All
methods see the same folds, and inputs standardised on the training part.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVC
from bisvm.datasets import load, make_moons_with_noise
from experiments.common import Context, Result, Spread, Table

TITLE = "Defaults: criteria on the IDA sets and the noisy moons"

SETS = ("banana", "breast_cancer", "diabetis", "heart", "thyroid")
CRITERIA = ("blend", "calibrated_logistic", "calibrated_mse", "mse")
GRID = {"C": np.logspace(-2, 3, 11), "gamma": np.logspace(-4, 1, 10)}

Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def run(context: Context) -> Result:
    splits = min(context.splits, 10)
    names = [*SETS, "moons + 10 noise"]
    errors: dict[str, dict[str, list[float]]] = {}
    seconds: dict[str, list[float]] = {}
    for name in names:
        for number, part in enumerate(_parts(name, splits)):
            for method, build in _methods(number).items():
                began = time.perf_counter()
                error = _test_error(build, part)
                seconds.setdefault(method, []).append(time.perf_counter() - began)
                errors.setdefault(method, {}).setdefault(name, []).append(error)
    rows = [
        [
            method,
            *(Spread.of(by_set[name]) for name in names),
            np.median(seconds[method]),
        ]
        for method, by_set in errors.items()
    ]
    columns = {"method": "", **dict.fromkeys(names, ".1f"), "median seconds": ".2f"}
    table = Table(f"Test error in %, {splits} splits", columns, rows)
    notes = (
        "Grid: 11 x 10 values of C and gamma, accuracy on the same five folds.",
        "Deviations are over the splits and say how sets differ, not methods: these "
        "see the same splits.",
    )
    return Result([table], notes=notes)


def _methods(seed: int) -> dict[str, Callable[[], object]]:
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    methods: dict[str, Callable[[], object]] = {
        "grid search, SVC": lambda: GridSearchCV(SVC(), GRID, cv=folds)
    }
    for kernel, words in (("rbf", "one width"), ("ard", "one each")):
        for criterion in CRITERIA:
            methods[f"{words}, {criterion}"] = (
                lambda kernel=kernel, criterion=criterion: BilevelSVC(
                    kernel, criterion=criterion, cv=folds, random_state=seed
                )
            )
    return methods


def _parts(name: str, splits: int) -> Iterator[Part]:
    for number in range(splits):
        if name.startswith("moons"):
            X, y = make_moons_with_noise(5500, random_state=number)
            yield X[:500], y[:500], X[500:], y[500:]
        else:
            data = load(f"ida_{name}")
            train, test = data.splits[number]
            scaler = StandardScaler().fit(data.X[train])
            X = scaler.transform(data.X)
            yield X[train], data.y[train], X[test], data.y[test]


def _test_error(build: Callable[[], object], part: Part) -> float:
    X, y, X_test, y_test = part
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = build().fit(X, y)  # type: ignore[attr-defined]
    return 100.0 * (1.0 - model.score(X_test, y_test))
