"""Imports point one way: from what is composed to what it is composed of."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "bisvm"

# From low to high: a module imports from its own layer and from those before it.
# "bisvm" stands for names taken from the package itself (`from bisvm import X`).
LAYERS = (
    "history progress parts pointwise composition reading pieces chunks partitions "
    "scaling memory threads losses criteria priors systems conjugate splits swapping "
    "sample_groups warning",
    "transforms",
    "kernels",
    "incremental path",
    "machines approximation",
    "penalties solvers",
    "adjoint",
    "space model",
    "program",
    "problem",
    "evaluation",
    "objective optimizers",
    "checkpoint gains",
    "search",
    "levels",
    "walk",
    "bilinear",
    "estimators",
    "bisvm datasets files images onnx selection tables testing",
    "plots",
    "reporting",
    "cli demo __main__",
)

# Parts of the search that are still beside its folder.
OF_THE_SEARCH = {"nested", "survey", "expectation"}

# Imports inside a function: what a method from a paper brings to descend by.
LATE = {("optimizers", "levels"), ("swapping", "walk")}

# These import nothing else of ours.
FREE_STANDING = {"datasets", "history", "images"}

LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer.split()}


def dotted_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


# Every module but the package's own `__init__`, which may import anything.
MODULES = {dotted_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
MODULES.pop("bisvm")


def imports(name: str, path: Path) -> Iterator[tuple[int, str]]:
    """Line and part of ours of every import, at whatever depth in the code."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package)
            targets = [f"{source}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            if target.split(".")[0] == "bisvm":
                yield node.lineno, part(target)


def part(dotted: str) -> str:
    """The file or folder of the package in which a dotted name lives."""
    head = [*dotted.split("."), ""][1]
    if head in OF_THE_SEARCH:
        return "search"
    is_module = (PACKAGE / head).is_dir() or (PACKAGE / f"{head}.py").is_file()
    return head if head and is_module else "bisvm"


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_down(name):
    path, own = MODULES[name], part(name)
    assert own in LEVEL, (
        f"bisvm.{own} is in no layer: add it to LAYERS in {Path(__file__).name}."
    )
    for line, other in imports(name, path):
        if (own, other) in LATE:
            continue
        where = f"{path.name}, line {line}: {own} imports {other}"
        assert other in LEVEL, f"{where}, which is in no layer: add it to LAYERS."
        if own in FREE_STANDING:
            assert other == own, f"{where}, but is to stand free."
        assert LEVEL[other] <= LEVEL[own], f"{where}, which is in a higher layer."


def test_no_part_depends_on_itself():
    graph: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        own = part(name)
        others = {other for _, other in imports(name, path)} - {own, "bisvm"}
        known = {other for other in others if (own, other) not in LATE}
        graph.setdefault(own, set()).update(known)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(
            "parts import each other in a circle: " + " <- ".join(error.args[1])
        )
