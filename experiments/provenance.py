"""Which code made a result, in how many seconds, and whether that code has changed.

Every folder of results has a file `runs.json`: for each experiment the commit, the
seconds, the random splits, and a digest of every part of the code that was imported
while it ran. A part is a folder of `src/bisvm`, or a file of `experiments`. Comments,
docstrings and empty lines do not count. A result is stale if a digest differs.

    python -m experiments --stale

Experiments with many fits keep each in a file as it ends (`FITS`), and a stopped run
goes on where it was. A run by other code, and one after a finished run, begins anew;
`--keep` makes a new page from the fits that are there, which is as old as they are.

A change of structure makes no result stale. Whoever made one runs

    python -m experiments --refactored REVISION

which compares the answers of some 270 fits with those of that commit (`tools.same`). If
none differs by more than a relative 1e-9, `same_answers.json` notes that the digests of
before and after stand for each other. Seconds are not compared.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import sys
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.same.__main__ import main as compare_answers
from tools.version import ROOT, check_out, commit, short

__all__ = [
    "Run",
    "SameAnswers",
    "begin",
    "read_runs",
    "record",
    "refactored",
    "snapshot",
    "stale",
]

FILE = "runs.json"
SAME = "same_answers.json"
# End of the name of a file that says by which code a run was begun.
UNFINISHED = ".unfinished"
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

    def with_fits_of(self, earlier: Run | None) -> Run:
        """This run, if all fits are those of an earlier run: as stale as that one."""
        earlier = earlier or replace(self, code={})
        own = {part: now for part, now in self.code.items() if not _is_library(part)}
        library = {part: "" for part in self.code if _is_library(part)}
        library |= {p: then for p, then in earlier.code.items() if _is_library(p)}
        return replace(earlier, code=own | library)

    def changed(self, same: Sequence[SameAnswers] = ()) -> list[str]:
        """Parts of the code that are not what they were.

        same : changes that left all answers as they were, in their order
        """
        return [
            part
            for part, then in self.code.items()
            if part not in _NOT_RESULTS
            and digest(part) not in _as_good(part, then, same)
        ]


@dataclass(frozen=True)
class SameAnswers:
    """Two commits that give the same answers.

    code : digests of the parts of the library that differ, before and after
    """

    before: str
    after: str
    code: dict[str, list[str]]


def _is_library(part: str) -> bool:
    return part.startswith(str(LIBRARY))


def _as_good(part: str, then: str, same: Sequence[SameAnswers]) -> set[str]:
    """The digest of a part, and those of later code with the same answers."""
    found = {then}
    for change in same:
        before, after = change.code.get(part, ("", ""))
        if before in found:
            found.add(after)
    return found


def begin(
    folder: Path, name: str, fits: Sequence[str], code: Mapping[str, str]
) -> None:
    """Delete an experiment's fits, unless they are of a run that was stopped.

    fits : names of their files
    code : digests of the present code; a run by other code is not continued
    """
    mark = folder / f"{name}{UNFINISHED}"
    now = json.dumps(code, sort_keys=True)
    if not (mark.is_file() and mark.read_text(encoding="utf-8") == now):
        for file in fits:
            (folder / file).unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(now, encoding="utf-8")


def record(folder: Path, name: str, run: Run) -> Path:
    """Write the run of an experiment into its folder's file: it is finished."""
    runs = {**read_runs(folder), name: run}
    lines = [
        f"  {json.dumps(key)}: {json.dumps(asdict(runs[key]))}" for key in sorted(runs)
    ]
    path = folder / FILE
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    (folder / f"{name}{UNFINISHED}").unlink(missing_ok=True)
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
    same = read_same(results)
    for package in packages:
        runs = read_runs(results / package)
        for page in sorted((results / package).glob("*.md")):
            reason = _reason(runs.get(page.stem), same)
            if reason:
                reasons[f"{package}.{page.stem}"] = reason
    return reasons


def _reason(run: Run | None, same: Sequence[SameAnswers]) -> str:
    if run is None:
        return "made before runs were recorded"
    changed = run.changed(same)
    return f"changed since {run.commit}: {', '.join(changed)}" if changed else ""


# --- changes of structure -------------------------------------------------------------


def read_same(results: Path) -> list[SameAnswers]:
    """Changes that left all answers as they were, in their order."""
    path = results / SAME
    if not path.is_file():
        return []
    return [SameAnswers(**fields) for fields in json.loads(path.read_text("utf-8"))]


def refactored(results: Path, revision: str) -> str:
    """Compare the library's answers with those of a commit; note it if they are equal.

    Returns
    -------
    refused : str
        Why nothing was noted; "" if it was.
    """
    before, after = short(revision), commit()
    if not before:
        return f"There is no commit {revision!r}; `git log` lists them."
    if after.endswith("+"):
        return "The library has uncommitted changes: commit them first."
    with TemporaryDirectory() as folder:
        check_out(before, Path(folder))
        then = snapshot(Path(folder))
    differ = {
        part: [then[part], now]
        for part, now in snapshot().items()
        if _is_library(part) and then.get(part, now) != now
    }
    if not differ:
        return f"The library is that of {before}."
    if compare_answers(["--against", before]):
        return "Answers differ: results have to be computed again."
    changes = [*read_same(results), SameAnswers(before, after, differ)]
    lines = [f"  {json.dumps(asdict(one))}" for one in changes]
    body = ",\n".join(lines)
    (results / SAME).write_text(f"[\n{body}\n]\n", encoding="utf-8")
    return ""


# --- digests --------------------------------------------------------------------------


def snapshot(root: Path | None = None) -> dict[str, str]:
    """Digests of all code that a run may import, as it is on disk.

    root : folder of the repository; by default this one
    """
    root = ROOT if root is None else root
    folders = {path.parent for path in (root / LIBRARY).rglob("*.py")}
    files = (root / "experiments").rglob("*.py")
    parts = sorted(path.relative_to(root).as_posix() for path in (*folders, *files))
    return {part: _digest(root / part) for part in parts}


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
    return _digest(ROOT / part)


def _digest(path: Path) -> str:
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
