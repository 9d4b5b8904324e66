"""Poolings against plain loops."""

import re

import numpy as np
import pytest

from bisvm.transforms import Pool1D, Pool2D, grids

RNG = np.random.default_rng(5)

TWINS = {
    "mean": np.mean,
    "max": np.max,
    "energy": lambda window, axis: np.sum(window**2, axis=axis),
}


@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize(("window", "stride"), [(3, 3), (3, 2), (2, 3), (7, 7)])
def test_signals_as_loops(kind, window, stride):
    X = RNG.normal(size=(4, 11, 2))
    starts = range(0, 11 - window + 1, stride)
    full = [TWINS[kind](X[:, s : s + window], axis=1) for s in starts]
    pool = Pool1D(window, kind, stride=stride)
    np.testing.assert_allclose(pool(X), np.stack(full, axis=1))


@pytest.mark.parametrize("kind", TWINS)
def test_images_as_loops(kind):
    X = RNG.normal(size=(3, 7, 8))
    found = Pool2D((2, 3), kind)(X)
    assert found.shape == (3, 3, 2)
    for i, j in np.ndindex(3, 2):
        window = X[:, 2 * i : 2 * i + 2, 3 * j : 3 * j + 3]
        np.testing.assert_allclose(found[:, i, j], TWINS[kind](window, axis=(1, 2)))


def test_energy_is_that_of_the_seed():
    """Segments side by side partition the signal: their energies add up to its own."""
    X = RNG.normal(size=(4, 64))
    energies = Pool1D(16, "energy")(X)
    assert energies.shape == (4, 4)
    np.testing.assert_allclose(energies.sum(axis=1), np.sum(X**2, axis=1))


def test_ties_go_to_the_first():
    X = np.array([[1.0, 2.0, 2.0, 2.0, 0.0, 0.0]])
    back = Pool1D(3, "max").pullback(X, np.array([[5.0, 7.0]])).X
    np.testing.assert_array_equal(back, [[0.0, 5.0, 0.0, 7.0, 0.0, 0.0]])
    image = np.ones((1, 2, 2))
    back = Pool2D(2, "max").pullback(image, np.ones((1, 1, 1))).X
    np.testing.assert_array_equal(back, [[[1.0, 0.0], [0.0, 0.0]]])


def test_axes_of_the_output():
    assert Pool1D(2)(np.ones((3, 8))).shape == (3, 4)
    assert Pool1D(2, shape=(4, 2))(np.ones((3, 8))).shape == (3, 2, 2)
    assert Pool2D(2, shape=(2, 4))(np.ones((3, 8))).shape == (3, 1, 2)
    assert Pool2D(2)(np.ones((3, 2, 4, 5))).shape == (3, 1, 2, 5)


@pytest.mark.parametrize("kind", TWINS)
def test_blocks_change_nothing(kind, monkeypatch):
    X, G = RNG.normal(size=(7, 9, 3)), RNG.normal(size=(7, 4, 3))
    pool = Pool1D(2, kind)
    Z, whole = pool(X), pool.pullback(X, G).X
    monkeypatch.setattr(grids, "BLOCK_ENTRIES", 60)
    np.testing.assert_array_equal(pool(X), Z)
    np.testing.assert_array_equal(pool.pullback(X, G).X, whole)


@pytest.mark.parametrize(
    ("pool", "X", "message"),
    [
        (Pool1D(9), np.ones((2, 8)), "does not fit into samples of size (8,)"),
        (Pool2D((2, 9)), np.ones((2, 8, 8)), "use a smaller one"),
        (Pool1D(0), np.ones((2, 8)), "window must be an integer of at least 1"),
        (Pool1D(2, stride=1.5), np.ones((2, 8)), "stride must be an integer"),
        (Pool1D(2, "men"), np.ones((2, 8)), "Did you mean 'mean'?"),
        (Pool2D(2), np.ones((2, 8)), "nothing says where its features lie"),
        (Pool2D(2, shape=(3, 3)), np.ones((2, 8)), "9 against 8"),
    ],
)
def test_bad_input(pool, X, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        pool(X)
