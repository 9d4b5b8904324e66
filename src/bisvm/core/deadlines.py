"""Deadlines: work that is abandoned when its time is over.

Long computations are divided into parts (`core.threads.in_threads`, steps of a solver),
and look at the clock between them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Reading of `time.perf_counter` at which the work of this context has to end.
_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


class OutOfTime(Exception):
    """The deadline of the current work has passed."""


@contextmanager
def until(deadline: float | None) -> Iterator[None]:
    """Return a context in which `check_deadline` raises after this time.

    An earlier deadline of the context around it stays.
    """
    own = math.inf if deadline is None else deadline
    token = _deadline.set(min(own, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


def check_deadline() -> None:
    """Raise `OutOfTime` if the deadline has passed."""
    if time.perf_counter() > _deadline.get():
        raise OutOfTime


def current_deadline() -> float:
    """Return the reading of `time.perf_counter` at which this work has to end."""
    return _deadline.get()
