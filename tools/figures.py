"""Figures of README and docs from result files: `python -m tools.figures --write`.

A page has its figures between `<!-- figures: NAME -->` and `<!-- end of figures -->`.
Without --write the exit code is 1 if a page has others than the result files.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLASSES = ROOT / "experiments" / "results" / "classes"
PAGES = ("README.md", "docs/how_much_better.md")
BLOCK = re.compile(
    r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", flags=re.DOTALL
)
# Methods of the published table that are shown, and what they are called.
METHODS = {
    "bisvm": "**bisvm**",
    "SVC, grid": "SVC, grid search",
    "SVC, default": "SVC, default",
    "random forest": "random forest",
    "boosting, scikit-learn": "boosting (scikit-learn)",
    "CatBoost": "CatBoost",
}


def table_of_179() -> str:
    """Error and seconds of some methods, on sets of two and of several classes."""
    two, several = _rows("two_classes"), _rows("several_classes")
    lines = [
        "| | two classes: error | seconds | several classes: error | seconds |",
        "| --- | --: | --: | --: | --: |",
    ]
    for name, shown in METHODS.items():
        cells = [
            f"{100.0 - float(one['accuracy']):.1f}% | "
            f"{float(one['seconds (median)']):.2g}"
            for one in (two[name], several[name])
        ]
        lines.append(f"| {shown} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _rows(name: str) -> dict[str, dict[str, str]]:
    path = CLASSES / f"table_of_179_{name}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return {row["method"]: row for row in csv.DictReader(file)}


FIGURES: dict[str, Callable[[], str]] = {"table_of_179": table_of_179}


def filled(text: str) -> str:
    """The text of a page with the figures of the result files."""
    return BLOCK.sub(lambda match: match[1] + FIGURES[match[2]]() + match[3], text)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.figures")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    old = 0
    for name in PAGES:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        if filled(text) == text:
            continue
        old += 1
        print(f"{name}: {'written' if options.write else 'other figures'}")
        if options.write:
            path.write_text(filled(text), encoding="utf-8")
    return int(bool(old) and not options.write)


if __name__ == "__main__":
    sys.exit(main())
