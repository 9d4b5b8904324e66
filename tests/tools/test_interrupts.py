"""Signals at random moments: the command, once here and twenty times in test-full."""

import signal
import sys

import pytest

from tools.interrupts.trials import (
    SIGNALS,
    Ended,
    Tally,
    interrupted_commands,
    interrupted_fits,
    run,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.full  # tests/core/test_interrupts.py has it without a process
def test_a_signal_inside_compiled_code_is_a_keyboard_interrupt(tmp_path):
    tally = interrupted_fits(tmp_path, "compiled", signal.SIGINT, 1)
    assert tally.right == 1, tally.wrong


@pytest.mark.full
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("place", ["python", "command line", "thread", "compiled"])
def test_twenty_moments_that_nobody_has_chosen(place, number, tmp_path):
    if place == "command line":
        pytest.importorskip("skops")
        tally = interrupted_commands(tmp_path, number, 20)
    else:
        tally = interrupted_fits(tmp_path, place, number, 20)
    print(tally)
    assert tally.right == 20, tally.wrong


INTERRUPT = "Traceback (most recent call last):\n  ...\nKeyboardInterrupt\n"


def test_what_counts_as_wrong():
    def wrong(code, said, *, traceback=True):
        return Ended(code, said, 1.0).wrong(2, traceback=traceback)

    assert not wrong(130, INTERRUPT)
    assert wrong(130, INTERRUPT, traceback=False)
    assert wrong(1, INTERRUPT) == ["exit code 1"]
    assert wrong(130, INTERRUPT.replace("KeyboardInterrupt", "SystemError: result"))
    assert wrong(130, f"Exception ignored in: x\n{INTERRUPT}")


def test_a_process_that_is_left_is_found():
    child = "import subprocess; subprocess.Popen(['sleep', '60'], stdout=-3, stderr=-3)"
    with pytest.raises(RuntimeError, match="left a process"):
        run([sys.executable, "-c", f"{child}; print('ready')"])


def test_a_tally_counts_trials_and_not_faults():
    tally = Tally("somewhere", 2)
    tally.add([], 3)
    tally.add(["one", "two"], 7)
    assert (tally.right, tally.done) == (1, 2)
    assert str(tally).endswith("1 of   2   in evaluations 3 to 7")
