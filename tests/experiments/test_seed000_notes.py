"""Sentences in results of seed 000 are computed from their tables."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.common import Spread
from experiments.seed000 import (
    figure_5_12,
    losses,
    table_5_1,
    table_5_5_tried,
    table_5_7_raw,
    validation_size,
)


def test_notes_of_table_5_1():
    def row(name, H, minima=1.0):
        cells = [Spread(12.0, 1.0), 30, Spread(H, 0.01), 0.05, Spread(minima, 0.0)]
        return [name, *cells, Spread(100.0, 0.0), Spread(94.0, 1.0), 93.5]

    rows = [row("modified a", 0.07), row("modified b", 0.055), row("quartic a", 0.052)]
    first, second, third = table_5_1.notes(rows)
    assert "as published: yes" in first and "in 2 of 3 rows" in first
    assert "at most 0.50" in second
    assert "for 3 losses; ours needs fewer for 3" in third and third.endswith("none.")
    rising = table_5_1.notes(
        [row("modified a", 0.05), row("modified b", 0.06, 2.0), rows[2]]
    )
    assert "as published: no" in rising[0] and "modified b" in rising[2]


def test_notes_of_validation_size():
    better = {case: 20.0 - k for k, case in enumerate(validation_size.CASES)}
    found = {
        (name, method, case): np.array([[0.1], [0.3], [better[case]]])
        for name in validation_size.DATA
        for method in validation_size.SETTINGS
        for case in validation_size.CASES
    }
    *gaps, last = validation_size.notes(found)
    assert len(gaps) == 3 and "5% 0.20 to 0.20" in gaps[0]
    assert "in 9 of 9 curves; the others: none" in last


def test_note_of_figure_5_12():
    def row(name, minima):
        one = Spread(1.0, 0.1)
        return [name, one, one, one, Spread(0.2, 0.0), Spread(minima, 0.0), one, 85.0]

    note = figure_5_12._note([row("squared hinge", 1.4), row("squared error", 1.1)])
    assert "1.40 with the squared hinge" in note and "; more," in note


def test_losses_near_the_hinge():
    table = losses._table()
    apart = [row[1] for row in table.rows]
    assert apart[:5] == sorted(apart[:5], reverse=True)
    # log(2) / mu at the corner, and 3 eps / 16.
    assert apart[0] == pytest.approx(np.log(2) / 7.5, rel=1e-3)
    assert apart[5] == pytest.approx(3 * 0.4 / 16, rel=1e-3)


def test_folds_that_were_tried():
    rng = np.random.default_rng(0)
    for kind, size in (("on a fifth", 6), ("halves", 15)):
        pairs = table_5_5_tried.folds(kind, 30, rng)
        assert len(pairs) == 5
        assert all(len(a) == size and len(a) + len(b) == 30 for a, b in pairs)
    y = np.repeat([1, 2, 3], 70)
    first, rest = table_5_5_tried.rows_of("first", y, 0)
    assert len(first) == 150 and len(rest) == 60 and first[50] == 70


def test_kernels_of_table_5_7():
    rng = np.random.default_rng(0)
    X = 10.0 ** rng.integers(-3, 3, 22) * (1 + rng.random((30, 22)))
    kernel = table_5_7_raw.grouped(table_5_7_raw.ALL)(X, rng)
    groups = [one.transform.columns for one in kernel.kernels]
    assert sorted(np.concatenate(groups)) == list(range(22))
    assert len(kernel.weights) == len(groups)
