"""ConvolutionalSVC with a kernel on feature maps."""

import numpy as np
import pytest
from sklearn.base import clone

from bisvm import BilevelSVC, ConvolutionalSVC
from bisvm.criteria import StructuralRisk
from bisvm.kernels import RBF, Polynomial
from bisvm.published import GradientDescent
from bisvm.transforms import Convolution2D, Nonlinearity, Normalize, Pool2D

RNG = np.random.default_rng(0)
pytestmark = pytest.mark.filterwarnings("ignore:Tuning stopped early")


def stripes(n, classes=2, size=8):
    """Bars in one of several directions at a random place, in noise."""
    y = np.arange(n) % classes
    X = 0.3 * RNG.normal(size=(n, size, size))
    for image, label in zip(X, y, strict=True):
        place = RNG.integers(1, size - 1)
        if label == 0:
            image[place] += 1.0
        elif label == 1:
            image[:, place] += 1.0
        else:
            image[np.arange(size), np.arange(size)] += 1.0
    return X, y


X, y = stripes(60)
X_test, y_test = stripes(200)
K_CSVM = {
    "criterion": StructuralRisk("dfo_1", 0.01, on="filters"),
    "optimizer": GradientDescent(0.05, max_iter=5),
    "learn": "filters",
    "random_state": 0,
}


def test_algorithm_5_lowers_the_risk():
    model = ConvolutionalSVC((8, 8), (3, 3), kernel=Polynomial(2, gamma=1.0), **K_CSVM)
    model.fit(X, y)
    values = [record.value for record in model.history_]
    assert values[-1] < values[0]
    assert model.filters_.shape == (1, 1, 3, 3)
    assert model.feature_maps(X).shape == (60, 1, 6, 6)


def test_it_is_a_kernel_behind_a_convolution():
    model = ConvolutionalSVC((8, 8), (3, 3), 2, kernel=RBF(0.1), C=2.0, **K_CSVM)
    convolution = Convolution2D(
        n_filters=2, filter_shape=(3, 3), start="random", shape=(8, 8), random_state=0
    )
    twin = BilevelSVC(
        RBF(0.1) @ convolution, C=2.0, starts=1, multi_class="ovo", **K_CSVM
    )
    flat = X.reshape(60, -1)
    np.testing.assert_array_equal(
        model.fit(X, y).decision_function(X), twin.fit(flat, y).decision_function(flat)
    )


def test_filters_are_learned_on_held_out_images():
    settings = {
        "after": Pool2D(6, kind="mean") @ Nonlinearity("square"),
        "n_filters": 2,
    }
    model = ConvolutionalSVC(
        None,
        (3, 3),
        kernel="rbf",
        start="cosine",
        max_iter=15,
        random_state=0,
        **settings,
    ).fit(X, y)
    assert set(model.hyperparameters_) == {"C", "gamma", "t1__filters"}
    assert model.score(X_test, y_test) > 0.9


def test_C_may_be_switched_on_at_the_end():
    model = ConvolutionalSVC(
        (8, 8), (3, 3), kernel=Polynomial(2, gamma=1.0), C=1e3, **K_CSVM
    ).fit(X, y)
    last = BilevelSVC(model.kernel_, C=1e-2, learn=(), cv=2).fit(X.reshape(60, -1), y)
    assert model.C_ == 1e3 and last.C_ == 1e-2
    np.testing.assert_array_equal(last.kernel_.transform.filters, model.filters_[0])


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("shared", [True, False])
def test_several_classes(multi_class, shared):
    X, y = stripes(60, classes=3)
    model = ConvolutionalSVC(
        (8, 8),
        (3, 3),
        kernel=RBF(0.2),
        after=Normalize(),
        multi_class=multi_class,
        shared=shared,
        **K_CSVM,
    ).fit(X, y)
    assert model.filters_.shape == (1 if shared else 3, 1, 3, 3)
    assert model.decision_function(X).shape == (60, 3)
    assert model.score(X, y) > 0.8


def test_colour_planes_and_channels():
    colour = RNG.normal(size=(40, 6, 6, 3))
    labels = (colour[:, :, :, 0].mean(axis=(1, 2)) > 0).astype(int)
    by_channel = ConvolutionalSVC(None, (3, 3), kernel=RBF(0.1), **K_CSVM)
    assert by_channel.fit(colour, labels).filters_.shape == (1, 1, 3, 3, 3)
    planes = colour.transpose(0, 3, 1, 2).reshape(40, 18, 6)
    stacked = ConvolutionalSVC((18, 6), (3, 3), kernel=RBF(0.1), **K_CSVM)
    assert stacked.fit(planes, labels).filters_.shape == (1, 1, 3, 3)


def test_it_can_be_cloned_and_knows_its_errors():
    model = ConvolutionalSVC((8, 8), (3, 3), kernel=RBF(0.1), after=Normalize())
    assert clone(model).kernel == RBF(0.1)
    with pytest.raises(ValueError, match="filter"):
        clone(model).set_params(filter_shape=(9, 9)).fit(X, y)
    with pytest.raises(ValueError, match="pixels"):
        clone(model).set_params(image_shape=(7, 8)).fit(X.reshape(60, -1), y)
    with pytest.raises(TypeError, match="after must be a transform"):
        clone(model).set_params(after=RBF()).fit(X, y)
    with pytest.raises(ValueError, match="Unknown kernel 'sbf'"):
        clone(model).set_params(kernel="sbf").fit(X, y)
