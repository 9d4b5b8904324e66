"""Whether `time_limit` holds where fits take far longer: `python -m tools.time_limits`.

The data sets on which limits were exceeded twofold once, and rows in blocks. A limit is
kept if the fit takes no more than a tenth and two seconds longer. Every fit runs in a
process of its own, after a small one that loads libraries and compiled code. Exits with
1 if a limit is not kept.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from sklearn.datasets import make_classification

from bisvm import BilevelSVC

SHARE, SLACK = 0.1, 2.0


class Case(NamedTuple):
    """Rows, features and classes of a data set, a kernel, and a limit in seconds."""

    n: int
    d: int
    classes: int
    kernel: str
    limit: float

    def __str__(self) -> str:
        return f"{self.n} x {self.d}, {self.classes} classes, {self.kernel}"

    @property
    def most(self) -> float:
        """Seconds that the fit may take."""
        return (1.0 + SHARE) * self.limit + SLACK


CASES = (
    Case(1500, 20, 100, "auto", 40.0),
    Case(4000, 20, 10, "auto", 15.0),
    Case(30_000, 30, 2, "auto", 20.0),
    Case(200_000, 20, 2, "rbf", 8.0),
    Case(200_000, 20, 2, "rbf", 40.0),
    Case(200_000, 20, 2, "auto", 8.0),
)


def fit_here(case: Case) -> str:
    """Fit in this process: seconds, accuracy on training rows, why it ended."""

    def data(n: int, classes: int) -> tuple[object, object]:
        informative = min(case.d, 10)
        X, y = make_classification(
            n,
            case.d,
            n_informative=informative,
            n_redundant=0,
            n_classes=classes,
            random_state=0,
        )
        return X, y

    BilevelSVC(case.kernel, max_iter=1, starts=1).fit(*data(200, 2))
    X, y = data(case.n, case.classes)
    began = time.perf_counter()
    model = BilevelSVC(case.kernel, time_limit=case.limit, random_state=0).fit(X, y)
    seconds = time.perf_counter() - began
    return f"{seconds:.1f}\t{model.score(X[:2000], y[:2000]):.1%}\t{_reason(model)}"


def _reason(model: BilevelSVC) -> str:
    return str(model.certificate_.reason)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.time_limits")
    parser.add_argument("--only", metavar="WORD", default="", help="such as '4000 x'")
    # What a process of its own is told.
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one is not None:
        warnings.simplefilter("ignore")
        print(fit_here(CASES[options.one]))
        return 0
    exceeded = 0
    for number, case in enumerate(CASES):
        if options.only in str(case):
            exceeded += not _is_kept(number, case)
    return int(exceeded > 0)


def _is_kept(number: int, case: Case) -> bool:
    """Fit in a process of its own, print a line, and say whether the limit held."""
    command = [sys.executable, "-m", "tools.time_limits", "--one", str(number)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds, accuracy, reason = shown.strip().split("\t")
    kept = float(seconds) <= case.most
    words = "kept" if kept else "exceeded"
    line = f"{case!s:36} limit {case.limit:3.0f} s: {seconds:>5} s, {words}"
    print(f"{line}; accuracy on training rows {accuracy}. {reason}", flush=True)
    return kept


if __name__ == "__main__":
    sys.exit(main())
