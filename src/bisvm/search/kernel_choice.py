"""kernel="auto": the simplest kernel that is not clearly worse on held-out rows.

    linear  ->  one width for all features  ->  one for each  ->  one kernel per group

A richer candidate is chosen if it lowers the held-out losses, paired by row, by more
than the noise of the difference; the first candidate that does not ends the choice. The
two candidates in the middle are one search, which goes from shared to separate widths
by itself (`refinement`): if only a few of many features matter, one width for all may
gain nothing, and one for each a lot.

Two other kernels may replace the one of that search:

- one width in the original units. The search standardises the features, but if their
  units mean something, as with the pixels of an image, the original ones are better;
- a Laplacian kernel. The search assumes a smooth decision function, but the class may
  change at thresholds of single features, or features may be codes of categories.

Each is tried if local averages of the labels suggest it, and chosen if its held-out
loss is lower. In this comparison, the gain of separate widths counts only as far as
nested cross-validation confirms it (`refinement`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import takewhile

import numpy as np

from bisvm.data.matrices import column_moments, is_sparse
from bisvm.kernels import RBF, Kernel, Laplacian, Linear, feature_groups, on_groups
from bisvm.machines.regularization import PerFeature
from bisvm.search.history import CONSTANT_ERRORS, Comparison, PairedDifference
from bisvm.search.promises import SEPARATE
from bisvm.search.reasons import STOPS, Reason
from bisvm.search.refinement import NESTED, SEPARATE_ERRORS, WEAKER_PRIOR
from bisvm.search.results import Searched
from bisvm.search.settings import Data, Settings

# Standard errors by which one width must beat a linear machine. Both have few
# hyperparameters and hardly over-fit: the simpler one is taken if it is within one.
WIDTH_ERRORS = 1.0
# Loss of local averages, relative to that with standardised features and Gaussian
# weights, up to which the units given and the Laplacian kernel are tried.
UNITS_SUGGESTED = 0.99
LAPLACIAN_SUGGESTED = 1.2
# Features up to which each may have its own width, since each adds a hyperparameter,
# and groups of them a kernel each, since each adds a Gram matrix.
MANY_FEATURES = 1000
MANY_GROUPS = 10

LINEAR, ONE, EACH, GROUPS = "linear", "rbf", "ard", "groups"
LAPLACIAN, LAPLACIAN_EACH = "laplacian", "laplacian_ard"
# Their names if all widths are the same.
SEPARATE_WIDTHS = {EACH: ONE, LAPLACIAN_EACH: LAPLACIAN}
AS_GIVEN, NOT_GAUSSIAN = "units as given", "laplacian instead"
WORDS = {
    LINEAR: "a linear machine",
    ONE: "a Gaussian kernel with one width for all features",
    EACH: "a Gaussian kernel with one width for each feature",
    GROUPS: "a sum of Gaussian kernels, one for each group of features",
    LAPLACIAN: "a Laplacian kernel with one width for all features",
    LAPLACIAN_EACH: "a Laplacian kernel with one width for each feature",
    NOT_GAUSSIAN: "a Laplacian kernel instead of a Gaussian one",
    AS_GIVEN: "features as the kernel gets them, without rescaling",
    SEPARATE: "in this kernel, one width for each feature instead of one for all",
    WEAKER_PRIOR: "a weaker prior on these widths",
    NESTED: "one width for each feature, by nested cross-validation",
}
# What richer kernels are compared with.
SIMPLER = {
    **dict.fromkeys((ONE, EACH, LAPLACIAN, LAPLACIAN_EACH), WORDS[LINEAR]),
    GROUPS: "one Gaussian kernel for all features",
}
# Added to a gain that does not hold.
UNDONE = " Nested cross-validation refused it later."


@dataclass(frozen=True)
class KernelChoice:
    """What kernel="auto" chose, and why; `str` says it in words.

    Attributes
    ----------
    name : "linear", "rbf", "ard", "laplacian", "laplacian_ard" or "groups"
    kernel : as it would be given to `BilevelSVC`
    steps : comparisons with simpler kernels, in the order in which they were made
    n_svm_evaluations : lower-level problems that were solved for other kernels
    """

    name: str
    kernel: Kernel
    steps: tuple[Comparison, ...] = ()
    n_svm_evaluations: int = 0

    @property
    def words(self) -> str:
        return WORDS[self.name]

    @property
    def reasons(self) -> list[str]:
        """A sentence for each comparison: first between kernels, then within one."""
        said = [
            (step.name in SIMPLER, _in_words(step) + UNDONE * self._undone(number))
            for number, step in enumerate(self.steps)
        ]
        between, within = ([s for own, s in said if own == k] for k in (True, False))
        return between + within

    def _undone(self, number: int) -> bool:
        """Whether separate widths were taken at first, and refused by their check."""
        step, *later = self.steps[number:]
        if not step.taken or step.name not in (SEPARATE, WEAKER_PRIOR):
            return False
        # Steps of one search follow each other, its nested cross-validation at the end.
        own = takewhile(lambda one: one.name in (WEAKER_PRIOR, NESTED), later)
        return any(one.name == NESTED and not one.taken for one in own)

    def __str__(self) -> str:
        reasons = [f"- {reason}" for reason in self.reasons]
        return "\n".join([f"Chosen: {self.words}.", *reasons])


def _in_words(step: Comparison) -> str:
    """What was tried, instead of what, and what cross-validation says."""
    what = WORDS[step.name]
    if step.name in SIMPLER:
        what += f" instead of {SIMPLER[step.name]}"
    value, errors = step.difference.value, step.difference.in_standard_errors
    # A digit more where it decides.
    digits = 1 if abs(errors - step.needed) >= 0.05 else 3
    noise = f"{abs(errors):.{digits}f} standard errors"
    if step.needed > 0 and value > 0:
        noise += f"; more than {step.needed:.2g} needed"
    elif not step.needed and step.taken:
        noise += "; any gain is enough"
    elif step.needed < 0:
        # A simpler kernel is kept unless the richer one is better beyond its noise.
        noise += f"; up to {-step.needed:g} higher is allowed"
    sample = "" if step.n_rows is None else f", on a sample of {step.n_rows} rows"
    taken = "yes" if step.taken else "no"
    change = f"{'lower' if value > 0 else 'higher'} by {abs(value):.3g}"
    return (
        f"{what[0].upper()}{what[1:]}: {taken}. In this comparison, the "
        f"cross-validated loss is {change} ({noise}{sample})."
    )


@dataclass(frozen=True)
class Candidate:
    """A kernel to be tried, and the standard errors by which it must be better.

    others : kernels that may take its place
    separate : whether features may get separate widths
    target : H that it has to be below to be of use
    """

    name: str
    kernel: Kernel
    needed: float = 0.0
    others: tuple[Other, ...] = ()
    separate: bool = True
    target: float = np.inf

    def after(self, tuned: list[Searched]) -> Candidate:
        """Return it for a search after another.

        Widths that were refused stay refused. Then the lower H will be taken, and a
        search that does not come near that of the other kernel may end early.
        """
        if not _has_one_width(tuned):
            return self
        known = [one.descent.best.value for one in tuned]
        # Several sets of hyperparameters are compared by their mean.
        target = known[0] if len(known) == 1 else np.inf
        return replace(self, separate=False, target=target)

    def name_of(self, tuned: list[Searched]) -> str:
        """Return the name of the kernel that was found: widths may be the same."""
        one = SEPARATE_WIDTHS.get(self.name, self.name)
        return one if _has_one_width(tuned) else self.name


@dataclass(frozen=True)
class Other:
    """A kernel that may take the place of a candidate.

    step : name of the comparison
    suggested : it is tried if local averages with its distances have a loss below this
        part of that with the candidate's
    """

    step: str
    candidate: Candidate
    suggested: float


def candidates(settings: Settings, data: Data) -> list[Candidate]:
    """Return the kernels that may be tried, from simple to rich.

    Some settings mean one kind of kernel: regularisation by features a linear machine,
    names in `learn` one width, and some optimizers know one kind of machine. Separate
    widths are left to the search, and are not tried where it does not get to them.
    """
    if isinstance(settings.model.regularization, PerFeature):
        return [Candidate(LINEAR, Linear())]
    whole = all(
        isinstance(given, str) and given == usual
        for given, usual in ((settings.learn, "all"), (settings.starts, "auto"))
    )
    optimizer = settings.optimizer
    searched = optimizer.uses_start and optimizer.any_machine
    if not (whole and searched) or settings.criterion.on_training:
        return [Candidate(ONE, RBF())]
    # Constant features do not count, and one that varies has one width.
    varying = column_moments(data.X).variance > 0
    few = bool(varying.sum() > 1) and data.X.shape[1] <= MANY_FEATURES
    found = [Candidate(LINEAR, Linear()), _gaussian(data, few)]
    groups = feature_groups(data.X) if few else []
    groups = [columns for columns in groups if varying[columns].any()]
    if 1 < len(groups) <= MANY_GROUPS:
        kernel = on_groups(groups, RBF(per_feature=True))
        found.append(Candidate(GROUPS, kernel, SEPARATE_ERRORS))
    return found


def _gaussian(data: Data, per_feature: bool) -> Candidate:
    """One width, or one for each feature; with what may take its place."""
    wide = is_sparse(data.X) or data.X.shape[1] > MANY_FEATURES

    def candidate(names: tuple[str, str], per_feature: bool, *more: Other) -> Candidate:
        name, other = names
        laplacian = Candidate(other, Laplacian(per_feature=per_feature), WIDTH_ERRORS)
        instead = Other(NOT_GAUSSIAN, laplacian, LAPLACIAN_SUGGESTED)
        others = more if wide else (*more, instead)
        return Candidate(name, RBF(per_feature=per_feature), WIDTH_ERRORS, others)

    plain = candidate((ONE, LAPLACIAN), False)
    if not per_feature:
        return plain
    as_given = Other(AS_GIVEN, plain, UNITS_SUGGESTED)
    return candidate((EACH, LAPLACIAN_EACH), True, as_given)


def choose(
    ordered: list[Candidate],
    tune: Callable[[Candidate], list[Searched]],
    local_loss: Callable[[Kernel], float],
) -> tuple[list[Searched], KernelChoice]:
    """Try richer candidates while held-out rows gain by them.

    Parameters
    ----------
    ordered : candidates from simple to rich
    tune : searches with one candidate
    local_loss : held-out loss of the best local average with the distances of a kernel

    Returns
    -------
    tuned : results of the last candidate that was taken
    choice : KernelChoice
    """
    candidate, *richer = ordered
    trials = _Trials(tune, local_loss)
    tuned = trials.search(candidate)
    for higher in richer:
        if stopped(tuned):
            break
        further = trials.search(higher)
        if not judged(further):
            tuned = unless_stopped(tuned, further)
            break
        trials.tell(higher, further)
        higher, further = trials.with_others(higher, further)
        name = higher.name_of(further)
        needed = _needed(higher, tuned)
        step = Comparison(name, _difference(tuned, further), needed)
        trials.steps.append(step)
        if not step.taken:
            tuned = unless_stopped(tuned, further)
            break
        candidate, tuned = higher, further
    others = sum(_solves(found) for _, found in trials.tried) - _solves(tuned)
    tuned = _with_competitors(tuned, trials.tried)
    return tuned, KernelChoice(
        candidate.name_of(tuned), candidate.kernel, tuple(trials.steps), others
    )


def _needed(candidate: Candidate, simpler: list[Searched]) -> float:
    """Standard errors by which a candidate must be better than a simpler one.

    By as many as from a constant, where the simpler one is no better than that.
    """
    gains = [one.descent.over_constant for one in simpler]
    known = [gain for gain in gains if gain is not None]
    guessing = known and not any(gain.exceeds(CONSTANT_ERRORS) for gain in known)
    return max(candidate.needed, CONSTANT_ERRORS) if guessing else candidate.needed


@dataclass(frozen=True)
class _Trials:
    """The kernels that were tried so far, and how they were compared."""

    tune: Callable[[Candidate], list[Searched]]
    local_loss: Callable[[Kernel], float]
    tried: list[tuple[Candidate, list[Searched]]] = field(default_factory=list)
    steps: list[Comparison] = field(default_factory=list)

    def search(self, candidate: Candidate) -> list[Searched]:
        found = self.tune(candidate)
        self.tried.append((candidate, found))
        return found

    def tell(self, candidate: Candidate, found: list[Searched]) -> None:
        """Add the steps within a search, the first of several."""
        if candidate.name in SEPARATE_WIDTHS:
            self.steps.extend(found[0].descent.steps)

    def with_others(
        self, candidate: Candidate, tuned: list[Searched]
    ) -> tuple[Candidate, list[Searched]]:
        """The candidate, or what has taken its place."""
        for other in candidate.others:
            if stopped(tuned):
                break
            if not self._suggest(candidate, other):
                continue
            found = self.search(other.candidate.after(tuned))
            step = _replacing(candidate, tuned, other, found)
            self.steps.append(step)
            if step.taken:
                self.tell(other.candidate, found)
                return self.with_others(other.candidate, found)
        return candidate, tuned

    def _suggest(self, candidate: Candidate, other: Other) -> bool:
        """Whether local averages suggest the other kernel."""
        usual = self.local_loss(candidate.kernel)
        return self.local_loss(other.candidate.kernel) < other.suggested * usual


def _replacing(
    candidate: Candidate, tuned: list[Searched], other: Other, found: list[Searched]
) -> Comparison:
    """The lower loss counts, without what separate widths over-fit.

    In the units given there is one width for all features; one for each has to be
    better by as much as elsewhere.
    """
    difference = _difference(tuned, found)
    if other.step == AS_GIVEN:
        needed = 0.0 if _has_one_width(tuned) else -SEPARATE_ERRORS
        return Comparison(other.step, difference, needed)
    value = difference.value + _overfitted(tuned) - _overfitted(found)
    return Comparison(other.step, replace(difference, value=value), 0.0)


def _overfitted(tuned: list[Searched]) -> float:
    """The gain of separate widths that nested cross-validation does not confirm."""
    return max(float(np.mean([_unconfirmed(one) for one in tuned])), 0.0)


def _unconfirmed(one: Searched) -> float:
    taken = [step for step in one.descent.steps if step.taken]
    nested = [step.difference.value for step in taken if step.name == NESTED]
    if one.shared or not nested:
        return 0.0
    gained = sum(step.difference.value for step in taken if step.name != NESTED)
    return gained - nested[-1]


def _with_competitors(
    tuned: list[Searched], tried: list[tuple[Candidate, list[Searched]]]
) -> list[Searched]:
    """The results, each with the competitors of all kernels that were tried."""
    needed = [candidate.needed for candidate, _ in tried]
    out = []
    for one, *every in zip(tuned, *(found for _, found in tried), strict=True):
        held_out = one.held_out
        if held_out is not None:
            parts = [other.held_out for other in every]
            held_out = held_out.with_competitors(parts, needed)
        out.append(replace(one, held_out=held_out))
    return out


def _has_one_width(tuned: list[Searched]) -> bool:
    return all(one.shared for one in tuned)


def judged(tuned: list[Searched]) -> bool:
    """Whether held-out rows have judged the results; not if time was too short."""
    return all(one.judged for one in tuned)


def stopped(tuned: list[Searched]) -> Reason | None:
    """Why the search was stopped from outside; None if it was not."""
    reasons = (one.descent.reason for one in tuned)
    return next((why for why in reasons if why in STOPS), None)


def unless_stopped(tuned: list[Searched], further: list[Searched]) -> list[Searched]:
    """The simpler results, not converged if the richer search was stopped.

    With more time another kernel might have been chosen.
    """
    why = stopped(further)
    if why is None:
        return tuned
    return [
        replace(one, descent=replace(one.descent, converged=False, reason=why))
        for one in tuned
    ]


def _difference(simple: list[Searched], rich: list[Searched]) -> PairedDifference:
    """Of the mean loss over the sets of hyperparameters."""
    first, second = ([one.descent.best for one in tuned] for tuned in (simple, rich))
    return PairedDifference.of(
        np.mean([one.shares for one in first], axis=0),
        np.mean([one.shares for one in second], axis=0),
        # Pairs of classes have different rows.
        np.mean([one.share_weights for one in first], axis=0),
    )


def _solves(tuned: list[Searched]) -> int:
    return sum(one.solves for one in tuned)
