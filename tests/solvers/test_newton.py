"""Newton's method and its line search, for compiled losses and for those in NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification

from bisvm.kernels import RBF
from bisvm.losses import Logistic, Loss, ModifiedLog, Quartic, SquaredHinge
from bisvm.machines import Coefficients, KernelMachine
from bisvm.solvers import Newton
from bisvm.solvers.line_search import step_lengths

LOSSES = [Quartic(), Quartic(eps=1e-3), ModifiedLog(), SquaredHinge(), Logistic()]


class InNumPy(Loss):
    """The same loss, with loops in NumPy."""

    def __init__(self, loss):
        self.loss = loss

    peak = property(lambda self: self.loss.peak)
    max_curvature = property(lambda self: self.loss.max_curvature)

    def _evaluate(self, f, y):
        return self.loss._evaluate(f, y)


def machine(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    kernel = RBF(gamma=0.5)
    labels = np.where(rng.random((40, 4)) < 0.5, 1.0, -1.0)
    weights = rng.random((40, 4)) * (rng.random((40, 4)) < 0.8)
    return KernelMachine(labels, weights, loss, "free", kernel, X, kernel.gram(X))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("length", [1e-3, 1.0, 50.0])
def test_steps_end_where_the_slope_has_vanished(loss, length):
    one = machine(loss)
    rng = np.random.default_rng(2)
    x = Coefficients(rng.normal(size=one.labels.shape), rng.normal(size=4))
    tangent = one.tangent(one.fit_values(x))
    gradient = Coefficients(x.coef + tangent.slope, tangent.slope.sum(axis=0))
    direction = Coefficients(-length * gradient.coef, -length * gradient.intercept)
    values = one.gram @ direction.coef + direction.intercept
    steps = [
        step_lengths(replace(one, loss=each), x, tangent, direction, values)
        for each in (loss, InNumPy(loss))
    ]
    np.testing.assert_allclose(steps[0], steps[1], rtol=1e-9)
    assert (steps[0] > 0).all()
    end = x.step(direction, steps[0])
    at_end = one.tangent(one.fit_values(end))
    left = one.along(end, at_end, direction, values).start
    first = one.along(x, tangent, direction, values).start
    assert (np.abs(left) <= 0.1 * np.abs(first) + 1e-9).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_a_loss_in_numpy_has_the_same_solution(loss, intercept):
    one = replace(machine(loss), intercept=intercept)
    compiled, plain = (
        Newton().solve(each, tol=1e-10) for each in (one, one.with_loss(InNumPy(loss)))
    )
    np.testing.assert_allclose(compiled.x.coef, plain.x.coef, atol=1e-8)
    np.testing.assert_allclose(compiled.x.intercept, plain.x.intercept, atol=1e-7)


def test_single_precision_takes_no_more_steps_than_double():
    """Rounding errors of the Gram matrix do not keep the residual up."""
    X, y = make_classification(
        400, 10, n_informative=6, n_redundant=0, flip_y=0.2, random_state=0
    )
    kernel = RBF(gamma=0.01)
    labels, weights = (2.0 * y - 1.0)[:, None], np.full((400, 1), 1000.0)
    common = labels, weights, Quartic(), "free", kernel
    double = KernelMachine(*common, X, kernel.gram(X))
    rounded = kernel.gram(X).astype(np.float32)
    single = KernelMachine(*common, X.astype(np.float32), rounded)
    few, many = (Newton().solve(machine, tol=1e-3) for machine in (double, single))
    assert many.status == "converged"
    assert many.iterations <= 1.5 * few.iterations
    # The residual is that of the rounded matrix, not of products in its precision.
    exact = KernelMachine(*common, X, rounded.astype(float))
    fitted = exact.tangent(exact.fit_values(many.x))
    assert exact.residual(many.x, fitted).max() <= 2e-3


def test_of_several_optimal_intercepts_the_smallest_is_taken():
    """Two classes of one size and a small C: E does not change with the intercept."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    labels = np.where(np.arange(20) % 2, 1.0, -1.0)[:, None]
    kernel = RBF(gamma=0.5)
    weights = np.full((20, 1), 0.01)
    loss = Quartic(0.125)
    one = KernelMachine(labels, weights, loss, "free", kernel, X, kernel.gram(X))
    starts = (None, np.full((20, 1), 0.7), np.full((20, 1), -0.7))
    found = [Newton().solve(one, start, 1e-9).x.intercept for start in starts]
    np.testing.assert_allclose(found, 0.0, atol=1e-12)
    # Others are optimal too.
    x = Newton().solve(one, None, 1e-9).x
    values = [
        one.value(moved, one.tangent(one.fit_values(moved)))
        for moved in (x, replace(x, intercept=x.intercept + 0.5))
    ]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-9)


def test_folds_begin_where_one_machine_of_their_task_ends():
    """From rough values: fewer steps in all, and the same solution."""
    X, y = make_classification(400, 6, n_informative=4, flip_y=0.1, random_state=0)
    kernel, fold = RBF(gamma=0.2), np.arange(400) % 5
    labels = np.tile((2.0 * y - 1.0)[:, None], (1, 5))
    weights = 100.0 * (fold[:, None] != np.arange(5))
    folds = KernelMachine(labels, weights, Quartic(), "free", kernel, X, kernel.gram(X))
    rough = np.random.default_rng(0).normal(size=(400, 1)) + np.zeros((1, 5))
    start, steps = Newton().approach(folds, rough, 1e-6)
    near, far = (Newton().solve(folds, one, 1e-8) for one in (start, rough))
    assert near.iterations + steps < far.iterations
    np.testing.assert_allclose(near.fitted, far.fitted, atol=1e-6)
    # All folds have the same labels, and so the same start.
    np.testing.assert_array_equal(start, start[:, [0] * 5])


@pytest.mark.parametrize("convert", [lambda loss: loss, InNumPy])
def test_line_searches_that_never_find_a_zero_slope_end(convert):
    """Uphill the step is a full one; where E falls for ever, the longest."""
    labels = np.ones((40, 4))
    one = replace(machine(convert(Quartic())), labels=labels)
    x = Coefficients(np.zeros_like(labels), np.zeros(4))
    tangent = one.tangent(np.zeros_like(labels))
    for sign, expected in ((-1.0, 1.0), (1.0, 1e3)):
        # An intercept so small that no margin is reached, and a tiny ridge.
        move = Coefficients(np.zeros_like(labels), np.full(4, sign * 1e-6))
        values = np.tile(move.intercept, (len(labels), 1))
        steps = step_lengths(one, x, tangent, move, values)
        np.testing.assert_array_equal(steps, expected)
