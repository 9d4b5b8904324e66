"""Data sets of a review that was out to find where the search fails.

Each set is one of the kinds that the other sets leave out: several frequencies in one
column, heavy tails and far outliers, codes instead of numbers, parts of very different
size, rare classes in thin layers, labels turned in a fine structure, copies of rows.
One rule of the search, which minimum counts where H does not tell two apart, was
chosen on other draws of these kinds; no set was changed or left out after a run.

two frequencies : a carrier whose amplitude changes, and a second, faster one
lattice : triangles of a lattice in the plane
spiral arms : three logarithmic arms in space, wider further out
shells : five spheres round a point, in four dimensions
slanted stripes : stripes across a direction of five columns
cells : 40 cells of space in four classes
discs of all sizes : 24 discs whose widths differ by a factor of a thousand
nested squares : a square of two classes, and two copies of it, each 30 times smaller
category and wave : a category of six, each with its own wave of a number
parity of categories : two categories and a threshold, three idle columns of them
Cauchy columns : angles of columns with very heavy tails
lognormal waves : a wave in the logarithm
codes : 60 codes in no order, each with its own label; an idle column
far outliers : a board whose rows are, one in fifty, 50 times further out
thin layer : a layer round the middle of six columns, one row in seven
specks : eight specks, three rows of a hundred
noisy rings : three classes of rings, 15% of the labels turned
slanted bands : five classes in bands across three columns
six colours : squares in six colours
copies : five copies of every row, 10% of their labels turned
petals : a flower with nine petals
parity of counts : the sum of three counts, modulo three
thresholds : the parity of how many thresholds two columns exceed
small rings : 100 rows of three rings, two idle columns
"""

from __future__ import annotations

import numpy as np

from experiments.answers.data import Drawn
from experiments.answers.later_data import Drawing, Rng


def _positive(value: np.ndarray) -> np.ndarray:
    return (value > 0).astype(int)


def _turned(rng: Rng, y: np.ndarray, share: float, n_classes: int = 2) -> np.ndarray:
    """Labels of which a share is replaced by another one."""
    others = (y + rng.integers(1, n_classes, len(y))) % n_classes
    return np.where(rng.uniform(size=len(y)) < share, others, y)


# --- the plane, and spaces of few dimensions ------------------------------------------


def two_frequencies(rng: Rng, n: int) -> Drawn:
    X = rng.uniform(-1.0, 1.0, (n, 2))
    a, b = X.T
    slow = (1.0 + 0.8 * np.sin(3.0 * b)) * np.sin(17.0 * a)
    fast = 0.7 * np.cos(29.0 * a + 5.0 * b) * np.cos(2.0 * b)
    return X, _positive(slow + fast)


def lattice(rng: Rng, n: int) -> Drawn:
    X = rng.uniform(0.0, 5.0, (n, 2))
    u, v = X[:, 0] - X[:, 1] / np.sqrt(3.0), 2.0 * X[:, 1] / np.sqrt(3.0)
    upper = (u % 1.0 + v % 1.0 > 1.0).astype(int)
    return X, upper ^ np.floor(u + v).astype(int) % 2


def spiral_arms(rng: Rng, n: int) -> Drawn:
    y, t = rng.integers(0, 3, n), rng.uniform(0.0, 4.2, n)
    radius, angle = np.exp(0.5 * t), 2.0 * np.pi * (t / 1.4 + y / 3.0)
    X = np.column_stack([np.cos(angle), np.sin(angle), np.full(n, 0.5)])
    return radius[:, None] * (X + 0.12 * rng.standard_normal((n, 3))), y


def shells(rng: Rng, n: int) -> Drawn:
    number, X = rng.integers(0, 5, n), rng.standard_normal((n, 4))
    radius = 1.0 + number + 0.15 * rng.standard_normal(n)
    return X * (radius / np.linalg.norm(X, axis=1))[:, None], number % 2


def slanted_stripes(rng: Rng, n: int) -> Drawn:
    X = rng.standard_normal((n, 5))
    return X, _positive(np.sin(4.5 * X @ np.array([0.5, -0.6, 0.2, 0.4, 0.43])))


def cells(rng: Rng, n: int) -> Drawn:
    fixed = np.random.default_rng(11)
    centres, labels = fixed.uniform(0.0, 1.0, (40, 3)), fixed.integers(0, 4, 40)
    X = rng.uniform(0.0, 1.0, (n, 3))
    return X, labels[((X[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)]


def discs_of_all_sizes(rng: Rng, n: int) -> Drawn:
    fixed = np.random.default_rng(12)
    centres, widths = fixed.uniform(-1.0, 1.0, (24, 2)), fixed.uniform(-4.0, -0.8, 24)
    which = rng.integers(0, 24, n)
    away = 10.0 ** widths[which][:, None] * rng.standard_normal((n, 2))
    return centres[which] + away, which % 2


def nested_squares(rng: Rng, n: int) -> Drawn:
    level, X = rng.integers(0, 3, n), rng.uniform(-1.0, 1.0, (n, 2))
    return X * (30.0**-level)[:, None], _positive(X[:, 0] * X[:, 1]) ^ level % 2


def petals(rng: Rng, n: int) -> Drawn:
    X = rng.uniform(-1.0, 1.0, (n, 2))
    angle = np.arctan2(X[:, 1], X[:, 0])
    return X, _positive(np.abs(np.cos(4.5 * angle)) - np.hypot(*X.T))


def thin_layer(rng: Rng, n: int) -> Drawn:
    X = rng.standard_normal((n, 6))
    return X, (np.abs(np.linalg.norm(X, axis=1) - 1.5) < 0.22).astype(int)


def specks(rng: Rng, n: int) -> Drawn:
    centres = np.random.default_rng(16).uniform(-1.0, 1.0, (8, 2))
    inside, X = rng.uniform(size=n) < 0.03, rng.uniform(-1.0, 1.0, (n, 2))
    near = centres[rng.integers(0, 8, n)] + 0.02 * rng.standard_normal((n, 2))
    return np.where(inside[:, None], near, X), inside.astype(int)


# --- several classes ------------------------------------------------------------------


def noisy_rings(rng: Rng, n: int) -> Drawn:
    X = rng.uniform(-1.0, 1.0, (n, 2))
    ring = np.floor(6.0 * np.hypot(X[:, 0] - 0.3, X[:, 1])).astype(int)
    return X, _turned(rng, ring % 3, 0.15, 3)


def slanted_bands(rng: Rng, n: int) -> Drawn:
    X = rng.uniform(0.0, 1.0, (n, 3))
    return X, np.floor(12.6 * X @ np.array([0.5, 0.3, 0.2])).astype(int) % 5


def six_colours(rng: Rng, n: int) -> Drawn:
    X = rng.uniform(0.0, 6.0, (n, 2))
    i, j = np.floor(X).astype(int).T
    return X, (2 * i + 3 * j + i * j) % 6


def small_rings(rng: Rng, n: int) -> Drawn:
    y, angle = rng.integers(0, 3, n), rng.uniform(0.0, 2.0 * np.pi, n)
    radius = (1.0 + y) * (1.0 + 0.12 * rng.standard_normal(n))
    ring = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.column_stack([ring, 0.5 * rng.standard_normal((n, 2))]), y


def parity_of_counts(rng: Rng, n: int) -> Drawn:
    X = rng.poisson(1.2, (n, 6))
    return X.astype(float), X[:, :3].sum(axis=1) % 3


# --- odd columns ----------------------------------------------------------------------


def category_and_wave(rng: Rng, n: int) -> Drawn:
    phase = np.random.default_rng(13).uniform(0.0, 6.0, 6)
    speed = np.array([6.0, 12.0, 18.0, 24.0, 6.0, 12.0])
    category, x = rng.integers(0, 6, n), rng.uniform(0.0, 1.0, (n, 2))
    wave = np.sin(speed[category] * x[:, 0] + phase[category])
    y = _positive(wave + 0.3 * (x[:, 1] - 0.5))
    return np.column_stack([np.eye(6)[category], x]), y


def parity_of_categories(rng: Rng, n: int) -> Drawn:
    one, other = rng.integers(0, 8, n), rng.integers(0, 5, n)
    x = rng.lognormal(0.0, 1.0, (n, 3))
    y = (one % 2) ^ (other % 2) ^ (x[:, 0] > 1.0)
    return np.column_stack([np.eye(8)[one], np.eye(5)[other], x]), _turned(rng, y, 0.05)


def cauchy_columns(rng: Rng, n: int) -> Drawn:
    X = rng.standard_cauchy((n, 3))
    angle = np.arctan(X)
    return X, _positive(np.sin(4.0 * angle[:, 0]) * angle[:, 1] + 0.1)


def lognormal_waves(rng: Rng, n: int) -> Drawn:
    logs = rng.normal(0.0, 1.6, (n, 2))
    return np.exp(logs), _positive(np.sin(3.0 * logs[:, 0]) + 0.5 * logs[:, 1])


def codes(rng: Rng, n: int) -> Drawn:
    labels = np.random.default_rng(14).integers(0, 2, 60)
    code, idle = rng.integers(0, 60, n), rng.integers(0, 10, n)
    return np.column_stack([7.0 * code + 1000.0, idle]), labels[code]


def far_outliers(rng: Rng, n: int) -> Drawn:
    X = rng.uniform(-1.0, 1.0, (n, 2))
    y = _positive(np.sin(7.0 * X[:, 0]) * np.sin(5.0 * X[:, 1]))
    return np.where(rng.uniform(size=(n, 1)) < 0.02, 50.0 * X, X), y


def copies(rng: Rng, n: int) -> Drawn:
    X = np.repeat(rng.uniform(-1.0, 1.0, (n // 5 + 1, 2)), 5, axis=0)[:n]
    y = _positive(np.sin(6.0 * X[:, 0]) * np.sin(6.0 * X[:, 1]))
    return X, _turned(rng, y, 0.1)


def thresholds(rng: Rng, n: int) -> Drawn:
    X, limits = rng.standard_normal((n, 4)), np.array([-0.7, 0.2, 0.8])
    return X, (X[:, [0, 2], None] > limits).sum(axis=(1, 2)) % 2


SETS: dict[str, Drawing] = {
    "two frequencies": Drawing(two_frequencies, 201, 1000),
    "lattice": Drawing(lattice, 202, 1000),
    "spiral arms": Drawing(spiral_arms, 203, 1000),
    "shells": Drawing(shells, 204, 1000),
    "slanted stripes": Drawing(slanted_stripes, 205, 1000),
    "cells": Drawing(cells, 206, 1000),
    "discs of all sizes": Drawing(discs_of_all_sizes, 207, 1000),
    "nested squares": Drawing(nested_squares, 208, 1000),
    "category and wave": Drawing(category_and_wave, 209, 1000),
    "parity of categories": Drawing(parity_of_categories, 210, 800),
    "Cauchy columns": Drawing(cauchy_columns, 211, 900, True),
    "lognormal waves": Drawing(lognormal_waves, 212, 900, True),
    "codes": Drawing(codes, 213, 800, True),
    "far outliers": Drawing(far_outliers, 214, 800),
    "thin layer": Drawing(thin_layer, 215, 1500),
    "specks": Drawing(specks, 216, 1500),
    "noisy rings": Drawing(noisy_rings, 217, 900),
    "slanted bands": Drawing(slanted_bands, 218, 900),
    "six colours": Drawing(six_colours, 219, 900),
    "copies": Drawing(copies, 220, 900),
    "petals": Drawing(petals, 221, 800),
    "parity of counts": Drawing(parity_of_counts, 222, 800),
    "thresholds": Drawing(thresholds, 223, 800),
    "small rings": Drawing(small_rings, 224, 200),
}
