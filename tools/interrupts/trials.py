"""One interrupted fit after the other, and what is wrong with what it leaves."""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import bisvm
from bisvm.cli import main as command_line
from tools.interrupts.places import ROWS, data, fit

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PLACES = ("python", "command line", "thread", "compiled")
# Part of an uninterrupted fit in which signals are sent: later ones may come too late.
LATEST = 0.85
# Words of errors that are not Python's own KeyboardInterrupt.
FOREIGN = ("SystemError", "Fatal Python error", "Exception ignored", "unexpected")
# Seconds after which a process that should have ended is given up.
SECONDS = 120.0


@dataclass
class Tally:
    """How many interrupted fits left what they should, and what was wrong with others.

    late : signals that came when the fit was over, and are not counted
    evaluations : that had begun at each signal, where that is known
    """

    what: str
    asked: int
    done: int = 0
    right: int = 0
    late: int = 0
    wrong: list[str] = field(default_factory=list)
    evaluations: list[int] = field(default_factory=list)

    def add(self, wrong: Sequence[str], evaluations: int | None = None) -> None:
        self.done += 1
        self.right += not wrong
        self.wrong += wrong
        if evaluations is not None:
            self.evaluations.append(evaluations)

    def __str__(self) -> str:
        when = ""
        if self.evaluations:
            first, last = min(self.evaluations), max(self.evaluations)
            when = f"in evaluations {first} to {last}"
        return f"{self.what:34} {self.right:3d} of {self.asked:3d}   {when}".rstrip()


def differences(model: Any, expected: Any, X: Any) -> list[str]:
    """Where a fit differs from another one, bit for bit and along the whole way."""
    found = []
    for name in ("C_", "intercept_", "dual_coef_", "coef_", "criterion_value_"):
        if hasattr(expected, name) and not np.array_equal(
            getattr(model, name), getattr(expected, name)
        ):
            found.append(name)
    if not np.array_equal(model.decision_function(X), expected.decision_function(X)):
        found.append("decision_function")
    if [_told(one) for one in model.history_] != [_told(o) for o in expected.history_]:
        found.append("history_")
    if model.certificate_ != expected.certificate_:
        found.append("certificate_")
    return found


def _told(record: Any) -> tuple[object, ...]:
    """What two runs of one search must agree in."""
    same = record.value, record.stage, record.number
    return record.theta.tobytes(), *same, record.solves, record.inner_iterations


# --- processes ------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """A process that has ended: its exit code as shells count, and what it said."""

    code: int
    said: str
    seconds: float

    def wrong(self, number: int, *, traceback: bool) -> list[str]:
        """What a signal should not have led to.

        An interrupt within an `except` block shows the exception that was handled, too.

        traceback : whether that of a KeyboardInterrupt may be shown
        """
        found = []
        if self.code != 128 + number:
            found.append(f"exit code {self.code}")
        shown = self.said.count("Traceback (most recent call last)")
        handled = self.said.count("During handling of the above exception")
        last = self.said.strip().rpartition("\n")[2]
        interrupt = traceback and shown == 1 + handled and last == "KeyboardInterrupt"
        if (shown and not interrupt) or any(word in self.said for word in FOREIGN):
            found.append(f"{shown} tracebacks, the last line is {last!r}")
        return found


@contextlib.contextmanager
def _started(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A process in a group of its own, which nothing of it survives."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run(command: Sequence[str], number: int = 0, delay: float = 0.0) -> Ended:
    """Run a command; send it a signal some time after its first line, unless it is 0.

    Raises
    ------
    RuntimeError
        If a process that it started is left.
    """
    with _started(command) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        began = time.perf_counter()
        if number:
            time.sleep(delay)
            process.send_signal(number)
        said += process.communicate(timeout=SECONDS)[0]
        seconds = time.perf_counter() - began
        code = process.returncode
        if _group_lives(process.pid):
            raise RuntimeError(f"{command} has left a process running.")
    return Ended(128 - code if code < 0 else code, said, seconds)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def moments(times: int, seed: int) -> Iterator[float]:
    """Shares of a run: one in every part of it, and then more for those too late."""
    rng = np.random.default_rng(seed)
    for number in range(times):
        yield LATEST * (number + rng.uniform()) / times
    for _ in range(2 * times):
        yield LATEST * 0.7 * rng.uniform()


# --- fits in Python -------------------------------------------------------------------


class Fits:
    """Fits with a checkpoint in a folder, beside one that was not interrupted."""

    def __init__(self, folder: Path, n: int):
        self.folder, self.n = folder, n
        self.marks = folder / "marks"
        self.X, _ = data(n)
        self.expected = self.fit(None)
        self.total = self.begun()

    def fit(self, path: Path | None) -> Any:
        return fit(path, self.marks, self.n)

    def begun(self) -> int:
        """Evaluations that have begun since the marks were wiped."""
        return self.marks.stat().st_size

    def wipe(self) -> None:
        self.marks.write_bytes(b"")

    def resumed(self, path: Path) -> list[str]:
        """What is wrong with the same fit, begun again."""
        left = sorted(one.name for one in self.folder.glob("*.part"))
        wrong = [f"left {left}"] if left else []
        wrong += differences(self.fit(path), self.expected, self.X)
        if not self.total <= self.begun() <= self.total + 1:
            wrong.append(f"{self.begun()} evaluations, {self.total} without a stop")
        beside = {one.name for one in self.folder.glob(f"{path.name}*")} - {path.name}
        return wrong + [f"left {name}" for name in beside]


def interrupted_fits(folder: Path, place: str, number: int, times: int) -> Tally:
    """Signals at random moments of a fit at one of the `places`."""
    fits = Fits(folder, ROWS)
    tally = Tally(f"{place}, {signal.Signals(number).name}", times)
    whole = run(_fit_command(place, folder / "whole.checkpoint", fits.marks))
    for share in moments(times, number):
        if tally.done >= times:
            break
        path = folder / f"{share:.9f}.checkpoint"
        fits.wipe()
        if place == "compiled":
            call = 1 + int(share * int(whole.said.split("calls")[1].split()[0]))
            ended = run(_fit_command(place, path, fits.marks, number, call))
        else:
            command = _fit_command(place, path, fits.marks)
            ended = run(command, number, share * whole.seconds)
        if "done" in ended.said.splitlines():
            tally.late += 1
            continue
        begun = fits.begun()
        wrong = ended.wrong(number, traceback=number == signal.SIGINT)
        tally.add([*wrong, *fits.resumed(path)], begun)
    return tally


def _fit_command(place: str, path: Path, marks: Path, *more: int) -> list[str]:
    words = map(str, (place, path, marks, *more))
    return [sys.executable, "-m", "tools.interrupts.places", *words]


def killed_fits(folder: Path, n: int, times: int) -> Tally:
    """Kills at random moments, of processes that know what this one knows (fork)."""
    fits, context = Fits(folder, n), multiprocessing.get_context("fork")
    tally = Tally("python, SIGKILL", times)
    began = time.perf_counter()
    fits.fit(folder / "whole.checkpoint")
    seconds = time.perf_counter() - began
    for share in moments(times, 0):
        if tally.done >= times:
            break
        path = folder / f"{share:.9f}.checkpoint"
        fits.wipe()
        child = context.Process(target=fits.fit, args=(path,))
        child.start()
        time.sleep(share / LATEST * seconds)
        child.kill()
        child.join()
        begun = fits.begun()
        wrong = fits.resumed(path)
        # A fit that was over is no test of anything.
        if child.exitcode == 0 and not wrong:
            tally.late += 1
        else:
            tally.add(wrong, begun)
    return tally


# --- the command line -----------------------------------------------------------------


class Commands:
    """`bisvm tune --save --resume` in a folder, beside one that was not interrupted."""

    def __init__(self, folder: Path):
        self.folder, self.table = folder, folder / "moons.csv"
        self.model, self.kept = folder / "model.skops", folder / "run.checkpoint"
        _write_table(self.table)
        words = ["tune", str(self.table), "--target", "y", "--cv", "3", "--json"]
        words += ["--kernel", "ard", "--resume", str(self.kept)]
        self.words = [*words, "--save", str(self.model)]
        # The first one may compile.
        self.run()
        self.seconds = self.run().seconds
        self.expected = _answer(self.words)

    def run(self, number: int = 0, delay: float = 0.0) -> Ended:
        """Begin from nothing."""
        self.kept.unlink(missing_ok=True)
        self.model.unlink(missing_ok=True)
        return run([sys.executable, "-m", "bisvm", *self.words], number, delay)

    def wrong(self) -> list[str]:
        """What is wrong with the files that are left, and with the same command."""
        left = {one.name for one in self.folder.iterdir()}
        if left != {self.table.name, self.model.name, self.kept.name}:
            return [f"left {sorted(left)}"]
        bisvm.load(self.model)
        wrong = []
        if _answer(["predict", str(self.model), str(self.table)]) is None:
            wrong.append("the model does not predict")
        if _answer(self.words) != self.expected:
            wrong.append("another answer after --resume")
        return wrong


def _write_table(path: Path) -> None:
    X, y = data(60)
    names = [*(f"x{k}" for k in range(X.shape[1])), "y"]
    rows = [[*row.tolist(), int(k)] for row, k in zip(X, y, strict=True)]
    lines = [",".join(map(str, row)) for row in (names, *rows)]
    path.write_text("\n".join([*lines, ""]))


def interrupted_commands(folder: Path, number: int, times: int) -> Tally:
    """Signals at random moments after `bisvm tune` has begun to tune."""
    commands = Commands(folder)
    tally = Tally(f"command line, {signal.Signals(number).name}", times)
    for share in moments(times, number):
        if tally.done >= times:
            break
        ended = commands.run(number, 0.05 + share * commands.seconds)
        if ended.code == 0:
            tally.late += 1
            continue
        tally.add([*ended.wrong(number, traceback=False), *commands.wrong()])
    return tally


def _answer(words: Sequence[str]) -> object:
    """What a command prints but for times; None if it fails."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = command_line(words)
    if code or "--json" not in words:
        return None if code else out.getvalue()
    found = json.loads(out.getvalue())
    found.pop("seconds")
    return found


def all_tallies(times: int, only: str = "") -> Iterator[Tally]:
    """Every place and signal, and kills; or those that have this word."""
    for place in PLACES:
        for number in SIGNALS if only in place else ():
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                if place == "command line":
                    yield interrupted_commands(folder, number, times)
                else:
                    yield interrupted_fits(folder, place, number, times)
    if only in "kills":
        with tempfile.TemporaryDirectory() as name:
            yield killed_fits(Path(name), ROWS, times)
