"""A picture of the package's folders and their imports: `python -m tools.rooms`.

Writes `docs/images/rooms.svg` from the imports of `src/bisvm`. With `--check` it writes
nothing, and exits with 1 if the file is not current.

The table in `tests/test_architecture.py` gives the rows: a folder stands above all
that it may import. `COLUMNS` below gives the place in a row. An arrow points to what is
imported; it is left out where other arrows lead to the same folder. Imports that the
table forbids are drawn with dashes.
"""

from __future__ import annotations

import argparse
import ast
import runpy
import sys
from collections.abc import Mapping
from functools import cache
from graphlib import TopologicalSorter
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "rooms.svg"
TABLE = ROOT / "tests" / "test_architecture.py"

Graph = Mapping[str, set[str]]

# From left to right; the folders that every fit walks through are in column 1.
COLUMNS = {
    **dict.fromkeys(
        "core data transforms kernels hinge machines solvers bilevel search estimators "
        "selection io cli".split(),
        1,
    ),
    **dict.fromkeys("published criteria images datasets".split(), 0),
    **dict.fromkeys("losses reporting plots".split(), 2),
    **dict.fromkeys("optimizers testing".split(), 3),
    "tables": 4,
}
# Pixels: size of a box, distances between boxes, margin.
WIDTH, HEIGHT = 106, 32
ACROSS, DOWN = 144, 62
MARGIN = 24

# Boxes bring their own background. All else is on that of the page, light or dark.
STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #14213d; text-anchor: middle }
  text.note { font-size: 12px; fill: #76869a; text-anchor: start }
  rect { fill: #dbe7f5; stroke: #5b7db1; stroke-width: 1.2 }
  rect.spine { fill: #ffe3b3; stroke: #c98a1b }
  path { fill: none; stroke: #76869a; stroke-width: 1.5; marker-end: url(#tip) }
  path.forbidden { stroke: #d9534f; stroke-dasharray: 5 4; marker-end: url(#red) }
"""
SPINE = {"estimators", "search", "bilevel", "solvers", "machines", "kernels"}


class Place(NamedTuple):
    """Column from the left, row from the bottom, and the number of rows."""

    column: int
    row: int
    n_rows: int

    @property
    def x(self) -> int:
        return MARGIN + 40 + self.column * ACROSS

    @property
    def y(self) -> int:
        return MARGIN + (self.n_rows - 1 - self.row) * DOWN


@cache
def table() -> dict[str, Any]:
    """The names of `tests/test_architecture.py`."""
    return runpy.run_path(str(TABLE))


def folders() -> dict[str, set[str]]:
    """What each folder may import of the others."""
    allowed = {k: set(v.split()) - {"bisvm"} for k, v in table()["ALLOWED"].items()}
    return {k: v for k, v in allowed.items() if k != "__main__"}


def imported() -> dict[str, set[str]]:
    """What each folder imports of the others, anywhere in its modules."""
    known = table()
    found: dict[str, set[str]] = {name: set() for name in folders()}
    for module in known["MODULES"]:
        own = known["folder"](module)
        if own in found:
            others = {known["folder"](target) for _, target in known["imports"](module)}
            found[own] |= others & set(found) - {own}
    return found


def rows_of(graph: Graph) -> dict[str, int]:
    """The row of every folder: above what it imports, and next to who imports it."""
    order = list(TopologicalSorter(graph).static_order())
    rows: dict[str, int] = {}
    for name in order:
        rows[name] = 1 + max((rows[other] for other in graph[name]), default=-1)
    for name in reversed(order):
        above = [rows[other] for other in graph if name in graph[other]]
        rows[name] = min(above, default=rows[name] + 1) - 1
    return rows


def reduced(graph: Graph) -> list[tuple[str, str]]:
    """The arrows that no other arrows imply."""
    reached: dict[str, set[str]] = {}
    for name in TopologicalSorter(graph).static_order():
        reached[name] = graph[name].union(*(reached[other] for other in graph[name]))
    return [
        (name, other)
        for name in graph
        for other in sorted(graph[name])
        if not any(other in reached[between] for between in graph[name])
    ]


def places_of(graph: Graph) -> dict[str, Place]:
    rows = rows_of(graph)
    missing = sorted(set(graph) - set(COLUMNS))
    if missing:
        raise SystemExit(f"Add to COLUMNS in tools/rooms.py: {missing}.")
    n_rows = 1 + max(rows.values())
    places = {name: Place(COLUMNS[name], rows[name], n_rows) for name in graph}
    if len(set(places.values())) < len(places):
        raise SystemExit("Two folders have one place: edit COLUMNS in tools/rooms.py.")
    return places


def down(start: Place, end: Place, others: set[Place]) -> str:
    """Straight down to the row above the end, and then across to it."""
    passed = {start._replace(row=row) for row in range(end.row + 1, start.row)}
    if passed & others:
        raise SystemExit(
            f"An arrow from column {start.column}, row {start.row} would cross another "
            "folder: edit COLUMNS in tools/rooms.py."
        )
    x, end_x = start.x + WIDTH // 2, end.x + WIDTH // 2
    # Arrows that come from the side end beside the middle.
    end_x += 24 * ((x > end_x) - (x < end_x))
    turn = end.y - (DOWN - HEIGHT)
    return f"M{x} {start.y + HEIGHT} V{turn} L{end_x} {end.y - 2}"


def around(start: Place, end: Place) -> str:
    """From side to side, for an arrow that should not be."""
    right = end.column > start.column
    if start.row == end.row:
        x, end_x = start.x + WIDTH * right, end.x + WIDTH * (not right)
        return f"M{x} {start.y + HEIGHT // 2} H{end_x + (-2 if right else 2)}"
    x, end_x = start.x + WIDTH * right, end.x + WIDTH * right
    out = max(x, end_x) + 34 if right else min(x, end_x) - 34
    y, end_y = start.y + HEIGHT // 2 + 6, end.y + HEIGHT // 2 + 6
    return f"M{x} {y} C{out} {y} {out} {end_y} {end_x + (2 if right else -2)} {end_y}"


def summary(name: str) -> str:
    """The first sentence of what a folder says of itself."""
    path = table()["PACKAGE"] / name / "__init__.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def box(name: str, place: Place) -> str:
    kind = ' class="spine"' if name in SPINE else ""
    return (
        f"<g><title>{escape(summary(name))}</title>"
        f'<rect{kind} x="{place.x}" y="{place.y}" width="{WIDTH}" height="{HEIGHT}" '
        f'rx="6"/><text x="{place.x + WIDTH // 2}" y="{place.y + 21}">{name}</text></g>'
    )


def marker(name: str, color: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" '
        f'style="fill:{color};stroke:none;marker-end:none"/></marker>'
    )


def picture() -> str:
    """The picture as the text of an SVG file."""
    may, does = folders(), imported()
    places = places_of(may)
    drawn = reduced({name: does[name] & may[name] for name in may})
    forbidden = [(name, other) for name in may for other in does[name] - may[name]]
    others = set(places.values())
    arrows = [f'<path d="{down(places[a], places[b], others)}"/>' for a, b in drawn]
    arrows += [
        f'<path class="forbidden" d="{around(places[a], places[b])}"/>'
        for a, b in sorted(forbidden)
    ]
    notes = [
        "An arrow points to what is imported; arrows that others imply are left out.",
        "Orange: the way of a fit, from the estimator down to the linear algebra.",
    ]
    if forbidden:
        notes.append("Dashed: imports that are still to be cut.")
    width = max(place.x for place in others) + WIDTH + MARGIN + 16
    low = max(place.y for place in others) + HEIGHT + 26
    height = low + 18 * (len(notes) - 1) + 14
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        "<title>The folders of bisvm and what they import</title>",
        f"<style>{STYLE}</style>",
        f"<defs>{marker('tip', '#76869a')}{marker('red', '#d9534f')}</defs>",
        *arrows,
        *(box(name, place) for name, place in places.items()),
        *(
            f'<text class="note" x="{MARGIN}" y="{low + 18 * k}">{note}</text>'
            for k, note in enumerate(notes)
        ),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    text = picture()
    if not options.check:
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        PICTURE.write_text(text, encoding="utf-8")
        return 0
    if PICTURE.is_file() and PICTURE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PICTURE} is not current: run `python -m tools.rooms`.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
