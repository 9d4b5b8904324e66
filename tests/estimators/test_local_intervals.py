"""Locally scaled intervals beside a twin by loops, and importances of regressions."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_friedman1
from sklearn.model_selection import KFold, ShuffleSplit

from bisvm import BilevelLinearSVR, BilevelSVR, load, save
from bisvm.estimators.expected_fit import growth
from bisvm.estimators.intervals import (
    FEW,
    LEAST_NEIGHBOURS,
    HeldOutResiduals,
    local_scale,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, size=(300, 3))
NOISE = 0.05 + np.abs(X[:, 0])
y = 2.0 * X[:, 0] + X[:, 1] + NOISE * RNG.normal(size=300)
X_new = RNG.uniform(-1.0, 1.0, size=(3000, 3))
noise_new = 0.05 + np.abs(X_new[:, 0])
y_new = 2.0 * X_new[:, 0] + X_new[:, 1] + noise_new * RNG.normal(size=3000)


@pytest.fixture(scope="module")
def model():
    return BilevelLinearSVR(loss="squared", random_state=0).fit(X, y)


def scale_by_loops(model, x, k):
    """Mean residual of the nearest held-out rows that split k does not hold out."""
    held_out = model._folds.held_out
    factor = np.sqrt(model.relevance_) / model.feature_scale_
    rows = np.flatnonzero(held_out.split != k)
    distances = [np.sum(((X[held_out.row[j]] - x) * factor) ** 2) for j in rows]
    count = max(round(len(rows) ** 0.5), LEAST_NEIGHBOURS)
    near = rows[np.argsort(distances)[:count]]
    every = held_out.residuals[rows, 0].mean()
    return (FEW * every + held_out.residuals[near, 0].sum()) / (FEW + count)


def test_bounds_are_those_of_a_twin_by_loops(model):
    folds = model._folds
    R, split, row = (
        folds.held_out.residuals[:, 0],
        folds.held_out.split,
        folds.held_out.row,
    )
    own = [scale_by_loops(model, X[row[i]], split[i]) for i in range(300)]
    np.testing.assert_allclose(folds.local_scales[:, 0], own, rtol=1e-9)
    alpha, n = 0.2, 300
    found = model.predict_interval(X_new[:5], coverage=1.0 - alpha, scaled=True)
    for x, (low, high) in zip(X_new[:5], found, strict=True):
        values = folds.center + folds.scale * (
            x @ folds.machines.coef + folds.machines.intercept
        )
        scales = [scale_by_loops(model, x, k) for k in range(folds.n_splits)]
        reach = [scales[split[i]] * R[i] / own[i] for i in range(n)]
        above = sorted(values[split[i]] + reach[i] for i in range(n))
        below = sorted(values[split[i]] - reach[i] for i in range(n))
        assert high == pytest.approx(above[int(np.ceil((1 - alpha) * (n + 1))) - 1])
        assert low == pytest.approx(below[int(np.floor(alpha * (n + 1))) - 1])


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_coverage_in_all_and_where_noise_is_small_or_large(model, coverage):
    low, high = model.predict_interval(X_new, coverage, scaled=True).T
    inside = (low <= y_new) & (y_new <= high)
    assert abs(inside.mean() - coverage) < 0.03
    quiet, loud = noise_new < 0.25, noise_new > 0.8
    plain = model.predict_interval(X_new, coverage)
    covered = (plain[:, 0] <= y_new) & (y_new <= plain[:, 1])
    # Unscaled, the quiet rows are covered too often and the loud ones too rarely.
    for rows in (quiet, loud):
        assert abs(inside[rows].mean() - coverage) < abs(
            covered[rows].mean() - coverage
        )
    width = high - low
    assert width[loud].mean() > 2.0 * width[quiet].mean()
    assert width.mean() < (plain[:, 1] - plain[:, 0]).mean()


def test_no_row_has_a_part_in_its_own_scale(model):
    """Another residual of row i leaves the scale at row i as it is."""
    folds = model._folds
    held_out = folds.held_out
    changed = held_out.residuals.copy()
    changed[7] *= 1000.0
    own = folds.held_out.split[7]
    other = HeldOutResiduals(
        changed, held_out.split, held_out.weight, held_out.y, held_out.row
    )
    before, after = (
        local_scale(X[held_out.row], model.relevance_, model.feature_scale_, one)
        for one in (held_out, other)
    )
    x = X[held_out.row[7]][None]
    assert before.at(x)[0, own, 0] == after.at(x)[0, own, 0]
    assert before.at(x)[0, (own + 1) % 5, 0] < after.at(x)[0, (own + 1) % 5, 0]


def test_rows_that_several_splits_hold_out_are_left_out_of_all():
    cv = ShuffleSplit(4, test_size=0.3, random_state=0)
    model = BilevelLinearSVR(loss="squared", cv=cv, random_state=0).fit(X, y)
    held_out, local = model._folds.held_out, model._folds.local
    for k in range(4):
        rows = set(held_out.row[held_out.split == k])
        assert not rows & set(held_out.row[local.used[k]])
    bounds = model.predict_interval(X_new, 0.9, scaled=True)
    assert abs(np.mean((bounds[:, 0] <= y_new) & (y_new <= bounds[:, 1])) - 0.9) < 0.04


def test_kernels_outputs_ensembles_sparse_rows_and_files(tmp_path):
    Y = np.column_stack([y, 100.0 * y**2])
    several = BilevelSVR("rbf", loss="squared", cv=3, random_state=0).fit(X, Y)
    bounds = several.predict_interval(X_new[:50], 0.8, scaled=True)
    assert bounds.shape == (50, 2, 2) and np.all(bounds[..., 0] <= bounds[..., 1])
    rows = sparse.csr_array(np.where(np.abs(X) > 0.2, X, 0.0))
    given = {"loss": "squared", "cv": 3, "random_state": 0}
    thin = BilevelLinearSVR(**given).fit(rows, y)
    dense = BilevelLinearSVR(**given).fit(rows.toarray(), y)
    np.testing.assert_allclose(
        thin.predict_interval(rows, scaled=True),
        dense.predict_interval(rows.toarray(), scaled=True),
        rtol=1e-4,
    )
    save(thin, tmp_path / "model.bisvm")
    np.testing.assert_array_equal(
        load(tmp_path / "model.bisvm").predict_interval(rows, scaled=True),
        thin.predict_interval(rows, scaled=True),
    )


def test_it_says_what_it_needs():
    one_split = [(np.arange(200), np.arange(200, 300))]
    model = BilevelLinearSVR(loss="squared", cv=one_split, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="two splits or more"):
        model.predict_interval(X, scaled=True)
    assert model.predict_interval(X).shape == (300, 2)


# --- importances ----------------------------------------------------------------------


def test_importance_is_the_fall_of_r2_on_new_rows(model):
    found = model.importance(X_new, y_new, columns=["a", "b", "c"])
    assert found.measure == "R^2" and found.names[:2] == ("a", "b")
    # Shuffling a feature of weight w adds 2 w^2 var to the mean squared error.
    expected = 2.0 * model.coef_[0, 0] ** 2 * X_new[:, 0].var() / y_new.var()
    assert found.values[0] == pytest.approx(expected, rel=0.05)
    assert list(found.matters) == [True, True, False]
    assert "Fall of R^2 if a column is shuffled" in str(found)


def test_importance_without_y_is_that_of_held_out_rows(model):
    new = model.importance(X_new, y_new)
    own = model.importance(X)
    assert own.n_rows == 300 and own.names[:2] == new.names[:2]
    np.testing.assert_allclose(own.values[:2], new.values[:2], rtol=0.4)
    with pytest.raises(ValueError, match="those that the model was fitted on"):
        model.importance(X[:50])


def test_importance_of_kernels_and_several_outputs():
    X, y = make_friedman1(200, n_features=7, noise=0.5, random_state=0)
    cv = KFold(3, shuffle=True, random_state=0)
    Y = np.column_stack([y, -3.0 * y])
    model = BilevelSVR("ard", loss="squared", cv=cv, random_state=0).fit(X, Y)
    found = model.importance(X)
    assert set(found.names[-2:]) == {"5", "6"} and not found.matters[-2:].all()
    assert model.importance(X, Y).values[0] == pytest.approx(found.values[0], rel=0.3)


def test_residuals_grow_by_what_the_search_gained_on_its_rows():
    X, y = make_friedman1(60, n_features=12, noise=1.0, random_state=0)
    given = {"loss": "squared", "prior": None, "cv": 3, "random_state": 0}
    model = BilevelSVR("ard", **given).fit(X, y)
    held_out = model._folds.held_out
    gap, left = model.generalization_gap_, 1.0 - model.expected_score_.value
    assert gap > 0.0
    # Residuals have the error that is expected, not that of the held-out rows.
    mean = np.sqrt(np.mean(held_out.residuals**2))
    assert mean == pytest.approx(model.expected_score_.rmse, rel=1e-6)
    assert growth(model.expected_score_, gap) == pytest.approx(left / (left - gap))
    assert growth(None, None) == 1.0
    assert growth(model.expected_score_, -0.1) == 1.0
