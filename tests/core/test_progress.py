"""The line of progress, on a terminal."""

import io

import pytest

from bisvm.core.progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_step_is_rewritten_in_place_on_a_terminal():
    stream = Terminal()
    with ProgressLine("a step", stream) as step:
        step.detail = "half way"
        step._done.wait(0.3)
    lines = stream.getvalue().split("\r")
    assert len(lines) > 2
    assert lines[-1].endswith("\n") and "half way" in lines[-1]


def test_a_step_ends_its_line_when_it_fails():
    stream = Terminal()
    with pytest.raises(KeyboardInterrupt), ProgressLine("a step", stream):
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\n")


def test_a_log_gets_a_line_every_few_seconds(monkeypatch):
    monkeypatch.setattr("bisvm.core.progress._LOGGED", 0.02)
    stream = io.StringIO()
    with ProgressLine("a step", stream) as step:
        step.detail = "half"
        step._done.wait(0.2)
    lines = stream.getvalue().splitlines()
    assert len(lines) > 2 and all("a step" in line for line in lines)
    assert "\r" not in stream.getvalue()
