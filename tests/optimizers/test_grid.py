"""Grid search: the lattice, its values, its limits."""

import numpy as np
import pytest

from bisvm.optimizers import Grid


def bowl(x):
    r = x - np.array([1.0, -1.0])
    return 0.2 + r @ r, 2.0 * r


def test_evaluates_the_cartesian_product():
    bounds = [[-2.0, 2.0], [-3.0, 1.0]]
    result = Grid(points=[5, 3]).minimize(bowl, [0.0, 0.0], bounds)
    first, second = np.linspace(-2, 2, 5), np.linspace(-3, 1, 3)
    expected = [(a, b) for a in first for b in second]
    np.testing.assert_allclose(result.grid_points, expected)
    np.testing.assert_allclose(
        result.grid_values, [bowl(np.array(p))[0] for p in expected]
    )
    np.testing.assert_allclose(result.x, [1.0, -1.0])
    assert result.fun == result.grid_values.min() == 0.2
    assert result.nfev == 15
    np.testing.assert_array_equal(result.jac, [0.0, 0.0])


def test_one_number_serves_all_coordinates():
    result = Grid(points=4).minimize(bowl, [0.0, 0.0], [[-2.0, 2.0]] * 2)
    assert result.grid_points.shape == (16, 2)


def test_one_point_keeps_the_start():
    result = Grid(points=[1, 3]).minimize(bowl, [0.3, 0.0], [[-2.0, 2.0]] * 2)
    np.testing.assert_array_equal(result.grid_points[:, 0], 0.3)


def test_coinciding_bounds_take_one_point():
    result = Grid(points=10).minimize(bowl, [0.0, 0.0], [[-2.0, 2.0], [0.5, 0.5]])
    assert result.grid_points.shape == (10, 2)


def test_too_many_points_are_refused_before_the_first():
    def never(x):
        raise AssertionError("evaluated")

    with pytest.raises(ValueError, match=r"10 x 10 x 10 = 1000 points.*max_points=999"):
        Grid(max_points=999).minimize(never, np.zeros(3), [[0.0, 1.0]] * 3)
    with pytest.raises(ValueError, match=f"= {10**30} points"):
        Grid().minimize(never, np.zeros(30), [[0.0, 1.0]] * 30)


def test_values_that_are_not_finite_are_kept_and_never_win():
    def fun(x):
        value, gradient = bowl(x)
        return (-np.inf if x[0] < 0.0 else value), gradient

    result = Grid(points=5).minimize(fun, [0.0, 0.0], [[-2.0, 2.0], [-2.0, 2.0]])
    assert np.isinf(result.grid_values).sum() == 10
    np.testing.assert_allclose(result.x, [1.0, -1.0])


def test_needs_finite_bounds():
    with pytest.raises(ValueError, match=r"finite bounds; bounds\[1\] = \(0, inf\)"):
        Grid().minimize(bowl, [0.0, 0.0], [[0.0, 1.0], [0.0, np.inf]])


def test_needs_one_number_per_coordinate():
    with pytest.raises(ValueError, match="points has 3 entries for 2 coordinates"):
        Grid(points=[2, 2, 2]).minimize(bowl, [0.0, 0.0], [[0.0, 1.0]] * 2)
