"""Losses: derivatives, convexity, limits, numerical safety, value-object behaviour."""

import math

import numpy as np
import pytest
from sklearn.base import clone

from bisvm.losses import (
    LOSSES,
    Hinge,
    Logistic,
    Loss,
    ModifiedLog,
    Quartic,
    SquaredHinge,
    get_loss,
)

EVERY = [
    Quartic(),
    Quartic(eps=0.4),
    Quartic(eps=1e-3),
    Quartic(eps=2.0),
    ModifiedLog(),
    ModifiedLog(mu=1.0),
    ModifiedLog(mu=64.0),
    SquaredHinge(),
    Logistic(),
    Hinge(),
]
SMOOTH = [loss for loss in EVERY if loss.twice_differentiable]


REFERENCES = {
    Quartic: lambda u, loss: np.piecewise(
        u,
        [u <= 1 - loss.eps, u >= 1 + loss.eps],
        [lambda u: 1 - u, 0.0, lambda u: _corner((1 - u) / loss.eps, loss.eps)],
    ),
    ModifiedLog: lambda u, loss: np.logaddexp(0.0, loss.mu * (1 - u)) / loss.mu,
    SquaredHinge: lambda u, loss: np.maximum(1 - u, 0.0) ** 2,
    Logistic: lambda u, loss: np.logaddexp(0.0, -u),
    Hinge: lambda u, loss: np.maximum(1 - u, 0.0),
}


def _corner(s, eps):
    return eps * (3 + 8 * s + 6 * s**2 - s**4) / 16


@pytest.mark.parametrize("loss", EVERY, ids=repr)
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e100])
def test_values_are_those_of_the_formula_in_numpy(loss, scale):
    u = scale * np.random.default_rng(1).normal(1.0, 1.0, 200)
    u[:3] = 1.0, -1.0, 1.125
    expected = REFERENCES[type(loss)](u, loss)
    np.testing.assert_allclose(loss.value(u, 1.0), expected, rtol=1e-12, atol=1e-14)


def difference(f, u, h):
    """Fourth-order central difference of f at u."""
    near, far = f(u + h) - f(u - h), f(u + 2 * h) - f(u - 2 * h)
    return (8.0 * near - far) / (12.0 * h)


def probes(loss: Loss) -> np.ndarray:
    """Margins in every branch and close to, but not on, every joint."""
    if isinstance(loss, Quartic):
        s = np.array([-3.0, -1.01, -0.99, -0.5, 0.0, 0.3, 0.99, 1.01, 1.5, 8.0])
        return 1.0 - loss.eps * s
    if isinstance(loss, ModifiedLog):
        return 1.0 + np.array([-6.0, -1.0, 0.0, 0.5, 1.0, 4.0]) / loss.mu
    return np.array([-5.0, -1.0, 0.0, 0.5, 0.99, 1.01, 1.5, 6.0])


@pytest.mark.parametrize("loss", EVERY, ids=repr)
def test_slope_is_the_derivative_of_the_value(loss):
    u = probes(loss)
    h = 1e-3 * getattr(loss, "eps", 1.0 / getattr(loss, "mu", 1.0))
    slope = loss.evaluate(u, 1.0)[1]
    expected = difference(lambda u: loss.value(u, 1.0), u, h)
    # Errors count per point, so that no large slope hides a small wrong one.
    np.testing.assert_allclose(slope, expected, rtol=5e-6, atol=1e-11)
    assert np.linalg.norm(slope) > 0.5


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_curvature_is_the_derivative_of_the_slope(loss):
    u = probes(loss)
    h = 1e-3 * getattr(loss, "eps", 1.0 / getattr(loss, "mu", 1.0))
    curvature = loss.evaluate(u, 1.0)[2]
    expected = difference(lambda u: loss.evaluate(u, 1.0)[1], u, h)
    scale = loss.max_curvature
    np.testing.assert_allclose(curvature / scale, expected / scale, 5e-6, 1e-11)
    assert np.linalg.norm(curvature) > 0.1 * scale


@pytest.mark.parametrize("loss", EVERY, ids=repr)
def test_convex_and_decreasing(loss):
    u = np.linspace(-4.0, 6.0, 20_001)
    value, slope, curvature = loss.evaluate(u, 1.0)
    assert (value >= 0.0).all()
    assert (slope <= 0.0).all()
    assert (curvature >= 0.0).all()
    assert (np.diff(value) <= 0.0).all()
    assert (np.diff(slope) >= -1e-15).all()
    assert curvature.max() <= loss.max_curvature * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_peak_is_where_the_curvature_is_largest(loss):
    assert loss.evaluate(loss.peak, 1.0)[2] == pytest.approx(
        loss.max_curvature, rel=1e-12
    )


@pytest.mark.parametrize("eps", [1e-3, 0.125, 0.4, 2.0])
def test_quartic_is_continuous_at_its_joints(eps):
    loss = Quartic(eps)
    for joint in (1.0 - eps, 1.0 + eps):
        below, above = np.nextafter(joint, -9.0), np.nextafter(joint, 9.0)
        for left, right in zip(
            loss.evaluate(below, 1.0), loss.evaluate(above, 1.0), strict=True
        ):
            # One rounding error of u is 1e-16 / eps^2 in the curvature.
            assert left == pytest.approx(right, abs=1e-14 / eps**2)


@pytest.mark.parametrize("eps", [0.1, 0.125, 0.25, 0.4])
def test_quartic_agrees_with_the_published_coefficients(eps):
    """Table 2.1 of the thesis gives the polynomial in u; ours is written in s."""
    a = (3 * eps**4 + 8 * eps**3 + 6 * eps**2 - 1) / (16 * eps**3)
    b = -(2 * eps**3 + 3 * eps**2 - 1) / (4 * eps**3)
    c = 3 * (eps**2 - 1) / (8 * eps**3)
    d = 1 / (4 * eps**3)
    e = -1 / (16 * eps**3)
    published = np.polynomial.Polynomial([a, b, c, d, e])
    u = np.linspace(1.0 - eps, 1.0 + eps, 101)
    value, slope, curvature = Quartic(eps).evaluate(u, 1.0)
    tolerance = 1e-12 / eps**3
    np.testing.assert_allclose(value, published(u), atol=tolerance)
    np.testing.assert_allclose(slope, published.deriv()(u), atol=tolerance)
    np.testing.assert_allclose(curvature, published.deriv(2)(u), atol=tolerance)
    # Its case (1), printed as 1 - eps <= u, can only mean the other side.
    np.testing.assert_allclose(Quartic(eps).value([-2.0, 0.0], 1.0), [3.0, 1.0], 1e-15)
    assert Quartic(eps).value(1.0 + 2 * eps, 1.0) == 0.0


def test_quartic_has_no_curvature_outside_its_corner():
    u = np.concatenate([np.linspace(-5, 0.875, 100), np.linspace(1.125, 5, 100)])
    assert not Quartic(0.125).evaluate(u, 1.0)[2].any()


@pytest.mark.parametrize(
    "family", [lambda k: Quartic(2.0**-k), lambda k: ModifiedLog(2.0**k)]
)
def test_smoothed_losses_approach_the_hinge(family):
    u = np.linspace(-3.0, 4.0, 1401)
    hinge = Hinge().value(u, 1.0)
    gaps = [np.abs(family(k).value(u, 1.0) - hinge).max() for k in range(12)]
    ratios = np.array(gaps[1:]) / np.array(gaps[:-1])
    np.testing.assert_allclose(ratios, 0.5, rtol=1e-6)
    away = np.abs(u - 1.0) > 0.1
    slope = family(11).evaluate(u, 1.0)[1]
    np.testing.assert_allclose(
        slope[away], Hinge().evaluate(u, 1.0)[1][away], atol=1e-12
    )


@pytest.mark.parametrize("loss", EVERY, ids=repr)
@pytest.mark.filterwarnings("error")
def test_safe_at_huge_margins(loss):
    u = np.array([-np.inf, -1e300, -1e8, -750.0, 750.0, 1e8, 1e300, np.inf])
    with np.errstate(all="raise"):
        value, slope, curvature = loss.evaluate(u, 1.0)
        np.testing.assert_array_equal(loss.value(u, 1.0), value)
    for array in (value, slope, curvature):
        assert not np.isnan(array).any()
    assert np.isinf(value[0])
    assert (value[5:] == 0.0).all()
    assert (slope[5:] == 0.0).all()
    assert (curvature[4:] <= 1e-300).all()
    if not isinstance(loss, SquaredHinge):
        np.testing.assert_allclose(slope[:3], -1.0)
        assert value[2] == pytest.approx(1e8)
        assert (curvature[:3] == 0.0).all()


def test_tails_keep_their_relative_precision():
    value, slope, curvature = Logistic().evaluate(np.array([300.0]), 1.0)
    for array in (value, -slope, curvature):
        assert array[0] == pytest.approx(math.exp(-300.0), rel=1e-13)


@pytest.mark.parametrize("loss", EVERY, ids=repr)
def test_nan_stays_nan(loss):
    assert np.isnan(loss.value(np.array([0.0, np.nan]), 1.0)[1])


@pytest.mark.parametrize("loss", EVERY, ids=repr)
@pytest.mark.parametrize("layout", ["C", "F", "strided", "broadcast"])
def test_large_arrays_are_evaluated_like_small_ones(loss, layout):
    u = np.random.default_rng(0).normal(1.0, 1.0, (300, 80))
    if layout == "F":
        u = np.asfortranarray(u)
    elif layout == "strided":
        u = u[::-2].T[1:]
    elif layout == "broadcast":
        u = np.broadcast_to(u[:, :1], u.shape)
    before = u.copy()
    results = loss.evaluate(u, 1.0)
    np.testing.assert_array_equal(u, before)
    np.testing.assert_array_equal(loss.value(u, 1.0), results[0])
    rows = [loss.evaluate(row, 1.0) for row in u]
    for k, result in enumerate(results):
        assert result.shape == u.shape
        np.testing.assert_allclose(result, [row[k] for row in rows], rtol=1e-15)


@pytest.mark.parametrize("loss", EVERY, ids=repr)
def test_shape_and_precision_are_kept(loss):
    for given in (0, [1, 2], np.float32([0.5, 1.5]), np.zeros((2, 3)), np.zeros(0)):
        expected = given.dtype if isinstance(given, np.ndarray) else np.float64
        for result in loss.evaluate(given, 1.0):
            assert np.shape(result) == np.shape(given)
            assert result.dtype == expected


@pytest.mark.parametrize("loss", EVERY, ids=repr)
def test_weighted_losses_and_derivatives_along_a_direction(loss):
    rng = np.random.default_rng(0)
    F, V = rng.normal(size=(2, 30, 4))
    Y = np.where(rng.random(F.shape) < 0.5, 1.0, -1.0)
    W, t = rng.random(F.shape) * (rng.random(F.shape) < 0.8), rng.random(4)
    plain = [W * one for one in loss.evaluate(F + t * V, Y)]
    for layout in (np.ascontiguousarray, np.asfortranarray):
        arrays = [layout(array) for array in (F + t * V, Y, W)]
        for found, expected in zip(loss.weighted(*arrays), plain, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14)
    first, second = loss.derivatives_along(F, V, Y, W, t)
    np.testing.assert_allclose(first, (plain[1] * V).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(second, (plain[2] * V**2).sum(axis=0), rtol=1e-12)


def test_only_the_hinge_lacks_a_second_derivative():
    assert [n for n in LOSSES if not get_loss(n).twice_differentiable] == ["hinge"]
    assert math.isinf(Hinge().max_curvature)


def test_losses_are_value_objects():
    assert Quartic(eps=0.2) == clone(Quartic(eps=0.2)) != Quartic()
    assert Quartic(eps=0.2).get_params() == {"eps": 0.2}
    assert repr(ModifiedLog(mu=24)) == "ModifiedLog(mu=24)"
    assert SquaredHinge() != Hinge()
    assert len({Logistic(), Logistic()}) == 1


def test_get_loss_by_name_and_by_object():
    for name, kind in LOSSES.items():
        assert get_loss(name) == kind()
    loss = Quartic(eps=0.3)
    assert get_loss(loss) is loss


def test_unknown_losses_are_refused_with_the_valid_names():
    with pytest.raises(ValueError, match="'quartik'.*'quartic'.*'hinge'.*Did you mean"):
        get_loss("quartik")
    with pytest.raises(TypeError, match="loss must be one of 'quartic'"):
        get_loss(3)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan, "wide", None, True])
def test_bad_parameters_are_refused(bad):
    with pytest.raises(ValueError, match=r"Quartic: eps must be a positive.*got "):
        get_loss(Quartic(eps=bad))
    with pytest.raises(ValueError, match=r"ModifiedLog: mu must be a positive.*got "):
        get_loss(ModifiedLog(mu=bad))


@pytest.mark.parametrize("loss", EVERY, ids=repr)
def test_a_label_changes_the_sign_of_the_slope_alone(loss):
    u = probes(loss)
    y = np.where(np.arange(len(u)) % 2, 1.0, -1.0)
    value, slope, curvature = loss.evaluate(u, 1.0)
    both = loss.evaluate(y * u, y)
    for found, expected in zip(both, (value, y * slope, curvature), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_changed_loss_is_not_compiled():
    class Tenfold(SquaredHinge):
        def _evaluate(self, f, y):
            return tuple(10.0 * part for part in super()._evaluate(f, y))

    class Renamed(SquaredHinge):
        pass

    assert Renamed().compiled and not Tenfold().compiled
    F = np.random.default_rng(4).normal(size=(40, 3))
    Y, W = np.where(F > 0.3, 1.0, -1.0), np.full(F.shape, 0.5)
    for found, expected in zip(
        Tenfold().weighted(F, Y, W), SquaredHinge().weighted(F, Y, W), strict=True
    ):
        np.testing.assert_allclose(found, 10.0 * expected)


@pytest.mark.parametrize("loss", [Quartic(), ModifiedLog(), SquaredHinge(), Logistic()])
def test_the_secant_is_the_mean_curvature_nearby(loss):
    f, y = np.linspace(-2.0, 3.0, 41)[:, None], np.ones((41, 1))
    secant = loss.secant(f, y, np.full((41, 1), 2.0))
    nearby = np.linspace(-loss.reach, loss.reach, 20_001)
    mean = 2.0 * loss.evaluate(f + nearby, y)[2].mean(axis=1, keepdims=True)
    np.testing.assert_allclose(secant.curvature, mean, atol=1e-3)
    assert secant.by_parameters == []
    moved = [loss.secant(f + h, y, np.full((41, 1), 2.0)) for h in (1e-6, -1e-6)]
    slope = (moved[0].curvature - moved[1].curvature) / 2e-6
    np.testing.assert_allclose(secant.by_fitted, slope, atol=1e-3)
