"""Published tables and figures, recomputed: one module each, one command each.

    python -m experiments --list
    python -m experiments table_5_1
    python -m experiments seed000

A package in this folder stands for one publication. An experiment is a module in it
that defines `TITLE` and `run(context) -> Result`; its docstring says what the
publication did, and what of that could not be known. `FITS` names the files in which
fits are kept while it runs. To add one, add the module, and
the values that it recomputes to `published.toml` in its package.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

__all__ = ["Experiment", "discover", "find", "named"]


@dataclass(frozen=True)
class Experiment:
    """One module with a `TITLE` and a `run`."""

    package: str
    name: str
    module: ModuleType

    @property
    def title(self) -> str:
        return str(self.module.TITLE)

    @property
    def fits(self) -> tuple[str, ...]:
        """Files of fits that a stopped run has left, and that the next one reads."""
        return tuple(getattr(self.module, "FITS", ()))


def discover(name: str | None = None) -> list[Experiment]:
    """All experiments, or those called `name`.

    "table_5_1" or "seed000.table_5_1", or "seed000" for all of a package.
    """
    found = []
    for package, module_name in _modules():
        if name not in (None, package, module_name, f"{package}.{module_name}"):
            continue
        module = import_module(f"{__name__}.{package}.{module_name}")
        if hasattr(module, "run") and hasattr(module, "TITLE"):
            found.append(Experiment(package, module_name, module))
    return found


def find(name: str) -> Experiment:
    """The one experiment of that name."""
    found = discover(name)
    if len(found) == 1:
        return found[0]
    if not found:
        raise ValueError(
            f"There is no experiment {name!r}; --list shows those there are."
        )
    choice = ", ".join(f"{one.package}.{one.name}" for one in found)
    raise ValueError(f"{name!r} may be any of {choice}: say which.")


def named(name: str) -> list[Experiment]:
    """All experiments of the package of that name, or the one experiment."""
    found = discover(name)
    whole = found and all(one.package == name for one in found)
    return found if whole else [find(name)]


def _modules() -> list[tuple[str, str]]:
    """(package, module) of every file in a package of this folder."""
    here = Path(__file__).parent
    packages = sorted(path.parent for path in here.glob("*/__init__.py"))
    return [
        (package.name, module.name)
        for package in packages
        for module in iter_modules([str(package)])
    ]
