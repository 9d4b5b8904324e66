"""Nelder and Mead's simplex method, for objectives with kinks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from bisvm.core.types import Array
from bisvm.optimizers.base import CONVERGED, LIMIT_REACHED, BoundedProblem, Optimizer

_DONE = "There is no lower value of H nearby."
_LIMIT = "The limit of evaluations was reached."


@dataclass(eq=False, repr=False)
class Simplex(Optimizer):
    """Nelder and Mead's method from a simplex with the start at one corner.

    It compares values of H and needs no gradient, so that it does not stop at kinks,
    where a line search finds no decrease. With more than about five hyperparameters it
    is slow.

    Parameters
    ----------
    edge : float, default=0.4
        Length of the first simplex's edges along the axes; negative for edges in the
        negative direction.
    xtol : float, default=0.02
        Stop when all corners are this close to the best, and their values within ftol.
    ftol : float, default=1e-4
        A relative difference of H that does not count.
    max_iter : int, default=100
        Evaluations.

    References
    ----------
    J. A. Nelder, R. Mead, A simplex method for function minimization, The Computer
    Journal 7 (1965) 308-313.
    """

    wants_units = True
    resumes = False

    edge: float = 0.4
    xtol: float = 0.02
    ftol: float = 1e-4
    max_iter: int = 100

    def validate(self) -> Self:
        self.check_positive("xtol", "ftol")
        self.check_count("max_iter")
        if not (np.isfinite(self.edge) and self.edge != 0.0):
            raise ValueError(f"{self}: edge must be finite and not zero.")
        return self

    def within(self, tol: float, max_iter: int) -> Self:
        return self.replace(ftol=0.1 * tol, max_iter=max_iter)

    def _minimize(
        self, problem: BoundedProblem, previous: OptimizeResult | None = None
    ) -> OptimizeResult:
        value, _ = problem.evaluate_start()
        start = problem.start
        known = {start.tobytes(): value}

        def fun(x: Array) -> float:
            if x.tobytes() not in known:
                value, _, finite = problem.evaluate(x)
                known[x.tobytes()] = value if finite else np.inf
            return known[x.tobytes()]

        corners = start + self.edge * np.vstack([0.0 * start, np.eye(start.size)])
        # At a bound the edge points the other way.
        low, high = problem.lower, problem.upper
        corners = np.where(corners > high, 2.0 * start - corners, corners)
        corners = np.where(corners < low, 2.0 * start - corners, corners)
        found = minimize(
            fun,
            start,
            method="Nelder-Mead",
            bounds=np.column_stack([low, high]),
            options={
                "initial_simplex": np.clip(corners, low, high),
                "maxfev": self.max_iter,
                "xatol": self.xtol,
                "fatol": self.ftol * abs(value),
            },
        )
        if found.success:
            return problem.result(int(found.nit), CONVERGED, _DONE)
        return problem.result(int(found.nit), LIMIT_REACHED, _LIMIT)
