"""Thresholds by the held-out points of the tuning."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score
from sklearn.model_selection import FixedThresholdClassifier, StratifiedKFold

import bisvm
from bisvm import BilevelLinearSVC, BilevelSVC
from bisvm.estimators.thresholds import best_threshold
from tests.covering import crossed
from tests.problems import three_classes

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

X, codes = make_classification(
    300, 6, n_informative=4, weights=[0.88], class_sep=0.7, random_state=3
)
y = np.where(codes == 1, "sick", "well")
CLASSES = np.array(["sick", "well"])
COSTS = {"sick": 8.0, "well": 1.0}
FOLDS = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
QUICK = {"cv": FOLDS, "starts": 1, "random_state": 0}


def cost(true, said, sample_weight):
    wrong = (true != said) * np.where(true == "sick", COSTS["sick"], COSTS["well"])
    return -np.sum(sample_weight * wrong)


def f1(true, said, sample_weight, of="well"):
    # Where nothing is said to be positive F1 is zero.
    return f1_score(
        true, said, pos_label=of, sample_weight=sample_weight, zero_division=0
    )


def f1_of_the_sick(true, said, sample_weight):
    return f1(true, said, sample_weight, of="sick")


def accuracy(true, said, sample_weight):
    return accuracy_score(true, said, sample_weight=sample_weight)


def balanced(true, said, sample_weight):
    return balanced_accuracy_score(true, said, sample_weight=sample_weight)


METRICS = {"accuracy": accuracy, "balanced_accuracy": balanced, "f1": f1}
GOALS = [
    *METRICS.items(),
    (COSTS, cost),
    (("f1", "well"), f1),
    (("f1", "sick"), f1_of_the_sick),
]


@pytest.mark.parametrize(
    "judged, shift",
    crossed({str(one[0]): one for one in GOALS}, [0.0, 1.0, -5.0], strength=1),
)
def test_the_best_threshold_is_that_of_a_search_over_all(judged, shift):
    goal, metric = judged
    rng = np.random.default_rng(0)
    positive = rng.random(80) < 0.7
    values = (rng.normal(size=80) + positive).round(1) + shift  # with ties
    weight = rng.uniform(0.5, 2.0, 80)
    found = best_threshold(values, positive, weight, goal, CLASSES)

    def score(t):
        said = np.where(values > t, "well", "sick")
        return metric(np.where(positive, "well", "sick"), said, weight)

    # Between any two values there is one of these.
    everywhere = np.concatenate([[-1e3, 1e3], np.linspace(-9.05, 9.05, 182)])
    best = max(score(t) for t in everywhere)
    assert score(found) == pytest.approx(best, abs=1e-12)
    if score(0.0) >= best - 1e-12:
        assert found == 0.0


def test_machines_that_separate_keep_their_zero():
    values, positive = np.array([-2.0, -1.0, 0.5, 3.0]), np.array([0, 0, 1, 1]) == 1
    for goal, _ in GOALS:
        rest = positive, np.ones(4), goal, CLASSES
        assert best_threshold(values, *rest) == 0.0
        assert best_threshold(values + 2.0, *rest) == pytest.approx(1.75)
    same = np.zeros(4), positive, np.ones(4)
    assert best_threshold(*same, {"sick": 9.0}, CLASSES) == 0.0
    assert best_threshold(*same, {"well": 9.0}, CLASSES) < 0.0


@pytest.fixture(scope="module")
def model():
    return BilevelSVC("rbf", **QUICK).fit(X, y)


@pytest.mark.parametrize("goal", [goal for goal, _ in GOALS], ids=str)
def test_the_setting_moves_zero_and_what_is_expected(model, goal):
    moved = BilevelSVC("rbf", **QUICK, threshold=goal).fit(X, y)
    t = model.best_threshold(goal)
    assert moved.threshold_ == t and model.threshold_ == 0.0
    np.testing.assert_allclose(
        moved.decision_function(X), model.decision_function(X) - t, atol=1e-9
    )
    by_hand = FixedThresholdClassifier(
        FrozenEstimator(model),
        threshold=t,
        pos_label="well",
        response_method="decision_function",
    ).fit(X, y)
    np.testing.assert_array_equal(by_hand.predict(X), moved.predict(X))
    assert moved.best_threshold(goal) == pytest.approx(0.0, abs=1e-12)
    accuracy = moved.expected_score_.value + moved.generalization_gap_
    values, positive = model._decisions.values, model._decisions.positive
    assert accuracy == pytest.approx(np.mean((values > t) == positive))


def test_the_values_are_those_of_machines_that_have_not_seen_the_points():
    """Refitted on every fold at the learned values, by the estimator itself."""
    # To the end: what a search has found when it is stopped may be less precise.
    model = BilevelSVC("rbf", **QUICK, tol=1e-4, max_iter=100).fit(X, y)
    values = {"C": model.C_, "kernel": model.kernel_}
    expected = np.empty(len(y))
    for train, held_out in FOLDS:
        one = BilevelSVC(learn=None, cv=2, **values)
        one.fit(X[train], y[train])
        expected[held_out] = one.decision_function(X[held_out])
    np.testing.assert_allclose(model._decisions.values, expected, atol=1e-3)


def test_weights_of_samples_count(model):
    weight = np.where(np.arange(len(y)) % 2, 1.0, 3.0)
    weighted = BilevelSVC("rbf", cv=FOLDS, learn=None).fit(X, y, sample_weight=weight)
    found = weighted._decisions
    assert set(found.weight) == {1.0, 3.0}
    by_class = BilevelSVC("rbf", cv=FOLDS, learn=None, class_weight="balanced").fit(
        X, y
    )
    assert set(by_class._decisions.weight) == {1.0}


def test_a_threshold_is_kept_in_files(model, tmp_path):
    goal = "balanced_accuracy"
    moved = BilevelLinearSVC(**QUICK, threshold=goal).fit(X, y)
    again = bisvm.load(bisvm.save(moved, tmp_path / "model.skops"))
    np.testing.assert_array_equal(again.predict(X), moved.predict(X))
    assert again.threshold_ == moved.threshold_ != 0.0
    assert again.best_threshold("accuracy") == moved.best_threshold("accuracy")
    with pytest.raises(ValueError, match="threshold"):
        moved.to_sklearn()


@pytest.mark.parametrize(
    "goal, message",
    [
        ("recall", r"'accuracy', 'balanced_accuracy', 'f1', \('f1', class\), or what"),
        (("f1", "ill"), r"does not have; y has \['sick', 'well'\]"),
        (("recall", "sick"), "is not understood"),
        (0.3, "threshold=0.3 is not understood"),
        ({}, "not understood"),
        ({"sick": -1.0}, "positive number"),
        ({"ill": 2.0}, r"\['ill'\].*'sick', 'well'"),
    ],
    ids=str,
)
def test_goals_that_make_no_sense_are_refused(model, goal, message):
    with pytest.raises(ValueError, match=message):
        model.best_threshold(goal)
    with pytest.raises(ValueError, match=message):
        BilevelSVC("rbf", threshold=goal).fit(X, y)


def test_there_must_be_two_classes_and_points_of_both():
    rows, labels = three_classes(60)
    with pytest.raises(ValueError, match="between two classes; y has 3.*Weighted"):
        BilevelSVC("rbf", threshold="f1").fit(rows, labels)
    risk = BilevelSVC("rbf", criterion="structural_risk", threshold="f1")
    with pytest.raises(ValueError, match="holds none out"):
        risk.fit(X, y)
    risk = BilevelSVC("rbf", criterion="structural_risk", learn=None).fit(X, y)
    with pytest.raises(ValueError, match="No points of both classes were held out"):
        risk.best_threshold("f1")
    one = np.flatnonzero(y == "well")[:20]
    pair = [(np.setdiff1d(np.arange(len(y)), one), one)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BilevelSVC("rbf", cv=pair, max_iter=2).fit(X, y)
    with pytest.raises(ValueError, match="No points of both classes were held out"):
        model.best_threshold("accuracy")
