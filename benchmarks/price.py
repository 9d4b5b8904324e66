"""The price of tuning, in cross-validations: `python -m benchmarks.price [--full]`.

    price = seconds of BilevelSVC().fit  /  seconds of cross_val_score(SVC(C, gamma))

at the C and gamma found, in one process, on the same five folds, with one thread. A
price says nothing without H beside it: a bad C makes the SVC slow and the price low.

Seconds are CPU time of the process: on a machine that others use as well, the clock on
the wall tells of them. The two sides of a ratio are measured by turns.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.datasets import make_classification, make_moons
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import bisvm
from bisvm import BilevelObjective, BilevelSVC
from bisvm.datasets import load, make_moons_with_noise
from experiments.common import Result, Spread, Table

RESULTS = Path(__file__).parent / "results"
GRID = {"C": np.logspace(-2, 3, 11), "gamma": np.logspace(-4, 0.5, 10)}
ARCHIVES = ("svmguide1", "ida_image", "ida_banana")
UNSEEN = 5000
MOONS_TRAINING = 500


@dataclass(frozen=True)
class Settings:
    """How much to measure."""

    sizes: tuple[int, ...] = (300, 1000)
    archive_size: int = 1000
    repetitions: int = 3
    seeds: int = 3


SHORT = Settings()
FULL = Settings((300, 1000, 3000), repetitions=5, seeds=10)


@dataclass(frozen=True)
class Sample:
    """Standardised data, the folds on which all is compared, and points unseen."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @classmethod
    def cut(cls, name: str, X: np.ndarray, y: np.ndarray, n: int) -> Sample:
        """The first n rows, and the others to test on."""
        scaler = StandardScaler().fit(X[:n])
        return cls(name, scaler.transform(X[:n]), y[:n], scaler.transform(X[n:]), y[n:])

    @property
    def folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        return list(folds.split(self.X, self.y))

    def error(self, model: Any) -> float:
        return 1.0 - float(model.score(self.X_test, self.y_test))


def samples(settings: Settings) -> Iterator[Sample]:
    """Synthetic data of every size, and archived data where there are any."""
    for n in settings.sizes:
        X, y = make_moons(n + UNSEEN, noise=0.25, random_state=0)
        yield Sample.cut("moons", X, y, n)
        X, y = make_classification(
            n + UNSEEN, 20, n_informative=6, class_sep=0.7, random_state=0
        )
        yield Sample.cut("classification", X, y, n)
    folder = Path(os.environ.get("BISVM_DATA", ""))
    for name in ARCHIVES:
        if (folder / f"{name}.npz").is_file():
            X, y = load(name, return_X_y=True)
            rows = np.random.default_rng(0).permutation(len(y))
            name = name.removeprefix("ida_")
            yield Sample.cut(name, X[rows], y[rows], settings.archive_size)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


# --- price ----------------------------------------------------------------------------

PRICE_COLUMNS = {
    "data": "",
    "n": "d",
    "features": "d",
    "C": ".3g",
    "gamma": ".3g",
    "H": ".4f",
    "H, grid": ".4f",
    "test error": ".1%",
    "test error, grid": ".1%",
    "evaluations": "d",
    "tune, s": ".2f",
    "one CV, s": ".3f",
    "grid, s": ".2f",
    "price": ".1f",
    "price of grid": ".0f",
}


def price(sample: Sample, repetitions: int) -> list[Any]:
    """One row of the table."""
    X, y, folds = sample.X, sample.y, sample.folds
    estimator = BilevelSVC(cv=folds, random_state=0)

    def tune() -> BilevelSVC:
        return estimator.fit(X, y)

    found = tune().hyperparameters_  # also warms up

    def cross_validate() -> np.ndarray:
        return cross_val_score(SVC(**found), X, y, cv=folds)

    tuning, validating = _by_turns(tune, cross_validate, repetitions)
    search = GridSearchCV(SVC(), GRID, cv=folds)
    _, grid_seconds = timed(lambda: search.fit(X, y))
    ratio = median(a / b for a, b in zip(tuning, validating, strict=True))
    return [
        sample.name,
        len(y),
        X.shape[1],
        found["C"],
        found["gamma"],
        estimator.criterion_value_,
        criterion_at(estimator, X, y, search.best_params_),
        sample.error(estimator),
        sample.error(search),
        estimator.n_iter_,
        median(tuning),
        median(validating),
        grid_seconds,
        ratio,
        grid_seconds / median(validating),
    ]


def _by_turns(
    first: Callable[[], Any], second: Callable[[], Any], repetitions: int
) -> tuple[list[float], list[float]]:
    """Seconds of both, one after the other, so that both see the same disturbances."""
    of_first, of_second = [], []
    for _ in range(repetitions):
        before = timed(second)[1]
        of_first.append(timed(first)[1])
        of_second.append(0.5 * (before + timed(second)[1]))
    return of_first, of_second


def criterion_at(
    estimator: BilevelSVC, X: Any, y: Any, values: dict[str, Any]
) -> float:
    """H, without the prior, at hyperparameters found otherwise."""
    objective = BilevelObjective(estimator, X, y)
    return objective.evaluate(objective.space.theta(values)).criterion


# --- the headline ---------------------------------------------------------------------

MOONS_COLUMNS = {
    "method": "",
    "test error, %": ".1f",
    "worst, %": ".1f",
    "seconds": ".1f",
    "moons first": "",
}


def moons(seeds: int) -> list[list[Any]]:
    """Two moons among ten columns of noise: one gamma per column against the grid."""
    many, grid, ranked = [], [], 0
    for seed in range(seeds):
        X, y = make_moons_with_noise(MOONS_TRAINING + UNSEEN, random_state=seed)
        sample = Sample.cut("moons", X, y, MOONS_TRAINING)
        tuned = BilevelSVC("ard", cv=sample.folds, random_state=0)
        search = GridSearchCV(SVC(), GRID, cv=sample.folds)
        for model, results in ((tuned, many), (search, grid)):
            _, seconds = timed(lambda m=model, s=sample: m.fit(s.X, s.y))
            results.append((100 * sample.error(model), seconds))
        ranked += set(np.argsort(-tuned.relevance_)[:2]) == {0, 1}
    return [
        _moons_row("BilevelSVC(kernel='ard')", many, f"{ranked} of {seeds}"),
        _moons_row("GridSearchCV(SVC()), 11 x 10", grid, None),
    ]


def _moons_row(
    method: str, results: list[tuple[float, float]], ranked: str | None
) -> list[Any]:
    errors, seconds = zip(*results, strict=True)
    return [method, Spread.of(errors), max(errors), Spread.of(seconds), ranked]


# --- report ---------------------------------------------------------------------------


def versions() -> str:
    found = {
        "bisvm": bisvm.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "Python": platform.python_version(),
    }
    text = ", ".join(f"{name} {version}" for name, version in found.items())
    return f"{text}; {os.cpu_count()} CPUs"


def run(settings: Settings) -> Result:
    rows = []
    with threadpool_limits(1):
        for sample in samples(settings):
            print(f"  {sample.name}, n = {len(sample.y)}", file=sys.stderr, flush=True)
            rows.append(price(sample, settings.repetitions))
        print(f"  noisy moons, {settings.seeds} seeds", file=sys.stderr, flush=True)
        headline = moons(settings.seeds)
    return Result(
        tables=[
            Table("The price of tuning C and gamma", PRICE_COLUMNS, rows),
            Table(
                f"Two moons among 10 noise columns, {MOONS_TRAINING} training points, "
                f"{settings.seeds} seeds",
                MOONS_COLUMNS,
                headline,
                name="moons",
            ),
        ],
        notes=[
            "price = seconds to tune / seconds of one five-fold cross_val_score of an "
            f"SVC at the values found; median of {settings.repetitions} by turns.",
            "H is the validation loss that was minimised; H, grid the same loss at the "
            "pair that a grid search of 11 x 10 chose by accuracy.",
            "Test errors are on points that neither method has seen.",
            "Seconds are CPU time, one thread.",
            versions() + ".",
        ],
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.price", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--full", action="store_true", help="every size, more seeds")
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="folder of results"
    )
    options = parser.parse_args(arguments)
    result = run(FULL if options.full else SHORT)
    print(result.to_text())
    for path in result.write(options.output, "price", "The price of tuning"):
        print(f"  {path}")


if __name__ == "__main__":
    main()
