"""Data sets with structure at every scale, from one line to 128 intervals.

Every set is drawn from its own seed; the first half of the rows is for training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold

from bisvm.datasets import make_rings
from experiments.common import random_splits, standardize

Drawn = tuple[np.ndarray, np.ndarray]
Pairs = list[tuple[np.ndarray, np.ndarray]]

FOLDS = 5


@dataclass(frozen=True)
class Halves:
    """Training and test rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray) -> Halves:
        """The first half of the rows for training, the others for testing."""
        half = len(y) // 2
        return cls(X[:half], y[:half], X[half:], y[half:])

    @property
    def folds(self) -> Pairs:
        """Five stratified folds of the training rows, always the same."""
        return frozen_folds(self.X, self.y)


def frozen_folds(X: np.ndarray, y: np.ndarray) -> Pairs:
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return list(splitter.split(X, y))


# --- generators -----------------------------------------------------------------------


def drawn_by(*seed: int, draw: int = 0) -> np.random.Generator:
    """The generator of a set, or of another draw of it."""
    return np.random.default_rng([*seed, draw] if draw else seed)


def sine(n: int, k: float, noise: int = 0, draw: int = 0) -> Drawn:
    """The sign of sin(k x) on [-1, 1], with columns of uniform noise."""
    rng = drawn_by(1, round(k), noise, draw=draw)
    X = rng.uniform(-1.0, 1.0, (n, 1 + noise))
    return X, (np.sin(k * X[:, 0]) > 0).astype(int)


def checkerboard(n: int, squares: int, noise: int = 0, draw: int = 0) -> Drawn:
    """`squares` x `squares` fields on [0, 1]^2, with columns of uniform noise."""
    rng = drawn_by(2, squares, noise, draw=draw)
    X = rng.uniform(0.0, 1.0, (n, 2 + noise))
    return X, np.floor(squares * X[:, :2]).sum(axis=1).astype(int) % 2


def waves(n: int, k: float) -> Drawn:
    """The sign of sin(k r), r the distance from the origin, on [-1, 1]^2."""
    rng = np.random.default_rng([3, round(k)])
    X = rng.uniform(-1.0, 1.0, (n, 2))
    return X, (np.sin(k * np.linalg.norm(X, axis=1)) > 0).astype(int)


def spirals(n: int, turns: float) -> Drawn:
    """Two arms of so many turns, a little noisy."""
    rng = np.random.default_rng([4, round(turns)])
    y = rng.permutation(n) % 2
    along = np.sqrt(rng.uniform(0.02, 1.0, n))
    angle = 2.0 * np.pi * turns * along + np.pi * y
    points = along[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return points + 0.05 / turns * rng.standard_normal((n, 2)), y


def parity(n: int, dimensions: int) -> Drawn:
    """Whether the number of positive entries is even: XOR for two."""
    rng = np.random.default_rng([5, dimensions])
    X = rng.uniform(0.1, 1.0, (n, dimensions)) * rng.choice([-1, 1], (n, dimensions))
    return X, (X > 0).sum(axis=1) % 2


def tight_clusters(n: int) -> Drawn:
    """Thirty tight clusters far apart, their classes drawn at random."""
    rng = np.random.default_rng([6, 0])
    centres = rng.uniform(-100.0, 100.0, (30, 2))
    cluster = rng.permutation(n) % 30
    y = rng.permutation(30) % 2
    return centres[cluster] + 0.5 * rng.standard_normal((n, 2)), y[cluster]


def two_scales(n: int) -> Drawn:
    """Two wide clusters, and a fine checkerboard of 4 x 4 far away from them."""
    rng = np.random.default_rng([6, 1])
    half = n // 2
    y = rng.permutation(half) % 2
    wide = 10.0 * rng.standard_normal((half, 2)) + np.outer(2 * y - 1, [15.0, 0.0])
    fine = rng.uniform(0.0, 4.0, (n - half, 2))
    labels = np.floor(fine).sum(axis=1).astype(int) % 2
    order = rng.permutation(n)
    X = np.vstack([wide, fine + 60.0])
    return X[order], np.concatenate([y, labels])[order]


def pairs_far_apart(n: int) -> Drawn:
    """Forty places on a wide map, at each both classes a thousandth of it apart."""
    rng = np.random.default_rng([6, 2])
    places = rng.uniform(-1000.0, 1000.0, (40, 2))
    direction = rng.uniform(0.0, 2.0 * np.pi, 40)
    own, y = rng.permutation(n) % 40, rng.permutation(n) % 2
    step = np.column_stack([np.cos(direction), np.sin(direction)])[own]
    X = places[own] + (2 * y - 1)[:, None] * step
    return X + 0.3 * rng.standard_normal((n, 2)), y


def linear(n: int) -> Drawn:
    """A plane through ten dimensions, with noise across it."""
    rng = np.random.default_rng([7, 0])
    X = rng.standard_normal((n, 10))
    y = X @ np.linspace(0.0, 1.0, 10) + 0.3 * rng.standard_normal(n) > 0
    return X, y.astype(int)


def real(name: str, standardised: bool, rows: int | None = None) -> Drawn:
    """One of scikit-learn's sets in random order, raw or standardised."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    size = len(y) if rows is None else rows
    # Halves that hold every class in its share.
    parts = random_splits(y, [size // 2, size - size // 2], 1)[0]
    train, order = parts[0], np.concatenate(parts)
    return (standardize(X, train) if standardised else X)[order], y[order]


SETS: dict[str, Callable[[], Drawn]] = {
    "sin(5x)": lambda: sine(500, 5),
    "sin(25x)": lambda: sine(800, 25),
    "sin(60x)": lambda: sine(1200, 60),
    "sin(100x)": lambda: sine(2000, 100),
    "sin(200x)": lambda: sine(2000, 200),
    "sin(5x) + 1 noise": lambda: sine(600, 5, 1),
    "sin(10x) + 2 noise": lambda: sine(1000, 10, 2),
    "sin(25x) + 1 noise": lambda: sine(1400, 25, 1),
    "checkerboard 3": lambda: checkerboard(600, 3),
    "checkerboard 5": lambda: checkerboard(800, 5),
    "checkerboard 7": lambda: checkerboard(1200, 7),
    "checkerboard 9": lambda: checkerboard(1400, 9),
    "checkerboard 10": lambda: checkerboard(1600, 10),
    "checkerboard 3 + 2 noise": lambda: checkerboard(1200, 3, 2),
    "waves 10": lambda: waves(600, 10),
    "waves 20": lambda: waves(1000, 20),
    "waves 30": lambda: waves(1400, 30),
    "waves 45": lambda: waves(1600, 45),
    "spirals 1": lambda: spirals(500, 1),
    "spirals 2": lambda: spirals(600, 2),
    "spirals 4": lambda: spirals(1000, 4),
    "rings 2": lambda: make_rings(500, 2, 0.15, random_state=0),
    "rings 4": lambda: make_rings(700, 4, 0.15, random_state=0),
    "rings 6": lambda: make_rings(1000, 6, 0.15, random_state=0),
    "parity 2": lambda: parity(500, 2),
    "parity 3": lambda: parity(600, 3),
    "parity 5": lambda: parity(1000, 5),
    "parity 8": lambda: parity(1200, 8),
    "parity 10": lambda: parity(1200, 10),
    "tight clusters": lambda: tight_clusters(700),
    "two scales": lambda: two_scales(1000),
    "pairs far apart": lambda: pairs_far_apart(1000),
    "moons": lambda: datasets.make_moons(600, noise=0.25, random_state=0),
    "linear": lambda: linear(600),
    **{
        f"{name} {words}": lambda name=name, rows=rows, standardised=standardised: real(
            name, standardised, rows
        )
        for name, rows in {
            "iris": None,
            "wine": None,
            "breast_cancer": None,
            "digits": 500,
        }.items()
        for words, standardised in {"raw": False, "standardised": True}.items()
    },
}


def halves(name: str) -> Halves:
    """A set by name, as training and test rows."""
    return Halves.of(*SETS[name]())
