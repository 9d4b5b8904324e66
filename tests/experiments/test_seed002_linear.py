"""Seed 002, chapter 3: the linear convolutional SVM, on small digits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from experiments.common import Context
from experiments.seed002 import table_3_1


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=3, return_X_y=True)
    X = X / 16
    return table_3_1.Digits(X[:240], y[:240], X[240:], y[240:], (8, 8))


@pytest.fixture
def small(digits, monkeypatch):
    monkeypatch.setattr(table_3_1, "PAIRS", ((0, 1), (1, 2)))
    monkeypatch.setattr(table_3_1, "FILTER", (3, 3))
    monkeypatch.setattr(table_3_1, "N_STEPS", 1000)
    monkeypatch.setattr(table_3_1, "GRID", (0.1, 0.01))
    monkeypatch.setattr(table_3_1.Digits, "mnist", lambda: digits)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_table_and_its_figures(small, tmp_path):
    result = table_3_1.run(Context(splits=2))
    table = result.tables[0]
    published = [row for row in table.rows if row[1] == "published"]
    assert [row[3].mean for row in published] == [93.68, 91.60, 94.09]
    ours = [row for row in table.rows if row[1] != "published"]
    tests = [getattr(row[3], "mean", row[3]) for row in ours]
    assert len(ours) == 7
    assert min(tests) > 85
    paths = result.write(tmp_path, "table_3_1", table_3_1.TITLE)
    assert sum(path.suffix == ".png" for path in paths) == 3


def test_pairs_and_the_hold_out(digits):
    X, y = digits.pair(1, 2)
    assert len(X) == len(y) == np.sum(digits.y != 0)
    assert np.sum(y == 1) == np.sum(digits.y == 1)
    ((train, held_out),) = table_3_1.hold_out(digits)
    assert (len(train), len(held_out)) == (200, 40)


def test_a_filter_is_shown_with_a_positive_sum():
    filter_ = np.array([[1.0, -3.0]])
    assert table_3_1.oriented(filter_).sum() > 0
    assert table_3_1.oriented(-filter_).sum() > 0
