"""Scales, projections, nonlinearities and norms against their formulas."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.preprocessing import normalize

from bisvm.transforms import (
    Nonlinearity,
    Normalize,
    Parallel,
    Projection,
    Scale,
    features,
)

RNG = np.random.default_rng(11)


def test_principal_axes_as_sklearn():
    X = RNG.normal(size=(40, 6)) * np.arange(1, 7) + 100.0
    found = Projection(n_components=4).parameters(X)[0].value
    expected = PCA(4, svd_solver="full").fit(X).components_
    signs = np.sign(np.sum(found * expected, axis=1))
    np.testing.assert_allclose(found, expected * signs[:, None], atol=1e-10)
    largest = np.argmax(np.abs(found), axis=1)
    assert np.all(found[np.arange(4), largest] > 0)


def test_principal_axes_of_many_features(monkeypatch):
    X = RNG.normal(size=(30, 50)) * np.linspace(1.0, 9.0, 50) + 3.0
    few = features.principal_axes(X, 3)
    monkeypatch.setattr(features, "DENSE_FEATURES", 10)
    np.testing.assert_allclose(features.principal_axes(X, 3), few, atol=1e-8)
    thin = features.principal_axes(sparse.csr_array(X), 3)
    np.testing.assert_allclose(thin, few, atol=1e-8)


def test_weights_repeat_samples():
    X, weight = RNG.normal(size=(9, 4)), RNG.integers(0, 4, size=9)
    repeated = Projection(n_components=2).parameters(np.repeat(X, weight, axis=0))
    weighted = Projection(n_components=2).parameters(X, weight)
    np.testing.assert_allclose(weighted[0].value, repeated[0].value, atol=1e-12)


def test_a_settled_projection_is_a_matrix():
    X = RNG.normal(size=(9, 4))
    given = Projection(n_components=2)
    A = given.parameters(X)[0].value
    settled = given.with_values({"matrix": A})
    np.testing.assert_allclose(settled(X[:3]), X[:3] @ A.T)
    assert given.matrix is None


def test_scale_stays_sparse():
    X = sparse.csr_array(np.arange(20.0).reshape(5, 4) % 3)
    scale = np.array([1.0, 2.0, 3.0, 4.0])
    found = Scale(scale, per_feature=True)(X)
    assert sparse.issparse(found)
    np.testing.assert_allclose(found.toarray(), X.toarray() * scale)
    both = Parallel((Scale(), Scale(2.0)))(X)
    assert sparse.issparse(both)
    assert both.shape == (5, 8)


def test_scales_are_measured_in_deviations():
    X = RNG.normal(size=(50, 3)) * [1.0, 10.0, 100.0]
    (parameter,) = Scale(per_feature=True).parameters(X)
    np.testing.assert_allclose(parameter.unit, 1.0 / X.std(axis=0))
    assert Scale().parameters(X)[0].value == 1.0


@pytest.mark.parametrize(
    ("kind", "twin"),
    [
        ("identity", lambda x: x),
        ("relu", lambda x: np.where(x > 0, x, 0)),
        ("softplus", lambda x: np.log(1 + np.exp(x))),
        ("abs", lambda x: np.sqrt(x * x)),
        ("square", lambda x: x * x),
        ("tanh", lambda x: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1)),
        ("log", lambda x: np.where(x > 0, np.log(1 + abs(x)), -np.log(1 + abs(x)))),
    ],
)
def test_functions(kind, twin):
    x = np.linspace(-3.0, 3.0, 25).reshape(5, 5)
    np.testing.assert_allclose(Nonlinearity(kind)(x), twin(x), atol=1e-14)


def test_root_is_the_signed_root_away_from_zero():
    x = np.array([[-9.0, -4.0, -1.0, 0.0, 0.25, 16.0]])
    found = Nonlinearity("root")(x)
    np.testing.assert_allclose(found, np.sign(x) * np.sqrt(np.abs(x)), rtol=1e-3)
    slope = Nonlinearity("root").pullback(x, np.ones(x.shape)).X
    assert np.all(np.isfinite(slope))


def test_large_values_do_not_overflow():
    x = np.array([[-1e6, 1e6]])
    with np.errstate(all="raise", under="ignore"):
        for kind in ("softplus", "tanh"):
            z = Nonlinearity(kind)
            assert np.all(np.isfinite(z(x)))
            assert np.all(np.isfinite(z.pullback(x, x).X))


def test_normalize_as_sklearn():
    X = RNG.normal(size=(5, 4, 3))
    np.testing.assert_allclose(
        Normalize(eps=1e-30)(X).reshape(5, -1), normalize(X.reshape(5, -1))
    )
    np.testing.assert_allclose(
        Normalize("channels", eps=1e-30)(X).reshape(20, 3), normalize(X.reshape(20, 3))
    )
    assert np.all(Normalize()(np.zeros((2, 3))) == 0.0)


def test_contrast_is_free_of_brightness_and_scale():
    X = RNG.normal(size=(4, 10))
    contrast = Normalize(center=True, eps=1e-30)
    np.testing.assert_allclose(contrast(3.0 * X + 7.0), contrast(X), atol=1e-12)


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (Scale(-1.0), "scale must be positive and finite, got -1.0"),
        (Scale([1.0, 2.0]), "use per_feature=True"),
        (Scale([1.0, 2.0], per_feature=True), "2 values, but the samples of X have 3"),
        (Projection(), "needs a matrix or n_components"),
        (Projection(n_components=0), "n_components must be an integer"),
        (Projection(n_components=4), "no 4 principal axes; use fewer components"),
        (Projection(np.ones(3)), "got an array of shape (3,)"),
        (Projection(np.ones((2, 5))), "matrix has 5 columns"),
        (Nonlinearity("rely"), "Did you mean 'relu'?"),
        (Nonlinearity(3), "kind must be one of 'identity', 'relu'"),
        (Normalize("channel"), "Did you mean 'channels'?"),
        (Normalize(eps=0.0), "eps must be a positive"),
    ],
)
def test_bad_input(transform, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        transform(np.ones((5, 3)))
