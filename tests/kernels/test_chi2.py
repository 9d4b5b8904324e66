"""Kernels between histograms: the contract, scikit-learn's, zeros, negative entries."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import additive_chi2_kernel, chi2_kernel

from bisvm.kernels import AdditiveChi2, Chi2, Factors, get_kernel
from bisvm.kernels import base as kernels_base
from bisvm.testing import check_kernel

RNG = np.random.default_rng(0)
POSITIVE = RNG.uniform(0.3, 2.0, size=(9, 3))
# Histograms of sum one, with many empty bins.
X = RNG.dirichlet(np.full(6, 0.5), size=12) * (RNG.random((12, 6)) < 0.7)
Y = RNG.dirichlet(np.full(6, 0.5), size=8) * (RNG.random((8, 6)) < 0.7)
KERNELS = [Chi2(0.8), AdditiveChi2()]


@pytest.mark.parametrize(
    "kernel",
    [Chi2(), Chi2(0.5), Chi2(2.0, gamma_bounds=(0.1, 10.0)), AdditiveChi2()],
    ids=repr,
)
def test_they_keep_the_contract(kernel):
    check_kernel(kernel, POSITIVE)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_empty_bins_do_no_harm(kernel):
    gram = kernel(X)
    assert np.all(np.isfinite(gram))
    assert np.linalg.eigvalsh(gram)[0] > -1e-12
    np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(gram), rtol=1e-12)
    weights = Factors(RNG.normal(size=(12, 2)), RNG.normal(size=(12, 2)))
    found = kernel.pullback(X, None, gram, weights, inputs=True)
    assert np.all(np.isfinite(found.X)) and np.all(np.isfinite(found.Y))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_dense_and_sparse_are_one_and_may_be_mixed(kernel):
    S, T = sparse.csr_array(X), sparse.csr_array(Y)
    gram = kernel(X, Y)
    for rows, columns in ((S, T), (X, T), (S, Y)):
        np.testing.assert_allclose(kernel(rows, columns), gram, rtol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(S), kernel.diagonal(X))
    weights = Factors(RNG.normal(size=(12, 2)), RNG.normal(size=(8, 2)))
    expected = kernel.pullback(X, Y, gram, weights, inputs=True)
    found = kernel.pullback(S, T, gram, weights, inputs=True)
    for name in ("theta", "X", "Y"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name))


def test_the_exponential_kernel_is_that_of_scikit_learn():
    expected = chi2_kernel(X, Y, gamma=0.8)
    np.testing.assert_allclose(Chi2(0.8)(X, Y), expected, rtol=1e-12)


def test_the_additive_kernel_is_half_of_scikit_learns_plus_the_sums():
    sums = X.sum(axis=1)[:, None] + Y.sum(axis=1)
    expected = 0.5 * (sums + additive_chi2_kernel(X, Y))
    np.testing.assert_allclose(AdditiveChi2()(X, Y), expected, atol=1e-12)


def plain(term, x, y):
    """sum_d term(x_d, y_d), with zero where both are."""
    return sum(term(a, b) for a, b in zip(x, y, strict=True) if a + b > 0)


def test_the_kernels_are_their_formulas():
    distances = [
        [plain(lambda a, b: (a - b) ** 2 / (a + b), x, y) for y in Y] for x in X
    ]
    np.testing.assert_allclose(Chi2(0.8)(X, Y), np.exp(-0.8 * np.array(distances)))
    additive = [[plain(lambda a, b: 2 * a * b / (a + b), x, y) for y in Y] for x in X]
    np.testing.assert_allclose(AdditiveChi2()(X, Y), additive)


def test_compiled_gradients_are_their_plain_twins():
    """d (x-y)^2/(x+y) / dx = (x-y)(x+3y)/(x+y)^2, zero in bins that are both empty."""
    weights = Factors(RNG.normal(size=(12, 2)), RNG.normal(size=(8, 2)))
    W = weights.left @ weights.right.T
    x, y = X[:, None, :], Y[None, :, :]
    filled = x + y > 0
    total = np.where(filled, x + y, 1.0)
    gram = Chi2(0.8)(X, Y)
    found = Chi2(0.8).pullback(X, Y, gram, weights, inputs=True)
    V = -0.8 * W * gram
    by_x = np.where(filled, (x - y) * (x + 3 * y) / total**2, 0.0)
    by_y = np.where(filled, (y - x) * (y + 3 * x) / total**2, 0.0)
    np.testing.assert_allclose(found.X, np.einsum("ij,ijd->id", V, by_x), atol=1e-12)
    np.testing.assert_allclose(found.Y, np.einsum("ij,ijd->jd", V, by_y), atol=1e-12)
    found = AdditiveChi2().pullback(X, Y, AdditiveChi2()(X, Y), weights, inputs=True)
    by_x, by_y = 2 * (y / total) ** 2, 2 * (x / total) ** 2
    np.testing.assert_allclose(found.X, np.einsum("ij,ijd->id", W, by_x), atol=1e-12)
    np.testing.assert_allclose(found.Y, np.einsum("ij,ijd->jd", W, by_y), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_blocks_of_weights_add_up_to_all_of_them(kernel, monkeypatch):
    weights = Factors(RNG.normal(size=(12, 2)), RNG.normal(size=(8, 2)))
    gram = kernel(X, Y)
    whole = kernel.pullback(X, Y, gram, weights, inputs=True)
    monkeypatch.setattr(kernels_base, "BLOCK_ENTRIES", 20)
    parts = kernel.pullback(X, Y, gram, weights, inputs=True)
    for name in ("theta", "X", "Y"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name))


def mean_distance(A):
    distances = -additive_chi2_kernel(A)
    return distances.sum() / (len(A) * (len(A) - 1))


def test_the_default_gamma_is_one_over_the_mean_distance():
    (gamma,) = Chi2().parameters(X)
    assert gamma.value == pytest.approx(1.0 / mean_distance(X))
    assert gamma.unit == pytest.approx(gamma.value)
    assert gamma.role == "inverse width"
    assert Chi2().parameters(np.ones((4, 2)))[0].value == pytest.approx(1.0)


def test_weights_of_zero_leave_points_out_of_the_default_gamma():
    weight = np.array([1.0] * 5 + [0.0] * 7)
    (weighted,) = Chi2().parameters(X, weight)
    assert weighted.value == pytest.approx(1.0 / mean_distance(X[:5]))


def test_many_points_are_sampled_for_the_default_gamma_reproducibly():
    many = RNG.dirichlet(np.ones(4), size=2000)
    (first,), (second,) = Chi2().parameters(many), Chi2().parameters(many)
    assert first.value == second.value
    assert first.value == pytest.approx(1.0 / mean_distance(many), rel=0.05)


@pytest.mark.parametrize("kernel", [Chi2(), *KERNELS], ids=repr)
def test_negative_entries_are_refused_with_their_place(kernel):
    wrong = X.copy()
    wrong[2, 4] = -0.25
    for call in (
        lambda: kernel(wrong),
        lambda: kernel(X, wrong),
        lambda: kernel(sparse.csr_array(wrong)),
    ):
        with pytest.raises(ValueError, match="row 2, column 4 .* -0.25.*MinMaxScaler"):
            call()


def test_a_gamma_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="positive and finite"):
        Chi2(-1.0).parameters(X)
    with pytest.raises(ValueError, match="Expected 'scale' or a number"):
        Chi2("mean").parameters(X)
    with pytest.raises(ValueError, match="gamma has 6 values, expected one number"):
        Chi2(np.ones(6)).parameters(X)


def test_they_have_names():
    assert get_kernel("chi2") == Chi2()
    assert get_kernel("additive_chi2") == AdditiveChi2()
