"""Filters, what they let through, and feature maps."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from bisvm import BilevelSVC, ConvolutionalLinearSVC
from bisvm.kernels import RBF
from bisvm.plots import (
    FeatureMapsDisplay,
    FiltersData,
    FiltersDisplay,
    FrequencyResponseDisplay,
    feature_maps_data,
    filters_data,
)
from bisvm.plots.filters import LINE, SPECTRUM, responses
from bisvm.transforms import Convolution1D

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

DIGITS, LABELS = load_digits(n_class=3, return_X_y=True)
DIGITS, LABELS = DIGITS[:60] / 16, LABELS[:60]


@pytest.fixture(scope="module")
def images():
    model = ConvolutionalLinearSVC(
        (8, 8), (3, 3), n_filters=2, learn=None, random_state=0
    )
    return model.fit(DIGITS, LABELS)


def test_filters_of_images_are_tiles(images):
    data = filters_data(images)
    assert data.filters.shape == (3, 2, 3, 3) and not data.signal
    assert data.tasks == ("0 / 1", "0 / 2", "1 / 2")
    display = FiltersDisplay.from_estimator(images)
    drawn = display.ax_.get_images()
    assert len(drawn) == 6
    first = data.filters[0, 0]
    shade = 0.5 + 0.5 * first / np.abs(first).max()
    np.testing.assert_allclose(drawn[0].get_array(), shade)
    display.figure_.canvas.draw()


def test_filters_of_signals_are_lines():
    signals = np.random.default_rng(0).normal(size=(30, 12))
    kernel = RBF() @ Convolution1D(n_filters=2, filter_shape=3)
    svm = BilevelSVC(kernel, learn=("C",), starts=1, cv=2, random_state=0)
    svm.fit(signals, np.arange(30) % 2)
    data = filters_data(svm)
    assert data.signal and data.filters.shape == (1, 2, 3) and data.tasks == ("",)
    FiltersDisplay.from_estimator(svm).figure_.canvas.draw()
    display = FrequencyResponseDisplay.from_estimator(svm, sampling_rate=100.0)
    assert display.ax_.get_xlim()[1] == 50.0
    assert display.ax_.get_xlabel() == "frequency (Hz)"
    assert display.responses_.shape == (1, 2, LINE)


def test_responses_are_fourier_sums():
    h = np.random.default_rng(0).normal(size=5)
    line = responses(FiltersData(h[None, None], ("",), True))[0, 0]
    frequency = np.linspace(0.0, 0.5, LINE)[100]
    expected = abs(np.sum(h * np.exp(-2j * np.pi * frequency * np.arange(5))))
    assert line[100] == pytest.approx(expected)
    flat = np.zeros((1, 1, 3, 3, 2))
    flat[0, 0, 1, 1] = (3.0, 4.0)
    plane = responses(FiltersData(flat, ("",), False))
    assert plane.shape == (1, 1, SPECTRUM, SPECTRUM)
    np.testing.assert_allclose(plane, 5.0)


def test_responses_of_images_are_tiles_too(images):
    display = FrequencyResponseDisplay.from_estimator(images)
    assert len(display.ax_.get_images()) == 6
    middle = display.responses_[0, 0, SPECTRUM // 2, SPECTRUM // 2]
    assert middle == pytest.approx(abs(images.filters_[0, 0].sum()))


def test_channels_are_colours_or_tiles():
    bank = np.random.default_rng(0).normal(size=(1, 2, 3, 3, 3))
    cells, names = FiltersData(bank, ("",), False).planes()
    assert names == ["1", "2"] and cells[0][0].shape == (3, 3, 3)
    cells, names = FiltersData(bank[..., :2], ("",), False).planes()
    assert names == ["1, ch. 1", "1, ch. 2", "2, ch. 1", "2, ch. 2"]
    np.testing.assert_array_equal(cells[0][3], bank[0, 1, ..., 1])
    FiltersDisplay(data=FiltersData(bank, ("",), False)).plot().figure_.canvas.draw()


def test_feature_maps_stand_beside_their_images(images):
    display = FeatureMapsDisplay.from_estimator(images, DIGITS[:2], names=["a", "$b"])
    np.testing.assert_array_equal(display.data.images[1], DIGITS[1].reshape(8, 8))
    np.testing.assert_array_equal(display.data.maps, images.feature_maps(DIGITS[:2]))
    assert len(display.ax_.get_images()) == 2 * 3
    display.figure_.canvas.draw()
    with pytest.raises(ValueError, match="1 names given for 2 images"):
        feature_maps_data(images, DIGITS[:2], names=["a"])


def test_what_has_no_filters_says_so():
    model = BilevelSVC("rbf", learn=()).fit(DIGITS, LABELS)
    with pytest.raises(ValueError, match="fit a ConvolutionalSVC"):
        filters_data(model)
    with pytest.raises(ValueError, match="no feature maps"):
        feature_maps_data(model, DIGITS)
