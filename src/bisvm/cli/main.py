"""Parse a command, run it, and turn errors into messages and exit codes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from types import FrameType

from bisvm.cli.output import exit_code, message_of, one_line, say
from bisvm.cli.parser import build_parser, parse
from bisvm.core.interrupts import plain_interrupts

# Modules of the commands; they are slow to import, and imported on demand.
COMMANDS = {
    "tune": "bisvm.cli.tuning",
    "predict": "bisvm.cli.predicting",
    "explain": "bisvm.cli.explaining",
    "compare": "bisvm.cli.comparing",
    "reproduce": "bisvm.cli.reproducing",
    "demo": "bisvm.cli.demo",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after `bisvm`; those of the process by default.

    Returns
    -------
    code : int
        The exit code. Only the parser may exit by itself.
    """
    options = parse(arguments)
    if options.command is None:
        build_parser().print_help(sys.stderr)
        return 2
    if getattr(options, "details", False) and find_spec("matplotlib") is None:
        return _failed(
            "--details needs matplotlib, which is not installed: pip install "
            "matplotlib, or leave --details out."
        )
    if options.debug:
        return _run(options)
    try:
        with _terminated_in_order(), plain_interrupts():
            return _run(options)
    except KeyboardInterrupt:
        say("stopped.")
        return exit_code(signal.SIGINT)
    except Terminated:
        say("stopped.")
        return exit_code(signal.SIGTERM)
    except BrokenPipeError:
        # The reader of our output has closed it: no message, here or at exit.
        _drop_output()
        return 0
    except MemoryError:
        return _failed("not enough memory for these data.")
    except OSError as error:
        if error.filename is None and error.errno is not None:
            # Standard output, on a disk that is full say: no second message at exit.
            _drop_output()
        return _failed(message_of(error))
    except ValueError as error:
        return _failed(_in_words(error))
    except ImportError as error:
        return _failed(message_of(error))
    except Exception as error:
        return _failed(
            f"unexpected {type(error).__name__}: {error} (please report this; --debug "
            "shows where it happened)"
        )


class Terminated(BaseException):
    """SIGTERM: files that are being written are removed on the way out."""


@contextmanager
def _terminated_in_order() -> Iterator[None]:
    """Raise SIGTERM as an exception, as Python does with Ctrl-C."""

    def handle(number: int, frame: FrameType | None) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(options: Namespace) -> int:
    with warnings.catch_warnings():
        warnings.showwarning = _notes()
        command = import_module(COMMANDS[options.command])
        code = command.run(options)
    sys.stdout.flush()
    return int(code or 0)


def _failed(message: str) -> int:
    say(f"bisvm: {one_line(message)}")
    return 1


def _drop_output() -> None:
    """Let what is still to be written to standard output go nowhere."""
    # A stream that Python code has put there may have no file.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_doubt(message: object) -> bool:
    """Whether a fit warns of what the page says: no convergence, or of no use."""
    from bisvm.estimators.quality import NO_BETTER, TOO_FEW

    text = str(message)
    unconverged = "certificate_) says how far the search got" in text
    return unconverged or text.startswith((NO_BETTER, TOO_FEW))


def _notes() -> Callable[..., None]:
    """Return a function that shows warnings, each of them once."""
    shown: set[str] = set()

    def show(message: object, *_: object, **__: object) -> None:
        # `predict` has a message of its own, with the names of the columns.
        text = one_line(str(message))
        if "Found unknown categories" in text or _is_doubt(message) or text in shown:
            return
        shown.add(text)
        say(f"note: {text}")

    return show


def _in_words(error: ValueError) -> str:
    """What an error says, with the names of options."""
    from bisvm.cli.tasks import other_run_in_words

    return other_run_in_words(error) or message_of(error)
