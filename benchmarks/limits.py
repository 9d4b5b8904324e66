"""Time limits, and several threads: `python -m benchmarks limits threads`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_classification, make_moons
from sklearn.svm import SVC

from benchmarks.measure import versions
from benchmarks.options import Options, say
from benchmarks.sets import chosen
from bisvm import BilevelSVC
from experiments.classes import record
from experiments.common import Result, Table

# Seconds; a limit is kept if a fit takes no more than a tenth and two seconds longer.
LIMITS, SHORT_LIMITS = (5.0, 20.0, 60.0), (5.0,)
SLACK, SHARE = 2.0, 0.1
# The most rows that are tested on.
TESTED = 3000


class Task(NamedTuple):
    X: Any
    y: Any
    X_test: Any
    y_test: Any


def _split(X: Any, y: Any, n: int) -> Task:
    order = np.random.RandomState(0).permutation(len(y))
    train, test = order[:n], order[n : n + TESTED]
    return Task(X[train], y[train], X[test], y[test])


def _of_record(name: str, n: int) -> Callable[[], Task]:
    """A set of the published table of 179 classifiers."""

    def load() -> Task:
        found = record.load(name)
        return _split(found.X, found.y, n)

    return load


def _made(n: int, n_classes: int) -> Callable[[], Task]:
    def make() -> Task:
        X, y = make_classification(
            n + TESTED,
            20,
            n_informative=10,
            n_classes=n_classes,
            n_clusters_per_class=2,
            random_state=0,
        )
        return _split(X, y, n)

    return make


LIMITED: dict[str, Callable[[], Task]] = {
    "letter-2000": _of_record("letter", 2000),
    "letter-4000": _of_record("letter", 4000),
    "chess-krvk-4000": _of_record("chess-krvk", 4000),
    "statlog-image-1500": _of_record("statlog-image", 1500),
    "generated-4000-10": _made(4000, 10),
    "generated-10000-2": _made(10_000, 2),
}
THREADED: dict[str, Callable[[], Task]] = {
    "generated-1000": _made(1000, 2),
    "generated-3000": _made(3000, 2),
    "generated-6000": _made(6000, 2),
    "generated-10000": _made(10_000, 2),
    "moons-3000": lambda: _split(
        *make_moons(3000 + TESTED, noise=0.25, random_state=0), 3000
    ),
}


def _tasks(
    known: dict[str, Callable[[], Task]], options: Options
) -> Iterator[tuple[str, Task]]:
    names = list(known) if options.full else list(known)[:2]
    for name in chosen(list(known) if options.only else names, options.only):
        try:
            yield name, known[name]()
        except FileNotFoundError as error:
            say(f"{name}: left out. {error}")


def _fit(task: Task, **given: Any) -> tuple[BilevelSVC, float]:
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BilevelSVC(random_state=0, **given).fit(task.X, task.y)
    return model, time.perf_counter() - began


def limits(options: Options) -> None:
    """What a fit takes with a time limit, and what a default SVC gets."""
    rows = []
    for name, task in _tasks(LIMITED, options):
        usual = SVC().fit(task.X, task.y).score(task.X_test, task.y_test)
        error = float(np.sqrt(usual * (1.0 - usual) / len(task.y_test)))
        for limit in LIMITS if options.full else SHORT_LIMITS:
            model, seconds = _fit(task, time_limit=limit)
            score = model.score(task.X_test, task.y_test)
            kept = seconds <= (1.0 + SHARE) * limit + SLACK
            words = "yes" if kept else "no"
            reason = model.certificate_.reason
            say(f"{name}, {limit:.0f} s: {seconds:.1f} s, {score:.1%}. {reason}")
            rows.append([name, limit, seconds, words, score, usual, error])
    columns = {"": "", "limit, s": ".0f", "seconds": ".1f", "kept": ""}
    columns |= {"accuracy": ".1%", "default SVC": ".1%", "standard error": ".1%"}
    notes = [
        "Wall-clock seconds of BilevelSVC(time_limit=...). A limit is kept if the fit "
        "takes no more than 1.1 times as long and two seconds. Accuracy on new rows, "
        "and its standard error for the default SVC.",
        f"{versions()}.",
    ]
    table = Table("Time limits", columns, rows)
    options.write(Result([table], notes=notes), "limits", "Time limits")


def threads(options: Options) -> None:
    """Wall time with one thread and with two, by turns."""
    rows = []
    for name, task in _tasks(THREADED, options):
        turns = []
        for _ in range(options.repetitions):
            (one, alone), (two, both) = (
                _fit(task, kernel="rbf", n_jobs=jobs) for jobs in (1, 2)
            )
            turns.append((alone, both))
            same = np.array_equal(
                one.decision_function(task.X_test), two.decision_function(task.X_test)
            )
        alone, both = np.min(turns, axis=0)
        rows.append([name, alone, both, alone / both, "yes" if same else "no"])
    columns = {
        "": "",
        "one, s": ".2f",
        "two, s": ".2f",
        "ratio": ".2f",
        "same bits": "",
    }
    notes = [
        f"Wall-clock seconds, the shortest of {options.repetitions} by turns; "
        'kernel="rbf".',
        f"{versions()}.",
    ]
    table = Table("One thread and two", columns, rows)
    options.write(Result([table], notes=notes), "threads", "Threads")
