"""Wrong answers that a review of the first version found, and what they are now.

Each row repeats what was found, with the data and the settings of the review; "found"
is the figure of the first version.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from bisvm import BilevelLinearSVC, BilevelSVC
from experiments.common import Context, Result, Table

TITLE = "Answers: what a review found, and what it is now"

WINE_SPLITS = 10
UNITS = (1e-6, 1e-3, 1.0, 1e6)


def run(context: Context) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [*_units_of_X(), *_units_of_weights(), *_fine_structure(), *_raw_wine()]
    columns = {"what": "", "figure": "", "found": "", "now": ".4f"}
    return Result([Table("Found and now", columns, rows)])


def _units_of_X() -> list[list[Any]]:
    """One C of a linear machine, on raw columns in several units."""
    X, y = load_wine(return_X_y=True)
    found = {1.0: "0.957", 1e-3: "0.768"}
    rows = [
        [
            f"linear, raw wine times {unit:g}, {WINE_SPLITS} splits",
            "test accuracy",
            found.get(unit, ""),
            np.mean([_wine_score(unit * X, y, k) for k in range(WINE_SPLITS)]),
        ]
        for unit in UNITS
    ]
    X, y = load_breast_cancer(return_X_y=True)
    for unit, before in ((1.0, ""), (1e-3, "0.454")):
        H = BilevelLinearSVC(random_state=0).fit(unit * X, y).criterion_value_
        rows.append([f"linear, raw breast cancer times {unit:g}", "H", before, H])
    return rows


def _wine_score(X: np.ndarray, y: np.ndarray, split: int) -> float:
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=split)
    return BilevelLinearSVC(random_state=0).fit(X, y).score(X_test, y_test)


def _units_of_weights() -> list[list[Any]]:
    X, y = load_wine(return_X_y=True)
    X, rows = scale(X), []
    for unit, before in ((1e-6, "0.399"), (1.0, "0.994"), (1e6, "")):
        model = BilevelSVC(random_state=0)
        score = model.fit(X, y, sample_weight=np.full(len(y), unit)).score(X, y)
        rows.append(
            [f"auto, wine, weights of {unit:g}", "training accuracy", before, score]
        )
    return rows


def _fine_structure() -> list[list[Any]]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (2000, 1))
    waves = np.sin(60.0 * x[:, 0]) > 0
    squares = rng.uniform(0.0, 1.0, (1400, 2))
    colour = np.floor(10.0 * squares).sum(axis=1) % 2
    cases = [
        ("sin(60 x), 1000 rows", x, waves, {}, "0.515 (grid 0.983)"),
        ("sin(60 x), starts=8", x, waves, {"starts": 8}, "0.518"),
        ("checkerboard 10 x 10, 700 rows", squares, colour, {}, "0.501 (grid 0.837)"),
    ]
    rows = []
    for name, X, y, settings, before in cases:
        half = len(y) // 2
        model = BilevelSVC(random_state=0, **settings).fit(X[:half], y[:half])
        rows.append([name, "test accuracy", before, model.score(X[half:], y[half:])])
    return rows


def _raw_wine() -> list[list[Any]]:
    X, y = load_wine(return_X_y=True)
    scores = []
    for split in range(4):
        parts = train_test_split(X, y, test_size=0.4, random_state=split)
        model = BilevelSVC("rbf", random_state=0).fit(parts[0], parts[2])
        scores.append(model.score(parts[1], parts[3]))
    return [["rbf, raw wine, 4 splits", "test accuracy", "0.65-0.69", np.mean(scores)]]
