"""Whether `max_memory` holds: `python -m tools.memory`.

Every fit runs in a process of its own. A small fit comes first, which loads libraries
and compiled code: "first" is what it takes. Then the peak of the resident memory is
reset, and the growth up to the end of the large fit is printed beside the limit.

`max_memory` counts what grows with the data. `OVERHEAD` is what a fit may take besides:
working memory of fixed size, of BLAS and of blocks of Gram matrices. Exits with 1 if a
fit takes more than both together. Linux only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

# Bytes beyond `max_memory` that a fit may take: see the text above.
OVERHEAD = 1e8
LIMITS = (2e8, 5e8, 1e9)


class Size(NamedTuple):
    """Rows, features and classes of a data set."""

    n: int
    d: int
    classes: int

    def __str__(self) -> str:
        return f"{self.n} x {self.d}, {self.classes} classes"


SIZES = (
    Size(6000, 20, 2),
    Size(20_000, 20, 2),
    Size(4000, 20, 10),
    Size(30_000, 30, 2),
)


class Measured(NamedTuple):
    """Bytes by which a small fit and then the large one grew, seconds, landmarks."""

    first: float
    growth: float
    seconds: float
    landmarks: int


def resident(name: str) -> float:
    """Bytes of resident memory of this process: now (VmRSS), or at most (VmHWM)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024.0 * int(line.split()[1])
    raise OSError("The system does not say how much memory a process takes.")


def forget_the_peak() -> None:
    """Set VmHWM to VmRSS."""
    Path("/proc/self/clear_refs").write_text("5")


def fit_here(size: Size, limit: float, time_limit: float, kernel: str) -> Measured:
    """Fit in this process."""
    from sklearn.datasets import make_classification

    from bisvm import BilevelSVC

    def data(n: int) -> tuple[object, object]:
        informative = min(size.d, 10)
        X, y = make_classification(
            n, size.d, n_informative=informative, n_classes=size.classes, random_state=0
        )
        return X, y

    def machine(n: int) -> BilevelSVC:
        return BilevelSVC(
            kernel,
            approximation="nystroem" if n < 2000 else "auto",
            random_state=0,
            max_memory=limit,
            time_limit=time_limit,
        )

    X, y = data(400)
    began_with = resident("VmRSS")
    machine(400).fit(X, y)
    first = resident("VmRSS") - began_with
    X, y = data(size.n)
    forget_the_peak()
    before, began = resident("VmRSS"), time.perf_counter()
    model = machine(size.n).fit(X, y)
    seconds = time.perf_counter() - began
    used = getattr(model, "approximation_", None)
    count = 0 if used is None else used.n_landmarks
    return Measured(first, resident("VmHWM") - before, seconds, count)


def measured(size: Size, limit: float, time_limit: float, kernel: str) -> Measured:
    """Fit in a process of its own."""
    words = ["--one", *size, limit, "--time-limit", time_limit, "--kernel", kernel]
    command = [sys.executable, "-W", "ignore", "-m", "tools.memory", *map(str, words)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    *figures, landmarks = shown.split()
    return Measured(*map(float, figures), int(landmarks))


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    given = options.time_limit, options.kernel
    if options.one is not None:
        *shape, limit = options.one
        print(*fit_here(Size(*map(int, shape)), limit, *given))
        return 0
    sizes = [Size(*map(int, text.split("x"))) for text in options.sizes] or SIZES
    failed = 0
    heads = ("first", "limit", "growth", "landmarks", "seconds")
    print(f"{'data':28}", *(f"{head:>9}" for head in heads))
    for size in sizes:
        for limit in options.limits:
            found = measured(size, limit, *given)
            over = found.growth > limit + OVERHEAD
            failed += over
            print(_line(size, limit, found) + "  too much" * over, flush=True)
    return int(failed > 0)


def _line(size: Size, limit: float, found: Measured) -> str:
    amounts = (found.first, limit, found.growth)
    shown = " ".join(f"{amount / 1e6:6.0f} MB" for amount in amounts)
    return f"{size!s:28} {shown} {found.landmarks:9d} {found.seconds:9.1f}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.memory")
    parser.add_argument("--limits", type=float, nargs="+", default=LIMITS)
    parser.add_argument("--time-limit", type=float, default=15.0)
    parser.add_argument("--kernel", default="rbf")
    parser.add_argument("--sizes", nargs="+", default=[], help="such as 6000x20x2")
    # What a process of its own is told.
    parser.add_argument("--one", nargs=4, type=float, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
