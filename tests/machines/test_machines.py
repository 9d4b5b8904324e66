"""Every machine keeps the contract, on dense and sparse rows, with and without factors."""

import numpy as np
import pytest

from bisvm.kernels import RBF, Linear
from bisvm.losses import Quartic, SquaredHinge
from bisvm.machines import Coefficients, KernelMachine, LinearMachine
from bisvm.solvers import Newton
from bisvm.testing import check_machine
from tests.problems import sparse_twin, thinned, toy_data

X, _ = toy_data(20)
PRECISION = np.array([1.0, 2.0, 0.5])


@pytest.mark.parametrize("direct_limit", [0, 1000], ids=["action", "factors"])
@pytest.mark.parametrize("data", [X, sparse_twin(X)], ids=["dense", "sparse"])
def test_the_linear_machine_keeps_the_contract(data, direct_limit):
    check_machine(
        lambda *parts: LinearMachine(
            *parts, data, PRECISION, 1.5, direct_limit=direct_limit
        )
    )


@pytest.mark.parametrize("direct_limit", [0, 1000], ids=["action", "factors"])
def test_the_kernel_machine_keeps_the_contract(direct_limit):
    kernel = RBF(0.4)
    gram = kernel.gram(X)
    check_machine(
        lambda *parts: KernelMachine(
            *parts, kernel, X, gram, direct_limit=direct_limit
        )
    )


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_a_linear_kernel_in_either_form_is_one_machine(intercept):
    X, y = toy_data(30)
    labels, weights = (2.0 * y - 1.0)[:, None], np.full((30, 1), 0.8)
    shared = (labels, weights, Quartic(), intercept)
    linear = LinearMachine(*shared, X, np.ones(3))
    kernel = KernelMachine(*shared, Linear(), X, Linear().gram(X))
    a, b = (Newton().solve(machine, None, 1e-12) for machine in (linear, kernel))
    np.testing.assert_allclose(a.fitted, b.fitted, atol=1e-8)
    np.testing.assert_allclose(X.T @ b.x.coef, a.x.coef, atol=1e-8)
    np.testing.assert_allclose(
        linear.value(a.x, a.tangent), kernel.value(b.x, b.tangent), rtol=1e-10
    )


def test_dense_and_sparse_rows_are_one_machine():
    rng = np.random.default_rng(0)
    X, y = toy_data(30)
    labels, weights = (2.0 * y - 1.0)[:, None], rng.uniform(0.5, 1.0, (30, 1))
    solutions = [
        Newton().solve(
            LinearMachine(labels, weights, SquaredHinge(), "free", data, PRECISION),
            None,
            1e-12,
        )
        for data in (thinned(X), sparse_twin(X))
    ]
    np.testing.assert_allclose(solutions[0].x.coef, solutions[1].x.coef, atol=1e-10)


def test_coefficients_are_never_changed_in_place():
    x = Coefficients(np.ones((2, 2)), np.zeros(2))
    d = Coefficients(np.ones((2, 2)), np.ones(2))
    moved = x.step(d, np.array([1.0, 2.0]))
    np.testing.assert_array_equal(x.coef, np.ones((2, 2)))
    np.testing.assert_array_equal(moved.coef, [[2.0, 3.0], [2.0, 3.0]])
    np.testing.assert_array_equal((moved - x).intercept, [1.0, 2.0])
    np.testing.assert_array_equal(moved.select([1]).coef, [[3.0], [3.0]])
