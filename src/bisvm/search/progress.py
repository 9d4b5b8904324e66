"""What a search shows on standard error: the last evaluation and the best loss."""

from __future__ import annotations

import sys
from typing import TextIO

from bisvm.core.progress import is_watched, rewrite
from bisvm.search.history import Record

# From this `verbose` on, every evaluation gets its own line.
EVERY_LINE = 2
_HEAD = f"{'eval':>5} {'loss':>10} {'best':>10} {'gradient':>9} {'seconds':>8}  stage\n"


def show(
    record: Record,
    best: float,
    verbose: int,
    time_limit: float | None = None,
    stream: TextIO | None = None,
) -> None:
    """Show an evaluation; `best` is the lowest H that counts."""
    stream = sys.stderr if stream is None else stream
    if verbose < EVERY_LINE and is_watched(stream):
        rewrite(live_line(record, best, time_limit), stream)
        return
    if record.number == 1:
        stream.write(_HEAD)
    stream.write(
        f"{record.number:5d} {record.value:10.6f} {best:10.6f} "
        f"{record.gradient_norm:9.1e} {record.seconds:8.2f}  {record.stage}\n"
    )
    stream.flush()


def end(verbose: int, stream: TextIO | None = None) -> None:
    """Keep the live line and begin another."""
    stream = sys.stderr if stream is None else stream
    if 0 < verbose < EVERY_LINE and is_watched(stream):
        stream.write("\n")
        stream.flush()


def live_line(record: Record, best: float, time_limit: float | None = None) -> str:
    """The evaluation's number, its loss, the best loss, the time, and the stage."""
    time = f"{record.seconds:.1f} s"
    if time_limit is not None:
        time += f", {max(time_limit - record.seconds, 0.0):.0f} s left"
    task = f" of set {record.task + 1}" if record.task else ""
    return (
        f"evaluation {record.number}{task}: loss {record.value:.5f}, best {best:.5f}, "
        f"{time} ({record.stage})"
    )
