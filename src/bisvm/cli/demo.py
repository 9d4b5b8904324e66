"""The library in half a minute: `bisvm demo`, or `python -m bisvm.cli.demo`.

Tunes C and one gamma per feature of an SVM on two tables, and compares it with a
default SVC and a grid search: two half moons among features of noise, where this pays,
and scikit-learn's breast cancer data, where one gamma is as good. Then it predicts
numbers, with intervals. Last it writes a report on the breast cancer data.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, make_friedman1
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVC, BilevelSVR
from bisvm.core.progress import ProgressLine
from bisvm.datasets import make_moons_with_noise
from bisvm.plots import relevance_data
from bisvm.reporting import report
from bisvm.reporting.words import difference_in_words
from bisvm.search.history import Progress
from bisvm.selection.comparison import (
    USUAL,
    Entry,
    Rows,
    default_entry,
    grid_entry,
    own_entry,
)

SEED = 0
# Features that are listed, and the length of the longest bar in characters.
SHOWN, BAR = 6, 30


def breast_cancer() -> tuple[Rows, list[str]]:
    """Standardised data, 70% for training and 30% for testing, and feature names."""
    data = load_breast_cancer(as_frame=True)
    X, X_test, y, y_test = train_test_split(
        data.data, data.target, test_size=0.3, stratify=data.target, random_state=SEED
    )
    scaler = StandardScaler().set_output(transform="pandas").fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    folds = StratifiedKFold(5, shuffle=True, random_state=SEED).split(X, y)
    return Rows(X, y, X_test, y_test, list(folds)), list(X.columns)


def compile_loops(rows: Rows) -> None:
    """The first fit after an installation compiles; no method is charged for it."""
    with ProgressLine("compiling, the first time only"):
        BilevelSVC("rbf", starts=1, cv=rows.folds, random_state=SEED).fit(
            rows.X, rows.y
        )


def bilevel(rows: Rows, kernel: str, text: str) -> tuple[Entry, BilevelSVC]:
    """Tune, and show how far it is."""
    with ProgressLine(f"bisvm, C and {text}") as step:

        def show(progress: Progress) -> None:
            count, loss = progress.record.number, progress.best_value
            step.detail = f"{count} evaluations, validation loss {loss:.4f}"

        model = BilevelSVC(
            kernel=kernel, cv=rows.folds, callback=show, random_state=SEED
        ).fit(rows.X, rows.y)
        seconds = step.seconds
    return own_entry(model, rows, seconds, f"bisvm, {text}"), model


def learned_values(model: BilevelSVC, names: Sequence[str]) -> str:
    data = relevance_data(model, names)
    gamma = model.hyperparameters_["gamma"]
    head = "most relevant feature"
    width = max(map(len, [head, *data.names[:SHOWN]]))
    lines = [
        f"Learned: C = {model.C_:.3g}, and one gamma for each of the {len(names)} "
        "features.",
        "",
        f"  {head:<{width}}    gamma  relevance",
    ]
    for name, value, column in zip(*data.first(SHOWN), strict=True):
        bar = "#" * round(BAR * value / data.values[0])
        line = f"  {name:<{width}}  {gamma[column]:7.4f}  {value:9.3f}  {bar}"
        lines.append(line.rstrip())
    rest = data.values[SHOWN:]
    if not rest:
        return "\n".join(lines)
    lines.append(f"  {f'the other {len(rest)}':<{width}}  {'':7}  {sum(rest):9.3f}")
    return "\n".join(lines)


def comparison(entries: Sequence[Entry]) -> str:
    width = max(len(entry.method) for entry in entries)
    header = f"  {'':<{width}}  tuned  cross-validated  test rows  seconds"
    lines = [
        "Accuracy, and the number of hyperparameters that were tuned:\n",
        header,
        "  " + "-" * (len(header) - 2),
    ]
    for one in entries:
        lines.append(
            f"  {one.method:<{width}}  {one.tuned:5d}  {one.cross_validated:15.1%}"
            f"  {np.mean(np.asarray(one.scores)):9.1%}  {one.seconds:7.2f}"
        )
    return "\n".join(lines)


def verdict(grid: Entry, many: Entry) -> str:
    """What the table shows, and what it does not."""
    sentences = (
        f"bisvm: {many.tuned} hyperparameters in {many.seconds:.1f} s. Grid search: "
        f"{grid.tuned} hyperparameters in {grid.seconds:.1f} s.",
        difference_in_words(many, grid) or "",
    )
    return "\n".join(textwrap.fill(sentence, 80) for sentence in sentences)


def moons() -> tuple[Rows, list[str]]:
    """Two half moons among ten features of noise, 400 rows for training."""
    X, y = make_moons_with_noise(2400, n_noise=10, random_state=SEED)
    folds = StratifiedKFold(5, shuffle=True, random_state=SEED)
    names = ["moon x", "moon y", *(f"noise {k}" for k in range(1, 11))]
    rows = Rows(X[:400], y[:400], X[400:], y[400:], [])
    return replace(rows, folds=list(folds.split(rows.X, rows.y))), names


def write_report(model: BilevelSVC, rows: Rows, folder: Path) -> str:
    """Write the report; say where it is, or why there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        path = report(
            model,
            rows.X,
            rows.y,
            folder / "report.html",
            X_test=rows.X_test,
            y_test=rows.y_test,
            title="Can we predict whether a tumour is benign?",
        )
    except ImportError as error:
        return f"No report: {error}"
    return f"Report on the breast cancer data: {path}. Open it in a browser."


def compared(
    rows: Rows, names: Sequence[str], size: int
) -> tuple[list[Entry], BilevelSVC]:
    """Compare four ways to set the hyperparameters, and print what they found."""
    with threadpool_limits(1):
        with ProgressLine("default SVC"):
            default = default_entry(rows)
        with ProgressLine(f"grid search over C and gamma, {size} x {size}") as step:
            step.detail = "running"
            grid = grid_entry(rows, size=size)
            step.detail = grid.detail
        grid = replace(grid, method=f"{grid.method} {size} x {size}")
        one, _ = bilevel(rows, "rbf", "one gamma")
        many, model = bilevel(rows, "ard", "one gamma per feature")
    entries = [default, grid, one, many]
    print(f"\n{learned_values(model, names)}\n\n{comparison(entries)}\n")
    print(f"{verdict(grid, many)}\n")
    return entries, model


def demonstrate(folder: Path, size: int = USUAL) -> list[Entry]:
    """Run both comparisons with a grid of size x size; return the lines of both."""
    print(
        "bisvm: an SVM that tunes itself\n"
        "===============================\n"
        "Three examples. The first two compare four ways to set the hyperparameters of "
        "an\nSVM, on the same folds and one thread.\n",
        flush=True,
    )
    rows, names = moons()
    with threadpool_limits(1):
        compile_loops(rows)
    print(
        f"\n1. Where it pays: two half moons and ten features of noise, "
        f"{len(rows.y)} training rows,\n   {len(rows.X_test)} test rows.\n",
        flush=True,
    )
    first, _ = compared(rows, names, size)
    rows, names = breast_cancer()
    print(
        f"2. Where it does not: breast cancer, {len(names)} features that are strongly "
        f"correlated,\n   {len(rows.y)} training rows, {len(rows.X_test)} test "
        "rows.\n",
        flush=True,
    )
    second, model = compared(rows, names, size)
    print(
        "3. Numbers instead of classes: Friedman's first function, half of whose ten "
        "features\n   are noise.\n",
        flush=True,
    )
    print(f"\n{numbers()}\n")
    print(write_report(model, rows, folder))
    return [*first, *second]


def numbers() -> str:
    """A regression on Friedman's first function among noise, in words."""
    X, y = make_friedman1(1200, n_features=10, noise=1.0, random_state=SEED)
    X, X_test, y, y_test = X[:200], X[200:], y[:200], y[200:]
    with threadpool_limits(1), ProgressLine("bisvm, one gamma per feature"):
        model = BilevelSVR("ard", random_state=SEED).fit(X, y)
    low, high = model.predict_interval(X_test, coverage=0.9).T
    covered = float(np.mean((low <= y_test) & (y_test <= high)))
    own, default = model.score(X_test, y_test), SVR().fit(X, y).score(X_test, y_test)
    words = (
        f"After training on {len(y)} rows, R^2 is {own:.3f} on {len(y_test)} test "
        f"rows. bisvm expected {model.expected_score_.value:.3f}; a default SVR has "
        f"{default:.3f}. The 90% prediction intervals contain {covered:.1%} of the "
        "test rows."
    )
    return textwrap.fill(words, 80)


def run(options: argparse.Namespace) -> int:
    demonstrate(options.output or Path("demo-output"))
    return 0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bisvm.cli.demo", description=__doc__
    )
    parser.add_argument("--output", type=Path, help="folder for the report")
    run(parser.parse_args(arguments))


if __name__ == "__main__":
    main()
