"""Structure at every scale: does the search find what a grid finds?

Half of every set is for training. `BilevelSVC()`, with the kernel left open, with one
gamma and with one per feature, against `GridSearchCV(SVC())` over 11 x 11 values of C
and gamma on the same five folds: accuracy on the other half, CPU seconds, whether the
search says that it has converged, and how many SVM evaluations it took. The grid is
wide: gamma from a thousandth to 100,000 times `gamma="scale"`.

The grid's results are kept in `structure_grid.csv`.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from bisvm import BilevelSVC
from experiments.answers.data import SETS, Halves, halves
from experiments.common import Context, Result, Table
from experiments.generalisation.rows import Rows

TITLE = "Answers: structure at every scale, against a grid"
FITS = ("structure_fits.csv",)

KERNELS = ("auto", "rbf", "ard")
GRID_C = np.logspace(-2.0, 5.0, 11)
# Times gamma="scale", 1 / (features x variance).
GRID_GAMMA = np.logspace(-3.0, 5.0, 11)
# LIBSVM's steps for one machine of the cross-validation: at the largest C some would
# take millions. The machine that is chosen is trained to the end.
MAX_STEPS = 200_000
# Points of accuracy below the grid that are reported.
FLAGGED = 2.0

GRID_FIGURES = ("accuracy", "cross_validated", "C", "gamma", "scale", "seconds")
FIGURES = ("accuracy", "converged", "evaluations", "kernel", "seconds")


def run(context: Context) -> Result:
    return compare(context, "structure", SETS, halves)


def compare(
    context: Context,
    title: str,
    sets: Iterable[str],
    draw: Callable[[str], Halves],
) -> Result:
    """The grid and the fits on all sets, kept in files that begin with `title`."""
    folder = results(context)
    grids = kept_grids(folder, title)
    fits = Rows(
        folder / f"{title}_fits.csv",
        ("set", "rows", "kernel asked"),
        FIGURES,
        words=("kernel",),
    )
    _compile()
    chosen, known = context.chosen(sets), []
    for name in sets:
        data = draw(name)
        if name in chosen:
            _measure(name, data, grids, fits)
            print(f"  {name}", file=sys.stderr, flush=True)
        line = _Line.of(name, len(data.y), grids, fits)
        if line is not None:
            known.append(line)
    return Result(tables=[_accuracies(known), _costs(known)], notes=_notes(known))


def results(context: Context) -> Path:
    """The folder of the tables, and of the figures that are kept."""
    base = context.output or Path(__file__).parents[1] / "results"
    return base / "answers"


def kept_grids(folder: Path, title: str) -> Rows:
    """What the grid has found; the third key is `grid_name()`."""
    return Rows(folder / f"{title}_grid.csv", ("set", "rows", "grid"), GRID_FIGURES)


# --- fits -----------------------------------------------------------------------------


def _measure(name: str, data: Halves, grids: Rows, fits: Rows) -> None:
    """The grid and the fits of one set, where they are not held."""
    rows = len(data.y)
    grids.need((name, rows, grid_name()), lambda: _grid(data))
    for kernel in KERNELS:
        fits.need((name, rows, kernel), partial(_fit, data, kernel))


def grid_name() -> str:
    """What tells the results of one grid from those of another."""
    axes = [f"{len(a)} in {a[0]:g}..{a[-1]:g}" for a in (GRID_C, GRID_GAMMA)]
    return " x ".join(axes) + f"; {MAX_STEPS} steps"


def _grid(data: Halves) -> dict[str, float]:
    scale = 1.0 / (data.X.shape[1] * data.X.var())
    search = GridSearchCV(
        SVC(max_iter=MAX_STEPS),
        {"C": GRID_C, "gamma": scale * GRID_GAMMA},
        cv=data.folds,
        n_jobs=1,
        refit=False,
    )
    seconds = _timed(lambda: search.fit(data.X, data.y))
    machine = SVC(**search.best_params_)
    seconds += _timed(lambda: machine.fit(data.X, data.y))
    return {
        "accuracy": 100.0 * machine.score(data.X_test, data.y_test),
        "cross_validated": 100.0 * search.best_score_,
        "C": search.best_params_["C"],
        "gamma": search.best_params_["gamma"],
        "scale": scale,
        "seconds": seconds,
    }


def _fit(data: Halves, kernel: str) -> dict[str, Any]:
    model = BilevelSVC(kernel, cv=data.folds, random_state=0)
    seconds = _timed(lambda: model.fit(data.X, data.y))
    choice = model.kernel_choice_
    return {
        "accuracy": 100.0 * model.score(data.X_test, data.y_test),
        "converged": converged(model),
        "evaluations": model.n_svm_evaluations_,
        "kernel": kernel if choice is None else choice.name,
        "seconds": seconds,
    }


def accuracies_of(data: Halves, kernels: Iterable[str]) -> dict[str, float]:
    """Of the grid, and of a fit with each of the kernels."""
    fits = {kernel: _fit(data, kernel)["accuracy"] for kernel in kernels}
    return {"grid": _grid(data)["accuracy"], **fits}


def converged(model: Any) -> bool:
    """Whether the certificate, or all of them, say so."""
    certificates = model.certificate_
    listed = certificates if isinstance(certificates, list) else [certificates]
    return all(one.converged for one in listed)


def _timed(do: Callable[[], Any]) -> float:
    """CPU seconds on one thread; warnings are counted by the certificate."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        do()
        return time.process_time() - began


def _compile() -> None:
    """Compile what is compiled before anything is timed."""
    X, y = make_moons(60, noise=0.2, random_state=0)
    _timed(lambda: BilevelSVC(random_state=0).fit(X, y))


# --- tables ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Line:
    """What is known of one set: figures of the grid, and of a fit for each kernel."""

    name: str
    rows: int
    grid: dict[str, Any]
    fits: dict[str, dict[str, Any]]

    @classmethod
    def of(cls, name: str, rows: int, grids: Rows, fits: Rows) -> _Line | None:
        """None if some of it has not been run."""
        grid = grids.held.get((name, str(rows), grid_name()))
        own = {kernel: fits.held.get((name, str(rows), kernel)) for kernel in KERNELS}
        if grid is None or None in own.values():
            return None
        return cls(name, rows, grid, own)

    @property
    def differences(self) -> dict[str, float]:
        """Points of accuracy above the grid."""
        grid = self.grid["accuracy"]
        return {kernel: fit["accuracy"] - grid for kernel, fit in self.fits.items()}

    @property
    def flags(self) -> str:
        """Which fits are below the grid; with a mark where they say "converged"."""
        return ", ".join(
            kernel + ("!" if self.fits[kernel]["converged"] else "")
            for kernel, difference in self.differences.items()
            if difference < -FLAGGED
        )


def _accuracies(lines: list[_Line]) -> Table:
    columns = {"set": "", "rows": "d", "grid": ".1f", **dict.fromkeys(KERNELS, ".1f")}
    columns |= {f"{kernel} - grid": "+.1f" for kernel in KERNELS}
    columns |= {"chosen": "", "below": ""}
    rows = [
        [
            line.name,
            line.rows,
            line.grid["accuracy"],
            *(fit["accuracy"] for fit in line.fits.values()),
            *line.differences.values(),
            line.fits["auto"]["kernel"],
            line.flags,
        ]
        for line in lines
    ]
    title = (
        f"Test accuracy in %; below: more than {FLAGGED:g} points below the grid, with "
        '"!" where the certificate says "converged"'
    )
    return Table(title, columns, rows)


def _costs(lines: list[_Line]) -> Table:
    asked = [("grid", "s"), *((kernel, "s") for kernel in KERNELS)]
    columns = {"set": "", **{f"{name}, {unit}": ".2f" for name, unit in asked}}
    columns |= {f"{kernel}, SVMs": ".0f" for kernel in KERNELS}
    columns |= {"not converged": ""}
    rows = [
        [
            line.name,
            line.grid["seconds"],
            *(fit["seconds"] for fit in line.fits.values()),
            *(fit["evaluations"] for fit in line.fits.values()),
            ", ".join(k for k, fit in line.fits.items() if not fit["converged"]),
        ]
        for line in lines
    ]
    return Table("CPU seconds, and SVM evaluations", columns, rows, name="costs")


def _notes(lines: list[_Line]) -> list[str]:
    notes = [
        f"The grid has {len(GRID_C)} x {len(GRID_GAMMA)} points, "
        f"C in {GRID_C[0]:g}..{GRID_C[-1]:g}, gamma in {GRID_GAMMA[0]:g}.."
        f'{GRID_GAMMA[-1]:g} times gamma="scale".'
    ]
    for kernel in KERNELS:
        below = [line for line in lines if line.differences[kernel] < -FLAGGED]
        certified = sum(bool(line.fits[kernel]["converged"]) for line in below)
        total = sum(line.fits[kernel]["seconds"] for line in lines)
        notes.append(
            f"{kernel}: more than {FLAGGED:g} points below the grid on {len(below)} of "
            f'{len(lines)} sets, {certified} of them "converged"; {total:.1f} s in all.'
        )
    grid = sum(line.grid["seconds"] for line in lines)
    return [*notes, f"The grid: {grid:.1f} s in all."]
