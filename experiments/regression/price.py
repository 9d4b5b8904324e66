"""The price of tuning: seconds of a fit in cross-validations of one SVR.

`BilevelSVR("rbf")` learns C, epsilon and gamma with five folds. Its seconds are divided
by those of a five-fold cross-validation of scikit-learn's `SVR` with the C, epsilon and
gamma that were learned. A grid of 8 x 8 x 4 takes 256 such cross-validations if its
machines were as quick as this one; most are slower.

Friedman's first function with five features of noise, and UCI sets; medians of three
runs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.model_selection import KFold, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVR
from experiments.common import Context, Result, Table
from experiments.regression import record

TITLE = "Price of C, epsilon and gamma in cross-validations of one SVR"

SIZES = (300, 1000, 3000)
SETS = ("pendulum", "concrete", "airfoil", "wine", "sml")
LOSSES = ("huber", "squared", "smooth_epsilon_insensitive")
RUNS = 3
GRID = 8 * 8 * 4


def run(context: Context) -> Result:
    rows = []
    for name, X, y in _sets():
        if not context.chosen([name]):
            continue
        for loss in LOSSES:
            rows.append([name, len(y), loss, *_price(X, y, loss)])
    columns = {"data": "", "rows": "d", "loss": "", "evaluations": "d"}
    columns |= {"seconds": ".2f", "one cross-validation": ".2f", "price": ".1f"}
    columns |= {"grid / ours": ".0f", "R^2": ".3f"}
    return Result([Table("Medians of three runs", columns, rows)])


def _sets() -> list[tuple[str, np.ndarray, np.ndarray]]:
    found = []
    for n in SIZES:
        X, y = make_friedman1(n, n_features=10, noise=1.0, random_state=0)
        found.append((f"friedman {n}", X, y))
    for name in SETS:
        data = record.uci(name)
        found.append((name, data.X, data.y))
    return [(name, StandardScaler().fit_transform(X), y) for name, X, y in found]


def _price(X: np.ndarray, y: np.ndarray, loss: str) -> list[Any]:
    machine = BilevelSVR("rbf", loss=loss, random_state=0)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        ours = _seconds(lambda: machine.fit(X, y))
        # A loss without a tube has no epsilon of an SVR: its default takes that place.
        tube = loss == "smooth_epsilon_insensitive"
        epsilon = machine.epsilon_ if tube else 0.1 * y.std()
        C = machine.C_ if tube else y.std() * machine.C_
        svr = SVR(C=C, gamma=machine.kernel_.gamma, epsilon=epsilon)
        folds = KFold(5, shuffle=True, random_state=0)
        once = _seconds(lambda: cross_val_score(svr, X, y, cv=folds))
    price = ours / once
    evaluations = len(machine.history_)
    expected = machine.expected_score_.value
    return [evaluations, ours, once, price, GRID / price, expected]


def _seconds(work: Callable[[], object]) -> float:
    """Median over the runs, of which the first may compile and does not count."""
    work()
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return float(np.median(times))
