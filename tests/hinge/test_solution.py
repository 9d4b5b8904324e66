"""Exact solutions from approximate ones, with and without a bias, linear or not."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC, LinearSVC

from bisvm.hinge import LinearGram, solve
from bisvm.hinge.active_set import ERROR
from bisvm.kernels import RBF
from tests.covering import crossed
from tests.hinge.machines import optimality


def noisy(rng, n=300, d=6):
    X = rng.normal(size=(n, d))
    return X, labels(rng, X)


def discrete(rng, n=1000, d=20):
    """Many rows that are equal, or sums of others; many ties on the way."""
    X = rng.integers(-1, 2, size=(n, d)).astype(float)
    return X, labels(rng, X)


def duplicated(rng):
    """Every point three times, once with the other label."""
    X, y = noisy(rng, 100)
    return np.vstack([X, X, X]), np.concatenate([y, y, -y])


def separable(rng):
    X = rng.normal(size=(200, 8))
    return X, np.where(X[:, 0] + X[:, 1] > 0.3, 1.0, -1.0)


def labels(rng, X):
    f = X @ rng.normal(size=X.shape[1]) / np.sqrt(X.shape[1])
    return np.where(f + 0.6 * rng.normal(size=len(X)) > 0.2, 1.0, -1.0)


NAMED = {one.__name__: one for one in (noisy, discrete, duplicated, separable)}


def primal(X, y, c, w, b=0.0):
    """1/2 |w|^2 + sum_i c_i max(0, 1 - y_i f(x_i)) with f(x) = w'x + b."""
    return 0.5 * w @ w + c @ np.maximum(0.0, 1.0 - y * (X @ w + b))


def descended(X, y, c, sweeps=10, seed=0):
    """alpha without a bias after some sweeps of dual coordinate descent."""
    rng, alpha, w = np.random.default_rng(seed), np.zeros(len(y)), np.zeros(X.shape[1])
    square = np.einsum("ij,ij->i", X, X)
    for i in np.concatenate([rng.permutation(len(y)) for _ in range(sweeps)]):
        gap = y[i] * (X[i] @ w) - 1.0
        moved = np.clip(alpha[i] - gap / max(square[i], 1e-12), 0.0, c[i])
        w += (moved - alpha[i]) * y[i] * X[i]
        alpha[i] = moved
    return alpha


def coefficients(X, sets):
    return (sets.y * sets.alpha) @ X


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
@pytest.mark.parametrize(
    "problem, C, kind",
    crossed(NAMED, [1e-3, 1.0, 30.0], {"dense": np.asarray, "csr": sparse.csr_array}),
)
def test_a_penalised_intercept_is_that_of_liblinear(problem, C, kind):
    """A constant column. LIBLINEAR itself does not always arrive."""
    rng = np.random.default_rng(0)
    X, y = problem(rng)
    c = C * rng.uniform(0.5, 1.5, len(y))
    features = np.column_stack([X, np.ones(len(y))])
    gram, near = LinearGram(kind(features)), descended(features, y, c)
    sets, _ = solve(gram, y, c, start=near, bias=False)
    assert sets.b == 0.0 and sets.residual() < 1e-9
    w = coefficients(features, sets)
    value = primal(features, y, c, w)
    assert value == pytest.approx(sets.alpha.sum() - 0.5 * w @ w, rel=1e-11)
    svc = LinearSVC(loss="hinge", C=1.0, tol=1e-10, max_iter=20_000, random_state=0)
    svc.fit(X, y, sample_weight=c)
    theirs = np.append(svc.coef_[0], svc.intercept_)
    assert value <= primal(features, y, c, theirs) * (1 + 1e-12)
    if svc.n_iter_ < svc.max_iter:
        assert value == pytest.approx(primal(features, y, c, theirs), rel=1e-8)
        np.testing.assert_allclose(features @ w, features @ theirs, atol=1e-4)


@pytest.mark.parametrize("C", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("problem", [noisy, duplicated, separable])
def test_a_free_intercept_is_that_of_svc(problem, C):
    """From a start that is not even feasible: without the bias y'alpha is not zero."""
    X, y = problem(np.random.default_rng(1))
    X = np.round(X * 64) / 64  # so that LIBSVM's single precision is exact
    c = np.full(len(y), C)
    sets, _ = solve(LinearGram(X), y, c, start=descended(X, y, c))
    dense, _ = solve(X @ X.T, y, c)
    svc = SVC(kernel="linear", C=C, tol=1e-10, max_iter=2_000_000).fit(X, y)
    for one in (sets, dense):
        assert one.residual() < 1e-9
        w = coefficients(X, one)
        value, theirs = primal(X, y, c, w, one.b), svc.coef_[0]
        assert value == pytest.approx(
            primal(X, y, c, theirs, svc.intercept_[0]), rel=1e-8
        )
        np.testing.assert_allclose(X @ w + one.b, svc.decision_function(X), atol=1e-4)


@pytest.mark.parametrize(
    "problem, C, bias", crossed(NAMED, [1e-5, 1.0, 100.0], [True, False])
)
def test_the_path_from_nothing_ends_at_the_same_machine(problem, C, bias):
    rng = np.random.default_rng(2)
    X, y = problem(rng)
    X, y = X[::2][:200], y[::2][:200]
    c = np.full(len(y), C)
    c[::7] = 0.0
    near = descended(X, y, c)
    found = [
        solve(LinearGram(X), y, c, start=start, bias=bias)[0] for start in (near, None)
    ]
    f = [coefficients(X, sets) @ X.T + sets.b for sets in found]
    np.testing.assert_allclose(f[0], f[1], atol=1e-8)
    present = c > 0
    for sets in found:
        assert np.all(sets.alpha[~present] == 0.0)
        alpha = sets.alpha[present]
        gram = X[present] @ X[present].T
        sign = y[present]
        if bias:
            assert optimality(gram, sign, c[present], alpha, sets.b) < 1e-8


def test_no_bias_with_a_kernel_is_what_a_qp_solver_finds():
    clarabel = pytest.importorskip("clarabel")
    rng = np.random.default_rng(3)
    X, y = noisy(rng, 80, 2)
    gram, c, n = RBF(0.7).gram(X), rng.uniform(0.1, 20.0, 80), 80
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    A = sparse.csc_matrix(np.vstack([-np.eye(n), np.eye(n)]))
    Q = sparse.csc_matrix(np.triu(gram * np.outer(y, y)))
    cones = [clarabel.NonnegativeConeT(2 * n)]
    bound = np.concatenate([np.zeros(n), c])
    solver = clarabel.DefaultSolver(Q, -np.ones(n), A, bound, cones, settings)
    alpha = np.array(solver.solve().x)
    for near in (None, alpha, np.clip(alpha + 0.1 * rng.normal(size=n), 0.0, c)):
        sets, _ = solve(gram, y, c, start=near, bias=False)
        assert sets.residual() < 1e-12
        np.testing.assert_allclose(sets.alpha, alpha, atol=1e-6)


def test_far_more_free_vectors_than_dimensions():
    """All of them slide to a bound but d, at most."""
    rng = np.random.default_rng(4)
    X, y = discrete(rng, 600, 10)
    c = np.ones(len(y))
    w = {}
    for bias in (True, False):
        near = rng.uniform(0.1, 0.9, len(y))
        sets, _ = solve(LinearGram(X), y, c, start=near, bias=bias)
        assert len(sets.margin) <= 10 + bias and sets.residual() < 1e-10
        w[bias] = coefficients(X, sets)
        value = primal(X, y, c, w[bias], sets.b)
        assert value == pytest.approx(sets.alpha.sum() - 0.5 * w[bias] @ w[bias])
    assert np.linalg.norm(w[True] - w[False]) > 1e-3


def test_all_points_in_error_and_a_row_of_zeros():
    rng = np.random.default_rng(5)
    X, y = noisy(rng, 50)
    X[3] = 0.0
    for C in (1e-6, 1.0):
        sets, _ = solve(LinearGram(X), y, np.full(50, C), bias=False)
        assert sets.state[3] == ERROR and sets.alpha[3] == C
        assert sets.residual() < 1e-12
        assert C > 1e-3 or np.all(sets.state == ERROR)
