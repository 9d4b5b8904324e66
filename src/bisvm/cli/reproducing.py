"""bisvm reproduce: the experiments of the source repository."""

from __future__ import annotations

import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path

import bisvm


def run(options: Namespace) -> int:
    root = repository()
    if root is None:
        raise FileNotFoundError(
            "The experiments are not installed with the package. They are in the "
            "folder `experiments` of the source repository: run `bisvm reproduce` in a "
            "clone of it."
        )
    # Experiments import each other from the root of the repository.
    sys.path.insert(0, str(root))
    words = [*options.names, *(["--list"] if options.list else [])]
    for name in ("splits", "output"):
        given = getattr(options, name)
        words += [] if given is None else [f"--{name}", str(given)]
    return int(import_module("experiments.__main__").main(words))


def repository() -> Path | None:
    """The clone that this package runs from, or the current folder if it is one."""
    for root in (Path(bisvm.__file__).parents[2], Path.cwd()):
        project = root / "pyproject.toml"
        if (root / "experiments" / "__main__.py").is_file() and project.is_file():
            if 'name = "bisvm"' in project.read_text(encoding="utf-8"):
                return root
    return None
