"""Positive-definite systems: both ways to solve them give the solution."""

import numpy as np
import pytest
from scipy import sparse

from bisvm.machines.systems import (
    BorderedSystem,
    DenseSystem,
    IterativeSystem,
    LowRankSystem,
)


def spd(n, seed=0, condition=1e3):
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return (U * np.geomspace(1.0, condition, n)) @ U.T, rng.normal(size=(n, 2))


def iterative(Q):
    return IterativeSystem(lambda v: Q @ v.ravel(), np.diagonal(Q).copy())


def dense(Q):
    return DenseSystem(Q.copy())


BOTH = pytest.mark.parametrize("system", [dense, iterative])


@BOTH
def test_one_or_several_right_hand_sides_are_solved(system):
    Q, B = spd(30)
    np.testing.assert_allclose(Q @ system(Q).solve(B), B, atol=1e-8)
    np.testing.assert_allclose(Q @ system(Q).solve(B[:, 0]), B[:, 0], atol=1e-8)


@BOTH
def test_an_empty_system_has_an_empty_solution(system):
    assert system(np.empty((0, 0))).solve(np.empty((0, 2))).shape == (0, 2)
    assert system(np.empty((0, 0))).solve(np.empty(0)).shape == (0,)


@BOTH
def test_a_right_hand_side_of_zero_gives_zero(system):
    Q, _ = spd(5)
    np.testing.assert_array_equal(system(Q).solve(np.zeros(5)), 0.0)


@BOTH
def test_rows_of_very_different_size_stand_side_by_side(system):
    Q, B = spd(6, condition=10.0)
    size = np.array([1e-120, 1e-60, 1.0, 1.0, 1e60, 1e120])
    x = system(Q * size[:, None] * size[None, :]).solve(B * size[:, None])
    np.testing.assert_allclose(x * size[:, None], np.linalg.solve(Q, B), rtol=1e-8)


def test_a_matrix_indefinite_by_rounding_is_mended():
    v = np.linspace(1.0, 2.0, 8)
    Q = np.outer(v, v)
    x = dense(Q).solve(v)
    assert np.all(np.isfinite(x))
    np.testing.assert_allclose(Q @ x, v, rtol=1e-4)


def test_a_matrix_that_is_far_from_definite_is_refused():
    Q = np.array([[1.0, 3.0], [3.0, 1.0]])
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        dense(Q)


def test_fewer_rows_than_columns_are_solved_among_the_rows():
    rng = np.random.default_rng(5)
    X, D = rng.normal(size=(7, 30)), rng.uniform(0.1, 2.0, 7)
    R, rho = rng.uniform(0.5, 2.0, 30), 1e-3
    H = np.diag(R) + X.T @ (D[:, None] * X)
    rhs = rng.normal(size=31)
    for stored in (X, sparse.csr_array(X)):
        system = LowRankSystem(R, stored, D)
        np.testing.assert_allclose(H @ system.solve(rhs[:-1]), rhs[:-1], rtol=1e-9)
        a, c = X.T @ D, D.sum() + rho
        whole = np.block([[H, a[:, None]], [a[None, :], np.array([[c]])]])
        bordered = BorderedSystem(system, a, c)
        np.testing.assert_allclose(whole @ bordered.solve(rhs), rhs, rtol=1e-8)
