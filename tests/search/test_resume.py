"""A fit that was broken off goes on to the result of one that was not."""

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification, make_moons

from bisvm import (
    BilevelLinearSVC,
    BilevelSVC,
    Chunks,
    ConvolutionalLinearSVC,
    ConvolutionalSVC,
)
from bisvm.datasets import make_moons_with_noise
from bisvm.published import GradientDescent
from bisvm.published.swapping import SwapHoldout
from tests.covering import full
from tests.problems import noisy, three_classes, toy_data
from tests.search.runs import (
    Killed,
    assert_same,
    counted,
    dying_within_a_transaction,
    n_answers,
)

MOONS = make_moons(900, noise=0.3, random_state=0)
DIGITS = tuple(part[:90] for part in load_digits(n_class=3, return_X_y=True))


def svc(kernel="rbf", **settings):
    return BilevelSVC(kernel, **{"random_state": 0, "cv": 3, **settings})


def nothing(progress):
    """A callback that lets everything be."""


# What is fitted, on which data, and whether to stop at every evaluation or at some.
CASES = {
    "the whole refine": (
        svc("ard"),
        make_moons_with_noise(140, n_noise=3, random_state=0),
        11,
    ),
    "by way of samples": (svc(cv=2, max_iter=3), MOONS, 1),
    "on landmarks": (svc(approximation="nystroem", max_iter=3), MOONS, 1),
    "no refine": (svc("ard", starts=1, max_iter=8), toy_data(60), 3),
    "starts apart": (svc(starts=3, max_iter=4), toy_data(60), 3),
    # A callback sees them all: they are one unit, on one objective.
    "starts in turn": (svc(starts=3, max_iter=4, callback=nothing), toy_data(60), 3),
    "one set a class": (svc(shared=False, starts=1, max_iter=4), three_classes(60), 6),
    "mini-batches": (
        svc(starts=1, optimizer=GradientDescent(batch_size=40, max_iter=10)),
        toy_data(80),
        3,
    ),
    "hold-outs that change": (
        svc(cv=SwapHoldout(0.3, n_partitions=6, random_state=0), starts=1, max_iter=12),
        toy_data(60),
        5,
    ),
    "exact hinge": (svc(loss="hinge", learn="C", max_iter=20), toy_data(40), 5),
    "structural risk": (svc("ard", criterion="structural_risk"), toy_data(60), 4),
    "bundle": (
        svc(loss="hinge", optimizer="bundle", starts=1, max_iter=8),
        toy_data(40),
        4,
    ),
    "linear": (
        BilevelLinearSVC(regularization="per_feature", cv=3, random_state=0),
        noisy(120),
        5,
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("most", [1, *full(10**3)])
@pytest.mark.parametrize("case", CASES)
def test_broken_off_anywhere_the_result_is_the_same(case, most, monkeypatch, tmp_path):
    estimator, (X, y), every = CASES[case]
    with counted(monkeypatch) as all_of_them:
        expected = clone(estimator).fit(X, y)
    if case == "the whole refine":
        assert {r.stage for r in expected.history_} >= {"weaker prior", "final descent"}
    stops = range(1, len(all_of_them), every)
    step = -(-len(stops) // most)
    for stop in stops[step // 2 :: step]:
        estimator = clone(estimator).set_params(
            checkpoint=tmp_path / f"{stop}.checkpoint"
        )
        with counted(monkeypatch, stop) as first, pytest.raises(Killed):
            estimator.fit(X, y)
        with counted(monkeypatch) as second:
            model = estimator.fit(X, y)
        assert_same(model, expected, X)
        assert len(first) + len(second) == len(all_of_them)
    # What is complete is only read.
    with counted(monkeypatch) as again:
        assert_same(estimator.fit(X, y), expected, X)
    assert not again


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("free", [10**11, 2_250_000], ids=["much memory", "little"])
def test_beyond_the_landmark_limit_the_result_is_the_same(free, monkeypatch, tmp_path):
    """All that was decided of the approximation is on file, with the memory's part."""
    X, y = make_classification(500, 8, n_informative=6, random_state=0)
    monkeypatch.setattr("bisvm.machines.approximation.EXACT_ROWS", 300)
    monkeypatch.setattr("bisvm.machines.approximation.MOST", 20)
    monkeypatch.setattr("bisvm.core.memory.available_memory", lambda: free)
    settings = dict(starts=1, max_iter=3, cv=2)

    def fit(**more):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = svc(**settings, **more).fit(X, y)
        said = [str(one.message) for one in caught if "memory" in str(one.message)]
        return model, said

    with counted(monkeypatch) as all_of_them:
        expected, said = fit()
    limited = bool(said)
    assert limited is (free < 10**9)
    assert expected.approximation_.n_landmarks == 40
    # With little memory features are computed in blocks of rows.
    assert ("all rows" in [one.stage for one in expected.history_]) is limited

    path = tmp_path / "run.checkpoint"
    with counted(monkeypatch, len(all_of_them) // 2), pytest.raises(Killed):
        fit(checkpoint=path)
    # What was decided when the run began holds, whatever is free by now.
    monkeypatch.setattr("bisvm.core.memory.available_memory", lambda: 1_160_000)
    for _ in range(2):
        resumed, again = fit(checkpoint=path)
        assert_same(resumed, expected, X)
        assert resumed.approximation_ == expected.approximation_
        assert again == said
    with pytest.raises(ValueError, match="at most 20 landmarks .*max_memory=288000"):
        fit(checkpoint=path, max_memory=288_000)


@pytest.mark.parametrize(
    ("settings", "every"),
    [({"starts": 1}, 6), pytest.param({}, 3, marks=pytest.mark.full)],
)
def test_an_answer_and_its_warm_start_are_written_together(
    settings, every, monkeypatch, tmp_path
):
    X, y = toy_data(60)
    expected = svc(**settings).fit(X, y)
    total = len(expected.history_)

    def die():
        raise Killed

    for number in range(1, total + 1, every):
        path = tmp_path / f"{number}.checkpoint"
        estimator = svc(checkpoint=path, **settings)
        with dying_within_a_transaction(monkeypatch, number, die):
            with pytest.raises(Killed):
                estimator.fit(X, y)
        assert n_answers(path) == number - 1
        with counted(monkeypatch) as rest:
            assert_same(estimator.fit(X, y), expected, X)
        assert len(rest) == total - number + 1


def test_one_file_and_nothing_beside_it(tmp_path):
    X, y = toy_data(60)
    path = tmp_path / "run.checkpoint"
    svc(checkpoint=path, starts=1).fit(X, y)
    assert list(tmp_path.iterdir()) == [path]


def test_in_threads(tmp_path, monkeypatch):
    X, y = three_classes(60)
    settings = dict(shared=False, starts=1)
    expected = svc(**settings).fit(X, y)
    estimator = svc(n_jobs=2, checkpoint=tmp_path / "run.checkpoint", **settings)
    with counted(monkeypatch, 9), pytest.raises(Killed):
        estimator.fit(X, y)
    assert_same(estimator.fit(X, y), expected, X)
    assert_same(estimator.set_params(n_jobs=None).fit(X, y), expected, X)


def test_units_stay_here(tmp_path):
    X, y = three_classes(60)
    path = tmp_path / "run.checkpoint"
    estimator = svc(shared=False, starts=1, n_jobs=2, checkpoint=path)
    with (
        parallel_config("loky"),
        pytest.warns(UserWarning, match="checkpoint is written in this process"),
    ):
        estimator.fit(X, y)


def test_data_in_chunks(tmp_path, monkeypatch):
    X, y = noisy(120)
    data = Chunks.of(X, y, rows=50)
    settings = dict(cv=3, random_state=0)
    expected = BilevelLinearSVC(**settings).fit(data)
    path = tmp_path / "run.checkpoint"
    estimator = BilevelLinearSVC(**settings, checkpoint=path)
    with counted(monkeypatch, 3), pytest.raises(Killed):
        estimator.fit(data)
    assert_same(estimator.fit(data), expected, X)
    X = X.copy()
    X[7, 1] += 1e-9
    with pytest.raises(ValueError, match="other values of X"):
        estimator.fit(Chunks.of(X, y, rows=50))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("share", [0.5, *full(0.0, 1.0)])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (ConvolutionalLinearSVC, {"shared": False}),
        pytest.param(ConvolutionalLinearSVC, {}, marks=pytest.mark.full),
        (ConvolutionalSVC, {"kernel": "poly", "max_iter": 4}),
    ],
)
def test_convolutional(kind, settings, share, tmp_path):
    X, y = DIGITS[0] / 16, DIGITS[1]
    settings = dict(cv=2, random_state=0, **settings)
    expected = kind((8, 8), (3, 3), **settings).fit(X, y)
    total = len(expected.history_)
    stop = 1 + int(share * (total - 2))
    path = tmp_path / "run.checkpoint"

    def end(progress, seen=[]):  # noqa: B006
        seen.append(progress)
        if len(seen) == stop:
            raise Killed

    estimator = kind((8, 8), (3, 3), **settings, checkpoint=path)
    with pytest.raises(Killed):
        estimator.set_params(callback=end).fit(X, y)
    model = estimator.set_params(callback=None).fit(X, y)
    np.testing.assert_array_equal(
        model.decision_function(X), expected.decision_function(X)
    )
    assert [r.value for r in model.history_] == [r.value for r in expected.history_]


def test_a_callback_is_told_all_again_and_may_stop(tmp_path):
    X, y = toy_data(60)
    seen = []

    def at_five(progress):
        seen.append(progress.record.number)
        return len(seen) >= 5

    path = tmp_path / "run.checkpoint"
    with pytest.warns(Warning, match="callback"):
        stopped = svc(starts=1, checkpoint=path, callback=at_five).fit(X, y)
    assert len(stopped.history_) == 5
    seen.clear()
    settings = dict(checkpoint=path, callback=lambda p: seen.append(p.best_value))
    model = svc(starts=1, **settings).fit(X, y)
    assert len(seen) == len(model.history_) > 5
    assert_same(model, svc(starts=1).fit(X, y), X)


def test_time_on_file_counts_and_a_later_limit_goes_on(tmp_path, monkeypatch):
    X, y = toy_data(60)
    path = tmp_path / "run.checkpoint"
    settings = dict(checkpoint=path, starts=1)
    with pytest.warns(Warning, match="time limit"):
        stopped = svc(**settings, time_limit=1e-9).fit(X, y)
    assert len(stopped.history_) == 1
    with counted(monkeypatch) as again, pytest.warns(Warning, match="time limit"):
        assert_same(svc(**settings, time_limit=1e-9).fit(X, y), stopped, X)
    assert not again
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = svc(**settings, time_limit=1000.0).fit(X, y)
    assert_same(model, svc(starts=1).fit(X, y), X)
    seconds = [record.seconds for record in model.history_]
    assert seconds == sorted(seconds)
