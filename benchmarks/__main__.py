"""python -m benchmarks [PART ...]: measure, print tables, write results.

python -m benchmarks                       all parts, shortened: a few minutes
python -m benchmarks --full                all parts: hours; goes on where it was
python -m benchmarks price --full --only 'ida_*,moons-*'
python -m benchmarks race --full --methods 'BilevelSVC*;grid 11 x 11' --splits 5
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from benchmarks import (
    blocks,
    gradient,
    limits,
    moons,
    price,
    price_report,
    race_report,
    scaling,
)
from benchmarks import startup as start_up
from benchmarks.options import Options, add_to


def large(options: Options) -> None:
    """Prices where the grid itself is out of reach too, in one table with the others;
    nothing in the short run."""
    if options.full:
        price_report.report(options, (*price.FULL, *price.LARGE))


# What is quick and what matters first comes first.
PARTS: dict[str, Callable[[Options], None]] = {
    "startup": start_up.report,
    "gradient": gradient.report,
    "price": price_report.report,
    "threads": limits.threads,
    "limits": limits.limits,
    "moons": moons.report,
    "scaling": lambda options: scaling.report(options, exact=False),
    "blocks": blocks.report,
    "race": race_report.report,
    "linear": lambda options: race_report.report(options, linear=True),
    "price-large": large,
    "exact": scaling.report,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all"
    )
    given = add_to(parser).parse_args(arguments)
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}: choose from {', '.join(PARTS)}")
    options = Options.of(given)
    for name in given.parts or PARTS:
        began = time.perf_counter()
        PARTS[name](options)
        print(f"{name}: {time.perf_counter() - began:.0f} s\n", flush=True)


if __name__ == "__main__":
    main()
