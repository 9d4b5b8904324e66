"""The progress display: one line that is rewritten where somebody watches.

A terminal and a notebook rewrite the line; a log file gets a line every few seconds.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Self, TextIO

# Columns that are used where the width of the terminal is unknown, and at most.
_WIDTH, _MOST_WIDTH = 80, 120
# Seconds between two refreshes of a `ProgressLine`.
_REFRESH = 0.1
# Seconds between two lines where nobody watches: a log shows that work goes on.
_LOGGED = 5.0
# Width of the text, so that the seconds of several steps are below each other.
_TEXT = 42


def is_watched(stream: TextIO) -> bool:
    """Whether the stream is shown as it is written: a terminal or a notebook."""
    isatty = getattr(stream, "isatty", None)
    return bool(isatty is not None and isatty()) or _in_notebook(stream)


def _in_notebook(stream: TextIO) -> bool:
    # Jupyter's output handles a carriage return as a terminal does.
    return type(stream).__module__.split(".")[0] == "ipykernel"


def rewrite(text: str, stream: TextIO) -> None:
    """Replace the current line of a watched stream."""
    width = _columns()
    stream.write("\r" + text[:width].ljust(width))
    stream.flush()


def _columns() -> int:
    return min(shutil.get_terminal_size((_WIDTH, 24)).columns - 1, _MOST_WIDTH)


class ProgressLine:
    """A line on standard error for one step: its text, time so far, and a detail.

    The detail may be a function, which is called whenever the line is written.

    Examples
    --------
    >>> with ProgressLine("grid search") as step:  # doctest: +SKIP
    ...     step.detail = "point 3 of 10"
    """

    def __init__(self, text: str, stream: TextIO | None = None):
        self.text = text
        self.detail: str | Callable[[], str] = ""
        self.stream = sys.stderr if stream is None else stream
        self._done = Event()
        self._refresher = Thread(target=self._refresh, daemon=True)
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time since the step began."""
        return time.perf_counter() - self._began

    def __enter__(self) -> Self:
        self._refresher.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._refresher.join()
        if is_watched(self.stream):
            rewrite("", self.stream)
            self.stream.write("\r")
        self._print()

    def _print(self) -> None:
        # In one piece: other lines may be written meanwhile.
        self.stream.write(self._line() + "\n")
        self.stream.flush()

    def _line(self) -> str:
        detail = self.detail if isinstance(self.detail, str) else self.detail()
        return f"  {self.text:<{_TEXT}} {self.seconds:5.1f} s   {detail}".rstrip()

    def _refresh(self) -> None:
        watched = is_watched(self.stream)
        while not self._done.wait(_REFRESH if watched else _LOGGED):
            if watched:
                rewrite(_fitting(self._line()), self.stream)
            else:
                self._print()


def _fitting(line: str) -> str:
    """A line without the spaces between its parts, if it would be cut off."""
    return line if len(line) <= _columns() else "  " + " ".join(line.split())
