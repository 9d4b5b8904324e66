"""From the words of a command to its exit code."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from bisvm.cli.output import one_line, say
from bisvm.cli.parser import build_parser

# What the modules of the commands are called; they are heavy, and imported on demand.
COMMANDS = {
    "tune": "bisvm.cli.tuning",
    "predict": "bisvm.cli.predicting",
    "explain": "bisvm.cli.explaining",
    "compare": "bisvm.cli.comparing",
    "reproduce": "bisvm.cli.reproducing",
    "demo": "bisvm.cli.demonstrating",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; never raises but for `--help`, `--version` and usage errors."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    if getattr(options, "open", False) and options.report is None:
        parser.error("--open shows the report: it needs --report FILE")
    if options.debug:
        return _run(options)
    try:
        return _run(options)
    except KeyboardInterrupt:
        say("stopped.")
        return 130
    except BrokenPipeError:
        # Whoever read our output has had enough: no message, here or at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _failed("the data do not fit in memory.")
    except (ValueError, ImportError, OSError) as error:
        return _failed(_told(error))
    except Exception as error:
        return _failed(
            f"unexpected {type(error).__name__}: {error} (--debug shows where; please "
            "report it)"
        )


def _run(options: Any) -> int:
    with warnings.catch_warnings():
        warnings.showwarning = _show
        command = import_module(COMMANDS[options.command])
        code = command.run(options)
    sys.stdout.flush()
    return int(code or 0)


def _failed(message: str) -> int:
    say(f"bisvm: {one_line(message)}")
    return 1


def _told(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def _show(message: Any, *_: Any, **__: Any) -> None:
    # scikit-learn counts columns; `predict` names them.
    if "Found unknown categories" in str(message):
        return
    say(f"note: {one_line(str(message))}")
