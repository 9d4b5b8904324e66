"""Published against ours: every table and figure of the five sources, in one page.

A `Row` names a table or figure, the published value, and the cell of a result file
that holds ours. Its verdict is computed: "agrees" within two standard deviations
of the difference, otherwise by how much ours is higher or lower. Ours may also be the
difference or the ratio of two cells. A claim "holds", "does not hold", or is "not
shown" where two standard deviations leave it open. Rows without values say what was
drawn, or why there is nothing.

    python -m experiments --page       writes docs/published.md
    python -m experiments --list       prints the same rows

The rows of a source are in `published.toml` in its folder. An entry of `rows` has the
fields of a `Row`. With `each` it stands for many: one row for every combination of the
listed values, which replace `{name}` in its texts or are fields themselves.

    [[rows]]
    item = "Table 2"
    what = "{data}, lambda at the minimum"
    cell = { column = "lambda", where = { data = "{data}" } }
    each.data = [
        { data = "cancer", published = 1.0974 },
        { data = "ionosphere", published = 3.5104 },
    ]

`texts` names texts that several rows share, and `about` is a line above the table. The
file of a cell is that of the experiment, if none is named.
"""

from __future__ import annotations

import csv
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from experiments.common import Context
from experiments.provenance import read_runs

__all__ = ["SOURCES", "Cell", "Row", "Source", "listing", "page", "read"]

RESULTS = Path(__file__).parent / "results"
# Two standard deviations: a true value is outside in one case of twenty.
SIGMAS = 2.0
DEVIATION = " (deviation)"
# Fields of a row that are cells.
CELLS = ("cell", "above", "minus", "by")


@dataclass(frozen=True)
class Cell:
    """One value of a result file.

    file : name of the CSV file, without its folder
    column : of the value
    where : entries of other columns that choose the row
    """

    file: str
    column: str
    where: Mapping[str, str]


@dataclass(frozen=True)
class Row:
    """A published table, figure, or one of its entries.

    item : such as "Table 5.1"
    what : which entry, and its unit
    published : a number, a text where the source gives none, or None
    spread : the standard deviation that is published with it
    experiment : module in the source's package, "" if there is none
    cell : where ours is
    above : for a claim that one value is above another, where the other is
    minus : ours is the cell's value minus that of this one
    by : ours is the cell's value by that of this one
    least : for a claim that ours is more than this
    text : in place of a cell, what ours shows
    protocol : how ours differs from the source's
    verdict : in place of the computed one
    digits : decimals shown
    """

    item: str
    what: str
    published: float | str | None = None
    spread: float = 0.0
    experiment: str = ""
    cell: Cell | None = None
    above: Cell | None = None
    minus: Cell | None = None
    by: Cell | None = None
    least: float | None = None
    text: str = ""
    protocol: str = "as published"
    verdict: str = ""
    digits: int = 2

    def shown(self) -> str:
        """The published entry."""
        if isinstance(self.published, float):
            return self._number(self.published, self.spread)
        return self.published or "-"

    def ours(self, package: str) -> str:
        if self.cell is None or self._missing(package):
            return self.text or "-"
        values = [self._value(package, self.cell)]
        if self.above is not None:
            values.append(read(package, self.above))
        return " against ".join(self._number(*value) for value in values)

    def judged(self, package: str) -> str:
        """The verdict; "not run" if there is no result file."""
        if self._missing(package):
            return "not run"
        if self.verdict:
            return self.verdict
        if self.cell is not None and self.above is not None:
            holds = read(package, self.cell)[0] > read(package, self.above)[0]
            return "holds" if holds else "does not hold"
        if self.cell is None:
            raise ValueError(f"{self.item}, {self.what}: no figures and no verdict.")
        mean, deviation = self._value(package, self.cell)
        if self.least is not None:
            return _claim(mean - self.least, SIGMAS * deviation)
        if not isinstance(self.published, float):
            raise ValueError(f"{self.item}, {self.what}: no figure and no verdict.")
        # Published figures may be rounded, or cut off.
        rounding = 10.0**-self.digits
        allowed = SIGMAS * math.hypot(deviation, self.spread) + rounding
        difference = mean - self.published
        if abs(difference) <= allowed:
            return "agrees"
        word = "higher" if difference > 0 else "lower"
        return f"{word} by {abs(difference):.{self.digits}f}"

    def _value(self, package: str, cell: Cell) -> tuple[float, float]:
        """Mean and deviation of the cell, or of its difference or ratio to another."""
        mean, deviation = read(package, cell)
        if self.minus is not None:
            other, spread = read(package, self.minus)
            return mean - other, math.hypot(deviation, spread)
        if self.by is not None:
            other, spread = read(package, self.by)
            return mean / other, math.hypot(deviation, mean / other * spread) / other
        return mean, deviation

    def _number(self, mean: float, deviation: float) -> str:
        """With its deviation, if there is one; a difference has its sign."""
        sign = "" if self.minus is None else "+"
        text = f"{mean:{sign}.{self.digits}f}"
        return f"{text} ± {deviation:.{self.digits}f}" if deviation else text

    def _missing(self, package: str) -> bool:
        """Whether the experiment has not been run, or without a table of this row."""
        if not self.experiment:
            return False
        cells = [getattr(self, name) for name in CELLS]
        files = [f"{self.experiment}.md"]
        files += [f"{cell.file}.csv" for cell in cells if cell is not None]
        return not all((RESULTS / package / file).is_file() for file in files)


@dataclass(frozen=True)
class Source:
    """One of the five works.

    about : what holds for all of its rows, such as units
    """

    package: str
    name: str
    rows: Sequence[Row] = field(default_factory=tuple)
    about: str = ""


def _claim(excess: float, allowed: float) -> str:
    """Whether an excess is above zero, beyond what chance may have added or taken."""
    if excess > allowed:
        return "holds"
    return "does not hold" if excess <= -allowed else "not shown"


def read(package: str, cell: Cell) -> tuple[float, float]:
    """Return mean and deviation (0 if there is none) of a cell of a result file."""
    found = [
        row
        for row in _table(package, cell.file)
        if all(row[column] == value for column, value in cell.where.items())
    ]
    if len(found) != 1:
        raise ValueError(f"{package}/{cell.file}.csv: {len(found)} rows for {cell}.")
    (row,) = found
    return float(row[cell.column]), float(row.get(cell.column + DEVIATION) or 0.0)


@cache
def _table(package: str, file: str) -> list[dict[str, str]]:
    """Rows by column; an empty first entry repeats the one above."""
    path = RESULTS / package / f"{file}.csv"
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    first, above = next(iter(rows[0])), ""
    for row in rows:
        row[first] = above = row[first] or above
    return rows


# --- what is printed ------------------------------------------------------------------

HEADER = """\
# Published against ours

Every table and figure of the five [sources](sources.md), next to what bisvm computes.
This page is written by `python -m experiments --page` from the files in
`experiments/results`.

"Agrees" means within two standard deviations of the difference. These come from our
random splits or starts, and from the published spread. A claim about a difference is
"not shown" if two standard deviations leave it open; a claim without deviations is
judged by its two numbers alone. Otherwise a difference is "higher by" or "lower by" so
much; one of a single unit in the last digit shown counts as agreement. "Drawn": the
picture is among the results. "Computed": the source has no number. "Not comparable":
other data or another machine. "Not recomputed": we did not run it. "Not run": there is
no result yet. `python -m experiments NAME`, or `bisvm reproduce NAME`, computes a row
again. Its whole result, with pictures, is in `experiments/results/`.
"""
COLUMNS = ("", "what", "published", "ours", "verdict", "protocol", "command")


def page() -> str:
    """The text of docs/published.md."""
    blocks = [HEADER.rstrip(), _summary()]
    for source in SOURCES:
        table = _markdown([COLUMNS, *_cells(source)])
        blocks += filter(None, [f"## {source.name}", source.about, table])
    return "\n\n".join(blocks) + "\n"


def listing() -> str:
    """The same rows as aligned text."""
    blocks = []
    for source in SOURCES:
        cells = [COLUMNS, *_cells(source)]
        kept = [(row[0], row[1], row[2], row[3], row[4], row[6]) for row in cells]
        head = filter(None, [source.name, source.about])
        blocks.append("\n".join([*head, "", *_aligned(kept), ""]))
    return "\n".join(blocks)


def _cells(source: Source) -> Iterator[tuple[str, ...]]:
    for row in source.rows:
        yield (
            row.item,
            row.what,
            row.shown(),
            row.ours(source.package),
            row.judged(source.package),
            row.protocol,
            _command(source.package, row.experiment),
        )


def _command(package: str, experiment: str) -> str:
    """What makes the result again; "-" if there is no experiment."""
    if not experiment:
        return "-"
    run = read_runs(RESULTS / package).get(experiment)
    if run is None or run.splits == Context.splits:
        return f"{package}.{experiment}"
    return f"{package}.{experiment} --splits {run.splits}"


def _summary() -> str:
    """How many rows have which verdict."""
    words: dict[str, int] = {}
    for source in SOURCES:
        for row in source.rows:
            word = row.judged(source.package).split(":")[0].split(" by ")[0]
            words[word] = words.get(word, 0) + 1
    listed = ", ".join(f"{word} {count}" for word, count in sorted(words.items()))
    return f"Verdicts: {listed}."


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines.insert(1, ["---"] * len(COLUMNS))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


# --- the five sources -----------------------------------------------------------------


def read_source(path: Path) -> Source:
    """Return the source that a file `published.toml` describes."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    texts = found.get("texts", {})
    rows = [row for entry in found["rows"] for row in _rows(entry, texts)]
    about = found.get("about", "")
    return Source(path.parent.name, found["name"], tuple(rows), about)


def _rows(entry: Mapping[str, Any], texts: Mapping[str, str]) -> Iterator[Row]:
    """One row, or with `each` one for every combination of its values."""
    shared = {name: value for name, value in entry.items() if name != "each"}
    axes = [_axis(name, values) for name, values in entry.get("each", {}).items()]
    for combination in product(*axes):
        words = dict(texts)
        for chosen in combination:
            words |= {name: _filled(value, words) for name, value in chosen.items()}
        own = {name: value for name, value in words.items() if name in _FIELDS}
        yield _row(_filled(shared, words) | own)


def _axis(name: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    """Values by name: a plain text is the value of the axis itself."""
    return [{name: value} if isinstance(value, str) else value for value in values]


def _row(entry: Mapping[str, Any]) -> Row:
    cells = {
        name: Cell(**{"file": entry["experiment"], **entry[name]})
        for name in CELLS
        if name in entry
    }
    return Row(**{**entry, **cells})


def _filled(value: Any, words: Mapping[str, Any]) -> Any:
    """The value, with the words in place of their {names} in all of its texts."""
    if isinstance(value, str):
        return value.format_map(words)
    if isinstance(value, dict):
        return {name: _filled(inner, words) for name, inner in value.items()}
    return value


_FIELDS = {one.name for one in fields(Row)}
_FILES = sorted(Path(__file__).parent.glob("*/published.toml"))
SOURCES = tuple(map(read_source, _FILES))
