"""The table estimator x invariance: `python -m tools.invariances [--only WORD]`.

Fits every estimator to changed inputs (`bisvm.testing.measure_invariances`) and prints
how far the answers differ. `--write` puts the table into
`experiments/results/invariances.md`, which the documentation includes. The exit code is
1 if an invariance is violated. It takes about four minutes.
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
    BilevelLinearSVC,
    BilevelSVC,
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
IN_MEMORY = "kernel machines need their rows in memory"
ROW_NUMBERS = "splits are drawn by row number"
PIXELS = "the places of pixels count, and all have one unit"
WHOLE_IMAGES = "images are dense"
STRENGTHS = "the search starts from the strengths given, in the units of X"
KERNEL = {"Dask array": IN_MEMORY}
IMAGE = {"column order": PIXELS, "units of columns": PIXELS}
DRAWN = {"row order": ROW_NUMBERS, "duplicated rows": ROW_NUMBERS}

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


def subjects() -> dict[str, Subject]:
    """All estimators, by a short name for the table."""
    X, y = two_classes()
    wide, few = np.hstack([X, two_classes(80, 5)[0]]), (X[:, -2] > 0.1).astype(int)
    tight = {"tol": 1e-6, "random_state": 0}
    rough = {"cv": 2, "starts": 1, "max_iter": 3}
    per_feature = BilevelLinearSVC(regularization="per_feature", **tight)
    several = {"multi_class": "ovo", "shared": False}
    half = FeatureSelector(
        BilevelLinearSVC(regularization="per_feature", **rough),
        n_pairs=2,
        random_state=0,
    )
    return {
        "auto": Subject(
            BilevelSVC(**tight),
            X,
            y,
            {**KERNEL, "units of columns": GIVEN_UNITS},
        ),
        "rbf": Subject(
            BilevelSVC("rbf", **tight), X, y, {**KERNEL, "units of columns": ONE_WIDTH}
        ),
        "ard": Subject(BilevelSVC("ard", **tight), X, y, KERNEL),
        "kernel linear": Subject(
            BilevelSVC("linear", **tight), X, y, {"units of columns": ONE_C}
        ),
        "rbf, 3 classes": Subject(
            BilevelSVC("rbf", **several, **tight),
            *three_classes(),
            {**KERNEL, "units of columns": ONE_WIDTH},
        ),
        "ensemble": Subject(
            BilevelSVC("rbf", ensemble=2, **tight),
            X,
            y,
            {**KERNEL, **DRAWN, "units of columns": ONE_WIDTH},
            splits=None,
        ),
        "linear": Subject(BilevelLinearSVC(**tight), X, y, {"units of columns": ONE_C}),
        "linear, sparse": Subject(
            BilevelLinearSVC(**tight),
            sparse.csr_array(X),
            y,
            {"units of columns": ONE_C},
        ),
        "per feature": Subject(per_feature, X, y),
        "per feature, sparse": Subject(per_feature, sparse.csr_array(X), y),
        "convolutional": Subject(
            ConvolutionalSVC((2, 2), (2, 1), **tight),
            X,
            y,
            {**IMAGE, "dense or sparse": WHOLE_IMAGES},
        ),
        "convolutional linear": Subject(
            ConvolutionalLinearSVC((2, 2), (2, 1), **tight),
            X,
            y,
            {**IMAGE, "dense or sparse": WHOLE_IMAGES, "units of X": STRENGTHS},
        ),
        "selector": Subject(half, wide, few, DRAWN, splits=None),
    }


# --- the table ------------------------------------------------------------------------


def cell(result: InvarianceResult, note: Mapping[str, int]) -> str:
    """ "exact", the difference found, or the number of the reason why not."""
    if result.status in ("not promised", "not checked"):
        return f"[{note[result.reason]}]"
    if result.status == "violated":
        return f"**{result.difference:.0e}**"
    return "exact" if result.status == "exact" else f"{result.difference:.0e}"


def notes(columns: Mapping[str, Sequence[InvarianceResult]]) -> dict[str, int]:
    """Reasons why something is not promised or not checked, numbered."""
    out = ("not promised", "not checked")
    left_out = [r for found in columns.values() for r in found if r.status in out]
    return {
        reason: k + 1
        for k, reason in enumerate(dict.fromkeys(r.reason for r in left_out))
    }


def table(columns: Mapping[str, Sequence[InvarianceResult]]) -> str:
    """Rows of invariances, columns of estimators, in Markdown."""
    note = notes(columns)
    lines = [
        f"| | {' | '.join(columns)} |",
        f"| --- {'| --- ' * len(columns)}|",
    ]
    for name, *found in _rows(columns):
        cells = [cell(one, note) for one in found]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    listed = [f"- [{number}] {reason}" for reason, number in note.items()]
    return "\n".join([*lines, "", *listed, ""])


def _rows(columns: Mapping[str, Sequence[InvarianceResult]]) -> list[Any]:
    names = [result.name for result in next(iter(columns.values()))]
    return [
        [name, *(found[k] for found in columns.values())]
        for k, name in enumerate(names)
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.invariances",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", metavar="WORD", help="estimators whose name has it")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args(arguments)
    chosen = {k: s for k, s in subjects().items() if (options.only or "") in k}
    if not chosen:
        parser.error(f"no estimator is called {options.only!r}: {list(subjects())}")
    columns = {}
    for name, subject in chosen.items():
        columns[name] = subject.results()
        print(f"{name}: {summary(columns[name])}", file=sys.stderr, flush=True)
    text = table(columns)
    print(text)
    if options.write:
        made = f"Made with commit {commit()} by `python -m tools.invariances --write`."
        RESULT.write_text(f"{text}\n{made}\n", encoding="utf-8")
    return int(any(r.status == "violated" for c in columns.values() for r in c))


def summary(results: Sequence[InvarianceResult]) -> str:
    """How many results have each status, and all that is violated."""
    words = [r.status for r in results]
    wrong = [f"{r.name} {r.difference:.1e} {r.reason}" for r in results]
    bad = [w for w, r in zip(wrong, results, strict=True) if r.status == "violated"]
    counts = ", ".join(f"{words.count(s)} {s}" for s in dict.fromkeys(words))
    return "; ".join([counts, *bad])


if __name__ == "__main__":
    sys.exit(main())
