"""How much of the package one default fit touches: `python -m tools.trace`.

Fits a default `BilevelSVC` on 120 rows of two classes, and counts

- the files and functions of the package that run,
- calls of an estimator's methods, and calls that hand over an estimator, while the
  search runs. The search must not know estimators: both must be 0, or the exit code
  is 1.

To count in another checkout: `PYTHONPATH=/other/src:. python -m tools.trace`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.datasets import make_moons

import bisvm

PACKAGE = Path(bisvm.__file__).resolve().parent
# The function that begins the search, and its name in version 0.1.
SEARCH = {("search/units.py", "search"), ("estimators/units.py", "tune_all")}


@dataclass
class Trace:
    """What has run; `sys.setprofile` takes `event`.

    calls : how often each function of the package was called
    methods : calls of an estimator's methods during the search
    handed : calls during the search with an estimator among their arguments
    depth : how many calls of the search's first function have not returned
    """

    calls: Counter[CodeType] = field(default_factory=Counter)
    methods: Counter[str] = field(default_factory=Counter)
    handed: Counter[str] = field(default_factory=Counter)
    depth: int = 0

    def event(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or file_of(code) is None:
            return
        if event == "call":
            self.calls[code] += 1
            if self.depth:
                self._look_for_estimators(frame)
        if (file_of(code), code.co_name) in SEARCH:
            self.depth += 1 if event == "call" else -1

    def _look_for_estimators(self, frame: FrameType) -> None:
        code = frame.f_code
        n = code.co_argcount + code.co_kwonlyargcount
        names = [
            name
            for name in code.co_varnames[:n]
            if isinstance(frame.f_locals.get(name), BaseEstimator)
            and type(frame.f_locals[name]).__module__.startswith("bisvm.estimators")
        ]
        if names:
            found = self.methods if names[0] == "self" else self.handed
            found[f"{file_of(code)}: {code.co_name}"] += 1

    @property
    def functions(self) -> list[CodeType]:
        """Functions that have a name of their own: no lambdas, no comprehensions."""
        return [code for code in self.calls if not code.co_name.startswith("<")]

    @property
    def files(self) -> Counter[str]:
        """How many functions of each file have run."""
        return Counter(str(file_of(code)) for code in self.functions)


def file_of(code: CodeType) -> str | None:
    """The file of a function, relative to the package; None if it is not ours."""
    path = Path(code.co_filename)
    return (
        path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else None
    )


def trace_fit() -> Trace:
    X, y = make_moons(120, noise=0.2, random_state=0)
    # The first fit imports and compiles.
    bisvm.BilevelSVC(random_state=0).fit(X, y)
    trace = Trace()
    sys.setprofile(trace.event)
    try:
        bisvm.BilevelSVC(random_state=0).fit(X, y)
    finally:
        sys.setprofile(None)
    return trace


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="list files and callbacks")
    options = parser.parse_args()
    trace = trace_fit()
    print(f"package\t{PACKAGE}")
    print(f"files\t{len(trace.files)}")
    print(f"functions\t{len(trace.functions)}")
    print(f"calls\t{sum(trace.calls.values())}")
    print(f"estimator methods called by the search\t{trace.methods.total()}")
    print(f"calls in the search that take an estimator\t{trace.handed.total()}")
    if options.list:
        for title in ("files", "methods", "handed"):
            for name, count in sorted(getattr(trace, title).items()):
                print(f"{title}\t{count}\t{name}")
    return int(bool(trace.methods or trace.handed))


if __name__ == "__main__":
    sys.exit(main())
