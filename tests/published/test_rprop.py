"""RPROP: the published rule step by step, convergence, bounds."""

import numpy as np
import pytest

from bisvm.published import RPROP


def reference(gradient, x, n, lower, upper, step=0.1, up=1.2, down=0.5):
    """The update as printed, coordinate by coordinate; projected to the bounds."""
    x, steps, old = list(x), [step] * len(x), [0.0] * len(x)
    path = [tuple(x)]
    for _ in range(n):
        g = gradient(np.array(x))
        for d in range(len(x)):
            if g[d] * old[d] > 0:
                steps[d] = min(steps[d] * up, 1.0)
            elif g[d] * old[d] < 0:
                steps[d] = max(steps[d] * down, 1e-6)
            x[d] = min(max(x[d] - np.sign(g[d]) * steps[d], lower), upper)
        old = g
        path.append(tuple(x))
    return np.array(path)


def test_follows_the_published_rule():
    matrix, center = np.array([[1.0, 0.6], [0.6, 2.0]]), np.array([1.0, -0.5])
    path = []

    def fun(x):
        path.append(x.copy())
        r = x - center
        return 0.1 + 0.5 * r @ matrix @ r, matrix @ r

    RPROP(max_iter=25, tol=1e-5).minimize(fun, [-3.0, 2.0], [[-4.0, 4.0]] * 2)
    expected = reference(lambda x: matrix @ (x - center), [-3.0, 2.0], 25, -4.0, 4.0)
    np.testing.assert_allclose(path, expected, atol=1e-12)


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("start", [-6.0, 0.95, 4.0])
def test_reaches_the_precision_asked_for(start, tol):
    def fun(x):
        return 0.2 + np.cosh(x[0] - 1.0), np.sinh(x - 1.0)

    result = RPROP(tol=tol).minimize(fun, [start], [[-7.0, 7.0]])
    assert result.status == 0
    assert abs(result.x[0] - 1.0) < 2.0 * tol


def test_the_size_of_the_gradient_has_no_say():
    def run(power):
        def fun(x):
            r = x - np.array([1.0, -1.0])
            return 0.1 + np.sum(np.abs(r) ** power), power * np.sign(r) * np.abs(r) ** (
                power - 1
            )

        return RPROP().minimize(fun, [-3.0, 2.0], [[-4.0, 4.0]] * 2)

    assert run(1.5).nfev == run(4.0).nfev


def test_a_coordinate_at_its_bound_waits_there():
    """Its step must not grow in the meantime, and its bound must not block the rest."""

    def fun(x):
        r = np.array([x[0] - 9.0, x[1] - 1.0])
        return 0.1 + r @ r, 2.0 * r

    result = RPROP().minimize(fun, [3.9, -3.0], [[-4.0, 4.0]] * 2)
    assert result.status == 0
    np.testing.assert_allclose(result.x, [4.0, 1.0], atol=2e-3)


def test_all_coordinates_at_bounds_is_converged():
    result = RPROP().minimize(
        lambda x: (10.0 + x.sum(), np.ones(2)), [1.0, 2.0], [[-3.0, 4.0]] * 2
    )
    assert result.status == 0
    np.testing.assert_array_equal(result.x, [-3.0, -3.0])
    assert "projected gradient is zero" in result.message


def test_goes_back_with_half_the_step_from_a_value_that_is_not_finite():
    points = []

    def fun(x):
        points.append(x[0])
        bad = x[0] > 0.5
        return (np.nan if bad else (x[0] - 0.45) ** 2 + 1.0), 2.0 * (x - 0.45)

    result = RPROP(step=0.4).minimize(fun, [0.2], [[-5.0, 5.0]])
    np.testing.assert_allclose(points[:3], [0.2, 0.6, 0.4])
    assert result.status == 0
    assert result.x[0] == pytest.approx(0.45, abs=2e-3)
