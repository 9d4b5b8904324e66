"""Losses of residuals: formulas, limits, derivatives by epsilon, names."""

import numpy as np
import pytest
from sklearn.linear_model import HuberRegressor, LinearRegression
from sklearn.metrics import mean_pinball_loss

from bisvm.losses import (
    LOSSES,
    RESIDUAL_LOSSES,
    Huber,
    Pinball,
    Quartic,
    SmoothEpsilonInsensitive,
    Squared,
    SquaredEpsilonInsensitive,
    get_loss,
    get_residual_loss,
)
from bisvm.testing import check_loss

EVERY = [
    Squared(),
    Huber(),
    Huber(1.3),
    SmoothEpsilonInsensitive(),
    SmoothEpsilonInsensitive(0.4),
    SmoothEpsilonInsensitive(0.4, rounding=1.0),
    SmoothEpsilonInsensitive(0.2, rounding=3.0),
    SmoothEpsilonInsensitive(0.01),
    SquaredEpsilonInsensitive(),
    SquaredEpsilonInsensitive(0.7),
    Pinball(),
    Pinball(0.9, 0.3),
    Pinball(0.05, 0.02),
]


@pytest.mark.parametrize("loss", EVERY, ids=repr)
def test_contract(loss):
    check_loss(loss)


@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_limits_are_the_losses_of_scikit_learn(epsilon):
    r = np.linspace(-2.0, 2.0, 41) + 0.01234
    beyond = np.maximum(np.abs(r) - epsilon, 0.0)
    sharp = SmoothEpsilonInsensitive(epsilon, rounding=1e-9)
    np.testing.assert_allclose(sharp.value(-r, 0.0), beyond, atol=1e-9)
    squared = SquaredEpsilonInsensitive(epsilon)
    np.testing.assert_allclose(squared.value(-r, 0.0), beyond**2, rtol=1e-14)
    for tau in (0.1, 0.5, 0.8):
        pinball = Pinball(tau, 1e-9).value(-r, 0.0).mean()
        expected = mean_pinball_loss(r, np.zeros_like(r), alpha=tau)
        assert pinball == pytest.approx(expected, rel=1e-9)


def test_rounded_tube_differs_from_the_tube_at_its_corners_only():
    loss = SmoothEpsilonInsensitive(0.4, rounding=0.25)
    r = np.array([0.0, 0.2999, 0.5001, 2.0])
    value, slope, curvature = loss.evaluate(-r, 0.0)
    np.testing.assert_allclose(value, [0.0, 0.0, 0.1001, 1.6], atol=1e-12)
    np.testing.assert_array_equal(slope, [0.0, 0.0, -1.0, -1.0])
    np.testing.assert_array_equal(curvature, 0.0)
    assert loss.evaluate(-0.4, 0.0)[2] > 0


def test_huber_minimises_what_huber_regressor_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X @ [1.0, -2.0] + rng.standard_t(2, size=200)
    twin = HuberRegressor(epsilon=1.5, alpha=0.0, tol=1e-10).fit(X, y)
    loss = Huber(1.5 * twin.scale_)

    def gradient(model):
        slope = loss.evaluate(model.predict(X), y)[1]
        return np.append(X.T @ slope, slope.sum())

    scale = np.abs(gradient(LinearRegression().fit(X, y))).max()
    assert np.abs(gradient(twin)).max() < 1e-3 * scale


def test_the_best_constant_of_the_pinball_loss_is_the_quantile():
    y = np.random.default_rng(1).exponential(size=2001)
    grid = np.linspace(0.0, 5.0, 2001)
    for tau in (0.2, 0.9):
        loss = Pinball(tau, 1e-3)
        mean = [loss.value(np.full_like(y, b), y).mean() for b in grid]
        assert grid[np.argmin(mean)] == pytest.approx(np.quantile(y, tau), abs=5e-3)


def test_epsilon_is_in_units_of_y():
    (parameter,) = SmoothEpsilonInsensitive().parameters(scale=20.0)
    assert parameter.name == "epsilon"
    assert parameter.value == pytest.approx(2.0)
    assert parameter.unit == 20.0
    assert parameter.bounds == (0.02, 20.0)
    inside = SmoothEpsilonInsensitive().with_values({"epsilon": 2.0}, 20.0)
    assert inside == SmoothEpsilonInsensitive(0.1)
    (given,) = Huber(1000.0).parameters(scale=20.0)
    assert given.value == 1000.0 == given.bounds[1]


def test_names_of_the_other_kind_say_what_to_use():
    for name in RESIDUAL_LOSSES:
        assert get_residual_loss(name) == RESIDUAL_LOSSES[name]()
        with pytest.raises(ValueError, match="BilevelSVR"):
            get_loss(name)
    for name in LOSSES:
        with pytest.raises(ValueError, match="BilevelSVC"):
            get_residual_loss(name)
    with pytest.raises(ValueError, match="BilevelSVR"):
        get_loss(Huber())
    with pytest.raises(ValueError, match="loss of class labels"):
        get_residual_loss(Quartic())
    with pytest.raises(ValueError, match="Did you mean 'huber'"):
        get_residual_loss("hubert")


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.inf, "auto", None])
def test_bad_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon must be a positive"):
        get_residual_loss(Huber(epsilon))


@pytest.mark.parametrize("quantile", [0.0, 1.0, 1.5, "median", None, True])
def test_bad_quantile(quantile):
    with pytest.raises(ValueError, match="between 0 and 1"):
        get_residual_loss(Pinball(quantile))
