"""Two moons among columns of noise: `python -m benchmarks moons [--full]`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from benchmarks.measure import alone, timed, versions
from benchmarks.options import Options, say
from benchmarks.sets import UNSEEN, Sample
from bisvm import BilevelSVC
from bisvm.datasets import make_moons_with_noise
from bisvm.selection.comparison import svc_grid
from experiments.common import Result, Spread, Table

TRAINING = 500
COLUMNS = {
    "method": "",
    "test error, %": ".1f",
    "worst, %": ".1f",
    "seconds": ".1f",
    "moons first": "",
}


def run(seeds: int) -> list[list[Any]]:
    """One gamma per column against the grid."""
    many, grid, ranked = [], [], 0
    for seed in range(seeds):
        X, y = make_moons_with_noise(TRAINING + UNSEEN, random_state=seed)
        sample = Sample.cut("moons", X, y, TRAINING)
        tuned = BilevelSVC("ard", cv=sample.folds, random_state=0)
        search = GridSearchCV(SVC(), svc_grid(sample.X), cv=sample.folds)
        for model, results in ((tuned, many), (search, grid)):
            with alone():
                _, seconds = timed(lambda m=model, s=sample: m.fit(s.X, s.y))
            results.append((100 * sample.error(model), seconds))
        ranked += set(np.argsort(-tuned.relevance_)[:2]) == {0, 1}
    return [
        _row("BilevelSVC(kernel='ard')", many, f"{ranked} of {seeds}"),
        _row("GridSearchCV(SVC()), 11 x 11", grid, None),
    ]


def _row(
    method: str, results: list[tuple[float, float]], ranked: str | None
) -> list[Any]:
    errors, seconds = zip(*results, strict=True)
    return [method, Spread.of(errors), max(errors), Spread.of(seconds), ranked]


def report(options: Options) -> None:
    seeds = 10 if options.full else 2
    say(f"moons among noise, {seeds} seeds")
    title = (
        f"Two moons among 10 noise columns, {TRAINING} training points, {seeds} seeds"
    )
    notes = ["Seconds are CPU time, one thread.", versions() + "."]
    result = Result([Table(title, COLUMNS, run(seeds))], notes=notes)
    options.write(result, "moons", "Two moons among columns of noise")
