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
    assert [note.split(".")[0] for note in notes[:3]] == list(toy.SEARCHES)
    assert "above large margin at none dB" in notes[0]
    assert "does not hold for its own algorithm" in notes[4]
    assert set(toy.STYLES) <= set(toy.METHODS)
    assert len(toy.draw_patterns().axes) == 2
    assert len(toy.draw_curves(found, found, (40, 80)).axes) == 3
    assert len(toy.draw_filters([toy.bandpass_filters()] * 2).axes) == 2
