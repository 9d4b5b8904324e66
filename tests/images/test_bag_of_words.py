"""Histograms of visual words: what they count, and what they refuse."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.pipeline import make_pipeline

from bisvm import BilevelLinearSVC
from bisvm.images import BagOfVisualWords, DenseSIFT
from bisvm.images.bag_of_words import as_images

try:
    import cv2  # noqa: F401
except ImportError:
    missing = True
else:
    missing = False

needs_opencv = pytest.mark.skipif(
    missing, reason="OpenCV is not installed: pip install 'bisvm[images]'"
)
SMALL = {"n_words": 12, "scales": (3, 5), "step": 4, "random_state": 0}


def bars(n, direction, rng, side=28):
    """Images of a few bright bars, all along axis 0 or all along axis 1."""
    images = rng.integers(0, 20, (n, side, side))
    for image in images:
        canvas = image if direction == 0 else image.T
        for place in rng.integers(2, side - 4, 3):
            canvas[:, place : place + 2] += 180
    return images.astype(np.uint8)


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    return np.concatenate([bars(12, direction, rng) for direction in (0, 1)])


@pytest.fixture(scope="module")
def words(images):
    return BagOfVisualWords(**SMALL).fit(images)


# --- what comes out -------------------------------------------------------------------


@needs_opencv
@pytest.mark.parametrize(
    "grids, cells", [(((1, 1),), 1), (((1, 1), (2, 2)), 5), (((3, 2),), 6)]
)
def test_every_cell_has_a_histogram(images, grids, cells):
    words = BagOfVisualWords(**SMALL, grids=grids)
    histograms = words.fit_transform(images)
    assert histograms.shape == (len(images), 12 * cells)
    assert words.vocabulary_.shape == (12, 128)
    names = words.get_feature_names_out()
    assert len(set(names)) == histograms.shape[1]
    assert words.n_features_in_ == 28 * 28


@needs_opencv
def test_histograms_sum_to_one_and_grids_have_equal_weight(words, images):
    histograms = words.transform(images)
    assert histograms.min() >= 0
    np.testing.assert_allclose(histograms.sum(axis=1), 1)
    whole, quarters = histograms[:, :12], histograms[:, 12:].reshape(-1, 4, 12)
    np.testing.assert_allclose(whole, quarters.sum(axis=1))


@needs_opencv
def test_roots_have_unit_length(words, images):
    roots = clone(words).set_params(normalize="root").fit(images).transform(images)
    np.testing.assert_allclose(roots**2, words.transform(images), atol=1e-15)


@needs_opencv
def test_names_tell_grid_cell_and_word(words):
    names = words.get_feature_names_out()
    assert names[3] == "grid1x1_cell0,0_word3"
    assert names[12 * 3 + 7] == "grid2x2_cell1,0_word7"


@needs_opencv
def test_same_random_state_same_words(words, images):
    again = clone(words).fit(images)
    np.testing.assert_array_equal(again.vocabulary_, words.vocabulary_)
    np.testing.assert_array_equal(again.transform(images), words.transform(images))
    other = clone(words).set_params(random_state=1).fit(images)
    assert not np.array_equal(other.vocabulary_, words.vocabulary_)


@needs_opencv
def test_an_image_has_the_same_words_in_any_company(words, images):
    np.testing.assert_array_equal(
        words.transform(images[5:6]), words.transform(images)[5:6]
    )


# --- what is counted ------------------------------------------------------------------


def shifted(down, right):
    """A blot of random pixels in the middle of a black image, moved."""
    blot = np.random.default_rng(1).integers(0, 255, (10, 10))
    image = np.zeros((80, 80), dtype=np.uint8)
    image[32 + down : 42 + down, 32 + right : 42 + right] = blot
    return image


@needs_opencv
def test_one_cell_forgets_the_place_and_four_do_not():
    """Moved by multiples of the step, all descriptors are met again elsewhere."""
    images = np.array([shifted(0, 0), shifted(8, -12), shifted(-16, 16)])
    histograms = BagOfVisualWords(**SMALL).fit(images).transform(images)
    whole, quarters = histograms[:, :12], histograms[:, 12:]
    assert len(np.unique(whole[0])) > 3
    np.testing.assert_array_equal(whole[1], whole[0])
    np.testing.assert_array_equal(whole[2], whole[0])
    assert np.abs(quarters[1] - quarters[0]).max() > 0.01


@needs_opencv
def test_contrast_and_brightness_do_not_matter(words, images):
    dim = (images // 2 + 40).astype(np.uint8)
    changed = np.abs(words.transform(dim) - words.transform(images)).sum(axis=1)
    assert changed.max() < 0.2


@needs_opencv
def test_points_cover_the_image_evenly():
    describe = DenseSIFT((21, 30), scales=(3, 4), step=5)
    points = describe.points
    assert len(points) == 2 * 5 * 6
    np.testing.assert_allclose(points.min(axis=0) + points.max(axis=0), [20, 29])
    assert points.min() >= 0


@needs_opencv
def test_descriptors_are_those_of_the_gradient():
    """Of an upright edge all directions but the two horizontal ones are empty."""
    image = np.zeros((32, 32), dtype=np.uint8)
    image[:, 16:] = 200
    for root in (False, True):
        descriptors = DenseSIFT((32, 32), (4,), 4, root)(image)
        by_direction = descriptors.reshape(-1, 16, 8).sum(axis=(0, 1))
        assert by_direction.argmax() == 0
        assert by_direction[2:7].max() < 0.05 * by_direction[0]
        norms = np.linalg.norm(descriptors, axis=1)
        assert norms.max() == pytest.approx(1, abs=0.01)


# --- what goes in ---------------------------------------------------------------------


@needs_opencv
def test_rows_of_pixels_are_images(words, images):
    flat = images.reshape(len(images), -1)
    by_rows = BagOfVisualWords((28, 28), **SMALL).fit(flat)
    np.testing.assert_array_equal(by_rows.transform(flat), words.transform(images))
    np.testing.assert_array_equal(words.transform(flat), words.transform(images))


@needs_opencv
def test_type_of_the_pixels_does_not_matter(words, images):
    expected = words.transform(images)
    np.testing.assert_array_equal(words.transform(images.astype(float)), expected)
    full = images.copy()
    full[0, 0, :2] = 0, 255
    unit = clone(words).fit(full / 255)
    np.testing.assert_array_equal(
        unit.transform(full / 255), clone(words).fit(full).transform(full)
    )


@needs_opencv
def test_colours_become_gray(words, images):
    colours = np.repeat(images[..., None], 3, axis=3)
    coloured = clone(words).fit(colours)
    np.testing.assert_allclose(coloured.transform(colours), words.transform(images))
    assert coloured.image_shape_ == (28, 28, 3)


@needs_opencv
@pytest.mark.parametrize("resize, size", [(56, (56, 42)), ((30, 40), (30, 40))])
def test_resize(resize, size):
    images = np.random.default_rng(0).integers(0, 255, (4, 28, 21)).astype(np.uint8)
    words = BagOfVisualWords(**SMALL, resize=resize).fit(images)
    assert words._size() == size
    np.testing.assert_allclose(words.transform(images).sum(axis=1), 1)


@needs_opencv
def test_words_tell_images_apart_in_a_pipeline(images):
    y = np.repeat([0, 1], 12)
    odd = np.arange(len(images)) % 2 == 1
    model = make_pipeline(
        BagOfVisualWords(**SMALL),
        AdditiveChi2Sampler(),
        BilevelLinearSVC(cv=3, random_state=0),
    )
    assert model.fit(images[odd], y[odd]).score(images[~odd], y[~odd]) == 1


# --- errors ---------------------------------------------------------------------------


@needs_opencv
@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"n_words": 0}, "'n_words' .* in the range .1, inf.. Got 0"),
        ({"n_descriptors": 1.5}, "'n_descriptors' .* must be an int .* Got 1.5"),
        ({"step": -1}, "'step' .* must be a float .* Got -1"),
        ({"scales": 4}, "'scales' .* must be an array-like. Got 4"),
        ({"scales": (4, 0)}, "expected positive widths, such as"),
        ({"grids": 2}, "'grids' .* must be an array-like. Got 2"),
        ({"grids": ()}, "expected pairs, such as"),
        ({"grids": ((1, 1), 2)}, "every one of grids must be two integers .* got 2"),
        ({"resize": (3.5, 2)}, "resize must be two integers .* got"),
        ({"resize": 0}, "'resize' .* in the range .1, inf.* Got 0"),
        ({"descriptor": "surf"}, "'descriptor' .* among .*'sift'.* Got 'surf'"),
        ({"normalize": "max"}, "'normalize' .* among .*'l1'.* Got 'max'"),
    ],
)
def test_arguments_that_make_no_sense(images, arguments, message):
    with pytest.raises(ValueError, match=message):
        BagOfVisualWords(**arguments).fit(images)


@pytest.mark.parametrize(
    "X, shape, message",
    [
        (np.zeros((3, 784)), None, r"rows of pixels.*image_shape=\(28, 28\)"),
        (np.zeros((3, 780)), (28, 28), "780 pixels; expected .* 784 pixels"),
        (np.zeros((3, 8, 8)), (28, 28), r"of shape \(8, 8\).*expected \(28, 28\)"),
        (np.zeros((3, 8, 8, 5)), None, "expected images of shape"),
        (np.zeros(8), None, "expected images of shape"),
        (np.full((3, 8, 8), np.nan), None, "NaN"),
        (np.zeros((0, 8, 8)), None, "0 sample"),
        ([np.zeros((3, 3)), np.zeros((4, 4))], None, "inhomogeneous"),
        (np.array([["a"]]), None, "dtype=.numeric.|not convert"),
    ],
)
def test_images_that_are_none(X, shape, message):
    with pytest.raises(ValueError, match=message):
        as_images(X, shape)


@needs_opencv
def test_more_words_than_descriptors(images):
    words = BagOfVisualWords(n_words=500, step=14, scales=(4,))
    with pytest.raises(ValueError, match="n_words=500, but only .* Ask for fewer"):
        words.fit(images)


@needs_opencv
def test_images_of_another_shape_than_those_seen(words):
    with pytest.raises(ValueError, match=r"expected \(28, 28\)"):
        words.transform(np.zeros((2, 30, 30)))


def test_not_fitted(images):
    with pytest.raises(NotFittedError):
        BagOfVisualWords().transform(images)


def test_missing_opencv_is_named(images, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError, match="pip install opencv-python-headless"):
        BagOfVisualWords().fit(images)
