"""Leverages against dense inverses, and their derivatives against differences."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from bisvm.kernels import RBF
from bisvm.losses import Quartic
from bisvm.machines import KernelMachine, LinearMachine
from bisvm.machines.leverages import kernel_column
from bisvm.testing import central_difference

INTERCEPTS = ["free", "penalized", "none"]
n = 12


def problem(seed=0):
    random = np.random.RandomState(seed)
    X = random.randn(n, 3)
    labels = np.where(random.rand(n, 2) > 0.5, 1.0, -1.0)
    weights = random.uniform(0.5, 2.0, (n, 2))
    curvature = random.uniform(0.2, 2.0, (n, 2)) * (random.rand(n, 2) > 0.4)
    return X, labels, weights, curvature, random.rand(n, 2) > 0.3


def kernel_machine(intercept, X, labels, weights, gamma=0.7):
    kernel = RBF(gamma)
    return KernelMachine(
        labels, weights, Quartic(), intercept, kernel, X, kernel.gram(X)
    )


def linear_machine(intercept, X, labels, weights, precision=None):
    precision = np.array([0.5, 1.0, 2.0]) if precision is None else precision
    return LinearMachine(labels, weights, Quartic(), intercept, X, precision)


def covariance(machine, k):
    """K + 1 / rho, whose inverse plus D is that of G."""
    if isinstance(machine, KernelMachine):
        K = machine.gram.copy()
    else:
        X = machine.X.toarray() if sparse.issparse(machine.X) else machine.X
        K = (X / machine.precision) @ X.T
    if machine.intercept == "penalized":
        K += 1.0 / machine.intercept_precision[k]
    # Less than the ridge of a free intercept, which would drown all digits.
    return K + 1e7 if machine.intercept == "free" else K


def dense_G(machine, curvature, k):
    K, D = covariance(machine, k), curvature[:, k]
    return K - (K * D) @ np.linalg.solve(np.eye(n) + K * D, K)


def leverages(machine, curvature, where):
    tangent = machine.tangent(np.zeros(machine.labels.shape))
    return machine.linearize(replace(tangent, curvature=curvature)).leverages(where)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("make", [kernel_machine, linear_machine])
def test_against_a_dense_inverse(make, intercept):
    X, labels, weights, curvature, where = problem()
    machine = make(intercept, X, labels, weights)
    found = leverages(machine, curvature, where)
    for k in range(2):
        G = np.diagonal(dense_G(machine, curvature, k))
        own = np.where(where[:, k], G, 0.0)
        np.testing.assert_allclose(found.own[:, k], own, rtol=1e-5, atol=1e-9)
        rest = np.where(where[:, k], 1.0 - curvature[:, k] * G, 1.0)
        np.testing.assert_allclose(found.rest[:, k], rest, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("make", [kernel_machine, linear_machine])
def test_derivative_by_curvature(make, intercept):
    X, labels, weights, curvature, where = problem()
    machine = make(intercept, X, labels, weights)
    w = np.where(where, np.random.RandomState(4).randn(n, 2), 0.0)
    found = leverages(machine, curvature, where).pullback(w)[0]

    active = curvature > 0

    def total(D):
        return np.sum(w * leverages(machine, np.where(active, D, 0.0), where).own)

    expected = central_difference(total, curvature, 1e-4)
    np.testing.assert_allclose(found[active], expected[active], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_derivative_by_the_width(intercept):
    X, labels, weights, curvature, where = problem()
    w = np.where(where, np.random.RandomState(4).randn(n, 2), 0.0)

    def at(log_gamma):
        gamma = float(np.exp(log_gamma[0]))
        machine = kernel_machine(intercept, X, labels, weights, gamma)
        return leverages(machine, curvature, where)

    x = np.log([0.7])
    found = at(x).pullback(w)[1].kernel
    expected = central_difference(lambda x: np.sum(w * at(x).own), x)
    np.testing.assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_derivative_by_the_precision(intercept):
    X, labels, weights, curvature, where = problem()
    w = np.where(where, np.random.RandomState(4).randn(n, 2), 0.0)

    def at(log_rho):
        machine = linear_machine(intercept, X, labels, weights, np.exp(log_rho))
        return leverages(machine, curvature, where)

    x = np.log([0.5, 1.0, 2.0])
    found = at(x).pullback(w)[1].precision
    expected = central_difference(lambda x: np.sum(w * at(x).own), x)
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_sparse_rows_are_those_of_dense_ones():
    X, labels, weights, curvature, where = problem()
    of_dense = leverages(linear_machine("free", X, labels, weights), curvature, where)
    rows = sparse.csr_array(X)
    of_sparse = leverages(
        linear_machine("free", rows, labels, weights), curvature, where
    )
    np.testing.assert_allclose(of_sparse.own, of_dense.own, rtol=1e-12)


def test_no_digits_are_lost_where_the_leverage_is_close_to_one():
    """1 - D G of large D: 1 / (1 + D K) for points that have nothing in common."""
    D = np.array([1e12, 1e10, 0.0])
    rest = kernel_column(np.eye(3), D, np.arange(3), None)[2]
    np.testing.assert_allclose(rest, 1.0 / (1.0 + D), rtol=1e-12)
