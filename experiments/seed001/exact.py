"""Machines trained to the optimum at a C, and the C at which their H is lowest.

    H(C) = mean over folds of the mean held-out hinge

is known everywhere from the regularisation path, so that its global minimum is too. The
path has a free intercept; a training set with its mirror image, (X, y) and (-X, -y),
has intercept zero by symmetry, and counts every point twice: C there is C / 2.

Where the path is too long a grid of C takes its place, refined where H is lowest until
its neighbours are within `FLAT` of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bisvm.hinge.path import ValidationPath, mean_path, svm_path, validation_path
from bisvm.losses import Hinge
from bisvm.machines import LinearMachine
from bisvm.published import LinearFolds
from bisvm.solvers import Sharpening

# Relative differences of H that are not worth another machine, and the finest grid:
# log2 C in steps of an eighth, a factor of 1.09.
FLAT = 1e-4
FINEST = 0.125
FARTHEST = 14.0


class Trained(NamedTuple):
    """What machines trained exactly at C achieve on the folds held out."""

    C: float
    H: float
    accuracy: float


def train(folds: LinearFolds, C: float) -> Trained:
    machine = LinearMachine(
        folds.labels,
        C * folds.train,
        Hinge(),
        "none",
        folds.X,
        np.ones(folds.X.shape[1]),
    )
    margins = folds.labels * Sharpening().solve(machine).fitted
    return Trained(C, hinge(folds, margins), accuracy(folds, margins))


def hinge(folds: LinearFolds, margins: np.ndarray) -> float:
    return float(np.sum(folds.validation * np.maximum(0.0, 1.0 - margins)))


def accuracy(folds: LinearFolds, margins: np.ndarray) -> float:
    """In per cent."""
    return 100.0 * float(np.sum(folds.validation * (margins > 0)))


def curve(
    folds: LinearFolds, C_min: float = 1e-3, C_max: float = 1e3
) -> ValidationPath:
    """H(C) by the path; its argument is C / 2."""
    curves = []
    for y, rows, out in zip(
        folds.labels.T, folds.train.T > 0, folds.validation.T > 0, strict=True
    ):
        both = np.concatenate([folds.X[rows], -folds.X[rows]])
        signs = np.concatenate([y[rows], -y[rows]])
        path = svm_path("linear", both, signs, C_min=C_min / 2, C_max=C_max / 2)
        curves.append(validation_path(path, folds.X[out], y[out]))
    return mean_path(curves)


def lowest_on_path(folds: LinearFolds) -> Trained:
    """The global minimum of H."""
    C, _ = curve(folds).best()
    return train(folds, 2.0 * C)


def lowest_on_grid(
    at: Callable[[float], Trained], low: float, high: float, step: float = 1.0
) -> Trained:
    """The lowest H on a grid that starts as C = 2^low, 2^(low + step), ..., 2^high.

    The grid grows where its lowest point is its last one, and gets finer around it.
    """
    exponents = np.arange(low, high + step / 2, step).tolist()
    found = {k: at(2.0**k) for k in exponents}
    while new := _wanted(found):
        found.update({k: at(2.0**k) for k in new})
    return min(found.values(), key=lambda trained: trained.H)


def _wanted(found: dict[float, Trained]) -> list[float]:
    """Exponents next to the lowest point that may be lower still."""
    order = sorted(found)
    place = min(range(len(order)), key=lambda at: found[order[at]].H)
    best, worth = order[place], (1.0 + FLAT) * found[order[place]].H
    beside = [k for k in order[max(place - 1, 0) : place + 2] if k != best]
    steep = [k for k in beside if found[k].H > worth]
    wanted = [(k + best) / 2 for k in steep if abs(k - best) > FINEST]
    outward = 1.0 if place else -1.0
    if len(beside) == 1 and steep and abs(best) < FARTHEST:
        wanted.append(best + outward)
    return wanted
