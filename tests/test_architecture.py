"""The folders of the package, and which of them each may import."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

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
    "search": "core data losses kernels hinge machines solvers criteria bilevel "
    "optimizers",
    "estimators": "core data losses transforms kernels machines solvers criteria "
    "bilevel optimizers search",
    "published": "core data losses transforms kernels hinge machines solvers criteria "
    "bilevel optimizers search estimators",
    "datasets": "",
    "images": "core",
    "tables": "core",
    "selection": "core data estimators",
    "io": "bisvm core data losses transforms kernels hinge machines search estimators "
    "selection",
    "plots": "core kernels search estimators selection",
    "reporting": "core data criteria search estimators selection tables plots",
    "cli": "bisvm core data search estimators selection datasets tables io plots "
    "reporting",
    "testing": "core data losses transforms kernels machines solvers criteria "
    "bilevel optimizers io",
    "__main__": "cli",
}


# The folders below `estimators`, which know nothing of scikit-learn's estimators.
BELOW = (
    "core data losses transforms kernels hinge machines solvers criteria bilevel "
    "optimizers search"
).split()

# Functions in which an object may set its own attributes.
CONSTRUCTORS = {"__init__", "__post_init__", "__new__"}

# Below `estimators`, objects whose attributes change after they were made, and why.
CHANGING = {
    "ActiveSet": "the sets of an exact hinge: one point moves at a breakpoint, and a "
    "copy would cost more than the step",
    "_Path": "where one path between two solutions is, and what is updated on it",
    "MarginSystem": "a triangular factor that grows and shrinks in place",
    "IncrementalSVC": "a scikit-learn estimator to which rows are added and removed",
    "BoundedProblem": "counts evaluations and keeps the lowest, for one run of an "
    "optimizer",
    "_Run": "what the callbacks of SciPy's L-BFGS-B leave to each other in one run",
    "BlasLimit": "who needs one BLAS thread now, in all threads of the process",
    "Answers": "its place in the file of answers",
}

# Below `estimators`, functions that set attributes of other objects, and why.
ASSIGNING = {
    ("core/compiling.py", "_forgive_errors_of_the_disk"): "numba has no option for it",
    ("core/compiling.py", "_load_without_collections"): "numba has no option for it",
    ("data/matrices.py", "each"): "a copy that nobody else has yet",
    ("data/matrices.py", "keep"): "a copy that nobody else has yet",
}

# Names that two classes share, and why.
KNOWN_TWICE: dict[str, str] = {}


def dotted_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


# Every module but the package's own `__init__`, which may import anything.
MODULES = {dotted_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
MODULES.pop("bisvm")


@cache
def imports(name: str) -> list[tuple[int, str]]:
    """Line and module of every import of ours, at whatever depth in the code."""
    return list(_imports(name))


def _imports(name: str) -> Iterator[tuple[int, str]]:
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


@pytest.mark.parametrize("name", [n for n in MODULES if folder(n) in BELOW])
def test_nothing_below_takes_an_estimator(name):
    for line, target in imports(name):
        assert folder(target) != "estimators", f"{name}, line {line}"
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.arguments):
            given = [*node.posonlyargs, *node.args, *node.kwonlyargs]
            lines = [one.lineno for one in given if one.arg == "estimator"]
            assert not lines, f"{name}, line {lines[0]}: pass values instead"


class Assignment(NamedTuple):
    """An attribute that a function sets: of the object itself, or of another."""

    file: str
    line: int
    owner: str | None
    function: str | None
    target: str

    @property
    def own(self) -> bool:
        return self.target.split(".")[:-1] in (["self"], ["cls"])


def assignments(name: str) -> list[Assignment]:
    """All attributes that a module sets, with the class and method that do it."""
    file = MODULES[name].relative_to(PACKAGE).as_posix()
    found = []

    def visit(node: ast.AST, owner: str | None, function: str | None) -> None:
        if isinstance(node, ast.ClassDef):
            owner, function = node.name, None
        elif isinstance(node, ast.FunctionDef):
            function = function or node.name
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            target = ast.unparse(node)
            found.append(Assignment(file, node.lineno, owner, function, target))
        for child in ast.iter_child_nodes(node):
            visit(child, owner, function)

    visit(ast.parse(MODULES[name].read_text(encoding="utf-8")), None, None)
    return found


@pytest.fixture(scope="module")
def assigned():
    return [a for name in MODULES if folder(name) in BELOW for a in assignments(name)]


def test_nobody_sets_attributes_of_another_object(assigned):
    others = [one for one in assigned if not one.own]
    wrong = [one for one in others if (one.file, one.function) not in ASSIGNING]
    assert not wrong, f"make a new object instead: {wrong}"
    needed = {(one.file, one.function) for one in others}
    assert set(ASSIGNING) <= needed, f"not needed: {set(ASSIGNING) - needed}"


def test_objects_do_not_change_after_their_constructor(assigned):
    changes = [one for one in assigned if one.own and one.function not in CONSTRUCTORS]
    wrong = [one for one in changes if one.owner not in CHANGING]
    assert not wrong, f"return a new value instead: {wrong}"
    needed = {one.owner for one in changes}
    assert set(CHANGING) <= needed, f"not needed: {set(CHANGING) - needed}"


def test_no_class_has_the_name_of_another():
    homes: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(name)
    twice = {name: found for name, found in homes.items() if len(found) > 1}
    assert twice.keys() <= KNOWN_TWICE.keys(), f"rename one of each: {twice}"
    assert KNOWN_TWICE.keys() <= twice.keys(), "KNOWN_TWICE has names that are unique"
