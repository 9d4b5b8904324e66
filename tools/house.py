"""The size of the package in numbers: `python -m tools.house [FOLDER ...]`.

For each folder, by default `src/bisvm`: files, lines, how often the word `Any` occurs
and how often as a name in code (imports and comments left out), and the length of
functions (median, 90th percentile, longest), with and without their docstrings.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parents[1] / "src" / "bisvm"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def names_any(tree: ast.AST) -> int:
    """How often `Any` occurs as a name, other than in an import."""
    nodes = ast.walk(tree)
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes)


def docstring_lines(function: Function) -> int:
    first = function.body[0]
    if ast.get_docstring(function) is None:
        return 0
    return (first.end_lineno or first.lineno) - first.lineno + 1


def lengths(tree: ast.AST) -> list[tuple[int, int]]:
    """Lines of every function, with and without its docstring."""
    found = [node for node in ast.walk(tree) if isinstance(node, Function)]
    whole = [(node.end_lineno or node.lineno) - node.lineno + 1 for node in found]
    return [
        (n, n - docstring_lines(node)) for n, node in zip(whole, found, strict=True)
    ]


def counts(folder: Path) -> dict[str, float]:
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
    trees = [ast.parse(text) for text in texts]
    size = np.array([length for tree in trees for length in lengths(tree)])
    result: dict[str, float] = {
        "files": len(texts),
        "lines": sum(text.count("\n") for text in texts),
        "the word Any": sum(len(re.findall(r"\bAny\b", text)) for text in texts),
        "Any as a name": sum(map(names_any, trees)),
        "functions": len(size),
    }
    for column, what in enumerate(("", " without docstring")):
        median, most = np.percentile(size[:, column], [50, 90])
        result[f"median lines of a function{what}"] = median
        result[f"90th percentile{what}"] = most
        result[f"longest{what}"] = size[:, column].max()
    return result


def main(folders: list[str]) -> None:
    columns = [counts(Path(folder)) for folder in folders or [str(HERE)]]
    for name in columns[0]:
        print(name, *(f"{column[name]:g}" for column in columns), sep="\t")


if __name__ == "__main__":
    main(sys.argv[1:])
