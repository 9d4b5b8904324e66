"""The exact hinge on both levels: H has kinks, and bundle methods are made for them.

The draft gave up on the hinge as a lower level: its optimality condition is a set. Here
the gradient goes through the vectors on the margin, 1/2 |w|^2 + C sum max(0, 1 - u_i)
with a penalised bias below, the mean held-out hinge of five folds above. Ten data sets,
standardised, at most 500 rows drawn at random; every method starts from C = 1, within
1e-5 < C < 1e4.

H is piecewise smooth with many shallow minima, so that methods that all stop at one may
still differ, and from one start which of them is met is chance. The second table has
`fit` as a user calls it, with starts="auto". Both are repeated on other rows and folds.
The steps in which starts="auto" looks around a minimum were settled with the first two
draws known, 0 and 1 (with 0.5 in place of 0.25 and 1.25, the variable metric had 8 and
10 of 10); draw 2 was not looked at before.
The lowest H on a grid of 41 values of C, 1e-3 to 10, is given beside.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bisvm import BilevelLinearSVC, BilevelObjective, datasets
from bisvm.optimizers import LBFGS, Optimizer
from bisvm.published import Bundle, VariableMetricBundle
from experiments.common import Context, Result, Table, standardize

TITLE = "Hinge on both levels: bundle methods against L-BFGS-B"
SETS = (
    "australian",
    "heart_statlog",
    "ionosphere",
    "parkinsons",
    "pima_diabetes",
    "breast_cancer_wisconsin_original",
    "svmguide1",
    "a1a",
    "ida_breast_cancer",
    "ida_thyroid",
)
ROWS = 500
SEEDS = (0, 1, 2)
START = 1.0
LOG_BOUNDS = np.log([[1e-5, 1e4]])
GRID = np.geomspace(1e-3, 10.0, 41)
METHODS: dict[str, Optimizer] = {
    "bundle": Bundle(),
    "variable-metric bundle": VariableMetricBundle(),
    "L-BFGS-B": LBFGS(),
}
# Relative differences of H that may count as none; the methods stop at about 1e-5.
SAME = (1e-4, 1e-6)


Lows = dict[str, dict[str, float]]


def run(context: Context) -> Result:
    rows: dict[str, list[list[Any]]] = {"from C = 1": [], "auto": []}
    notes = []
    for seed in SEEDS:
        lows: dict[str, Lows] = {kind: {} for kind in rows}
        for name in SETS:
            X, y = sample(name, seed)
            objective = hinge_objective(X, y, seed)
            grid = min(objective(theta)[0] for theta in np.log(GRID)[:, None])
            for kind, search in (("from C = 1", single), ("auto", automatic)):
                found = {
                    m: search(m, o, objective, X, y, seed) for m, o in METHODS.items()
                }
                lows[kind][name] = {m: float(one[1]) for m, one in found.items()}
                rows[kind] += [
                    [name, seed, m, *one[:2], grid, *one[2:]]
                    for m, one in found.items()
                ]
        notes += [
            _note(lows[kind], method, f"{kind}, rows and folds {seed}")
            for kind in rows
            for method in list(METHODS)[:2]
        ]
    columns = {
        "data": "",
        "rows and folds": "",
        "method": "",
        "C": ".4g",
        "H": ".6f",
        "lowest on a grid": ".6f",
        "evaluations": "",
        "seconds": ".1f",
    }
    title = "Exact hinge below and above"
    tables = [
        Table(f"{title}, from C = 1", columns, rows["from C = 1"]),
        Table(f'{title}, starts="auto"', columns, rows["auto"], name="auto"),
    ]
    return Result(tables, notes=notes)


Found = tuple[float, float, int, float]


def single(
    name: str, optimizer: Optimizer, objective: BilevelObjective, *rest: Any
) -> Found:
    """C, H, evaluations and seconds of one descent."""
    began = time.perf_counter()
    result = optimizer.minimize(objective, np.log([START]), LOG_BOUNDS)
    seconds = time.perf_counter() - began
    return float(np.exp(result.x[0])), float(result.fun), int(result.nfev), seconds


def automatic(
    name: str,
    optimizer: Optimizer,
    objective: BilevelObjective,
    X: np.ndarray,
    y: np.ndarray,
    seed: int,
) -> Found:
    """The same of `fit`; H is what the objective says at the C found."""
    model = hinge_machine(seed).set_params(optimizer=optimizer)
    with warnings.catch_warnings():
        # L-BFGS-B often ends at a kink, and says so.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    H = objective(np.log([model.C_]))[0]
    return model.C_, float(H), len(model.history_), model.history_[-1].seconds


def sample(name: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Complete rows, at most ROWS of them, standardised."""
    X, y = datasets.load(name, return_X_y=True)
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    keep = np.flatnonzero(~np.isnan(X).any(axis=1))
    keep = np.sort(np.random.default_rng(seed).permutation(keep)[:ROWS])
    return standardize(X[keep]), np.asarray(y)[keep]


def hinge_machine(seed: int = 0) -> BilevelLinearSVC:
    return BilevelLinearSVC(
        loss="hinge",
        criterion="hinge",
        fit_intercept="penalized",
        cv=5,
        random_state=seed,
    )


def hinge_objective(X: np.ndarray, y: np.ndarray, seed: int = 0) -> BilevelObjective:
    return BilevelObjective(hinge_machine(seed), X, y)


def _note(lows: Lows, method: str, where: str) -> str:
    ratios = np.array([h[method] / h["L-BFGS-B"] - 1.0 for h in lows.values()])
    counts = ", ".join(
        f"{np.sum(ratios <= same)} to a relative {same:g}" for same in SAME
    )
    return (
        f"{where}: required is an H at least as low as L-BFGS-B's on 9 of 10 sets. "
        f"{method}: {counts}; lower by more than {SAME[0]:g} on "
        f"{np.sum(ratios < -SAME[0])}."
    )
