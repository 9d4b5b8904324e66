"""Seed 003: groups of samples, in small."""

import numpy as np
import pytest

from experiments.seed003 import groups
from tests.problems import toy_data

X, y = toy_data(120, d=4)


def test_copies_of_a_patient_stay_together():
    rng = np.random.default_rng(0)
    data = groups.Copies.of(X, y, np.arange(80), (0.0, 1.0, 2.0), rng)
    assert data.X.shape == (240, 4) and data.X_mixed.shape == (120, 4)
    np.testing.assert_allclose(data.X[:80].std(axis=0), 1.0)
    sizes = [np.abs(data.X[data.group == k] - data.X[:80]).max() for k in range(3)]
    assert sizes[0] == 0.0 and sizes[1] <= 1.0 < sizes[2] <= 2.0
    for held_out in groups.HELD_OUT:
        for train, validation in data.folds(held_out, seed=0):
            assert not set(data.patient[train]) & set(data.patient[validation])
            assert held_out == "all copies" or np.all(data.group[validation] == 0)


def test_cases_count_what_they_claim():
    case = groups.Case(C=[np.array([3.0, 2.0, 1.0]), np.array([2.0, 0.2, 1.0])])
    assert (case.clean_largest, case.falling) == (2, 1)
    np.testing.assert_allclose(case.mean_C, np.sqrt([6.0, 0.4, 1.0]))
    case.errors = [np.array([1.0, 2.0]), np.array([2.0, 2.0])]
    case.with_one_C = [np.array([2.0, 2.0]), np.array([5.0, 2.0])]
    assert case.difference(0) == "-2.00 ± 1.00"


@pytest.mark.full
def test_noise_lowers_c_in_small(monkeypatch):
    monkeypatch.setattr(groups, "NOISE", {"0, 8": (0.0, 8.0)})
    monkeypatch.setattr(groups, "MACHINES", {"seed 003's": groups.SQUARED})
    found = groups.study(X, y, splits=2, patients=80)
    assert len(found) == 4
    assert found["seed 003's", "0, 8", "clean copies", "by noise"].falling == 2
    table = groups._table(found, "by noise", 2)
    assert len(table.rows) == 2
    (note,) = groups._required(found, 2)
    assert "falls in 2 of 2" in note
    assert len(groups._picture(found).axes) == 3
