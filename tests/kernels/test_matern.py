"""Matern kernels: the contract, and those of scikit-learn's Gaussian processes."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gaussian_process

from bisvm.kernels import RBF, Factors, Matern, get_kernel
from bisvm.testing import check_kernel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 3))
Y = RNG.normal(size=(7, 3))
GAMMA = np.array([0.2, 1.5, 0.01])


@pytest.mark.parametrize("nu", [1.5, 2.5])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"gamma": 0.3},
        {"gamma": GAMMA, "per_feature": True},
        {"gamma": 0.3, "per_feature": True, "gamma_bounds": (1e-3, 10.0)},
    ],
    ids=repr,
)
def test_it_keeps_the_contract(nu, arguments):
    check_kernel(Matern(nu, **arguments), X)


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_gradients_stay_exact_far_from_the_origin(nu):
    check_kernel(Matern(nu, 0.3), X + 1e3, sparse=False)


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_it_is_the_kernel_of_scikit_learn(nu):
    reference = gaussian_process.Matern(1.0 / np.sqrt(GAMMA), nu=nu)
    found = Matern(nu, GAMMA, per_feature=True)(X, Y)
    np.testing.assert_allclose(found, reference(X, Y), rtol=1e-12)


def plain_matern(nu, r):
    if nu == 1.5:
        return (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)
    return (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_it_is_its_formula(nu):
    twin = [[plain_matern(nu, np.sqrt(GAMMA @ (a - b) ** 2)) for b in Y] for a in X]
    found = Matern(nu, GAMMA, per_feature=True)(X, Y)
    np.testing.assert_allclose(found, twin, rtol=1e-12)


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_coinciding_points_have_finite_gradients_without_effect(nu):
    """At r = 0 the slope by r^2 is finite, and the gradient by the inputs is zero."""
    same = np.repeat(X[:1], 4, axis=0)
    kernel = Matern(nu, 0.7)
    weights = Factors(RNG.normal(size=(4, 2)), RNG.normal(size=(4, 2)))
    found = kernel.pullback(same, None, kernel(same), weights, inputs=True)
    for gradient in (found.theta, found.X, found.Y):
        np.testing.assert_allclose(gradient, 0.0, atol=1e-12)


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_width_unit_and_bounds_are_those_of_the_gaussian(nu):
    for per_feature in (False, True):
        (found,) = Matern(nu, per_feature=per_feature).parameters(X)
        (expected,) = RBF(per_feature=per_feature).parameters(X)
        assert found.role == expected.role
        np.testing.assert_array_equal(found.value, expected.value)
        np.testing.assert_array_equal(found.unit, expected.unit)
        np.testing.assert_array_equal(found.bounds, expected.bounds)


def test_another_smoothness_is_refused():
    with pytest.raises(ValueError, match="nu must be 1.5 or 2.5, got 0.5.*Laplacian"):
        Matern(0.5).validate()
    with pytest.raises(ValueError, match="nu must be 1.5 or 2.5"):
        Matern(3)(X)


def test_they_have_names():
    assert get_kernel("matern32") == Matern(1.5)
    assert get_kernel("matern52") == Matern(2.5)
