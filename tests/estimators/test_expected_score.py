"""What the estimators say about new data, against other ways to find out."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

import bisvm
import bisvm.estimators.fitted
from bisvm import BilevelLinearSVC, BilevelObjective, BilevelSVC, SwapHoldout
from bisvm.bilevel.objective import COLD, Objective
from bisvm.estimators.expected_score import (
    ExpectedScore,
    _better,
    _choices,
    expected_score,
)
from bisvm.search import results
from bisvm.search.history import PairedDifference
from bisvm.search.kernel_choice import WIDTH_ERRORS
from bisvm.search.results import Competitors
from tests.covering import full
from tests.problems import three_classes, toy_data

X, y = toy_data(90)
X3, y3 = three_classes(75)
FOLDS = StratifiedKFold(5, shuffle=True, random_state=3)


def fitted(kernel="rbf", data=(X, y), groups=None, **settings):
    settings = {"random_state": 0, "cv": FOLDS, "starts": 1, **settings}
    return BilevelSVC(kernel, **settings).fit(*data, groups=groups)


def promise(model):
    return model.expected_score_.value + model.generalization_gap_


def stock(model, **more):
    return SVC(C=model.C_, gamma=float(model.hyperparameters_["gamma"]), **more)


# --- what held-out rows promise -------------------------------------------------------


# Whatever values the search ends at, what is promised is judged there.
FEW_STEPS = {"max_iter": 2}
FEW = pytest.mark.filterwarnings("ignore:Tuning stopped early")


@FEW
def test_the_promise_is_the_accuracy_of_a_cross_validated_svc():
    model = fitted(loss="hinge", **FEW_STEPS)
    said = cross_val_predict(stock(model), X, y, cv=FOLDS)
    assert promise(model) == pytest.approx(np.mean(said == y), abs=1e-12)


@FEW
def test_three_classes_are_judged_together():
    model = fitted(data=(X3, y3), loss="hinge", multi_class="ovr", **FEW_STEPS)
    said = cross_val_predict(OneVsRestClassifier(stock(model)), X3, y3, cv=FOLDS)
    assert promise(model) == pytest.approx(np.mean(said == y3), abs=1e-12)


@FEW
def test_pairs_of_classes_are_judged_by_all_pairs():
    model = fitted(data=(X3, y3), loss="hinge", multi_class="ovo", **FEW_STEPS)
    voter = stock(model, decision_function_shape="ovr", break_ties=True)
    said = cross_val_predict(voter, X3, y3, cv=FOLDS)
    assert promise(model) == pytest.approx(np.mean(said == y3), abs=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {"cv": ShuffleSplit(1, test_size=0.4, random_state=0)},
        {"cv": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)},
        {"cv": SwapHoldout(n_partitions=4)},
        {"cv": 5, "class_weight": "balanced"},
        {"optimizer": "grid"},
        {"learn": None},
    ],
)
def test_any_way_to_hold_out_has_an_expectation(settings):
    model = fitted(**settings)
    low, high = model.expected_score_.interval()
    assert 0.0 < low < float(model.expected_score_) < high <= 1.0
    assert model.generalization_gap_ >= 0.0


def test_classes_tuned_apart_and_linear_machines():
    apart = fitted(data=(X3, y3), shared=False, multi_class="ovr")
    assert 0.5 < apart.expected_score_.value <= 1.0
    linear = BilevelLinearSVC(random_state=0).fit(X, y)
    assert 0.5 < linear.expected_score_.value <= 1.0


def test_rows_of_weight_zero_are_not_judged():
    weight = np.ones(90)
    weight[60:] = 0.0
    model = BilevelSVC("rbf", cv=5, starts=1, random_state=0)
    whole = clone(model).fit(X, y, sample_weight=weight)
    part = clone(model).fit(X[:60], y[:60])
    assert whole.expected_score_ == part.expected_score_


def test_without_held_out_rows_nothing_is_promised():
    model = fitted(criterion="structural_risk", C=1.0)
    assert model.expected_score_ is None and model.generalization_gap_ is None


# --- how sure that is -----------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_the_interval_contains_its_value(value):
    low, high = ExpectedScore(value, 2.0).interval()
    assert low <= value <= high


def test_the_interval_is_that_of_a_beta_distribution():
    score = ExpectedScore(0.8, 100.0)
    expected = stats.beta(80.5, 20.5).ppf([0.05, 0.95])
    np.testing.assert_allclose(score.interval(), expected)
    few, many = score.interval(20), score.interval(100_000)
    assert few[0] < expected[0] and few[1] > expected[1]
    np.testing.assert_allclose(many, expected, atol=1e-3)
    assert score.interval(level=0.99)[0] < score.interval(level=0.5)[0]
    assert str(score).startswith("expected accuracy 80.0% (95% interval 71.")


@pytest.mark.parametrize("draws", [500, *full(2000)])
def test_the_interval_covers_scores_of_new_rows(draws):
    """Accuracies seen on n rows, and then on others, at the same true accuracy."""
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.6, 0.98, draws)
    seen, new = rng.binomial(150, truth) / 150, rng.binomial(80, truth) / 80
    ends = np.array([ExpectedScore(s, 150.0).interval(80) for s in seen])
    inside = (ends[:, 0] <= new) & (new <= ends[:, 1])
    assert 0.87 < inside.mean() < 0.95


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"level": 90}, "between 0 and 1; got 90"),
        ({"n_new": 0}, "number of rows or None; got 0"),
    ],
)
def test_bad_questions_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        ExpectedScore(0.8, 100.0).interval(**given)


def test_folds_that_share_training_rows_tell_less():
    rows = fitted(cv=5).expected_score_.n_effective
    assert rows == pytest.approx(90 / 1.625)
    held_out = fitted(cv=[(np.arange(60), np.arange(60, 90))]).expected_score_
    assert held_out.n_effective == pytest.approx(30 / 1.25)


def test_copies_of_a_row_are_one_observation():
    alone = fitted(cv=5)
    copies = np.repeat(np.arange(90), 4)
    grouped = fitted(cv=5, data=(X[copies], y[copies]), groups=copies)
    assert grouped.expected_score_.n_effective < 1.2 * alone.expected_score_.n_effective


# --- what the search makes of it ------------------------------------------------------


@cache
def over_fitted(seed=0):
    """Fitted once for all tests; they leave it as it is."""
    return over_fit(seed)


def over_fit(seed=0, **settings):
    """Twenty columns of noise, labels by chance, and nothing that holds widths back."""
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(100, 20)), np.arange(100) % 2
    return fitted("ard", data, prior=None, **settings)


@pytest.mark.parametrize("draws", [4, *full(10)])
def test_labels_by_chance_are_not_expected_to_be_learned(draws):
    models = [over_fitted(seed) for seed in range(draws)]
    promised = np.mean([promise(model) for model in models])
    expected = np.mean([model.expected_score_.value for model in models])
    assert promised > 0.65
    assert abs(expected - 0.5) < 0.5 * (promised - 0.5)


def test_one_width_on_much_data_has_no_gap():
    data = make_blobs(400, centers=2, cluster_std=3.0, random_state=0)
    assert fitted(data=data).generalization_gap_ < 0.005


def test_a_choice_without_a_split_does_not_know_its_rows():
    model = BilevelSVC("ard", cv=FOLDS, random_state=0)
    _, held_out = next(iter(FOLDS.split(X, y)))
    other = X.copy()
    # The columns' means and variances stay, by which widths are measured.
    other[held_out] = X[held_out][::-1]
    wholes = [BilevelObjective(model, data, y).objective for data in (X, other)]
    parts = [whole.without(0, COLD)[0] for whole in wholes]
    theta = parts[0].theta0
    one, two = (part.evaluate(theta)[0] for part in parts)
    assert one.value == pytest.approx(two.value, rel=1e-9)
    np.testing.assert_allclose(one.gradient, two.gradient, rtol=1e-9)
    assert len(parts[0].problem.sample_weight) == 90 - len(held_out)
    assert np.unique(parts[0].problem.columns.split).tolist() == [1, 2, 3, 4]


def test_a_time_limit_that_passes_meanwhile_costs_no_fit(monkeypatch):
    monkeypatch.setattr(results, "_affordable", lambda *given: 2)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model = over_fit(time_limit=1e-3)
    assert model.expected_score_ is not None


def test_it_takes_a_small_part_of_the_search(monkeypatch):
    rows = []
    solve = Objective._solve

    def counted(self, *given):
        rows.append(self._held_out.size)
        return solve(self, *given)

    monkeypatch.setattr(Objective, "_solve", counted)
    over_fit()
    search = sum(size for size in rows if size == max(rows))
    assert 0 < sum(rows) - search < 0.2 * search


def test_it_is_the_same_every_time_and_kept_in_files(tmp_path):
    first, second = over_fitted(), over_fit()
    assert first.expected_score_ == second.expected_score_
    pytest.importorskip("skops")
    again = bisvm.load(bisvm.save(first, tmp_path / "model.skops"))
    assert again.expected_score_ == first.expected_score_
    assert again.generalization_gap_ == first.generalization_gap_


# --- labels by chance -----------------------------------------------------------------


def coins(n, d, seed):
    """Features that say nothing of the labels."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(2, size=n)


@pytest.mark.parametrize("counts", [(23, 17), (22, 20, 18)])
def test_a_class_that_was_drawn_more_often_is_no_promise(counts):
    """Stratified folds repeat its share; rows drawn anew might favour another one."""
    labels = np.repeat(np.arange(len(counts)), counts)
    model = fitted("linear", (np.ones((len(labels), 1)), labels), cv=5)
    assert promise(model) == pytest.approx(counts[0] / len(labels))
    assert model.generalization_gap_ > 0.01
    # Constant machines do not depend on the training rows that folds share.
    assert model.expected_score_.n_effective == pytest.approx(len(labels))
    # It is one where chance does not explain it.
    labels = np.repeat([0, 1], (54, 6))
    rare = fitted("linear", (np.ones((60, 1)), labels), cv=5)
    assert promise(rare) == pytest.approx(0.9) and rare.generalization_gap_ < 1e-9


def test_kernels_that_were_tried_are_rivals(monkeypatch):
    seen = []

    def spy(multi_class, data, parts, pair_scale):
        seen.extend(parts)
        return expected_score(multi_class, data, parts, pair_scale)

    monkeypatch.setattr(bisvm.estimators.fitted, "expected_score", spy)
    model = fitted(
        "auto", coins(60, 5, 5), starts="auto", threshold="balanced_accuracy"
    )
    linear, *richer = seen[0].competitors
    assert model.kernel_choice_.name == "linear" and richer
    assert linear.needed == 0.0
    assert {one.needed for one in richer} == {WIDTH_ERRORS}
    np.testing.assert_array_equal(linear.values[0], seen[0].values)
    # Two constant machines each, where the threshold leaves them.
    for one in (linear, *richer):
        constant = np.ptp(one.values[-2:], axis=1)
        np.testing.assert_array_equal(constant, 0.0)
        assert one.shares.shape == (len(one.values), 60)
        np.testing.assert_allclose(one.weights.sum(), 1.0)


def test_rows_drawn_anew_choose_among_kernels():
    """A richer kernel where its gain exceeds the errors needed, else the simpler one.

    Of the rows one says that the richer kernel is much better, the others that it is
    slightly worse: it is chosen where that row is drawn often.
    """
    n = 10
    simple = np.full((1, n), 0.1)
    rich = np.array([[-1.0] + (n - 1) * [0.15]])
    drawn = np.array([[k] + [1] * (n - 1) for k in (0, 1, 5, 9)])
    weights = np.full(n, 1.0 / n)
    competitors = [
        Competitors(simple, simple, weights),
        Competitors(rich, rich, weights, 1.0),
    ]
    assert _choices(competitors, drawn).tolist() == [0, 0, 1, 1]


def test_a_draw_of_every_row_once_makes_the_choice_of_the_fit():
    rng = np.random.default_rng(0)
    simple, rich = 0.02 * rng.random((2, 30, 50))
    weights = np.full(50, 0.02)
    for needed in (0.0, 1.0, 2.0):
        competitors = Competitors(np.empty((0, 50)), np.empty((0, 50)), weights, needed)
        ones = np.ones((30, 50))
        found = _better(simple, rich - 2e-3, competitors, ones)
        wanted = [
            PairedDifference.of(*pair, weights).exceeds(needed)
            for pair in zip(simple, rich - 2e-3, strict=True)
        ]
        assert found.tolist() == wanted and 0 < sum(wanted) < 30


@pytest.mark.full
def test_one_C_per_feature_is_not_expected_to_predict_coins():
    found = []
    for seed in (0, 3, 5):
        machine = BilevelLinearSVC(regularization="per_feature", prior=None, starts=1)
        model = machine.set_params(random_state=seed).fit(*coins(30, 20, seed))
        found.append((promise(model), model.expected_score_.value))
    promised, value = np.mean(found, axis=0)
    assert promised > 0.9 and abs(value - 0.5) < 0.15


@pytest.mark.parametrize("criterion", ["balanced_blend", "mse", "f1", "auc"])
def test_constant_machines_have_a_share_in_any_criterion(criterion):
    score = fitted("linear", coins(40, 3, 1), criterion=criterion).expected_score_
    assert 0.2 < score.value < 0.7


@pytest.mark.parametrize(("n", "rtol"), [(210, 1e-6), (100, 3e-3)])
@pytest.mark.parametrize("kernel", ["rbf", *full("auto")])
def test_the_order_of_rows_has_no_say(kernel, n, rtol):
    """On the same folds, up to rough evaluations that start elsewhere.

    With few rows the largest C is searched too, where H is flat: a descent there ends
    at C or gamma that differ in the third digit.
    """
    X, y = make_moons(n, noise=0.3, random_state=0)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    found = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(y))
        place = np.argsort(order)
        cv = [(place[train], place[test]) for train, test in folds]
        model = BilevelSVC(kernel, cv=cv, random_state=0).fit(X[order], y[order])
        found.append((model.expected_score_.value, *model.expected_score_.interval()))
    assert model.generalization_gap_ > 0.0
    assert_allclose(found[1:], found[:1] * 2, rtol=rtol)
