"""UCI sets with published splits: RMSE beside six other methods in the same run.

`BilevelSVR()` and `BilevelSVR("ard")`; scikit-learn's `SVR` with C, gamma and epsilon
from an 8 x 8 x 4 grid, kernel ridge regression with alpha and gamma from an 8 x 8 grid,
a Gaussian process with one width per feature and fitted noise, random forest,
HistGradientBoosting and CatBoost as they come. Features and targets are standardised by
the training part.

Sets with up to 700 rows have the published splits 5 to 7: splits 0 to 4 have chosen the
defaults (`choices`). Sets with up to 1600 rows have split 5 alone. Larger ones are left
out: grid and Gaussian process take too long.

RMSE is in standard deviations of y. A method is better or worse than the grid by a
paired t-test over the splits of a set, at 5% after Holm's correction.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import rankdata, ttest_rel
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVR
from experiments.common import Context, Result, Table
from experiments.generalisation.rows import Rows
from experiments.regression import record
from experiments.regression.friedman import GRID

TITLE = "UCI sets with published splits, beside six other methods"
FITS = ("uci_fits.csv",)

SMALL, LARGEST = 700, 1600
OFTEN, ONCE = (5, 6, 7), (5,)
COVERAGES = (0.8, 0.9, 0.95)
RIDGE = {"alpha": 10.0 ** np.linspace(-4, 1, 8), "gamma": GRID["gamma"]}
LEVEL = 0.05


def _gaussian_process(d: int) -> Any:
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(np.ones(d), (1e-2, 1e3))
    noise = WhiteKernel(0.1, (1e-6, 1e1))
    return GaussianProcessRegressor(kernel + noise, random_state=0)


def _catboost(d: int) -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor(
        random_seed=0, verbose=False, allow_writing_files=False, thread_count=1
    )


OURS = {
    "BilevelSVR": lambda d: BilevelSVR(random_state=0),
    "BilevelSVR, ard": lambda d: BilevelSVR("ard", random_state=0),
}
METHODS: Mapping[str, Callable[[int], Any]] = {
    **OURS,
    "SVR, grid": lambda d: GridSearchCV(SVR(), GRID, cv=5),
    "kernel ridge, grid": lambda d: GridSearchCV(KernelRidge("rbf"), RIDGE, cv=5),
    "Gaussian process": _gaussian_process,
    "random forest": lambda d: RandomForestRegressor(random_state=0),
    "gradient boosting": lambda d: HistGradientBoostingRegressor(random_state=0),
    "CatBoost": _catboost,
}
REFERENCE = "SVR, grid"


def run(context: Context) -> Result:
    assert context.output is not None
    path = context.output / "regression" / "uci_fits.csv"
    names = tuple(f"covered {level}" for level in COVERAGES)
    held = Rows(path, ("set", "split", "method"), ("rmse", "seconds", *names))
    sets = [record.uci(name) for name in context.chosen(record.uci_names())]
    sets = sorted(sets, key=lambda one: len(one.y))
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for data in sets:
        if len(data.y) <= LARGEST:
            splits = OFTEN if len(data.y) <= SMALL else ONCE
            found[data.name] = {
                method: [
                    held.need(
                        (data.name, k, method), partial(_figures, data, k, method)
                    )
                    for k in splits
                ]
                for method in METHODS
            }
    return Result([_by_method(found), _by_set(found), _coverage(found)])


def _fits(
    held: Rows, data: record.RegressionSet, method: str, splits: Sequence[int]
) -> list[dict[str, Any]]:
    return [
        held.need((data.name, k, method), partial(_figures, data, k, method))
        for k in splits
    ]


def _by_method(found: Mapping[str, Mapping[str, list[dict[str, Any]]]]) -> Table:
    rmse = _mean(found, "rmse")
    ranks = rankdata(rmse, axis=1).mean(axis=0)
    relative = (rmse / rmse.min(axis=1, keepdims=True)).mean(axis=0)
    seconds = np.median(_mean(found, "seconds"), axis=0)
    verdicts = [_against_reference(found, method) for method in METHODS]
    rows = [
        [name, rank, error, *verdict, time]
        for name, rank, error, verdict, time in zip(
            METHODS, ranks, relative, verdicts, seconds, strict=True
        )
    ]
    columns = {"method": "", "mean rank": ".2f", "RMSE / lowest": ".3f"}
    columns |= {"better than the grid": "d", "worse": "d", "median seconds": ".1f"}
    return Table(f"{len(found)} sets", columns, rows, "methods")


def _mean(
    found: Mapping[str, Mapping[str, list[dict[str, Any]]]], figure: str
) -> np.ndarray:
    """(sets, methods), means over the splits."""
    return np.array(
        [
            [np.mean([one[figure] for one in own[method]]) for method in METHODS]
            for own in found.values()
        ]
    )


def _against_reference(
    found: Mapping[str, Mapping[str, list[dict[str, Any]]]], method: str
) -> tuple[int, int]:
    """On how many sets a method is better, and on how many worse (Holm, 5%)."""
    values, signs = [], []
    for own in found.values():
        a, b = (
            np.array([one["rmse"] for one in own[name]]) for name in (method, REFERENCE)
        )
        if len(a) > 1 and np.any(a != b):
            values.append(float(ttest_rel(a, b).pvalue))
            signs.append(float(np.sign(np.mean(a - b))))
    clear = holm(values)
    better = sum(one and sign < 0 for one, sign in zip(clear, signs, strict=True))
    worse = sum(one and sign > 0 for one, sign in zip(clear, signs, strict=True))
    return better, worse


def holm(values: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Which p-values are significant together, by Holm's step-down method."""
    clear = [False] * len(values)
    for k, place in enumerate(np.argsort(values)):
        if values[place] > level / (len(values) - k):
            break
        clear[place] = True
    return clear


def _by_set(found: Mapping[str, Mapping[str, list[dict[str, Any]]]]) -> Table:
    rows = [
        [name, len(next(iter(own.values()))), *map(float, rmse)]
        for (name, own), rmse in zip(found.items(), _mean(found, "rmse"), strict=True)
    ]
    columns = {"set": "", "splits": "d"} | {method: ".3f" for method in METHODS}
    return Table("RMSE in standard deviations of y", columns, rows, "sets")


def _coverage(found: Mapping[str, Mapping[str, list[dict[str, Any]]]]) -> Table:
    """Share of test rows in the intervals, and the mean over all sets."""
    columns = {"set": ""} | {f"{level:.0%} intervals": ".3f" for level in COVERAGES}
    rows: list[list[Any]] = []
    for name, own in found.items():
        fits = own["BilevelSVR"]
        rows.append(
            [
                name,
                *(
                    np.mean([f[f"covered {level}"] for f in fits])
                    for level in COVERAGES
                ),
            ]
        )
    means = np.mean([row[1:] for row in rows], axis=0)
    return Table("Coverage", columns, [*rows, ["mean", *means]], "coverage")


def _figures(data: record.RegressionSet, split: int, method: str) -> dict[str, float]:
    X, y, X_test, y_test = data.part(split)
    machine = METHODS[method](X.shape[1])
    machine = TransformedTargetRegressor(machine, transformer=StandardScaler())
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model = make_pipeline(StandardScaler(), machine).fit(X, y)
        predicted = model.predict(X_test)
        covered = _covered(model, X_test, y_test) if method in OURS else {}
    figures = {f"covered {level}": covered.get(level, np.nan) for level in COVERAGES}
    rmse = float(root_mean_squared_error(y_test, predicted)) / float(y.std())
    return {"rmse": rmse, **figures}


def _covered(model: Any, X: np.ndarray, y: np.ndarray) -> dict[float, float]:
    scaler, target = model[0], model[-1]
    unit = target.transformer_.transform(y[:, None])[:, 0]
    found = {}
    for level in COVERAGES:
        given = target.regressor_.predict_interval(scaler.transform(X), level)
        low, high = given.T
        found[level] = float(np.mean((low <= unit) & (unit <= high)))
    return found
