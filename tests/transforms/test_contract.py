"""Every transform keeps its contract, in several settings."""

import numpy as np
import pytest

from bisvm.testing import check_transform
from bisvm.transforms import (
    Convolution1D,
    Convolution2D,
    Nonlinearity,
    Normalize,
    Parallel,
    Pool1D,
    Pool2D,
    Projection,
    Scale,
)
from bisvm.transforms.nonlinear import FUNCTIONS

RNG = np.random.default_rng(7)
ROWS = RNG.normal(size=(6, 12))
SIGNALS = RNG.normal(size=(3, 13))
CHANNELS = RNG.normal(size=(3, 9, 2))
IMAGES = RNG.normal(size=(3, 6, 7))
COLOURS = RNG.normal(size=(2, 5, 6, 3))

DENSE_AND_SPARSE = {
    "scale": Scale(0.7),
    "scales": Scale(per_feature=True),
    "given scales": Scale(np.linspace(0.5, 2.0, 12), per_feature=True),
    "pca": Projection(n_components=3),
    "matrix": Projection(RNG.normal(size=(15, 12))),
    "both": Parallel((Scale(2.0), Projection(n_components=2))),
}

SHAPED = {
    "scale": (Scale(per_feature=True), IMAGES),
    "projection": (Projection(n_components=2), IMAGES),
    "one filter": (Convolution1D(n_filters=1, filter_shape=3), SIGNALS),
    "same": (Convolution1D(n_filters=3, filter_shape=4, padding="same"), SIGNALS),
    "stride": (Convolution1D(start="random", stride=3), SIGNALS),
    "same, stride": (
        Convolution1D(filter_shape=6, padding="same", stride=2, normalize="ball"),
        SIGNALS,
    ),
    "channels": (Convolution1D(start="delta", filter_shape=3), CHANNELS),
    "given": (Convolution1D(RNG.normal(size=(2, 3, 2)), normalize="ball"), CHANNELS),
    "images": (Convolution2D(filter_shape=3), IMAGES),
    "patches": (Convolution2D(start="patches", filter_shape=(2, 3)), IMAGES),
    "wide": (Convolution2D(filter_shape=(1, 4), padding="same", stride=(2, 1)), IMAGES),
    "colours": (Convolution2D(start="patches", filter_shape=2), COLOURS),
    "colours, same": (
        Convolution2D(start="random", filter_shape=(4, 3), padding="same", stride=2),
        COLOURS,
    ),
    "flat": (
        Convolution2D(n_filters=2, filter_shape=2, shape=(3, 4)),
        RNG.normal(size=(3, 12)),
    ),
    "sizes": (
        Parallel(
            (
                Convolution2D(n_filters=2, filter_shape=2, padding="same"),
                Convolution2D(n_filters=1, filter_shape=3, padding="same"),
            )
        ),
        IMAGES,
    ),
    "flattened": (
        Parallel((Convolution2D(n_filters=1), Pool2D(3), Nonlinearity("identity"))),
        IMAGES,
    ),
    "normalize": (Normalize(), COLOURS),
    "normalize channels": (Normalize("channels", center=True, eps=1e-3), COLOURS),
    "contrast": (Normalize(center=True), ROWS),
}


@pytest.mark.parametrize("name", DENSE_AND_SPARSE)
def test_rows(name):
    check_transform(DENSE_AND_SPARSE[name], ROWS, sparse=True)


@pytest.mark.parametrize("name", SHAPED)
def test_shaped(name):
    check_transform(*SHAPED[name])


@pytest.mark.parametrize("kind", ["mean", "max", "energy"])
@pytest.mark.parametrize("stride", [None, 1, 3])
def test_pooling(kind, stride):
    check_transform(Pool1D(2, kind, stride=stride), SIGNALS)
    check_transform(Pool1D(4, kind, stride=stride), CHANNELS[:2])
    check_transform(Pool2D((2, 3), kind, stride=stride), IMAGES[:2])
    check_transform(Pool2D(3, kind, stride=stride), COLOURS[:, :4, :5])


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_nonlinearity(kind):
    # Away from the kinks, and from the bend of the smoothed root.
    X = np.where(np.abs(ROWS) < 0.1, 0.3, ROWS)
    check_transform(Nonlinearity(kind), X)


def test_cotangents_may_be_flat():
    """A kernel behind the transform sees, and gives back, rows."""
    for transform, X in SHAPED.values():
        cotangent = RNG.normal(size=transform(X).shape)
        flat = transform.pullback(X, cotangent.reshape(len(X), -1))
        shaped = transform.pullback(X, cotangent)
        np.testing.assert_array_equal(flat.X, shaped.X)
        np.testing.assert_array_equal(flat.theta, shaped.theta)


class Wrong(Nonlinearity):
    def pullback(self, X, cotangent, *, inputs=True):
        return super().pullback(X, 1.001 * cotangent, inputs=inputs)


class Mixing(Nonlinearity):
    def apply(self, X):
        return super().apply(X - X.mean(axis=0))


class Writing(Nonlinearity):
    def apply(self, X):
        X[:] = 1.0
        return X


def test_violations_are_found():
    with pytest.raises(AssertionError, match="relative error"):
        check_transform(Wrong("tanh"))
    with pytest.raises(AssertionError, match="one by one"):
        check_transform(Mixing("tanh"))
    with pytest.raises(AssertionError, match="changed X"):
        check_transform(Writing("tanh"))
