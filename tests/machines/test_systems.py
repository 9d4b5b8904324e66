"""Linear systems: factorised, and by conjugate gradients on several at a time."""

import numpy as np
import pytest
from scipy import sparse

from bisvm.machines.linear import (
    EXACT,
    BorderedSystem,
    DenseSystem,
    LowRankSystem,
    conjugate_gradients,
)

RNG = np.random.default_rng(0)


def spd(n, seed=0, condition=1e3):
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return (U * np.geomspace(1.0, condition, n)) @ U.T, rng.normal(size=(n, 2))


class Iterative:
    """The same by conjugate gradients."""

    def __init__(self, Q):
        self.Q = Q

    def solve(self, rhs):
        columns = rhs if rhs.ndim == 2 else rhs[:, None]
        diagonal = np.repeat(np.diagonal(self.Q)[:, None], columns.shape[1], axis=1)
        out, _ = conjugate_gradients(lambda V, _: self.Q @ V, columns, diagonal, EXACT)
        return out.reshape(rhs.shape)


def dense(Q):
    return DenseSystem(Q.copy())


BOTH = pytest.mark.parametrize("system", [dense, Iterative])


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


def systems(q=4, m=30, condition=1e4):
    matrices = []
    for _ in range(q):
        basis, _ = np.linalg.qr(RNG.normal(size=(m, m)))
        matrices.append((basis * np.geomspace(1, condition, m)) @ basis.T)
    return np.stack(matrices)


def solve(Q, rhs, rtol, patience=None, seen=None):
    def action(V, columns):
        if seen is not None:
            seen.append(list(columns))
        return np.einsum("kij,jk->ik", Q[columns], V)

    diagonal = np.stack([np.diagonal(matrix) for matrix in Q], axis=1)
    return conjugate_gradients(action, rhs, diagonal, rtol, patience)


def test_solutions_are_those_of_factors():
    Q, rhs = systems(), RNG.normal(size=(30, 4))
    rhs[:, 2] = 0.0
    found, given_up = solve(Q, rhs, 1e-12)
    expected = np.stack([np.linalg.solve(Q[k], rhs[:, k]) for k in range(4)], axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert not len(given_up)


def test_the_residual_is_the_one_asked_for():
    Q, rhs = systems(), RNG.normal(size=(30, 4))
    for rtol in (0.3, 1e-3, 1e-7):
        found, _ = solve(Q, rhs, rtol)
        for k, matrix in enumerate(Q):
            left = rhs[:, k] - matrix @ found[:, k]
            M = np.diagonal(matrix)
            assert left @ (left / M) <= 1.01 * rtol**2 * (rhs[:, k] @ (rhs[:, k] / M))


def test_columns_leave_when_they_are_done_or_given_up():
    Q, rhs, seen = systems(condition=1e6), RNG.normal(size=(30, 4)), []
    Q[1] = np.diag(np.arange(1.0, 31.0))  # its preconditioner is its inverse
    patience = np.array([np.inf, np.inf, 5.0, np.inf])
    _, given_up = solve(Q, rhs, 1e-10, patience, seen)
    assert list(given_up) == [2]
    assert sum(1 in columns for columns in seen) == 1
    assert sum(2 in columns for columns in seen) == 5


def test_what_cannot_be_solved_is_an_error():
    Q = np.stack([np.diag([1.0, np.nan]), np.eye(2)])
    with pytest.raises(np.linalg.LinAlgError, match="did not converge"):
        solve(Q, np.ones((2, 2)), 1e-10)
