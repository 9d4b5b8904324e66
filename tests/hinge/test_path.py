"""The regularisation path against independent fits, and H against brute force."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from bisvm.hinge import path as path_module
from bisvm.hinge.path import best_C, mean_path, svm_path, validation_path
from tests.hinge.machines import KERNELS, libsvm, noisy_points, optimality

RANGE = (1e-2, 1e3)


def problem(n=90, seed=0):
    X, y = noisy_points(np.random.default_rng(seed), n)
    return X, y


def between(path, rng, count):
    """Values of C inside of stretches between two breakpoints, in single precision."""
    wide = np.flatnonzero(np.diff(path.C) > 1e-6 * path.C[1:])
    k = rng.choice(wide, min(count, len(wide)), replace=False)
    return (path.C[k] + rng.uniform(0.2, 0.8, len(k)) * np.diff(path.C)[k]).tolist()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_agrees_with_libsvm(kernel, weighted):
    X, y = problem()
    rng = np.random.default_rng(1)
    weight = rng.integers(1, 5, len(y)) / 2.0 if weighted else None
    path = svm_path(
        KERNELS[kernel], X, y, C_min=RANGE[0], C_max=RANGE[1], sample_weight=weight
    )
    assert path.kkt_residual < 1e-9
    assert path.C[0] == RANGE[0] and path.C[-1] == RANGE[1]
    gram, sign = path.kernel.gram(X), path.y
    for C in between(path, rng, 20):
        alpha, f, b = libsvm(gram, y, C, weight)
        mine = path.decision_function(X, C)
        bound = C * (np.ones(len(y)) if weight is None else weight)
        free = np.any((alpha > 1e-9 * bound) & (alpha < (1 - 1e-9) * bound))
        shift = 0.0 if free else path.intercept(C) - b
        np.testing.assert_allclose(mine, f + shift, atol=1e-6)
        inside = optimality(gram, sign, bound, path.alpha(C), path.intercept(C))
        assert inside < 1e-9


def test_ties_and_equal_rows():
    X, y = noisy_points(np.random.default_rng(3), 80, digits=1.0)
    for kernel in KERNELS.values():
        path = svm_path(kernel, X, y, C_min=1e-2, C_max=100.0)
        gram = path.kernel.gram(X)
        for C in between(path, np.random.default_rng(0), 20):
            found = optimality(gram, path.y, C, path.alpha(C), path.intercept(C))
            assert found < 1e-9


def test_balanced_classes_begin_without_a_margin_vector():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.tile([0, 1], 20)
    path = svm_path("rbf", X, y, C_min=1e-3, C_max=10.0)
    np.testing.assert_allclose(path.alpha(1e-3), 1e-3)
    gram = path.kernel.gram(X)
    for C in [1e-3, 2e-3, *between(path, np.random.default_rng(0), 20)]:
        found = optimality(gram, path.y, C, path.alpha(C), path.intercept(C))
        assert found < 1e-9


@pytest.mark.parametrize("kernel", KERNELS)
def test_validation_loss_against_brute_force(kernel):
    X, y = problem(140)
    path = svm_path(KERNELS[kernel], X[:70], y[:70], C_min=RANGE[0], C_max=RANGE[1])
    grid = np.geomspace(*RANGE, 3000)
    sign = np.where(y[70:] == "b", 1.0, -1.0)
    # Points that are not on the grid of the training points: no margin stays at zero.
    X_val = X[70:] + 0.01 * np.pi
    margins = np.array([sign * path.decision_function(X_val, C) for C in grid])
    losses = {"hinge": np.maximum(0, 1 - margins), "zero_one": margins <= 0}
    for loss, values in losses.items():
        curve = validation_path(path, X_val, y[70:], loss=loss)
        assert np.all(np.diff(curve.C) >= 0) and set(path.C) <= set(curve.C)
        brute = values.mean(axis=1)
        np.testing.assert_allclose(curve.at(grid), brute, atol=1e-9)
        C, H = curve.best()
        assert H <= brute.min() + 1e-12
        assert brute.min() - H < 2e-2
        sides = [float(curve.at(C, side)) for side in ("left", "right")]
        assert H == pytest.approx(min(sides), abs=1e-12)


def test_the_hinge_is_linear_between_all_points():
    X, y = problem(120, seed=2)
    path = svm_path("rbf", X[:60], y[:60], C_min=0.1, C_max=100.0)
    curve = validation_path(path, X[60:], y[60:])
    sign = np.where(y[60:] == "b", 1.0, -1.0)
    middles = (curve.C[:-1] + curve.C[1:]) / 2
    for k in np.flatnonzero(np.diff(curve.C) > 1e-9)[::5]:
        u = sign * path.decision_function(X[60:], middles[k])
        assert np.maximum(0, 1 - u).mean() == pytest.approx(
            (curve.H[k] + curve.H[k + 1]) / 2, abs=1e-10
        )


def test_best_C_over_folds():
    X, y = problem(100, seed=5)
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    C, H, curve = best_C("rbf", X, y, splits, C_min=0.01, C_max=100.0)
    kernel = path_module.kernel_for("rbf", X)

    def brute(C):
        losses = []
        for train, val in splits:
            sign = np.where(y == "b", 1.0, -1.0)
            path = svm_path(kernel, X[train], y[train], C_min=C, C_max=1.001 * C)
            u = sign[val] * path.decision_function(X[val], C)
            losses.append(np.maximum(0, 1 - u).mean())
        return np.mean(losses)

    assert brute(C) == pytest.approx(H, abs=1e-9)
    for other in [0.5 * C, 0.99 * C, 1.01 * C, 2.0 * C]:
        assert brute(other) == pytest.approx(float(curve.at(other)), abs=1e-9)
        assert brute(other) >= H - 1e-12


def test_mean_of_curves_with_jumps():
    steps = path_module.ValidationPath(
        np.array([1.0, 2, 2, 4]), np.array([1.0, 1, 0, 0])
    )
    line = path_module.ValidationPath(np.array([1.0, 4.0]), np.array([0.0, 3.0]))
    mean = mean_path([steps, line])
    np.testing.assert_allclose(mean.C, [1, 2, 2, 4])
    np.testing.assert_allclose(mean.H, [0.5, 1.0, 0.5, 1.5])
    assert steps.best() == (pytest.approx(np.sqrt(8.0)), 0.0)


def test_a_lost_path_is_taken_up_again(monkeypatch):
    X, y = problem(60)
    whole = svm_path("rbf", X, y, C_min=0.1, C_max=10.0)
    follow, lost = path_module.follow, []

    def loses_once(sets, dc, record):
        if lost:
            return follow(sets, dc, record=record)
        lost.append(True)
        record(0.0)
        follow(sets, dc / 2, record=lambda eta: record(eta / 2))
        raise path_module.PathError("lost")

    monkeypatch.setattr(path_module, "follow", loses_once)
    again = svm_path("rbf", X, y, C_min=0.1, C_max=10.0)
    for C in np.geomspace(0.1, 10.0, 30):
        np.testing.assert_allclose(again.alpha(C), whole.alpha(C), atol=1e-7)


def test_errors_say_what_to_do():
    X, y = problem(30)
    with pytest.raises(ValueError, match="0 < C_min < C_max"):
        svm_path("rbf", X, y, C_min=0.0, C_max=1.0)
    with pytest.raises(ValueError, match="two classes; y has 1"):
        svm_path("rbf", X, ["a"] * 30)
    with pytest.raises(ValueError, match="sample_weight must be 30 finite numbers"):
        svm_path("rbf", X, y, sample_weight=[1.0])
    path = svm_path("rbf", X, y, C_min=1.0, C_max=2.0)
    with pytest.raises(ValueError, match="not on the path"):
        path.alpha(3.0)
    with pytest.raises(ValueError, match="not on the path"):
        validation_path(path, X, y).at(3.0)
    with pytest.raises(ValueError, match="features, and the path"):
        path.decision_function(X[:, :1], 1.5)
    with pytest.raises(ValueError, match="Did you mean 'hinge'"):
        validation_path(path, X, y, loss="hing")
    with pytest.raises(ValueError, match="empty list"):
        best_C("rbf", X, y, [])
