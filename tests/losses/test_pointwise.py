"""The compiled twins of losses and line search against the NumPy ones."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_moons

from bisvm import BilevelObjective, BilevelSVC
from bisvm.kernels import RBF
from bisvm.losses import Logistic, Loss, ModifiedLog, Quartic, SquaredHinge
from bisvm.machines import Coefficients, KernelMachine, compiled
from bisvm.solvers import Newton
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


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_a_twin_finds_the_same_solution(loss, intercept):
    one = replace(machine(loss), intercept=intercept)
    plain = Newton()._steps(one, one.cold_start(), 1e-10)[0]
    found = one.newton(one.cold_start(), 1e-10, 200)
    if found is None:
        # An intercept that no point holds is left to the other way.
        assert intercept == "free" and loss.max_curvature > 100
        return
    assert not found[2]
    np.testing.assert_allclose(found[0].coef, plain.coef, atol=1e-8)
    np.testing.assert_allclose(found[0].intercept, plain.intercept, atol=1e-7)


@pytest.mark.parametrize("small", [0, 1000])
def test_systems_in_single_precision_are_refined(small, monkeypatch):
    """Errors of K remain, those of the factor do not: v is that of the rounded K."""
    monkeypatch.setattr(compiled, "SMALL", small)
    one = machine(SquaredHinge())
    rng = np.random.default_rng(3)
    D = 100.0 * rng.random(one.labels.shape) * (rng.random(one.labels.shape) < 0.7)
    g, total, rho = rng.normal(size=D.shape), rng.normal(size=4), np.full(4, 1e-3)
    single = one.gram.astype(np.float32)
    v, mu = compiled.solve_columns(single, D, g, total, rho, True)
    for k in range(4):
        active = np.flatnonzero(D[:, k])
        t = np.sqrt(D[active, k])
        block = t[:, None] * single[np.ix_(active, active)].astype(float) * t
        matrix = np.block(
            [[np.eye(len(t)) + block, t[:, None]], [t[None], -rho[k : k + 1, None]]]
        )
        z = np.linalg.solve(matrix, np.append(t * g[active, k], total[k]))
        np.testing.assert_allclose(v[active, k], t * z[:-1], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(mu[k], z[-1], rtol=1e-4, atol=1e-4)


def test_columns_without_active_points_are_solved():
    one = machine(SquaredHinge())
    D = np.zeros(one.labels.shape)
    v, mu = compiled.solve_columns(
        one.gram, D, np.ones_like(D), np.ones(4), np.full(4, 0.5), True
    )
    assert not v.any()
    np.testing.assert_allclose(mu, -2.0)


def test_single_precision_serves_a_search_and_no_more():
    """Loose values agree with tight ones; tight ones are in double precision."""
    X, y = make_moons(600, noise=0.25, random_state=0)
    objective = BilevelObjective(BilevelSVC("rbf", random_state=0), X, y)
    assert objective.problem.single.dtype == np.float32
    theta = np.array([0.5, 0.5])
    loose, tight = objective.evaluate(theta, 1e-3), objective.evaluate(theta, 1e-9)
    np.testing.assert_allclose(loose.value, tight.value, rtol=1e-5)
    np.testing.assert_allclose(loose.gradient, tight.gradient, rtol=1e-2, atol=1e-4)
    assert tight.residual < 1e-9
    # A C at which rounding errors would count.
    far = np.array([8.5, 0.5])
    loose, tight = objective.evaluate(far, 1e-3), objective.evaluate(far, 1e-9)
    np.testing.assert_allclose(loose.value, tight.value, rtol=1e-4)
