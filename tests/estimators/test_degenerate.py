"""Data that say little: one column, classes that are missing or far apart."""

import warnings

import numpy as np
import pytest

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC
from bisvm.criteria import VALIDATION
from bisvm.penalties import Shared
from tests.problems import toy_data, within

MAKERS = {
    "rbf": lambda **s: BilevelSVC("rbf", random_state=0, **s),
    "ard": lambda **s: BilevelSVC("ard", random_state=0, **s),
    "linear": lambda **s: BilevelLinearSVC(random_state=0, **s),
    "one C per feature": lambda **s: BilevelLinearSVC(
        penalty="per_feature", random_state=0, **s
    ),
}
EACH = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
CRITERIA = pytest.mark.parametrize("criterion", VALIDATION)

Y = np.arange(60) % 2
RNG = np.random.default_rng(0)
COLUMN = RNG.normal(size=(60, 1)) + 1.5 * Y[:, None]


def in_bounds(model, X, y):
    """Whether the hyperparameters are within the bounds of the search."""
    objective = BilevelObjective(model, X, y)
    theta = objective.space.theta(model.hyperparameters_)
    low, high = objective.bounds.T
    return bool(np.all((theta >= low - 1e-9) & (theta <= high + 1e-9)))


@EACH
@CRITERIA
@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_one_feature_is_enough(make, criterion):
    model = make(criterion=criterion).fit(COLUMN, Y)
    assert model.score(COLUMN, Y) > 0.7
    assert np.all(np.isfinite(model.decision_function(COLUMN)))
    np.testing.assert_allclose(model.relevance_, [1.0])


@EACH
@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_all_columns_but_one_may_be_constant(make):
    padded = np.hstack([np.full((60, 1), 7.0), COLUMN, np.zeros((60, 3))])
    model, alone = make().fit(padded, Y), make().fit(COLUMN, Y)
    np.testing.assert_array_equal(model.relevance_, [0.0, 1.0, 0.0, 0.0, 0.0])
    said, expected = model.predict(padded), alone.predict(COLUMN)
    assert np.mean(said == expected) > 0.95
    assert in_bounds(model, padded, Y)


def separated(distance):
    """Two clouds, so far apart that any machine tells them."""
    X = np.random.default_rng(1).normal(size=(60, 3))
    return X + distance * Y[:, None]


@EACH
@CRITERIA
@pytest.mark.parametrize("distance", [8.0, 1e4])
@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_separated_classes_leave_all_in_bounds(make, criterion, distance):
    X = separated(distance)
    with within(60):
        model = make(criterion=criterion).fit(X, Y)
    assert model.score(X, Y) == 1.0
    assert in_bounds(model, X, Y)
    assert np.all(np.isfinite(model.decision_function(X)))
    assert model.expected_score_.value == 1.0


def test_a_hyperparameter_that_ended_at_its_bound_is_named():
    """The logistic loss of separated points falls for as long as C grows."""
    X = separated(8.0)
    model = BilevelSVC(
        criterion="logistic", penalty=Shared(C_bounds=(1e-2, 300.0)), random_state=0
    )
    model.fit(X, Y)
    assert model.C_ == pytest.approx(300.0)
    assert model.certificate_.at_bounds == ("C at its upper bound, 300",)
    # A pull beyond the bound is no sign that the search did not come to its end.
    assert model.certificate_.converged and model.certificate_.upper_gradient < 1e-2
    plain = BilevelSVC("rbf", random_state=0).fit(*toy_data(60))
    assert plain.certificate_.at_bounds == ()


def test_features_held_at_a_bound_are_named_by_their_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(separated(8.0), columns=["a", "b", "c"])
    model = BilevelLinearSVC(
        criterion="mse", penalty="per_feature", starts=1, prior=None, C=1e3
    )
    model = model.set_params(random_state=0).fit(frame, Y)
    objective = BilevelObjective(model, frame, Y)
    theta = objective.space.theta(model.hyperparameters_)
    expected = [
        name
        for name, x, (low, high) in zip(
            objective.names, theta, objective.bounds, strict=True
        )
        if min(abs(x - low), abs(x - high)) < 1e-6
    ]
    said = model.certificate_.at_bounds
    assert [words.split(" at its ")[0] for words in said] == expected


# --- folds without a class ------------------------------------------------------------

ONES, ZEROS = np.flatnonzero(Y == 1), np.flatnonzero(Y == 0)


@CRITERIA
@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_a_fold_that_holds_out_one_class_only_still_serves(criterion):
    """Also where the gap is looked at split by split, with many widths."""
    rest = np.arange(60)
    held_out = (ZEROS[:8], np.r_[ONES[:9], ZEROS[10:14]], np.r_[ONES[9:18], ZEROS[14:]])
    pairs = [(np.setdiff1d(rest, part), part) for part in held_out]
    noise = np.random.default_rng(2).normal(size=(60, 5))
    wide = np.hstack([COLUMN, noise])
    model = BilevelSVC("ard", cv=pairs, criterion=criterion, random_state=0)
    model.fit(wide, Y)
    assert model.score(wide, Y) > 0.7
    assert np.isfinite(model.criterion_value_)


def test_folds_that_never_hold_out_both_classes_cannot_rank_them():
    pairs = [
        (np.setdiff1d(np.arange(60), part), part) for part in (ZEROS[:8], ONES[:8])
    ]
    with pytest.raises(ValueError, match="no split holds out points of both.*folds"):
        BilevelSVC("rbf", cv=pairs, criterion="auc").fit(COLUMN, Y)


def test_a_training_part_without_a_class_is_refused():
    pairs = [(ONES, ZEROS)]
    with pytest.raises(ValueError, match="Split 0.*one class only.*stratified"):
        BilevelSVC("rbf", cv=pairs).fit(COLUMN, Y)


@pytest.mark.parametrize("criterion", ["f1", "auc", "balanced_blend"])
def test_a_rare_class_in_two_folds_has_its_criteria(criterion):
    rows = np.r_[ZEROS, ONES[:3]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = BilevelSVC("rbf", criterion=criterion, random_state=0)
        model.fit(COLUMN[rows], Y[rows])
    assert any("using 3 folds" in str(one.message) for one in caught)
    assert np.isfinite(model.criterion_value_)
    assert set(model.predict(COLUMN)) <= {0, 1}
