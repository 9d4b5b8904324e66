"""Table 5.5, what was tried: why is the published training error of seeds so low?

For 1 against the rest the thesis has H_min = .1145, a training H of .0154 and a test H
of .1037; ours has a lower H_min and three times the training H (`table_5_5`). Its
machine fits the training points more closely than one that five folds would choose.
Here are the choices that the thesis leaves open, one at a time: scaling, coordinates of
the search, how the folds are made, early stops, the c of the final machine, and splits
in the order of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bisvm import datasets
from bisvm.optimizers import LBFGS, Optimizer
from experiments.common import (
    Context,
    Result,
    Table,
    binary,
    random_splits,
    standardize,
)
from experiments.seed000.fits import (
    LOG_LBFGS,
    MEASURES,
    NaturalLBFGS,
    Part,
    Scores,
    fitted,
    kernel_machine,
    scores,
    spread,
    to_range,
)
from experiments.seed000.table_5_5 import PUBLISHED, SIZES

TITLE = "Table 5.5, what was tried: training error of seeds, 1 against the rest"
LABEL = 1
FOLDS = 5
SPLITS = 5
Scaling = Callable[[np.ndarray, np.ndarray], np.ndarray]


def raw(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.asarray(X, dtype=float)


@dataclass(frozen=True)
class Variant:
    """One way to do it.

    folds : "usual", "on a fifth" (one fold trains, four validate) or "halves"
    final : factor on c for the machine that is trained on all training points
    order : "random" splits, or the "first" or "last" 50 rows of each class train
    """

    scaling: Scaling = to_range
    optimizer: Optimizer = LOG_LBFGS
    folds: str = "usual"
    final: float = 1.0
    order: str = "random"


NATURAL = NaturalLBFGS()
VARIANTS = {
    "[-1, 1], logarithms (as in table_5_5)": Variant(),
    "[-1, 1], c and γ": Variant(optimizer=NATURAL),
    "raw, logarithms": Variant(raw),
    "raw, c and γ": Variant(raw, NATURAL),
    "standardised, logarithms": Variant(standardize),
    "standardised, c and γ": Variant(standardize, NATURAL),
    "stopped after 3 iterations": Variant(optimizer=LBFGS(max_iter=3)),
    "raw, c and γ, stopped after 3": Variant(raw, NaturalLBFGS(max_iter=3)),
    "raw, c and γ, stopped after 10": Variant(raw, NaturalLBFGS(max_iter=10)),
    "trained on a fifth, validated on the rest": Variant(folds="on a fifth"),
    "five random halves": Variant(folds="halves"),
    "final machine with c / 5": Variant(final=1 / FOLDS),
    "final machine with c / 5, raw, c and γ": Variant(raw, NATURAL, final=1 / FOLDS),
    "first 50 rows of each class": Variant(order="first"),
    "last 50 rows of each class": Variant(order="last"),
}


def run(context: Context) -> Result:
    X, y = datasets.load("seeds", return_X_y=True)
    repeats = min(context.splits, SPLITS)
    found = {
        name: [outcome(variant, X, y, number) for number in range(repeats)]
        for name, variant in VARIANTS.items()
    }
    return Result([_table(found)], notes=_notes(found))


def outcome(variant: Variant, X: np.ndarray, y: np.ndarray, number: int) -> Scores:
    train, test = rows_of(variant.order, y, number)
    Z = variant.scaling(X, train)
    parts = [Part(Z[rows], binary(y[rows], LABEL)) for rows in (train, test)]
    rng = np.random.default_rng([5, number])
    machine = kernel_machine(
        rng.uniform(5, 15),
        rng.uniform(0.5, 1.5, X.shape[1]),
        variant.optimizer,
        random_state=number,
        cv=folds(variant.folds, len(train), rng),
    )
    found = fitted(machine, parts[0])
    judged = scores(found, *parts)
    if variant.final == 1.0:
        return judged
    other = kernel_machine(
        variant.final / found.C_, found.kernel_.gamma, learn=(), cv=FOLDS
    )
    final = scores(fitted(other, parts[0]), *parts)
    return replace(final, H_min=judged.H_min, evaluations=judged.evaluations)


def rows_of(order: str, y: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows."""
    if order == "random":
        train, test = random_splits(y, SIZES, number + 1)[number]
        return train, test
    members = [np.flatnonzero(y == label) for label in np.unique(y)]
    first = order == "first"
    train = np.concatenate([m[:50] if first else m[-50:] for m in members])
    return train, np.setdiff1d(np.arange(len(y)), train)


def folds(kind: str, n: int, rng: np.random.Generator) -> Any:
    """Pairs of training and validation rows, or the number of the usual folds."""
    if kind == "usual":
        return FOLDS
    if kind == "halves":
        draws = [rng.permutation(n) for _ in range(FOLDS)]
        return [(np.sort(d[: n // 2]), np.sort(d[n // 2 :])) for d in draws]
    part = rng.permutation(n) % FOLDS
    return [
        (np.flatnonzero(part == k), np.flatnonzero(part != k)) for k in range(FOLDS)
    ]


def _table(found: dict[str, list[Scores]]) -> Table:
    rows = [("published", *PUBLISHED["LBFGS-B", LABEL].cells())]
    rows += [(name, *spread(every)) for name, every in found.items()]
    return Table(TITLE, {"variant": "", **MEASURES}, rows)


def _notes(found: dict[str, list[Scores]]) -> list[str]:
    wanted = PUBLISHED["LBFGS-B", LABEL]
    means = {
        name: [np.mean([getattr(s, what) for s in every]) for what in WHAT]
        for name, every in found.items()
    }
    target = [getattr(wanted, what) for what in WHAT]
    apart = {
        name: float(np.max(np.abs(np.log(np.array(values) / target))))
        for name, values in means.items()
    }
    nearest = min(apart, key=lambda name: apart[name])
    below = [name for name, (_, train, _) in means.items() if train <= 1.25 * target[1]]
    return [
        f"{len(next(iter(found.values())))} splits or starts each.",
        "Training H within a quarter of the published .0154: "
        + ("; ".join(below) or "none")
        + ".",
        f"Nearest to the published H_min, training H and test H together: {nearest}; "
        f"the worst of the three is off by a factor of {np.exp(apart[nearest]):.2f}.",
    ]


WHAT = ("H_min", "train_H", "test_H")
