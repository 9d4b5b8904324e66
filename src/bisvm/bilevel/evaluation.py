"""What one evaluation of the upper level gives."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bisvm.bilevel.problem import Landmarks


@dataclass(frozen=True)
class Evaluation:
    """H at one theta, and what is worth keeping of how it came about.

    value : H, prior included
    gradient : dH/dtheta
    shares : share of every observation, a row or a group of rows, in the criterion
    share_weights : the observations' weights in it; they sum to one
    criterion : H without the prior
    residual : largest optimality residual of the lower level
    solves, iterations : lower-level problems solved, and the solver's steps in all
    error : by how much that residual made H wrong, to first order; it has been taken
        off, and what is left is smaller
    landmarks : rows to which the machines were restricted, or None
    held_out : decision values of held-out points, where `Columns.outside` is true
    """

    theta: np.ndarray
    value: float
    gradient: np.ndarray
    shares: np.ndarray
    share_weights: np.ndarray
    criterion: float
    residual: float
    solves: int
    iterations: int
    converged: bool
    seconds: float
    error: float = 0.0
    landmarks: Landmarks | None = None
    held_out: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def accuracy(self) -> float:
        """The error relative to the size of H."""
        return self.error / max(abs(self.value), np.finfo(float).tiny)
