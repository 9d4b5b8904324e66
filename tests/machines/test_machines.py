"""Every machine keeps the contract, on dense and sparse rows, factorised or not."""

import numpy as np
import pytest

from bisvm import Chunks
from bisvm.bilevel.adjoint import implicit_gradient
from bisvm.kernels import RBF, Linear
from bisvm.losses import Quartic, SquaredHinge
from bisvm.machines import Coefficients, KernelMachine, LinearMachine
from bisvm.machines.landmarks import choose_landmarks, landmark_machine
from bisvm.solvers import Newton
from bisvm.testing import check_machine
from tests.covering import crossed
from tests.problems import sparse_twin, thinned, toy_data

X, _ = toy_data(20)
PRECISION = np.array([1.0, 2.0, 0.5])


@pytest.mark.parametrize(
    "data, in_chunks, direct_limit",
    crossed(
        {"sparse": sparse_twin(X), "dense": X},
        {"memory": False, "chunks": True},
        {"action": 0, "factors": 1000},
        strength=1,
    ),
)
def test_the_linear_machine_keeps_the_contract(data, in_chunks, direct_limit):
    data = Chunks.of(data, rows=6) if in_chunks else data
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
        lambda *parts: KernelMachine(*parts, kernel, X, gram, direct_limit=direct_limit)
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


@pytest.mark.parametrize("data", [X, sparse_twin(X)], ids=["dense", "sparse"])
def test_the_landmark_machine_keeps_the_contract(data):
    kernel, chosen = RBF(0.4), np.array([0, 3, 7, 11, 12, 19])
    check_machine(lambda *parts: landmark_machine(*parts, kernel, data, chosen))


def test_with_every_row_a_landmark_it_is_the_kernel_machine():
    X, y = toy_data(25)
    labels, weights = (2.0 * y - 1.0)[:, None], np.ones((25, 1))
    parts = (labels, weights, Quartic(), "free", RBF(2.0), X)
    whole = KernelMachine(*parts, RBF(2.0).gram(X))
    landmarks = landmark_machine(*parts, np.arange(25))
    a, b = (Newton().solve(machine, None, 1e-11) for machine in (whole, landmarks))
    np.testing.assert_allclose(a.fitted, b.fitted, atol=1e-6)
    P = np.random.default_rng(0).normal(size=(25, 1))
    gradients = [
        implicit_gradient(machine, solution, P)
        for machine, solution in ((whole, a), (landmarks, b))
    ]
    np.testing.assert_allclose(gradients[1].kernel, gradients[0].kernel, atol=1e-5)
    np.testing.assert_allclose(
        gradients[1].weights.sum(), gradients[0].weights.sum(), atol=1e-5
    )


def test_landmarks_span_the_others_up_to_the_tolerance():
    X, _ = toy_data(80)
    kernel = RBF(0.1)
    chosen = choose_landmarks(kernel, X, tol=1e-3, most=60)
    assert len(set(chosen)) == len(chosen) < 60
    K_nm, K_mm = kernel(X, X[chosen]), kernel(X[chosen])
    left_over = 1.0 - np.einsum("im,mi->i", K_nm, np.linalg.solve(K_mm, K_nm.T))
    assert left_over.max() <= 1.1e-3
