"""Fits that are broken off, and what they have cost."""

import sqlite3
from contextlib import contextmanager
from functools import partial

from bisvm.search.observer import Question
from tools.interrupts.trials import differences


class Killed(BaseException):
    """Stands for the end of a process: nothing catches it."""


@contextmanager
def counted(monkeypatch, stop_at=None):
    """Count evaluations that are really done; the process ends instead of one."""
    done = []
    solve = Question.solve

    def counting(self):
        if len(done) == stop_at:
            raise Killed
        done.append(self.theta)
        return solve(self)

    with monkeypatch.context() as patch:
        patch.setattr(Question, "solve", counting)
        yield done


@contextmanager
def dying_within_a_transaction(monkeypatch, number, die):
    """The process ends when an answer is written, and its warm start is not."""

    class Dying(sqlite3.Connection):
        def execute(self, sql, values=()):
            if sql.startswith("insert into warm_starts") and values[1] == number:
                die()
            return super().execute(sql, values)

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Dying))
        yield


def n_answers(path):
    """Evaluations on file."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute("select count(*) from answers").fetchone()[0]
    finally:
        connection.close()


def assert_same(model, expected, X):
    """Bit for bit, and along the whole way."""
    assert model is not expected
    assert not differences(model, expected, X)
