"""Projected gradients, and balls for optimizers that know of none."""

import numpy as np
import pytest
from scipy.optimize import minimize

from bisvm.optimizers import OPTIMIZERS
from bisvm.optimizers.base import into_balls
from bisvm.published import ArmijoGradient, GradientDescent, SpectralGradient
from bisvm.testing import check_optimizer

A = np.array([[3.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.4]])
TARGET = np.array([2.0, -1.0, 1.5])
BALL = [(np.arange(3), 1.0)]


def quadratic(x):
    away = x - TARGET
    return 1.0 + 0.5 * float(away @ A @ away), A @ away


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_constant_steps_reach_a_minimum_they_suit(momentum):
    result = GradientDescent(0.1, momentum, max_iter=2000).minimize(
        quadratic, [0.0] * 3
    )
    assert result.success
    np.testing.assert_allclose(result.x, TARGET, atol=1e-3)


def test_momentum_is_faster_in_a_long_valley():
    steps = [
        GradientDescent(0.1, momentum, max_iter=2000).minimize(quadratic, [0.0] * 3).nit
        for momentum in (0.0, 0.7)
    ]
    assert steps[1] < 0.6 * steps[0]


def test_constant_steps_keep_the_contract():
    check_optimizer(GradientDescent(0.1))
    check_optimizer(GradientDescent(0.1, momentum=0.5))


def test_spectral_steps_need_fewer_evaluations_than_armijos():
    spectral = SpectralGradient().minimize(quadratic, [0.0] * 3)
    armijo = ArmijoGradient().minimize(quadratic, [0.0] * 3)
    assert spectral.success and armijo.success
    assert spectral.nfev < armijo.nfev


OTHERS = ("grid", "sgd-dcd", "bilevel-sgd", "fold-newton", "slp-filter", "ipopt")
SEARCHES = [name for name in OPTIMIZERS if name not in OTHERS]


@pytest.mark.parametrize("name", SEARCHES)
def test_every_optimizer_finds_the_minimum_in_a_ball(name):
    twin = minimize(
        quadratic,
        np.zeros(3),
        jac=True,
        constraints={"type": "ineq", "fun": lambda x: 1.0 - x @ x},
        tol=1e-12,
    )
    optimizer = OPTIMIZERS[name]()
    optimizer = optimizer.replace(max_iter=500)
    result = optimizer.minimize(quadratic, [0.3, 0.1, 0.0], balls=BALL)
    tolerance = 0.05 if name == "rprop" else 2e-2
    np.testing.assert_allclose(result.x, twin.x, atol=tolerance)
    assert np.linalg.norm(result.x) <= 1.0 + 1e-9
    assert quadratic(result.x)[0] == result.fun


@pytest.mark.parametrize("name", SEARCHES)
def test_a_step_beyond_the_ball_is_taken_back(name):
    def bowl(x):
        return 0.1 + float((x - 0.5) @ (x - 0.5)), 2.0 * (x - 0.5)

    result = OPTIMIZERS[name]().minimize(bowl, [-0.3], balls=[(np.array([0]), 1.0)])
    assert result.x[0] == pytest.approx(0.5, abs=1e-2)


def test_a_minimum_inside_the_ball_is_found_as_without_it():
    wide = [(np.arange(3), 10.0)]
    for optimizer in (SpectralGradient(), OPTIMIZERS["bfgs"]()):
        free = optimizer.minimize(quadratic, [0.3, 0.1, 0.0])
        held = optimizer.minimize(quadratic, [0.3, 0.1, 0.0], balls=wide)
        np.testing.assert_array_equal(free.x, held.x)


def test_a_start_outside_is_brought_inside():
    seen = []

    def watched(x):
        seen.append(np.linalg.norm(x))
        return quadratic(x)

    for name in ("bfgs", "lbfgs", "spg"):
        OPTIMIZERS[name]().minimize(watched, [5.0, 5.0, 5.0], balls=BALL)
    assert max(seen) <= 1.0 + 1e-12


def test_several_balls_hold_at_once():
    x = into_balls(np.array([3.0, 4.0, 9.0, 0.1]), [([0, 1], 1.0), ([2], 2.0)])
    np.testing.assert_allclose(x, [0.6, 0.8, 2.0, 0.1])


@pytest.mark.parametrize(
    "optimizer, message",
    [
        (GradientDescent(step=0.0), "step must be a positive"),
        (GradientDescent(momentum=1.0), "momentum"),
        (GradientDescent(batch_size=0), "batch_size"),
        (SpectralGradient(memory=0), "memory"),
        (ArmijoGradient(loose=-1.0), "loose"),
    ],
)
def test_settings_that_make_no_sense_are_refused(optimizer, message):
    with pytest.raises(ValueError, match=message):
        optimizer.minimize(quadratic, [0.0] * 3)
