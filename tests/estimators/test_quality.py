"""Figures on held-out rows, against scikit-learn's, and what is said of them."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn import metrics
from sklearn.datasets import load_iris, make_moons

from bisvm import BilevelLinearSVC, BilevelSVC
from bisvm.estimators.quality import NO_BETTER, TOO_FEW, Quality
from bisvm.reporting.scores import share_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

RNG = np.random.default_rng(0)
QUICK = dict(kernel="rbf", cv=3, random_state=0)


def drawn(n_classes, n=90):
    """Labels, decision values that know something of them, and probabilities."""
    y = RNG.integers(n_classes, size=n)
    scores = RNG.standard_normal((n, n_classes)) + 1.5 * np.eye(n_classes)[y]
    decision = scores if n_classes > 2 else scores[:, 1] - scores[:, 0]
    return y, decision, log_softmax(scores, axis=1)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_figures_are_those_of_scikit_learn(n_classes):
    y, decision, logs = drawn(n_classes)
    found = Quality.of(y, decision, logs, np.arange(n_classes))
    predicted = decision.argmax(axis=1) if n_classes > 2 else (decision > 0).astype(int)
    precision, recall, *_ = metrics.precision_recall_fscore_support(y, predicted)
    assert np.allclose(found.precision, precision) and np.allclose(found.recall, recall)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(y, predicted))
    balanced = metrics.balanced_accuracy_score(y, predicted)
    assert found.balanced_accuracy == pytest.approx(balanced)
    p = np.exp(logs)
    assert found.log_loss == pytest.approx(metrics.log_loss(y, p))
    if n_classes == 2:
        assert found.auc == pytest.approx(metrics.roc_auc_score(y, decision))
    else:
        # Any scores may rank, and scikit-learn asks for probabilities.
        areas = [metrics.roc_auc_score(y == c, decision[:, c]) for c in range(4)]
        assert found.auc == pytest.approx(np.mean(areas))
    assert found.accuracy_interval() == pytest.approx(share_of(predicted == y)[1:3])


@pytest.mark.full
def test_the_area_counts_ties_half_and_rows_by_weight():
    y, weight = RNG.integers(2, size=80), RNG.uniform(size=80)
    decision = np.round(RNG.standard_normal(80) + y, 1)
    found = Quality.of(y, decision, None, np.arange(2), weight=weight)
    expected = metrics.roc_auc_score(y, decision, sample_weight=weight)
    assert found.auc == pytest.approx(expected, rel=1e-12)


def test_the_deviation_of_guesses_is_that_of_random_predictions():
    """z_balanced of predictions that are independent of the classes has variance 1."""
    y = np.repeat([0, 1, 2], [200, 60, 40])
    gains = []
    for _ in range(200):
        predicted = RNG.choice(3, size=len(y), p=[0.7, 0.2, 0.1])
        gains.append(Quality.of(y, np.eye(3)[predicted], None, np.arange(3)).gains)
    _, balanced = np.transpose(gains)
    assert abs(balanced.mean()) < 0.2 and balanced.std() == pytest.approx(1, abs=0.15)


def test_a_row_that_is_held_out_twice_counts_once():
    y, decision, logs = drawn(3)
    once = Quality.of(y, decision, logs, np.arange(3))
    twice = [np.concatenate([one, one]) for one in (y, decision, logs)]
    half = np.full(2 * len(y), 0.5)
    again = Quality.of(*twice, np.arange(3), weight=half)
    assert np.allclose(again.confusion, once.confusion)
    assert again.auc == pytest.approx(once.auc)
    assert again.gains == pytest.approx(once.gains)


def test_a_constant_prediction_is_no_better_than_guessing():
    y = np.repeat([0, 1], [80, 20])
    found = Quality.of(y, np.full(100, -1.0), None, np.array(["no", "yes"]))
    assert found.no_better_than_guessing and found.constant == "no"
    assert str(found).startswith(f"{NO_BETTER}: class 'no' is predicted for all 100")
    assert "accuracy (80.0%) says little" in str(found)
    assert np.isnan(found.precision[1]) and found.gains == (0.0, 0.0)


def test_a_rare_class_that_is_found_is_better_than_guessing():
    """With 1.5% ill, accuracy hardly rises above that of guessing."""
    y = np.repeat([0, 1], [985, 15])
    decision = np.where(y == 1, 1.0, -1.0)
    decision[985:990] = -1.0
    found = Quality.of(y, decision, None, np.array(["well", "ill"]))
    assert not found.no_better_than_guessing and found.unbalanced
    assert found.headline.startswith("Balanced accuracy 83.3%")


def test_held_out_rows_of_a_search_are_counted():
    X, y = load_iris(return_X_y=True)
    model = BilevelSVC(**QUICK).fit(X, y)
    found = model.quality_
    promise = model.expected_score_.value + model.generalization_gap_
    assert found.accuracy == pytest.approx(promise)
    assert np.array_equal(found.rows, [50, 50, 50])
    assert not found.no_better_than_guessing and found.auc > 0.9


def test_chance_is_called_guessing_and_scores_that_rank_are_told():
    X, y = make_moons(80, noise=0.3, random_state=0)
    with pytest.warns(Warning, match="no better than guessing"):
        model = BilevelLinearSVC(cv=3, random_state=0)
        model.fit(X, np.random.default_rng(0).permutation(y))
    assert str(model.quality_).startswith(NO_BETTER)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2))
    y = 0.5 * X[:, 0] + rng.standard_normal(600) > 1.5
    with pytest.warns(UserWarning, match="decision values do rank the rows"):
        model = BilevelLinearSVC(cv=3, random_state=0).fit(X, y)
    assert model.quality_.ranks and model.quality_.no_better_than_guessing
    goal = "balanced_accuracy"
    moved = BilevelLinearSVC(cv=3, threshold=goal, random_state=0).fit(X, y)
    assert not moved.quality_.no_better_than_guessing
    assert moved.quality_.balanced_accuracy > model.quality_.balanced_accuracy + 0.1


def test_nothing_is_said_without_held_out_rows():
    X, y = make_moons(40, random_state=0)
    model = BilevelSVC("ard", criterion="structural_risk", learn=("gamma",))
    assert model.fit(X, y).quality_ is None


def test_two_rows_that_are_right_are_too_few_to_tell():
    def all_right(n):
        y = np.arange(n) % 2
        return Quality.of(y, 2.0 * y - 1.0, None, np.arange(2))

    two = all_right(2)
    assert two.too_few_to_tell and two.no_better_than_guessing
    assert two.headline.startswith(f"{TOO_FEW}: accuracy 100.0%")
    assert "2 rows in cross-validation" in two.headline and NO_BETTER not in str(two)
    assert not all_right(6).no_better_than_guessing
    # Wrong on enough rows is a verdict.
    y = np.arange(8) % 2
    wrong = Quality.of(y, 1.0 - 2.0 * y, None, np.arange(2))
    assert wrong.headline.startswith(f"{NO_BETTER}: ") and not wrong.too_few_to_tell


def test_guessing_is_the_largest_class_of_the_training_rows():
    y = np.repeat([0, 1], [6, 4])
    found = Quality.of(y, np.linspace(-1, 1, 10), None, np.arange(2), guessed=1)
    assert found.guess == 0.4 and found.largest_class == "1"
    assert Quality.of(y, np.linspace(-1, 1, 10), None, np.arange(2)).guess == 0.6


def test_the_calibration_error_of_right_probabilities_is_the_usual_one():
    rng = np.random.default_rng(0)
    errors, usual = [], []
    for _ in range(200):
        p = rng.uniform(0.5, 1.0, 100)
        right = rng.random(100) < p
        log_proba = np.log(np.column_stack([p, 1.0 - p]))
        found = Quality.of(
            np.where(right, 0, 1), -np.ones(100), log_proba, np.arange(2)
        )
        errors.append(found.calibration_error)
        usual.append(found.calibration_noise)
    assert np.mean(errors) == pytest.approx(np.mean(usual), rel=0.08)
    assert "by chance" in found.summary()


def test_classes_count_alike_if_a_threshold_asks_for_it():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = X[:, 0] + 0.5 * rng.standard_normal(200) > 0.5
    plain = BilevelLinearSVC(random_state=0).fit(X, y)
    moved = BilevelLinearSVC(threshold="balanced_accuracy", random_state=0).fit(X, y)
    assert plain.quality_.measure.name == plain.importance(X).measure == "accuracy"
    assert moved.quality_.measure.name == "balanced accuracy"
    assert moved.importance(X).measure == "balanced accuracy"
    assert moved.importance(X, y).measure == "balanced accuracy"
