"""python -m experiments: run experiments, print their tables, write their results."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from experiments import Experiment, discover, named
from experiments.common import Context


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        chosen = (
            discover()
            if options.all or options.list
            else [one for name in options.names for one in named(name)]
        )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.list:
        width = max((len(one.name) for one in chosen), default=0)
        for one in chosen:
            print(f"{one.package}  {one.name:{width}}  {one.title}")
        return 0
    if not chosen:
        _parser().print_help()
        return 2
    context = Context(options.splits, options.output, options.only)
    missing = [one.name for one in chosen if not _run(one, context, options.output)]
    if missing:
        print(f"Without data, not run: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


def _run(experiment: Experiment, context: Context, output: Path) -> bool:
    """Run one experiment and write what it gives; False if its data are not at hand."""
    print(f"{experiment.name}: {experiment.title}\n", flush=True)
    began = time.perf_counter()
    try:
        result = experiment.module.run(context)
    except FileNotFoundError as error:
        print(f"{error}\n", file=sys.stderr)
        return False
    print(result.to_text())
    folder = output / experiment.package
    for path in result.write(folder, experiment.name, experiment.title):
        print(f"  {path}")
    print(f"  {time.perf_counter() - began:.0f} s\n", flush=True)
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="such as table_5_1, or a package"
    )
    parser.add_argument("--list", action="store_true", help="name the experiments")
    parser.add_argument("--all", action="store_true", help="run all of them")
    parser.add_argument(
        "--splits", type=_count, default=20, help="random splits (default: 20)"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="data sets with this text in their name (experiments of `answers`)",
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
