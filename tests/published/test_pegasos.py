"""Pegasos against its plain twin, and against LIBLINEAR."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from bisvm.published.pegasos import draws, pegasos
from tests.problems import thinned, toy_data


def twin(X, y, lam, order, projection, free):
    """Figure 1 of the paper, line by line."""
    w, b = np.zeros(X.shape[1]), 0.0
    for t, i in enumerate(order, 1):
        eta = 1 / (lam * t)
        inside = y[i] * (w @ X[i] + b) < 1
        w = (1 - eta * lam) * w
        if inside:
            w = w + eta * y[i] * X[i]
            b += min(eta, 1 / np.sqrt(t)) * y[i] * free
        if projection and np.any(w):
            w = min(1, 1 / (np.sqrt(lam) * np.linalg.norm(w))) * w
    return w, b


def data(n=60, d=4, seed=0):
    X, y = toy_data(n, d, seed)
    return X, np.where(y == 1, 1.0, -1.0)


def objective(X, y, lam, w, b):
    return lam / 2 * (w @ w) + np.mean(np.maximum(0, 1 - y * (X @ w + b)))


@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_compiled_loop_is_its_twin(projection, fit_intercept):
    X, y = data()
    found = pegasos(X, y, 0.1, 500, projection, 3, fit_intercept=fit_intercept)
    order = draws(len(y), 500, 3)
    w, b = twin(X, y, 0.1, order, projection, fit_intercept)
    np.testing.assert_allclose(found[0], w, rtol=1e-9, atol=1e-12)
    assert found[1] == pytest.approx(b, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("projection", [True, False])
def test_it_comes_near_the_optimum(projection):
    X, y = data(200)
    lam = 0.05
    exact = LinearSVC(
        loss="hinge",
        C=1 / (lam * len(y)),
        intercept_scaling=30,
        tol=1e-5,
        max_iter=100_000,
    ).fit(X, y)
    best = objective(X, y, lam, exact.coef_[0], exact.intercept_[0])
    w, b, _ = pegasos(X, y, lam, 300_000, projection, 0)
    assert objective(X, y, lam, w, b) < 1.02 * best


OPTIONS = [
    {"projection": projection, "fit_intercept": fit_intercept}
    for projection in (True, False)
    for fit_intercept in (True, False)
]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_duals_stand_for_the_weights(options):
    X, y = data()
    w, _, alpha = pegasos(X, y, 0.01, 2000, seed=4, **options)
    assert np.all(alpha >= 0) and np.any(alpha > 0)
    np.testing.assert_allclose(X.T @ (alpha * y), w, rtol=1e-9, atol=1e-12)


def test_the_duals_come_near_those_of_the_optimum():
    X, y = data(200)
    lam = 0.05
    alpha = pegasos(X, y, lam, 3_000_000, fit_intercept=False).alpha
    w, bound = X.T @ (alpha * y), 1 / (lam * len(y))
    margins = y * (X @ w)
    np.testing.assert_allclose(alpha[margins < 0.9], bound, rtol=0.1)
    np.testing.assert_allclose(alpha[margins > 1.1], 0.0, atol=0.01 * bound)
    gap = lam / 2 * (w @ w) + np.mean(np.maximum(0, 1 - margins))
    gap -= lam * (alpha.sum() - w @ w / 2)
    assert abs(gap) < 0.01


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("storage", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_rows_are_rows(storage, options):
    X, y = data()
    X = thinned(X)
    dense = pegasos(X, y, 0.1, 500, seed=3, **options)
    found = pegasos(storage(X), y, 0.1, 500, seed=3, **options)
    np.testing.assert_array_equal(found[0], dense[0])
    assert found[1] == dense[1]
    np.testing.assert_array_equal(
        found.alpha,
        dense.alpha,
    )


def test_weights_are_odds_of_being_drawn():
    X, y = data()
    weight = np.where(np.arange(len(y)) < 30, 2.0, 0.0)
    order = draws(len(y), 1000, 0, weight)
    assert order.max() < 30
    w, _, _ = pegasos(X, y, 0.1, 2000, seed=1, sample_weight=weight)
    half, _, _ = pegasos(X[:30], y[:30], 0.1, 2000, seed=1, sample_weight=weight[:30])
    np.testing.assert_allclose(w, half)


def test_one_seed_one_answer():
    X, y = data()
    one, two, other = (pegasos(X, y, 0.1, 300, seed=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(60)}, "y must hold"),
        ({"y": np.ones(3)}, "one entry per row"),
        ({"lam": 0.0}, "lam must be a positive"),
        ({"n_iter": 0}, "n_iter must be"),
    ],
)
def test_arguments_that_make_no_sense(change, message):
    X, y = data()
    arguments = {"X": X, "y": y, "lam": 0.1, "n_iter": 10, **change}
    with pytest.raises(ValueError, match=message):
        pegasos(**arguments)
