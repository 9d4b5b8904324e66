"""Points come and go; the SVM is the one that a refit would give."""

from time import process_time

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_moons
from sklearn.svm import SVC

from bisvm.hinge import (
    ActiveSet,
    IncrementalSVC,
    PathError,
    breakpoints,
    leave_one_out,
    solution,
)
from bisvm.kernels import RBF
from tests.covering import crossed
from tests.hinge.machines import (
    KERNELS,
    Rounded,
    dual_value,
    libsvm,
    noisy_points,
    optimality,
)


class Mirror:
    """The points an IncrementalSVC is meant to have, kept the simple way."""

    def __init__(self, model, X, y):
        self.model, self.X, self.y = model.fit(X, y), X, y

    def swap(self, rows, X, y):
        self.model.swap(rows, X, y)
        self.X = np.concatenate([np.delete(self.X, rows, axis=0), X])
        self.y = np.concatenate([np.delete(self.y, rows), y])

    def add(self, X, y):
        self.model.add(X, y)
        self.X, self.y = np.concatenate([self.X, X]), np.concatenate([self.y, y])

    def remove(self, rows):
        self.model.remove(rows)
        self.X, self.y = np.delete(self.X, rows, axis=0), np.delete(self.y, rows)

    @property
    def gram(self):
        return self.model.kernel_.gram(self.X)

    @property
    def sign(self):
        return np.where(self.y == self.model.classes_[1], 1.0, -1.0)

    def violation(self):
        model = self.model
        return optimality(self.gram, self.sign, model.C, model.alpha_, model.intercept_)

    def random_step(self, rng, points, most=8):
        kind = rng.integers(3) if len(self.y) > 40 else 0
        rows = rng.choice(len(self.y), rng.integers(1, most), replace=False)
        rows = rows[rows > 1] if kind else rows
        if kind == 0:
            self.add(*points(rng.integers(1, most)))
        elif kind == 1:
            self.remove(rows)
        else:
            self.swap(rows, *points(rng.integers(1, most)))


def small_working_sets(monkeypatch, least):
    for name, value in {"_SIZE": 0, "_LEAST": least, "_SHARE": 0.1}.items():
        monkeypatch.setattr(solution, name, value)


@pytest.fixture
def path_alone(monkeypatch):
    """The path of all points ends at the solution by itself: no repair, no refit."""

    def make_exact(sets):
        sets.refresh()
        assert sets.residual() < 1e-9
        passed = solution.make_exact(sets)
        assert passed == 0
        return passed

    monkeypatch.setattr(solution, "_LEAST", 10**9)
    monkeypatch.setattr("bisvm.hinge.exchange.make_exact", make_exact)
    monkeypatch.setattr("bisvm.hinge.exchange.solve", None)


@pytest.mark.usefixtures("path_alone")
@pytest.mark.parametrize(
    "kernel, C", crossed(list(KERNELS), [0.02, 1.0, 50.0, 2000.0], strength=1)
)
def test_random_changes_agree_with_libsvm(kernel, C):
    rng = np.random.default_rng(7)
    mirror = Mirror(IncrementalSVC(KERNELS[kernel], C), *noisy_points(rng, 70))
    for _ in range(3):
        for _ in range(3):
            mirror.random_step(rng, lambda n: noisy_points(rng, n + 2))
        alpha, f, _ = libsvm(mirror.gram, mirror.y, C)
        model, sign = mirror.model, mirror.sign
        assert model.kkt_residual_ < 1e-9
        assert mirror.violation() < 1e-9
        mine = model.decision_function(mirror.X)
        np.testing.assert_allclose(mine, f, atol=1e-6)
        values = [dual_value(mirror.gram, sign, a) for a in (model.alpha_, alpha)]
        assert values[0] == pytest.approx(values[1], rel=1e-10)


def test_alpha_agrees_with_libsvm_where_it_is_unique():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 4)), rng.choice(["a", "b"], 120)
    mirror = Mirror(IncrementalSVC(Rounded(RBF(gamma=1.0)), 2.0), X[:80], y[:80])
    mirror.add(X[80:100], y[80:100])
    mirror.remove(np.arange(0, 30, 3))
    mirror.swap(np.arange(5, 25), X[100:], y[100:])
    alpha, f, _ = libsvm(mirror.gram, mirror.y, 2.0)
    np.testing.assert_allclose(mirror.model.alpha_, alpha, atol=1e-6)
    np.testing.assert_allclose(mirror.model.decision_function(mirror.X), f, atol=1e-6)


@pytest.mark.usefixtures("path_alone")
@pytest.mark.parametrize(
    "kernel, digits", crossed(["linear", "poly", "rbf"], [1.0, 2.0], strength=1)
)
def test_many_equal_rows_and_ties(kernel, digits):
    """On a coarse grid points coincide, with equal and with opposite labels."""
    rng = np.random.default_rng(3)
    points = lambda n: noisy_points(rng, n + 2, digits)  # noqa: E731
    mirror = Mirror(IncrementalSVC(KERNELS[kernel], 1.0), *points(60))
    for _ in range(15):
        mirror.random_step(rng, points, most=12)
        assert mirror.violation() < 1e-9
    f, gram = mirror.model.decision_function(mirror.X), mirror.gram
    assert len(np.unique(mirror.X, axis=0)) < len(mirror.X)
    alpha, *_ = libsvm(gram, mirror.y, 1.0)
    sign = mirror.sign
    np.testing.assert_allclose(
        f - mirror.model.intercept_, gram @ (sign * alpha), atol=1e-6
    )


@pytest.mark.parametrize("changes", [150, pytest.param(1000, marks=pytest.mark.full)])
def test_many_changes_keep_the_residual(changes, monkeypatch):
    small_working_sets(monkeypatch, 50)
    rng = np.random.default_rng(5)
    mirror = Mirror(IncrementalSVC("rbf", 10.0, gamma=0.5), *noisy_points(rng, 60))
    worst = [0.0, 0.0]
    for k in range(changes):
        mirror.random_step(rng, lambda n: noisy_points(rng, n + 2), most=6)
        from_scratch = mirror.violation() if k % 10 == 9 else 0.0
        worst = np.maximum(worst, [mirror.model.kkt_residual_, from_scratch])
    print(
        f"KKT residual through {changes} changes: {worst[0]:.1e} at most, "
        f"{worst[1]:.1e} computed from scratch, {len(mirror.y)} points at the end"
    )
    assert np.all(worst < 1e-10)


@pytest.mark.parametrize("kernel, C", crossed(list(KERNELS), [1.0, 50.0], strength=1))
def test_only_few_points_are_watched(kernel, C, monkeypatch):
    """Working sets that are too small at first; the machine is exact all the same."""
    small_working_sets(monkeypatch, 5)
    sizes, restricted = [], ActiveSet.restricted

    def counted(sets, W):
        sizes.append(len(W))
        return restricted(sets, W)

    monkeypatch.setattr(ActiveSet, "restricted", counted)
    rng = np.random.default_rng(8)
    mirror = Mirror(IncrementalSVC(KERNELS[kernel], C), *noisy_points(rng, 300))
    for _ in range(8):
        mirror.swap(rng.choice(np.arange(2, 300), 6), *noisy_points(rng, 6))
        assert mirror.violation() < 1e-10
    assert len(sizes) > 8 and min(sizes) < 100


def test_a_path_lost_on_few_points_is_followed_on_all(monkeypatch):
    def lost_on_few(sets, *args):
        if len(sets.y) < 100:
            raise PathError("lost")
        return breakpoints.follow(sets, *args)

    small_working_sets(monkeypatch, 5)
    monkeypatch.setattr(solution, "follow", lost_on_few)
    monkeypatch.setattr("bisvm.hinge.exchange.solve", None)
    rng = np.random.default_rng(8)
    mirror = Mirror(IncrementalSVC("rbf", 10.0), *noisy_points(rng, 300))
    mirror.swap(np.arange(2, 9), *noisy_points(rng, 6))
    assert mirror.violation() < 1e-10


@pytest.mark.full
def test_a_swap_is_far_cheaper_than_a_refit():
    """20 of 10,000 points. LIBSVM is timed with its own kernel and its default tol;

    it agrees to 1e-6 where both have the same Gram matrix, in single precision.
    """
    n, kernel = 10_000, Rounded(RBF(gamma=0.1))
    X, y = make_classification(n + 80, 10, n_informative=6, flip_y=0.2, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rng, model, rows = np.random.default_rng(0), IncrementalSVC(kernel), np.arange(n)
    model.fit(X[:n], y[:n])
    seconds = []
    for new in np.arange(n, n + 80).reshape(4, 20):
        out = rng.choice(n, 20, replace=False)
        start = process_time()
        model.swap(out, X[new], y[new])
        seconds.append(process_time() - start)
        rows = np.concatenate([np.delete(rows, out), new])
    start = process_time()
    SVC(gamma=0.1, cache_size=1000).fit(X[rows], y[rows])
    ratio = (process_time() - start) / np.median(seconds)
    gram = kernel.gram(X[rows])
    svc = SVC(kernel="precomputed", tol=1e-8).fit(gram, y[rows])
    difference = np.abs(svc.decision_function(gram) - model.decision_function(X[rows]))
    print(f"{ratio:.0f} times faster, {difference.max():.1e} apart")
    assert difference.max() < 1e-6
    assert ratio > 10


def test_every_point_a_support_vector():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 20))
    y = np.tile([0, 1], 30)
    narrow = Mirror(IncrementalSVC(Rounded(RBF(gamma=1.0)), 10.0), X[:40], y[:40])
    assert len(narrow.model.margin_) == 40
    narrow.swap(np.arange(9), X[40:], y[40:])
    assert len(narrow.model.margin_) == 51
    alpha, *_ = libsvm(narrow.gram, narrow.y, 10.0)
    np.testing.assert_allclose(narrow.model.alpha_, alpha, atol=1e-6)


def test_no_margin_vector():
    """Balanced classes and a small C: all in error, b free within an interval."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 3)), np.tile([0, 1], 30)
    model = IncrementalSVC(Rounded(RBF(gamma=0.5)), 0.01)
    mirror = Mirror(model, X[:40], y[:40])
    assert len(model.margin_) == 0 and len(model.error_) == 40
    _, f, _ = libsvm(mirror.gram, mirror.y, 0.01)
    np.testing.assert_allclose(model.decision_function(mirror.X), f, atol=1e-6)
    mirror.add(X[40:47], y[40:47])
    assert len(model.margin_) > 0
    mirror.add(X[47:], y[47:])
    mirror.remove([0, 2, 4, 5])
    assert mirror.violation() < 1e-12
    _, f, _ = libsvm(mirror.gram, mirror.y, 0.01)
    np.testing.assert_allclose(model.decision_function(mirror.X), f, atol=1e-6)


def test_against_an_interior_point_method_in_double_precision():
    """Where C is large LIBSVM's single precision shows; a QP solver has none."""
    clarabel = pytest.importorskip("clarabel")
    from scipy import sparse

    X, y = make_moons(70, noise=0.3, random_state=0)
    model = IncrementalSVC("rbf", 1000.0, gamma=1.0).fit(X[:50], y[:50])
    model.swap(np.arange(10), X[50:], y[50:])
    X, sign = X[10:], np.where(y[10:] > 0, 1.0, -1.0)
    n, gram = len(X), model.kernel_.gram(X)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    A = sparse.csc_matrix(np.vstack([sign, -np.eye(n), np.eye(n)]))
    bound = np.concatenate([[0.0], np.zeros(n), np.full(n, 1000.0)])
    Q = sparse.csc_matrix(np.triu(gram * np.outer(sign, sign)))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * n)]
    solver = clarabel.DefaultSolver(Q, -np.ones(n), A, bound, cones, settings)
    alpha = np.array(solver.solve().x)
    f = gram @ (sign * alpha)
    mine = model.decision_function(X) - model.intercept_
    np.testing.assert_allclose(mine, f, atol=1e-6)


@pytest.mark.parametrize("C", [0.3, 30.0])
def test_leave_one_out_agrees_with_refits(C):
    rng = np.random.default_rng(4)
    X, y = noisy_points(rng, 45)
    X[10] = X[11]
    model = IncrementalSVC(KERNELS["rbf"], C).fit(X, y)
    before = model.alpha_.copy()
    values = leave_one_out(model)
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        gram = model.kernel_.gram(X)
        alpha, _, b = libsvm(gram[np.ix_(rest, rest)], y[rest], C)
        sign = np.where(y[rest] == "b", 1.0, -1.0)
        assert values[i] == pytest.approx(gram[i, rest] @ (sign * alpha) + b, abs=1e-6)
    np.testing.assert_array_equal(model.alpha_, before)


def test_a_worn_factor_is_computed_anew():
    rng = np.random.default_rng(1)
    mirror = Mirror(IncrementalSVC("rbf", 10.0), *noisy_points(rng, 80))
    margin = mirror.model._sets.margin
    margin._L *= 1.0 + 1e-3 * rng.uniform(-1, 1, margin._L.shape)
    mirror.swap(np.arange(2, 9), *noisy_points(rng, 9))
    assert mirror.violation() < 1e-10
    margin = mirror.model._sets.margin
    A = margin.gram.block(margin.members, margin.members) + margin.shift
    np.testing.assert_allclose(margin.factor @ margin.factor.T, A, atol=1e-12)


def test_a_path_that_is_lost_ends_in_a_refit(monkeypatch):
    def lost(*args):
        raise PathError("lost")

    rng = np.random.default_rng(1)
    mirror = Mirror(IncrementalSVC("rbf", 1.0), *noisy_points(rng, 50))
    monkeypatch.setattr("bisvm.hinge.exchange.follow_working_set", lost)
    mirror.swap(np.arange(5), *noisy_points(rng, 9))
    assert mirror.violation() < 1e-10


def test_all_rows_equal():
    model = IncrementalSVC("rbf", 1.0, gamma=1.0).fit(
        np.ones((6, 2)), [0, 0, 0, 0, 1, 1]
    )
    np.testing.assert_allclose(model.decision_function(np.ones((1, 2))), -1.0)
    model.add(np.ones((4, 2)), [1, 1, 1, 1])
    assert model.kkt_residual_ < 1e-10
    np.testing.assert_allclose(model.decision_function(np.ones((1, 2))), 1.0)


def test_settings_stay_as_they_were_and_masks_have_a_length():
    X, y = make_moons(60, noise=0.2, random_state=0)
    model = IncrementalSVC(C=1.0, gamma=1.0).fit(X, y)
    with pytest.raises(ValueError, match="mask has 7 entries for 60 points"):
        model.remove(np.arange(7) < 3)
    with pytest.raises(ValueError, match="changed since `fit`"):
        model.set_params(C=10.0).add(X[:1], y[:1])
