"""Seed 001 with more features than rows."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.seed001 import wide
from experiments.seed001.data import PUBLISHED, sample_of


@pytest.mark.parametrize("method", [wide.BILEVEL, wide.SWEEP])
def test_one_outcome(method):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (30, 50))
    sample = sample_of(X, np.where(X[:, :3].sum(axis=1) > 0, 1.0, -1.0), PUBLISHED)
    correct, C, seconds, first = wide.outcome(sample, method, 0)
    assert 30.0 < correct <= 100.0 and C > 0.0 and seconds > 0.0
    assert 1 <= first <= 150


def test_without_data_the_message_says_where_they_belong(monkeypatch):
    monkeypatch.delenv("BISVM_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="set BISVM_DATA"):
        wide.load("colon")


def test_ratios_and_notes(monkeypatch):
    found = {
        (name, method): [(80.0, 1.0, seconds, 5.0)]
        for name in wide.SETS
        for method, seconds in (
            (wide.SWEEP, 3.0),
            (wide.SINGLE, 1.0),
            (wide.BILEVEL, 2.0),
            (wide.OURS, 12.0),
        )
    }
    assert wide.ratio(found, "colon", wide.SWEEP) == pytest.approx(1.5)
    monkeypatch.setattr(wide, "_low", lambda name, method: 2.0)
    relative, accuracy, newton, times, top = wide._notes(found)
    assert "1.50 to 1.50 times" in relative and relative.endswith("alone: holds.")
    assert "+0.0 (colon)" in accuracy and "nowhere less accurate" in accuracy
    assert "4.0 to 4.0 times" in newton and "1 seeds of single runs" in times
    assert top.startswith("'Iterations to the top'")
    assert top.endswith("no final accuracy in Table 1 reaches.")
    assert [row[1:] for row in wide._ranges(found).rows] == [[2.0, 2.0], [1.5, 1.5]]


def test_a_slower_and_less_accurate_method_is_said_to_be():
    found = {
        (name, method): [(correct, 1.0, seconds, 5.0)]
        for name in wide.SETS
        for method, correct, seconds in (
            (wide.SWEEP, 70.0, 1e6),
            (wide.BILEVEL, 80.0, 1.0),
            (wide.OURS, 90.0, 1.0),
        )
    }
    relative, accuracy, *_ = wide._notes(found)
    assert relative.endswith("does not hold throughout.")
    assert "-10.0 (colon)" in accuracy
    assert accuracy.endswith("less accurate on colon and Prostate-GE.")
