"""kernel="auto": the simplest kernel that held-out rows do not refute.

    linear  ->  one width for all features  ->  one for each  ->  one kernel per group

A richer candidate is taken where it lowers the paired losses of held-out rows by more
than their noise, and where it does not the climb ends. The two candidates in the middle
are one search, which climbs by itself (`climb`): with few of many features to go by,
one width for all may gain nothing, and one for each a lot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bisvm.data.scaling import column_moments
from bisvm.kernels import RBF, Kernel, Linear, feature_groups, on_groups
from bisvm.machines.penalties import PerFeature
from bisvm.search.climb import APART_ERRORS
from bisvm.search.data import Data
from bisvm.search.gains import Gain, Step
from bisvm.search.observer import CALLBACK_STOP, TIME_STOP
from bisvm.search.settings import Settings
from bisvm.search.tuned import Tuned

# Standard errors by which one width must beat a linear machine. Both have few
# hyperparameters and hardly over-fit: the simpler one is taken if it is within one.
WIDTH_ERRORS = 1.0
# Columns up to which each may have its own width, and groups of them a kernel each.
MANY_COLUMNS = 1000
MANY_GROUPS = 10

LINEAR, ONE, EACH, GROUPS = "linear", "rbf", "ard", "groups"
WORDS = {
    LINEAR: "a linear machine",
    ONE: "a Gaussian kernel with one width for all features",
    EACH: "a Gaussian kernel with one width for each feature",
    GROUPS: "a sum of Gaussian kernels, one for each group of features",
    "one for each": "one width for each feature instead of one for all",
    "weaker prior": "a weaker prior on these widths",
    "chosen without the judges": "one for each, chosen without the rows that judge",
}


@dataclass(frozen=True)
class KernelChoice:
    """What kernel="auto" chose, and why; `str` says it in words.

    name : "linear", "rbf", "ard" or "groups"
    kernel : as it would be given to `BilevelSVC`
    steps : comparisons with simpler kernels, in the order in which they were made
    n_svm_evaluations : lower-level problems that were solved for other kernels
    """

    name: str
    kernel: Kernel
    steps: tuple[Step, ...] = ()
    n_svm_evaluations: int = 0

    @property
    def words(self) -> str:
        return WORDS[self.name]

    @property
    def reasons(self) -> list[str]:
        """A sentence for each comparison."""
        return [_said(step) for step in self.steps]

    def __str__(self) -> str:
        reasons = [f"- {reason}" for reason in self.reasons]
        return "\n".join([f"Chosen: {self.words}.", *reasons])


def _said(step: Step) -> str:
    gain, what = step.gain, WORDS[step.name]
    if gain.value <= 0.0:
        return f"Not {what}: the held-out loss is no lower."
    # A digit more where it decides.
    digits = 1 if abs(gain.in_errors - step.needed) >= 0.05 else 3
    size = f"lower by {gain.value:.3g}, {gain.in_errors:.{digits}f} standard errors"
    asked = f" (more than {step.needed:g} needed)" if step.needed else ""
    verdict = "" if step.taken else "Not "
    what = what if verdict else what[0].upper() + what[1:]
    return f"{verdict}{what}: the held-out loss is {size}{asked}."


@dataclass(frozen=True)
class Candidate:
    """A kernel to be tried, and the standard errors that its gain must exceed."""

    name: str
    kernel: Kernel
    needed: float = 0.0


def candidates(settings: Settings, data: Data) -> list[Candidate]:
    """What may be tried, from simple to rich.

    Settings that mean one kind of kernel decide: penalties of features belong to a
    linear machine, and what is named in `learn` to one width; some optimizers know one
    kind of machine. Many widths are left to the climb, and are not tried where there is
    none.
    """
    if isinstance(settings.model.penalty, PerFeature):
        return [Candidate(LINEAR, Linear())]
    whole = all(
        isinstance(given, str) and given == usual
        for given, usual in ((settings.learn, "all"), (settings.starts, "auto"))
    )
    optimizer = settings.optimizer
    searched = optimizer.uses_start and optimizer.any_machine
    judged = not settings.criterion.on_training
    if not (whole and searched and judged):
        return [Candidate(ONE, RBF())]
    # Constant columns are no features, and no group; with one that is not, there is one
    # width.
    varying = column_moments(data.X).variance > 0
    few = bool(varying.sum() > 1) and data.X.shape[1] <= MANY_COLUMNS
    found = [
        Candidate(LINEAR, Linear()),
        Candidate(EACH, RBF(per_feature=few), WIDTH_ERRORS),
    ]
    groups = feature_groups(data.X) if few else []
    groups = [columns for columns in groups if varying[columns].any()]
    if 1 < len(groups) <= MANY_GROUPS:
        kernel = on_groups(groups, RBF(per_feature=True))
        found.append(Candidate(GROUPS, kernel, APART_ERRORS))
    return found


def choose(
    ladder: list[Candidate], tune: Callable[[Candidate], list[Tuned]]
) -> tuple[list[Tuned], KernelChoice]:
    """Try richer candidates while held-out rows gain; the answers of the last taken."""
    candidate, *richer = ladder
    tuned = tune(candidate)
    tried = [(candidate, tuned)]
    solves = _solves(tuned)
    steps: list[Step] = []
    for higher in richer:
        if _stopped(tuned):
            break
        further = tune(higher)
        tried.append((higher, further))
        solves += _solves(further)
        if higher.name == EACH:
            # Of several sets of hyperparameters the first speaks.
            steps += further[0].descent.steps
        step = Step(_name(higher, further), _gain(tuned, further), higher.needed)
        steps.append(step)
        if not step.taken:
            tuned = _as_far_as(tuned, further)
            break
        candidate, tuned = higher, further
    others = solves - _solves(tuned)
    tuned = _among(tuned, tried)
    return tuned, KernelChoice(
        _name(candidate, tuned), candidate.kernel, tuple(steps), others
    )


def _among(
    tuned: list[Tuned], tried: list[tuple[Candidate, list[Tuned]]]
) -> list[Tuned]:
    """The answers, each with the rivals of all kernels that were tried."""
    needed = [candidate.needed for candidate, _ in tried]
    answers = zip(tuned, *(found for _, found in tried), strict=True)
    return [
        one
        if one.held_out is None
        else replace(
            one, held_out=one.held_out.among([r.held_out for r in all_], needed)
        )
        for one, *all_ in answers
    ]


def _stopped(tuned: list[Tuned]) -> str:
    """Why the search was stopped from outside; empty if it was not."""
    reasons = (one.descent.reason for one in tuned)
    return next((why for why in reasons if why in (CALLBACK_STOP, TIME_STOP)), "")


def _as_far_as(tuned: list[Tuned], further: list[Tuned]) -> list[Tuned]:
    """The simpler answers; they say so if the richer ones were not searched to the end.

    With more time another kernel might have been chosen.
    """
    why = _stopped(further)
    if not why:
        return tuned
    return [
        replace(one, descent=replace(one.descent, converged=False, reason=why))
        for one in tuned
    ]


def _name(candidate: Candidate, tuned: list[Tuned]) -> str:
    return (
        ONE
        if candidate.name == EACH and all(one.tied for one in tuned)
        else candidate.name
    )


def _gain(simple: list[Tuned], rich: list[Tuned]) -> Gain:
    """Of the mean loss over the sets of hyperparameters."""
    both = zip(simple, rich, strict=True)
    pairs = [(one.descent.best, other.descent.best) for one, other in both]
    return Gain.of(
        np.mean([one.shares for one, _ in pairs], axis=0),
        np.mean([other.shares for _, other in pairs], axis=0),
        # Pairs of classes have rows of their own.
        np.mean([one.share_weights for one, _ in pairs], axis=0),
    )


def _solves(tuned: list[Tuned]) -> int:
    return sum(one.solves for one in tuned)
