"""One random state, one answer, on any number of jobs."""

import pickle
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

from bisvm import BilevelLinearSVC, BilevelSVC
from tests.covering import crossed, full
from tests.problems import sparse_twin, three_classes, toy_data

pytestmark = pytest.mark.usefixtures("brief_searches")

X, y = toy_data(60)
X3, y3 = three_classes(60)

ESTIMATORS = [
    BilevelSVC("rbf", max_iter=3, random_state=0),
    BilevelSVC("ard", max_iter=3, random_state=0),
    BilevelSVC("ard", starts=3, max_iter=3, random_state=0),
    BilevelLinearSVC(max_iter=3, random_state=0),
    BilevelLinearSVC(regularization="per_feature", max_iter=3, random_state=0),
]
EACH = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
KERNEL_AND_LINEAR = pytest.mark.parametrize(
    "estimator", [ESTIMATORS[0], ESTIMATORS[3], *full(*ESTIMATORS[1:3], ESTIMATORS[4])]
)
QUIET = pytest.mark.filterwarnings("ignore:Tuning stopped early")


@cache
def fitted(estimator):
    """Of one estimator, fitted once for all tests; they leave it as it is."""
    return clone(estimator).fit(X, y)


def assert_same_fit(a, b):
    """Bit for bit: what was learned, how it was found, and what it predicts."""
    assert a.hyperparameters_.keys() == b.hyperparameters_.keys()
    for name, value in a.hyperparameters_.items():
        np.testing.assert_array_equal(value, b.hyperparameters_[name])
    for name in (
        "coef_",
        "intercept_",
        "dual_coef_",
        "support_",
        "criterion_value_",
    ):
        assert hasattr(a, name) == hasattr(b, name)
        if not hasattr(a, name):
            continue
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert [r.value for r in a.history_] == [r.value for r in b.history_]
    assert a.n_svm_evaluations_ == b.n_svm_evaluations_


@QUIET
@EACH
def test_two_fits_agree_bit_for_bit(estimator):
    a, b = fitted(estimator), clone(estimator).fit(X, y)
    assert_same_fit(a, b)
    np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))


@QUIET
@KERNEL_AND_LINEAR
def test_fitting_again_forgets_the_first_fit(estimator):
    twice = clone(estimator).set_params(multi_class="ovr").fit(X3, y3)
    twice.set_params(multi_class=estimator.multi_class).fit(X, y)
    assert_same_fit(twice, fitted(estimator))


@QUIET
@pytest.mark.parametrize(
    "kernel, multi_class, shared",
    crossed(["rbf", "linear"], ["ovr", "ovo"], [True, False], strength=1),
)
def test_two_jobs_give_the_answer_of_one(kernel, multi_class, shared):
    one, two = (
        BilevelSVC(
            kernel,
            multi_class=multi_class,
            shared=shared,
            n_jobs=n_jobs,
            max_iter=3,
            random_state=0,
        ).fit(X3, y3)
        for n_jobs in (1, 2)
    )
    assert_same_fit(one, two)


@QUIET
def test_a_random_state_object_moves_on():
    state = np.random.RandomState(0)
    estimator = BilevelSVC("rbf", starts=1, random_state=state)
    first = estimator.fit(X, y).criterion_value_
    second = estimator.fit(X, y).criterion_value_
    assert first != second


@QUIET
@KERNEL_AND_LINEAR
def test_a_pickled_model_predicts_the_same(estimator):
    twin = sparse_twin(X)
    for data, model in ((X, fitted(estimator)), (twin, clone(estimator).fit(twin, y))):
        copy = pickle.loads(pickle.dumps(model))
        assert_same_fit(model, copy)
        np.testing.assert_array_equal(
            model.decision_function(data), copy.decision_function(data)
        )


@QUIET
def test_the_callers_data_stay_as_they_are():
    for data in (X, sparse_twin(X)):
        before = data.copy()
        labels, weight = y.copy(), np.linspace(0.5, 2.0, len(y))
        BilevelSVC("ard", max_iter=2, random_state=0).fit(data, labels, weight)
        assert abs(before - data).max() == 0
        np.testing.assert_array_equal(labels, y)
        np.testing.assert_array_equal(weight, np.linspace(0.5, 2.0, len(y)))
