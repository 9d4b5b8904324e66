"""ConvolutionalLinearSVC: the estimator around the bilinear model."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from bisvm import ConvolutionalLinearSVC
from bisvm.published.bilinear.steps import PegasosStep
from tests.covering import crossed
from tests.published.bilinear.bars import bars

FIXED = ConvolutionalLinearSVC(filter_shape=(1,), learn=None)


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks([FIXED])
def test_the_estimator_is_one_of_scikit_learns(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    return X / 16, y


@pytest.fixture(scope="module")
def fitted(digits):
    X, y = digits
    model = ConvolutionalLinearSVC((8, 8), (3, 3), cv=3, random_state=0)
    return model.fit(X[:300], y[:300])


def test_strengths_are_learned(fitted, digits):
    X, y = digits
    assert fitted.score(X[300:], y[300:]) > 0.9
    values = [record.value for record in fitted.history_]
    assert fitted.criterion_value_ == min(values) < values[0]
    assert fitted.lambda_w_ == pytest.approx(fitted.lambda_f_)
    assert fitted.lambda_w_ != 0.1
    assert fitted.certificate_.converged
    assert fitted.certificate_.lower_residual < 1e-5
    assert fitted.certificate_.final_residual < 1e-8


def test_what_is_fitted(fitted, digits):
    X, _ = digits
    assert fitted.filters_.shape == (6, 1, 3, 3)
    assert fitted.maps_.shape == (6, 1, 6, 6)
    assert fitted.coef_.shape == (6, 64)
    assert fitted.tasks_[0] == (0, 1)
    assert fitted.tasks_[-1] == (2, 3)
    maps = fitted.feature_maps(X[:5], task=2)
    assert maps.shape == (5, 1, 6, 6)
    values = np.einsum("nkij,kij->n", maps, fitted.maps_[2]) + fitted.intercept_[2]
    np.testing.assert_allclose(
        values, X[:5] @ fitted.coef_[2] + fitted.intercept_[2], atol=1e-10
    )


def test_images_may_come_in_their_shape(fitted, digits):
    X, y = digits
    flat = clone(fitted).set_params(learn=None).fit(X[:100], y[:100])
    shaped = clone(flat).set_params(image_shape=None)
    shaped.fit(X[:100].reshape(-1, 8, 8), y[:100])
    assert shaped.image_shape_ == (8, 8)
    np.testing.assert_allclose(flat.coef_, shaped.coef_)
    np.testing.assert_array_equal(flat.predict(X), shaped.predict(X.reshape(-1, 8, 8)))


@pytest.mark.parametrize(
    "solver, multi_class",
    crossed(["newton", "liblinear", PegasosStep(30_000)], ["ovo", "ovr"], strength=1),
)
def test_strengths_as_given(digits, solver, multi_class):
    X, y = digits
    model = ConvolutionalLinearSVC(
        (8, 8),
        (3, 3),
        lambda_w=0.02,
        lambda_f=0.02,
        learn=None,
        solver=solver,
        multi_class=multi_class,
        random_state=0,
    ).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.93
    assert model.lambda_w_ == model.lambda_f_ == 0.02
    assert model.history_ == []
    assert len(model.paths_) == len(model.tasks_) == (6 if multi_class == "ovo" else 4)
    assert model.decision_function(X[:7]).shape == (7, 4)


def test_colour_images_and_several_filters():
    X, y = bars(60)
    X = np.stack([X, -X, 0.5 * X], axis=-1).reshape(60, 7, 7, 3)
    model = ConvolutionalLinearSVC(filter_shape=(3, 3), n_filters=2, learn=None).fit(
        X, y
    )
    assert model.filters_.shape == (1, 2, 3, 3, 3)
    assert model.maps_.shape == (1, 2, 5, 5)
    assert model.tasks_ == [(1.0, -1.0)]
    assert model.score(X, y) > 0.9


def test_strengths_of_their_own_for_every_task(digits):
    X, y = (part[digits[1] != 0][:120] for part in digits)
    model = ConvolutionalLinearSVC(
        (8, 8), (3, 3), cv=2, shared=False, tol=0.03, random_state=0
    ).fit(X, y)
    assert model.lambda_w_.shape == (3,)
    assert len(np.unique(model.lambda_w_)) > 1
    assert len(model.certificate_) == 3
    assert {record.task for record in model.history_} == {0, 1, 2}
    again = clone(model).set_params(
        learn=None, lambda_w=model.lambda_w_, lambda_f=model.lambda_f_
    )
    # Another start may end in another minimum, but not in a much worse one.
    assert np.mean(again.fit(X, y).predict(X) == model.predict(X)) > 0.95


def test_one_random_state_one_answer(digits):
    X, y = digits
    model = ConvolutionalLinearSVC(
        (8, 8), (3, 3), learn=None, solver=PegasosStep(2000), random_state=3
    )
    one, two = (clone(model).fit(X[:100], y[:100]) for _ in range(2))
    threads = clone(model).set_params(n_jobs=2).fit(X[:100], y[:100])
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.coef_, threads.coef_)


def test_a_callback_stops_the_search_and_has_a_model(digits):
    X, y = digits
    seen = []

    def callback(progress):
        seen.append(progress)
        return len(seen) == 2

    model = ConvolutionalLinearSVC(
        (8, 8), (3, 3), cv=2, callback=callback, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="The callback asked for it"):
        model.fit(X[:80], y[:80])
    assert len(model.history_) == 2
    assert seen[-1].model().score(X, y) > 0.7


def test_a_fitted_model_can_be_pickled(fitted, digits):
    X, _ = digits
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image_shape": 8}, "image_shape must be one to three positive integers"),
        ({"image_shape": (7, 8)}, r"has 56 pixels, but X has 64 features"),
        ({"filter_shape": (9, 3)}, "does not fit into an image of shape"),
        ({"image_shape": None}, r"has 2 axes, the image \(64,\) has 1"),
        ({"solver": "pegasos"}, "cannot learn the strengths"),
        ({"solver": "smo"}, "Unknown solver 'smo'"),
        ({"loss": "hinge"}, "needs a twice differentiable loss"),
        ({"learn": "lambda_w"}, "'learn' parameter .* Got 'lambda_w'"),
        ({"lambda_w": -1.0}, "lambda_w must be positive"),
        ({"lambda_w": [0.1, 0.2]}, "a search starts from one number"),
        ({"lambda_f": [1.0, 2.0], "learn": None}, "has 2 entries for 6 class tasks"),
        ({"n_filters": 0}, r"'n_filters' .* an int in the range \[1, inf\)"),
        ({"max_iter": 2.5}, "'max_iter' .* an int .* Got 2.5"),
        ({"tol": 0.0}, "'tol' .* a float in the range"),
        ({"callback": 3}, "'callback' .* must be a callable or None"),
    ],
)
def test_settings_that_make_no_sense(digits, settings, message):
    X, y = digits
    model = ConvolutionalLinearSVC((8, 8), (3, 3)).set_params(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_images_of_another_shape_are_refused(fitted, digits):
    X, y = digits
    with pytest.raises(ValueError, match="X holds images of shape"):
        fitted.predict(X.reshape(-1, 4, 16))
    shaped = clone(fitted).set_params(image_shape=None, learn=None)
    shaped.fit(X[:100].reshape(-1, 8, 8), y[:100])
    with pytest.raises(ValueError, match="the model was trained on"):
        shaped.predict(X.reshape(-1, 4, 16))
    with pytest.raises(ValueError, match="task=9 is out of range"):
        fitted.feature_maps(X, task=9)
