"""Fits that are broken off, and what they have cost."""

import sqlite3
from contextlib import contextmanager
from functools import partial

import numpy as np

from bisvm.search.observer import Question


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
    for name in ("C_", "intercept_", "dual_coef_", "coef_", "criterion_value_"):
        if hasattr(expected, name):
            np.testing.assert_array_equal(getattr(model, name), getattr(expected, name))
    np.testing.assert_array_equal(
        model.decision_function(X), expected.decision_function(X)
    )
    assert len(model.history_) == len(expected.history_)
    for one, other in zip(model.history_, expected.history_, strict=True):
        assert one.theta.tobytes() == other.theta.tobytes()
        assert (one.value, one.stage, one.number) == (
            other.value,
            other.stage,
            other.number,
        )
        assert (one.solves, one.inner_iterations) == (
            other.solves,
            other.inner_iterations,
        )
    assert model.certificate_ == expected.certificate_
