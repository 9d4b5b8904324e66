"""Which candidate kernel is chosen, given what their searches have found."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from bisvm.kernels import RBF, Laplacian, Linear
from bisvm.search.history import Comparison, PairedDifference
from bisvm.search.kernel_choice import (
    AS_GIVEN,
    EACH,
    GROUPS,
    LAPLACIAN,
    LAPLACIAN_EACH,
    LINEAR,
    NOT_GAUSSIAN,
    ONE,
    Candidate,
    KernelChoice,
    Other,
    _difference,
    _gaussian,
    choose,
)
from bisvm.search.reasons import TIME_STOP

CANDIDATES = [
    Candidate(LINEAR, Linear()),
    Candidate(EACH, RBF(per_feature=True), 1.0),
    Candidate(GROUPS, RBF(per_feature=True) + RBF(), 4.0),
]


def choice_of(candidates, tune):
    """Without a kernel in the units given."""
    return choose(candidates, tune, local_loss=lambda kernel: 1.0)


N = 100
NOISE = np.random.default_rng(0).normal(size=(4, N)) / N


@dataclass(frozen=True)
class At:
    shares: np.ndarray
    share_weights: np.ndarray
    criterion: float = 0.0

    @property
    def value(self):
        return self.criterion


@dataclass(frozen=True)
class Ended:
    best: At
    reason: str = "done"
    converged: bool = True
    steps: tuple[Comparison, ...] = ()
    over_constant: PairedDifference | None = None


@dataclass(frozen=True)
class Answer:
    """What a choice needs of the result of a search."""

    descent: Ended
    solves: int = 10
    shared: bool = False
    held_out: Any = None
    judged: bool = True


@dataclass
class Searches:
    """Answers with these mean losses, one for each candidate in turn."""

    losses: list[float]
    shared: bool = False
    reasons: dict[str, str] = field(default_factory=dict)
    tried: list[str] = field(default_factory=list)
    targets: list[float] = field(default_factory=list)
    unjudged: tuple[str, ...] = ()
    over_constant: PairedDifference | None = None

    def __call__(self, candidate):
        number = len(self.tried)
        self.tried.append(candidate.name)
        self.targets.append(candidate.target)
        shares = self.losses[number] / N + 0.1 * NOISE[number]
        reason = self.reasons.get(candidate.name, "done")
        at = At(shares, np.full(N, 1.0 / N), self.losses[number])
        ended = Ended(at, reason, reason == "done", over_constant=self.over_constant)
        judged = candidate.name not in self.unjudged
        return [Answer(ended, 10 * (number + 1), self.shared, judged=judged)]


def test_richer_candidates_are_tried_while_held_out_rows_gain():
    searches = Searches([0.6, 0.4, 0.2])
    answers, choice = choice_of(CANDIDATES, searches)
    assert searches.tried == [LINEAR, EACH, GROUPS]
    assert choice.name == GROUPS and choice.kernel is CANDIDATES[2].kernel
    assert all(step.taken for step in choice.steps)
    assert answers[0].solves == 30 and choice.n_svm_evaluations == 30


def test_the_choice_ends_at_the_first_candidate_that_gains_nothing():
    searches = Searches([0.4, 0.4, 0.1])
    answers, choice = choice_of(CANDIDATES, searches)
    assert searches.tried == [LINEAR, EACH]
    assert choice.name == LINEAR and answers[0].solves == 10
    assert choice.n_svm_evaluations == 20
    assert [step.taken for step in choice.steps] == [False]


def test_a_richer_candidate_must_gain_more_than_its_noise():
    """Ten groups of noise: about 0.14 standard errors of the difference in 1e-3."""
    shares = [0.5 / N + 0.1 * noise for noise in NOISE]
    for margin, taken in ((0.5, False), (2.0, True)):
        plain = PairedDifference.of(shares[0], shares[1], np.full(N, 1.0 / N))
        lower = margin * plain.standard_error - plain.value
        _, choice = choice_of(CANDIDATES[:2], Searches([0.5, 0.5 - lower]))
        assert choice.steps[-1].taken is taken
        errors = choice.steps[-1].difference.in_standard_errors
        assert errors == pytest.approx(margin, rel=0.05)


def test_from_guessing_it_takes_as_much_as_from_a_constant():
    shares = [0.5 / N + 0.1 * noise for noise in NOISE]
    plain = PairedDifference.of(shares[0], shares[1], np.full(N, 1.0 / N))
    lower = 1.5 * plain.standard_error - plain.value
    for errors, taken in ((1.0, False), (3.0, True)):
        gain = PairedDifference(0.1 * errors, 0.1)
        searches = Searches([0.5, 0.5 - lower], over_constant=gain)
        _, choice = choice_of(CANDIDATES[:2], searches)
        assert choice.steps[-1].taken is taken


def test_one_width_for_all_has_its_own_name():
    _, choice = choice_of(CANDIDATES[:2], Searches([0.6, 0.3], shared=True))
    assert choice.name == ONE and choice.steps[-1].name == ONE
    _, choice = choice_of(CANDIDATES[:2], Searches([0.6, 0.3]))
    assert choice.name == EACH


def test_a_search_that_was_stopped_ends_the_choice():
    searches = Searches([0.6, 0.3, 0.1], reasons={LINEAR: TIME_STOP})
    answers, choice = choice_of(CANDIDATES, searches)
    assert searches.tried == [LINEAR] and choice.steps == ()
    assert answers[0].descent.reason == TIME_STOP


def test_a_richer_candidate_without_time_is_left_out():
    searches = Searches([0.6, np.inf], reasons={EACH: TIME_STOP}, unjudged=(EACH,))
    answers, choice = choice_of(CANDIDATES, searches)
    assert choice.name == LINEAR
    assert answers[0].descent.reason == TIME_STOP


def test_the_simpler_answer_says_that_the_richer_one_was_cut_short():
    searches = Searches([0.4, 0.4, 0.1], reasons={EACH: TIME_STOP})
    answers, choice = choice_of(CANDIDATES, searches)
    assert choice.name == LINEAR
    assert not answers[0].descent.converged and answers[0].descent.reason == TIME_STOP


def test_one_candidate_is_no_choice():
    answers, choice = choice_of(CANDIDATES[:1], Searches([0.5]))
    assert choice == KernelChoice(LINEAR, CANDIDATES[0].kernel)
    assert len(answers) == 1


def test_the_steps_within_a_search_are_part_of_the_reasons():
    refined = Comparison("separate values", PairedDifference(0.1, 0.01), 4.0)
    plain = Searches([0.6, 0.3])

    def tune(candidate):
        (answer,) = plain(candidate)
        return [replace(answer, descent=replace(answer.descent, steps=(refined,)))]

    _, choice = choice_of(CANDIDATES[:2], tune)
    assert choice.steps[0] is refined and len(choice.steps) == 2
    first, second = choice.reasons
    assert first.startswith("A Gaussian kernel with one width for each feature instead")
    assert second.startswith("In this kernel, one width for each feature instead of ")
    assert "(10.0 standard errors; more than 4 needed)" in second
    assert str(choice).splitlines()[1:] == [f"- {first}", f"- {second}"]


class TestUnits:
    """One width in the units given is tried where local averages are better with it."""

    PLAIN = RBF()
    AS_GIVEN = Other(AS_GIVEN, Candidate(ONE, PLAIN, 1.0), 0.99)
    ORDERED = (
        CANDIDATES[0],
        Candidate(EACH, RBF(per_feature=True), 1.0, (AS_GIVEN,)),
    )

    def choose(self, searches, plain_loss=0.5):
        def local_loss(kernel):
            return plain_loss if kernel is self.PLAIN else 1.0

        return choose(list(self.ORDERED), searches, local_loss)

    def test_it_is_not_tried_if_its_distances_serve_no_better(self):
        searches = Searches([0.6, 0.3])
        _, choice = self.choose(searches, plain_loss=0.995)
        assert searches.tried == [LINEAR, EACH] and choice.name == EACH

    def test_with_one_width_either_way_the_lower_loss_counts(self):
        for plain, taken in ((0.29, True), (0.31, False)):
            searches = Searches([0.6, 0.3, plain], shared=True)
            answers, choice = self.choose(searches)
            assert searches.tried == [LINEAR, EACH, ONE]
            assert choice.name == ONE
            assert (choice.kernel == self.PLAIN) is taken
            assert answers[0].solves == (30 if taken else 20)
            (units,) = (step for step in choice.steps if step.name == AS_GIVEN)
            assert units.taken is taken

    def test_one_width_for_each_feature_must_be_better_beyond_its_noise(self):
        _, choice = self.choose(Searches([0.6, 0.3, 0.3]))
        assert choice.name == ONE and choice.kernel == self.PLAIN
        assert "up to 4 higher is allowed" in str(choice)
        _, choice = self.choose(Searches([0.6, 0.3, 0.5]))
        assert choice.name == EACH

    def test_all_evaluations_are_counted(self):
        _, choice = self.choose(Searches([0.6, 0.3, 0.2]))
        assert choice.n_svm_evaluations == 10 + 20


class TestLaplacian:
    """It may take the place of the Gaussian kernel, in the units that were chosen."""

    ONE_WIDTH = Other(NOT_GAUSSIAN, Candidate(LAPLACIAN, Laplacian(), 1.0), 1.2)
    MANY_WIDTHS = Other(
        NOT_GAUSSIAN, Candidate(LAPLACIAN_EACH, Laplacian(per_feature=True), 1.0), 1.2
    )
    PLAIN = Candidate(ONE, RBF(), 1.0, (ONE_WIDTH,))
    UNITS = Other(AS_GIVEN, PLAIN, 0.99)
    ORDERED = (
        CANDIDATES[0],
        Candidate(EACH, RBF(per_feature=True), 1.0, (UNITS, MANY_WIDTHS)),
    )

    def choose(self, searches, plain=1.0, laplacian=1.0):
        def local_loss(kernel):
            if isinstance(kernel, Laplacian):
                return laplacian
            return 1.0 if kernel.per_feature else plain

        return choose(list(self.ORDERED), searches, local_loss)

    def test_the_lower_loss_counts(self):
        for loss, taken in ((0.29, True), (0.31, False)):
            searches = Searches([0.6, 0.3, loss], shared=True)
            _, choice = self.choose(searches)
            assert searches.tried == [LINEAR, EACH, LAPLACIAN_EACH]
            assert choice.name == (LAPLACIAN if taken else ONE)
            assert isinstance(choice.kernel, Laplacian) is taken

    def test_with_one_width_it_may_end_early_far_above_the_other(self):
        searches = Searches([0.6, 0.3, 0.5], shared=True)
        self.choose(searches)
        assert searches.targets == [np.inf, np.inf, 0.3]
        searches = Searches([0.6, 0.3, 0.5])
        self.choose(searches)
        assert searches.targets == [np.inf] * 3

    def test_it_is_not_tried_if_local_averages_are_much_worse(self):
        searches = Searches([0.6, 0.3])
        self.choose(searches, laplacian=1.25)
        assert searches.tried == [LINEAR, EACH]

    def test_in_the_units_given_it_has_one_width(self):
        searches = Searches([0.6, 0.3, 0.2, 0.1], shared=True)
        _, choice = self.choose(searches, plain=0.9, laplacian=0.9)
        assert searches.tried == [LINEAR, EACH, ONE, LAPLACIAN]
        assert choice.kernel == Laplacian() and choice.n_svm_evaluations == 60

    def test_it_must_be_better_than_a_linear_machine(self):
        _, choice = self.choose(Searches([0.2, 0.3, 0.25]))
        assert choice.name == LINEAR
        assert "for each feature instead of a linear machine: no." in str(choice)


@pytest.mark.parametrize(
    ("X", "tried"),
    [
        (np.random.default_rng(0).normal(size=(60, 3)), [AS_GIVEN, NOT_GAUSSIAN]),
        (np.random.default_rng(0).normal(size=(60, 1)), [NOT_GAUSSIAN]),
        (np.random.default_rng(0).normal(size=(10, 1001)), []),
    ],
)
def test_what_may_take_the_place_of_a_gaussian_kernel(X, tried):
    data = SimpleNamespace(X=X)
    few = 1 < X.shape[1] <= 1000
    assert [other.step for other in _gaussian(data, few).others] == tried
    sparse = SimpleNamespace(X=csr_array(X))
    names = [other.step for other in _gaussian(sparse, few).others]
    assert NOT_GAUSSIAN not in names


def test_the_noise_of_pairs_of_classes_is_that_of_all_their_rows():
    """A row weighs in a difference what it weighs on average over the sets."""
    shares = np.array([[0.4, 0.2, 0.0], [0.0, 0.3, 0.1]])
    weights = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])

    def tuned(shares):
        return [
            SimpleNamespace(
                descent=SimpleNamespace(
                    best=SimpleNamespace(shares=own, share_weights=weight)
                )
            )
            for own, weight in zip(shares, weights, strict=True)
        ]

    found = _difference(tuned(shares), tuned(0.5 * shares))
    expected = PairedDifference.of(
        shares.mean(0), 0.5 * shares.mean(0), weights.mean(0)
    )
    assert found == expected
