"""Coordinates of a search: there and back, gradients, bounds."""

from dataclasses import replace

import numpy as np
import pytest

from bisvm.data.sample_groups import SampleGroups
from bisvm.data.scaling import column_scale
from bisvm.kernels import RBF
from bisvm.search.views import InUnits, Tied, Whole, is_tied, upper_gradient
from bisvm.testing.differences import central_difference
from bisvm.transforms import Convolution1D
from tests.problems import make_objective, toy_data
from tests.search.searches import make_search

X, y = toy_data(40)
SCALED = X * [1.0, 10.0, 0.1]


@pytest.fixture(scope="module")
def objective():
    return make_search((SCALED, y), kernel="ard").objective


def smooth(theta):
    """Any smooth function of theta, and its gradient."""
    a = np.arange(1.0, len(theta) + 1.0)
    return np.sin(a * theta).sum(), a * np.cos(a * theta)


@pytest.mark.parametrize("kind", [Whole, Tied, lambda s: InUnits(Tied(s))])
def test_gradients_are_pulled_back(objective, kind):
    view = kind(objective.space)
    x = view.reduce(objective.theta0) + 0.1
    theta = view.expand(x)
    found = view.pullback(theta, smooth(theta)[1])
    expected = central_difference(lambda z: smooth(view.expand(z))[0], x, 1e-4)
    np.testing.assert_allclose(found, np.ravel(expected), rtol=1e-7)


@pytest.mark.parametrize("kind", [Whole, Tied, lambda s: InUnits(Tied(s))])
def test_there_and_back(objective, kind):
    view = kind(objective.space)
    x = view.reduce(objective.theta0) + np.linspace(0.1, 0.3, len(view.bounds))
    np.testing.assert_allclose(view.reduce(view.expand(x)), x)
    assert view.bounds.shape == (len(x), 2)
    assert np.all(view.bounds[:, 0] < x) and np.all(x < view.bounds[:, 1])


def test_tied_widths_are_one_in_their_natural_units(objective):
    tied = Tied(objective.space)
    assert len(tied.reduce(objective.theta0)) == 2
    gamma = objective.hyperparameters(tied.expand(np.array([0.0, 0.5])))["gamma"]
    one = gamma * column_scale(SCALED) ** 2
    np.testing.assert_allclose(one, one[0])


def test_the_nearest_tied_point_is_the_mean(objective):
    tied = Tied(objective.space)
    moved = tied.expand(tied.reduce(objective.theta0))
    moved = moved + np.array([0.0, 1.0, 2.0, 3.0])
    assert not is_tied(objective.space, moved)
    nearest = tied.expand(tied.reduce(moved))
    assert is_tied(objective.space, nearest)
    np.testing.assert_allclose((moved - nearest)[1:], [-1.0, 0.0, 1.0])


def test_entries_at_a_bound_do_not_move_with_the_others():
    kernel = RBF(per_feature=True, gamma_bounds=(1e-4, 10.0))
    objective = make_objective(SCALED, y, kernel=kernel)
    tied = Tied(objective.space)
    low, high = objective.bounds.T
    # The third feature is measured in tenths: its gamma is the first at its bound.
    theta = tied.expand(np.array([0.0, tied.bounds[1, 1] - 2.0]))
    held = theta >= high
    assert 0 < held.sum() < 3 and np.all(theta >= low)
    pulled = tied.pullback(theta, np.ones(4))
    assert pulled.tolist() == [1.0, 3.0 - held.sum()]


def test_groups_may_stay_apart():
    groups = SampleGroups(np.array(["a", "b"]), np.arange(40) % 2)
    given = dict(kernel="ard", penalty="per_group", sample_groups=groups)
    space = make_objective(X, y, **given).space
    assert len(Tied(space).bounds) == 2
    apart = Tied(space, groups_apart=True)
    assert len(apart.bounds) == 3
    of_C = np.array([True, True, False, False, False])
    assert apart.holds(of_C).tolist() == [True, True, False]
    assert Tied(space).holds(of_C).sum() == 1


def test_steps_in_units_are_divided_by_the_natural_step():
    kernel = RBF() @ Convolution1D(n_filters=1, filter_shape=2, normalize="ball")
    space = make_objective(X, y, kernel=kernel).space
    whole = Whole(space)
    units = InUnits(whole)
    assert np.ptp(whole.sizes) > 0 and np.all(units.sizes == 1.0)
    theta = space.theta0
    np.testing.assert_allclose(units.reduce(theta) * whole.sizes, theta)
    ((entries, radius),) = units.balls
    assert radius * whole.sizes[entries[0]] == pytest.approx(whole.balls[0][1])


def test_a_pull_outward_at_a_bound_is_no_gradient(objective):
    view = Whole(objective.space)
    done, _ = objective.evaluate(objective.theta0)
    inside = upper_gradient(done, view)
    assert inside == pytest.approx(np.abs(done.gradient / done.value).max())
    corner = view.bounds[:, 0].copy()
    outward = replace(done, theta=corner, gradient=np.ones(4))
    assert upper_gradient(outward, view) == 0.0
    inward = replace(outward, gradient=-np.ones(4))
    assert upper_gradient(inward, view) == pytest.approx(1.0 / done.value)
