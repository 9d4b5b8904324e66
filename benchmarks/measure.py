"""How things are measured: in a process of their own, one thread, under a limit."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import platform
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import bisvm
from benchmarks.sets import Sample
from bisvm.selection.comparison import BOX

# Bumped when what is measured changes its meaning, so that old rows are not reused.
PROTOCOL = 1
# Rows of the fits from which times are estimated.
TRIAL_ROWS = 1000
PACKAGES = ("numpy", "scipy", "scikit-learn", "optuna")


# --- in a child process ---------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """What a call gave, and what it took.

    cpu, wall : seconds
    memory : bytes by which the peak of the process rose above what it was given
    status : "" or why there is no value
    """

    value: Any
    cpu: float
    wall: float
    memory: float
    status: str = ""


def measured(
    call: Callable[[], Any],
    then: Callable[[Any], Any] = lambda result: result,
    limit: float | None = None,
) -> Measured:
    """Run a call in a fork of this process, and end it after `limit` seconds.

    A fork has everything imported and compiled that its parent has; its peak memory is
    its own, and the parent's heap stays as it was. An exception comes back as such.
    `then` makes of the result what is sent back, when time and memory have been taken.
    """
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    child = fork.Process(target=_answer, args=(call, then, sender))
    child.start()
    sender.close()
    answer = None
    try:
        if receiver.poll(limit):
            answer = receiver.recv()
    except EOFError:
        raise RuntimeError(
            f"The process of {call!r} died without an answer; it may have run out of "
            "memory. Use a smaller set."
        ) from None
    finally:
        if answer is None:
            child.kill()
        child.join()
        receiver.close()
    if answer is None:
        assert limit is not None
        return Measured(None, limit, limit, np.nan, f"stopped after {spoken(limit)}")
    if isinstance(answer, str):
        raise RuntimeError(f"A measured call failed:\n{answer}")
    return Measured(*answer)


def _answer(call: Callable[[], Any], then: Callable[[Any], Any], sender: Any) -> None:
    before = _peak()
    try:
        with alone():
            wall, cpu = time.perf_counter(), time.process_time()
            value = call()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            memory = _peak() - before
            sender.send((then(value), cpu, wall, memory))
    except Exception:
        sender.send(traceback.format_exc())


def _peak() -> float:
    """Bytes; the kernel counts in kilobytes, but not everywhere."""
    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


@contextmanager
def alone() -> Iterator[None]:
    """One thread, and no warnings of searches about the corners of their boxes."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and its CPU seconds."""
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


# --- estimates ------------------------------------------------------------------------


def seconds_of_a_fit(sample: Sample, values: dict[str, float] | None = None) -> float:
    """Seconds of one SVC on four folds of five, guessed from a few small fits.

        seconds(n) = seconds(m) (0.8 n / m)^2,    m = min(0.8 n, 1000)

    on average over 3 x 3 places of the box; or at given values, with m up to 4000.
    """
    m = min(int(0.8 * sample.n), (4 if values else 1) * TRIAL_ROWS)
    part = sample.part(m)
    inner = {name: np.geomspace(*box, 7)[1::2] for name, box in BOX.items()}
    pairs = [dict(zip(inner, pair, strict=True)) for pair in product(*inner.values())]
    seconds = []
    for pair in [values] if values else pairs:
        seconds.append(timed(lambda pair=pair: SVC(**pair).fit(part.X, part.y))[1])
    return float(np.mean(seconds)) * (0.8 * sample.n / m) ** 2


def would_take(seconds: float) -> str:
    return f"not run: would take about {spoken(seconds)}"


def spoken(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.2g} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.2g} h"


# --- what was measured, and where -----------------------------------------------------


@cache
def code_version() -> str:
    """Changes with every line of the library."""
    digest = hashlib.sha256()
    root = Path(bisvm.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return f"bisvm-{digest.hexdigest()[:10]}/{PROTOCOL}"


@cache
def others_version() -> str:
    """Changes with the packages that we are compared with."""
    names = ("scikit-learn", "optuna")
    return "+".join(f"{name}-{_version(name)}" for name in names) + f"/{PROTOCOL}"


def versions() -> str:
    """Machine and versions, for the foot of a table."""
    found = {"bisvm": bisvm.__version__}
    found |= {name: _version(name) for name in PACKAGES}
    found["Python"] = platform.python_version()
    text = ", ".join(f"{name} {number}" for name, number in found.items() if number)
    return f"{text}; {machine()}"


@cache
def machine() -> str:
    model = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.partition(":")[2] for line in lines if "model name" in line]
        model = names[0].strip() if names else model
    except OSError:
        pass
    return f"{os.cpu_count()} CPUs ({model})"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
