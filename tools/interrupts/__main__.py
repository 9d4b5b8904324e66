"""A line for every place and signal; exits with 1 if anything was not as it should."""

from __future__ import annotations

import argparse
import signal
import sys
import warnings

from tools.interrupts.trials import all_tallies


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.interrupts")
    parser.add_argument("--times", type=int, default=20, help="signals at each place")
    parser.add_argument("--only", default="", metavar="PLACE", help="such as compiled")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    # A shell lets background processes ignore SIGINT, and their children with them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failed = False
    for tally in all_tallies(options.times, options.only):
        print(tally, flush=True)
        for one in tally.wrong:
            print(f"    {one}")
        failed |= tally.right < options.times
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
