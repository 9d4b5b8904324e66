"""Ctrl-C in Python: a KeyboardInterrupt at any moment, and a whole checkpoint."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from bisvm import BilevelSVC
from bisvm.datasets import make_moons_with_noise
from tests.search.runs import assert_same

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("brief_searches"),
]

X, Y = make_moons_with_noise(80, random_state=0)


@pytest.fixture(autouse=True)
def listening():
    """Ctrl-C as in a terminal: in the background of a shell it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def fit(path=None):
    return BilevelSVC("rbf", cv=3, random_state=0, checkpoint=path).fit(X, Y)


def test_an_interrupt_is_a_keyboard_interrupt_and_the_fit_can_go_on(tmp_path):
    """`python -m tools.interrupts` does this in processes, twenty times."""
    moments = 3
    expected = fit()
    began = time.perf_counter()
    fit(tmp_path / "whole.checkpoint")
    seconds = time.perf_counter() - began
    rng = np.random.default_rng(0)
    interrupted = 0
    for moment in range(moments):
        path = tmp_path / f"{moment}.checkpoint"
        delay = 0.8 * (moment + rng.uniform()) / moments * seconds
        timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            fit(path)
            # The signal comes late on a busy computer, and ends this.
            time.sleep(seconds + 600.0)
        except KeyboardInterrupt:
            interrupted += 1
        timer.join()
        assert_same(fit(path), expected, X)
    assert interrupted == moments
