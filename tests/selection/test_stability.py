"""Stability of choices, against its definition and the jackknife."""

import numpy as np
import pytest

from bisvm.selection import Stability, false_bound, stability


def pairwise(Z):
    """Mean over pairs of choices of the covariance of their indicators, by loops.

    Phi is that covariance, relative to the variance of a choice of k features that is
    drawn at random (Nogueira et al. 2018, theorem 4).
    """
    M, d = Z.shape
    mean = Z.mean()
    total, pairs = 0.0, 0
    for i in range(M):
        for j in range(M):
            if i != j:
                total += np.sum(Z[i] * Z[j]) / d
                pairs += 1
    return (total / pairs - mean**2) / (mean * (1.0 - mean))


def choices(seed, M=30, d=12, size=4):
    """Choices of equal size around a preference."""
    rng = np.random.default_rng(seed)
    preference = np.linspace(2.0, 0.0, d)
    order = np.argsort(-(preference + rng.normal(size=(M, d))), axis=1)
    Z = np.zeros((M, d), dtype=bool)
    np.put_along_axis(Z, order[:, :size], True, axis=1)
    return Z


@pytest.mark.parametrize("seed", range(3))
def test_of_equal_sizes_it_is_the_mean_agreement_of_pairs(seed):
    Z = choices(seed)
    assert stability(Z).value == pytest.approx(pairwise(Z.astype(float)), abs=1e-12)


def test_it_is_one_for_one_choice_and_zero_for_chance():
    same = np.tile([True, False, False, True], (6, 1))
    assert stability(same) == Stability(1.0, 0.0)
    rng = np.random.default_rng(0)
    by_chance = stability(rng.random((400, 50)) < 0.2)
    low, high = by_chance.interval()
    assert low < 0.0 < high and abs(by_chance.value) < 0.01
    assert str(stability(same)) == "1.00 (95%: 1.00 to 1.00)"
    assert stability(same).value == 1.0


def test_the_variance_is_that_of_the_jackknife():
    for seed in range(3):
        Z = choices(seed, M=200)
        Z[:, 0] ^= np.random.default_rng(seed).random(200) < 0.2
        left_out = [stability(np.delete(Z, i, axis=0)).value for i in range(len(Z))]
        jackknife = (len(Z) - 1) * np.var(left_out)
        assert stability(Z).variance == pytest.approx(jackknife, rel=0.05)


def test_the_interval_covers_at_its_rate():
    truth = stability(choices(1000, M=20000)).value
    inside = 0
    for seed in range(200):
        low, high = stability(choices(seed, M=40)).interval(0.9)
        inside += low <= truth <= high
    assert 0.83 <= inside / 200 <= 0.96


def test_nothing_and_everything_have_no_stability():
    assert np.isnan(stability(np.zeros((3, 4), dtype=bool)).value)
    assert np.isnan(stability(np.ones((3, 4), dtype=bool)).value)


@pytest.mark.parametrize("bad", [[[True, False]], [1, 0], [[0.5, 1], [0, 1]]])
def test_bad_choices_are_refused(bad):
    with pytest.raises(ValueError, match="a table of True and False"):
        stability(bad)
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        Stability(0.5, 0.1).interval(1.5)


def test_the_bound_holds_where_all_is_chance():
    """Columns of equal chance: all of them count, and none should be kept."""
    rng = np.random.default_rng(0)
    kept, bounds = [], []
    for _ in range(200):
        Z = rng.random((10, 20)) < 0.3
        kept.append(np.sum(Z.mean(axis=0) >= 0.6))
        bounds.append(false_bound(Z, 0.6))
    assert np.mean(kept) <= np.mean(bounds)
    assert false_bound(np.ones((4, 5)), 0.6) == 5.0
