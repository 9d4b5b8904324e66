"""Classes that count more in validation, and errors that cost more."""

import numpy as np
import pytest

from bisvm import BilevelObjective, BilevelSVC, ConvolutionalLinearSVC
from bisvm.criteria import VALIDATION, Weighted
from bisvm.search.history import PairedDifference
from tests.covering import crossed, full
from tests.problems import three_classes, toy_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

X, y = toy_data(60)
FEW = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:9]]
RARE, RARE_Y = X[FEW], np.where(y[FEW] == 1, "sick", "well")
PAIRS = [
    (
        np.flatnonzero(np.arange(len(FEW)) % 3 != k),
        np.flatnonzero(np.arange(len(FEW)) % 3 == k),
    )
    for k in range(3)
]


def objective(criterion, **settings):
    model = BilevelSVC(criterion=criterion, random_state=0, **settings)
    return BilevelObjective(model, RARE, RARE_Y)


def masses(problem, labels):
    """Weight of every class in validation."""
    by_row = problem.columns.validation.sum(axis=1)
    return np.array([by_row[labels == one].sum() for one in np.unique(labels)])


@pytest.mark.parametrize("name", VALIDATION)
def test_balance_is_a_weighting(name):
    """Training as it is, and validation as if the rare class had more weight."""
    balanced = objective("balanced_" + name)
    count = np.array([np.sum(RARE_Y == one) for one in ("sick", "well")])
    weights = dict(zip(("sick", "well"), len(RARE_Y) / (2.0 * count), strict=True))
    weighted = objective(Weighted(name, weights))
    plain = objective(name)
    theta = plain.theta0 + 0.1
    (value, gradient), (same, same_gradient) = balanced(theta), weighted(theta)
    assert value == pytest.approx(same, rel=1e-12)
    np.testing.assert_allclose(gradient, same_gradient, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(
        balanced.problem.columns.train, plain.problem.columns.train
    )
    # A ranking compares classes, and does not weigh them.
    if name != "auc":
        assert abs(value - plain(theta)[0]) > 1e-3


def test_balanced_classes_have_the_same_weight():
    for labels, rows, multi_class in (
        (RARE_Y, RARE, "ovr"),
        (*three_classes(60)[::-1], "ovr"),
        (*three_classes(60)[::-1], "ovo"),
    ):
        keep = np.r_[:4, 8 : len(labels)]
        model = BilevelSVC(
            criterion="balanced_blend", multi_class=multi_class, random_state=0, cv=3
        )
        problem = BilevelObjective(model, rows[keep], labels[keep]).problem
        found = masses(problem, labels[keep])
        # Folds hold the classes in equal shares up to one row.
        np.testing.assert_allclose(found, 1.0 / len(found), rtol=0.03)
        assert problem.columns.validation.sum() == pytest.approx(1.0)


def test_costs_stand_in_place_of_the_class_weights_in_validation():
    both = objective(Weighted("blend", {"sick": 10.0}), class_weight="balanced")
    balanced, costs = (
        objective("blend", class_weight="balanced"),
        objective(Weighted("blend", {"sick": 10.0})),
    )
    columns = both.problem.columns
    np.testing.assert_array_equal(columns.train, balanced.problem.columns.train)
    np.testing.assert_allclose(columns.validation, costs.problem.columns.validation)
    sick, well = masses(costs.problem, RARE_Y)
    counts = np.array([np.sum(RARE_Y == "sick"), np.sum(RARE_Y == "well")])
    assert sick / well == pytest.approx(10.0 * counts[0] / counts[1], rel=0.1)


@pytest.mark.parametrize("name", VALIDATION)
@pytest.mark.parametrize("prefix", ["", "balanced_"])
def test_weights_are_repeated_rows(name, prefix):
    """In training and in validation, whatever the criterion."""
    times = 1 + np.arange(len(RARE_Y)) % 3
    rows = np.repeat(np.arange(len(RARE_Y)), times)
    pairs = [
        tuple(np.flatnonzero(np.isin(rows, part)) for part in pair) for pair in PAIRS
    ]
    settings = {"criterion": prefix + name, "random_state": 0, "kernel": "rbf"}
    weighted = BilevelObjective(
        BilevelSVC(cv=PAIRS, **settings), RARE, RARE_Y, sample_weight=times
    )
    repeated = BilevelObjective(
        BilevelSVC(cv=pairs, **settings), RARE[rows], RARE_Y[rows]
    )
    values = {"C": 0.7, "gamma": 0.4}
    one, other = (o.evaluate(o.space.theta(values)) for o in (weighted, repeated))
    assert one.value == pytest.approx(other.value, rel=1e-7)
    np.testing.assert_allclose(one.gradient, other.gradient, rtol=1e-4, atol=1e-7)
    together = np.bincount(rows, other.shares)
    np.testing.assert_allclose(one.shares, together, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", VALIDATION)
def test_shares_add_up_to_the_criterion_and_tell_its_noise(name):
    """A gain is the difference of the criterion, its noise that over samples."""
    found = objective(name, kernel="ard")
    low, high = (found.evaluate(found.theta0 + step) for step in (0.0, 0.7))
    difference = low.criterion - high.criterion
    # The calibrated logistic loss has a ridge that belongs to no point.
    assert (low.shares - high.shares).sum() == pytest.approx(difference, abs=1e-3)
    assert not PairedDifference.between(low, low).exceeds(1.0)


@pytest.mark.parametrize("name", full("smoothed_error", "f1", "auc"))
def test_the_error_of_a_gain_is_right(name):
    """Two machines that stay, on held-out rows drawn anew: stated error and spread."""
    rng = np.random.default_rng(0)
    labels = np.tile(np.repeat([0, 1], [160, 40]), 2)
    model = BilevelSVC("linear", criterion=name, cv=[(FIRST, ~FIRST)], learn="C")
    rows = rng.normal(size=(400, 2)) + 0.9 * labels[:, None]
    gain, stated = [], []
    for _ in range(100):
        labels[200:] = rng.random(200) < 0.2
        rows[200:] = rng.normal(size=(200, 2)) + 0.9 * labels[200:, None]
        # The second machine hardly sees the second column.
        one, other = (
            BilevelObjective(model, rows * np.array([1.0, shrink]), labels).evaluate(
                np.zeros(1)
            )
            for shrink in (1.0, 0.05)
        )
        share = other.shares - one.shares
        gain.append(share.sum())
        apart = share - one.share_weights * share.sum()
        stated.append(np.sqrt(np.sum(apart**2)))
    assert np.mean(stated) == pytest.approx(np.std(gain, ddof=1), rel=0.15)


FIRST = np.arange(400) < 200


@pytest.mark.parametrize(
    "criterion, multi_class",
    crossed(
        ["smoothed_error", "f1", "auc", "balanced_blend", "balanced_f1"],
        ["ovr", "ovo"],
        strength=1,
    ),
)
def test_estimators_learn_by_them(criterion, multi_class):
    rows, labels = three_classes(90)
    model = BilevelSVC("ard", criterion=criterion, multi_class=multi_class, cv=3)
    model.set_params(random_state=0).fit(rows, labels)
    assert model.score(rows, labels) > 0.75
    assert np.isfinite(model.criterion_value_) and model.expected_score_ is not None


def test_classes_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match=r"names classes.*\['ill'\].*'sick', 'well'"):
        objective(Weighted("blend", {"ill": 10.0}))


@pytest.mark.parametrize("criterion", ["f1", "auc", "balanced_calibrated_logistic"])
def test_convolutions_are_weighed_too(criterion):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [30, 12])
    images = rng.normal(size=(42, 8, 8))
    images[labels == 1, 2:5, 3] += 2.0
    model = ConvolutionalLinearSVC((8, 8), (3, 3), criterion=criterion, random_state=0)
    model.set_params(cv=3).fit(images.reshape(42, -1), labels)
    assert model.score(images.reshape(42, -1), labels) > 0.8
