"""Other methods on the same rows and folds."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC
from bisvm.selection.comparison import (
    BOX,
    SIZES,
    Rows,
    balanced_difference,
    default_entry,
    disagreement,
    fixed,
    folds_of,
    grid_entry,
    grid_points,
    own_entry,
    svc_grid,
)

pytestmark = pytest.mark.usefixtures("brief_searches")

X, y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def model():
    return BilevelSVC("rbf", cv=3, random_state=0).fit(X[::2], y[::2])


@pytest.fixture(scope="module")
def rows(model):
    folds = folds_of(model, X[::2], y[::2])
    return Rows(X[::2], y[::2], X[1::2], y[1::2], folds)


def test_folds_are_those_of_the_fit(model, rows):
    columns = BilevelObjective(BilevelSVC("rbf", cv=3, random_state=0), X[::2], y[::2])
    columns = columns.problem.columns
    for k, (_, validation) in enumerate(rows.folds):
        (first, *_) = np.flatnonzero(columns.split == k)
        own = np.flatnonzero(columns.validation[:, first])
        np.testing.assert_array_equal(own, validation)


def test_grids_become_finer_and_repeat_nothing():
    points = [tuple(point.values()) for point in grid_points(X)]
    assert len(points) == len(set(points)) == SIZES[-1] ** 2
    for size in SIZES:
        grid = svc_grid(X, size)
        whole = {(C, gamma) for C in grid["C"] for gamma in grid["gamma"]}
        first = np.array(sorted(points[: size**2]))
        np.testing.assert_allclose(first, sorted(whole), rtol=1e-12)


def test_the_box_is_that_of_standardised_features_and_has_svc_s_gamma():
    scaled = (X - X.mean()) / X.std()
    grid = svc_grid(scaled, 11)
    np.testing.assert_allclose(grid["gamma"], np.geomspace(*BOX["gamma"], 11))
    np.testing.assert_allclose(
        svc_grid(10.0 * scaled, 11)["gamma"], grid["gamma"] / 100
    )
    wide = np.random.default_rng(0).normal(size=(5, 50_000))
    assert svc_grid(wide)["gamma"][0] == pytest.approx(
        SVC().fit(wide, [0, 0, 1, 1, 1])._gamma
    )
    low, high = svc_grid(X)["gamma"][[0, -1]]
    assert low < SVC().fit(X, y)._gamma < high
    dense, sparse = svc_grid(X), svc_grid(csr_array(X))
    np.testing.assert_allclose(sparse["gamma"], dense["gamma"])


def test_the_grid_stops_when_its_time_is_up(rows):
    entry = grid_entry(rows, seconds=0.0)
    assert entry.detail.startswith("1 point;")
    longer = grid_entry(rows, seconds=0.3)
    assert int(longer.detail.split()[0]) > 1 and longer.seconds < 2.0
    assert longer.cross_validated >= entry.cross_validated
    assert grid_entry(rows, size=2).detail.startswith("4 points;")
    assert longer.scores.shape == (75,)


def test_entries_are_those_of_scikit_learn(rows, model):
    entry = default_entry(rows)
    scores = cross_val_score(SVC(), X[::2], y[::2], cv=rows.folds)
    assert entry.cross_validated == pytest.approx(scores.mean())
    np.testing.assert_array_equal(
        entry.scores, SVC().fit(X[::2], y[::2]).predict(X[1::2]) == y[1::2]
    )
    own = own_entry(model, rows, 1.0)
    assert own.tuned == 2
    np.testing.assert_array_equal(own.scores, model.predict(X[1::2]) == y[1::2])


def test_fixed_learns_nothing_and_has_the_values(model):
    held = fixed(model)
    assert held.C == model.C_ and held.kernel == model.kernel_ and held.learn == ()
    assert (
        fixed(BilevelSVC("rbf", shared=False, cv=2, tol=0.5, starts=1).fit(X, y))
        is None
    )
    linear = BilevelLinearSVC(cv=2, random_state=0).fit(X, y)
    assert fixed(linear).C == linear.C_


def test_a_rare_class_counts_as_much_as_a_frequent_one():
    """Always predicting the frequent class is right on nearly all rows."""
    y = np.repeat([0, 1], [980, 20])
    one, always = np.ones(1000, bool), y == 0
    one[:25] = False
    assert disagreement(one, always) == (20, 25, True)
    change, chance = balanced_difference(one, always, y)
    assert change == pytest.approx((1 - 25 / 980) / 2) and not chance
    assert balanced_difference(always, one, y)[0] == pytest.approx(-change)
    assert balanced_difference(one, one, y) == (0.0, True)
    # With classes of equal size it is the other test.
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, other = rng.random((2, 60)) < 0.7
        change, chance = balanced_difference(one, other, np.repeat([0, 1], 30))
        gained, lost, expected = disagreement(one, other)
        assert chance == expected
        assert change == pytest.approx((gained - lost) / 60)


def test_disagreement_counts_rows_on_either_side():
    one, other = np.array([1, 1, 1, 0], bool), np.array([0, 1, 0, 1], bool)
    assert disagreement(one, other) == (2, 1, True)
    assert disagreement(np.ones(30, bool), np.zeros(30, bool)) == (30, 0, False)
