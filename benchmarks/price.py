"""The price of tuning, in cross-validations: `python -m benchmarks price [--full]`.

    price = seconds of BilevelSVC("rbf").fit
            / seconds of one five-fold cross_val_score(SVC) at the best values of a grid

of 11 x 11, in one process, on the same folds, with one thread. A price says nothing
without H beside it: the excess of H is over the best value known, which up to 5000 rows
is that of descents on the whole kernel, in double precision, until nothing is left.

Seconds are CPU time of the process: on a machine that others use as well, the clock on
the wall tells of them. The two sides of a ratio are measured by turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from benchmarks import race
from benchmarks.judge import REFERENCE_ROWS, Judge, own_problem
from benchmarks.measure import (
    PROTOCOL,
    alone,
    code_version,
    others_version,
    seconds_of_a_fit,
    spoken,
    timed,
)
from benchmarks.options import Options, say
from benchmarks.racers import GRID, RACERS, warm_up
from benchmarks.records import Records, Row, vector
from benchmarks.sets import Sample
from bisvm import BilevelSVC
from bisvm.losses import Quartic

KERNELS = {"BilevelSVC": "rbf", "BilevelSVC(ard)": "ard"}
KEY = ("set", "method")
COLUMNS = (
    "n",
    "d",
    "tune",
    "one CV",
    "price",
    "evaluations",
    "H",
    "best H",
    "problem",
    "excess",
    "test error",
    "grid on",
    "C of grid",
    "gamma of grid",
    "note",
)
REFERENCE_KEY = ("set", "kernel", "problem", "checksum")
NOT_RUN = "one CV not run"
# Fits longer than this are timed once.
LONG = 20.0
# Rows of the grid, where all would take too long.
FEWER = (10000, 5000, 2000, 1000)

SHORT = (
    "ida_thyroid",
    "ida_heart",
    "moons-300",
    "classification-300",
)
FULL = (
    "ida_thyroid",
    "ida_heart",
    "ida_breast_cancer",
    "heart",
    "moons-300",
    "classification-300",
    "ida_banana",
    "ida_diabetis",
    "pima",
    "moons-1000",
    "classification-1000",
    "ida_image",
    "ida_splice",
    "magic04-1000",
    "a9a-1000",
    "mnist35-1000",
    "connect4-1000",
    "moons-3000",
    "classification-3000",
    "svmguide1",
    "magic04-3000",
    "a9a-3000",
    "mnist35-3000",
    "connect4-3000",
    "moons-10000",
    "classification-10000",
    "magic04-10000",
    "a9a-10000",
)
LARGE = (
    "mnist35",
    "magic04",
    "moons-30000",
    "classification-30000",
    "a9a",
    "connect4-30000",
    "moons-100000",
    "classification-100000",
)

# --- the denominator ------------------------------------------------------------------


@dataclass(frozen=True)
class OneCV:
    """A cross-validation of an SVC at the best values of the grid.

    grid_rows : on which the grid was searched
    estimate : seconds, where it is too long to be run
    """

    sample: Sample
    values: dict[str, Any]
    grid_rows: int
    estimate: float | None

    def __call__(self) -> Any:
        sample = self.sample
        return cross_val_score(SVC(**self.values), sample.X, sample.y, cv=sample.folds)

    @classmethod
    def of(cls, sample: Sample, options: Options) -> OneCV | None:
        """The grid's row of the race, or that of the grid on as many rows as it can."""
        (grid,) = (racer for racer in RACERS if racer.name == GRID)
        row = race.Desk(sample, options).row(grid)
        rows = sample.n
        for fewer in FEWER:
            if row and not row["status"]:
                break
            if fewer < sample.n:
                rows, part = fewer, sample.part(fewer)
                name = f"{sample.name}, {fewer} rows"
                part = Sample(name, 0, part.X, part.y, part.X_test, part.y_test)
                row = race.Desk(part, options).row(grid)
        if not row or row["status"]:
            return None
        values = race.values_of(row)
        expected = 5 * seconds_of_a_fit(sample, values)
        too_long = expected > 2.0 * options.limit
        return cls(sample, values, rows, expected if too_long else None)


# --- one row --------------------------------------------------------------------------


def measure(sample: Sample, kernel: str, one_cv: OneCV, repetitions: int) -> Row:
    """Both sides of the price, by turns."""
    estimator = BilevelSVC(kernel, cv=sample.folds, random_state=0)

    def tune() -> BilevelSVC:
        return estimator.fit(sample.X, sample.y)

    with alone():
        first = timed(tune)[1]
        if one_cv.estimate is not None:
            tuning, validating = [first], [one_cv.estimate]
        elif first > LONG:
            tuning, validating = [first], [timed(one_cv)[1]]
        else:
            tuning, validating = by_turns(tune, one_cv, repetitions)
    ratio = median(a / b for a, b in zip(tuning, validating, strict=True))
    notes = []
    if one_cv.estimate is not None:
        notes.append(f"{NOT_RUN}: {spoken(one_cv.estimate)} by estimate")
    if one_cv.grid_rows < sample.n:
        notes.append(f"grid on {one_cv.grid_rows} rows")
    return {
        "n": sample.n,
        "d": sample.d,
        "tune": median(tuning),
        "one CV": median(validating),
        "price": ratio,
        "evaluations": estimator.n_iter_,
        "test error": sample.error(estimator),
        "grid on": one_cv.grid_rows,
        "C of grid": one_cv.values["C"],
        "gamma of grid": one_cv.values["gamma"],
        "note": "; ".join(notes),
        "model": estimator,
    }


def by_turns(
    first: Callable[[], Any], second: Callable[[], Any], repetitions: int
) -> tuple[list[float], list[float]]:
    """Seconds of both, one after the other, so that both see the same disturbances."""
    of_first, of_second = [], []
    for _ in range(repetitions):
        before = timed(second)[1]
        of_first.append(timed(first)[1])
        of_second.append(0.5 * (before + timed(second)[1]))
    return of_first, of_second


# --- how good H is --------------------------------------------------------------------


def excess(model: Any, one_cv: OneCV, kernel: str, references: Records) -> Row:
    """H of the tuned values, and the best there is of the problem that was solved.

    With one gamma per feature H means the criterion and its prior.
    """
    judge = Judge(one_cv.sample, kernel)
    theta = judge.theta(model.hyperparameters_)
    tied, strength = own_problem(model, judge, theta)
    if strength != judge.strength:
        judge = Judge(one_cv.sample, kernel, strength, criterion="blend")
    problem = "one width" if tied else f"many, prior x {strength:g}"
    H = judge.look(theta).value
    key = {"set": judge.sample.name, "kernel": kernel, "problem": problem}
    key["checksum"] = judge.sample.checksum
    row = {"H": H, "problem": problem + ("" if judge.exact else ", landmarks")}
    if judge.sample.n > REFERENCE_ROWS:
        return row
    # H of another default loss is another function.
    version = f"reference/{PROTOCOL} {Quartic()}"
    known = references.find(version, **key)
    if known is None:
        say(f"{key['set']}, {kernel}: the best H there is")
        best = judge.converged(_starts(judge, theta, one_cv, tied), tied=tied)
        best_H, best_theta = best.value, best.theta
    else:
        best_H, best_theta = known["H"], vector(str(known["theta"]))
    if known is None or H < best_H * (1 - 1e-8):
        best_H, best_theta = min((best_H, best_theta), (H, theta), key=lambda p: p[0])
        references.add({**key, "H": best_H, "theta": best_theta}, version)
    return {**row, "best H": best_H, "excess": H / best_H - 1.0}


def _starts(judge: Judge, theta: np.ndarray, one_cv: OneCV, tied: bool) -> list[Any]:
    """Where ours ended, where it began, and where the grid ended."""
    space = judge.objective.space
    gridded = space.theta({"C": one_cv.values["C"]})
    of_grid = np.log(one_cv.values["gamma"])
    gridded[1:] += of_grid - gridded[1:].mean()
    return [theta, space.theta0, gridded]


# --- all of them ----------------------------------------------------------------------


def run(options: Options, names: tuple[str, ...] | None = None) -> list[Row]:
    warm_up()
    table = options.records("price", KEY, COLUMNS)
    references = options.records(
        "reference", REFERENCE_KEY, ("H", "theta"), timed=False
    )
    rows = []
    version = f"{code_version()} {others_version()}"
    for sample in options.samples(names or (FULL if options.full else SHORT)):
        for method, kernel in KERNELS.items():
            if kernel == "ard" and sample.d > race.ARD_FEATURES:
                continue
            key = {"set": sample.name, "method": method}
            row = table.find(version, options.limit, **key)
            if row is None:
                say(f"{sample.name}: price of {method}")
                done = _row(sample, kernel, options, references)
                row = table.add({**key, **done}, version, options.limit)
            rows.append(row)
    return rows


def _row(sample: Sample, kernel: str, options: Options, references: Records) -> Row:
    one_cv = OneCV.of(sample, options)
    if one_cv is None:
        head = {"n": sample.n, "d": sample.d}
        return {**head, "status": "not run: no grid fits the limit"}
    row = measure(sample, kernel, one_cv, options.repetitions)
    return {**row, **excess(row["model"], one_cv, kernel, references)}
