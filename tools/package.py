"""Build wheel and source archive, and check what is in them: `python -m tools.package`.

Needs `build` (`pip install build`), which fetches hatchling. Prints the sizes; the exit
code is 1 if a file is missing that users need, or one is there that they do not.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What people miss if it is not there.
IN_WHEEL = (
    *("bisvm/py.typed", "bisvm/cli/main.py", "bisvm/reporting/page.html"),
    *("bisvm/reporting/page.css", "bisvm/reporting/page.js"),
)
IN_SOURCE = (
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "hatch_build.py",
    "pyproject.toml",
    "src/bisvm/py.typed",
)
# A link to a file of the repository, which a package index does not have.
LINK = re.compile(r"\]\(((?!\w+:|#)[^)]+)\)")
# Nothing of this belongs into an archive.
STRANGE = (".pyc", ".npz", ".skops", ".checkpoint", ".log", ".db")
MOST_BYTES = 5_000_000


def problems(names: Iterable[str], needed: Iterable[str]) -> list[str]:
    """What is wrong with the names of an archive's files."""
    names = set(names)
    missing = [f"{name} is missing" for name in needed if name not in names]
    return missing + [
        f"{name} is no part of it" for name in sorted(names) if name.endswith(STRANGE)
    ]


def check_wheel(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        (record,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        said = Parser().parsestr(archive.read(record).decode("utf-8"))
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    found = problems(names, IN_WHEEL)
    if said["Version"] != project["version"]:
        found.append(f"the version is {said['Version']}")
    if said["Description-Content-Type"] != "text/markdown" or not said.get_payload():
        found.append("the README is not the description")
    links = LINK.findall(str(said.get_payload()))
    found += [f"a link of the README leads nowhere: {one}" for one in links]
    return found


def check_source(path: Path) -> list[str]:
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    return problems(names, IN_SOURCE)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "build", "--outdir", folder, str(ROOT)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        (wheel,) = Path(folder).glob("*.whl")
        (source,) = Path(folder).glob("*.tar.gz")
        found = []
        for path, check in ((wheel, check_wheel), (source, check_source)):
            size = path.stat().st_size
            print(f"{path.name}: {size:,} bytes")
            found += [f"{path.name}: {one}" for one in check(path)]
            found += [f"{path.name} is large"] * (size > MOST_BYTES)
    print("\n".join(found) or "nothing is missing")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
