"""Linear machines of few rows and many features are trained by rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification

from bisvm import BilevelLinearSVC, BilevelLinearSVR
from bisvm.search import settings

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

X, y = make_classification(60, 200, n_informative=10, random_state=0)
X = X + 5.0
NUMBERS = X[:, :3].sum(axis=1)


@pytest.mark.parametrize("estimator", [BilevelLinearSVC, BilevelLinearSVR])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_same_machine_by_rows_and_by_features(estimator, form, monkeypatch):
    classes = estimator is BilevelLinearSVC
    inputs, target = form(X), y if classes else NUMBERS
    arguments = dict(random_state=0, cv=3, tol=1e-5)
    by_rows = estimator(**arguments).fit(inputs, target)
    monkeypatch.setattr(settings, "WIDE_ROWS", 0)
    by_features = estimator(**arguments).fit(inputs, target)
    close = dict(rtol=2e-2, atol=2e-2 * np.abs(by_features.coef_).max())
    np.testing.assert_allclose(by_rows.coef_, by_features.coef_, **close)
    values = by_rows.criterion_value_, by_features.criterion_value_
    np.testing.assert_allclose(*values, rtol=1e-4)
    assert by_rows.coef_.shape == by_features.coef_.shape


def test_decisions_and_probabilities_by_features():
    model = BilevelLinearSVC(cv=3, random_state=0).fit(X, y)
    decisions = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), decisions)
    assert model.predict_proba(X).shape == (60, 2)
    assert model.predict_set(X).shape == (60, 2)
