"""The final machine of rows in blocks is ready within a time limit."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from bisvm import BilevelSVC, BilevelSVR, Chunks
from bisvm.core.deadlines import check_deadline
from bisvm.machines.approximation import Approximation
from bisvm.search import training_in_time
from bisvm.search.training_in_time import ready_by, train_in_time
from tests.clocks import Clock

pytestmark = pytest.mark.usefixtures("brief_searches")

N, FIRST, SAMPLE = 600, 100, 250
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
y = np.where(X[:, 0] * X[:, 1] > 0, "in", "out")
NEW = RNG.normal(size=(200, 3))
NO_TIME = {"cv": 3, "random_state": 0, "max_memory": 1e9, "time_limit": 1e-9}


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch):
    monkeypatch.setattr("bisvm.estimators.inputs.READ_ROWS", 0)
    monkeypatch.setattr("bisvm.search.observer.GRACE", 0.0)
    monkeypatch.setattr("bisvm.machines.approximation.BLOCK_SAMPLE", SAMPLE)
    monkeypatch.setattr("bisvm.machines.approximation.MOST", 50)
    monkeypatch.setattr(training_in_time, "FIRST_ROWS", FIRST)


# --- whole fits -----------------------------------------------------------------------


def test_without_time_a_small_sample_is_trained_on_and_named():
    with pytest.warns(ConvergenceWarning, match=f"on a sample of {FIRST} rows"):
        model = BilevelSVC("rbf", **NO_TIME).fit(Chunks.of(X, y, rows=200))
    assert not model.certificate_.converged and model.history_ == []
    assert len(model.support_) <= 50
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.score(NEW, np.where(NEW[:, 0] * NEW[:, 1] > 0, "in", "out")) > 0.75
    assert model.approximation_.n_landmarks >= len(model.support_)


@pytest.mark.parametrize("shared", [True, False])
def test_several_classes(shared):
    three = np.where(X[:, 2] > 0.5, "other", y)
    model = BilevelSVC("rbf", shared=shared, multi_class="ovr", **NO_TIME)
    with pytest.warns(ConvergenceWarning, match=f"on a sample of {FIRST} rows"):
        model.fit(Chunks.of(X, three, rows=200))
    assert model.decision_function(NEW).shape == (200, 3)
    assert model.score(X, three) > 0.6


def test_numbers_in_their_units():
    t = 100.0 + 5.0 * X[:, 0]
    with pytest.warns(ConvergenceWarning, match="on a sample of"):
        model = BilevelSVR("rbf", **NO_TIME).fit(Chunks.of(X, t, rows=200))
    assert model.score(NEW, 100.0 + 5.0 * NEW[:, 0]) > 0.8


def test_with_enough_time_all_rows_are_trained_on():
    rows = Chunks.of(X, y, rows=200)
    usual = BilevelSVC("rbf", **{**NO_TIME, "time_limit": None}).fit(rows)
    model = BilevelSVC("rbf", **{**NO_TIME, "time_limit": 1e4}).fit(rows)
    np.testing.assert_array_equal(model.support_, usual.support_)
    values = [one.decision_function(NEW) for one in (model, usual)]
    np.testing.assert_array_equal(*values)


def test_a_sample_that_lacks_a_class_is_left_out():
    rare = np.where(np.arange(N) < 30, "rare", "common")
    with pytest.warns(ConvergenceWarning, match=f"on a sample of {SAMPLE} rows"):
        BilevelSVC("rbf", **NO_TIME).fit(Chunks.of(X, rare, rows=200))


# --- which machine it is --------------------------------------------------------------


def chosen(monkeypatch, seconds, limit):
    """Rows and landmarks of the machines that are begun, and the answer.

    seconds : that one takes, by its rows and landmarks
    """
    clock, begun = Clock(monkeypatch), []

    def train(rows, landmarks):
        begun.append((rows, landmarks))
        clock.pass_time(seconds(rows, landmarks))
        check_deadline()
        return begun[-1]

    monkeypatch.setattr(training_in_time, "Objective", lambda problem: None)
    monkeypatch.setattr(
        training_in_time, "sampled_rows", lambda objective, size, seed: np.arange(size)
    )
    monkeypatch.setattr(
        training_in_time, "_on_sample", lambda *given: train(len(given[-1]), 10)
    )
    rule = Approximation(10, True, final=20, in_blocks=True, sample_rows=SAMPLE)
    problem = SimpleNamespace(approximation=rule)
    data, tasks = SimpleNamespace(y=np.zeros(10_000)), np.array([0])
    deadline = ready_by(training_in_time.time.time(), limit, 1)
    answer = train_in_time(
        None, data, problem, {}, tasks, 0, deadline, lambda most: train(10_000, most)
    )
    return begun, answer


def as_expected(rows, landmarks):
    passes = 2 if rows == 10_000 else 1
    return passes * rows * landmarks**2 / 1e4


@pytest.mark.parametrize(
    ("limit", "sizes"),
    [
        (0.5, [(FIRST, 10)]),
        (50, [(FIRST, 10), (SAMPLE, 10)]),
        (300, [(FIRST, 10), (10_000, 10)]),
        (1000, [(FIRST, 10), (10_000, 20)]),
    ],
)
def test_the_largest_that_will_be_ready(monkeypatch, limit, sizes):
    begun, answer = chosen(monkeypatch, as_expected, limit)
    assert begun == sizes and answer == sizes[-1]


def test_what_takes_longer_than_expected_is_left(monkeypatch):
    def slow(rows, landmarks):
        return 1e4 if rows == 10_000 else as_expected(rows, landmarks)

    begun, answer = chosen(monkeypatch, slow, 300)
    assert begun == [(FIRST, 10), (10_000, 10)] and answer == (FIRST, 10)


def test_machines_that_are_waiting_share_the_time(monkeypatch):
    now = training_in_time.time.time()
    left = [ready_by(now, 100.0, waiting) for waiting in (1, 4)]
    assert left[0] - left[1] == pytest.approx(75.0, abs=0.1)
    assert ready_by(now, None, 1) is None
