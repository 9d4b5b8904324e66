"""What a search shows on standard error."""

import io

import numpy as np
import pytest

from bisvm.search import progress
from bisvm.search.history import Record

RECORD = Record(
    number=12, stage="shared values", task=0, theta=np.zeros(2), value=0.25, solves=5,
    criterion=0.25, gradient_norm=0.1, inner_iterations=9, residual=1e-4, seconds=3.21,
)  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_line_says_what_one_wants_to_know():
    line = progress.live_line(RECORD, 0.2, time_limit=60.0)
    assert line == (
        "evaluation 12: loss 0.25000, best 0.20000, 3.2 s, 57 s left (shared values)"
    )
    assert "left" not in progress.live_line(RECORD, 0.2)


def test_a_shorter_line_leaves_nothing_of_a_longer_one():
    terminal = Terminal()
    progress.show(RECORD, 0.2, 1, None, terminal)
    progress.show(Record(**{**vars(RECORD), "stage": "a"}), 0.2, 1, None, terminal)
    _, long, short = terminal.getvalue().split("\r")
    assert len(long) == len(short)


def test_a_log_has_a_heading_and_one_line_for_each_evaluation():
    log = io.StringIO()
    for number in (1, 2):
        progress.show(Record(**{**vars(RECORD), "number": number}), 0.2, 1, None, log)
    heading, first, second = log.getvalue().splitlines()
    assert heading.split() == ["eval", "loss", "best", "gradient", "seconds", "stage"]
    assert first.split()[:3] == ["1", "0.250000", "0.200000"]
    assert second.endswith("3.21  shared values")


@pytest.mark.parametrize(("verbose", "ended"), [(0, ""), (1, "\n"), (2, "")])
def test_only_a_live_line_has_to_be_ended(verbose, ended):
    terminal = Terminal()
    progress.end(verbose, terminal)
    assert terminal.getvalue() == ended


def test_several_sets_are_numbered():
    third = Record(**{**vars(RECORD), "task": 2})
    assert progress.live_line(third, 0.2).startswith("evaluation 12 of set 3:")
