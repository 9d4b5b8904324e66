"""Signals that ask for an end: Ctrl-C and SIGTERM.

A signal may arrive anywhere in the code. Here it is only noted, and no exception is
raised: the observer of a search looks it up after every evaluation, so that a fit can
end with the best result so far.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# The signals that have arrived. A list, since a handler may not wait for a lock.
_received: list[int] = []


def asked_to_stop() -> bool:
    """Whether a signal has asked all searches of this process to end."""
    return bool(_received)


@contextmanager
def ending_on_signals(notify: Callable[[], None]) -> Iterator[list[int]]:
    """Note the first Ctrl-C or SIGTERM, and let a second one end at once.

    Parameters
    ----------
    notify : called when the first signal arrives, at any point of the code

    Yields
    ------
    received : list of the signals that have arrived
    """
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread gets signals, or may say what they do.
        yield _received
        return
    known = ((one, signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM))
    # What is ignored stays so, as Ctrl-C is in a process in the background of a shell.
    before = {one: handler for one, handler in known if handler != signal.SIG_IGN}

    def restore() -> None:
        for one, handler in before.items():
            signal.signal(one, handler or signal.SIG_DFL)

    def handle(number: int, frame: FrameType | None) -> None:
        restore()
        _received.append(number)
        notify()

    try:
        for one in before:
            signal.signal(one, handle)
        yield _received
    finally:
        restore()
        _received.clear()


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Raise an interrupt during compiled code as a KeyboardInterrupt.

    Compiled functions do not look for exceptions. They run to their end, and Python
    then finds both a result and an exception, which it reports as a SystemError. The
    same is true of any other exception that a signal handler raises.
    """
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if cause is None:
            raise
        raise cause from None
