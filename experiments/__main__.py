"""python -m experiments: run experiments, print their tables, write their results."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from experiments import Experiment, discover, named, published
from experiments.common import Context
from experiments.provenance import (
    Run,
    begin,
    read_runs,
    record,
    refactored,
    snapshot,
    stale,
)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        chosen = (
            discover()
            if not options.names and (options.all or options.list or options.stale)
            else [one for name in options.names for one in named(name)]
        )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.refactored:
        refused = refactored(options.output, options.refactored)
        print(refused or "Noted: results of that commit are not stale.")
        return int(bool(refused))
    if options.page:
        path = Path(__file__).parents[1] / "docs" / "published.md"
        path.write_text(published.page(), encoding="utf-8")
        print(path)
        return 0
    if options.list:
        width = max((len(one.name) for one in chosen), default=0)
        for one in chosen:
            print(f"{one.package}  {one.name:{width}}  {one.title}")
        print(f"\n{published.listing()}")
        return 0
    if options.stale:
        return _say_stale(options.output, {one.package for one in chosen})
    if options.within is not None:
        chosen = [one for one in chosen if _seconds(one, options) <= options.within]
    if not chosen:
        _parser().print_help()
        return 2
    context = Context(options.splits, options.output, options.only)
    keep = options.keep or bool(options.only)
    missing = [
        one.name for one in chosen if not _run(one, context, options.output, keep)
    ]
    if missing:
        names = ", ".join(missing)
        print(f"Not run, without their data or packages: {names}", file=sys.stderr)
    return 1 if missing else 0


def _run(
    experiment: Experiment, context: Context, output: Path, keep: bool = False
) -> bool:
    """Run one experiment and write what it gives; False if something is missing.

    keep : whether to keep the fits of the last run
    """
    print(f"{experiment.name}: {experiment.title}\n", flush=True)
    folder = output / experiment.package
    before, began = snapshot(), time.perf_counter()
    if not keep:
        begin(folder, experiment.name, experiment.fits, before)
    try:
        result = experiment.module.run(context)
    except (FileNotFoundError, ModuleNotFoundError) as error:
        print(f"{error}\n", file=sys.stderr)
        return False
    run = Run.now(time.perf_counter() - began, context.splits, before)
    if keep and experiment.fits:
        run = run.with_fits_of(read_runs(folder).get(experiment.name))
    print(result.to_text())
    made = f" in {run.seconds:.0f} s by `{_command(experiment, context)}`"
    for path in result.write(folder, experiment.name, experiment.title, made):
        print(f"  {path}")
    print(f"  {record(folder, experiment.name, run)}")
    print(f"  {run.seconds:.0f} s\n", flush=True)
    return True


def _command(experiment: Experiment, context: Context) -> str:
    """What makes this result again."""
    splits = "" if context.splits == Context.splits else f" --splits {context.splits}"
    return f"python -m experiments {experiment.package}.{experiment.name}{splits}"


def _seconds(experiment: Experiment, options: argparse.Namespace) -> float:
    """What the last recorded run took; infinite if none is recorded."""
    runs = read_runs(options.output / experiment.package)
    run = runs.get(experiment.name)
    return float("inf") if run is None else run.seconds


def _say_stale(output: Path, packages: set[str]) -> int:
    """List the results whose code has changed since; 1 if there are any."""
    reasons = stale(output, sorted(packages))
    for name, reason in reasons.items():
        print(f"{name}: {reason}")
    print(f"{len(reasons)} stale results in {', '.join(sorted(packages))}.")
    return 1 if reasons else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="such as table_5_1, or a package"
    )
    parser.add_argument("--list", action="store_true", help="name the experiments")
    parser.add_argument(
        "--page", action="store_true", help="write docs/published.md from the results"
    )
    parser.add_argument("--all", action="store_true", help="run all of them")
    parser.add_argument(
        "--within",
        type=float,
        metavar="SECONDS",
        help="run only those whose last recorded run took at most so long",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="use the fits of the last run: a new page of the same figures",
    )
    parser.add_argument(
        "--stale",
        action="store_true",
        help="list results that are older than the code they rest on",
    )
    parser.add_argument(
        "--refactored",
        metavar="REVISION",
        help="note that the library gives the same answers as at that commit, if so",
    )
    parser.add_argument(
        "--splits", type=_count, default=20, help="random splits (default: 20)"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="data sets with this text in their name (experiments that keep their "
        "fits; those of the last run are used again)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results",
        help="folder for tables and pictures (default: experiments/results)",
    )
    return parser


def _count(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, got {text}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
