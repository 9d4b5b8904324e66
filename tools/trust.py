"""What is promised to whoever trusts bisvm, checked: `python -m tools.trust --write`.

Every promise has a command that anyone can run. This program runs them one after the
other, and prints what each has printed; `--write` keeps that in
`experiments/results/trust`, as a table of all promises with the commit that each was
checked on. `--only WORD` runs those whose name or command has the word, and keeps what
is known of the others. It takes an hour in all. The exit code is 1 if a command fails.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments.common import Result, Table
from tools.version import commit

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "experiments" / "results" / "trust"
KEPT = "trust.json"
PYTEST = "python -m pytest -q"
# Lines of a tool's output that are kept, from the end.
MOST_LINES = 12
# Lines of tests that count something.
COUNTS = ("of 1000 refused", "passing examples")


class Promise(NamedTuple):
    """What is promised, and the command that checks it."""

    what: str
    command: str


PROMISES = (
    Promise(
        "Import and fits from a read-only installation, without a home",
        f"{PYTEST} tests/core/test_compiling.py",
    ),
    Promise("Time limits hold", "python -m tools.time_limits"),
    Promise("`max_memory` holds", "python -m tools.memory --limits 2e8"),
    *(
        Promise(
            f"{what} at random moments", f"python -m tools.interrupts --only {place}"
        )
        for place, what in {
            "python": "SIGINT and SIGTERM in Python",
            "line": "SIGINT and SIGTERM in the command line",
            "thread": "SIGINT and SIGTERM in a thread",
            "compiled": "SIGINT and SIGTERM in compiled code",
            "kills": "SIGKILL",
        }.items()
    ),
    Promise(
        "Interrupts of the command line save the best model",
        f"{PYTEST} tests/cli/test_interrupts.py tests/core/test_interrupts.py "
        "tests/search/test_interrupts.py tests/search/test_kill.py",
    ),
    Promise(
        "Threads of BLAS are restored; eight fits at once, loky, fork",
        f"{PYTEST} tests/core/test_threads.py tests/estimators/test_together.py",
    ),
    Promise(
        "Model files: bombs, types, shapes, modes, links",
        f"{PYTEST} tests/io/test_files.py tests/core/test_files.py",
    ),
    Promise(
        "A full disk",
        f"{PYTEST} tests/cli/test_full_disk.py tests/search/test_checkpoint.py "
        "tests/io/test_files.py -k 'full or disk or grow or without_its_checkpoint'",
    ),
    Promise(
        "A second fit on one checkpoint is refused; checkpoints are data only",
        f"{PYTEST} tests/search/test_checkpoint.py",
    ),
    Promise(
        "Short and blank lines, escape sequences, formulas in CSV",
        f"{PYTEST} tests/cli/test_hostile.py",
    ),
    Promise(
        "Clear errors for bad input, X * 1e154 and X * 1e-200 among it",
        f"{PYTEST} tests/estimators/test_bad_input.py "
        "tests/estimators/test_degenerate.py tests/data/test_splits.py",
    ),
    Promise(
        "Reports with hostile names, in a browser",
        f"{PYTEST} tests/reporting/test_browser.py tests/reporting/test_report.py",
    ),
    Promise("Invariances of every estimator", "python -m tools.invariances --write"),
    Promise(
        "10,000 inputs by hypothesis",
        f"{PYTEST} -m full tests/estimators/test_inputs.py "
        "--hypothesis-show-statistics",
    ),
    Promise(
        "1,000 broken files for every reader",
        f"{PYTEST} -rP -m full tests/cli/test_fuzz.py",
    ),
    Promise(
        "1,000 broken checkpoints",
        f"{PYTEST} -rP -m full tests/search/test_checkpoint.py",
    ),
    Promise("500 fits in one process", "python -m tools.soak --fits 500"),
    Promise("The lowest versions of all dependencies", "make test-oldest"),
)


def checked(promise: Promise) -> dict[str, Any]:
    """Run the command of a promise: what it printed, and how it ended."""
    began = time.perf_counter()
    words = shlex.split(promise.command)
    if words[0] == "python":
        words[0] = sys.executable
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout, done.stderr, file=sys.stderr)
    return {
        "command": promise.command,
        "printed": figures(done.stdout),
        "code": done.returncode,
        "seconds": time.perf_counter() - began,
        "load": os.getloadavg()[0],
        "commit": commit(),
    }


def figures(shown: str) -> str:
    """The lines with figures: of tests what passed, of tools the last ones."""
    shown = shown.replace(f"{ROOT}/", "")
    lines = [line.strip() for line in shown.splitlines() if line.strip()]
    if lines and (" passed" in lines[-1] or " failed" in lines[-1]):
        counts = [line for line in lines if any(word in line for word in COUNTS)]
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        return "; ".join([*counts, *failed, lines[-1].strip("= ")])
    kept = [line for line in lines if not line.startswith(("|", "- [", "**"))]
    return "; ".join(kept[-MOST_LINES:])


def result(known: Mapping[str, Mapping[str, Any]]) -> Result:
    """The table of all promises that have been checked."""
    rows = [
        [
            what,
            f"`{one['command']}`",
            one["printed"],
            verdict(one),
            one["load"],
            one["commit"],
        ]
        for what, one in known.items()
    ]
    columns = {"what": "", "command": "", "printed": "", "verdict": ""}
    columns |= {"load": ".0f", "commit": ""}
    notes = [
        f"Made by `python -m tools.trust --write`, on {os.cpu_count()} processors. The "
        "load is how many processes wanted them at the end of a command: seconds on "
        "the wall are longer by as much as it exceeds the processors.",
    ]
    return Result([Table("What was promised and checked", columns, rows)], notes=notes)


def verdict(one: Mapping[str, Any]) -> str:
    return "holds" if one["code"] == 0 else "fails"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.trust")
    parser.add_argument("--only", metavar="WORD", default="")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--output", type=Path, default=FOLDER)
    options = parser.parse_args(arguments)
    chosen = [one for one in PROMISES if any(options.only in text for text in one)]
    if not chosen:
        parser.error(f"no promise has the word {options.only!r}")
    file = options.output / KEPT
    failed = False
    for promise in chosen:
        found = checked(promise)
        failed |= found["code"] != 0
        print(f"{promise.what}: {verdict(found)}\n    {found['printed']}", flush=True)
        if options.write:
            keep(file, promise.what, found)
    return int(failed)


def keep(file: Path, what: str, found: dict[str, Any]) -> None:
    """Add what was found to the file and to its table, in the order of the promises."""
    known = json.loads(file.read_text()) if file.exists() else {}
    known[what] = found
    known = {one.what: known[one.what] for one in PROMISES if one.what in known}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(known, indent=1) + "\n")
    result(known).write(file.parent, "trust", "Trust")


if __name__ == "__main__":
    sys.exit(main())
