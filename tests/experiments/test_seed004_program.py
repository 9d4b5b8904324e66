"""Problem (6) on a toy set: feasible, and no higher than by gradients."""

from itertools import product

import pytest

from experiments.seed004.one_program import METHODS, outcome, verdicts


@pytest.mark.full
def test_one_case_of_each_method():
    rows = [
        [method, -8.0, 0, *outcome(METHODS[method], -8.0, 0)]
        for method in ("SLP filter", "BFGS")
    ]
    (_, _, _, H, kkt, *_), (_, _, _, by_gradients, none, *_) = rows
    assert H <= 1.01 * by_gradients + 1e-6
    assert kkt <= 1e-6 and none is None


def test_the_verdict_counts_cases():
    rows = []
    for seed, method in product((0, 1), METHODS):
        H = 0.5 if "SLP" in method and seed else 0.1
        rows.append([method, -8.0, seed, H, 1e-9, 0.0, 1, 0.0])
    assert "BFGS + 1% in 1 of 2" in verdicts(rows)[0]
    assert "kkt at most 1e-09" in verdicts(rows)[0]
