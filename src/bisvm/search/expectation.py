"""What a search promises, and what is left of it on rows that it has not seen.

theta was chosen because held-out points fared well with it: what they say at theta is
too good. How much so is seen where it is chosen without them (`nested`),

    gap = mean over rows i of split k of  hit_i(theta) - hit_i(theta_k).

Both are judged by the same training rows.

With few hyperparameters the gap is small, and the search too short to pay for this.
Then the points that it went by are its rivals: how often would one of them have been
chosen, had the rows been others (Tsamardinos, Greasidou and Borboudakis 2018)? So are
the points of other kernels that were tried, and the constant machines, one per class,
which every search has within reach as C goes to zero. Stratified folds give the class
that is the most frequent in a sample the same share in every fold: without its rivals a
constant machine would be expected to be right as often as that class was drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from bisvm.bilevel.evaluation import Evaluation
from bisvm.bilevel.objective import Objective
from bisvm.data.splits import Columns, row_kinds
from bisvm.search.descent import RIVAL_ROWS, Descent, Search, Trace
from bisvm.search.nested import possible, refit_without_splits
from bisvm.search.questions import StopSearch

# Splits without which theta is chosen again, where nobody has done it yet, and steps.
SPLITS = 2
STEPS = 4
# Part of the search's work that this may take; an evaluation without a split's rows
# takes about half of one with them.
EFFORT = 0.2
RELATIVE_WORK = 0.5
# How many rivals are looked at, with no more rows than RIVAL_ROWS.
RIVALS = 40
# By how much a constant machine prefers one of several classes.
LESS = 0.1


@dataclass(frozen=True)
class Rivals:
    """Points that a search with one kernel might have ended at, the best one first.

    shares : (r, observations) shares in the criterion
    values : (r, q) decision values of held-out points, as in `HeldOut`
    weights : (observations,) weights in the criterion
    needed : standard errors by which this kernel had to be better than a simpler one
    """

    shares: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    needed: float = 0.0

    def moved(self, threshold: float) -> Rivals:
        return replace(self, values=self.values - threshold)


@dataclass(frozen=True)
class HeldOut:
    """Decision values of held-out points, from a search on some class tasks.

    where : (n, q), which of them there are; the values are in the order of
        `array[where]`
    task, split : (q,), of the columns
    values : at the theta found
    refitted : at theta chosen without the split's rows; NaN for most splits
    rivals : what might have been chosen instead, for every kernel that was tried, from
        simple to rich
    """

    where: np.ndarray
    task: np.ndarray
    split: np.ndarray
    values: np.ndarray
    refitted: np.ndarray
    rivals: tuple[Rivals, ...] = ()

    def moved(self, threshold: float) -> HeldOut:
        """With decision values that have their zero at a threshold."""
        return replace(
            self,
            values=self.values - threshold,
            refitted=self.refitted - threshold,
            rivals=tuple(one.moved(threshold) for one in self.rivals),
        )

    def among(
        self, parts: Sequence[HeldOut | None], needed: Sequence[float]
    ) -> HeldOut:
        """With the rivals of all kernels that were tried, from simple to rich.

        needed : standard errors by which each had to be better than the one before
        """
        rivals = tuple(
            replace(one, needed=errors)
            for part, errors in zip(parts, needed, strict=True)
            if part is not None
            for one in part.rivals
        )
        return replace(self, rivals=rivals)


def held_out(search: Search, trace: Trace, descent: Descent) -> HeldOut | None:
    """What is known of held-out points at the end of a search; None without any."""
    problem, best = search.objective.problem, descent.best
    columns, where = problem.columns, problem.columns.outside
    if problem.criterion.on_training or not np.isfinite(best.value):
        return None
    # Without hyperparameters there is nothing that other rows would choose.
    chosen = len(best.theta) > 0 and len(where) <= RIVAL_ROWS
    return HeldOut(
        where,
        columns.task,
        columns.split,
        best.held_out,
        _refitted(search, trace, descent, where),
        (_rivals(search.objective, trace, best, where),) if chosen else (),
    )


def _rivals(
    objective: Objective, trace: Trace, best: Evaluation, where: np.ndarray
) -> Rivals:
    """The answer, points that lost, and a constant machine for every class.

    Points with a lower H were turned down for another reason.
    """
    lost = [e for e in trace.seen.values() if best.criterion < e.criterion < np.inf]
    points = [best, *sorted(lost, key=lambda e: e.criterion)[:RIVALS]]
    shares, values = [e.shares for e in points], [e.held_out for e in points]
    for constant in _constants(objective.problem.columns):
        _, share = objective.loss_of(constant)
        if np.isfinite(share).all():
            shares.append(share)
            values.append(constant[where])
    return Rivals(np.array(shares), np.array(values), best.share_weights)


def _constants(columns: Columns) -> Iterator[np.ndarray]:
    """(n, q) decision values that give all rows one class, for the largest classes.

    Of several classes none may have half of the rows: then constant machines, one
    against the rest, say no to all of them, and to one of them less.
    """
    labels = columns.labels
    _, some, count = np.unique(row_kinds(labels), return_index=True, return_counts=True)
    trained = np.sum(labels * columns.train, axis=0)
    usual = np.where(trained > 0, 1.0, -1.0)
    for number in np.argsort(-count, kind="stable")[:RIVALS]:
        own = labels[some[number]]
        yield np.broadcast_to(own, labels.shape)
        if len(count) > 2:
            yield np.broadcast_to(usual + LESS * own, labels.shape)


def _refitted(
    search: Search, trace: Trace, descent: Descent, where: np.ndarray
) -> np.ndarray:
    """Values of some splits at the theta that is chosen without their rows."""
    values = np.full(int(where.sum()), np.nan)
    split = search.objective.problem.columns.split
    known = descent.refitted or refit_without_splits(
        search, trace, descent, _affordable(search, trace, descent), STEPS
    )
    # The search has ended: without time there is only less to be known of it.
    with suppress(StopSearch):
        for one in known:
            of_split = np.broadcast_to(split == one.split, where.shape)[where]
            values[of_split] = one.at.held_out
    return values


def _affordable(search: Search, trace: Trace, descent: Descent) -> int:
    """How many splits there is time for; none where little can be over-fitted."""
    if not possible(search, descent):
        return 0
    evaluations = trace.n_solved / len(search.objective.problem.columns.split)
    return min(int(EFFORT * evaluations / (RELATIVE_WORK * (STEPS + 2))), SPLITS)
