"""Seed 004's toy signals: the methods, the peaks of learned filters, the pictures."""

import numpy as np
import pytest

from experiments.seed004 import toy_signals as toy
from tests.covering import full


def test_filters_that_are_given():
    low, high = toy.first_filters()
    f, size = toy.responses(np.array([low, high]))
    assert f[size[0].argmax()] == 0.0 and f[size[1].argmax()] == 64.0
    oracle = toy.bandpass_filters()
    assert np.linalg.norm(oracle) == pytest.approx(1.0)
    np.testing.assert_allclose(toy.peaks(oracle), toy.FREQUENCIES, atol=0.3)
    assert toy.found_both(oracle) and toy.found_both(oracle[::-1])
    assert not toy.found_both(np.array([low, high])) and not toy.found_both(None)


def test_learned_filters_peak_at_the_generating_frequency():
    """With swaps, at high SNR, in one repeat."""
    one = toy.outcome("RPROP, swap", toy.HIGH, 80, 0, test=500)
    assert toy.found_both(one.filters) and one.accuracy > 0.98


@pytest.mark.full
def test_learned_filters_peak_at_the_generating_frequencies():
    """With swaps, at high SNR, in at least 8 of 10 repeats (all but two)."""
    found = [
        toy.outcome("RPROP, swap", toy.HIGH, 80, seed, test=500) for seed in range(10)
    ]
    assert sum(toy.found_both(one.filters) for one in found) >= 8
    assert np.mean([one.accuracy for one in found]) > 0.98


@pytest.mark.full
@pytest.mark.parametrize("repeats", [1, *full(4)])
def test_swaps_help_at_medium_snr(repeats):
    accuracy = {
        method: np.mean(
            [
                toy.outcome(method, toy.MEDIUM, 80, s, test=500).accuracy
                for s in range(repeats)
            ]
        )
        for method in ("RPROP, swap", "RPROP, no swap", "oracle")
    }
    assert accuracy["RPROP, no swap"] < accuracy["RPROP, swap"] < accuracy["oracle"]


def test_tables_and_pictures():
    found = {
        (method, snr): [toy.Outcome(0.9, 1.0, toy.bandpass_filters())] * 2
        for method in toy.METHODS
        for snr in (*toy.SNRS, 40, 80)
    }
    table = toy.accuracy_table(found, toy.SNRS, "SNR (dB)", "accuracy")
    assert len(table.rows) == len(toy.METHODS) and "90.0 ± 0.0" in table.to_text()
    assert toy.peak_table(found).rows[0][1:] == [2] * len(toy.SNRS)
    notes = toy.verdicts(found)
    methods = [*toy.SEARCHES, "large margin"]
    assert [note.split(".")[0] for note in notes[:4]] == methods
    assert "swaps above no swaps undecided at -14, -11, -8, -5 dB" in notes[0]
    assert len(toy.claim_table(toy.claims(found)).rows) == 6 * len(toy.SEARCHES) + 1
    assert set(toy.STYLES) <= set(toy.METHODS)
    assert len(toy.draw_patterns().axes) == 2
    assert len(toy.draw_curves(found, found, (40, 80)).axes) == 3
    assert len(toy.draw_filters([toy.bandpass_filters()] * 2).axes) == 2


def test_claims_are_differences_within_the_repeats():
    """Repeats differ by far more than methods do, who get the same signals."""
    good = [toy.Outcome(a, 1.0, None) for a in (0.6, 0.8, 0.98)]
    bad = [toy.Outcome(a, 3.0, None) for a in (0.58, 0.77, 0.97)]
    gain = toy.paired(good, bad)
    assert gain.mean == pytest.approx(2.0)
    assert gain.deviation == pytest.approx(1.0 / np.sqrt(3.0))
    assert toy.paired(bad, good, "seconds").mean == 2.0
    assert toy.paired(bad, good, "accuracy", 5.0).mean == pytest.approx(3.0)


def test_claims_hold_fail_or_are_undecided():
    found = {
        (method, snr): [toy.Outcome(a, 1.0, None) for a in (0.9, 0.91)]
        for method in toy.METHODS
        for snr in toy.SNRS
    }
    found["oracle", -5.0] = [toy.Outcome(1.0, 1.0, None)] * 2
    found["RPROP, swap", -8.0] = [toy.Outcome(a, 1.0, None) for a in (0.95, 0.95)]
    found["RPROP, swap", -14.0] = [toy.Outcome(a, 1.0, None) for a in (0.5, 0.99)]
    note = toy.verdicts(found)[2]
    assert "swaps above no swaps holds at -8 dB, undecided at -14, -11, -5 dB;" in note
    assert (
        "swaps less than 2 points below the oracle holds at -11, -8 dB, does not hold "
        "at -5 dB, undecided at -14 dB;" in note
    )


def test_sizes_are_held_against_the_oracle():
    found = {
        (method, n): [toy.Outcome(0.9 if method == "oracle" else 0.89, 1.0, None)] * 2
        for method in toy.OF_SIZES
        for n in (20, 160)
    }
    rows = toy.size_claim_table(found, (20, 160)).rows
    assert [row[0] for row in rows] == [m for m in toy.OF_SIZES if m != "oracle"]
    assert all(cell.mean == pytest.approx(1.0) for row in rows for cell in row[1:])
