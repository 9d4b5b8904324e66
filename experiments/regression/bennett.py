"""Linear SVR with few relevant features: C, epsilon and one C per feature, or a grid.

After the study of Bennett, Hu, Ji, Kunapuli and Pang (IJCNN 2006), who learn C, epsilon
and bounds |w_d| <= wbar_d of a linear SVR by one bilevel program, and compare it with a
grid over C and epsilon, since a grid over the bounds is out of reach. Neither their
data nor their generator are published; these are data of the same kind:

    y = w'x + noise,    x standard normal,    half of the w_d zero, the others +-1,

with Gaussian noise or Student's with three degrees of freedom, of deviation one.
Here one C per feature takes the place of the bounds: both make irrelevant features
harmless. Three folds, mean absolute deviation (MAD) as criterion and on 1000 new rows,
as in the study. The grid has ten values of C and five of epsilon.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import SVR
from threadpoolctl import threadpool_limits

from bisvm import BilevelLinearSVR
from experiments.common import Context, Result, Spread, Table

TITLE = "Linear SVR with few relevant features, after Bennett et al. (2006)"

DIMENSIONS, NOISES = (10, 15, 25), ("gaussian", "student")
ROWS_PER_FEATURE, NEW, DRAWS = 4, 1000, 10
GRID = {"C": np.geomspace(1e-3, 1e2, 10), "epsilon": np.geomspace(1e-2, 1.0, 5)}
TUBE = "smooth_epsilon_insensitive"


def drawn(d: int, noise: str, seed: int) -> tuple[np.ndarray, ...]:
    """Return X and y of the training rows, X and y of new rows."""
    rng = np.random.default_rng(seed)
    n = ROWS_PER_FEATURE * d
    X = rng.normal(size=(n + NEW, d))
    w = np.where(np.arange(d) < d // 2, rng.choice([-1.0, 1.0], size=d), 0.0)
    size = len(X)
    heavy = rng.standard_t(3, size=size) / np.sqrt(3.0)
    own = rng.normal(size=size) if noise == "gaussian" else heavy
    y = X @ w + own
    return X[:n], y[:n], X[n:], y[n:]


def _methods(y: np.ndarray) -> dict[str, Callable[[], Any]]:
    folds = KFold(3, shuffle=True, random_state=0)
    scale = float(y.std())
    grid = {name: scale * values for name, values in GRID.items()}
    grid["C"] = GRID["C"]
    given: dict[str, Any] = {"loss": TUBE, "criterion": "mae", "cv": folds}
    score = "neg_mean_absolute_error"
    return {
        "grid": lambda: GridSearchCV(
            SVR(kernel="linear"), grid, cv=folds, scoring=score
        ),
        "C, epsilon": lambda: BilevelLinearSVR(**given, random_state=0),
        "one C per feature": lambda: BilevelLinearSVR(
            **given, regularization="per_feature", random_state=0
        ),
    }


def run(context: Context) -> Result:
    rows = []
    for d in DIMENSIONS:
        for noise in NOISES:
            if context.chosen([f"{noise}_{d}"]):
                rows.append(_row(d, noise, min(context.splits, DRAWS)))
    names = list(_methods(np.zeros(1)))
    columns = {"features": "d", "rows": "d", "noise": ""}
    columns |= {f"MAD, {name}": ".3f" for name in names}
    columns |= {f"seconds, {name}": ".2f" for name in names}
    return Result([Table("Mean absolute deviation on 1000 new rows", columns, rows)])


def _row(d: int, noise: str, draws: int) -> list[Any]:
    errors: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    for seed in range(draws):
        X, y, X_new, y_new = drawn(d, noise, seed)
        for name, make in _methods(y).items():
            began = time.perf_counter()
            with warnings.catch_warnings(), threadpool_limits(1):
                warnings.simplefilter("ignore")
                model = make().fit(X, y)
            seconds.setdefault(name, []).append(time.perf_counter() - began)
            error = float(mean_absolute_error(y_new, model.predict(X_new)))
            errors.setdefault(name, []).append(error)
    spreads = [Spread.of(own) for own in errors.values()]
    times = [float(np.median(own)) for own in seconds.values()]
    return [d, ROWS_PER_FEATURE * d, noise, *spreads, *times]
