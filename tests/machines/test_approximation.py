"""Landmarks in the place of the whole Gram matrix: what they leave out, and to H."""

import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_moons
from sklearn.preprocessing import StandardScaler

from bisvm import BilevelObjective, BilevelSVC
from bisvm.datasets import make_moons_with_noise
from bisvm.kernels import RBF
from bisvm.losses import Quartic
from bisvm.machines.approximation import (
    EXACT_ROWS,
    Approximation,
    gram_bytes,
    resolve_approximation,
)
from bisvm.machines.landmarks import LeftOut, choose_landmarks, landmark_machine
from bisvm.search import units
from bisvm.testing import check_gradient

X, y = make_moons(900, noise=0.25, random_state=0)
X_test, y_test = make_moons(500, noise=0.25, random_state=1)


def size(choice, n, max_memory=None, **changes):
    given = dict(jobs=1, more_grams=0, possible=True) | changes
    return resolve_approximation(choice, n, 5, max_memory, **given)


def test_auto_takes_the_whole_matrix_of_few_rows_and_landmarks_of_many():
    assert size("none", 5000, 1e9) is None
    assert size("auto", 5000, 1e9) == Approximation(500, needed=False, kept=False)
    few = size("auto", 5000, 1e8)
    assert few.needed and few.warns
    assert "5000 samples needs 0.602 GB, and max_memory allows 0.1 GB" in few.limited
    assert size("auto", 20_000, 1e11).needed
    assert size("nystroem", 300, 1e9).needed
    assert size("auto", 5000, 1e9, possible=False) is None


def test_larger_active_sets_reach_landmarks_with_fewer_rows():
    assert size("auto", 3000, 1e10, active=2.5) is not None
    assert not size("auto", 3000, 1e10, active=2.5).needed
    many = size("auto", 5000, 1e10, active=2.5)
    assert many.needed and many.exact_rows == 3200
    assert not size("auto", 5000, 1e10).needed


@pytest.mark.parametrize("n", [10_000, 100_000, 1_000_000])
@pytest.mark.parametrize("max_memory", [1e9, 4e9])
def test_landmarks_fit_into_the_memory_allowed(n, max_memory):
    rule = size("auto", n, max_memory)
    assert 10 <= rule.most <= 1000
    assert rule.most <= rule.final <= 2 * rule.most
    rows = rule.sample_rows if rule.in_blocks else n
    landmarks = rule.most if rule.in_blocks else rule.final
    assert 4 * 8 * rows * landmarks <= max_memory


def test_features_that_do_not_fit_are_computed_in_blocks():
    assert not size("auto", 100_000, 1e11).in_blocks
    little = size("auto", 100_000, 2e9)
    assert little.in_blocks and little.most == 1000
    assert "in blocks of rows, where the whole search" in little.limited
    # Many rows have the same model on computers with more memory.
    for max_memory in (2e9, 1e11):
        blocks = size("auto", 1_000_000, max_memory)
        assert blocks.in_blocks and (blocks.most, blocks.final) == (316, 632)
        assert not blocks.warns
    # Rows that come in blocks stay there.
    assert size("auto", 50_000, 1e11, in_blocks=True).in_blocks
    assert size("auto", 10_000_000, 1e11, in_blocks=True).most == 300


@pytest.mark.parametrize(
    ("choice", "n", "max_memory", "message"),
    [
        ("none", 50_000, 1e9, "50000 samples needs 60 GB.*allows 1 GB.*'auto'"),
        ("auto", 1_000_000, 1e7, "5 training problems on 1000000 samples take"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_figures(choice, n, max_memory, message):
    with pytest.raises(MemoryError, match=message):
        size(choice, n, max_memory)


def test_what_is_left_out_is_the_distance_to_the_span_of_the_landmarks():
    kernel = RBF(gamma=1.0)
    landmarks = np.arange(0, 900, 30)
    K, Z = kernel.gram(X), kernel.gram(X[landmarks])
    cross = kernel.gram(X, X[landmarks])
    by_hand = np.diagonal(K - cross @ np.linalg.pinv(Z, rcond=1e-13) @ cross.T)
    left = LeftOut.of(kernel, X, landmarks)
    assert left.n_landmarks == 30
    assert left.mean == pytest.approx(by_hand.mean(), abs=1e-6)
    assert left.largest == pytest.approx(by_hand.max(), abs=1e-6)


def test_more_landmarks_leave_out_less():
    kernel = RBF(gamma=1.0)
    left = [
        LeftOut.of(kernel, X, choose_landmarks(kernel, X, tol=0.0, most=most)).mean
        for most in (5, 20, 80)
    ]
    assert left[0] > 10 * left[1] > 100 * left[2] >= 0.0


def test_the_gradient_is_that_of_the_approximated_problem():
    model = BilevelSVC("rbf", approximation="nystroem", prior=None, random_state=0)
    objective = BilevelObjective(model, X[:200], y[:200])
    objective.evaluate(objective.theta0)
    assert objective.warm.landmarks is not None
    theta = objective.theta0 + 0.1
    _, gradient = objective(theta)
    check_gradient(gradient, lambda x: objective(x)[0], theta, rtol=1e-4)


def test_few_landmarks_give_the_same_answer_as_all_rows():
    models = {
        choice: BilevelSVC(
            "rbf", approximation=choice, criterion="blend", starts=1, random_state=0
        ).fit(X, y)
        for choice in ("none", "auto", "nystroem")
    }
    exact = models.pop("none")
    assert exact.approximation_ is None
    for model in models.values():
        assert model.criterion_value_ == pytest.approx(exact.criterion_value_, rel=1e-3)
        difference = model.decision_function(X_test) - exact.decision_function(X_test)
        assert np.sqrt(np.mean(difference**2)) < 0.05
    few = models["nystroem"]
    assert few.approximation_.n_landmarks == len(few.support_) < 120
    assert few.approximation_.mean < 1e-3
    # "auto" searches on landmarks, and trains the final machine on all rows.
    assert models["auto"].approximation_ is None
    assert len(models["auto"].support_) > 120


def test_the_final_machine_has_more_landmarks_where_the_search_had_all_it_may(
    monkeypatch,
):
    monkeypatch.setattr("bisvm.machines.approximation.MOST", 40)
    X, y = make_classification(800, 8, n_informative=6, random_state=0)
    X = StandardScaler().fit_transform(X)
    given = dict(approximation="nystroem", cv=3, starts=1, random_state=0)
    models = []
    for final in (1, 2):
        monkeypatch.setattr("bisvm.machines.approximation.FINAL", final)
        models.append(BilevelSVC("rbf", **given).fit(X, y))
    assert [m.approximation_.n_landmarks for m in models] == [40, 80]
    assert [len(m.dual_coef_[0]) for m in models] == [40, 80]
    values = models[0].hyperparameters_
    assert values == models[1].hyperparameters_
    # Twice as many are nearer to the machine of the whole kernel.
    kernel = RBF(gamma=values["gamma"])
    whole = BilevelSVC(kernel, C=values["C"], learn=(), approximation="none", cv=3)
    exact = whole.fit(X, y).decision_function(X)
    few, more = (np.abs(m.decision_function(X) - exact).mean() for m in models)
    assert more < 0.8 * few


def test_a_wide_kernel_is_represented_as_far_as_it_varies():
    """H of landmarks chosen for a kernel that is nearly constant, against all rows."""
    fixed = dict(C=1.0, learn=None, cv=3, random_state=0)
    whole, few = (
        BilevelSVC(RBF(1e-3), approximation=choice, **fixed).fit(X, y)
        for choice in ("none", "nystroem")
    )
    assert few.approximation_.n_landmarks < 20
    assert few.criterion_value_ == pytest.approx(whole.criterion_value_, rel=0.02)


def test_landmarks_follow_the_search_from_a_bad_start():
    wide = [{"C": 1.0, "gamma": 0.02}]
    fits = [
        BilevelSVC("rbf", approximation=choice, starts=wide, random_state=0).fit(X, y)
        for choice in ("none", "nystroem")
    ]
    assert fits[1].criterion_value_ == pytest.approx(fits[0].criterion_value_, rel=0.01)


def test_a_callback_does_not_change_the_answer():
    starts = [{"C": 1.0, "gamma": 1e-3}, {"C": 1.0, "gamma": 1.0}]
    settings = dict(approximation="nystroem", starts=starts, random_state=0)
    alone = BilevelSVC(**settings).fit(X, y)
    watched = BilevelSVC("rbf", callback=lambda progress: False, **settings).fit(X, y)
    np.testing.assert_array_equal(alone.dual_coef_, watched.dual_coef_)


@pytest.mark.full  # in short below, with several classes
def test_many_widths_get_landmarks_of_their_own():
    X, y = make_moons_with_noise(1600, n_noise=6, random_state=0)
    X = StandardScaler().fit_transform(X)
    fits = [
        BilevelSVC("ard", approximation=choice, random_state=0).fit(X[:800], y[:800])
        for choice in ("none", "nystroem")
    ]
    scores = [model.score(X[800:], y[800:]) for model in fits]
    assert scores[1] > scores[0] - 0.01 > 0.93


def test_h_is_one_function_of_theta():
    model = BilevelSVC("rbf", approximation="nystroem", random_state=0)
    values = []
    for first in (0.0, -5.0):
        objective = BilevelObjective(model, X[:200], y[:200])
        objective(objective.theta0 + first)
        values.append(objective(objective.theta0)[0])
    assert values[0] == pytest.approx(values[1], rel=1e-8)


def test_landmarks_asked_for_by_name_where_there_can_be_none():
    with pytest.raises(ValueError, match="'nystroem' needs a loss with second"):
        BilevelSVC(
            "rbf", approximation="nystroem", loss="hinge", criterion="hinge"
        ).fit(X, y)


def test_one_width_per_feature_and_several_classes():
    X, y = make_classification(
        1000, 6, n_informative=3, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    X = StandardScaler().fit_transform(X)
    settings = dict(approximation="nystroem", cv=3, random_state=0, max_memory=1e8)
    settings["starts"] = 1
    for changes in ({"kernel": "ard"}, {"shared": False}):
        model = BilevelSVC(**settings, **changes).fit(X[:400], y[:400])
        assert model.score(X[400:], y[400:]) > 0.85
    assert [left.n_landmarks > 10 for left in model.approximation_] == [True] * 3


def test_the_same_again():
    fits = [
        BilevelSVC("rbf", approximation="nystroem", random_state=0).fit(X, y).dual_coef_
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*fits)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.full
def test_a_callback_gets_a_model_on_landmarks():
    scores = []
    BilevelSVC(
        approximation="nystroem",
        random_state=0,
        callback=lambda progress: scores.append(progress.model().score(X_test, y_test)),
        max_iter=2,
    ).fit(X, y)
    assert len(scores) > 3 and max(scores) > 0.9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_cannot_be_approximated_goes_the_exact_way():
    hinge = BilevelSVC(
        "rbf", loss="hinge", criterion="hinge", starts=1, max_iter=2, cv=2
    )
    assert hinge.fit(X[:60], y[:60]).approximation_ is None
    with pytest.raises(MemoryError, match="Use fewer samples"):
        hinge.set_params(max_memory=1e4).fit(X[:60], y[:60])


def test_an_unknown_choice_is_refused():
    with pytest.raises(ValueError, match="'nystroem'.* Got 'nystrom'"):
        BilevelSVC("rbf", approximation="nystrom").fit(X, y)


# --- memory ---------------------------------------------------------------------------

GENEROUS, SCARCE = 100 * 10**9, 10**7
FREE_MEMORY = "bisvm.core.memory.available_memory"


def fitted(**settings):
    """A fit beyond the number of rows that have their whole Gram matrix."""
    given = dict(cv=2, starts=1, max_iter=1, random_state=0) | settings
    return BilevelSVC("rbf", **given).fit(WIDE, WIDE_LABELS)


WIDE, WIDE_LABELS = make_classification(500, 8, n_informative=6, random_state=0)


@pytest.fixture
def few_exact_rows(monkeypatch):
    monkeypatch.setattr("bisvm.machines.approximation.EXACT_ROWS", 400)
    monkeypatch.setattr("bisvm.machines.approximation.MOST", 60)
    # Enough for 500 rows with 39 landmarks.
    return 4 * (8 * 12 * 500 * 2 + 39 * 8 * 500 * 4)


def warned(fit):
    """What a fit returns, and what it says of memory."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit()
    return model, [str(one.message) for one in caught if "memory" in str(one.message)]


def test_little_free_memory_is_said_and_the_same_model_can_be_had_again(
    monkeypatch, few_exact_rows
):
    monkeypatch.setattr(FREE_MEMORY, lambda: few_exact_rows)
    limited, said = warned(fitted)
    assert limited.approximation_.n_landmarks == 69
    (message,) = said
    assert message == limited.approximation_.limited
    assert "at most 60 landmarks in the search and 69 in the final machine" in message
    assert "computed in blocks of rows" in message
    assert f"max_memory={few_exact_rows // 4} gives this one" in message
    monkeypatch.setattr(FREE_MEMORY, lambda: GENEROUS)
    again, said = warned(lambda: fitted(max_memory=few_exact_rows // 4))
    np.testing.assert_array_equal(again.dual_coef_, limited.dual_coef_)
    assert not said


def test_enough_free_memory_is_nothing_to_speak_of(monkeypatch, few_exact_rows):
    monkeypatch.setattr(FREE_MEMORY, lambda: GENEROUS)
    model, said = warned(fitted)
    assert model.approximation_.n_landmarks == 120
    assert not said and model.approximation_.limited == ""
    # Where the system does not say what there is, nothing is limited.
    monkeypatch.setattr(FREE_MEMORY, lambda: None)
    other, said = warned(fitted)
    assert not said
    np.testing.assert_array_equal(other.dual_coef_, model.dual_coef_)


@pytest.mark.parametrize("choice", ["auto", "nystroem"])
@pytest.mark.parametrize("n", [300, 3000, 5000, 20_000, 300_000])
@pytest.mark.parametrize("max_memory", [5e8, 2e9, np.inf])
def test_with_max_memory_free_memory_does_not_matter(
    monkeypatch, choice, n, max_memory
):
    rules = []
    for free in (SCARCE, GENEROUS, None):
        monkeypatch.setattr(FREE_MEMORY, lambda free=free: free)
        # Nor does the number of processors, by which free memory would be shared.
        rules += [size(choice, n, max_memory, jobs=jobs) for jobs in (1, 64)]
    assert all(rule == rules[0] for rule in rules)


def test_with_max_memory_the_model_is_the_same_on_every_computer(
    monkeypatch, few_exact_rows
):
    models = []
    for free in (SCARCE, GENEROUS):
        monkeypatch.setattr(FREE_MEMORY, lambda free=free: free)
        model, said = warned(lambda: fitted(max_memory=few_exact_rows / 4))
        assert not said
        assert "max_memory allows" in model.approximation_.limited
        models.append(model)
    np.testing.assert_array_equal(*(model.dual_coef_ for model in models))
    assert models[0].approximation_ == models[1].approximation_


def test_a_gram_matrix_that_free_memory_does_not_hold_is_said(monkeypatch):
    monkeypatch.setattr(FREE_MEMORY, lambda: 4 * 10**6)
    model, (message,) = warned(fitted)
    assert model.approximation_.limited == message
    assert "500 samples needs 0.0061 GB, and the free memory allows 0.001 GB" in message
    assert "max_memory=1000000 gives this one" in message
    settings = dict(cv=2, random_state=0)
    with pytest.warns(UserWarning, match="max_memory=1000000 gives this one"):
        BilevelObjective(BilevelSVC("rbf", **settings), WIDE, WIDE_LABELS)
    with pytest.raises(MemoryError, match="the free memory allows 0.001 GB.*'auto'"):
        fitted(approximation="none")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_as_many_searches_at_a_time_as_memory_holds(monkeypatch):
    """Fewer workers, and the same machines: n_jobs does not change the answer."""
    X, y = make_classification(
        120, 6, n_informative=4, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    asked = []
    parallel = units.Parallel

    def counting(*args, **settings):
        asked.append(settings["n_jobs"])
        return parallel(*args, **settings)

    monkeypatch.setattr(units, "Parallel", counting)
    one = gram_bytes(120, 2)
    given = dict(shared=False, cv=2, starts=1, max_iter=2, random_state=0)
    fits = [
        BilevelSVC("rbf", n_jobs=jobs, max_memory=memory, **given).fit(X, y)
        for jobs, memory in ((3, 9 * one), (3, 2.5 * one), (3, 1.5 * one), (1, one))
    ]
    # Searches, and then final machines.
    assert asked == [3, 3, 2, 2, 1, 1, 1, 1]
    for model in fits:
        assert model.approximation_ == [None, None, None]
        np.testing.assert_array_equal(model.dual_coef_, fits[0].dual_coef_)


# --- memory ---------------------------------------------------------------------------


def peak(function, *given):
    """Bytes of arrays that a call makes at most."""
    function(*given)
    tracemalloc.start()
    function(*given)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


@pytest.mark.parametrize("limit", [1e7, 2e8, 1e10])
@pytest.mark.parametrize("grams", [0, 2])
def test_subsamples_have_the_whole_matrix_if_it_fits(limit, grams):
    rule = size("nystroem", 3000, limit, more_grams=grams)
    fits = rule.exact_rows
    assert gram_bytes(fits, 5, grams) <= limit
    assert fits == EXACT_ROWS or gram_bytes(fits + 1, 5, grams) > limit


def test_a_subsample_that_does_not_fit_keeps_its_landmarks():
    objective = BilevelObjective(
        BilevelSVC("rbf", approximation="nystroem", max_memory=2e6, random_state=0),
        X,
        y,
    ).objective
    rule = objective.problem.approximation
    assert 100 < rule.exact_rows < 400
    few, many = np.arange(rule.exact_rows), np.arange(rule.exact_rows + 1)
    assert objective.problem.subsample(few).approximation is None
    # Their features are in memory.
    kept = objective.problem.subsample(many).approximation
    assert kept == replace(rule, in_blocks=False)


def test_many_classes_have_the_whole_matrix_of_more_rows():
    """Each machine separates one of them: its active set is a part of the rows."""
    letters = size("auto", 15_000, 4e9, active=3 / 26)
    assert not letters.needed
    assert size("auto", 15_000, 4e9).needed
    assert size("auto", 15_000, 4e9, active=0.9).needed
    assert size("auto", 20_000, 1e11, active=3 / 26).needed
    little = size("auto", 15_000, 1e9, active=3 / 26)
    assert little.needed and "Gram matrix of 15000 samples needs 3.6" in little.limited


def test_a_limit_that_only_subsamples_feel_is_said():
    rule = size("auto", 9000, 6e8)
    assert (rule.most, rule.final) == (1000, 2000) and rule.exact_rows < EXACT_ROWS
    assert "rows or more would need none with more memory" in rule.limited


def test_systems_of_many_columns_are_made_one_after_the_other():
    """Together they would take 50 times 200^2 numbers, the features 900 times 200."""
    rng = np.random.default_rng(0)
    labels = np.sign(rng.normal(size=(900, 50)))
    machine = landmark_machine(
        labels, np.ones_like(labels), Quartic(), "free", RBF(1.0), X, np.arange(200)
    )
    tangent = machine.tangent(machine.cold_start())

    def solve():
        return machine.linearize(tangent).minimizer()

    assert peak(solve) < 4 * machine.X.nbytes < 50 * 200**2 * 8


def test_values_of_a_kernel_are_computed_in_blocks():
    kernel, coef = RBF(1.0), np.ones((900, 2))
    expected = kernel.gram(X) @ coef
    values = kernel.values(X, X, coef, 10_000)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    assert peak(kernel.values, X, X, coef, 10_000) < 900 * 900
