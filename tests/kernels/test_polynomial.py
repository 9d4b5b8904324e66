"""The polynomial kernel: the contract, scikit-learn's, and its scale."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import polynomial_kernel

from bisvm.kernels import Linear, Polynomial, get_kernel
from bisvm.testing import check_kernel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 3))
Y = RNG.normal(size=(7, 3))


@pytest.mark.parametrize(
    "kernel",
    [
        Polynomial(),
        Polynomial(1),
        Polynomial(2, gamma=0.7, offset=0.05),
        Polynomial(5, offset=200.0),
        Polynomial(4, gamma=0.3, gamma_bounds=(0.1, 1.0)),
    ],
    ids=repr,
)
def test_it_keeps_the_contract(kernel):
    check_kernel(kernel, X)


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_it_is_the_kernel_of_scikit_learn(degree):
    found = Polynomial(degree, gamma=0.4, offset=0.3)(X, Y)
    expected = polynomial_kernel(X, Y, degree=degree, gamma=0.4, coef0=0.3)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_degree_one_is_linear_up_to_scale_and_offset():
    expected = 0.5 * Linear()(X, Y) + 2.0
    np.testing.assert_allclose(Polynomial(1, gamma=0.5, offset=2.0)(X, Y), expected)


def test_the_default_gamma_makes_the_mean_squared_norm_one():
    shifted = X + 5.0
    gamma, offset = Polynomial().parameters(shifted)
    assert gamma.value == pytest.approx(1.0 / np.mean(np.sum(shifted**2, axis=1)))
    assert gamma.unit == pytest.approx(gamma.value)
    assert (offset.value, offset.unit) == (1.0, 1.0)
    assert {gamma.role, offset.role} == {""}
    centred = X - X.mean(axis=0)
    assert Polynomial().parameters(centred)[0].value == pytest.approx(
        1.0 / (3 * centred.var())
    )


def test_the_default_gamma_counts_weights_and_knows_sparse_matrices():
    weight = np.array([2.0] * 4 + [0.0] * 5)
    expected = Polynomial().parameters(X[:4])[0].value
    for data in (X, sparse.csr_array(X)):
        found = Polynomial().parameters(data, weight)[0].value
        assert found == pytest.approx(expected)
    assert Polynomial().parameters(np.zeros((3, 2)))[0].value == 1.0


def test_gamma_and_offset_times_s_are_the_kernel_times_a_power_of_s():
    one = Polynomial(3, gamma=0.2, offset=0.5)(X)
    other = Polynomial(3, gamma=0.6, offset=1.5)(X)
    np.testing.assert_allclose(other, 27.0 * one, rtol=1e-12)


def test_values_outside_the_default_bounds_widen_them():
    _, offset = Polynomial(offset=500.0).parameters(X)
    assert offset.bounds == (1e-2, 500.0)


def test_dense_and_sparse_may_be_mixed():
    S = sparse.csr_array(np.where(np.abs(Y) > 0.5, Y, 0.0))
    kernel = Polynomial(3, gamma=0.4)
    expected = kernel(X, S.toarray())
    np.testing.assert_allclose(kernel(X, S), expected, atol=1e-12)
    np.testing.assert_allclose(kernel(S, X), expected.T, atol=1e-12)


@pytest.mark.parametrize(
    "kernel, message",
    [
        (Polynomial(0), "degree must be an integer of at least 1; got 0"),
        (Polynomial(2.5), "degree must be an integer"),
        (Polynomial(gamma=-1.0), "gamma must be positive and finite, got -1.0"),
        (Polynomial(gamma="auto"), "Expected 'scale' or a number"),
        (Polynomial(gamma=np.ones(3)), "gamma has 3 values, expected one number"),
        (Polynomial(offset=0.0), "offset must be positive and finite"),
        (Polynomial(gamma_bounds=(0.0, 1.0)), "gamma_bounds must be positive"),
        (Polynomial(gamma_bounds=3.0), "gamma_bounds must be 'scale' or a pair"),
    ],
    ids=repr,
)
def test_arguments_that_make_no_sense_are_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel.parameters(X)


def test_it_has_a_name():
    assert get_kernel("poly") == Polynomial()
