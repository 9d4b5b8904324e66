"""Which code made a result, in how many seconds, and whether that code has changed.

Every folder of results has a file `runs.json`: for each experiment the commit, the
seconds, the random splits, and a digest of every part of the code that was imported
while it ran. A part is a folder of `src/bisvm`, or a file of `experiments`. Comments,
docstrings and empty lines do not count. A result is stale if a digest differs.

    python -m experiments --stale
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import sys
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from tools.version import ROOT, commit

__all__ = ["Run", "read_runs", "record", "snapshot", "stale"]

FILE = "runs.json"
LIBRARY = Path("src/bisvm")
# Digits of a digest: two different codes share one with probability 2^-40.
DIGITS = 10


@dataclass(frozen=True)
class Run:
    """How one result was made.

    code : digest of every part that was imported
    """

    commit: str
    seconds: float
    splits: int
    code: dict[str, str]

    @classmethod
    def now(cls, seconds: float, splits: int, before: Mapping[str, str]) -> Run:
        """The run that ends now, with all code that this process has imported.

        before : digests when it began (`snapshot`); files may change meanwhile
        """
        code = {part: before[part] for part in imported() if part in before}
        return cls(commit(), round(seconds, 1), splits, code)

    def changed(self) -> list[str]:
        """Parts of the code that are not what they were."""
        return [
            part
            for part, then in self.code.items()
            if part not in _NOT_RESULTS and digest(part) != then
        ]


def record(folder: Path, name: str, run: Run) -> Path:
    """Write the run of an experiment into its folder's file."""
    runs = {**read_runs(folder), name: run}
    lines = [
        f"  {json.dumps(key)}: {json.dumps(asdict(runs[key]))}" for key in sorted(runs)
    ]
    path = folder / FILE
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return path


def read_runs(folder: Path) -> dict[str, Run]:
    """Runs of a folder by the experiment's name; empty if none is recorded."""
    path = folder / FILE
    if not path.is_file():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return {name: Run(**fields) for name, fields in found.items()}


def stale(results: Path, packages: Iterable[str]) -> dict[str, str]:
    """Why a committed result may not be what its command gives, by "package.name".

    Results that are as their code would make them are left out.
    """
    reasons = {}
    for package in packages:
        runs = read_runs(results / package)
        for page in sorted((results / package).glob("*.md")):
            reason = _reason(runs.get(page.stem))
            if reason:
                reasons[f"{package}.{page.stem}"] = reason
    return reasons


def _reason(run: Run | None) -> str:
    if run is None:
        return "made before runs were recorded"
    changed = run.changed()
    return f"changed since {run.commit}: {', '.join(changed)}" if changed else ""


# --- digests --------------------------------------------------------------------------


def snapshot() -> dict[str, str]:
    """Digests of all code that a run may import, as it is on disk."""
    folders = {path.parent for path in (ROOT / LIBRARY).rglob("*.py")}
    files = (ROOT / "experiments").rglob("*.py")
    parts = sorted(path.relative_to(ROOT).as_posix() for path in (*folders, *files))
    return {part: digest(part) for part in parts}


def imported() -> list[str]:
    """Parts of this repository's code that are loaded, sorted."""
    found = set()
    for module in list(sys.modules.values()):
        path = _own_path(getattr(module, "__file__", None))
        if path is None:
            continue
        if LIBRARY in path.parents:
            found.add(path.parent.as_posix())
        elif path.parts[0] == "experiments":
            found.add(path.as_posix())
    return sorted(found - _NOT_RESULTS)


# These run experiments and keep book; no figure depends on them.
_NOT_RESULTS = {
    "experiments/__init__.py",
    "experiments/__main__.py",
    "experiments/provenance.py",
    "experiments/published.py",
}


def _own_path(file: str | None) -> Path | None:
    if file is None or not file.endswith(".py"):
        return None
    path = Path(file).resolve()
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else None


@cache
def digest(part: str) -> str:
    """Of a file, or of all Python files of a folder; "" if there is none."""
    path = ROOT / part
    files = [path] if path.is_file() else sorted(path.glob("*.py"))
    if not files:
        return ""
    code = [f"{file.name}\n{bare(file.read_text(encoding='utf-8'))}" for file in files]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()[:DIGITS]


def bare(source: str) -> str:
    """Python code without comments, docstrings and empty lines."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node) is not None:
            first = node.body[0]
            last = first.end_lineno or first.lineno
            lines[first.lineno - 1 : last] = [""] * (last - first.lineno + 1)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return "\n".join(line.rstrip() for line in lines if line.strip())


_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
