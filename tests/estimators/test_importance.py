"""Permutation importance, against scikit-learn's with the same machines."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.inspection import permutation_importance

from bisvm import BilevelLinearSVC, BilevelSVC
from bisvm.datasets import make_moons_with_noise
from bisvm.selection.comparison import fixed
from tests.covering import full

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

X, Y = make_moons_with_noise(160, n_noise=3, random_state=0)
IRIS = load_iris(return_X_y=True)
QUICK = dict(cv=3, random_state=0)
REPEATS = 36


@pytest.fixture(scope="module")
def model():
    return BilevelSVC("rbf", **QUICK).fit(X[:100], Y[:100])


def test_new_rows_have_the_importances_of_scikit_learn(model):
    found = model.importance(X[100:], Y[100:], n_repeats=REPEATS)
    expected = permutation_importance(model, X[100:], Y[100:], n_repeats=REPEATS)
    by_name = dict(zip(found.names, found.values, strict=True))
    ours = np.array([by_name[str(k)] for k in range(5)])
    # Both are means over drawings of a standard deviation of 0.05 at most.
    error = 0.07 / np.sqrt(REPEATS)
    assert np.allclose(ours, expected.importances_mean, atol=5 * error)
    assert set(found.names[:2]) == {"0", "1"} and found.matters[:2].all()
    loss = permutation_importance(
        model, X[100:], Y[100:], n_repeats=REPEATS, scoring="neg_log_loss"
    )
    by_name = dict(zip(found.names, found.losses, strict=True))
    ours = np.array([by_name[str(k)] for k in range(5)])
    assert np.allclose(ours, loss.importances_mean, rtol=0.15, atol=0.02)


@pytest.mark.parametrize("kernel", ["rbf", *full("linear")])
def test_rows_of_the_search_are_judged_by_the_machines_of_its_splits(kernel):
    """The same machines, fitted again without the rows that each split holds out."""
    X, y = IRIS
    rows = np.random.default_rng(0).permutation(150)
    splits = [(np.setdiff1d(rows, rows[k::3]), np.sort(rows[k::3])) for k in range(3)]
    given = dict(cv=splits, multi_class="ovr", starts=1, random_state=0)
    model = BilevelSVC(kernel, **given).fit(X, y)
    found = model.importance(X, n_repeats=REPEATS)
    assert found.n_rows == 150
    means = np.zeros(4)
    for train, held in splits:
        part = fixed(model).set_params(cv=3).fit(X[train], y[train])
        own = permutation_importance(part, X[held], y[held], n_repeats=REPEATS)
        means += own.importances_mean / 3
    by_name = dict(zip(found.names, found.values, strict=True))
    ours = np.array([by_name[str(k)] for k in range(4)])
    # Rows of all splits are exchanged here, and those of one split there.
    assert np.allclose(ours, means, atol=0.05)
    assert found.names[0] == str(means.argmax())


def test_features_of_one_column_are_shuffled_together(model):
    found = model.importance(X[100:], Y[100:], columns=["m", "m", "a", "b", "c"])
    alone = model.importance(X[100:], Y[100:])
    assert found.names[0] == "m" and len(found.names) == 4
    assert found.values[0] > alone.values[0]
    assert str(found).splitlines()[1].strip().startswith("m ")


@pytest.mark.full
def test_errors_are_those_of_repeated_samples():
    """A standard error is how much the importance differs from sample to sample."""
    big, labels = make_moons_with_noise(2100, n_noise=3, random_state=1)
    model = BilevelSVC("rbf", **QUICK).fit(big[:100], labels[:100])
    found = [
        model.importance(big[k : k + 100], labels[k : k + 100])
        for k in range(100, 2100, 100)
    ]
    ours = np.mean([one.errors[list(one.names).index("1")] for one in found])
    values = [one.values[list(one.names).index("1")] for one in found]
    assert ours == pytest.approx(np.std(values, ddof=1), rel=0.5)


def test_groups_and_sparse_rows_and_thresholds(model):
    twice = np.repeat(np.arange(30), 2)
    alone = model.importance(X[100:], Y[100:])
    doubled = np.repeat(X[100:130], 2, axis=0), np.repeat(Y[100:130], 2)
    grouped = model.importance(*doubled, groups=twice)
    single = model.importance(*doubled)
    assert grouped.errors[0] > 1.2 * single.errors[0]
    linear = BilevelLinearSVC(**QUICK).fit(sparse.csr_array(X[:100]), Y[:100])
    dense = BilevelLinearSVC(**QUICK).fit(X[:100], Y[:100])
    found = linear.importance(sparse.csr_array(X[:100]))
    assert found.names[0] == dense.importance(X[:100]).names[0]
    assert alone.measure == "accuracy"
    rare = np.flatnonzero((Y == 0) | (np.arange(160) % 6 == 0))
    moved = BilevelSVC("rbf", threshold="balanced_accuracy", **QUICK)
    moved.fit(X[rare], Y[rare])
    assert moved.importance(X[rare]).measure == "balanced accuracy"


def test_an_ensemble_and_errors(model):
    several = BilevelSVC("rbf", ensemble=2, **QUICK).fit(X[:60], Y[:60])
    assert set(several.importance(X[:60]).names[:2]) == {"0", "1"}
    assert set(several.importance(X[100:], Y[100:]).names[:2]) == {"0", "1"}
    with pytest.raises(ValueError, match="X has 50 rows; expected those"):
        model.importance(X[:50])
    with pytest.raises(ValueError, match="none of the classes"):
        model.importance(X[:5], np.full(5, 7))
