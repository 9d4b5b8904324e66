"""Few of many features matter: Friedman's functions with 20 features of noise.

    10 sin(pi x0 x1) + 20 (x2 - 1/2)^2 + 10 x3 + 5 x4 + noise of deviation 1

and his second and third function of four features, with noise of a third of their
standard deviation (Friedman 1991), each with 20 more features that say nothing. Beside
`BilevelSVR` stands scikit-learn's `SVR` with C, gamma and epsilon from an 8 x 8 x 4
grid. RMSE on 1000 new rows, to y and to the function without its noise: no machine has
an RMSE to y below the deviation of the noise. Seconds of the whole fit.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVR
from experiments.common import Context, Result, Spread, Table
from experiments.generalisation.rows import Rows
from experiments.regression.record import RegressionSet

TITLE = "Friedman's functions with 20 features of noise"
FITS = ("friedman_fits.csv",)

NEW = 1000
NOISY = 20
DRAWS = 5
SIZES = (200, 500)
FUNCTIONS = {1: make_friedman1, 2: make_friedman2, 3: make_friedman3}
GRID = {
    "C": 10.0 ** np.linspace(-1, 4, 8),
    "gamma": 10.0 ** np.linspace(-4, 1, 8),
    "epsilon": (0.01, 0.1, 0.3, 1.0),
}
METHODS = ("auto", "ard", "grid")


def among_noise(n: int, draws: int, function: int = 1) -> RegressionSet:
    """Return rows of all draws, each a split (n training rows, 1000 new ones)."""
    return with_function(n, draws, function)[0]


def with_function(
    n: int, draws: int, function: int
) -> tuple[RegressionSet, np.ndarray]:
    """Return the rows, and the values of the function without noise."""
    X, y, splits, values = [], [], [], []
    for seed in range(draws):
        given = {"n_features": 5} if function == 1 else {}
        own, signal = FUNCTIONS[function](n + NEW, random_state=seed, **given)
        rng = np.random.default_rng(seed)
        size = 1.0 if function == 1 else signal.std() / 3.0
        more = rng.uniform(size=(n + NEW, NOISY))
        X.append(np.hstack([own, more]))
        y.append(signal + size * rng.normal(size=n + NEW))
        values.append(signal)
        first = seed * (n + NEW)
        rows = np.arange(first, first + n + NEW)
        splits.append((rows[:n], rows[n:]))
    name = f"friedman{function}_{n}"
    data = RegressionSet(name, np.vstack(X), np.concatenate(y), splits)
    return data, np.concatenate(values)


def run(context: Context) -> Result:
    assert context.output is not None
    path = context.output / "regression" / "friedman_fits.csv"
    keys = ("function", "rows", "draw", "method")
    held = Rows(path, keys, ("rmse", "of_function", "seconds"))
    draws, rows = min(context.splits, DRAWS), []
    for function in FUNCTIONS:
        for n in SIZES:
            data, values = with_function(n, draws, function)
            if not context.chosen([data.name]):
                continue
            found = {
                method: [
                    held.need(
                        (function, n, draw, method),
                        partial(_figures, data, values, draw, method),
                    )
                    for draw in range(draws)
                ]
                for method in METHODS
            }
            rows.append(_row(function, n, found))
    columns = {"function": "d", "rows": "d"}
    for measure in ("RMSE", "to the function"):
        columns |= {f"{measure}, {method}": ".3f" for method in METHODS}
        columns |= {f"{measure}, auto / grid": ".2f", f"{measure}, ard / grid": ".2f"}
    columns |= {f"seconds, {method}": ".1f" for method in METHODS}
    return Result([Table("RMSE on 1000 new rows", columns, rows)])


def _row(function: int, n: int, found: dict[str, list[dict[str, Any]]]) -> list[Any]:
    row: list[Any] = [function, n]
    for measure in ("rmse", "of_function"):
        errors = {m: np.array([one[measure] for one in found[m]]) for m in METHODS}
        row += [Spread.of(errors[m]) for m in METHODS]
        row += [float(np.mean(errors[m] / errors["grid"])) for m in ("auto", "ard")]
    return row + [np.mean([one["seconds"] for one in found[m]]) for m in METHODS]


def _figures(
    data: RegressionSet, values: np.ndarray, draw: int, method: str
) -> dict[str, float]:
    X, y, X_new, y_new = data.part(draw)
    began = time.perf_counter()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model = make_pipeline(StandardScaler(), _machine(method, y)).fit(X, y)
    seconds = time.perf_counter() - began
    predicted = model.predict(X_new)
    function = values[data.splits[draw][1]]
    return {
        "rmse": float(root_mean_squared_error(y_new, predicted)),
        "of_function": float(root_mean_squared_error(function, predicted)),
        "seconds": seconds,
    }


def _machine(method: str, y: np.ndarray) -> Any:
    if method != "grid":
        return BilevelSVR(method, random_state=0)
    # C and epsilon of an SVR are in units of y.
    scale = float(y.std())
    grid = {name: scale * np.asarray(GRID[name]) for name in ("C", "epsilon")}
    return GridSearchCV(SVR(), {**GRID, **grid}, cv=5)
