"""Limits are judged by wall time, with some slack."""

import pytest

from tools import time_limits
from tools.time_limits import Case, main


@pytest.fixture
def one_case(monkeypatch):
    monkeypatch.setattr(time_limits, "CASES", (Case(300, 5, 2, "rbf", 30.0),))


@pytest.mark.parametrize(("seconds", "code"), [(34.9, 0), (35.1, 1)])
def test_a_line_for_every_case(one_case, seconds, code, monkeypatch, capsys):
    class Done:
        stdout = f"{seconds}\t90.0%\tIt ended.\n"

    monkeypatch.setattr(time_limits.subprocess, "run", lambda *_, **__: Done)
    assert main([]) == code
    said = capsys.readouterr().out
    assert f"{seconds} s, {'exceeded' if code else 'kept'}" in said


@pytest.mark.filterwarnings("ignore")
def test_one_fit_in_a_process_of_its_own(one_case, capsys):
    assert main(["--one", "0"]) == 0
    seconds, accuracy, reason = capsys.readouterr().out.strip().split("\t")
    assert 0 < float(seconds) < 30 and accuracy.endswith("%") and reason
