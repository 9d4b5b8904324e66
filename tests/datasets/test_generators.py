"""Synthetic problems: shapes, reproducibility, and the statistics they promise."""

import numpy as np
import pytest

from bisvm.datasets import (
    make_moons_with_noise,
    make_rings,
    make_xor,
)

GENERATORS = [make_moons_with_noise, make_rings, make_xor]


@pytest.mark.parametrize("make", GENERATORS)
def test_shapes_and_labels(make):
    bare, _ = make(61, n_noise=0, random_state=0)
    X, y = make(61, n_noise=5, random_state=0)
    assert X.shape == (61, bare.shape[1] + 5)
    assert X.dtype == np.float64
    assert np.issubdtype(y.dtype, np.integer)
    assert sorted(np.bincount(y)) == [30, 31]


@pytest.mark.parametrize("make", GENERATORS)
def test_one_random_state_gives_one_sample(make):
    X, y = make(50, n_noise=2, random_state=3)
    X_again, y_again = make(50, n_noise=2, random_state=np.random.RandomState(3))
    X_other, _ = make(50, n_noise=2, random_state=4)
    np.testing.assert_array_equal(X, X_again)
    np.testing.assert_array_equal(y, y_again)
    assert not np.array_equal(X, X_other)


@pytest.mark.parametrize("make", GENERATORS)
def test_samples_come_in_random_order(make):
    _, y = make(400, random_state=0)
    assert 150 < y[::2].sum() + (1 - y[1::2]).sum() < 250
    assert 60 < y[:200].sum() < 140


@pytest.mark.parametrize("make", GENERATORS)
def test_noise_columns_are_standard_normal_and_carry_no_class(make):
    X, y = make(20_000, n_noise=3, random_state=0)
    noise = X[:, -3:]
    np.testing.assert_allclose(noise.mean(axis=0), 0, atol=0.03)
    np.testing.assert_allclose(np.cov(noise.T), np.eye(3), atol=0.04)
    gap = noise[y == 1].mean(axis=0) - noise[y == 0].mean(axis=0)
    np.testing.assert_allclose(gap, 0, atol=0.06)


def test_moons_are_standardised_and_come_first():
    X, y = make_moons_with_noise(500, noise=0.2, n_noise=10, random_state=0)
    assert X.shape == (500, 12)
    np.testing.assert_allclose(X[:, :2].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X[:, :2].std(axis=0), 1, rtol=1e-12)
    gap = np.abs(X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    assert gap[:2].min() > 2 * gap[2:].max()


def test_rings_alternate_outwards():
    X, y = make_rings(400, n_rings=4, noise=0.01, random_state=0)
    radius = np.round(np.linalg.norm(X, axis=1)).astype(int)
    assert set(radius) == {1, 2, 3, 4}
    np.testing.assert_array_equal(y, (radius - 1) % 2)


def test_xor_needs_both_columns():
    X, y = make_xor(4000, noise=0.1, random_state=0)
    np.testing.assert_array_equal(y, (X[:, 0] * X[:, 1] < 0).astype(int))
    gap = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    np.testing.assert_allclose(gap, 0, atol=0.1)


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize(("argument", "value"), [("n_samples", 1), ("n_noise", -1)])
def test_sizes_are_checked(make, argument, value):
    with pytest.raises(ValueError, match=f"{argument} must .*; got {value}"):
        make(**{argument: value})


def test_numbers_of_parts_are_checked():
    with pytest.raises(ValueError, match="n_rings must be even.*; got 3"):
        make_rings(n_rings=3)
