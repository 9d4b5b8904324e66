"""Data that say little: one column, classes that are missing or far apart."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC
from bisvm.criteria import VALIDATION
from bisvm.kernels import RBF, Matern
from bisvm.machines.regularization import Shared
from tests.covering import crossed, later, marked
from tests.problems import toy_data, within

pytestmark = pytest.mark.usefixtures("brief_searches")

MAKERS = {
    "rbf": lambda **s: BilevelSVC("rbf", random_state=0, **s),
    "ard": lambda **s: BilevelSVC("ard", random_state=0, **s),
    "linear": lambda **s: BilevelLinearSVC(random_state=0, **s),
    "one C per feature": lambda **s: BilevelLinearSVC(
        regularization="per_feature", random_state=0, **s
    ),
}
EACH = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
VALIDATED = list(VALIDATION)

Y = np.arange(60) % 2
RNG = np.random.default_rng(0)
COLUMN = RNG.normal(size=(60, 1)) + 1.5 * Y[:, None]


def in_bounds(model, X, y):
    """Whether the hyperparameters are within the bounds of the search."""
    objective = BilevelObjective(model, X, y)
    theta = objective.space.theta(model.hyperparameters_)
    low, high = objective.bounds.T
    return bool(np.all((theta >= low - 1e-9) & (theta <= high + 1e-9)))


@pytest.mark.parametrize("make, criterion", crossed(MAKERS, VALIDATED, strength=1))
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
    assert np.mean(said == expected) >= 0.95
    assert in_bounds(model, padded, Y)


def separated(distance):
    """Two clouds, so far apart that any machine tells them."""
    X = np.random.default_rng(1).normal(size=(60, 3))
    return X + distance * Y[:, None]


@pytest.mark.parametrize(
    "make, criterion, distance", crossed(MAKERS, VALIDATED, [8.0, 1e4], strength=1)
)
@pytest.mark.filterwarnings("ignore:Tuning stopped early")
def test_separated_classes_leave_all_in_bounds(make, criterion, distance):
    X = separated(distance)
    with within(600):
        model = make(criterion=criterion).fit(X, Y)
    assert model.score(X, Y) == 1.0
    assert in_bounds(model, X, Y)
    assert np.all(np.isfinite(model.decision_function(X)))
    assert model.expected_score_.value == 1.0


@pytest.mark.usefixtures("usual_searches")
def test_a_hyperparameter_that_ended_at_its_bound_is_named():
    """The logistic loss of separated points falls for as long as C grows."""
    X = separated(8.0)
    model = BilevelSVC(
        criterion="logistic",
        regularization=Shared(C_bounds=(1e-2, 300.0)),
        random_state=0,
    )
    model.fit(X, Y)
    assert model.C_ == pytest.approx(300.0)
    assert model.certificate_.at_bounds == ("C at its upper bound, 300",)
    # A pull beyond the bound is no sign that the search did not come to its end.
    assert model.certificate_.converged and model.certificate_.upper_gradient < 1e-2
    plain = BilevelSVC("rbf", starts=1, random_state=0).fit(*toy_data(80))
    assert plain.certificate_.at_bounds == ()


def test_features_held_at_a_bound_are_named_by_their_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(separated(8.0), columns=["a", "b", "c"])
    model = BilevelLinearSVC(
        criterion="mse", regularization="per_feature", starts=1, prior=None, C=1e3
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


@pytest.mark.parametrize(
    "criterion",
    [
        pytest.param(name, marks=marked(name not in ("blend", "f1", "auc")))
        for name in VALIDATED
    ],
)
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


@pytest.mark.usefixtures("usual_searches")
@pytest.mark.parametrize("criterion", ["f1", "auc", "balanced_blend"])
def test_a_rare_class_in_two_folds_has_its_criteria(criterion):
    rows = np.r_[ZEROS, ONES[:3]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = BilevelSVC("rbf", criterion=criterion, random_state=0)
        model.fit(COLUMN[rows], Y[rows])
    assert any("Class 1 has fewer" in str(one.message) for one in caught)
    assert np.isfinite(model.criterion_value_)
    assert set(model.predict(COLUMN)) <= {0, 1}


# --- inputs that hardly differ, and few rows ------------------------------------------

ALL_MAKERS = {
    **MAKERS,
    "auto": lambda **s: BilevelSVC(random_state=0, **s),
    "laplacian": lambda **s: BilevelSVC("laplacian", random_state=0, **s),
    "matern": lambda **s: BilevelSVC("matern52", random_state=0, **s),
    "poly": lambda **s: BilevelSVC("poly", random_state=0, **s),
    "landmarks": lambda **s: BilevelSVC(
        "rbf", approximation="nystroem", random_state=0, **s
    ),
    "exact hinge": lambda **s: BilevelSVC(
        "rbf",
        loss="hinge",
        criterion="hinge",
        starts=1,
        max_iter=3,
        random_state=0,
        **s,
    ),
    "many starts": lambda **s: BilevelSVC("rbf", starts=4, random_state=0, **s),
    "ensemble": lambda **s: BilevelSVC("rbf", ensemble=2, random_state=0, **s),
}
ALL = pytest.mark.parametrize("make", ALL_MAKERS.values(), ids=ALL_MAKERS)
TWO = {name: ALL_MAKERS[name] for name in ("rbf", "linear")}
OTHERS = {name: make for name, make in ALL_MAKERS.items() if name not in TWO}


def two(*axes):
    """Two machines, and the others in `make test-full`: `test_ten_rows` has all."""
    return [
        *crossed(TWO, *axes, strength=1),
        *later(crossed(OTHERS, *axes, strength=1)),
    ]


VALUES = [2.5, 0.0, 0.1, -1e9 / 3, 1e20, 1e150, 1e-200]
FEW_LABELS = np.arange(40) % 2
SPIKE = np.eye(40)[:, 3:4]
FEW = np.random.default_rng(5)


def fitted_quietly(make, X, y):
    """A fit that warns in words of this library alone."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make().fit(X, y)
        values = model.decision_function(X)
    assert np.all(np.isfinite(values))
    assert np.isfinite(model.criterion_value_)
    assert set(model.predict(X)) <= set(y)
    own = (ConvergenceWarning, UserWarning)
    foreign = [one for one in caught if one.category not in own]
    assert not foreign, [str(one.message) for one in foreign]
    return model


@pytest.mark.parametrize("make, value", two(VALUES))
def test_one_distinct_x_gives_a_constant(make, value):
    X = np.full((40, 2), value)
    model = fitted_quietly(make, X, FEW_LABELS)
    assert np.ptp(model.decision_function(X)) == 0.0
    assert model.score(X, FEW_LABELS) == 0.5
    np.testing.assert_array_equal(model.relevance_, [0.0, 0.0])
    low, high = model.expected_score_.interval()
    assert low < 0.5 < high


@pytest.mark.parametrize("make", two())
def test_one_distinct_x_of_most_rows_of_one_class(make):
    """The constant is the larger class."""
    y = np.repeat([0, 1], [30, 10])
    model = fitted_quietly(make, np.ones((40, 3)), y)
    np.testing.assert_array_equal(model.predict(np.ones((5, 3))), np.zeros(5))


@pytest.mark.parametrize("make, size", two([1.0, 1e8, 1e-12]))
def test_all_rows_of_a_column_equal_but_one(make, size):
    """Alone it says nothing of the other rows."""
    X = size * SPIKE
    model = fitted_quietly(make, X, FEW_LABELS)
    others = np.delete(np.arange(40), 3)
    assert np.ptp(model.decision_function(X)[others]) == 0.0
    low, high = model.expected_score_.interval()
    assert low < 0.5 < high


@pytest.mark.parametrize("make", two())
def test_a_column_of_equal_rows_but_one_beside_others(make):
    signal = np.random.default_rng(0).normal(size=(40, 1)) + 2.5 * FEW_LABELS[:, None]
    constant = np.ones((40, 1))
    model = fitted_quietly(make, np.hstack([signal, SPIKE, constant]), FEW_LABELS)
    alone = fitted_quietly(make, signal, FEW_LABELS)
    X = np.hstack([signal, SPIKE, constant])
    assert np.mean(model.predict(X) == alone.predict(signal)) >= 0.9
    assert np.argmax(model.relevance_) == 0


def test_a_large_constant_does_not_drown_the_distances():
    """Its mean is off by rounding, 1e17 or so: more than all that the others tell."""
    wide = np.hstack([COLUMN, np.full((60, 1), 1e33 / 3)])
    for kernel in (RBF(0.5), Matern(2.5, gamma=0.5)):
        alone = kernel.gram(COLUMN)
        np.testing.assert_allclose(kernel.gram(wide), alone, atol=1e-12)
        np.testing.assert_allclose(kernel.gram(wide, wide[:7]), alone[:, :7], atol=1e-9)
    narrow = RBF(0.5).single(wide)
    np.testing.assert_array_equal(narrow[:, 1], np.zeros(60))


TEN = {
    "noise": (FEW.normal(size=(10, 3)), np.arange(10) % 2),
    "separated": (
        FEW.normal(size=(10, 3)) + 6.0 * (np.arange(10) % 2)[:, None],
        np.arange(10) % 2,
    ),
    "three classes": (FEW.normal(size=(10, 3)), np.arange(10) % 3),
    "two rows of a class": (FEW.normal(size=(10, 3)), np.repeat([0, 1], [2, 8])),
    "many features": (FEW.normal(size=(10, 100)), np.arange(10) % 2),
    "one distinct x": (np.ones((10, 2)), np.arange(10) % 2),
    "all equal but one": (np.eye(10)[:, :1], np.arange(10) % 2),
}


@pytest.mark.parametrize("make, data", crossed(ALL_MAKERS, TEN, strength=1))
def test_ten_rows(make, data):
    with within(600):
        model = fitted_quietly(make, *data)
    low, high = model.expected_score_.interval()
    # Ten rows cannot promise much.
    assert high - low > 0.2
    if data is TEN["separated"]:
        assert model.score(*data) == 1.0


@pytest.mark.parametrize("make", two())
def test_a_class_of_one_row_among_ten(make):
    y = np.repeat([0, 1], [9, 1])
    with warnings.catch_warnings(record=True) as caught, within(600):
        warnings.simplefilter("always")
        model = make().fit(TEN["noise"][0], y)
    assert any("Class 1 has one member only" in str(one.message) for one in caught)
    assert np.isfinite(model.predict_proba(TEN["noise"][0])).all()
