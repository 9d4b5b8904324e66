"""The sources: what docs/sources.md names exists, and all five are named everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
AUTHORS = ("Klatzer", "Jiang", "Sugg", "Stegie", "Sangnier")
PLACE = re.compile(r"`([\w/]+\.py)`(?:: ((?:`\w+`(?:, )?)+))?")


def places():
    """(file, name) of every object that the page names."""
    for file, names in PLACE.findall(PAGE):
        yield from ((file, name) for name in re.findall(r"`(\w+)`", names) or [""])


@pytest.mark.parametrize("file, name", sorted(set(places())))
def test_every_place_exists(file, name):
    root = ROOT if file.startswith("experiments/") else ROOT / "src" / "bisvm"
    code = (root / file).read_text(encoding="utf-8")
    assert not name or re.search(rf"^(class|def) {name}\b", code, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "page", ["README.md", "docs/sources.md", "docs/notation.md", "CITATION.cff"]
)
def test_all_five_are_named(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [author for author in AUTHORS if author not in text] == []


@pytest.mark.parametrize("number, author", list(enumerate(AUTHORS)))
def test_the_experiments_name_their_source(number, author):
    package = ROOT / "experiments" / f"seed00{number}" / "__init__.py"
    assert author in package.read_text(encoding="utf-8")
