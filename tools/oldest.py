"""The lower bounds of pyproject.toml as exact versions, for `make test-oldest`.

    python -m tools.oldest > oldest.txt
    pip install -e '.[test,files]' -c oldest.txt

Tools that check the code (`TOOLS`) are left free: their bounds say nothing about what
the package runs with.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
# Groups that the tests need.
GROUPS = ("plots", "files", "dask", "onnx", "test")
# Tools that check the code, whatever their version.
TOOLS = (
    *("clarabel", "hypothesis", "ipykernel", "mypy", "pytest", "pytest-xdist"),
    *("rich", "ruff"),
)
BOUND = re.compile(r"([A-Za-z0-9_.-]+)(?:\[[^]]*\])?>=([0-9.]+)")


def lower_bounds(project: Path = PROJECT) -> dict[str, str]:
    """Version of every package that the library runs with, by its name."""
    with project.open("rb") as file:
        table = tomllib.load(file)["project"]
    groups = table["optional-dependencies"]
    wanted = [*table["dependencies"], *(one for name in GROUPS for one in groups[name])]
    found: dict[str, str] = {}
    for requirement in wanted:
        if requirement.startswith(TOOLS):
            continue
        match = BOUND.fullmatch(requirement)
        if match is None:
            raise ValueError(
                f"{requirement!r} has no lower bound; add one such as >=1."
            )
        name, version = match.groups()
        if found.setdefault(name, version) != version:
            raise ValueError(f"{name} has two lower bounds in pyproject.toml.")
    return found


def pins(bounds: dict[str, str]) -> list[str]:
    """Exact versions, as pip takes them: ==1.26 is 1.26.0."""
    return [f"{name}=={version}" for name, version in sorted(bounds.items())]


if __name__ == "__main__":
    print("\n".join(pins(lower_bounds())))
