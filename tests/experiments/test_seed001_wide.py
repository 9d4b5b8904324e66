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


def test_ratios_and_notes():
    found = {
        (name, method): [(80.0, 1.0, seconds, 5.0)]
        for name in wide.SETS
        for method, seconds in (
            (wide.SWEEP, 3.0),
            (wide.SINGLE, 1.0),
            (wide.BILEVEL, 2.0),
        )
    }
    assert wide.ratio(found, "colon", wide.SWEEP) == pytest.approx(1.5)
    first, second = wide._notes(found)
    assert "1.50 to 1.50 times" in first and "+0.0 (colon)" in second
