"""Small data sets, drawn by generators whose streams do not change."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_moons,
)

Pair = tuple[Any, np.ndarray]


@cache
def moons(n: int = 80, noise: float = 0.25, seed: int = 0) -> Pair:
    """Two half moons that overlap."""
    return make_moons(n, noise=noise, random_state=seed)


@cache
def hidden_moons(n: int = 120, n_noise: int = 4) -> Pair:
    """Two half moons, and features without information."""
    X, y = make_moons(n, noise=0.2, random_state=0)
    rng = np.random.RandomState(1)
    return np.hstack([X, rng.standard_normal((n, n_noise))]), y


@cache
def positive(n: int = 70) -> Pair:
    """Shares that sum to one, for kernels on histograms."""
    rng = np.random.RandomState(0)
    y = np.arange(n) % 2
    X = rng.gamma(1.5 + np.outer(y, [1.0, 0.0, 0.5, 0.0]))
    return X / X.sum(axis=1, keepdims=True), y


@cache
def straight(n: int = 150) -> Pair:
    """Two classes with a linear boundary; two of five features say nothing."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((n, 5))
    score = X @ [1.0, -1.0, 0.5, 0.0, 0.0] + 0.7 * rng.standard_normal(n)
    return X, (score > 0).astype(int)


@cache
def rings(n: int = 150) -> Pair:
    """Two rings, one inside the other."""
    rng = np.random.RandomState(0)
    y = np.arange(n) % 2
    angle, radius = 2 * np.pi * rng.rand(n), 1 + y + 0.2 * rng.standard_normal(n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


@cache
def additive(n: int = 240) -> Pair:
    """A sum of waves along features of very different units."""
    rng = np.random.RandomState(0)
    X = rng.uniform(-2.0, 2.0, (n, 4))
    score = np.sin(3.0 * X).sum(axis=1) + 0.2 * rng.standard_normal(n)
    return X * [1.0, 1e2, 1e4, 1e6], (score > 0).astype(int)


@cache
def measured(n: int = 90, n_features: int = 5) -> Pair:
    """Features of different units and origins, many entries zero; named classes."""
    rng = np.random.RandomState(0)
    unit = np.linspace(0.5, 4.0, n_features)
    X = rng.standard_normal((n, n_features)) * unit
    score = X @ (1.0 / np.arange(1, n_features + 1) ** 2)
    y = np.where(score + 0.7 * rng.standard_normal(n) > 0, "yes", "no")
    return np.where(np.abs(X) > 0.5, X, 0.0), y


@cache
def measured_sparse() -> Pair:
    X, y = measured()
    return sparse.csr_array(X), y


@cache
def three(n: int = 75) -> Pair:
    """Three overlapping classes."""
    rng = np.random.RandomState(0)
    y = np.arange(n) % 3
    centres = np.array([[0.0, 1.2], [1.0, -0.6], [-1.0, -0.6]])
    return centres[y] + 0.7 * rng.standard_normal((n, 2)), np.array(list("abc"))[y]


@cache
def iris() -> Pair:
    X, y = load_iris(return_X_y=True)
    return X[::2], y[::2]


@cache
def wine() -> Pair:
    X, y = load_wine(return_X_y=True)
    return X[::2], y[::2]


@cache
def cancer(n: int = 120) -> Pair:
    X, y = load_breast_cancer(return_X_y=True)
    return X[:n, :8], y[:n]


@cache
def rare(n: int = 100) -> Pair:
    """One class in five is rare, and has a name."""
    rng = np.random.RandomState(0)
    sick = np.arange(n) % 5 == 0
    X = rng.standard_normal((n, 3)) + 2.0 * sick[:, None] * [1.0, 0.5, 0.0]
    return X, np.where(sick, "sick", "well")


@cache
def sources(n: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Half moons of which one source has many wrong labels; its name for every row."""
    X, y = make_moons(n, noise=0.2, random_state=0)
    rng = np.random.RandomState(0)
    source = np.array(["clinic", "survey"])[np.arange(n) % 2]
    wrong = (source == "survey") & (rng.rand(n) < 0.4)
    return X, np.where(wrong, 1 - y, y), source


@cache
def signals(n: int = 60, length: int = 24) -> Pair:
    """Slow and fast waves of random phase, with noise."""
    rng = np.random.RandomState(0)
    y = np.arange(n) % 2
    turns = np.outer(np.where(y == 1, 3.5, 2.5), np.arange(length) / length)
    waves = np.sin(2 * np.pi * (turns + rng.rand(n, 1)))
    return waves + 0.5 * rng.standard_normal((n, length)), y


@cache
def images(n: int = 60, n_class: int = 2) -> Pair:
    """Digits of 8 x 8 pixels, flat."""
    X, y = load_digits(n_class=n_class, return_X_y=True)
    return X[:n] / 16.0, y[:n]


@cache
def weights(n: int) -> np.ndarray:
    """Sample weights; some are zero."""
    return np.array([1.0, 0.5, 2.0, 1.0, 0.0])[np.arange(n) % 5]


@cache
def groups(n: int) -> np.ndarray:
    """Numbers of groups of three neighbouring rows."""
    return np.arange(n) // 3
