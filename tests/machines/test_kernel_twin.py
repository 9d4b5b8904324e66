"""The kernel machine against a plain twin: one problem, explicit formulas, no batching.

In z = (alpha, b), with M = [K 1], Q = [K 0; 0 rho] and G, D the losses' derivatives,

    E = 1/2 z'Q z + sum_i W_i loss(Y_i (M z)_i)
    gradient = Q z + M'G,      Hessian = Q + M'D M.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from bisvm.bilevel.adjoint import implicit_gradient
from bisvm.kernels import RBF
from bisvm.losses import Logistic, Quartic
from bisvm.machines import KernelMachine
from bisvm.machines.base import INTERCEPT_RIDGE
from bisvm.solvers import Newton
from bisvm.testing import central_difference
from tests.problems import toy_data

N = 24
X, CLASSES = toy_data(N)
Y = 2.0 * CLASSES - 1.0
W = np.random.default_rng(2).uniform(0.3, 2.0, N)
W[::5] = 0.0
GAMMA = np.array([0.3, 0.6, 0.2])
P = np.random.default_rng(3).normal(size=N)


@dataclass
class Twin:
    """One kernel machine, as it stands in the formulas above."""

    gamma: np.ndarray
    scale: float
    loss: object
    intercept: str

    @cached_property
    def K(self):
        return np.array([[np.exp(-self.gamma @ (a - b) ** 2) for b in X] for a in X])

    @cached_property
    def M(self):
        column = np.zeros(N) if self.intercept == "none" else np.ones(N)
        return np.column_stack([self.K, column])

    @cached_property
    def Q(self):
        rho = {
            "penalized": 1.0,
            "free": INTERCEPT_RIDGE * self.scale * W.sum(),
            "none": 1.0,
        }
        Q = np.zeros((N + 1, N + 1))
        Q[:N, :N], Q[N, N] = self.K, rho[self.intercept]
        return Q

    def losses(self, z):
        return [self.scale * W * part for part in self.loss.evaluate(self.M @ z, Y)]

    def value(self, z):
        return 0.5 * z @ self.Q @ z + self.losses(z)[0].sum()

    def gradient(self, z):
        return self.Q @ z + self.M.T @ self.losses(z)[1]

    def hessian(self, z):
        return self.Q + self.M.T @ (self.losses(z)[2][:, None] * self.M)


def batched(twin: Twin) -> KernelMachine:
    kernel = RBF(twin.gamma, per_feature=True)
    weights = (twin.scale * W)[:, None]
    parts = (Y[:, None], weights, twin.loss, twin.intercept)
    return KernelMachine(*parts, kernel, X, kernel.gram(X))


def solved(twin: Twin):
    solution = Newton().solve(batched(twin), None, 1e-13)
    return np.append(solution.x.coef[:, 0], solution.x.intercept), solution


CASES = pytest.mark.parametrize(
    "loss, intercept",
    [
        (loss, intercept)
        for loss in (Quartic(0.5), Logistic())
        for intercept in ("free", "penalized", "none")
    ],
)


@CASES
def test_the_twin_has_the_derivatives_of_its_value(loss, intercept):
    twin = Twin(GAMMA, 1.3, loss, intercept)
    z = np.random.default_rng(0).normal(size=N + 1) / 4
    by_value = central_difference(twin.value, z, 1e-4)
    np.testing.assert_allclose(twin.gradient(z), by_value, atol=1e-8)
    by_gradient = central_difference(twin.gradient, z, 1e-4)
    np.testing.assert_allclose(twin.hessian(z), by_gradient, atol=1e-7)


@CASES
def test_value_and_optimum_are_those_of_the_twin(loss, intercept):
    twin = Twin(GAMMA, 1.3, loss, intercept)
    machine = batched(twin)
    z, solution = solved(twin)
    np.testing.assert_allclose(
        machine.value(solution.x, solution.tangent), twin.value(z)
    )
    np.testing.assert_allclose(twin.gradient(z), 0.0, atol=1e-9)
    assert np.linalg.eigvalsh(twin.hessian(z))[0] > -1e-12


@CASES
def test_a_newton_step_is_that_of_the_twin(loss, intercept):
    """In fitted values, since alpha is not unique where K is badly conditioned."""
    twin = Twin(GAMMA, 1.3, loss, intercept)
    machine = batched(twin)
    z = np.random.default_rng(0).normal(size=N + 1) / 4
    z[-1] *= intercept != "none"
    target = z - np.linalg.solve(twin.hessian(z), twin.gradient(z))
    tangent = machine.tangent((twin.M @ z)[:, None])
    found = machine.linearize(tangent).minimizer()
    np.testing.assert_allclose(
        machine.fit_values(found)[:, 0], twin.M @ target, atol=1e-6
    )


@CASES
def test_the_hypergradient_is_that_of_the_twin(loss, intercept):
    """For H = P'F: dH = P'dM z - lambda'(d gradient), Hessian lambda = M'P."""
    twin = Twin(GAMMA, 1.3, loss, intercept)
    z, solution = solved(twin)
    adjoint = np.linalg.lstsq(twin.hessian(z), twin.M.T @ P, rcond=None)[0]

    def lagrangian(theta):
        moved = Twin(np.exp(theta[1:]), np.exp(theta[0]), loss, intercept)
        return P @ (moved.M @ z) - adjoint @ moved.gradient(z)

    theta = np.log(np.append(1.3, GAMMA))
    expected = central_difference(lagrangian, theta, 1e-4)
    found = implicit_gradient(batched(twin), solution, P[:, None])
    gradient = np.append(found.weights.sum(), found.kernel)
    assert np.linalg.norm(expected) > 1e-2
    np.testing.assert_allclose(gradient, expected, atol=1e-6 * np.linalg.norm(expected))


@CASES
def test_the_hypergradient_is_how_the_solution_moves(loss, intercept):
    twin = Twin(GAMMA, 1.3, loss, intercept)

    def fitted(theta):
        moved = Twin(np.exp(theta[1:]), np.exp(theta[0]), loss, intercept)
        return P @ solved(moved)[1].fitted[:, 0]

    theta = np.log(np.append(1.3, GAMMA))
    found = implicit_gradient(batched(twin), solved(twin)[1], P[:, None])
    gradient = np.append(found.weights.sum(), found.kernel)
    expected = central_difference(fitted, theta, 1e-3)
    error = np.linalg.norm(gradient - expected) / np.linalg.norm(expected)
    assert error < 1e-6
