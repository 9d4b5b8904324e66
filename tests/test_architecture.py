"""The folders of the package, and which of them each may import."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "bisvm"

# What stands at the top of the package, beside the folders.
AT_THE_TOP = {"__init__.py", "__main__.py", "py.typed"}

# What each folder may import, beside itself. From low to high: arrows point one way.
# "bisvm" stands for names taken from the package itself (`from bisvm import X`).
ALLOWED = {
    "core": "",
    "data": "core",
    "losses": "core",
    "transforms": "core data",
    "kernels": "core data transforms",
    "hinge": "core data kernels",
    "machines": "core data losses transforms kernels hinge",
    "solvers": "core data losses hinge machines",
    "criteria": "core data losses",
    "bilevel": "core data losses kernels machines solvers criteria",
    "optimizers": "core",
    "search": "core data losses kernels machines solvers criteria bilevel optimizers",
    "estimators": "core data losses transforms kernels machines solvers criteria "
    "bilevel optimizers search",
    "published": "core data losses transforms kernels hinge machines solvers criteria "
    "bilevel optimizers search estimators",
    "datasets": "",
    "images": "",
    "tables": "",
    "selection": "estimators",
    "io": "bisvm core data losses transforms kernels hinge machines estimators "
    "selection",
    "plots": "core kernels bilevel search estimators",
    "reporting": "core data criteria estimators tables plots",
    "cli": "bisvm core data estimators tables io plots reporting",
    "testing": "core losses transforms kernels machines solvers criteria bilevel "
    "optimizers",
    "__main__": "cli",
}


def dotted_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


# Every module but the package's own `__init__`, which may import anything.
MODULES = {dotted_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
MODULES.pop("bisvm")


def imports(name: str) -> Iterator[tuple[int, str]]:
    """Line and module of every import of ours, at whatever depth in the code."""
    path = MODULES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package)
            whole = [f"{source}.{alias.name}" for alias in node.names]
            targets = [one if one in MODULES else source for one in whole]
        else:
            continue
        for target in targets:
            if target.split(".")[0] == "bisvm":
                yield node.lineno, target


def loaded(name: str) -> set[str]:
    """What is loaded before a module: what it imports, and the folders around that."""
    around = set(parents(name)) | {name}
    found: set[str] = set()
    for _, target in imports(name):
        found |= {target, *parents(target)} - around
    return found - {"bisvm"}


def parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def folder(name: str) -> str:
    """The folder of a module, or "bisvm" for the package itself."""
    return [*name.split("."), "bisvm"][1]


def test_nothing_is_loose_at_the_top():
    found = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert found <= AT_THE_TOP, f"put into a folder: {sorted(found - AT_THE_TOP)}"
    folders = {path.name for path in PACKAGE.iterdir() if any(path.glob("*.py"))}
    unknown = sorted(folders - set(ALLOWED))
    assert not unknown, f"add to ALLOWED in {Path(__file__).name}: {unknown}"


@pytest.mark.parametrize("name", MODULES)
def test_a_folder_imports_only_what_it_may(name):
    own = folder(name)
    allowed = {own, *ALLOWED[own].split()}
    for line, target in imports(name):
        other = folder(target)
        where = f"{MODULES[name].relative_to(PACKAGE)}, line {line}"
        assert other in allowed, f"{where}: {own} may not import {target}."


def test_arrows_point_one_way():
    graph = {name: set(others.split()) - {"bisvm"} for name, others in ALLOWED.items()}
    order = list(TopologicalSorter(graph).static_order())
    assert order.index("estimators") > order.index("search") > order.index("bilevel")


def test_no_module_depends_on_itself():
    try:
        TopologicalSorter({name: loaded(name) for name in MODULES}).prepare()
    except CycleError as error:
        pytest.fail("modules import each other: " + " <- ".join(error.args[1]))


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("__init__.py")), ids=lambda path: path.parent.name
)
def test_every_folder_says_what_lives_there(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    for inside in path.parent.iterdir():
        if inside.is_dir() and any(inside.glob("*.py")):
            assert (inside / "__init__.py").is_file(), inside
