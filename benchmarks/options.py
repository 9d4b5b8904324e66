"""What every part of the benchmarks is told."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.records import Records
from benchmarks.sets import Sample, chosen, sample

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Options:
    """How much to measure, and where to write it.

    full : every set, size and method, instead of a few minutes' worth
    only, methods : patterns of the names of sets and methods; none for all
    splits : of the sets with published splits
    limit : seconds that a search may be expected to take, and twice which it may take
    fresh : forget what was measured before
    keep : reuse rows that another version of the code measured
    """

    full: bool = False
    only: Sequence[str] = ()
    methods: Sequence[str] = ()
    splits: int = 1
    limit: float = 600.0
    repetitions: int = 3
    fresh: bool = False
    keep: bool = False
    output: Path = RESULTS / "short"
    _open: dict[str, Records] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, arguments: Sequence[str] | None, description: str) -> Options:
        parser = argparse.ArgumentParser(description=description)
        return cls.of(add_to(parser).parse_args(arguments))

    @classmethod
    def of(cls, given: argparse.Namespace) -> Options:
        """What is not given depends on whether the run is full."""
        return cls(
            full=given.full,
            only=tuple(given.only.split(",")) if given.only else (),
            methods=tuple(given.methods.split(";")) if given.methods else (),
            splits=given.splits or (5 if given.full else 1),
            limit=given.limit or (600.0 if given.full else 60.0),
            repetitions=given.repetitions or (5 if given.full else 3),
            fresh=given.fresh,
            keep=given.keep,
            output=given.output or (RESULTS if given.full else RESULTS / "short"),
        )

    def records(
        self,
        name: str,
        key: Sequence[str],
        columns: Sequence[str],
        *,
        timed: bool = True,
    ) -> Records:
        """One for all parts; what is no time is not measured anew."""
        if name not in self._open:
            path = self.output / "records" / f"{name}.csv"
            fresh = self.fresh and timed
            self._open[name] = Records(path, key, columns, fresh=fresh, keep=self.keep)
        return self._open[name]

    def samples(self, names: Sequence[str], split: int = 0) -> Iterator[Sample]:
        """The samples that are asked for, without those whose archive is missing."""
        for name in chosen(names, self.only):
            try:
                found = sample(name, split)
            except FileNotFoundError as error:
                say(f"{name}: left out. {error}")
                continue
            yield found

    def write(self, result: Any, name: str, heading: str) -> None:
        print(result.to_text())
        for path in result.write(self.output, name, heading):
            print(f"  {path}")
        print(flush=True)


def add_to(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--full", action="store_true", help="every set, size, method")
    parser.add_argument(
        "--only", default="", metavar="SETS", help="such as 'ida_*,moons-300'"
    )
    parser.add_argument(
        "--methods", default="", help="such as 'BilevelSVC*;grid*' (apart by ;)"
    )
    parser.add_argument("--splits", type=int, help="published splits (5; short: 1)")
    parser.add_argument(
        "--limit", type=float, help="seconds a search may need (600; short: 60)"
    )
    parser.add_argument("--repetitions", type=int, help="of short timings (5; 3)")
    parser.add_argument("--fresh", action="store_true", help="measure all anew")
    parser.add_argument(
        "--keep", action="store_true", help="reuse rows of other versions of the code"
    )
    parser.add_argument("--output", type=Path, help="folder of results")
    return parser


def say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
