"""BFGS with an oracle whose errors are larger than it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bisvm.optimizers import BFGS
from bisvm.optimizers.bfgs import _LastSteps, _Matrix


class Flattering:
    """1 + |x - c|^2 / 2, but far too low at its third point, until asked again."""

    centre = np.array([1.5, -1.0])

    def __init__(self) -> None:
        self.asked: list[tuple[np.ndarray, float]] = []

    def __call__(
        self, x: np.ndarray, accuracy: float
    ) -> tuple[float, np.ndarray, float]:
        self.asked.append((x, accuracy))
        value = 1.0 + 0.5 * float(np.sum((x - self.centre) ** 2))
        gradient = x - self.centre
        if len(self.asked) == 3:
            # Below the least value there is; the error owned up to is half of it.
            return 0.98, gradient, 0.5 * (value - 0.98)
        return value, gradient, 0.0


def test_a_value_that_was_too_low_is_looked_at_again():
    oracle = Flattering()
    found = BFGS(ftol=1e-6, gtol=1e-4).minimize(oracle, np.array([4.0, 3.0]))
    assert found.success, found.message
    np.testing.assert_allclose(found.x, Flattering.centre, atol=1e-2)
    flattered = oracle.asked[2][0]
    again = [a for x, a in oracle.asked[3:] if np.array_equal(x, flattered)]
    assert len(again) == 1
    assert found.fun >= 1.0


def test_it_ends_early_where_a_target_is_out_of_reach():
    start = np.full(4, 3.0)
    whole = BFGS().minimize(valley, start)
    for target, early in ((0.5, True), (whole.fun * 1.01, False)):
        found = BFGS().towards(target).minimize(valley, start)
        assert (found.nfev < whole.nfev) is early
        assert found.success is not early
    assert found.fun == whole.fun


def valley(x):
    """A quartic bowl, elongated, with its minimum of one at 0, 1, 0, 1, ..."""
    target = np.arange(len(x)) % 2
    weight = np.geomspace(0.1, 10.0, len(x)) / len(x)
    off = x - target
    value = 1.0 + weight @ (off**2 + 0.1 * off**4)
    return value, weight * (2.0 * off + 0.4 * off**3)


def test_the_last_steps_stand_for_the_matrix():
    """As long as none is forgotten, both are the same B."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 30))
    hessian = A @ A.T / 30 + np.eye(30)
    matrix, last = _Matrix(0.7 * np.eye(30)), _LastSteps(30, 0.7)
    for _ in range(8):
        s = rng.normal(size=30)
        matrix = matrix.updated(s, hessian @ s)
        last = replace(last.updated(s, hessian @ s), size=0.7)
    g, free = rng.normal(size=30), np.arange(30)
    np.testing.assert_allclose(last.times(g, free), matrix.times(g, free), rtol=1e-9)


def test_many_coordinates_take_little_memory():
    start, bounds = np.full(3000, 0.5), np.tile([-2.0, 0.8], (3000, 1))
    result = BFGS().minimize(valley, start, bounds)
    assert result.success and isinstance(result.hess_inv, _LastSteps)
    few = BFGS().minimize(valley, start[:400], bounds[:400])
    assert few.success and few.hess_inv.shape == (400, 400)
    # At the bound 0.8 every second entry is 0.2 away.
    assert result.fun < valley(np.minimum(np.arange(3000) % 2, 0.8))[0] + 1e-3
    again = BFGS().minimize(valley, result.x, bounds, result)
    assert again.nfev <= 3


def test_a_coordinate_that_leaves_its_bound_is_tried():
    """Its valley is long and flat: the slope there promises little in one step."""

    def fun(x):
        # At the start x[0] is held by its bound, and the first steps move x[1] alone.
        value = 1.0 + 0.0015 * x[0] ** 2 + 0.02 * x[0] * x[1] + 0.25 * x[1] ** 2
        slope = np.array([0.003 * x[0] + 0.02 * x[1], 0.02 * x[0] + 0.5 * x[1]])
        return value, slope

    found = BFGS().minimize(fun, [3.0, -1.0], bounds=[(-3.0, 3.0), (-3.0, 3.0)])
    assert found.status == 0
    assert found.fun < 1.001 and abs(found.x[0]) < 1.0
