"""Scan: the lowest of several minima."""

import numpy as np
import pytest

from bisvm.optimizers import Scan


def two_valleys(x):
    """A shallow minimum near -3, the deep one near 4, flat far out."""
    a, b = np.exp(-((x[0] + 3.0) ** 2) / 4.0), np.exp(-((x[0] - 4.0) ** 2) / 9.0)
    value = 1.0 - 0.3 * a - 0.5 * b
    slope = 0.3 * a * (x[0] + 3.0) / 2.0 + 0.5 * b * (x[0] - 4.0) / 4.5
    return value, np.array([slope])


@pytest.mark.parametrize("start", [-6.0, -3.0, 0.0, 6.0])
def test_the_deep_minimum_is_found_from_either_side(start):
    scan = Scan(rise=1.0)
    result = scan.minimize(two_valleys, [start], [[-12.0, 12.0]])
    assert result.status == 0 and abs(result.x[0] - 4.0) < 0.1
    assert result.nfev < 30


def test_a_descent_would_have_stayed_in_the_shallow_one():
    result = Scan(spacing=0.5, rise=0.01).minimize(two_valleys, [-3.0], [[-12, 12]])
    assert abs(result.x[0] + 3.0) < 0.1


def test_a_minimum_at_a_bound():
    def line(x):
        return 2.0 + 0.1 * x[0], np.array([0.1])

    result = Scan().minimize(line, [1.0], [[-5.0, 5.0]])
    assert result.status == 0 and result.x[0] == -5.0


def test_several_coordinates_are_scanned_in_turn():
    target = np.array([1.0, -2.0])

    def bowl(x):
        r = x - target
        return 1.0 + r @ r + 0.5 * r[0] * r[1], 2 * r + 0.5 * r[::-1]

    result = Scan(ftol=1e-7).minimize(bowl, [4.0, 4.0], [[-9.0, 9.0]] * 2)
    assert result.status == 0
    np.testing.assert_allclose(result.x, target, atol=5e-2)


def test_the_limit_and_values_that_are_not_finite():
    result = Scan(max_iter=3).minimize(two_valleys, [0.0], [[-12, 12]])
    assert result.status == 1 and result.nfev == 3 and "limit" in result.message

    def cliff(x):
        value, slope = two_valleys(x)
        return (value if x[0] < 5.0 else np.nan), slope

    result = Scan().minimize(cliff, [0.0], [[-12, 12]])
    assert np.isfinite(result.fun) and result.x[0] < 5.0


def test_bad_arguments():
    for name in ("spacing", "rise", "ftol"):
        with pytest.raises(ValueError, match=name):
            Scan(**{name: 0.0}).minimize(two_valleys, [0.0])


def test_steps_of_a_walk_may_grow():
    seen = []

    def fun(x):
        seen.append(float(x[0]))
        return 1.0 + x[0] ** 2 / 100.0, x / 50.0

    Scan(spacing=0.25, growth=4.0, rise=10.0).minimize(fun, [0.0], [[-3.0, 9.0]])
    assert sorted(seen) == [-1.25, -0.25, 0.0, 0.25, 1.25]
