"""bisvm compare: the same rows, columns and folds for several methods."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from bisvm.cli.demo import ProgressLine
from bisvm.cli.output import say, write_json, write_rows
from bisvm.cli.tasks import (
    Task,
    accuracy,
    machine_of,
    prepared,
    read_task,
    say_how_columns_were_taken,
)
from bisvm.plots.landscape import GRID_C, GRID_GAMMA, stock_grid, svc_gamma
from bisvm.reporting.comparison import on_folds
from bisvm.tables import DataError

COLUMNS = ("method", "tuned", "cross_validated", "test", "seconds")


def run(options: Any) -> int:
    task = read_task(options)
    folds = _folds(task, options)
    front = prepared(options, task, None)[:-1]
    say_how_columns_were_taken(front.fit(task.X, task.y))
    inputs = front.transform(task.X)
    methods: dict[str, Callable[..., tuple[Any, int, float]]] = {
        "SVC": _default,
        f"grid {len(GRID_C)} x {len(GRID_GAMMA)}": _grid,
        f"Optuna, {options.trials} trials": _optuna,
        "bisvm": _bisvm,
    }
    rows = []
    for name, method in methods.items():
        try:
            with ProgressLine(name):
                began = time.perf_counter()
                machine, tuned, score = method(inputs, task.y, folds, options)
                seconds = time.perf_counter() - began
        except ImportError as error:
            say(f"note: {error}")
            continue
        model = Pipeline([*front.steps, ("machine", machine)])
        test = accuracy(model, task.X_test, task.y_test)
        rows.append((name, tuned, score, test and test["accuracy"], seconds))
    if options.json:
        write_json({"methods": [dict(zip(COLUMNS, row, strict=True)) for row in rows]})
    else:
        write_rows([COLUMNS, *map(_shown, rows)])
    if not len(task.y_test):
        say("No rows were held out: the column 'test' is empty.")
    return 0


def _shown(row: tuple[Any, ...]) -> list[str]:
    name, tuned, score, test, seconds = row
    cells = [name, str(tuned), f"{score:.4f}", "" if test is None else f"{test:.4f}"]
    return [*cells, f"{seconds:.2f}"]


def _folds(task: Task, options: Any) -> list[Any]:
    counts = np.unique(task.y, return_counts=True)[1]
    number = min(options.cv, int(counts.min()))
    if number < 2:
        raise DataError("a class has one row only to learn from.", path=task.table.path)
    if number < options.cv:
        say(f"note: {number} folds: the smallest class has no more rows.")
    splitter = StratifiedKFold(number, shuffle=True, random_state=options.seed)
    return list(splitter.split(np.zeros(len(task.y)), task.y))


def _default(inputs: Any, y: Any, folds: Any, options: Any) -> tuple[Any, int, float]:
    scores = cross_val_score(SVC(), inputs, y, cv=folds)
    return SVC().fit(inputs, y), 0, float(scores.mean())


def _grid(inputs: Any, y: Any, folds: Any, options: Any) -> tuple[Any, int, float]:
    search = GridSearchCV(SVC(), stock_grid(inputs), cv=folds, n_jobs=options.n_jobs)
    search.fit(inputs, y)
    return search, 2, float(search.best_score_)


def _optuna(inputs: Any, y: Any, folds: Any, options: Any) -> tuple[Any, int, float]:
    try:
        import optuna
    except ImportError:
        raise ImportError(
            "Optuna is not installed, and left out: pip install bisvm[bench]"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    unit = svc_gamma(inputs)

    def machine(trial: Any) -> SVC:
        C = trial.suggest_float("C", 1e-2, 1e4, log=True)
        gamma = trial.suggest_float("gamma", 1e-3 * unit, 1e2 * unit, log=True)
        return SVC(C=C, gamma=gamma)

    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=options.seed)
    )
    study.optimize(
        lambda trial: float(
            cross_val_score(machine(trial), inputs, y, cv=folds).mean()
        ),
        n_trials=options.trials,
        timeout=options.time_limit,
    )
    return SVC(**study.best_params).fit(inputs, y), 2, float(study.best_value)


def _bisvm(inputs: Any, y: Any, folds: Any, options: Any) -> tuple[Any, int, float]:
    machine = machine_of(options).set_params(cv=folds).fit(inputs, y)
    tuned = sum(np.size(value) for value in machine.hyperparameters_.values())
    scores = cross_val_score(on_folds(machine), inputs, y, cv=folds)
    return machine, tuned, float(scores.mean())
