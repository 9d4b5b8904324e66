"""Residuals that depend on one feature, at any scale, and on none by chance."""

import numpy as np
import pytest
from scipy import sparse

from bisvm.kernels import Laplacian
from bisvm.search.descent import evaluate
from bisvm.search.observer import Trace
from bisvm.search.single_features import _best_span, single_feature_start
from tests.search.searches import make_search, many_widths

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (300, 6))


def start_of(search):
    """The start that residuals of the first machine propose."""
    objective = search.objective
    at, _ = evaluate(search, Trace(), objective.theta0, "test")
    return single_feature_start(objective, at)


def running_mean_errors(x, residuals, size):
    """Squared residuals after subtracting the mean of neighbours, by a loop."""
    order, out = np.argsort(x), []
    r = residuals[order]
    for i in range(len(r)):
        own = [k for k in range(i - size, i + size + 1) if 0 <= k < len(r) and k != i]
        out.append(float(((r[i] - r[own].mean(axis=0)) ** 2).sum()))
    return np.array(out)


@pytest.mark.parametrize("kernel", ["ard", Laplacian(per_feature=True)])
def test_widths_are_those_of_the_structure(kernel):
    """Half a period of sin(20 x) is 0.16: the kernel falls to 1 / e within it."""
    y = np.sin(20.0 * X[:, 2]) > 0
    search = make_search((X, y), kernel=kernel, cv=5)
    theta = start_of(search)
    objective = search.objective
    built = objective.problem.model.kernel_at(objective.hyperparameters(theta))
    step = np.eye(6)[2:3]
    far, near = (built.gram(h * step, 0.0 * step)[0, 0] for h in (0.16, 0.01))
    assert far < np.exp(-1.0) < near
    # Other features count for little within their whole range.
    assert built.gram(np.eye(6)[3:4], 0.0 * step)[0, 0] > 0.9


def test_labels_by_chance_propose_nothing():
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        data = rng.normal(size=(100, 4)), rng.permutation(100) % 2
        found.append(start_of(many_widths(data)) is not None)
    assert sum(found) <= 1


def test_rows_in_the_order_of_their_labels_tell_nothing():
    """Equal values are in random order, or their neighbours would have their label."""
    n = 200
    features = np.random.default_rng(0).integers(0, 2, (n, 3)).astype(float)
    assert start_of(many_widths((features, np.arange(n) >= n // 2))) is None


def test_the_best_window_is_that_of_a_loop():
    x = X[:, 0]
    residuals = np.stack([np.sin(12.0 * x), np.cos(5.0 * x)], axis=1)
    residuals += RNG.normal(size=residuals.shape)
    residuals -= residuals.mean(axis=0)
    order = np.argsort(x)
    sizes = [3, 6, 12, 24]
    after = [running_mean_errors(x, residuals, size).sum() for size in sizes]
    best = sizes[int(np.argmin(after))]
    ordered, rows = x[order], np.arange(len(x))
    low, high = np.maximum(rows - best, 0), np.minimum(rows + best, len(x) - 1)
    expected = np.median(ordered[high] - ordered[low]) / 2.0
    assert _best_span(ordered, residuals[order]) == pytest.approx(expected)


def test_kernels_without_a_width_per_feature_and_sparse_rows_have_none():
    y = np.sin(20.0 * X[:, 2]) > 0
    assert start_of(make_search((X, y), kernel="rbf", cv=5)) is None
    rows = sparse.csr_array(np.where(np.abs(X) > 0.3, X, 0.0))
    assert start_of(make_search((rows, y), kernel="ard", cv=5)) is None
