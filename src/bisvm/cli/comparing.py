"""bisvm compare: several methods on the same rows, columns and folds."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from bisvm.cli.kinds import TargetKind
from bisvm.cli.output import say, write_json, write_table
from bisvm.cli.tasks import (
    machine_of,
    prepared,
    read_task,
    say_how_columns_were_read,
)
from bisvm.core.progress import ProgressLine
from bisvm.selection.comparison import (
    SMALL,
    Entry,
    Rows,
    grid_entry,
    own_entry,
    rival_entry,
    svc_grid,
)

if TYPE_CHECKING:
    import optuna

COLUMNS = ("method", "tuned", "cross_validated", "test", "seconds")


def run(options: Namespace) -> int:
    task = read_task(options)
    folds = task.kind.folds(task.y, options.cv, options.seed, task.groups)
    front = prepared(options, task, None)[:-1]
    say_how_columns_were_read(front.fit(task.X, task.y))
    held_out = len(task.y_test) > 0
    rows = task.kind.rows(
        front.transform(task.X),
        task.y,
        front.transform(task.X_test) if held_out else None,
        task.y_test if held_out else None,
        folds,
    )
    methods: dict[str, Callable[[], Entry]] = {
        **{
            name: partial(rival_entry, name, r, rows)
            for name, r in rows.rivals().items()
        },
        f"grid {SMALL} x {SMALL}": lambda: grid_entry(rows, size=SMALL),
        f"Optuna, {options.trials} trials": lambda: _optuna(rows, options),
        "bisvm": lambda: _bisvm(rows, task.kind, options),
    }
    results: list[tuple[str, int, float | None, float | None, float]] = []
    for name, method in methods.items():
        try:
            with ProgressLine(name):
                one = method()
        except ImportError as error:
            say(f"note: {error}")
            continue
        test = None
        if one.scores is not None:
            test = task.kind.mean_score(one.scores, task.y_test)
        results.append((name, one.tuned, one.cross_validated, test, one.seconds))
    if options.json:
        write_json({"methods": [dict(zip(COLUMNS, r, strict=True)) for r in results]})
    else:
        kind = task.kind
        say(
            f"{kind.measure} in cross-validation ({COLUMNS[2]}), and "
            f"{kind.measure_on(task.y_test)} on the test rows ({COLUMNS[3]}):"
        )
        shown = [
            (name, tuned, _share(score), _share(test), f"{seconds:.2f}")
            for name, tuned, score, test, seconds in results
        ]
        write_table([COLUMNS, *shown])
    if not held_out:
        say(f"note: there are no test rows, so the column {COLUMNS[3]!r} is empty.")
    return 0


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _optuna(rows: Rows, options: Namespace) -> Entry:
    try:
        import optuna
    except ImportError:
        raise ImportError(
            "Optuna is not installed and is skipped: pip install optuna"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    ranges = {name: (v[0], v[-1]) for name, v in svc_grid(rows.X).items()}

    def score(trial: optuna.Trial) -> float:
        values = {
            name: trial.suggest_float(name, *limits, log=True)
            for name, limits in ranges.items()
        }
        return rows.score(rows.machine(**values))

    began = time.perf_counter()
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=options.seed)
    )
    study.optimize(score, n_trials=options.trials, timeout=options.time_limit)
    model = rows.machine(**study.best_params).fit(rows.X, rows.y)
    seconds = time.perf_counter() - began
    detail = f"{options.trials} trials"
    return Entry("Optuna", 2, detail, study.best_value, rows.scores(model), seconds)


def _bisvm(rows: Rows, kind: TargetKind, options: Namespace) -> Entry:
    began = time.perf_counter()
    machine = machine_of(options, kind).set_params(cv=rows.folds).fit(rows.X, rows.y)
    return own_entry(machine, rows, time.perf_counter() - began)
