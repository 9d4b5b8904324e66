"""kill -9, at moments that nobody has chosen."""

import multiprocessing
import os
import signal
import time

import pytest

from tests.search.runs import (
    assert_same,
    dying_within_a_transaction,
    n_answers,
)
from tools.interrupts.trials import Fits, killed_fits

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(),
    reason="processes that know what this one knows are made by fork",
)
ROWS = 120


def test_killed_at_any_moment_a_run_goes_on(tmp_path):
    tally = killed_fits(tmp_path, ROWS, 5)
    assert tally.right == 5, tally.wrong
    assert max(tally.evaluations) > min(tally.evaluations)


@pytest.mark.full
def test_twenty_kills(tmp_path):
    tally = killed_fits(tmp_path, 200, 20)
    print(tally)
    assert tally.right == 20, tally.wrong


def test_killed_again_and_again(tmp_path):
    """A run that never gets far still comes to its end."""
    fits, path = Fits(tmp_path, ROWS), tmp_path / "run.checkpoint"
    context = multiprocessing.get_context("fork")
    for _ in range(5):
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

    for number in (1, 2, fits.total // 2):
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
