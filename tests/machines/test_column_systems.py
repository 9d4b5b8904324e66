"""The systems of all columns against one dense solve of each."""

import numpy as np
import pytest

from bisvm.core.threads import worker_threads
from bisvm.kernels import RBF
from bisvm.machines import column_systems
from bisvm.machines.column_systems import ColumnSystems, product_below, solve_columns


def solved(gram, *parts, **how):
    return solve_columns(gram, ColumnSystems(*parts), **how)


def problem(n, q=4, seed=0, share=0.7):
    rng = np.random.default_rng(seed)
    gram = RBF(gamma=0.5).gram(rng.normal(size=(n, 3)))
    D = 10.0 * rng.random((n, q)) * (rng.random((n, q)) < share)
    return gram, D, rng.normal(size=(n, q)), rng.normal(size=q), np.full(q, 1e-3)


def by_one_dense_solve(gram, D, g, total, rho, k):
    """(I + t K t) z + mu t = t g,  t'z - rho mu = total."""
    t = np.sqrt(D[:, k])
    matrix = np.block(
        [[np.eye(len(t)) + t[:, None] * gram * t, t[:, None]], [t[None], -rho[k]]]
    )
    solved = np.linalg.solve(matrix, np.append(t * g[:, k], total[k]))
    return t * solved[:-1], solved[-1]


@pytest.mark.parametrize("small", [0, 1000])
def test_with_an_intercept(small, monkeypatch):
    """Both ways: one compiled call, and LAPACK."""
    monkeypatch.setattr(column_systems, "SMALL", small)
    given = problem(60)
    v, mu = solved(*given, True)
    for k in range(4):
        expected_v, expected_mu = by_one_dense_solve(*given, k)
        np.testing.assert_allclose(v[:, k], expected_v, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(mu[k], expected_mu, rtol=1e-9)


@pytest.mark.parametrize("small", [0, 1000])
def test_without_an_intercept(small, monkeypatch):
    monkeypatch.setattr(column_systems, "SMALL", small)
    gram, D, g, total, rho = problem(60)
    v, mu = solved(gram, D, g, total, rho, False)
    assert not mu.any()
    for k in range(4):
        t = np.sqrt(D[:, k])
        z = np.linalg.solve(np.eye(60) + t[:, None] * gram * t, t * g[:, k])
        np.testing.assert_allclose(v[:, k], t * z, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("small", [0, 1000])
def test_a_matrix_that_is_not_positive_definite(small, monkeypatch):
    monkeypatch.setattr(column_systems, "SMALL", small)
    _, D, g, total, rho = problem(20)
    with pytest.raises(np.linalg.LinAlgError):
        solved(5.0 - 4.0 * np.eye(20), D + 1.0, g, total, rho, True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_with_the_same_curvature_share_a_factor(dtype, monkeypatch):
    monkeypatch.setattr(column_systems, "SMALL", 0)
    gram, D, g, total, rho = problem(60)
    D[:, [1, 3]] = D[:, [0]]
    assert column_systems.equal_columns(D) == [[0, 1, 3], [2]]
    v, mu = solved(gram.astype(dtype), D, g, total, rho, True)
    tol = 1e-9 if dtype == np.float64 else 1e-4
    for k in range(4):
        expected_v, expected_mu = by_one_dense_solve(gram, D, g, total, rho, k)
        np.testing.assert_allclose(v[:, k], expected_v, rtol=tol, atol=tol)
        np.testing.assert_allclose(mu[k], expected_mu, rtol=tol, atol=tol)


def test_products_with_the_part_below_the_diagonal():
    rng = np.random.default_rng(0)
    Q = rng.normal(size=(150, 150)).astype(np.float32)
    below = np.tril(Q.astype(float), -1)
    z = rng.normal(size=(2, 150)).astype(np.float32)
    expected = z @ (below + below.T + np.eye(150))
    np.testing.assert_allclose(product_below(Q, z), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_no_bit(dtype, monkeypatch):
    monkeypatch.setattr(column_systems, "PARALLEL", 1)
    monkeypatch.setattr(column_systems, "SMALL", 0)
    gram, *rest = problem(120, q=5)
    gram = gram.astype(dtype)
    alone = solved(gram, *rest, True)
    with worker_threads(3):
        together = solved(gram, *rest, True)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("refined", [False, True])
def test_many_active_points_are_solved_by_products(dtype, refined, monkeypatch):
    monkeypatch.setattr(column_systems, "SMALL", 0)
    gram, D, g, total, rho = problem(300, share=1.0)
    D *= 0.01
    gram = gram.astype(dtype)
    by_factors = solved(gram, D, g, total, rho, True, refined=refined)
    monkeypatch.setattr(column_systems, "affordable_products", lambda *_: 100)
    monkeypatch.setattr(column_systems, "solve_active", None)
    found = solved(gram, D, g, total, rho, True, refined=refined)
    tol = 1e-2 if not refined else 1e-4 if dtype == np.float32 else 1e-8
    for one, other in zip(by_factors, found, strict=True):
        np.testing.assert_allclose(one, other, rtol=tol, atol=tol)


def test_products_are_given_up_where_they_converge_slowly(monkeypatch):
    monkeypatch.setattr(column_systems, "SMALL", 0)
    gram, D, g, total, rho = problem(300, share=1.0)
    D *= 1e6
    expected = solved(gram, D, g, total, rho, True)
    monkeypatch.setattr(column_systems, "affordable_products", lambda *_: 100)
    found = solved(gram, D, g, total, rho, True)
    np.testing.assert_array_equal(expected[0], found[0])


def test_products_are_tried_if_a_factor_takes_as_long():
    affordable = column_systems.affordable_products
    assert affordable(np.full(5, 6000), 7400) > column_systems.ENOUGH_PRODUCTS
    assert affordable(np.full(5, 2000), 7400) < column_systems.ENOUGH_PRODUCTS
