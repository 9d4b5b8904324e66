"""The bilevel program: its derivatives, its feasible points, its exchanges."""

import numpy as np
import pytest
from sklearn.svm import SVC

from bisvm.kernels import RBF, FilterBank
from bisvm.published.jacobians import function_gradients, row_by_row
from bisvm.published.program import Swaps, carried
from bisvm.published.swapping import SwapHoldout
from tests.published.program.toy import bilevel_program, signals


def points(n=24, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n // 2)
    return rng.normal(size=(n, d)) + 0.7 * y[:, None], y


def differences(program, point, h=1e-5):
    """Fourth-order central differences of objective and constraints."""
    flat = point.flat()
    rows = []
    for i in range(len(flat)):
        step = np.zeros(len(flat))
        step[i] = h
        values = [
            program.evaluate(program.point(flat + k * step)) for k in (-2, -1, 1, 2)
        ]
        stacked = [np.append(v.constraints, v.objective) for v in values]
        rows.append(np.dot([1.0, -8.0, 8.0, -1.0], stacked) / (12.0 * h))
    return np.array(rows).T


SMALL_BANK = FilterBank(filters=np.random.default_rng(3).normal(size=(2, 4)), window=8)


@pytest.mark.parametrize(
    ("kernel", "settings"),
    [
        ("rbf", {}),
        ("rbf", {"cv": 3}),
        ("ard", {"cv": 2, "prior": "auto"}),
        (RBF() + RBF(per_feature=True), {}),
        (SMALL_BANK, {"cv": 2}),
    ],
)
def test_jacobian(kernel, settings):
    X, y = signals(16, 0, length=24) if kernel is SMALL_BANK else points()
    weight = np.random.default_rng(5).uniform(0.5, 2.0, len(y))
    _, program, x = bilevel_program(X, y, kernel, weight=weight, **settings)
    exact = program.trained_at(x)
    moved = exact.flat() + 0.1 * np.random.default_rng(1).normal(size=len(exact.flat()))
    point = program.point(moved)
    linear = program.linearize(point)
    expected = differences(program, point)
    scale = np.abs(expected).max()
    assert np.linalg.norm(expected[:, : len(x)]) > 0.1
    np.testing.assert_allclose(
        linear.jacobian.toarray(), expected[:-1], atol=1e-8 * scale
    )
    np.testing.assert_allclose(linear.gradient, expected[-1], atol=1e-8 * scale)


def test_jacobian_by_groups_of_samples_and_classes():
    X, y = points()
    y = np.where(X[:, 0] > 1.0, 2, y)
    for settings in ({"class_weight": "learn"}, {"multi_class": "ovo"}):
        _, program, x = bilevel_program(X, y, cv=2, **settings)
        exact = program.trained_at(x).flat()
        rng = np.random.default_rng(1)
        point = program.point(exact + 0.1 * rng.normal(size=len(exact)))
        expected = differences(program, point)
        np.testing.assert_allclose(
            program.linearize(point).jacobian.toarray(),
            expected[:-1],
            atol=1e-8 * np.abs(expected).max(),
        )


def test_functions_of_a_filter_bank_one_contraction_a_row():
    X, _ = signals(12, 0, length=32)
    kernel = FilterBank(length=5, window=8)
    kernel = kernel.with_values({p.name: p.value for p in kernel.parameters(X)})
    gram, coef = kernel.gram(X), np.random.default_rng(0).normal(size=(12, 2))
    np.testing.assert_allclose(
        function_gradients(kernel, X, gram, coef),
        row_by_row(kernel, X, gram, coef),
        atol=1e-12,
    )


@pytest.mark.parametrize("cv", [None, 3])
def test_exact_machines_are_feasible_and_their_objective_is_H(cv):
    X, y = points(40)
    objective, program, x = bilevel_program(X, y, "ard", cv=cv, prior="auto")
    point = program.trained_at(x)
    assert program.residual(point) < 1e-10
    assert program.evaluate(point).objective == pytest.approx(
        objective(objective.theta0)[0], abs=1e-10
    )


def test_a_point_that_is_not_optimal_has_a_residual():
    X, y = points()
    _, program, x = bilevel_program(X, y)
    point = program.trained_at(x)
    free = np.flatnonzero((point.a > 0.01) & (point.a < 0.99))
    assert len(free)
    point.a[free[0]] -= 0.01
    assert program.residual(point) > 1e-5


def swaps_of(X, y, **settings):
    holdout = SwapHoldout(n_swaps=3, every=2, random_state=0)
    _, program, x = bilevel_program(X, y, cv=holdout, **settings)
    swaps = Swaps(program.columns, holdout.every)
    return swaps, program.on(swaps.current), x


def test_exchanged_points_are_carried_to_the_exact_machine():
    X, y = points(40)
    swaps, program, x = swaps_of(X, y, C=2.0)
    point = program.trained_at(x)
    for _ in range(3):
        swaps = swaps.advanced()
        changed = program.on(swaps.current)
        assert np.sum(changed.columns.train != program.columns.train) == 6
        point, program = carried(program, changed, point), changed
        assert program.residual(point) < 1e-10
    rows = np.flatnonzero(program.columns.train[:, 0] > 0)
    gamma = program.space.values(program.coordinates.expand(x))["gamma"]
    svc = SVC(C=2.0, gamma=gamma, tol=1e-8).fit(X[rows], y[rows])
    values = program.evaluate(point)
    signs = program.columns.labels[:, 0]
    np.testing.assert_allclose(
        signs * values.margins[:, 0], svc.decision_function(X), atol=1e-5
    )


def test_an_exchange_of_several_classes():
    X, y = points(60)
    y = np.where(X[:, 0] > 1.0, 2, y)
    swaps, program, x = swaps_of(X, y)
    changed = program.on(swaps.advanced().current)
    point = carried(program, changed, program.trained_at(x))
    assert changed.residual(point) < 1e-10


def test_after_the_last_partition_comes_the_first():
    X, y = points()
    _, program, _ = bilevel_program(X, y, cv=SwapHoldout(n_partitions=3))
    swaps = Swaps(program.columns, every=1)
    first = swaps.current
    seen = []
    for _ in range(3):
        swaps = swaps.advanced()
        seen.append(swaps.current)
    assert not np.array_equal(first.train, seen[0].train)
    np.testing.assert_array_equal(first.train, seen[-1].train)
