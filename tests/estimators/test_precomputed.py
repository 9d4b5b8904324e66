"""kernel="precomputed": X holds the values of the kernel."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from bisvm import BilevelSVC
from bisvm.kernels import RBF, Precomputed
from tests.problems import three_classes, toy_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]


@pytest.mark.parametrize("data", [toy_data(60), three_classes(60)])
def test_it_is_the_machine_of_its_kernel(data):
    X, y = data
    train, test = slice(0, 45), slice(45, 60)
    K = RBF(0.4)(X)
    given = BilevelSVC("precomputed", random_state=0).fit(K[train, train], y[train])
    twin = BilevelSVC(RBF(0.4), learn="C", random_state=0).fit(X[train], y[train])
    np.testing.assert_allclose(
        given.decision_function(K[test, train]),
        twin.decision_function(X[test]),
        rtol=1e-4,
    )
    assert given.C_ == pytest.approx(twin.C_, rel=1e-4)
    assert given.relevance_ is None


def test_samples_without_weight_are_left_out():
    X, y = toy_data(50)
    K, weight = RBF(0.4)(X), np.ones(50)
    weight[[3, 7]] = 0.0
    kept = weight > 0
    all_rows = BilevelSVC("precomputed", random_state=0).fit(K, y, weight)
    rest = BilevelSVC("precomputed", random_state=0).fit(K[np.ix_(kept, kept)], y[kept])
    np.testing.assert_allclose(
        all_rows.decision_function(K), rest.decision_function(K[:, kept])
    )


def test_scikit_learn_slices_rows_and_columns():
    X, y = toy_data(60)
    K = RBF(0.4)(X)
    assert cross_val_score(BilevelSVC("precomputed"), K, y, cv=3).min() > 0.4
    search = GridSearchCV(BilevelSVC("precomputed"), {"cv": [2, 3]}, cv=2).fit(K, y)
    assert search.predict(K).shape == y.shape


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_callback_gets_a_model_on_the_way():
    X, y = toy_data(60)
    K, values = RBF(0.4)(X), []

    def look(progress):
        values.append(progress.model().decision_function(K))

    model = BilevelSVC("precomputed", random_state=0, max_iter=2, callback=look)
    model.fit(K, y)
    assert len(values) == len(model.history_)
    assert np.all(np.isfinite(values))


def test_the_kernel_object_takes_row_numbers():
    X, y = toy_data(60)
    K, rows = RBF(0.4)(X), np.arange(60.0)[:, None]
    model = BilevelSVC(Precomputed(K), random_state=0).fit(rows[:45], y[:45])
    twin = BilevelSVC("precomputed", random_state=0).fit(K[:45, :45], y[:45])
    np.testing.assert_allclose(
        model.decision_function(rows[45:]), twin.decision_function(K[45:, :45])
    )


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda K: K[:, :20], "40 rows and 20 columns"),
        (lambda K: K + np.triu(K), "must be symmetric"),
    ],
)
def test_a_matrix_that_is_none_is_refused(change, message):
    X, y = toy_data(40)
    with pytest.raises(ValueError, match=message):
        BilevelSVC("precomputed").fit(change(RBF(0.4)(X)), y)
