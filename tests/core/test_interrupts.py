"""Signals, noted or raised."""

import os
import signal

import pytest

from bisvm.core.interrupts import asked_to_stop, ending_on_signals, plain_interrupts


@pytest.fixture(autouse=True)
def listening():
    """Ctrl-C as in a terminal: in the background of a shell it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted(number):
    told = []
    before = signal.getsignal(number)
    with ending_on_signals(lambda: told.append(asked_to_stop())) as received:
        assert not asked_to_stop()
        send(number)
        assert received == [number] and told == [True]
    assert not asked_to_stop() and signal.getsignal(number) is before


def test_the_second_one_ends_at_once():
    with pytest.raises(KeyboardInterrupt), ending_on_signals(lambda: None):
        send(signal.SIGINT)
        send(signal.SIGINT)
    assert not asked_to_stop()


def test_an_interrupt_in_compiled_code_is_an_interrupt():
    """It arrives as the cause of an error of Python's, or of several."""

    def wrapped():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as cause:
            try:
                raise SystemError("returned a result with an exception set") from cause
            except SystemError as error:
                raise SystemError("and again") from error

    with pytest.raises(KeyboardInterrupt), plain_interrupts():
        wrapped()


def test_other_errors_are_as_they_were():
    with pytest.raises(SystemError, match="of its own"), plain_interrupts():
        raise SystemError("of its own")


def test_what_is_ignored_stays_so():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with ending_on_signals(lambda: None) as received:
        send(signal.SIGINT)
        assert not received and not asked_to_stop()
