"""What a gradient costs: `python -m benchmarks gradient [--full]`.

    ratio = seconds of H and dH/dtheta  /  seconds of H alone

for one gamma per feature. H alone is what a search without gradients would need: the
machines, solved to the same residual from the same start, and the loss of their values
on held-out points. Both from nothing, and from the machines of a theta nearby, as in a
search.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from benchmarks.measure import alone, code_version, timed, versions
from benchmarks.options import Options, say
from benchmarks.records import Row
from benchmarks.sets import Sample
from bisvm import BilevelObjective, BilevelSVC
from bisvm.bilevel.objective import WarmStart
from experiments.common import Result, Table

# The residual to which machines are solved in both.
TOL = 1e-6
STEP = 0.1
KEY = ("n", "d", "start")
COLUMNS = ("value", "both", "ratio", "difference")
TABLE = {
    "n": "d",
    "d": "d",
    "start": "",
    "H, s": ".4f",
    "H and gradient, s": ".4f",
    "ratio": ".2f",
}
SHORT = ((500, 50), (500, 500))
FULL = ((500, 50), (500, 500), (2000, 50), (2000, 500))


def problem(n: int, d: int) -> BilevelObjective:
    X, y = make_classification(
        n + 20, d, n_informative=6, class_sep=1.0, random_state=0
    )
    sample = Sample.cut("classification", X, y, n)
    estimator = BilevelSVC(
        "ard",
        cv=sample.folds,
        random_state=0,
        approximation="none",
        max_memory=np.inf,
    )
    return BilevelObjective(estimator, sample.X, sample.y)


def value_alone(
    objective: BilevelObjective, theta: np.ndarray, near: np.ndarray | None
) -> tuple[float, np.ndarray]:
    """H without its prior, and the fitted values behind it: no adjoint, no gradient."""
    problem, columns = objective.problem, objective.problem.columns
    machine = problem.model.machine(
        objective.hyperparameters(theta), problem.X, columns.labels, columns.train
    )
    fitted = problem.solver.solve(machine, near, TOL).fitted
    held_out = columns.validation > 0
    margins = (columns.labels * fitted)[held_out]
    upper = problem.criterion.evaluate(margins, columns.validation[held_out])
    return upper.value, fitted


def measure(n: int, d: int, repetitions: int) -> list[Row]:
    """A row from nothing, and one from nearby."""
    objective, rows = problem(n, d), []
    theta = objective.theta0
    near = theta + STEP * np.random.default_rng(0).normal(size=len(theta))
    with alone():
        start = value_alone(objective, near, None)[1]
        for name, fitted in (("nothing", None), ("nearby", start)):
            alone_, both = [], []
            for _ in range(repetitions):
                (value, _), seconds = timed(
                    lambda fitted=fitted: value_alone(objective, theta, fitted)
                )
                alone_.append(seconds)
                whole = BilevelObjective.of(objective.objective, WarmStart(fitted))
                done, seconds = timed(lambda whole=whole: whole.evaluate(theta, TOL))
                both.append(seconds)
            row: dict[str, Any] = {"n": n, "d": d, "start": name}
            row |= {"value": median(alone_), "both": median(both)}
            row["ratio"] = median(b / a for a, b in zip(alone_, both, strict=True))
            row["difference"] = done.criterion / value - 1.0
            rows.append(row)
    return rows


def run(options: Options) -> list[Row]:
    records = options.records("gradient", KEY, COLUMNS)
    rows = []
    measure(60, 10, 1)
    for n, d in FULL if options.full else SHORT:
        keys = [{"n": n, "d": d, "start": start} for start in ("nothing", "nearby")]
        found = [records.find(code_version(), **key) for key in keys]
        if None in found:
            say(f"gradient, n = {n}, d = {d}")
            new = measure(n, d, options.repetitions)
            found = [records.add(row, code_version()) for row in new]
        rows += found
    return rows


def report(options: Options) -> None:
    names = ("n", "d", "start", "value", "both", "ratio")
    rows = run(options)
    cells = [[row[name] for name in names] for row in rows]
    worst = max(abs(row["difference"]) for row in rows)
    notes = [
        f"Medians of {options.repetitions} by turns, CPU seconds of one thread; the "
        f"machines are solved to {TOL:g} on the whole kernel, five folds. The two H "
        f"differ by {worst:.1g} at most, relatively.",
        versions() + ".",
    ]
    table = Table(
        "H with and without its gradient, one gamma per feature", TABLE, cells
    )
    options.write(Result([table], notes=notes), "gradient", "What a gradient costs")
