"""The linear systems of kernel machines, in double and in single precision."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_moons

from bisvm import BilevelObjective, BilevelSVC
from bisvm.bilevel.objective import SINGLE_SHARE, Objective
from bisvm.kernels import RBF
from bisvm.losses import Quartic, SquaredHinge
from bisvm.machines import KernelMachine, column_systems
from bisvm.machines.column_systems import ColumnSystems, solve_columns
from bisvm.solvers import Newton


def machine(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    rbf = RBF(gamma=0.5)
    labels = np.where(rng.random((40, 4)) < 0.5, 1.0, -1.0)
    weights = rng.random((40, 4)) * (rng.random((40, 4)) < 0.8)
    return KernelMachine(labels, weights, loss, "free", rbf, X, rbf.gram(X))


def test_any_memory_layout_will_do():
    one = machine(Quartic())
    fitted = np.random.default_rng(3).normal(size=one.labels.shape)
    part = one.select([0, 2])
    np.testing.assert_array_equal(
        part.tangent(np.asfortranarray(fitted[:, [0, 2]])).slope,
        one.tangent(fitted).slope[:, [0, 2]],
    )


@pytest.mark.parametrize("small", [0, 1000])
def test_systems_in_single_precision_are_refined(small, monkeypatch):
    """Errors of K remain, those of the factor do not: v is that of the rounded K."""
    monkeypatch.setattr(column_systems, "SMALL", small)
    one = machine(SquaredHinge())
    rng = np.random.default_rng(3)
    D = 100.0 * rng.random(one.labels.shape) * (rng.random(one.labels.shape) < 0.7)
    g, total, rho = rng.normal(size=D.shape), rng.normal(size=4), np.full(4, 1e-3)
    single = one.gram.astype(np.float32)
    v, mu = solve_columns(single, ColumnSystems(D, g, total, rho, True))
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
    systems = ColumnSystems(D, np.ones_like(D), np.ones(4), np.full(4, 0.5), True)
    v, mu = solve_columns(one.gram, systems)
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


def test_single_precision_is_tried_again_where_it_suffices():
    """It failed for a small tolerance; the next one is larger."""
    X, y = make_moons(600, noise=0.25, random_state=0)
    problem = BilevelObjective(BilevelSVC("rbf", random_state=0), X, y).problem
    objective = Objective(problem)
    theta = np.array([4.0, 0.5])
    _, warm = objective.evaluate(theta, tol=2e-5)
    assert warm.coef.dtype == float
    assert warm.rounding > SINGLE_SHARE * 2e-5
    tried = []

    class Spy(Newton):
        def solve(self, machine, start=None, tol=1e-8):
            tried.append(machine.gram.dtype)
            return super().solve(machine, start, tol)

    spied = Objective(replace(problem, solver=Spy()))
    spied.evaluate(theta, warm, tol=2e-5)
    assert tried == [np.float64]
    spied.evaluate(theta, warm, tol=1e-2)
    assert tried[1:] == [np.float32]
