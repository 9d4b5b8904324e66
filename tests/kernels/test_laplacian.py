"""The Laplacian kernel: the contract, scikit-learn's, and its kinks."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel

from bisvm.kernels import Factors, Laplacian, get_kernel
from bisvm.kernels import base as kernels_base
from bisvm.kernels.exponential import (
    absolute_by_feature,
    absolute_distances,
    absolute_pullback,
)
from bisvm.testing import check_kernel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 3))
Y = RNG.normal(size=(7, 3))
GAMMA = np.array([0.2, 1.5, 0.01])


@pytest.mark.parametrize(
    "kernel",
    [
        Laplacian(),
        Laplacian(0.3),
        Laplacian(per_feature=True),
        Laplacian(0.4, per_feature=True, gamma_bounds=(1e-3, 10.0)),
    ],
    ids=repr,
)
def test_it_keeps_the_contract(kernel):
    check_kernel(kernel)


def test_it_is_the_kernel_of_scikit_learn():
    expected = laplacian_kernel(X, Y, gamma=0.3)
    np.testing.assert_allclose(Laplacian(0.3)(X, Y), expected, rtol=1e-12)
    scaled = laplacian_kernel(X * GAMMA, Y * GAMMA, gamma=1.0)
    found = Laplacian(GAMMA, per_feature=True)(X, Y)
    np.testing.assert_allclose(found, scaled, rtol=1e-12)


def test_compiled_loops_are_their_plain_twins():
    V = RNG.normal(size=(9, 7))
    differences = X[:, None, :] - Y[None, :, :]
    distances = np.abs(differences)
    by_feature = -np.einsum("ij,ijd->d", V, distances)
    between = np.empty((len(X), len(Y)))
    absolute_distances(X, Y, between)
    np.testing.assert_allclose(between, distances.sum(axis=2))
    found = np.zeros(3)
    grad_X, grad_Y = np.zeros(X.shape), np.zeros(Y.shape)
    absolute_by_feature(V, X, Y, found)
    absolute_pullback(V, X, Y, grad_X, grad_Y)
    np.testing.assert_allclose(found, by_feature)
    slopes = V[:, :, None] * np.sign(differences)
    np.testing.assert_allclose(grad_X, -slopes.sum(axis=1))
    np.testing.assert_allclose(grad_Y, slopes.sum(axis=0))


def test_one_width_is_the_sum_over_features():
    """Through the logarithm of K, and through the inputs."""
    weights = Factors(RNG.normal(size=(9, 2)), RNG.normal(size=(7, 2)))
    shared, each = Laplacian(0.3), Laplacian(0.3, per_feature=True)
    gram = shared(X, Y)
    expected = each.pullback(X, Y, gram, weights).theta.sum()
    for inputs in (False, True):
        (found,) = shared.pullback(X, Y, gram, weights, inputs=inputs).theta
        assert found == pytest.approx(expected, rel=1e-12)


def test_points_out_of_sight_have_no_gradient():
    far = np.array([[0.0], [1e6]])
    kernel = Laplacian(1.0)
    gram = kernel(far)
    assert gram[0, 1] == 0.0
    found = kernel.pullback(far, None, gram, Factors(*np.ones((2, 2, 1))))
    np.testing.assert_array_equal(found.theta, 0.0)


def test_the_derivative_at_a_kink_is_zero():
    kernel = Laplacian(0.5)
    found = kernel.pullback(
        X[:1], X[:1].copy(), kernel(X[:1], X[:1]), Factors(*np.ones((2, 1, 1))),
        inputs=True,
    )  # fmt: skip
    np.testing.assert_array_equal(found.X, 0.0)
    np.testing.assert_array_equal(found.Y, 0.0)
    assert not kernel.smooth


def test_blocks_of_weights_add_up_to_all_of_them(monkeypatch):
    weights = Factors(RNG.normal(size=(9, 2)), RNG.normal(size=(7, 2)))
    kernel = Laplacian(GAMMA, per_feature=True)
    gram = kernel(X, Y)
    whole = kernel.pullback(X, Y, gram, weights, inputs=True)
    monkeypatch.setattr(kernels_base, "BLOCK_ENTRIES", 20)
    parts = kernel.pullback(X, Y, gram, weights, inputs=True)
    for name in ("theta", "X", "Y"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name))


def test_the_default_width_is_one_over_features_times_deviation():
    skewed = X * [1.0, 10.0, 100.0]
    (one,) = Laplacian().parameters(skewed)
    assert one.value == pytest.approx(1.0 / (3 * skewed.std(axis=0).mean()))
    (each,) = Laplacian(per_feature=True).parameters(skewed)
    low, high = np.quantile(skewed, [0.25, 0.75], axis=0)
    size = np.minimum(skewed.std(axis=0), (high - low) / 1.349)
    np.testing.assert_allclose(each.value, 1.0 / (3 * size))


def test_other_memory_layouts_and_mixtures_give_the_same():
    kernel = Laplacian(GAMMA, per_feature=True)
    expected = kernel(X, Y)
    for other in (np.asfortranarray(Y), sparse.csr_array(Y), Y[::-1][::-1]):
        np.testing.assert_allclose(kernel(X, other), expected, rtol=1e-14)


@pytest.mark.parametrize(
    "kernel, message",
    [
        (Laplacian(GAMMA), "per_feature=True"),
        (Laplacian(GAMMA[:2], per_feature=True), "2 values, but X has 3 features"),
        (Laplacian(0.0), "positive and finite"),
        (Laplacian("auto"), "Expected 'scale' or a number"),
    ],
)
def test_a_width_that_makes_no_sense_is_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel.parameters(X)


def test_it_has_a_name():
    assert get_kernel("laplacian") == Laplacian()
