"""The one who watches: records, callback, limits, and answers on file."""

import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest

from bisvm.bilevel.objective import COLD
from bisvm.core.interrupts import ending_on_signals
from bisvm.search.checkpoint import open_checkpoint
from bisvm.search.observer import (
    Observer,
    Question,
    StopSearch,
    better,
)
from bisvm.search.reasons import CALLBACK_STOP, INTERRUPT_STOP, TIME_STOP
from tests.search.searches import Bowl

POINTS = [np.array([x]) for x in (1.0, -0.5, 0.75, 0.25)]


def question(theta=POINTS[0], objective=None, **given):
    given = {"warm": COLD, "stage": "test", **given}
    return Question(Bowl() if objective is None else objective, theta, **given)


def asked(observer, objective, points=POINTS):
    """All answers; each question starts where the one before has ended."""
    warm, best, answers = COLD, None, []
    for theta in points:
        one = question(theta, objective, warm=warm, best=best)
        answers.append(observer.evaluate(one))
        warm, best = answers[-1].warm, answers[-1].best
    return answers


def test_every_evaluation_is_recorded_in_turn():
    observer = Observer(task=2)
    asked(observer, Bowl())
    assert [record.number for record in observer.records] == [1, 2, 3, 4]
    assert [record.theta[0] for record in observer.records] == [1.0, -0.5, 0.75, 0.25]
    first = observer.records[0]
    assert (first.task, first.value, first.gradient_norm) == (2, 2.0, 2.0)
    assert (first.solves, first.inner_iterations, first.stage) == (3, 5, "test")
    assert not observer.nested_records


def test_what_judges_the_search_is_no_part_of_its_record():
    told = []
    observer = Observer(callback=told.append)
    observer.evaluate(question(nested=True))
    assert not observer.records and not told
    assert [record.solves for record in observer.nested_records] == [3]


def test_the_best_is_the_lowest_that_counts():
    answers = asked(Observer(), Bowl())
    assert [answer.best.value for answer in answers] == [2.0, 1.25, 1.25, 1.0625]
    answer = Observer().evaluate(question(POINTS[3], counts=False))
    assert answer.best is None


def test_better_is_lower_or_the_same_point_more_closely():
    low, high = (Bowl().evaluate(theta)[0] for theta in (POINTS[3], POINTS[0]))
    assert better(low, None) and better(low, high) and not better(high, low)
    failed = replace(low, value=np.inf)
    assert not better(failed, None) and not better(failed, low)
    rough = replace(low, value=1.06, error=0.1)
    assert better(low, rough) and not better(rough, replace(rough, error=0.1))
    assert not better(replace(high, error=0.0), rough)


# --- the callback ---------------------------------------------------------------------


def test_a_callback_is_told_what_is_known_so_far():
    told = []
    made = Observer(callback=told.append, model=lambda values: ("model", values))
    asked(made, Bowl())
    assert [progress.record for progress in told] == made.records
    assert [progress.best_value for progress in told] == [2.0, 1.25, 1.25, 1.0625]
    third = told[2]
    assert third.hyperparameters == {"C": np.exp(0.75)}
    assert third.best_hyperparameters == {"C": np.exp(-0.5)}
    assert third.model() == ("model", {"C": np.exp(-0.5)})


def test_a_callback_that_returns_true_stops_after_the_evaluation():
    observer = Observer(callback=lambda progress: progress.record.number == 3)
    with pytest.raises(StopSearch, match=CALLBACK_STOP.sentence) as stop:
        asked(observer, Bowl())
    assert len(observer.records) == 3
    # Where to end, and what the last evaluation was.
    assert stop.value.theta == [-0.5]
    assert stop.value.answer.evaluation.theta == [0.75]
    assert stop.value.answer.best.theta == [-0.5]


def test_the_last_evaluation_is_shown_and_told_to_nobody():
    told = []
    observer = Observer(callback=told.append, deadline=0.0)
    assert observer.evaluate(question(final=True)).best.value == 2.0
    assert not told and len(observer.records) == 1


# --- limits ---------------------------------------------------------------------------


def test_a_deadline_stops_after_the_evaluation_and_not_before():
    objective = Bowl()
    late = Observer(deadline=time.perf_counter() - 1.0)
    assert late.is_late
    with pytest.raises(StopSearch, match=TIME_STOP.sentence) as stop:
        late.evaluate(question(objective=objective))
    assert len(objective.solves) == 1 and stop.value.answer.best.value == 2.0
    early = Observer(deadline=time.perf_counter() + 60.0)
    assert not early.is_late and not Observer().is_late
    early.evaluate(question())


def test_what_judges_is_stopped_as_well():
    late = Observer(deadline=time.perf_counter() - 1.0)
    with pytest.raises(StopSearch, match=TIME_STOP.sentence):
        late.evaluate(question(nested=True))


@pytest.mark.parametrize("nested", [False, True])
def test_a_signal_stops_after_the_evaluation(nested):
    observer = Observer()
    with ending_on_signals(lambda: None):
        observer.evaluate(question(nested=nested))
        assert not observer.is_late
        os.kill(os.getpid(), signal.SIGTERM)
        assert observer.is_late
        observer.evaluate(question(final=True))
        with pytest.raises(StopSearch, match=INTERRUPT_STOP.sentence) as stop:
            observer.evaluate(question(nested=nested))
    assert stop.value.answer.best.value == 2.0


# --- answers on file ------------------------------------------------------------------


def on_file(path, objective, points=POINTS, **given):
    with open_checkpoint(path, {}, None) as file:
        observer = Observer(answers=file.answers("0"), **given)
        return observer, asked(observer, objective, points)


def test_a_replay_is_equal_to_the_run_and_solves_nothing(tmp_path):
    path = tmp_path / "run.checkpoint"
    first, answers = on_file(path, Bowl())
    objective = Bowl()
    second, replayed = on_file(path, objective)
    assert not objective.solves
    for one, two in zip(first.records, second.records, strict=True):
        assert (one.theta, one.value, one.seconds) == (
            two.theta,
            two.value,
            two.seconds,
        )
    assert replayed[-1].best.value == answers[-1].best.value
    # The last warm start is on file: the search goes on from it.
    np.testing.assert_array_equal(replayed[-1].warm.fitted, answers[-1].warm.fitted)
    assert replayed[-1].warm.number == 4


def test_a_run_goes_on_where_the_answers_end(tmp_path):
    path = tmp_path / "run.checkpoint"
    on_file(path, Bowl(), POINTS[:2])
    objective = Bowl()
    observer, answers = on_file(path, objective)
    assert [theta[0] for theta in objective.solves] == [0.75, 0.25]
    assert len(observer.records) == 4 and answers[-1].best.value == 1.0625


def test_seconds_on_file_are_the_clock_of_a_replay(tmp_path):
    path = tmp_path / "run.checkpoint"
    now = time.perf_counter()
    # The first run began a thousand seconds ago, and so did its evaluations.
    on_file(path, Bowl(), POINTS[:2], began=now - 1000.0)
    with pytest.raises(StopSearch, match=TIME_STOP.sentence):
        on_file(path, Bowl(), began=now, deadline=now + 900.0)
    observer, _ = on_file(path, Bowl(), POINTS[:2], began=now, deadline=now + 1100.0)
    assert len(observer.records) == 2


def test_a_callback_is_told_what_is_replayed(tmp_path):
    path = tmp_path / "run.checkpoint"
    on_file(path, Bowl())
    told = []
    on_file(path, Bowl(), callback=told.append)
    assert [progress.record.number for progress in told] == [1, 2, 3, 4]


def test_the_last_evaluation_is_not_kept(tmp_path):
    with open_checkpoint(tmp_path / "run.checkpoint", {}, None) as file:
        answers = file.answers("0")
        Observer(answers=answers).evaluate(question(final=True))
        assert file.count("0") == 0
        Observer(answers=answers).evaluate(question())
        assert file.count("0") == 1


def test_a_warm_start_that_is_not_used_again_is_not_kept(tmp_path):
    objective = Bowl()
    with open_checkpoint(tmp_path / "run.checkpoint", {}, None) as file:
        observer = Observer(answers=file.answers("0"))
        first = observer.evaluate(question(objective=objective))
        passing = question(
            POINTS[1], objective, warm=first.warm, keeps_warm_start=False
        )
        observer.evaluate(passing)
        assert file.load("0", 1).warm is not None
        assert file.load("0", 2).warm is None
        next_ = question(POINTS[2], objective, warm=first.warm)
        observer.evaluate(next_)
        assert file.load("0", 1).warm is None and file.load("0", 3).warm is not None
