"""The machines of chapter 6, and confusion matrices as tables and pictures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha1
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import additive_chi2_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from bisvm.kernels import Chi2
from experiments.common import Spread

FOLDS = 5
# The seed's lower level knows no intercept, its upper level is the mean squared error,
# and every one-vs-rest machine has hyperparameters of its own.
THESIS: dict[str, Any] = {
    "criterion": "mse",
    "fit_intercept": False,
    "optimizer": "lbfgs",
    "prior": None,
    "shared": False,
    "starts": 1,
}


@dataclass(frozen=True)
class Data:
    """Training and test rows of one split."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def mapped(self, function: Callable[[Any], Any]) -> Data:
        """The same rows, in other columns."""
        return Data(function(self.X), self.y, function(self.X_test), self.y_test)


@dataclass(frozen=True)
class Outcome:
    """What one machine says of the test rows of one split.

    evaluations : binary SVMs trained to tune it
    learned : hyperparameters, natural units
    """

    y: np.ndarray
    predicted: np.ndarray
    evaluations: int
    seconds: float
    learned: dict[str, Any] = field(default_factory=dict)

    @property
    def confusion(self) -> np.ndarray:
        """Per cent of the rows of class i (a row) that are taken for class j."""
        classes = np.unique(self.y)
        return np.array(
            [
                [100 * np.mean(self.predicted[self.y == i] == j) for j in classes]
                for i in classes
            ]
        )

    @property
    def rate(self) -> float:
        """The seed's mAcc: the mean of the diagonal."""
        return float(np.trace(self.confusion) / len(self.confusion))


def mean_confusion(outcomes: Sequence[Outcome]) -> np.ndarray:
    return np.mean([one.confusion for one in outcomes], axis=0)


def cells(outcomes: Sequence[Outcome]) -> tuple[Any, ...]:
    """Test rate, SVMs trained and seconds, over the splits."""
    return (
        Spread.of(one.rate for one in outcomes),
        np.mean([one.evaluations for one in outcomes]),
        np.median([one.seconds for one in outcomes]),
    )


MEASURES = {"test rate %": ".2f", "SVMs trained": ".0f", "seconds": ".0f"}


# --- splits ---------------------------------------------------------------------------


def rows_per_class(
    y: np.ndarray, sizes: Sequence[int], rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """Disjoint parts that hold exactly `sizes[p]` random rows of every class."""
    ends = np.cumsum(sizes)
    parts: list[list[np.ndarray]] = [[] for _ in sizes]
    for label in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == label))
        if len(members) < ends[-1]:
            raise ValueError(
                f"{ends[-1]} rows of class {label} asked for; there are {len(members)}."
            )
        for part, rows in zip(parts, np.split(members, ends), strict=False):
            part.append(rows)
    return tuple(np.sort(np.concatenate(part)) for part in parts)


# --- machines -------------------------------------------------------------------------


class RememberedChi2(Chi2):
    """`Chi2` that computes the distances of the same points once, not for every gamma.

    k = exp(-gamma D), and D takes all the time where there are thousands of columns.
    """

    def gram(self, X: Any, Y: Any = None) -> np.ndarray:
        gram = -self._gamma(X) * _distances(_Points(X), _Points(X if Y is None else Y))
        return np.exp(gram, out=gram)


class _Points:
    """Rows that are equal if their bytes are: keys of the memory."""

    def __init__(self, X: Any):
        self.X = np.ascontiguousarray(X, dtype=float)
        self.key = (self.X.shape, sha1(self.X.data).digest())

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Points) and self.key == other.key


@lru_cache(maxsize=4)
def _distances(X: _Points, Y: _Points) -> np.ndarray:
    return -additive_chi2_kernel(X.X, Y.X)


def fit(estimator: Any, data: Data) -> Outcome:
    """Tune an estimator of the library, and predict the test rows."""
    began = time.perf_counter()
    estimator.fit(data.X, data.y)
    seconds = time.perf_counter() - began
    return Outcome(
        data.y_test,
        estimator.predict(data.X_test),
        sum(record.solves for record in estimator.history_),
        seconds,
        dict(estimator.hyperparameters_),
    )


def grid_search_chi2(
    data: Data, C: Iterable[float], gamma: Iterable[float], seed: int
) -> Outcome:
    """The best of a grid by accuracy on five folds, in scikit-learn's SVC."""
    began = time.perf_counter()
    distances = -additive_chi2_kernel(data.X)
    machine = OneVsRestClassifier(SVC(kernel="precomputed"))
    grid = {"estimator__C": list(C)}
    searches = {
        width: _grid_search(machine, grid, np.exp(-width * distances), data.y, seed)
        for width in gamma
    }
    width = max(searches, key=lambda width: searches[width].best_score_)
    best = searches[width]
    seconds = time.perf_counter() - began
    test = np.exp(width * additive_chi2_kernel(data.X_test, data.X))
    return Outcome(
        data.y_test,
        best.predict(test),
        sum(_trained(search) for search in searches.values()),
        seconds,
        {"C": best.best_params_["estimator__C"], "gamma": width},
    )


def grid_search(machine: Any, grid: dict[str, Any], data: Data, seed: int) -> Outcome:
    """The best of a grid by accuracy on five folds, one machine against the rest."""
    began = time.perf_counter()
    search = _grid_search(machine, grid, data.X, data.y, seed)
    seconds = time.perf_counter() - began
    predicted = search.predict(data.X_test)
    return Outcome(
        data.y_test, predicted, _trained(search), seconds, search.best_params_
    )


def _grid_search(
    machine: Any, grid: dict[str, Any], X: np.ndarray, y: np.ndarray, seed: int
) -> GridSearchCV:
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    return GridSearchCV(machine, grid, cv=folds).fit(X, y)


def _trained(search: GridSearchCV) -> int:
    """Binary machines, one for each class, fold and point of the grid."""
    return len(search.classes_) * FOLDS * len(search.cv_results_["params"])


# --- pictures -------------------------------------------------------------------------


def draw_confusion(
    axes: Any, matrix: np.ndarray, names: Sequence[str], title: str
) -> None:
    """Per cent in every field, dark where they are many; rows are the true classes."""
    axes.imshow(matrix, cmap="Blues", vmin=0, vmax=130)
    for (i, j), value in np.ndenumerate(matrix):
        if value >= 0.05:
            axes.text(
                j,
                i,
                f"{value:.1f}" if value < 99.95 else "100",
                ha="center",
                va="center",
                color="white" if value > 60 else "0.1",
                fontsize=7,
            )
    places = range(len(names))
    longest = max(map(len, names))
    axes.set_xticks(places, names, rotation=0 if longest < 3 else 90)
    axes.set_yticks(places, names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(f"{title}: {np.trace(matrix) / len(matrix):.2f}%")
    axes.set_xlabel("taken for")
