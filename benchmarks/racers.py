"""Those who tune: ours and the searches they are compared with.

A racer is given a sample and gives a model that predicts, the values it chose, the
number of machines it trained, and the values that were best when: all of them look in
the same box on the same folds, with one process and one thread. Ours have the bounds of
their defaults, which are wider than the box.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import make_moons
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import (
    GridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    cross_val_score,
)
from sklearn.svm import SVC, LinearSVC

from benchmarks.measure import alone
from benchmarks.sets import Sample
from bisvm import BilevelLinearSVC, BilevelSVC
from bisvm.search.history import Progress
from bisvm.selection.comparison import BOX

Values = dict[str, Any]
# Ten values of C, as LogisticRegressionCV has them by default.
LINEAR_C = np.logspace(-4, 4, 10)


@dataclass(frozen=True)
class Outcome:
    """What a racer brings home.

    steps : pairs of seconds and values: what it would have answered from then on
    """

    model: Any
    values: Values
    fits: int
    steps: list[tuple[float, Values]] = field(default_factory=list)


@dataclass(frozen=True)
class Racer:
    """One way to tune.

    fits : machines that it trains on four folds of five; 0 for those that decide
        themselves, and are not estimated beforehand
    """

    name: str
    tune: Callable[[Sample], Outcome]
    fits: int = 0
    ours: bool = False
    linear: bool = False
    needs: str = ""

    @property
    def at_hand(self) -> bool:
        return not self.needs or find_spec(self.needs) is not None


# --- ours -----------------------------------------------------------------------------


def ours(kernel: str) -> Callable[[Sample], Outcome]:
    def tune(sample: Sample) -> Outcome:
        steps: list[tuple[float, Values]] = []

        def watch(progress: Progress) -> None:
            """Once it changes; what is looked at tentatively is no answer yet."""
            best = progress.best_hyperparameters
            if not steps or not _same(best, steps[-1][1]):
                steps.append((progress.record.seconds, best))

        settings = {"cv": sample.folds, "callback": watch, "random_state": 0}
        model = (
            BilevelLinearSVC(**settings)
            if kernel == "linear"
            else BilevelSVC(kernel, **settings)
        ).fit(sample.X, sample.y)
        fits = model.n_svm_evaluations_ + len(model.intercept_)
        return Outcome(model, dict(model.hyperparameters_), fits, steps)

    return tune


def _same(one: Values, other: Values) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


# --- searches of scikit-learn ---------------------------------------------------------


def grid(points: int) -> Callable[[Sample], Outcome]:
    places = {name: np.geomspace(*box, points) for name, box in BOX.items()}
    return _search(lambda cv: GridSearchCV(SVC(), places, cv=cv))


def _within_box() -> dict[str, Any]:
    return {name: loguniform(*box) for name, box in BOX.items()}


def randomized(n: int) -> Callable[[Sample], Outcome]:
    return _search(
        lambda cv: RandomizedSearchCV(
            SVC(), _within_box(), n_iter=n, cv=cv, random_state=0
        )
    )


def halving() -> Callable[[Sample], Outcome]:
    return _search(
        lambda cv: HalvingRandomSearchCV(SVC(), _within_box(), cv=cv, random_state=0)
    )


def linear_grid(C: Sequence[float]) -> Callable[[Sample], Outcome]:
    machine = LinearSVC(random_state=0)
    return _search(lambda cv: GridSearchCV(machine, {"C": list(C)}, cv=cv))


def _search(make: Callable[[Any], Any]) -> Callable[[Sample], Outcome]:
    def tune(sample: Sample) -> Outcome:
        search = make(sample.cv).fit(sample.X, sample.y)
        fits = search.n_splits_ * len(search.cv_results_["params"]) + 1
        steps = _best_so_far(search.cv_results_, search.n_splits_)
        return Outcome(search, dict(search.best_params_), fits, steps)

    return tune


def _best_so_far(results: dict[str, Any], folds: int) -> list[tuple[float, Values]]:
    """Scores on fewer rows do not compare: a halving answers when a round has ended."""
    seconds = np.cumsum(folds * (results["mean_fit_time"] + results["mean_score_time"]))
    scores = np.nan_to_num(results["mean_test_score"], nan=-np.inf)
    if "iter" in results:
        rounds = [np.flatnonzero(results["iter"] == i) for i in set(results["iter"])]
        pairs = [(part[-1], part[scores[part].argmax()]) for part in rounds]
    else:
        best = np.maximum.accumulate(scores)
        new = np.flatnonzero(np.diff(best, prepend=-np.inf) > 0)
        pairs = [(i, i) for i in new]
    return [(seconds[end], dict(results["params"][best])) for end, best in pairs]


def logistic(sample: Sample) -> Outcome:
    model = LogisticRegressionCV(
        Cs=list(LINEAR_C), cv=sample.cv, max_iter=1000, use_legacy_attributes=False
    )
    model.fit(sample.X, sample.y)
    C = float(np.mean(model.C_))
    return Outcome(model, {"C": C}, 5 * len(LINEAR_C) + 1)


# --- Optuna ---------------------------------------------------------------------------


def optuna_tpe(trials: int) -> Callable[[Sample], Outcome]:
    def tune(sample: Sample) -> Outcome:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)

        def score(trial: Any) -> float:
            values = {
                name: trial.suggest_float(name, *box, log=True)
                for name, box in BOX.items()
            }
            return cross_val_score(
                SVC(**values), sample.X, sample.y, cv=sample.folds
            ).mean()

        began, steps = time.perf_counter(), []

        def watch(study: Any, trial: Any) -> None:
            if study.best_trial.number == trial.number:
                steps.append((time.perf_counter() - began, dict(trial.params)))

        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=0)
        )
        study.optimize(score, n_trials=trials, callbacks=[watch])
        model = SVC(**study.best_params).fit(sample.X, sample.y)
        return Outcome(model, dict(study.best_params), 5 * trials + 1, steps)

    return tune


# --- all of them ----------------------------------------------------------------------

OURS, OURS_ARD = "BilevelSVC", "BilevelSVC(ard)"
OURS_LINEAR = "BilevelLinearSVC"
GRID, FINE_GRID = "grid 11 x 11", "grid 21 x 21"
THREE = "LinearSVC, 3 values of C"

RACERS = (
    Racer(OURS, ours("rbf"), ours=True),
    Racer(OURS_ARD, ours("ard"), ours=True),
    Racer(GRID, grid(11), 5 * 121),
    Racer("halving", halving(), 5 * 20),
    Racer("random, 60", randomized(60), 5 * 60),
    Racer("Optuna, 50", optuna_tpe(50), 5 * 50, needs="optuna"),
    Racer("Optuna, 100", optuna_tpe(100), 5 * 100, needs="optuna"),
    Racer(FINE_GRID, grid(21), 5 * 441),
    Racer(OURS_LINEAR, ours("linear"), ours=True, linear=True),
    Racer(THREE, linear_grid([0.1, 1.0, 10.0]), linear=True),
    Racer("LinearSVC, 10 values of C", linear_grid(LINEAR_C), linear=True),
    Racer("LogisticRegressionCV, 10 values of C", logistic, linear=True),
)


def racers(*, linear: bool = False, only: Sequence[str] = ()) -> list[Racer]:
    """Those of one kind that are at hand and whose names fit one of the patterns."""
    kind = [racer for racer in RACERS if racer.linear == linear]
    known = [racer.name for racer in RACERS]
    for pattern in only:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise ValueError(
                f"No method is called {pattern!r}; there are "
                + ", ".join(map(repr, known))
                + "."
            )
    return [
        racer
        for racer in kind
        if racer.at_hand
        and (not only or any(fnmatchcase(racer.name, pattern) for pattern in only))
    ]


@cache
def warm_up() -> None:
    """Compile and import what a first call would: forks inherit it."""
    X, y = make_moons(160, noise=0.25, random_state=0)
    tiny = Sample.cut("tiny", X, y, 120)
    with alone():
        for racer in RACERS:
            if racer.at_hand and (racer.ours or racer.name == "halving"):
                racer.tune(tiny)
        if find_spec("optuna"):
            optuna_tpe(2)(tiny)
