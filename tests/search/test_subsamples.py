"""Subsamples: their sizes, their rows, and theta on them."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from bisvm.bilevel.objective import Objective
from bisvm.search import subsamples
from bisvm.search.observer import Trace
from bisvm.search.subsamples import (
    MANY_ROWS,
    NOISE_SHARE,
    SAMPLE_RATIO,
    SAMPLE_ROWS,
    SMALL_RATIO,
    next_level,
    sample_sizes,
    sampled_rows,
)
from tests.problems import make_problem
from tests.search.searches import make_search

MOONS = make_moons(1000, noise=0.3, random_state=0)


def rng():
    return np.random.RandomState(0)


@pytest.mark.parametrize("n", [100, 799, 800, 2000, 10_000, 123_456, 10**7])
def test_samples_grow_in_equal_ratios_up_to_all_rows(n):
    sizes = sample_sizes(n)
    if n < 2 * SAMPLE_ROWS:
        assert sizes == []
        return
    ratios = np.diff(np.log([*sizes, n]))
    assert sizes[0] == SAMPLE_ROWS
    longest = SAMPLE_RATIO if n <= MANY_ROWS else SMALL_RATIO
    assert np.exp(ratios.max()) < longest * 1.01
    np.testing.assert_allclose(ratios, ratios[0], atol=0.01)


def test_a_sample_has_the_shares_of_folds_and_classes():
    objective = Objective(make_problem(*MOONS, cv=5))
    rows = sampled_rows(objective, 400, rng())
    assert len(np.unique(rows)) == 400
    part = objective.problem.columns
    fold = part.validation[rows].argmax(axis=1)
    np.testing.assert_allclose(np.bincount(fold), 80, atol=1)
    labels = part.labels[rows, 0]
    assert abs(labels.mean()) < 0.02
    np.testing.assert_array_equal(rows, sampled_rows(objective, 400, rng()))


def test_a_class_that_is_rare_leaves_no_sample():
    X, y = MOONS
    y = np.where(np.arange(1000) < 8, 1, 0)
    objective = Objective(make_problem(X, y, cv=2))
    assert sampled_rows(objective, 400, rng()) is None


def test_a_descent_on_many_rows_stops_at_the_noise_of_h(monkeypatch):
    """What is left out is less than a tenth of a standard error of H."""
    search = make_search((MOONS[0][:500], MOONS[1][:500]), cv=5)
    rows = np.arange(0, 500, 2)
    small = search.on(Objective(search.objective.problem.subsample(rows)))
    found, trace = small.descend(
        Trace(), search.objective.theta0, "subsample", shared=True
    )
    given = (search, Trace(), small, trace, found, "shared values")
    exact, at_exact = next_level(*given)
    monkeypatch.setattr(subsamples, "MANY_ROWS", 400)
    stopped, at_stopped = next_level(*given)
    assert at_stopped.n_solved <= at_exact.n_solved
    error = exact.best.relative_error * exact.best.value
    assert stopped.best.value - exact.best.value < NOISE_SHARE * error


def test_the_noise_of_h_is_the_standard_error_of_a_mean():
    search = make_search(MOONS, cv=5)
    at, _ = search.objective.evaluate(search.objective.theta0, tol=1e-9)
    losses = at.shares / at.share_weights
    expected = losses.std() / np.sqrt(len(losses)) / losses.mean()
    assert at.relative_error == pytest.approx(expected)
