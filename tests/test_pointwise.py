"""The compiled twins of losses and line search against the NumPy ones."""

from dataclasses import replace

import numpy as np
import pytest

from bisvm.kernels import RBF
from bisvm.losses import Logistic, Loss, ModifiedLog, Quartic, SquaredHinge
from bisvm.machines import Coefficients, KernelMachine
from bisvm.solvers.line_search import exact_step

LOSSES = [Quartic(), Quartic(eps=1e-3), ModifiedLog(), SquaredHinge(), Logistic()]


class Untwinned(Loss):
    """The same loss without its compiled twin."""

    def __init__(self, loss):
        self.loss = loss

    peak = property(lambda self: self.loss.peak)
    max_curvature = property(lambda self: self.loss.max_curvature)

    def _evaluate(self, u):
        return self.loss._evaluate(u)


def machine(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    kernel = RBF(gamma=0.5)
    labels = np.where(rng.random((40, 4)) < 0.5, 1.0, -1.0)
    weights = rng.random((40, 4)) * (rng.random((40, 4)) < 0.8)
    return KernelMachine(labels, weights, loss, "free", kernel, X, kernel.gram(X))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e100])
def test_a_twin_gives_the_same_values_slopes_and_curvatures(loss, scale):
    one = machine(loss)
    fitted = scale * np.random.default_rng(1).normal(size=one.labels.shape)
    fitted[:3, 0] = 1.0, -1.0, 1.125
    twin, plain = one.tangent(fitted), one.with_loss(Untwinned(loss)).tangent(fitted)
    for name in ("value", "slope", "curvature"):
        np.testing.assert_allclose(
            getattr(twin, name), getattr(plain, name), rtol=1e-12, atol=1e-14
        )


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("length", [1e-3, 1.0, 50.0])
def test_a_twin_takes_the_same_steps(loss, length):
    one = machine(loss)
    rng = np.random.default_rng(2)
    x = Coefficients(rng.normal(size=one.labels.shape), rng.normal(size=4))
    tangent = one.tangent(one.fit_values(x))
    gradient = Coefficients(x.coef + tangent.slope, tangent.slope.sum(axis=0))
    direction = Coefficients(-length * gradient.coef, -length * gradient.intercept)
    values = one.gram @ direction.coef + direction.intercept
    steps = [
        exact_step(replace(one, loss=each), x, tangent, direction, values)
        for each in (loss, Untwinned(loss))
    ]
    np.testing.assert_allclose(steps[0], steps[1], rtol=1e-9)
    assert (steps[0] > 0).all()


def test_a_changed_loss_has_no_twin():
    class Tenfold(SquaredHinge):
        def _evaluate(self, u):
            return tuple(10.0 * part for part in super()._evaluate(u))

    class Renamed(SquaredHinge):
        pass

    assert Tenfold().twin is None and Renamed().twin == SquaredHinge().twin
    one = machine(SquaredHinge())
    fitted = np.random.default_rng(4).normal(size=one.labels.shape)
    slopes = [
        one.with_loss(loss).tangent(fitted).slope for loss in (Tenfold(), one.loss)
    ]
    np.testing.assert_allclose(slopes[0], 10.0 * slopes[1])


def test_any_memory_layout_will_do():
    one = machine(Quartic())
    fitted = np.random.default_rng(3).normal(size=one.labels.shape)
    part = one.select([0, 2])
    np.testing.assert_array_equal(
        part.tangent(np.asfortranarray(fitted[:, [0, 2]])).slope,
        one.tangent(fitted).slope[:, [0, 2]],
    )
