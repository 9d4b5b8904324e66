"""Approximate leave-one-out (cv="loo"): how close it is, how it generalises, its cost.

1. H by the approximation and by machines that are trained again without each row, at
   nine points: C and gamma at their start, and at larger and smaller values. Also with
   curvatures averaged over other intervals than `Loss.reach`.
2. Test errors of `BilevelSVC("rbf")` tuned by cv="loo" and by five folds, with the CPU
   time of both.
3. CPU time of one evaluation of H and its gradient, from a warm start.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from itertools import product

import numpy as np

from bisvm import BilevelObjective, BilevelSVC
from bisvm.losses import Quartic
from experiments.common import Context, Result, Table
from experiments.generalisation.data import GENERATORS, part
from experiments.generalisation.rows import Rows, folder

# H by the reach of curvatures, and true H.
Values = tuple[dict[float, np.ndarray], np.ndarray]

TITLE = "Generalisation: approximate leave-one-out"
FITS = ("approximate_leave_one_out_fits.csv",)

CLOSE_SETS = (
    "heart_statlog",
    "ida_breast_cancer",
    "ida_diabetis",
    "ida_thyroid",
    "ionosphere",
    "iris",
    "parkinsons",
    "seeds",
    "sonar",
    "wine",
)
# Rows of each: every point takes as many machines.
CLOSE_ROWS = 200
# Changes of log C and log gamma.
C_STEPS, GAMMA_STEPS = (-2.0, 0.0, 2.0), (-1.5, 0.0, 1.5)
# Half-widths of the intervals over which curvatures are averaged; hardly at all first.
REACHES = (1e-3, 0.05, 0.1, 0.15, 0.2, 0.3)

ERROR_SETS = (
    "ida_banana",
    "ida_breast_cancer",
    "ida_diabetis",
    "ida_heart",
    "ida_thyroid",
    "ida_image",
    "australian",
    "ionosphere",
    "breast_cancer",
    "seeds",
    "moons",
    "make_classification",
)
ERROR_SPLITS = 4
WAYS = ("loo", 5)

COST_ROWS = (300, 1000, 2000)
COST_SETS = ("moons", "make_classification")
REPEATS = 5


def run(context: Context) -> Result:
    values = {name: compared(name) for name in context.chosen(CLOSE_SETS)}
    close, notes = _close(values)
    errors, more = _errors(context)
    tables = [close, _by_reach(values), errors, _cost()]
    return Result(tables, {}, [*notes, *more])


# --- against true leave-one-out -------------------------------------------------------


def _close(values: dict[str, Values]) -> tuple[Table, list[str]]:
    body = []
    for name, (by_reach, true) in values.items():
        ours = by_reach[Quartic.reach]
        relative = np.abs(ours / true - 1.0)
        # The true H where the approximation is lowest, beside the lowest true H.
        lost = true[ours.argmin()] / true.min() - 1.0
        along = np.corrcoef(np.log(ours), np.log(true))[0, 1]
        body.append(
            [
                name,
                100 * np.median(relative),
                100 * relative.max(),
                100 * relative[true.argmin()],
                along,
                100 * lost,
            ]
        )
    columns = {
        "set": "",
        "median": ".2f",
        "largest": ".2f",
        "at the lowest": ".2f",
        "correlation": ".4f",
        "lost": ".2f",
    }
    title = "H against true leave-one-out at nine points: differences in %"
    median = np.median([row[1] for row in body])
    note = (
        f"Median difference of H: {median:.2f}%. `lost` is how much higher true H is "
        "at the point that the approximation takes for the lowest one."
    )
    return Table(title, columns, body, "close"), [note]


def _by_reach(values: dict[str, Values]) -> Table:
    """Mean absolute differences over sets and widths, for each C."""
    body = []
    for reach in REACHES:
        off = [np.abs(ours[reach] / true - 1.0) for ours, true in values.values()]
        by_C = np.reshape(off, (len(off), len(C_STEPS), -1)).mean(axis=(0, 2))
        body.append([reach, *(100 * by_C), 100 * np.max(off)])
    names = [f"log C {step:+g}" for step in C_STEPS]
    columns = {"reach": "g", **dict.fromkeys((*names, "largest"), ".2f")}
    title = "H against true leave-one-out, by the reach of curvatures: means in %"
    return Table(title, columns, body, "reach")


def compared(name: str, rows: int = CLOSE_ROWS) -> Values:
    """H at all points: approximate, for every reach, and true."""
    data = part(name, 0, rows)
    objectives = {
        reach: BilevelObjective(
            BilevelSVC("rbf", loss=quartic(reach), cv="loo"), data.X, data.y
        )
        for reach in REACHES
    }
    usual = objectives[Quartic.reach]
    points = [usual.theta0 + moves for moves in product(C_STEPS, GAMMA_STEPS)]
    ours = {
        reach: np.array([one.evaluate(theta).criterion for theta in points])
        for reach, one in objectives.items()
    }
    return ours, np.array([true_H(usual, theta) for theta in points])


def quartic(reach: float) -> Quartic:
    """The default loss, with another reach."""
    kind: type[Quartic] = type("Quartic", (Quartic,), {"reach": reach})
    return kind()


def true_H(objective: BilevelObjective, theta: np.ndarray) -> float:
    """The criterion on values of machines that are trained without each row."""
    problem = objective.problem
    machine = problem.machine(objective.hyperparameters(theta), problem.X)
    solution = problem.solver.solve(machine, None, 1e-8)
    values = solution.fitted.copy()
    # Without a row whose losses do not pull, the machine is the same.
    for i in np.flatnonzero(solution.tangent.slope.any(axis=1)):
        weights = machine.weights.copy()
        weights[i] = 0.0
        own = replace(machine, weights=weights)
        values[i] = problem.solver.solve(own, solution.fitted, 1e-6).fitted[i]
    return objective.objective.loss_of(values)[0]


# --- test errors ----------------------------------------------------------------------


def _errors(context: Context) -> tuple[Table, list[str]]:
    held = Rows(
        folder(context) / "approximate_leave_one_out_fits.csv",
        ("set", "split", "cv"),
        ("error", "seconds"),
    )
    splits = min(context.splits, ERROR_SPLITS)
    body, gains, ratios = [], [], []
    for name in context.chosen(ERROR_SETS):
        found = [
            [_fit(held, name, split, cv) for cv in WAYS] for split in range(splits)
        ]
        error = np.array([[one["error"] for one in pair] for pair in found])
        seconds = np.array([[one["seconds"] for one in pair] for pair in found])
        gain = error[:, 1] - error[:, 0]
        gains.extend(gain)
        ratios.append(seconds[:, 0].sum() / seconds[:, 1].sum())
        cells = [*error.mean(axis=0), gain.mean(), *seconds.mean(axis=0), ratios[-1]]
        body.append([name, splits, *cells])
    columns = {
        "set": "",
        "splits": "d",
        "loo": ".2f",
        "five folds": ".2f",
        "gain": ".2f",
        "loo, s": ".2f",
        "five folds, s": ".2f",
        "ratio": ".2f",
    }
    by_chance = np.std(gains, ddof=1) / np.sqrt(len(gains))
    note = (
        f"Gain by leave-one-out over all splits: {np.mean(gains):.2f} points, standard "
        f"error {by_chance:.2f}. Median ratio of CPU times: {np.median(ratios):.2f}."
    )
    title = "Test error in % and CPU seconds of a fit, means over splits"
    return Table(title, columns, body, "errors"), [note]


def _fit(held: Rows, name: str, split: int, cv: object) -> dict[str, float]:
    def compute() -> dict[str, float]:
        data = part(name, split)
        model, began = BilevelSVC("rbf", cv=cv, random_state=split), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(data.X, data.y)
        seconds = time.process_time() - began
        error = 100.0 * np.mean(model.predict(data.X_test) != data.y_test)
        return {"error": float(error), "seconds": seconds}

    return held.need((name, split, cv), compute)


# --- cost -----------------------------------------------------------------------------


def _cost() -> Table:
    body = []
    for name, n in product(COST_SETS, COST_ROWS):
        X, y = GENERATORS[name](n, 0)
        seconds = [evaluation_seconds(X, y, cv) for cv in WAYS]
        body.append([name, n, *(1e3 * s for s in seconds), seconds[0] / seconds[1]])
    columns = {
        "set": "",
        "rows": "d",
        "loo, ms": ".1f",
        "five folds, ms": ".1f",
        "ratio": ".2f",
    }
    title = "CPU time of H and its gradient, median of warm evaluations"
    return Table(title, columns, body, "cost")


def evaluation_seconds(X: np.ndarray, y: np.ndarray, cv: object) -> float:
    """At points of which each is a short step from the one before."""
    model = BilevelSVC("rbf", cv=cv, random_state=0)
    objective = BilevelObjective(model, X, y)
    objective.evaluate(objective.theta0, accuracy=1e-3)
    seconds = []
    for k in range(1, REPEATS + 1):
        theta = objective.theta0 + 0.1 * k * np.array([1.0, -1.0])
        began = time.process_time()
        objective.evaluate(theta, accuracy=1e-3)
        seconds.append(time.process_time() - began)
    return float(np.median(seconds))
