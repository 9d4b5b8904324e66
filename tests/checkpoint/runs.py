"""Fits that are broken off, and what they have cost."""

from contextlib import contextmanager

import numpy as np

from bisvm.checkpoint import Checkpoint
from bisvm.estimators.objective import BilevelObjective


class Killed(BaseException):
    """Stands for the end of a process: nothing catches it."""


@contextmanager
def counted(monkeypatch, stop_at=None):
    """Count evaluations that are really done; the process ends instead of one."""
    done = []
    evaluate = BilevelObjective.evaluate_within

    def counting(self, *args, **settings):
        if len(done) == stop_at:
            raise Killed
        done.append(args[0])
        return evaluate(self, *args, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(BilevelObjective, "evaluate_within", counting)
        yield done


@contextmanager
def killed_before_line(monkeypatch, number):
    """The process ends when the state is on file, and its line is not."""
    append = Checkpoint.append

    def appending(self, values):
        if values.get("number") == number:
            raise Killed
        append(self, values)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "append", appending)
        yield


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
