"""What a search promises, and what is left of it on rows that it has not seen.

theta was chosen because held-out points fared well with it: what they say at theta is
too good. How much so is seen where it is chosen anew without them,

    gap = mean over rows i of split k of  hit_i(theta) - hit_i(theta_k),

theta_k by a few steps on the other rows and splits alone: those of split k neither
train nor validate. They begin halfway between theta and its nearest point with one
size for each vector, since a feature that is switched off does not come back. Both are
judged by the same training rows. It is the nested cross-validation (Varma and Simon
2006) of the search's last part, on some splits.

With few hyperparameters the gap is small, and the search too short to pay for this.
Then the points that it went by are its rivals: how often would one of them have been
chosen, had the rows been others (Tsamardinos, Greasidou and Borboudakis 2018)?
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field

import numpy as np

from bisvm.objective import BilevelObjective, Evaluation
from bisvm.optimizers import BFGS
from bisvm.pieces import Pieces
from bisvm.tuning import Descent, Run, StopTuning, Tie
from bisvm.walk import Walk

# Splits without which theta is chosen anew, and the steps for each.
SPLITS = 2
STEPS = 4
# Part of the search's work that this may take; an evaluation without a split's rows
# takes about half of one with them.
EFFORT = 0.2
RELATIVE_WORK = 0.5
# Hyperparameters that no rows are over-fitted by.
FEW = 3
# Rows up to which rivals are looked at, and how many of them.
RIVAL_ROWS = 5000
RIVALS = 40


@dataclass(frozen=True)
class HeldOut:
    """Decision values of held-out points, from a search on some class tasks.

    where : (n, q), which of them there are; the values are in the order of
        `array[where]`
    task, split : (q,), of the columns
    values : at the theta found
    anew : at theta chosen without the split's rows; NaN for most splits
    losses, rivals : (r, observations) shares in the criterion and (r, ...) values at
        points that the search went by, the first of them the theta found
    """

    where: np.ndarray
    task: np.ndarray
    split: np.ndarray
    values: np.ndarray
    anew: np.ndarray
    losses: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    rivals: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))


def held_out(run: Run, descent: Descent) -> HeldOut | None:
    """What is known of held-out points at the end of a search; None without any."""
    columns, best = run.objective.problem.columns, descent.best
    where = columns.outside
    if run.objective.problem.criterion.on_training or not np.isfinite(best.value):
        return None
    anew = _anew(run, descent, where)
    found = HeldOut(where, columns.task, columns.split, best.held_out, anew)
    if np.isfinite(anew).any() or len(where) > RIVAL_ROWS:
        return found
    points = [best, *_rivals(run.seen, best)]
    return HeldOut(
        where,
        columns.task,
        columns.split,
        best.held_out,
        anew,
        np.array([point.shares for point in points]),
        np.array([point.held_out for point in points]),
    )


def _rivals(seen: list[Evaluation], best: Evaluation) -> list[Evaluation]:
    """Points that lost; those with a lower H were turned down for another reason."""
    lost = [e for e in seen if best.criterion < e.criterion < np.inf]
    return sorted(lost, key=lambda e: e.criterion)[:RIVALS]


def _anew(run: Run, descent: Descent, where: np.ndarray) -> np.ndarray:
    """Values of some splits at the theta that is chosen without their rows."""
    values = np.full(int(where.sum()), np.nan)
    split = run.objective.problem.columns.split
    for number in np.unique(split)[: _affordable(run, descent)]:
        theta = _chosen_without(run, descent, number)
        at = None if theta is None else _judged(run, theta, number)
        if at is not None and np.isfinite(at.value):
            of_split = np.broadcast_to(split == number, where.shape)[where]
            values[of_split] = at.held_out
    return values


def _judged(run: Run, theta: np.ndarray, number: int) -> Evaluation | None:
    """H of one split at theta; None if the time is over."""
    try:
        return _run_on(run, run.objective.on_split(number)).evaluate(theta, "anew")
    except StopTuning:
        return None


def _affordable(run: Run, descent: Descent) -> int:
    """How many splits there is time for; none where little can be over-fitted."""
    problem = run.objective.problem
    moved = 0 if descent.result is None else len(descent.result.x)
    n_splits = len(np.unique(problem.columns.split))
    late = run.deadline is not None and time.perf_counter() > run.deadline
    # So many rows are hardly over-fitted, and fewer might need a whole Gram matrix.
    large = problem.approximated or isinstance(problem.X, Pieces)
    if moved <= FEW or n_splits < 3 or late or large or isinstance(run, Walk):
        return 0
    evaluations = run.objective.n_svm_evaluations / len(problem.columns.split)
    affordable = EFFORT * evaluations / (RELATIVE_WORK * (STEPS + 1))
    return min(int(affordable), SPLITS, n_splits)


def _chosen_without(run: Run, descent: Descent, number: int) -> np.ndarray | None:
    """theta after some steps without the rows that a split holds out.

    Under the prior that the run began with: that it was weakened is the choice of rows
    that are to have none.
    """
    part, theta = run.objective.without(number), descent.best.theta
    if part is None:
        return None
    tied = Tie(run.objective)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        again = _run_on(run, part)
        start = 0.5 * (theta + tied.expand(tied.reduce(theta)))
        try:
            if not np.isfinite(again.evaluate(start, "anew").value):
                return None
            return again.descend(start, "anew").best.theta
        except StopTuning:
            return None


def _run_on(run: Run, objective: BilevelObjective) -> Run:
    """A run of few steps, within the limits of a search that has come to its end."""
    return Run(
        objective,
        BFGS(max_iter=STEPS, ftol=1e-3, gtol=0.1),
        deadline=run.deadline,
        accuracy=10.0 * run.accuracy,
        journal=run.journal,
    )
