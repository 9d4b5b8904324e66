"""A time limit is kept, and what it leaves is no worse than a default SVC."""

import time

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from bisvm import BilevelSVC
from bisvm.search import observer


@pytest.fixture
def no_grace(monkeypatch):
    monkeypatch.setattr(observer, "GRACE", 0.0)


X, y = load_digits(return_X_y=True)
X, y = X / 16.0, y
TRAIN, TEST = slice(0, 600), slice(600, None)


@pytest.mark.usefixtures("no_grace")
@pytest.mark.parametrize("kernel", ["auto", "rbf"])
def test_without_time_it_is_a_default_machine(kernel):
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model = BilevelSVC(kernel, time_limit=1e-9, random_state=0)
        model.fit(X[TRAIN], y[TRAIN])
    svc = SVC().fit(X[TRAIN], y[TRAIN])
    assert model.multi_class_ == "ovo"
    assert model.score(X[TEST], y[TEST]) > svc.score(X[TEST], y[TEST]) - 0.01
    assert model.history_ == [] and model.expected_score_ is None
    assert np.isinf(model.criterion_value_)
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(X)


@pytest.mark.usefixtures("no_grace")
def test_with_two_classes_too():
    two = y < 5
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model = BilevelSVC(time_limit=1e-9, random_state=0).fit(X[TRAIN], two[TRAIN])
    svc = SVC().fit(X[TRAIN], two[TRAIN])
    assert model.score(X[TEST], two[TEST]) > svc.score(X[TEST], two[TEST]) - 0.02


def test_an_evaluation_is_left_half_way():
    """One on all rows and classes takes several times the limit."""
    rng = np.random.default_rng(0)
    many = rng.integers(0, 40, 1500)
    points = rng.normal(size=(1500, 5)) + many[:, None] % 7
    BilevelSVC("rbf", max_iter=1, starts=1).fit(points[:100], many[:100] % 2)
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="time limit"):
        BilevelSVC("rbf", time_limit=0.5, starts=1).fit(points, many)
    # Several times as long on a busy machine; without the limit, many times.
    assert time.perf_counter() - began < 30.0
