"""Paired differences, and what a certificate says."""

import pickle

import numpy as np
import pytest

from bisvm.search.history import Certificate, Comparison, PairedDifference, TriedStarts
from bisvm.search.reasons import GUESSING, Reason


def test_a_difference_and_its_standard_error():
    simple, rich = np.array([0.3, 0.1, 0.2]), np.array([0.1, 0.1, 0.1])
    found = PairedDifference.of(simple, rich, np.full(3, 1 / 3))
    assert found.value == pytest.approx(0.3)
    assert found.standard_error == pytest.approx(np.sqrt(0.1**2 + 0.1**2 + 0.0**2))
    assert found.in_standard_errors == pytest.approx(0.3 / np.sqrt(0.02))
    assert found.exceeds(2.0) and not found.exceeds(2.2)


def test_without_noise_any_difference_is_certain():
    sure = PairedDifference.of(np.full(4, 0.5), np.full(4, 0.25), np.full(4, 0.25))
    assert sure.standard_error == 0.0 and sure.in_standard_errors == np.inf
    assert sure.exceeds(100.0)
    worse = PairedDifference.of(np.full(4, 0.25), np.full(4, 0.5), np.full(4, 0.25))
    assert worse.in_standard_errors == -np.inf and not worse.exceeds(0.0)
    same = PairedDifference.of(np.ones(3), np.ones(3), np.full(3, 1 / 3))
    assert same.in_standard_errors == 0.0 and not same.exceeds(0.0)


def test_the_standard_error_is_that_of_a_mean():
    """With equal weights, that of the mean difference over rows."""
    rng = np.random.default_rng(0)
    simple, rich = rng.random((2, 200))
    found = PairedDifference.of(simple / 200, rich / 200, np.full(200, 1 / 200))
    spread = np.std(simple - rich) / np.sqrt(200)
    assert found.standard_error == pytest.approx(spread)


def test_a_richer_model_is_taken_beyond_what_is_needed():
    difference = PairedDifference(0.3, 0.1)
    assert Comparison("rbf", difference, 2.9).taken
    assert not Comparison("rbf", difference, 3.1).taken


STARTS = TriedStarts(
    400,
    ("C", "gamma"),
    ((1.0, 0.5), (1.0, 20.0), (9.0, 0.6)),
    (3.0, 2.0, 1.5),
    end=(2.0, 0.5),
    end_value=1.0,
)


def test_elsewhere_is_a_factor_of_ten_away():
    assert STARTS.next_best == pytest.approx(2.0)
    near = TriedStarts(400, ("C",), ((1.0,), (9.0,)), (3.0, 2.0), (2.0,), 1.0)
    assert near.next_best is None


def test_starts_in_words():
    assert str(STARTS) == "3 starts (C 1 to 9, gamma 0.5 to 20) on 400 rows"
    one = TriedStarts(50, ("C",), ((1.0,),), (0.5,), (1.0,), 0.5)
    assert str(one) == "1 start (C 1) on 50 rows"


DONE = Reason("Done.")


def certificate(converged=True, why=DONE, **given):
    return Certificate(1e-6, 1e-9, 1e-3, converged, why, **given)


def test_a_certificate_in_words():
    said = str(
        certificate(
            tried_starts=STARTS, gain_over_constant=7.25, at_bounds=("C is at 1e5",)
        )
    ).splitlines()
    assert said[0] == "Converged: Done."
    assert "H was evaluated at 3 starts" in said[2]
    assert said[3].startswith("With default") and "H is 3 times as high" in said[3]
    assert said[4].endswith("by a factor of ten, H is at least 2 times as high.")
    assert "by 7.2 standard errors" in said[5] and said[6] == "C is at 1e5."


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({"converged": True}, ""),
        ({"beaten_by": ("a linear rule",)}, "Standardise the features"),
        ({"beaten_by": ("a linear rule",), "remedy": "Use an SVC."}, "Use an SVC."),
        ({"gain_over_constant": 1.0}, "too few rows"),
        ({"gain_over_constant": 3.0}, "Raise max_iter"),
        ({"why": Reason("Stopped.", "Do this.")}, "Do this."),
    ],
)
def test_advice_depends_on_what_went_wrong(given, advice):
    one = certificate(**{"converged": False, **given})
    assert advice in one.advice and bool(one.advice) is bool(advice)


def test_a_search_that_stopped_early_still_says_that_it_is_guessing():
    stopped = Reason("The limit was reached.", "Raise it.")
    early = certificate(False, stopped, gain_over_constant=1.0)
    assert early.advice.startswith("The model is no better than guessing")
    # Where that is the reason, it is said once.
    assert not certificate(False, GUESSING, gain_over_constant=1.0).advice.startswith(
        "The model"
    )


def test_two_standard_errors_tell_a_machine_from_a_constant():
    assert certificate(gain_over_constant=2.0).no_better_than_constant
    assert not certificate(gain_over_constant=2.1).no_better_than_constant
    assert not certificate(gain_over_constant=None).no_better_than_constant


def test_a_certificate_is_restored_whole_or_from_its_sentence_alone():
    whole = certificate(False, Reason("Stopped.", "Do this."), beaten_by=())
    assert pickle.loads(pickle.dumps(whole)) == whole
    earlier = {**vars(whole), "reason": "Stopped."}
    del earlier["why"]
    restored = Certificate.__new__(Certificate)
    restored.__setstate__(earlier)
    assert restored == certificate(False, Reason("Stopped."))


@pytest.mark.parametrize(
    "rows, said", [(2, "2 held-out rows are"), (1, "One held-out")]
)
def test_few_held_out_rows_are_said_to_be_too_few_and_not_a_bad_model(rows, said):
    few = certificate(False, gain_over_constant=1.0, held_out_rows=rows)
    assert str(few.doubt).startswith(f"{said}") and "too few to tell" in few.advice
    assert certificate(False, gain_over_constant=1.0, held_out_rows=6).doubt == GUESSING


def test_bounds_that_the_search_ended_at_come_after_other_advice():
    stopped = Reason("Stuck.", "Try this.")
    at_bound = certificate(False, stopped, beyond="C is at its bound: widen it.")
    assert at_bound.advice == "Try this. C is at its bound: widen it."
    beaten = certificate(False, beaten_by=("a rule",), beyond="Widen it.")
    assert beaten.advice.endswith("Standardise the features. Widen it.")
    # Where nothing is learned from the features, a wider search would not help.
    guessing = certificate(False, gain_over_constant=1.0, beyond="Widen it.")
    assert "Widen" not in guessing.advice
    assert certificate(True, beyond="Widen it.").advice == ""
