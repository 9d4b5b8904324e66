"""Coordinates in which a search moves theta: all of them, or one size per vector."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from bisvm.bilevel.evaluation import Evaluation
from bisvm.core.space import Space
from bisvm.optimizers.base import into_balls


class View(Protocol):
    """Coordinates x in which theta is searched."""

    bounds: np.ndarray
    balls: list[tuple[np.ndarray, float]]
    sizes: np.ndarray

    def expand(self, x: np.ndarray) -> np.ndarray: ...

    def reduce(self, theta: np.ndarray) -> np.ndarray: ...

    def pullback(self, theta: np.ndarray, gradient: np.ndarray) -> np.ndarray: ...


class Whole:
    """theta itself."""

    def __init__(self, space: Space):
        self.bounds = space.bounds
        self.balls = space.balls()
        self.sizes = space.sizes()

    def expand(self, x: np.ndarray) -> np.ndarray:
        return x

    def reduce(self, theta: np.ndarray) -> np.ndarray:
        return theta

    def pullback(self, theta: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return gradient


class InUnits:
    """Another view's coordinates, each divided by its natural step."""

    def __init__(self, view: View):
        self._view = view
        self.sizes = np.ones_like(view.sizes)
        self.bounds = view.bounds / view.sizes[:, None]
        # A ball lies within one parameter, whose entries have one size.
        self.balls = [
            (entries, radius / view.sizes[entries[0]]) for entries, radius in view.balls
        ]

    def expand(self, x: np.ndarray) -> np.ndarray:
        return self._view.expand(x * self._view.sizes)

    def reduce(self, theta: np.ndarray) -> np.ndarray:
        return self._view.reduce(theta) / self._view.sizes

    def pullback(self, theta: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return self._view.pullback(theta, gradient) * self._view.sizes


class Tied:
    """theta through fewer coordinates: one size s for each vector of parameters.

    A vector of log-values becomes log unit + s, as far as its bounds allow: features
    measured in different units get one common relevance.
    """

    def __init__(self, space: Space, *, groups_apart: bool = False):
        vectors = [
            vector
            for vector in space.vectors
            if vector.tied and not (groups_apart and vector.of_groups)
        ]
        n = len(space.theta0)
        owner, self._offset = np.full(n, -1), np.zeros(n)
        for number, vector in enumerate(vectors):
            owner[vector.entries] = number
            self._offset[vector.entries] = vector.log_unit
        single, tied = np.flatnonzero(owner < 0), np.flatnonzero(owner >= 0)
        self._matrix = np.zeros((n, len(single) + len(vectors)))
        self._matrix[single, np.arange(len(single))] = 1.0
        self._matrix[tied, len(single) + owner[tied]] = 1.0
        self.balls = [
            (np.flatnonzero(self._matrix[entries].any(axis=0)), radius)
            for entries, radius in space.balls()
        ]
        # Those that are tied have logarithms, and steps of one.
        self.sizes = space.sizes() @ self._matrix / self._matrix.sum(axis=0)
        self._low, self._high = space.bounds.T
        self.bounds = np.array(
            [
                [
                    (self._low - self._offset)[own].min(),
                    (self._high - self._offset)[own].max(),
                ]
                for own in (self._matrix > 0).T
            ]
        )

    def expand(self, x: np.ndarray) -> np.ndarray:
        return np.clip(self.expand_freely(x), self._low, self._high)

    def expand_freely(self, x: np.ndarray) -> np.ndarray:
        """Without regard to bounds."""
        return self._matrix @ x + self._offset

    def holds(self, entries: np.ndarray) -> np.ndarray:
        """Which coordinates move only entries of theta that are marked here."""
        return ~(self._matrix[~entries] > 0).any(axis=0)

    def reduce(self, theta: np.ndarray) -> np.ndarray:
        """The nearest tied point: the mean over each vector."""
        return (self._matrix.T @ (theta - self._offset)) / self._matrix.sum(axis=0)

    def pullback(self, theta: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Entries held at a bound do not move with the common size."""
        alone = self._matrix.sum(axis=0) == 1
        held = (theta <= self._low) | (theta >= self._high)
        held &= ~self._matrix[:, alone].any(axis=1)
        return self._matrix.T @ np.where(held, 0.0, gradient)


def is_tied(space: Space, theta: np.ndarray) -> bool:
    """Whether every vector of hyperparameters has one common size at theta."""
    tied = Tied(space)
    return bool(np.allclose(tied.expand(tied.reduce(theta)), theta, atol=1e-6))


def upper_gradient(evaluation: Evaluation, view: View) -> float:
    """Largest entry of P(x - g) - x, with g the gradient of log H.

    P is the projection onto bounds and balls: where they hold x, a pull outward does
    not count.
    """
    x = view.reduce(evaluation.theta)
    gradient = view.pullback(evaluation.theta, evaluation.gradient)
    size = max(abs(evaluation.value), np.finfo(float).tiny)
    moved = np.clip(x - gradient / size, view.bounds[:, 0], view.bounds[:, 1])
    return float(np.max(np.abs(into_balls(moved, view.balls) - x), initial=0.0))
