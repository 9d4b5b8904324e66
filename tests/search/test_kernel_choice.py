"""Which candidate kernel is chosen, given what their searches have found."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from bisvm.kernels import RBF, Linear
from bisvm.search.gains import Gain, Step
from bisvm.search.kernel_choice import (
    EACH,
    GROUPS,
    LINEAR,
    ONE,
    Candidate,
    KernelChoice,
    choose,
)
from bisvm.search.observer import TIME_STOP

CANDIDATES = [
    Candidate(LINEAR, Linear()),
    Candidate(EACH, RBF(per_feature=True), 1.0),
    Candidate(GROUPS, RBF(per_feature=True) + RBF(), 4.0),
]
N = 100
NOISE = np.random.default_rng(0).normal(size=(3, N)) / N


@dataclass(frozen=True)
class At:
    shares: np.ndarray
    share_weights: np.ndarray


@dataclass(frozen=True)
class Ended:
    best: At
    reason: str = "done"
    converged: bool = True
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a search has found, as far as a choice looks at it."""

    descent: Ended
    solves: int = 10
    tied: bool = False
    held_out: Any = None


@dataclass
class Searches:
    """Answers with these mean losses, one for each candidate in turn."""

    losses: list[float]
    tied: bool = False
    reasons: dict[str, str] = field(default_factory=dict)
    tried: list[str] = field(default_factory=list)

    def __call__(self, candidate):
        number = len(self.tried)
        self.tried.append(candidate.name)
        shares = self.losses[number] / N + 0.1 * NOISE[number]
        reason = self.reasons.get(candidate.name, "done")
        ended = Ended(At(shares, np.full(N, 1.0 / N)), reason, reason == "done")
        return [Answer(ended, 10 * (number + 1), self.tied)]


def test_richer_candidates_are_tried_while_held_out_rows_gain():
    searches = Searches([0.6, 0.4, 0.2])
    answers, choice = choose(CANDIDATES, searches)
    assert searches.tried == [LINEAR, EACH, GROUPS]
    assert choice.name == GROUPS and choice.kernel is CANDIDATES[2].kernel
    assert all(step.taken for step in choice.steps)
    assert answers[0].solves == 30 and choice.n_svm_evaluations == 30


def test_the_climb_ends_at_the_first_candidate_that_gains_nothing():
    searches = Searches([0.4, 0.4, 0.1])
    answers, choice = choose(CANDIDATES, searches)
    assert searches.tried == [LINEAR, EACH]
    assert choice.name == LINEAR and answers[0].solves == 10
    assert choice.n_svm_evaluations == 20
    assert [step.taken for step in choice.steps] == [False]


def test_a_richer_candidate_must_gain_more_than_its_noise():
    """Ten groups of noise: about 0.14 standard errors of the difference in 1e-3."""
    shares = [0.5 / N + 0.1 * noise for noise in NOISE]
    for margin, taken in ((0.5, False), (2.0, True)):
        plain = Gain.of(shares[0], shares[1], np.full(N, 1.0 / N))
        lower = margin * plain.error - plain.value
        _, choice = choose(CANDIDATES[:2], Searches([0.5, 0.5 - lower]))
        assert choice.steps[-1].taken is taken
        assert choice.steps[-1].gain.in_errors == pytest.approx(margin, rel=0.05)


def test_one_width_for_all_has_its_own_name():
    _, choice = choose(CANDIDATES[:2], Searches([0.6, 0.3], tied=True))
    assert choice.name == ONE and choice.steps[-1].name == ONE
    _, choice = choose(CANDIDATES[:2], Searches([0.6, 0.3]))
    assert choice.name == EACH


def test_a_search_that_was_stopped_ends_the_climb():
    searches = Searches([0.6, 0.3, 0.1], reasons={LINEAR: TIME_STOP})
    answers, choice = choose(CANDIDATES, searches)
    assert searches.tried == [LINEAR] and choice.steps == ()
    assert answers[0].descent.reason == TIME_STOP


def test_the_simpler_answer_says_that_the_richer_one_was_cut_short():
    searches = Searches([0.4, 0.4, 0.1], reasons={EACH: TIME_STOP})
    answers, choice = choose(CANDIDATES, searches)
    assert choice.name == LINEAR
    assert not answers[0].descent.converged and answers[0].descent.reason == TIME_STOP


def test_one_candidate_is_no_choice():
    answers, choice = choose(CANDIDATES[:1], Searches([0.5]))
    assert choice == KernelChoice(LINEAR, CANDIDATES[0].kernel)
    assert len(answers) == 1


def test_the_steps_within_a_search_are_part_of_the_reasons():
    climbed = Step("one for each", Gain(0.1, 0.01), 4.0)
    plain = Searches([0.6, 0.3])

    def tune(candidate):
        (answer,) = plain(candidate)
        return [replace(answer, descent=replace(answer.descent, steps=(climbed,)))]

    _, choice = choose(CANDIDATES[:2], tune)
    assert choice.steps[0] is climbed and len(choice.steps) == 2
    first, second = choice.reasons
    assert first.startswith("One width for each feature instead of one for all: the ")
    assert "10.0 standard errors (more than 4 needed)" in first
    assert str(choice).splitlines()[1:] == [f"- {first}", f"- {second}"]
