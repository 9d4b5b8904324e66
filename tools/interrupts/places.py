"""Fits that are interrupted, each in a process of its own.

    python -m tools.interrupts.places PLACE CHECKPOINT MARKS [SIGNAL CALL]

prints "ready" before the fit and "done" after it. Every evaluation that begins leaves
a byte in the file MARKS. The place "compiled" sends itself the signal, within its
CALL-th call of compiled code.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bisvm import BilevelSVC
from bisvm.datasets import make_moons_with_noise
from bisvm.machines import column_systems
from bisvm.search.observer import Question

ROWS = 120


def data(n: int = ROWS) -> tuple[Any, Any]:
    X, y = make_moons_with_noise(n, random_state=0)
    return X, y


@contextmanager
def marking(marks: Path) -> Iterator[None]:
    """A context in which every evaluation that begins leaves a byte in a file."""
    solve = Question.solve
    tally = os.open(marks, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def marked(self: Question) -> Any:
        os.write(tally, b".")
        return solve(self)

    Question.solve = marked  # type: ignore[method-assign]
    try:
        yield
    finally:
        Question.solve = solve  # type: ignore[method-assign]
        os.close(tally)


def fit(path: Path | None, marks: Path, n: int = ROWS) -> BilevelSVC:
    """A fit that keeps its evaluations in a checkpoint, and marks those it begins."""
    with marking(marks):
        machine = BilevelSVC("ard", cv=3, random_state=0, checkpoint=path)
        return machine.fit(*data(n))


def in_python(path: Path, marks: Path) -> None:
    fit(path, marks)


def in_a_thread(path: Path, marks: Path) -> None:
    """A daemon, which ends with the process: others would hold up its end.

    The exit code is set here. Python's own may be 1 instead of 130 if the other thread
    runs `exec`, for an import say, while the process ends.
    """
    thread = threading.Thread(target=fit, args=(path, marks), daemon=True)
    try:
        thread.start()
        thread.join()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def in_compiled_code(path: Path, marks: Path, number: int = 0, call: int = 0) -> None:
    """Send this process a signal while it is within compiled code."""
    calls, inside, over = 0, threading.Event(), threading.Event()
    solve = column_systems.solve_small

    def send() -> None:
        inside.wait()
        os.kill(os.getpid(), number)
        over.set()

    def counted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls != call:
            return solve(*arguments)
        inside.set()
        # The other thread runs while the compiled code has released the GIL.
        while not over.is_set():
            out = solve(*arguments)
        return out

    column_systems.solve_small = counted
    if call:
        threading.Thread(target=send, daemon=True).start()
    fit(path, marks)
    print("calls", calls)


PLACES = {"python": in_python, "thread": in_a_thread, "compiled": in_compiled_code}


def main(arguments: list[str]) -> None:
    place, path, marks, *more = arguments
    # As in a terminal: in the background of a shell Ctrl-C is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("ready", flush=True)
    PLACES[place](Path(path), Path(marks), *map(int, more))
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
