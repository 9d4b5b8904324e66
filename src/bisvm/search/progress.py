"""What a run shows of itself on standard error.

Who watches, on a terminal or in a notebook, gets one line that is written over and
over; a log file gets a line for every evaluation.
"""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

from bisvm.search.history import Record

# From this `verbose` on there is a line for every evaluation, whoever watches.
EVERY_LINE = 2
# Back to the start of the line; what is longer than the new text is written over.
_BACK = "\r"
_WIDTH = 80


def show(
    record: Record,
    best: float,
    verbose: int,
    time_limit: float | None = None,
    stream: TextIO | None = None,
) -> None:
    """Tell of an evaluation; `best` is the lowest H that counts."""
    stream = sys.stderr if stream is None else stream
    if verbose < EVERY_LINE and is_watched(stream):
        line = live_line(record, best, time_limit)
        width = min(shutil.get_terminal_size((_WIDTH, 24)).columns - 1, 120)
        stream.write(_BACK + line[:width].ljust(width))
    else:
        if record.number == 1:
            stream.write(_HEAD)
        stream.write(
            f"{record.number:5d} {record.value:10.6f} {best:10.6f} "
            f"{record.gradient_norm:9.1e} {record.seconds:8.2f}  {record.stage}\n"
        )
    stream.flush()


def end(verbose: int, stream: TextIO | None = None) -> None:
    """Leave the live line as it is, and begin another."""
    stream = sys.stderr if stream is None else stream
    if 0 < verbose < EVERY_LINE and is_watched(stream):
        stream.write("\n")
        stream.flush()


def live_line(record: Record, best: float, time_limit: float | None = None) -> str:
    """Evaluations, loss, best loss, time so far and left, and what is being done."""
    time = f"{record.seconds:.1f} s"
    if time_limit is not None:
        time += f", {max(time_limit - record.seconds, 0.0):.0f} s left"
    task = f" of set {record.task + 1}" if record.task else ""
    return (
        f"evaluation {record.number}{task}: loss {record.value:.5f}, best {best:.5f}, "
        f"{time} ({record.stage})"
    )


def is_watched(stream: TextIO) -> bool:
    """Whether somebody sees the stream as it is written: a terminal, a notebook."""
    isatty = getattr(stream, "isatty", None)
    return bool(isatty is not None and isatty()) or _in_notebook(stream)


def _in_notebook(stream: TextIO) -> bool:
    """Output of a Jupyter kernel, which takes a carriage return as terminals do."""
    return type(stream).__module__.split(".")[0] == "ipykernel"


_HEAD = f"{'eval':>5} {'loss':>10} {'best':>10} {'gradient':>9} {'seconds':>8}  stage\n"
