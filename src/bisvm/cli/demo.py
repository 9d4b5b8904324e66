"""The library in half a minute: `python -m bisvm.cli.demo`.

Tunes C and one gamma per feature of an SVM on scikit-learn's breast cancer data, beside
a default SVC and a grid search on the same folds, and draws the features' relevances.
"""

from __future__ import annotations

import argparse
import math
import sys
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, TextIO

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_score,
    train_test_split,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVC
from bisvm.plots import RelevanceDisplay, relevance_data

SEED = 0
GRID = {"C": np.logspace(-2, 3, 11), "gamma": np.logspace(-4, 0.5, 10)}
SHOWN = 8
BAR = 30


@dataclass(frozen=True)
class DemoTask:
    """Standardised training and held-out data, and the folds that all methods share."""

    X: np.ndarray
    y: np.ndarray
    X_held_out: np.ndarray
    y_held_out: np.ndarray
    folds: list[tuple[np.ndarray, np.ndarray]]
    names: list[str]


@dataclass(frozen=True)
class DemoEntry:
    """One line of the table.

    tuned : number of hyperparameters
    accuracy : mean over the folds
    right : which of the held-out points were predicted correctly
    seconds : to tune and fit
    """

    method: str
    tuned: int
    accuracy: float
    right: np.ndarray
    seconds: float


def breast_cancer() -> DemoTask:
    """70% to learn from and 30% held out, both with their share of the classes."""
    data = load_breast_cancer()
    X, X_held_out, y, y_held_out = train_test_split(
        data.data, data.target, test_size=0.3, stratify=data.target, random_state=SEED
    )
    scaler = StandardScaler().fit(X)
    X, X_held_out = scaler.transform(X), scaler.transform(X_held_out)
    folds = StratifiedKFold(5, shuffle=True, random_state=SEED).split(X, y)
    names = [str(name) for name in data.feature_names]
    return DemoTask(X, y, X_held_out, y_held_out, list(folds), names)


# --- progress -------------------------------------------------------------------------


class ProgressLine:
    """A line on stderr for one step: alive on a terminal, else written when it is done.

    with Step("grid search") as step:
        step.detail = "third of ten"
    """

    def __init__(self, text: str, stream: TextIO | None = None):
        self.text = text
        self.detail = ""
        self.stream = sys.stderr if stream is None else stream
        self._done = Event()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def __enter__(self) -> ProgressLine:
        self._began = time.perf_counter()
        self._painter = Thread(target=self._paint, daemon=True)
        if self.stream.isatty():
            self._painter.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._done.set()
        if self._painter.ident is not None:
            self._painter.join()
            self.stream.write("\r\x1b[K")
        print(self._line(), file=self.stream, flush=True)

    def _line(self) -> str:
        return f"  {self.text:<42} {self.seconds:5.1f} s   {self.detail}".rstrip()

    def _paint(self) -> None:
        while not self._done.wait(0.1):
            self.stream.write(f"\r\x1b[K{self._line()[:78]}")
            self.stream.flush()


# --- the four methods -----------------------------------------------------------------


def default_svc(task: DemoTask) -> DemoEntry:
    with ProgressLine("SVC as it comes"):
        began = time.perf_counter()
        model = SVC().fit(task.X, task.y)
        seconds = time.perf_counter() - began
        scores = cross_val_score(SVC(), task.X, task.y, cv=task.folds)
    return _entry("SVC, default", 0, model, float(scores.mean()), seconds, task)


def grid_search(task: DemoTask, grid: dict[str, np.ndarray]) -> DemoEntry:
    size = " x ".join(str(len(values)) for values in grid.values())
    with ProgressLine(f"grid search over C and gamma, {size}") as step:
        search = GridSearchCV(SVC(), grid, cv=task.folds).fit(task.X, task.y)
        seconds = step.seconds
    name = f"SVC, grid search {size}"
    return _entry(name, 2, search, search.best_score_, seconds, task)


def compile_loops(task: DemoTask) -> None:
    """The first fit after an installation compiles: in no method's time."""
    with ProgressLine("compiling, if it is the first time"):
        BilevelSVC("rbf", starts=1, cv=task.folds, random_state=SEED).fit(
            task.X, task.y
        )


def bilevel(task: DemoTask, kernel: str, text: str) -> tuple[DemoEntry, BilevelSVC]:
    """From one start: no climb from one gamma to many, but straight to all of them."""
    with ProgressLine(f"bisvm, C and {text}") as step:

        def show(progress: Any) -> None:
            count = progress.record.number
            step.detail = f"{count} evaluations, loss {progress.best_value:.4f}"

        model = BilevelSVC(
            kernel=kernel, starts=1, cv=task.folds, callback=show, random_state=SEED
        ).fit(task.X, task.y)
        seconds = step.seconds
    tuned = sum(np.size(value) for value in model.hyperparameters_.values())
    scores = cross_val_score(at_values_of(model), task.X, task.y, cv=task.folds)
    name = f"bisvm, {text}"
    return _entry(name, tuned, model, float(scores.mean()), seconds, task), model


def at_values_of(model: BilevelSVC) -> BilevelSVC:
    """An estimator that learns no hyperparameters, but has those of a tuned one."""
    return BilevelSVC(model.kernel_, C=model.C_, learn=(), cv=2, refit="same")


def _entry(
    method: str, tuned: int, model: Any, accuracy: float, seconds: float, task: DemoTask
) -> DemoEntry:
    right = model.predict(task.X_held_out) == task.y_held_out
    return DemoEntry(method, tuned, accuracy, right, seconds)


# --- what is printed ------------------------------------------------------------------


def learned_values(model: BilevelSVC, names: Sequence[str]) -> str:
    data = relevance_data(model, names)
    gamma = model.hyperparameters_["gamma"]
    width = max(map(len, data.names[:SHOWN]))
    lines = [
        f"Learned: C = {model.C_:.3g}, and for each of {len(names)} features a gamma.",
        "",
        f"  {'most relevant':<{width}}    gamma  relevance",
    ]
    for name, value, column in zip(*data.first(SHOWN), strict=True):
        bar = "#" * round(BAR * value / data.values[0])
        lines.append(f"  {name:<{width}}  {gamma[column]:7.4f}  {value:9.3f}  {bar}")
    rest = data.values[SHOWN:]
    lines.append(f"  {f'the other {len(rest)}':<{width}}  {'':7}  {sum(rest):9.3f}")
    return "\n".join(lines)


def comparison(entries: Sequence[DemoEntry]) -> str:
    width = max(len(entry.method) for entry in entries)
    header = f"  {'':<{width}}  tuned  cross-validated  held out   seconds"
    lines = [header, "  " + "-" * (len(header) - 2)]
    for entry in entries:
        lines.append(
            f"  {entry.method:<{width}}  {entry.tuned:5d}  {entry.accuracy:15.1%}"
            f"  {entry.right.mean():8.1%}  {entry.seconds:8.2f}"
        )
    return "\n".join(lines)


def verdict(grid: DemoEntry, many: DemoEntry) -> str:
    """What the table says, and what it does not."""
    gained = int(np.sum(many.right & ~grid.right))
    lost = int(np.sum(grid.right & ~many.right))
    # Points on which two equal methods disagree fall to either side at random.
    if abs(gained - lost) <= 2 * math.sqrt(gained + lost):
        judgement = "That is chance: one gamma is enough for these data"
    else:
        judgement = "That is more than chance"
    sentences = (
        f"By gradients {many.tuned} hyperparameters took {many.seconds:.1f} s; "
        f"trying pairs of {grid.tuned} took {grid.seconds:.1f} s.",
        f"Of {len(grid.right)} held-out tumours, one gamma per feature gets {gained} "
        f"right that the grid gets wrong, and {lost} wrong that it gets right. "
        f"{judgement}.",
        "Where some features are noise it pays: see examples/plot_moons.py.",
    )
    return "\n".join(textwrap.fill(sentence, 80) for sentence in sentences)


def draw(model: BilevelSVC, names: Sequence[str], folder: Path) -> str:
    """Write the picture; say where it is, or why there is none."""
    try:
        import matplotlib
    except ImportError:
        return "No picture: matplotlib is not installed (pip install bisvm[plots])."
    matplotlib.use("Agg")
    display = RelevanceDisplay.from_estimator(model, feature_names=names)
    display.ax_.set_title("What the SVM looks at: breast cancer data", loc="left")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "relevance.png"
    display.figure_.savefig(path, dpi=90)
    return f"Picture: {path}"


def run(folder: Path, grid: dict[str, np.ndarray] = GRID) -> list[DemoEntry]:
    """The whole demonstration; returns the lines of its table."""
    task = breast_cancer()
    print(
        "bisvm: an SVM that tunes itself\n"
        "===============================\n"
        f"Breast cancer data: {len(task.y)} tumours to learn from, "
        f"{len(task.y_held_out)} held out, {len(task.names)} features.\n"
        "Four ways to set the hyperparameters, on the same folds and one thread:\n",
        flush=True,
    )
    with threadpool_limits(1):
        compile_loops(task)
        entries = [default_svc(task), grid_search(task, grid)]
        entries.append(bilevel(task, "rbf", "one gamma")[0])
        many, model = bilevel(task, "ard", "one gamma per feature")
        entries.append(many)
    print(f"\n{learned_values(model, task.names)}\n\n{comparison(entries)}\n")
    print(f"{verdict(entries[1], many)}\n\n{draw(model, task.names, folder)}")
    return entries


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bisvm.cli.demo", description=__doc__
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("demo-output"),
        help="folder of the picture (default: %(default)s)",
    )
    run(parser.parse_args(arguments).output)


if __name__ == "__main__":
    main()
