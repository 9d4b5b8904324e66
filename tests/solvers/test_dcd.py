"""Dual coordinate descent against LIBLINEAR, a QP solver, and its plain twin."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from bisvm.hinge.active_set import ERROR, MARGIN, REST
from bisvm.solvers.dcd import dual_coordinate_descent
from tests.covering import full
from tests.problems import thinned, toy_data


def data(n=60, d=4, seed=0):
    X, y = toy_data(n, d, seed)
    return thinned(X), 2.0 * y - 1.0


def uneven(n, seed=1):
    """Bounds of all sizes, every fifth of them zero."""
    c = np.exp(np.random.default_rng(seed).normal(size=n))
    c[::5] = 0.0
    return c


def tight(X, y, c, **options):
    options = {"tol": 1e-10, "max_sweeps": 100_000, **options}
    found = dual_coordinate_descent(X, y, c, **options)
    assert found.converged
    return found


def objective(gram, y, alpha):
    signed = y * alpha
    return signed @ gram @ signed / 2 - alpha.sum()


def quadratic_program(gram, y, c):
    """The dual's minimiser by an interior-point method."""
    clarabel = pytest.importorskip("clarabel")
    n = len(y)
    Q = sparse.csc_matrix(np.triu(np.outer(y, y) * gram))
    A = sparse.csc_matrix(np.vstack([np.eye(n), -np.eye(n)]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    cones = [clarabel.NonnegativeConeT(2 * n)]
    bounds = np.concatenate([c, np.zeros(n)])
    solver = clarabel.DefaultSolver(Q, -np.ones(n), A, bounds, cones, settings)
    return np.array(solver.solve().x)


@pytest.mark.parametrize("C", [0.01, 1.0, *full(30.0)])
def test_it_finds_what_liblinear_finds(C):
    X, y = data(150)
    machine = LinearSVC(
        loss="hinge", C=C, tol=1e-8, max_iter=1_000_000, fit_intercept=False
    ).fit(X, y)
    np.testing.assert_allclose(tight(X, y, C).w, machine.coef_[0], atol=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_finds_what_a_quadratic_program_finds(seed):
    X, y = data(seed=seed)
    c = uneven(len(y), seed)
    found, expected = tight(X, y, c), quadratic_program(X @ X.T, y, c)
    np.testing.assert_allclose(found.w, X.T @ (y * expected), atol=1e-5)
    gram = X @ X.T
    best = objective(gram, y, expected)
    assert objective(gram, y, found.alpha) == pytest.approx(best, rel=1e-8)


def test_a_kernel_machine_is_the_solution_of_its_quadratic_program():
    X, y = data()
    distances = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    gram, c = np.exp(-distances), uneven(len(y))
    found = tight(gram, y, c, precomputed=True)
    expected = quadratic_program(gram, y, c)
    np.testing.assert_allclose(found.alpha, expected, atol=1e-5)
    np.testing.assert_allclose(found.w, gram @ (y * found.alpha), atol=1e-12)


def test_the_linear_gram_matrix_gives_the_linear_machine():
    X, y = data()
    c = uneven(len(y))
    linear = tight(X, y, c)
    kernel = tight(X @ X.T, y, c, precomputed=True)
    np.testing.assert_allclose(kernel.w, X @ linear.w, atol=1e-8)
    np.testing.assert_array_equal(kernel.state, linear.state)


def test_states_certify_the_optimum():
    X, y = data(200)
    c = uneven(len(y))
    found = tight(X, y, c, tol=1e-9)
    present = c > 0
    rest, margin, error = (present & (found.state == s) for s in (REST, MARGIN, ERROR))
    assert rest.any() and margin.any() and error.any()
    np.testing.assert_array_equal(found.alpha[rest | ~present], 0.0)
    np.testing.assert_array_equal(found.alpha[error], c[error])
    assert np.all((found.alpha[margin] > 0) & (found.alpha[margin] < c[margin]))
    np.testing.assert_allclose(found.w, X.T @ (y * found.alpha), atol=1e-12)
    G = y * (X @ found.w) - 1
    assert np.all(G[rest] > -1e-9) and np.all(G[error] < 1e-9)
    np.testing.assert_allclose(G[margin], 0.0, atol=1e-9)
    projected = np.concatenate(
        [np.minimum(G[rest], 0), G[margin], np.maximum(G[error], 0)]
    )
    assert found.violation == pytest.approx(np.ptp(projected), abs=1e-13)


@pytest.mark.parametrize("tol", [1e-2, *full(1e-10)])
def test_sparse_rows_are_rows(tol):
    X, y = data(200, 30)
    c = uneven(len(y))
    dense = tight(X, y, c, tol=tol)
    for storage in (sparse.csr_array, sparse.csr_matrix, sparse.coo_array):
        found = tight(storage(X), y, c, tol=tol)
        np.testing.assert_allclose(found.w, dense.w, atol=1e-12)
        np.testing.assert_allclose(found.alpha, dense.alpha, atol=1e-12)
        np.testing.assert_array_equal(found.state, dense.state)


def test_entries_given_twice_are_added():
    X, y = data()
    half = sparse.csr_array(X)
    twice = sparse.csr_array(
        (np.repeat(half.data / 2, 2), np.repeat(half.indices, 2), 2 * half.indptr),
        shape=X.shape,
    )
    np.testing.assert_allclose(tight(twice, y, 1.0).w, tight(X, y, 1.0).w, atol=1e-12)
    assert twice.nnz == 2 * half.nnz


def test_a_point_given_twice_is_a_point_of_double_weight():
    X, y = data()
    twice = tight(np.vstack([X, X]), np.tile(y, 2), 0.5)
    np.testing.assert_allclose(twice.w, tight(X, y, 1.0).w, atol=1e-8)


def test_points_without_weight_take_no_part():
    X, y = data()
    c = uneven(len(y))
    some = c > 0
    wild = np.where(some[:, None], X, 1e6)
    found, expected = tight(wild, y, c), tight(X[some], y[some], c[some])
    np.testing.assert_allclose(found.w, expected.w, atol=1e-12)
    np.testing.assert_array_equal(found.state[~some], REST)
    nobody = tight(X, y, 0.0)
    assert nobody.sweeps == 0 and not nobody.w.any()


def test_rows_of_zeros_are_errors():
    X, y = data()
    X = np.vstack([X, np.zeros((2, X.shape[1]))])
    found = tight(X, np.append(y, [1.0, -1.0]), 0.3)
    np.testing.assert_array_equal(found.alpha[-2:], 0.3)
    np.testing.assert_array_equal(found.state[-2:], ERROR)
    np.testing.assert_allclose(found.w, tight(X[:-2], y, 0.3).w, atol=1e-9)


def test_a_single_point_goes_to_its_margin():
    found = tight(np.array([[2.0]]), np.array([-1.0]), 10.0)
    assert found.w == pytest.approx([-0.5])
    assert found.state.tolist() == [MARGIN]


def test_one_seed_one_answer():
    X, y = data(200)
    one, two, other = (
        dual_coordinate_descent(X, y, 1.0, max_sweeps=5, seed=seed).alpha
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_an_early_end_is_said():
    X, y = data(200)
    found = dual_coordinate_descent(X, y, 100.0, tol=1e-12, max_sweeps=3)
    assert found.sweeps == 3 and not found.converged and found.violation > 1e-12


def test_rows_that_are_not_finite_are_refused():
    _, y = data()
    for X in (np.full((60, 2), np.nan), sparse.csr_array(np.full((60, 2), np.inf))):
        with pytest.raises(ValueError, match="NaN or infinity"):
            dual_coordinate_descent(X, y, 1.0)
