"""The data sets of the study, as training and test parts of limited size.

Published data are cut at random, class by class, where they have no published splits
(or not enough), and standardised on the training part. Generators draw every part anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import make_classification, make_moons
from sklearn.model_selection import StratifiedGroupKFold

from bisvm.datasets import load, make_moons_with_noise, make_rings, make_xor
from experiments.common import random_splits, standardize

# Rows to train on at most, and to test on.
TRAIN_ROWS = 500
TEST_ROWS = 2000
# Part of a set without published splits that is trained on.
TRAIN_SHARE = 0.6


@dataclass(frozen=True)
class Part:
    """One split of one set.

    groups : of the training rows, where some belong together
    overlap : expected part of the test rows that two splits have in common
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    groups: np.ndarray | None = None
    overlap: float = 0.0


Draw = Callable[[int, int], tuple[np.ndarray, np.ndarray]]


def _corners(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """20 of 500 columns matter, as in the feature-selection challenge of 2003.

    32 clouds on the corners of a five-dimensional cube, their classes drawn at random,
    16 of each: 5 columns with the points, 15 with sums of them, 480 of noise, and one
    label in a hundred wrong. scikit-learn's `make_classification`, made after the same
    model, deals classes to the corners in turn: there one column tells them apart.
    """
    rng = np.random.default_rng([2, seed])
    corner = rng.permutation(n) % 32
    signs = 2.0 * (corner[:, None] >> np.arange(5) & 1) - 1.0
    own = 2.0 * signs + rng.standard_normal((n, 5))
    sums = own @ rng.uniform(-1.0, 1.0, (5, 15))
    y = (rng.permutation(32) % 2)[corner]
    wrong = rng.random(n) < 0.01
    noise = rng.standard_normal((n, 480))
    return np.hstack([own, sums, noise]), np.where(wrong, 1 - y, y)


def _classification(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        n, 20, n_informative=6, n_redundant=4, n_clusters_per_class=3, random_state=seed
    )


GENERATORS: dict[str, Draw] = {
    "moons": lambda n, seed: make_moons(n, noise=0.2, random_state=seed),
    "moons + 10 noise": lambda n, seed: make_moons_with_noise(n, random_state=seed),
    "rings + 8 noise": lambda n, seed: make_rings(
        n, noise=0.2, n_noise=8, random_state=seed
    ),
    "xor + 8 noise": lambda n, seed: make_xor(n, n_noise=8, random_state=seed),
    "20 of 500": _corners,
    "make_classification": _classification,
}

PUBLISHED = (
    "ida_banana",
    "ida_breast_cancer",
    "ida_diabetis",
    "ida_heart",
    "ida_image",
    "ida_splice",
    "ida_thyroid",
    "heart_statlog",
    "pima_diabetes",
    "australian",
    "ionosphere",
    "breast_cancer_wisconsin_original",
    "fourclass",
    "parkinsons",
    "svmguide1",
    "magic04",
    "mushrooms",
    "a1a",
    "eeg_eye_state",
    "seeds",
    "iris",
    "wine",
    "breast_cancer",
    "digits",
)

SETS = (*PUBLISHED, *GENERATORS)

# The same rows as another set, in other splits: no second witness in a test on ranks.
TWINS = {"heart_statlog": "ida_heart", "pima_diabetes": "ida_diabetis"}


def part(name: str, split: int, rows: int = TRAIN_ROWS) -> Part:
    """Split number `split` of a set, with `rows` training rows at most."""
    if name in GENERATORS:
        X, y = GENERATORS[name](TRAIN_ROWS + TEST_ROWS, split)
        train, test = np.split(np.arange(len(y)), [TRAIN_ROWS])
        groups, overlap = None, 0.0
    else:
        X, y, groups, published = _loaded(name)
        train, test = _split(y, groups, published, split)
        test = _fewer(y, test, TEST_ROWS, split)
        overlap = len(test) / len(y)
    train = _fewer(y, train, rows, split)
    X = standardize(X, train)
    own = None if groups is None else groups[train]
    return Part(X[train], y[train], X[test], y[test], own, overlap)


@lru_cache(maxsize=2)
def _loaded(name: str) -> tuple[np.ndarray, np.ndarray, Any, Any]:
    """Complete rows, dense; an official test part is put to the rest."""
    data = load(name)
    X, y = data.X, data.y
    if data.X_test is not None:
        stack = sparse.vstack if sparse.issparse(X) else np.vstack
        X, y = stack([X, data.X_test]), np.concatenate([y, data.y_test])
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    complete = ~np.isnan(X).any(axis=1)
    groups = None if data.groups is None else data.groups[complete]
    return X[complete], y[complete], groups, data.splits if complete.all() else None


def _split(
    y: np.ndarray, groups: Any, published: Any, split: int
) -> tuple[np.ndarray, np.ndarray]:
    """A published split, or a random one of the same shares."""
    if published is not None and split < len(published):
        return published[split]
    if groups is not None:
        fold = StratifiedGroupKFold(3, shuffle=True, random_state=split)
        return next(iter(fold.split(y[:, None], y, groups)))
    count = len(published[0][0]) if published else round(TRAIN_SHARE * len(y))
    return random_splits(y, [count, len(y) - count], split + 1)[split]


def _fewer(y: np.ndarray, rows: np.ndarray, limit: int, split: int) -> np.ndarray:
    """At most `limit` of the rows, every class in its share."""
    if len(rows) <= limit:
        return rows
    rng = np.random.default_rng([1, split])
    order = np.lexsort((rng.permutation(len(rows)), y[rows]))
    places = np.linspace(0, len(rows) - 1, limit).round().astype(int)
    return np.sort(rows[order[places]])
