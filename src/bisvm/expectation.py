"""What a search promises, and what is left of it on rows that it has not seen.

theta was chosen because held-out points fared well with it: what they say at theta is
too good. How much so is seen where it is chosen anew without them (`nested`),

    gap = mean over rows i of split k of  hit_i(theta) - hit_i(theta_k).

Both are judged by the same training rows.

With few hyperparameters the gap is small, and the search too short to pay for this.
Then the points that it went by are its rivals: how often would one of them have been
chosen, had the rows been others (Tsamardinos, Greasidou and Borboudakis 2018)?
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from bisvm.nested import chosen_anew, possible
from bisvm.objective import Evaluation
from bisvm.tuning import Descent, Run, StopTuning

# Splits without which theta is chosen anew where nobody has done it yet, and the steps.
SPLITS = 2
STEPS = 4
# Part of the search's work that this may take; an evaluation without a split's rows
# takes about half of one with them.
EFFORT = 0.2
RELATIVE_WORK = 0.5
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
    known = descent.anew or chosen_anew(run, descent, _affordable(run, descent), STEPS)
    # The search has ended: without time there is only less to be known of it.
    with suppress(StopTuning):
        for one in known:
            of_split = np.broadcast_to(split == one.split, where.shape)[where]
            values[of_split] = one.at.held_out
    return values


def _affordable(run: Run, descent: Descent) -> int:
    """How many splits there is time for; none where little can be over-fitted."""
    if not possible(run, descent):
        return 0
    evaluations = run.objective.n_svm_evaluations / len(
        run.objective.problem.columns.split
    )
    return min(int(EFFORT * evaluations / (RELATIVE_WORK * (STEPS + 1))), SPLITS)
