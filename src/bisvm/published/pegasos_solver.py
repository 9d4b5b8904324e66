"""Pegasos as a solver of the exact hinge."""

from __future__ import annotations

from typing import Self

import numpy as np

from bisvm.machines import Machine
from bisvm.published.pegasos import pegasos_duals
from bisvm.solvers.dual import DualForm, DualSolver


class Pegasos(DualSolver):
    """Stochastic subgradient steps for linear machines, with or without projection.

    Parameters
    ----------
    epochs : int, default=50
        Steps, in units of the number of points.
    projection : bool, default=True
    seed : int, default=0
    jacobian : {"exact", "published"}
        See `DualSolver`.
    """

    def __init__(
        self,
        epochs: int = 50,
        projection: bool = True,
        seed: int = 0,
        jacobian: str = "exact",
    ):
        self.epochs = epochs
        self.projection = projection
        self.seed = seed
        self.jacobian = jacobian

    def validate(self) -> Self:
        self.check_count("epochs")
        return super().validate()

    def _near(
        self, machine: Machine, form: DualForm, start: np.ndarray | None
    ) -> list[np.ndarray | None]:
        if form.features is None:
            raise ValueError(
                "Pegasos trains linear machines; use solver='smo' or 'dcd' for kernels."
            )
        return [
            self._column(form, y, c)
            for y, c in zip(machine.labels.T, machine.weights.T, strict=True)
        ]

    def _column(self, form: DualForm, y: np.ndarray, c: np.ndarray) -> np.ndarray:
        """lam/2 |w|^2 + weighted mean of losses, lam = 1 / sum of the weights."""
        present = np.flatnonzero(c > 0)
        alpha = np.zeros(len(c))
        alpha[present] = pegasos_duals(
            form.features[present],
            y[present],
            1.0 / c.sum(),
            n_iter=self.epochs * len(present),
            projection=self.projection,
            seed=self.seed,
            intercept="free" if form.bias else "none",
            sample_weight=c[present],
        )
        return np.clip(alpha, 0.0, c)
