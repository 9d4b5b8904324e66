"""Simplex: by values alone, over kinks."""

import numpy as np
import pytest

from bisvm.optimizers import BFGS, Simplex


def kinked(x):
    """A valley whose floor is a kink, along which it falls gently to (1, 1)."""
    across, along = x[0] - x[1], x[0] + x[1] - 2.0
    value = 1.0 + abs(across) + 0.05 * along**2
    slope = np.sign(across) * np.array([1.0, -1.0]) + 0.1 * along
    return value, slope


def test_it_goes_along_a_kink_where_gradients_end():
    bounds = [[-9.0, 9.0]] * 2
    stuck = BFGS().minimize(kinked, [-2.0, -1.5], bounds)
    result = Simplex(xtol=1e-3, ftol=1e-8, max_iter=300).minimize(
        kinked, stuck.x, bounds
    )
    assert result.success
    assert result.fun <= stuck.fun
    np.testing.assert_allclose(result.x, [1.0, 1.0], atol=0.02)


@pytest.mark.parametrize("edge", [0.4, -0.4])
@pytest.mark.parametrize("start", [[1.5, 3.0], [-3.0, -3.0]])
def test_it_stays_within_bounds(edge, start):
    seen = []

    def watched(x):
        seen.append(x)
        return kinked(x)

    result = Simplex(edge=edge).minimize(watched, start, [[-3.0, 1.5], [-3.0, 3.0]])
    assert np.all(np.array(seen) >= -3.0)
    assert np.all(np.array(seen) <= [1.5, 3.0])
    assert result.fun < 1.1


def test_the_limit_of_evaluations_holds():
    result = Simplex(max_iter=7).minimize(kinked, [-2.0, 2.0], [[-9.0, 9.0]] * 2)
    assert not result.success
    assert result.status == 1
    assert result.nfev <= 7


def test_values_that_are_not_finite_are_walls():
    def cliff(x):
        return (np.nan, np.zeros(2)) if x[0] > 0.5 else kinked(x)

    result = Simplex().minimize(cliff, [0.0, 0.0], [[-9.0, 9.0]] * 2)
    assert result.x[0] <= 0.5
    assert np.isfinite(result.fun)


def test_an_edge_of_no_length_is_refused():
    with pytest.raises(ValueError, match="edge"):
        Simplex(edge=0.0).minimize(kinked, [0.0, 0.0])
