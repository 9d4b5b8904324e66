"""Fit the models of the net and compare their answers with those on file.

python -m tools.same                      all cases
python -m tools.same --only 'kernel/*'    some; a plain word means every name with it
python -m tools.same --record             write today's answers to the file
python -m tools.same --against REVISION   compare with those of another commit, which
                                          are computed first, on this machine
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tools.same import answers
from tools.same.answers import Answer
from tools.same.compare import (
    DIFFERENT,
    IDENTICAL,
    SKIPPED,
    Outcome,
    compare,
    judged,
    other_circumstances,
    rewordings,
    summary,
)
from tools.version import ROOT, check_out, short

if TYPE_CHECKING:
    from tools.same.kinds import Case

# Cases that are listed with their seconds.
SLOWEST = 10
# Characters of an error message that are shown.
MESSAGE = 200


def main(arguments: list[str] | None = None) -> int:
    """Exit code: 1 if an answer is another one, or a case fails; else 0."""
    # The library is not needed to say what this program does.
    parser = _parser()
    options = parser.parse_args(arguments)
    from tools.same.cases import CASES

    names = chosen(CASES, options.only)
    if not names:
        parser.error(f"no case is called {options.only!r}; --list names them")
    if options.list:
        print("\n".join(names))
        return 0
    made, recorded = answers.read()
    if options.against:
        made, recorded = answers_at(options.against, options.only)
    for one in other_circumstances(made, answers.circumstances()):
        print(f"note: {one}: the last digits may differ.")
    run = Run(recorded)
    run.all(CASES, names)
    if not options.only:
        run.gone(set(recorded) - set(CASES))
    outcomes = run.finish(made.get("commit", "nothing"))
    if options.times:
        run.slowest()
    if options.record:
        unasked = (set(recorded) & set(CASES)) - set(names)
        answers.write({**{name: recorded[name] for name in unasked}, **run.answers})
        print(f"Recorded {len(run.answers)} answers at {answers.commit()}.")
        return int(bool(run.failed))
    return int(any(one.status == DIFFERENT for one in outcomes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.same",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", metavar="PATTERN", help="cases to run; several: a,b")
    parser.add_argument("--record", action="store_true", help="write the answers")
    parser.add_argument(
        "--against", metavar="REVISION", help="commit to compare with, such as HEAD"
    )
    parser.add_argument("--list", action="store_true", help="name the cases")
    parser.add_argument("--times", action="store_true", help="name the slowest cases")
    return parser


def chosen(names: Iterable[str], only: str | None) -> list[str]:
    """Names that match a pattern, or contain a word; all of them without one."""
    if not only:
        return list(names)
    patterns = [one if "*" in one else f"*{one}*" for one in only.split(",")]
    return [name for name in names if any(fnmatchcase(name, p) for p in patterns)]


def answers_at(
    revision: str, only: str | None
) -> tuple[dict[str, Any], dict[str, Answer]]:
    """Compute the answers of another commit, with its own cases, and read them."""
    name = short(revision)
    if not name:
        raise SystemExit(f"There is no commit {revision!r}; `git log` lists them.")
    with TemporaryDirectory() as folder:
        code = Path(folder)
        check_out(name, code)
        path = code / answers.FILE.relative_to(ROOT)
        path.unlink(missing_ok=True)
        words = ["--record", *(["--only", only] if only else [])]
        subprocess.run(
            [sys.executable, "-m", "tools.same", *words],
            cwd=code,
            env={**os.environ, "PYTHONPATH": f"{code / 'src'}{os.pathsep}{code}"},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        made, found = answers.read(path)
    return {**made, "commit": name}, found


class Run:
    """Answers of today, and how they compare with those on file."""

    def __init__(self, recorded: Mapping[str, Answer]):
        self.recorded = recorded
        self.answers: dict[str, Answer] = {}
        self.outcomes: list[Outcome] = []
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def all(self, cases: Mapping[str, Case], names: list[str]) -> None:
        """Run the cases of these names, one after the other."""
        for number, name in enumerate(names, 1):
            _show(f"{number}/{len(names)} {name}")
            began = time.perf_counter()
            outcome = self._outcome(cases[name])
            self.seconds[name] = time.perf_counter() - began
            _show("")
            self._take(outcome)

    def gone(self, names: Iterable[str]) -> None:
        """Count answers on file that belong to no case as different."""
        for name in sorted(names):
            self._take(Outcome(name, DIFFERENT, note="on file, but there is no case"))

    def finish(self, commit: str) -> list[Outcome]:
        """Judge sentences by all cases together, and print the summary."""
        outcomes = judged(self.outcomes)
        for first, final in zip(self.outcomes, outcomes, strict=True):
            if final.status != first.status:
                print(final)
        for old, new in rewordings(outcomes).reworded.items():
            print(f"reworded   {old!r} -> {new!r}")
        total = sum(self.seconds.values())
        print(f"{len(outcomes)} cases in {total:.0f} s, compared with {commit}:")
        print(summary(outcomes))
        return outcomes

    def slowest(self) -> None:
        """Print the cases that took longest."""
        by_time = sorted(self.seconds.items(), key=lambda one: -one[1])
        for name, seconds in by_time[:SLOWEST]:
            print(f"{seconds:6.1f} s  {name}")

    def _outcome(self, case: Case) -> Outcome:
        """Run one case, unless a package that it needs is missing."""
        missing = case.missing()
        if missing:
            note = f"not installed: {', '.join(missing)}"
            return Outcome(case.name, SKIPPED, note=note)
        try:
            answer = case.answer()
        except Exception as error:
            self.failed.append(case.name)
            note = f"failed, {type(error).__name__}: {str(error)[:MESSAGE]}"
            return Outcome(case.name, DIFFERENT, note=note)
        self.answers[case.name] = answer
        if case.name not in self.recorded:
            return Outcome(case.name, DIFFERENT, note="not on file: --record")
        return compare(case.name, self.recorded[case.name], answer)

    def _take(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if outcome.status != IDENTICAL:
            print(outcome, flush=True)


def _show(text: Any) -> None:
    """Say in one line of a terminal what is being fitted."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
