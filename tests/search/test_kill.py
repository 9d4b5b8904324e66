"""kill -9, at moments that nobody has chosen."""

import multiprocessing
import os
import signal
import time
from contextlib import contextmanager

import numpy as np
import pytest

from bisvm.search.observer import Question
from tests.covering import full
from tests.search.runs import (
    assert_same,
    dying_within_a_transaction,
    n_answers,
)
from tools.interrupts.trials import Fits

pytestmark = [
    pytest.mark.skipif(
        "fork" not in multiprocessing.get_all_start_methods(),
        reason="processes that know what this one knows are made by fork",
    ),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]
ROWS = 120
# Long enough to be killed at different moments.
SEARCHES = {"starts": 1, "max_iter": 10}


@contextmanager
def killed_after(monkeypatch, seconds, first, last):
    """The process is killed some time after one evaluation began, or in another one.

    By the alarm clock of the kernel, which nothing in the process answers: no other
    process has to be in time.
    """
    solve, begun = Question.solve, []

    def counting(self):
        begun.append(self.theta)
        if len(begun) == first:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, seconds)
        if len(begun) == last:
            signal.pause()
        return solve(self)

    with monkeypatch.context() as patch:
        patch.setattr(Question, "solve", counting)
        yield


@pytest.mark.parametrize("kills", [2, *full(20)])
def test_killed_at_any_moment_a_run_goes_on(kills, tmp_path, monkeypatch):
    fits, context = Fits(tmp_path, ROWS), multiprocessing.get_context("fork")
    # The first evaluation may compile.
    usual = np.median(np.diff([one.seconds for one in fits.expected.history_]))
    rng, found = np.random.default_rng(0), []
    for number in range(kills):
        path = tmp_path / f"{number}.checkpoint"
        first = 1 + int((number + rng.uniform()) / kills * (fits.total - 2))
        fits.wipe()
        with killed_after(monkeypatch, 2 * usual * rng.uniform(), first, fits.total):
            child = context.Process(target=fits.fit, args=(path,))
            child.start()
            child.join()
        assert child.exitcode == -signal.SIGALRM
        found.append(fits.begun())
        assert not fits.resumed(path)
    assert max(found) > min(found)


def test_killed_again_and_again(tmp_path):
    """A run that never gets far still comes to its end."""
    fits, path = Fits(tmp_path, ROWS), tmp_path / "run.checkpoint"
    context = multiprocessing.get_context("fork")
    for _ in range(3):
        child = context.Process(target=fits.fit, args=(path,))
        child.start()
        time.sleep(0.08)
        child.kill()
        child.join()
    assert_same(fits.fit(path), fits.expected, fits.X)


def test_killed_within_a_transaction(tmp_path, monkeypatch):
    """What was on file stays whole; the evaluation that was being written is lost."""
    fits, context = Fits(tmp_path, ROWS), multiprocessing.get_context("fork")

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    for number in (1, fits.total // 2):
        path = tmp_path / f"{number}.checkpoint"
        fits.wipe()
        with dying_within_a_transaction(monkeypatch, number, die):
            child = context.Process(target=fits.fit, args=(path,))
            child.start()
            child.join()
        assert child.exitcode == -signal.SIGKILL
        assert n_answers(path) == number - 1
        assert not fits.resumed(path)
        assert fits.begun() == fits.total + 1
