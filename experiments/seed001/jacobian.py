"""Hypergradients through the exact hinge, and the rule of equation 23.

Two questions. Is the gradient through the free vectors right? 200 random (C, gamma) on
every data set, H the mean squared error of five folds, against central differences of
problems that are solved anew to the last digits. A point is left out only if a training
point changes its set between the two ends of a difference: there H has a kink inside.

Where does the published rule point the wrong way? It lets only the vectors at their
bound move. For the paper's own machine, linear and without intercept, with the hinge on
both levels: both slopes along C, beside H itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC
from bisvm.bilevel.objective import Objective
from bisvm.machines import Machine, Tangent
from bisvm.solvers import Dual, Solution
from experiments.common import Context, Result, Table, drawing, standardize
from experiments.seed001 import data
from experiments.seed001.data import SETS

TITLE = "Hypergradients of the exact hinge: checked, and the published rule beside them"

ROWS = 200
POINTS = 200
STEP = 1e-5
RULES = ("exact", "published")


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The data of Table 1, connect-4 in 42 columns, without the constant one."""
    sample = data.load(name, data.INTERCEPT)
    return sample.X[:, :-1], sample.y


def some(
    X: np.ndarray, y: np.ndarray, rows: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Some of the rows, with every class in its share."""
    if len(y) <= rows:
        return X, y
    X, _, y, _ = train_test_split(X, y, train_size=rows, stratify=y, random_state=seed)
    return X, y


def run(context: Context) -> Result:
    checks = [check(name, *some(*load(name), ROWS)) for name in SETS]
    lines = {name: slopes_along(*some(*load(name), 4000)) for name in SETS}
    return Result(
        [_accuracy_table(checks), _direction_table(lines)],
        {"": _picture(lines)},
        notes=_notes(checks, lines),
    )


# --- against differences --------------------------------------------------------------


class Watching(Dual):
    """The exact solver, with the sets of its last solution at hand."""

    def solve(
        self, machine: Machine, start: np.ndarray | None = None, tol: float = 1e-8
    ) -> Solution:
        solution = super().solve(machine, start, tol)
        self.last: tuple[Machine, Tangent] = machine, solution.tangent
        return solution

    def sets(self, alike: np.ndarray) -> bytes:
        """0 at rest, 1 on the margin, 2 in error, for points that are alike together.

        Of rows that are there twice, either may carry the dual: they count as one,
        which is on the margin unless all of it is at rest or all in error.
        """
        machine, tangent = self.last
        state = np.where(np.isinf(tangent.curvature), 1, 2 * (tangent.slope != 0))
        trained = machine.weights > 0
        shape = (alike.max() + 1, state.shape[1])
        low, high = np.full(shape, 2), np.zeros(shape, dtype=int)
        np.minimum.at(low, alike, np.where(trained, state, 2))
        np.maximum.at(high, alike, np.where(trained, state, 0))
        return np.where(low == high, low, 1).astype(np.int8).tobytes()


@dataclass
class Check:
    """Relative errors of the gradient at random points, and what was left out."""

    name: str
    errors: list[float] = field(default_factory=list)
    left_out: int = 0
    without_margin: int = 0


def watched(estimator: Any, X: Any, y: Any) -> tuple[BilevelObjective, Watching]:
    """The objective of an estimator, and the solver that works for it."""
    solver = Watching()
    objective = BilevelObjective(estimator, X, y)
    problem = replace(objective.problem, solver=solver)
    return BilevelObjective.of(Objective(problem)), solver


def check(name: str, X: np.ndarray, y: np.ndarray, points: int = POINTS) -> Check:
    """The gradient at random (C, gamma), against central differences."""
    estimator = BilevelSVC(
        "rbf", loss="hinge", criterion="mse", prior=None, random_state=0
    )
    objective, solver = watched(estimator, standardize(X), y)
    rng = np.random.default_rng(0)
    centre = objective.theta0[1]
    alike = np.unique(np.column_stack([X, y]), axis=0, return_inverse=True)[1].ravel()
    found = Check(name)
    for _ in range(points):
        theta = np.array(
            [rng.uniform(np.log(1e-3), np.log(1e3)), centre + rng.uniform(-2.5, 2.5)]
        )
        gradient = objective(theta)[1]
        sets = solver.sets(alike)
        margins = np.isinf(solver.last[1].curvature).any(axis=0)
        found.without_margin += not margins.all()
        differences, unchanged = _differences(objective, solver, theta, alike, sets)
        if not unchanged:
            found.left_out += 1
            continue
        size = max(float(np.linalg.norm(differences)), 1e-6)
        found.errors.append(float(np.linalg.norm(gradient - differences)) / size)
    return found


def _differences(
    objective: BilevelObjective,
    solver: Watching,
    theta: np.ndarray,
    alike: np.ndarray,
    sets: bytes,
) -> tuple[np.ndarray, bool]:
    """Central differences, and whether the sets are the same at all their ends."""
    out, unchanged = np.empty(len(theta)), True
    for entry in range(len(theta)):
        ends = []
        for sign in (1.0, -1.0):
            moved = theta.copy()
            moved[entry] += sign * STEP
            ends.append(objective(moved)[0])
            unchanged &= solver.sets(alike) == sets
        out[entry] = (ends[0] - ends[1]) / (2.0 * STEP)
    return out, unchanged


def _accuracy_table(checks: list[Check]) -> Table:
    columns = {
        "data": "",
        "points": "d",
        "left out": "d",
        "a fold without margin": "d",
        "median error": ".1e",
        "largest error": ".1e",
        "below 1e-5": "d",
    }
    rows = [
        [
            one.name,
            len(one.errors) + one.left_out,
            one.left_out,
            one.without_margin,
            float(np.median(one.errors)),
            float(np.max(one.errors)),
            int(np.sum(np.array(one.errors) < 1e-5)),
        ]
        for one in checks
    ]
    return Table(
        f"Gradient by (log C, log gamma) against differences, {ROWS} rows, RBF",
        columns,
        rows,
        name="accuracy",
    )


# --- the published rule ---------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """H and its slope by log C, as both rules have it, along C."""

    C: np.ndarray
    H: np.ndarray
    slopes: dict[str, np.ndarray]

    @property
    def wrong(self) -> np.ndarray:
        """Where the published slope has the other sign, and the exact one counts."""
        exact, published = (self.slopes[rule] for rule in RULES)
        return (exact * published < 0) & (np.abs(exact) > 1e-4 * self.H)

    @property
    def idle(self) -> np.ndarray:
        """Where the exact slope is zero: the margin holds w, and C does nothing."""
        return np.abs(self.slopes["exact"]) <= 1e-4 * self.H


def slopes_along(X: np.ndarray, y: np.ndarray, points: int = 121) -> Line:
    """The paper's machine, linear and without intercept, on a fine grid of C."""
    X = data.scaled(X)
    C = np.logspace(-4, 2, points)
    H, slopes = np.empty(points), {rule: np.empty(points) for rule in RULES}
    for rule in RULES:
        estimator = BilevelLinearSVC(
            loss="hinge",
            criterion="hinge",
            fit_intercept=False,
            solver=Dual(jacobian=rule),
            random_state=0,
        )
        objective = BilevelObjective(estimator, X, y)
        for k, one in enumerate(C):
            H[k], slope = objective(np.log([one]))
            slopes[rule][k] = slope[0]
    return Line(C, H, slopes)


def _direction_table(lines: dict[str, Line]) -> Table:
    columns = {
        "data": "",
        "wrong sign %": ".0f",
        "too steep by (median)": ".1f",
        "C of least H": ".3g",
        "first zero of the published slope": ".3g",
    }
    rows = []
    for name, line in lines.items():
        exact, published = (line.slopes[rule] for rule in RULES)
        falling = ~line.idle & ~line.wrong
        ratio = np.median(published[falling] / exact[falling])
        turned = np.flatnonzero(published > 0)
        zero = float(line.C[turned[0]]) if len(turned) else None
        rows.append(
            [
                name,
                100.0 * float(np.mean(line.wrong)),
                float(ratio),
                float(line.C[np.argmin(line.H)]),
                zero,
            ]
        )
    return Table(
        "The published rule along C, linear machine without intercept",
        columns,
        rows,
        name="direction",
    )


def _picture(lines: dict[str, Line]) -> Any:
    with drawing() as plt:
        figure, axes = plt.subplots(
            2, len(lines), figsize=(2.3 * len(lines), 4.2), sharex=True, squeeze=False
        )
        for (top, bottom), (name, line) in zip(axes.T, lines.items(), strict=True):
            top.semilogx(line.C, 100.0 * (line.H / line.H.min() - 1.0), color="black")
            top.set_yscale("symlog", linthresh=0.1)
            top.set_ylim(0.0, 1000.0)
            top.set_title(name)
            for rule, style, color in (
                ("exact", "-", "black"),
                ("published", "--", "0.4"),
            ):
                relative = line.slopes[rule] / line.H
                bottom.semilogx(line.C, relative, style, color=color, label=rule)
            bottom.set_yscale("symlog", linthresh=1e-3)
            bottom.set_ylim(-3.0, 1.0)
            bottom.set_yticks([-1.0, -0.1, -0.01, 0.0, 0.01, 0.1])
            bottom.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
            bottom.set_xlabel("C")
            for panel in (top, bottom):
                _shade(panel, line.C, line.wrong)
        axes[0, 0].set_ylabel("H above its least, %")
        axes[1, 0].set_ylabel("d log H / d log C")
        axes[0, 0].legend(*axes[1, 0].get_legend_handles_labels(), loc="upper right")
        return figure


def _shade(panel: Any, C: np.ndarray, where: np.ndarray) -> None:
    """Half a step of the grid to either side of every point that is meant."""
    half = np.sqrt(C[1] / C[0])
    for one in C[where]:
        panel.axvspan(one / half, one * half, color="0.85", linewidth=0, zorder=0)


def _notes(checks: list[Check], lines: dict[str, Line]) -> list[str]:
    errors = np.concatenate([one.errors for one in checks])
    left_out = sum(one.left_out for one in checks)
    wrong = ", ".join(
        f"{name} {100 * np.mean(line.wrong):.0f}%" for name, line in lines.items()
    )
    return [
        f"{len(errors)} points in all, {left_out} left out because a training point "
        f"changes its set within the step of {STEP:g}; largest error "
        f"{errors.max():.1e}, {np.sum(errors >= 1e-5)} above 1e-5.",
        f"Shaded: the published slope has the wrong sign ({wrong} of a grid of C from "
        "1e-4 to 100, even in log C).",
    ]
