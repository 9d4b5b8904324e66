"""Other ways to say how much the accuracy of held-out rows is too good.

Of one and the same fit: the accuracy of held-out rows at the optimum; that less the
correction of Tibshirani and Tibshirani (Annals of Applied Statistics 3, 2009), the mean
over folds of what the best point of each would have gained; the bootstrapped choice
among all points that the search went by (BBC-CV, Tsamardinos et al., Machine Learning
107, 2018); a nested cross-validation, which tunes five times more; and
`expected_score_`. Means of their differences from the score on test rows.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bisvm import BilevelObjective, BilevelSVC
from experiments.common import Context, Result, Table
from experiments.generalisation.data import Part, part
from experiments.generalisation.methods import folds
from experiments.generalisation.rows import Rows, folder

TITLE = "Generalisation: corrections of what held-out rows promise"
FITS = ("corrections_fits.csv",)

SETS = (
    "ida_heart",
    "ida_image",
    "ida_splice",
    "ida_thyroid",
    "breast_cancer",
    "ionosphere",
    "svmguide1",
    "magic04",
    "moons + 10 noise",
    "xor + 8 noise",
    "make_classification",
    "wine",
)
SIZES = (500, 60)
KERNELS = {"one gamma": "rbf", "one per feature": "ard"}
WAYS = ("held-out", "tibshirani", "bbc", "nested", "expected")
# Points of a search that are looked at again, and draws of the bootstrap.
POINTS = 40
DRAWS = 300


def run(context: Context) -> Result:
    rows = Rows(
        folder(context) / "corrections_fits.csv",
        ("set", "size", "split", "kernel"),
        ("test", *WAYS, "seconds"),
    )
    rows.need_all(context.splits, SETS, SIZES, list(KERNELS), _figures)
    body = []
    for words in KERNELS:
        for size in SIZES:
            keys = [(n, size, k, words) for n in SETS for k in range(context.splits)]
            test = np.array([rows.values("test", *key) for key in keys])
            body.append([words, size])
            for way in WAYS:
                said = np.array([rows.values(way, *key) for key in keys])
                body[-1].append(_difference(said - test))
    table = Table(
        f"Points of accuracy beyond the test score, mean ± its standard error over "
        f"{context.splits} splits of {len(SETS)} sets; root mean square",
        ["machine", "rows", *WAYS],
        body,
    )
    return Result([table])


def _difference(values: np.ndarray) -> str:
    values = 100.0 * values
    error = values.std() / np.sqrt(len(values))
    return f"{values.mean():+.2f} ± {error:.2f}; {np.sqrt(np.mean(values**2)):.1f}"


def _figures(name: str, size: int, split: int, words: str) -> dict[str, float]:
    began = time.perf_counter()
    own = part(name, split, size)
    cv = folds(own, split)
    unfitted = _machine(words, split, cv)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = unfitted.fit(own.X, own.y)
        losses, hits = _search(model, own)
        nested = [
            _machine(words, split)
            .fit(own.X[train], own.y[train])
            .score(own.X[held_out], own.y[held_out])
            for train, held_out in cv
        ]
    by_fold = np.array([hits[:, held_out].mean(axis=1) for _, held_out in cv])
    gained = np.mean(by_fold.max(axis=1) - by_fold[:, 0])
    promise = hits[0].mean()
    return {
        "test": model.score(own.X_test, own.y_test),
        "held-out": promise,
        "tibshirani": promise - gained,
        "bbc": _bootstrapped(losses, hits),
        "nested": float(np.mean(nested)),
        "expected": model.expected_score_.value,
        "seconds": time.perf_counter() - began,
    }


def _machine(words: str, split: int, cv: Any = 5) -> BilevelSVC:
    """One machine for each class: `_search` compares their values."""
    return BilevelSVC(KERNELS[words], cv=cv, multi_class="ovr", random_state=split)


def _search(model: Any, own: Part) -> tuple[np.ndarray, np.ndarray]:
    """Losses and hits (points, n) of held-out rows; the first point is the optimum."""
    objective = BilevelObjective(model, own.X, own.y)
    thetas = [record.theta for record in model.history_]
    some = np.linspace(0, len(thetas) - 1, min(POINTS, len(thetas))).astype(int)
    optimum = objective.space.theta(model.hyperparameters_)
    columns, y = objective.problem.columns, np.searchsorted(model.classes_, own.y)
    losses, hits = [], []
    for theta in [optimum, *(thetas[k] for k in some)]:
        point = objective.evaluate(theta, 1e-3)
        values = np.zeros(columns.outside.shape)
        values[columns.outside] = point.held_out
        # Every row is held out once: of its columns the others are zero.
        scores = np.stack(
            [
                values[:, columns.task == k].sum(axis=1)
                for k in range(columns.task.max() + 1)
            ],
            axis=1,
        )
        binary = scores.shape[1] == 1
        said = scores[:, 0] > 0 if binary else scores.argmax(axis=1)
        losses.append(point.shares)
        hits.append(said == y)
    return np.array(losses), np.array(hits, dtype=float)


def _bootstrapped(losses: np.ndarray, hits: np.ndarray) -> float:
    rng = np.random.default_rng(0)
    n = losses.shape[1]
    scores = []
    for _ in range(DRAWS):
        drawn = np.bincount(rng.integers(0, n, n), minlength=n)
        scores.append(hits[np.argmin(losses @ drawn)][drawn == 0].mean())
    return float(np.mean(scores))
