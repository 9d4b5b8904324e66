"""Convolution as matrix products, against loops and SciPy."""

import numpy as np
import pytest
from scipy.signal import correlate

from bisvm.published.bilinear.patches import Patches

SHAPES = [
    ((9,), (4,)),
    ((7, 6), (3, 2)),
    ((7, 6), (7, 6)),
    ((6, 5, 3), (3, 2)),
    ((6, 5, 3), (2, 2, 2)),
    ((12, 4), (3, 3)),  # three stacked planes of 4 x 4
]


def cmt(image: np.ndarray, p: int, q: int) -> np.ndarray:
    """The seed's Algorithm 3, loop by loop."""
    m, n = image.shape
    X = np.zeros(((m - p + 1) * (n - q + 1), p * q))
    for i in range(m - p + 1):
        for j in range(n - q + 1):
            for k in range(p):
                for l in range(q):
                    X[i * (n - q + 1) + j, k * q + l] = image[i + k, j + l]
    return X


def test_the_matrix_is_that_of_algorithm_3():
    image = np.random.default_rng(0).normal(size=(7, 6))
    patches = Patches((7, 6), (3, 2))
    np.testing.assert_array_equal(patches.matrix(image.ravel()), cmt(image, 3, 2))


@pytest.mark.parametrize(("image_shape", "filter_shape"), SHAPES)
def test_all_ways_to_convolve_agree(image_shape, filter_shape):
    rng = np.random.default_rng(1)
    patches = Patches(image_shape, filter_shape)
    X = rng.normal(size=(4, patches.n_pixels))
    maps = rng.normal(size=(2, patches.n_positions))
    filters = rng.normal(size=(2, patches.n_entries))
    by_scipy = np.array(
        [
            [
                correlate(
                    x.reshape(image_shape), f.reshape(patches.filter_shape), "valid"
                ).ravel()
                for f in filters
            ]
            for x in X
        ]
    )
    features = (X @ patches.filtering(filters)).reshape(by_scipy.shape)
    np.testing.assert_allclose(features, by_scipy, atol=1e-12)
    values = np.einsum("ikp,kp->i", by_scipy, maps)
    by_filter = X @ patches.weighing(maps) @ filters.ravel()
    np.testing.assert_allclose(by_filter, values)
    np.testing.assert_allclose(X @ patches.template(maps, filters), values)


@pytest.mark.parametrize(
    ("image_shape", "filter_shape", "map_shape"),
    [
        ((9,), (4,), (6,)),
        ((28, 28), (5, 5), (24, 24)),
        ((32, 32, 3), (5, 5), (28, 28)),
        ((6, 5, 3), (2, 2, 2), (5, 4, 2)),
    ],
)
def test_shapes(image_shape, filter_shape, map_shape):
    patches = Patches(image_shape, filter_shape)
    assert patches.map_shape == map_shape
    assert patches.pixels.shape == (patches.n_positions, patches.n_entries)


@pytest.mark.parametrize(
    ("image_shape", "filter_shape", "message"),
    [
        ((4, 4), (5, 5), "does not fit into an image of shape"),
        ((20,), (5, 5), "has 2 axes, the image"),
        ((4, 0), (1, 1), "image_shape must be one to three positive integers"),
        ((4, 4), (1.5, 1), "filter_shape must be one to three positive integers"),
        ((4, 4), 3, "filter_shape must be one to three positive integers"),
    ],
)
def test_shapes_that_make_no_sense(image_shape, filter_shape, message):
    with pytest.raises(ValueError, match=message):
        Patches(image_shape, filter_shape)
