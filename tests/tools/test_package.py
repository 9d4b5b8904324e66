"""What is checked of wheel and source archive, and what the project files say."""

import re
import tomllib
from pathlib import Path

from hatch_build import addresses, with_addresses
from tools.package import IN_WHEEL, LINK, problems

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_missing_and_strange_files_are_named():
    assert problems(IN_WHEEL, IN_WHEEL) == []
    found = problems([*IN_WHEEL[1:], "bisvm/a.npz"], IN_WHEEL)
    assert found == [f"{IN_WHEEL[0]} is missing", "bisvm/a.npz is no part of it"]
    assert all((ROOT / "src" / name).is_file() for name in IN_WHEEL)


def test_the_version_is_the_same_everywhere():
    version = PROJECT["project"]["version"]
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^version: {re.escape(version)}$", cited, flags=re.MULTILINE)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert version in re.search(r"^## (.*)$", changes, flags=re.MULTILINE)[1]


def test_hints_name_packages_and_not_extras():
    """An extra may not exist where people have installed from."""
    for path in (ROOT / "src").rglob("*.py"):
        assert "bisvm[" not in path.read_text(encoding="utf-8"), path


def test_the_readme_has_no_links_to_files_on_a_package_index():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert LINK.search(text)
    bare = with_addresses(text, "")
    assert not LINK.search(bare) and "![" not in bare and "five minutes" in bare
    whole = with_addresses(text, "https://a.org/bisvm")
    assert not LINK.search(whole) and "URL" not in whole
    assert "(https://a.org/bisvm/blob/main/docs/start.md)" in whole
    assert "(https://a.org/bisvm/raw/main/docs/images/report.png)" in whole
    assert addresses("") == {}
    assert addresses("https://a.org/b")["Issues"] == "https://a.org/b/issues"
