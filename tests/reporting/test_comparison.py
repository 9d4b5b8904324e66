"""Others at the same time, on the same folds, and honest numbers."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC
from bisvm.kernels import RBF, Linear
from bisvm.plots.landscape import stock_grid, svc_gamma
from bisvm.reporting.code import source
from bisvm.reporting.comparison import (
    Rows,
    default_entry,
    finer_grids,
    fixed,
    folds_of,
    grid_entry,
    own_entry,
    why_not,
)
from bisvm.reporting.scores import disagreement, losses_of, share_of

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
    points = finer_grids({"C": np.array([1.0, 100.0]), "gamma": np.array([1.0, 4.0])})
    pairs = [(round(p["C"], 9), round(p["gamma"], 9)) for p in points]
    assert set(pairs[:4]) == {(1, 1), (1, 4), (100, 1), (100, 4)}
    assert set(pairs[4:9]) == {(1, 2), (10, 1), (10, 2), (10, 4), (100, 2)}
    assert len(set(pairs)) == len(pairs) == 25
    whole = finer_grids(stock_grid(X))
    assert len(whole) == 17 * 13 and len({tuple(p.values()) for p in whole}) == 221


def test_the_grid_stops_when_its_time_is_up(rows):
    entry = grid_entry(rows, 0.0)
    assert entry.detail.startswith("1 points;")
    longer = grid_entry(rows, 0.3)
    assert int(longer.detail.split()[0]) > 1 and longer.seconds < 2.0
    assert longer.folds >= entry.folds
    assert longer.right.shape == (75,)


def test_entries_are_those_of_scikit_learn(rows, model):
    entry = default_entry(rows)
    scores = cross_val_score(SVC(), X[::2], y[::2], cv=rows.folds)
    assert entry.folds == pytest.approx(scores.mean())
    np.testing.assert_array_equal(
        entry.right, SVC().fit(X[::2], y[::2]).predict(X[1::2]) == y[1::2]
    )
    assert svc_gamma(X[::2]) == pytest.approx(SVC().fit(X[::2], y[::2])._gamma)
    own = own_entry(model, rows, 1.0, 2)
    np.testing.assert_array_equal(own.right, model.predict(X[1::2]) == y[1::2])


def test_fixed_learns_nothing_and_has_the_values(model):
    held = fixed(model)
    assert held.C == model.C_ and held.kernel == model.kernel_ and held.learn == ()
    assert (
        fixed(BilevelSVC("rbf", shared=False, cv=2, tol=0.5, starts=1).fit(X, y))
        is None
    )
    linear = BilevelLinearSVC(cv=2, random_state=0).fit(X, y)
    assert fixed(linear).C == linear.C_


def test_what_cannot_be_compared_says_why(model):
    assert why_not(model, X, 75) is None
    assert "20,000 rows" in why_not(model, X, 20_000)
    kernel = BilevelSVC("precomputed", cv=2).fit(X @ X.T, y)
    assert "precomputed" in why_not(kernel, X, 75)


def test_wilson_s_interval():
    share = share_of(np.repeat([True, False], [9, 1]))
    # Its ends solve (p - 0.9)^2 = z^2 p (1 - p) / n.
    z = norm.ppf(0.975)
    for p in (share.low, share.high):
        assert (p - 0.9) ** 2 == pytest.approx(z**2 * p * (1 - p) / 10, rel=1e-5)


def test_the_loss_on_other_rows_is_the_criterion(model):
    binary = BilevelLinearSVC(criterion="mse", random_state=0).fit(X[50::2], y[50::2])
    losses = losses_of(binary, X[51::2], y[51::2])
    margin = np.where(y[51::2] == 2, 1, -1) * binary.decision_function(X[51::2])
    assert losses.held_out == pytest.approx(np.mean((margin - 1) ** 2))
    error = np.std((margin - 1) ** 2, ddof=1) / np.sqrt(len(margin))
    assert losses.error == pytest.approx(error)
    assert losses.folds == binary.criterion_value_
    several = losses_of(model, X[1::2], y[1::2])
    assert 0.2 < several.held_out / several.folds < 5
    pairs = BilevelSVC("rbf", multi_class="ovo", cv=2, tol=0.5, starts=1).fit(X, y)
    assert losses_of(pairs, X, y) is None
    # Labels that were never seen are left out.
    unseen = np.where(np.arange(75) == 0, 7, y[1::2])
    assert np.isfinite(losses_of(model, X[1::2], unseen).held_out)


def test_disagreement_counts_rows_on_either_side():
    one, other = np.array([1, 1, 1, 0], bool), np.array([0, 1, 0, 1], bool)
    assert disagreement(one, other) == (2, 1, True)
    assert disagreement(np.ones(30, bool), np.zeros(30, bool)) == (30, 0, False)


def test_source_makes_values_again():
    values = [
        RBF(gamma=np.array([0.1, 2.0]), per_feature=True),
        RBF(gamma=0.5) + 2.0 * Linear(),
        {"a": (1,), "b": [None, "x'\"", np.float64(0.1)]},
    ]
    for value in values:
        imports: dict[str, set[str]] = {}
        text = source(value, imports)
        lines = [f"from {home} import {', '.join(n)}" for home, n in imports.items()]
        made: dict = {}
        exec("\n".join(["import numpy as np", *lines, f"value = {text}"]), made)
        assert made["value"] == value
