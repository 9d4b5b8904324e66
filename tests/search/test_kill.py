"""kill -9, at moments that nobody has chosen."""

import multiprocessing
import os
import signal
import time

import numpy as np
import pytest

from bisvm import BilevelSVC
from bisvm.datasets import make_moons_with_noise
from bisvm.search.observer import Question
from tests.search.runs import (
    assert_same,
    dying_within_a_transaction,
    n_answers,
)

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(),
    reason="processes that know what this one knows are made by fork",
)


def fit(path, X, y, tally):
    """A fit that leaves a mark before every evaluation that it does."""
    solve = Question.solve

    def counting(self):
        os.write(tally, b".")
        return solve(self)

    Question.solve = counting
    try:
        return BilevelSVC("ard", cv=3, random_state=0, checkpoint=path).fit(X, y)
    finally:
        Question.solve = solve


def counted_fit(path, X, y, marks):
    """A whole fit, and all that it evaluates: the history and what comes after it."""
    marks.write_bytes(b"")
    tally = os.open(marks, os.O_WRONLY | os.O_APPEND)
    model = fit(path, X, y, tally)
    os.close(tally)
    assert marks.stat().st_size >= len(model.history_)
    return model, marks.stat().st_size


def kills(tmp_path, n, moments):
    """How often a run was killed at a random moment and then went on as it should."""
    X, y = make_moons_with_noise(n, random_state=0)
    rng = np.random.default_rng(0)
    context = multiprocessing.get_context("fork")
    marks = tmp_path / "marks"
    expected, total = counted_fit(None, X, y, marks)
    began = time.perf_counter()
    assert counted_fit(tmp_path / "whole.checkpoint", X, y, marks)[1] == total
    seconds = time.perf_counter() - began
    killed = []
    while len(killed) < moments:
        path = tmp_path / f"{rng.integers(2**40)}.checkpoint"
        marks.write_bytes(b"")
        tally = os.open(marks, os.O_WRONLY | os.O_APPEND)
        child = context.Process(target=fit, args=(path, X, y, tally))
        child.start()
        # One moment in every share of the run.
        time.sleep((len(killed) + rng.uniform()) / moments * seconds)
        child.kill()
        child.join()
        begun = marks.stat().st_size
        model = fit(path, X, y, tally)
        os.close(tally)
        assert_same(model, expected, X)
        done = marks.stat().st_size
        assert total <= done <= total + 1, (begun, done, total)
        # A fit that was over is no test of anything.
        if child.exitcode != 0:
            killed.append(begun)
    assert max(killed) > min(killed)
    return killed, total


def test_killed_at_any_moment_a_run_goes_on(tmp_path):
    kills(tmp_path, 120, 5)


@pytest.mark.full
def test_twenty_kills(tmp_path):
    killed, total = kills(tmp_path, 200, 20)
    print(f"killed in evaluations {sorted(killed)} of {total}: all went on")


def test_killed_again_and_again(tmp_path):
    """A run that never gets far still comes to its end."""
    X, y = make_moons_with_noise(120, random_state=0)
    expected = BilevelSVC("ard", cv=3, random_state=0).fit(X, y)
    context = multiprocessing.get_context("fork")
    path = tmp_path / "run.checkpoint"
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for _ in range(5):
        child = context.Process(target=fit, args=(path, X, y, nowhere))
        child.start()
        time.sleep(0.08)
        child.kill()
        child.join()
    assert_same(fit(path, X, y, nowhere), expected, X)
    os.close(nowhere)


def test_killed_within_a_transaction(tmp_path, monkeypatch):
    """What was on file stays whole; the evaluation that was being written is lost."""
    X, y = make_moons_with_noise(120, random_state=0)
    marks = tmp_path / "marks"
    expected, total = counted_fit(None, X, y, marks)
    context = multiprocessing.get_context("fork")

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    for number in (1, 2, total // 2):
        path = tmp_path / f"{number}.checkpoint"
        marks.write_bytes(b"")
        tally = os.open(marks, os.O_WRONLY | os.O_APPEND)
        with dying_within_a_transaction(monkeypatch, number, die):
            child = context.Process(target=fit, args=(path, X, y, tally))
            child.start()
            child.join()
        assert child.exitcode == -signal.SIGKILL
        assert n_answers(path) == number - 1
        assert_same(fit(path, X, y, tally), expected, X)
        os.close(tally)
        assert marks.stat().st_size == total + 1
