"""Conjugate gradients side by side against factorised systems."""

import numpy as np
import pytest

from bisvm.machines.conjugate import conjugate_gradients

RNG = np.random.default_rng(0)


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
