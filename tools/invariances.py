"""The table estimator x invariance: `python -m tools.invariances [--only WORD]`.

Fits every estimator to changed inputs (`bisvm.testing.measure_invariances`) and prints
how far the answers differ. `--write` puts the table into
`experiments/results/invariances.md`, which the documentation includes. The exit code is
1 if an invariance is violated. It takes about ten minutes.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from bisvm import (
    SVC,
    BilevelLinearSVC,
    BilevelLinearSVR,
    BilevelSVC,
    BilevelSVR,
    ConvolutionalLinearSVC,
    ConvolutionalSVC,
    FeatureSelector,
)
from bisvm.testing import InvarianceResult, measure_invariances
from tools.version import commit

RESULT = Path(__file__).parents[1] / "experiments" / "results" / "invariances.md"

# --- why an invariance is not promised ------------------------------------------------

ONE_WIDTH = "one gamma for all features"
ONE_C = "one C for all features"
GIVEN_UNITS = 'kernel="auto" also tries one gamma, in the units given'
ROW_NUMBERS = "splits are drawn by row number"
PIXELS = "the places of pixels count, and all have one unit"
WHOLE_IMAGES = "images are dense"
STRENGTHS = "the search starts from the strengths given, in the units of X"
LEFT_OUT = "a copy of a row stays where the row is left out"
NOT_READ = "as in scikit-learn, X is an array or a sparse matrix"
IMAGE = {"column order": PIXELS, "units of columns": PIXELS}
DRAWN = {"row order": ROW_NUMBERS, "duplicated rows": ROW_NUMBERS}
WIDTH = {"units of columns": ONE_WIDTH}
COST = {"units of columns": ONE_C}

# --- estimators and data --------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """An estimator with data, and what it does not promise."""

    estimator: BaseEstimator
    X: Any
    y: Any
    not_promised: Mapping[str, str] = field(default_factory=dict)
    splits: Literal["fixed"] | None = "fixed"

    def results(self, only: Sequence[str] | None = None) -> list[InvarianceResult]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return measure_invariances(
                self.estimator,
                self.X,
                self.y,
                splits=self.splits,
                only=only,
                not_promised=self.not_promised,
            )


def two_classes(n: int = 80, d: int = 4) -> tuple[Any, Any]:
    """Noisy classes; the last feature is noise. Half of the entries are zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    score = X[:, 0] * X[:, 1] + X[:, -2] + 0.4 * rng.normal(size=n)
    return X, (score > 0.1).astype(int)


def three_classes(n: int = 60) -> tuple[Any, Any]:
    """Overlapping classes in the plane."""
    rng, y = np.random.default_rng(0), np.arange(n) % 3
    centres = np.array([[0.0, 1.2], [1.0, -0.6], [-1.0, -0.6]])
    return centres[y] + 0.7 * rng.normal(size=(n, 2)), y


def numbers(n: int = 80) -> tuple[Any, Any]:
    """A smooth function of two of four features, and noise."""
    rng, (X, _) = np.random.default_rng(1), two_classes(n)
    return X, X[:, 0] * X[:, 1] + X[:, -2] + 0.2 * rng.normal(size=n)


# A search that ends at its iteration limit has not found the minimum to within `tol`.
TIGHT: dict[str, Any] = {"tol": 1e-6, "max_iter": 1000, "random_state": 0}
ROUGH: dict[str, Any] = {"cv": 2, "starts": 1, "max_iter": 3}


def tables() -> dict[str, dict[str, Subject]]:
    """All estimators, by the title of their table and a short name."""
    return {
        "Kernel machines": _kernel_machines(),
        "Linear and convolutional machines, selectors": _other_machines(),
        "Regression": _regressors(),
    }


def subjects() -> dict[str, Subject]:
    """All estimators, by a short name."""
    return {name: one for part in tables().values() for name, one in part.items()}


def _kernel_machines() -> dict[str, Subject]:
    X, y = two_classes()
    pairs = BilevelSVC("rbf", multi_class="ovo", shared=False, **TIGHT)
    ensemble = BilevelSVC("rbf", ensemble=2, **TIGHT)
    alone = {**WIDTH, "duplicated rows": LEFT_OUT}
    loo = BilevelSVC("rbf", cv="loo", **TIGHT)
    linear = BilevelSVC("linear", **TIGHT)
    stock = SVC(random_state=0)
    return {
        "auto": Subject(BilevelSVC(**TIGHT), X, y, {"units of columns": GIVEN_UNITS}),
        "rbf": Subject(BilevelSVC("rbf", **TIGHT), X, y, WIDTH),
        "ard": Subject(BilevelSVC("ard", **TIGHT), X, y),
        "kernel linear": Subject(linear, X, y, COST),
        "rbf, 3 classes": Subject(pairs, *three_classes(), WIDTH),
        "leave-one-out": Subject(loo, X, y, alone, splits=None),
        "ensemble": Subject(ensemble, X, y, {**DRAWN, **WIDTH}, splits=None),
        "SVC": Subject(stock, X, y, {**WIDTH, "Dask array": NOT_READ}),
    }


def _other_machines() -> dict[str, Subject]:
    X, y = two_classes()
    rows, wide = sparse.csr_array(X), np.hstack([X, two_classes(80, 5)[0]])
    linear = BilevelLinearSVC(**TIGHT)
    by_feature = BilevelLinearSVC(regularization="per_feature", **TIGHT)
    kernel = ConvolutionalSVC((2, 2), (2, 1), **TIGHT)
    filters = ConvolutionalLinearSVC((2, 2), (2, 1), **TIGHT)
    image = {**IMAGE, "dense or sparse": WHOLE_IMAGES}
    strengths = {**image, "units of X": STRENGTHS}
    few = (X[:, -2] > 0.1).astype(int)
    return {
        "linear": Subject(linear, X, y, COST),
        "linear, sparse": Subject(linear, rows, y, COST),
        "per feature": Subject(by_feature, X, y),
        "per feature, sparse": Subject(by_feature, rows, y),
        "convolutional": Subject(kernel, X, y, image),
        "convolutional linear": Subject(filters, X, y, strengths),
        "selector": Subject(
            _half(BilevelLinearSVC(regularization="per_feature", **ROUGH)),
            wide,
            few,
            DRAWN,
            splits=None,
        ),
        "selector, ard": Subject(
            _half(BilevelSVC("ard", **ROUGH)), wide, few, DRAWN, splits=None
        ),
    }


def _half(machine: BaseEstimator) -> FeatureSelector:
    return FeatureSelector(machine, n_pairs=2, random_state=0)


def _regressors() -> dict[str, Subject]:
    X, t = numbers()
    tube = BilevelSVR("rbf", loss="smooth_epsilon_insensitive", **TIGHT)
    ensemble = BilevelSVR("rbf", ensemble=2, **TIGHT)
    linear = BilevelLinearSVR(**TIGHT)
    by_feature = BilevelLinearSVR(regularization="per_feature", **TIGHT)
    return {
        "SVR, rbf": Subject(BilevelSVR("rbf", **TIGHT), X, t, WIDTH),
        "SVR, ard": Subject(BilevelSVR("ard", **TIGHT), X, t),
        "SVR, tube": Subject(tube, X, t, WIDTH),
        "SVR, ensemble": Subject(ensemble, X, t, {**DRAWN, **WIDTH}, splits=None),
        "linear SVR": Subject(linear, X, t, COST),
        "linear SVR, sparse": Subject(linear, sparse.csr_array(X), t, COST),
        "per-feature SVR": Subject(by_feature, X, t),
    }


# --- the table ------------------------------------------------------------------------


def cell(result: InvarianceResult, note: Mapping[str, int]) -> str:
    """ "exact", the difference found, or the number of the reason why not."""
    if result.status in ("not promised", "not checked"):
        return f"[{note[result.reason]}]"
    if result.status == "violated":
        return f"**{result.difference:.0e}**"
    return "exact" if result.status == "exact" else f"{result.difference:.0e}"


def notes(rows: Sequence[Sequence[InvarianceResult]]) -> dict[str, int]:
    """Reasons why something is not promised or not checked, numbered."""
    out = ("not promised", "not checked")
    left_out = [r for found in rows for r in found if r.status in out]
    return {
        reason: k + 1
        for k, reason in enumerate(dict.fromkeys(r.reason for r in left_out))
    }


def table(columns: Mapping[str, Sequence[InvarianceResult]]) -> str:
    """Rows of invariances, columns of estimators, in Markdown."""
    rows = _rows(columns)
    note = notes([found for _, *found in rows])
    lines = [
        f"| | {' | '.join(columns)} |",
        f"| --- {'| --- ' * len(columns)}|",
    ]
    for name, *found in rows:
        cells = [cell(one, note) for one in found]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    listed = [f"- [{number}] {reason}" for reason, number in note.items()]
    return "\n".join([*lines, "", *listed, ""])


def _rows(columns: Mapping[str, Sequence[InvarianceResult]]) -> list[Any]:
    """Those that say something of one of the estimators."""
    names = [result.name for result in next(iter(columns.values()))]
    rows = [
        [name, *(found[k] for found in columns.values())]
        for k, name in enumerate(names)
    ]
    return [row for row in rows if any(r.status != "not checked" for r in row[1:])]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.invariances",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", metavar="WORD", help="estimators whose name has it")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args(arguments)
    word = options.only or ""
    if not any(word in name for name in subjects()):
        parser.error(f"no estimator is called {word!r}: {list(subjects())}")
    found = {title: measured(part, word) for title, part in tables().items()}
    parts = [f"**{title}**\n\n{table(one)}" for title, one in found.items() if one]
    results = [r for part in found.values() for one in part.values() for r in one]
    made = f"Made with commit {commit()} by `python -m tools.invariances --write`."
    counted = f"{sum(map(len, found.values()))} estimators: {summary(results)}."
    text = "\n".join([*parts, counted, "", made, ""])
    print(text)
    if options.write:
        RESULT.write_text(text, encoding="utf-8")
    return int(any(result.status == "violated" for result in results))


def measured(
    part: Mapping[str, Subject], word: str
) -> dict[str, Sequence[InvarianceResult]]:
    """Results of the estimators whose name has the word; prints a line for each."""
    columns = {}
    for name, subject in part.items():
        if word in name:
            columns[name] = subject.results()
            print(f"{name}: {summary(columns[name])}", file=sys.stderr, flush=True)
    return columns


def summary(results: Sequence[InvarianceResult]) -> str:
    """How many results have each status, and all that is violated."""
    words = [r.status for r in results]
    wrong = [f"{r.name} {r.difference:.1e} {r.reason}" for r in results]
    bad = [w for w, r in zip(wrong, results, strict=True) if r.status == "violated"]
    counts = ", ".join(f"{words.count(s)} {s}" for s in dict.fromkeys(words))
    return "; ".join([counts, *bad])


if __name__ == "__main__":
    sys.exit(main())
