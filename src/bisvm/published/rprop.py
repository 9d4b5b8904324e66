"""RPROP: resilient propagation, descent by the signs of the gradient.

The optimizer of T. Klatzer, Bi-level Optimization for Support Vector Machines, 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.core.types import Array
from bisvm.optimizers.base import (
    CONVERGED,
    LIMIT,
    STUCK,
    BoundedProblem,
    Optimizer,
)


@dataclass(eq=False, repr=False)
class RPROP(Optimizer):
    """One step size per coordinate, adapted by the signs of successive gradients.

    With g_k the gradient in iteration k, for each coordinate::

        step_k = min(increase step_{k-1}, max_step)   g_k g_{k-1} > 0
                 max(decrease step_{k-1}, min_step)   g_k g_{k-1} < 0
                 step_{k-1}                           otherwise
        x_{k+1} = project(x_k - sign(g_k) step_k)

    The size of the gradient does not matter, which makes the method slow near the
    minimum and robust to noisy or badly scaled objectives.

    Parameters
    ----------
    step : float, default=0.1
        First step of every coordinate.
    increase, decrease : float, default=1.2 and 0.5
        Factors on the step when the sign of the derivative stays or changes.
    min_step, max_step : float, default=1e-6 and 1.0
        Limits on the steps. The published 50 is too long in logarithmic coordinates:
        one step would multiply a hyperparameter by e^50.
    max_iter : int, default=200
        Limit on the iterations.
    tol : float, default=1e-3
        Stop when every step is shorter than this.

    References
    ----------
    M. Riedmiller, H. Braun, A direct adaptive method for faster backpropagation
    learning: the RPROP algorithm, ICNN 1993; bounds by projection as in T. Klatzer,
    Bi-level Optimization for Support Vector Machines, 2014, section 4.3.
    """

    wants_units = True

    step: float = 0.1
    increase: float = 1.2
    decrease: float = 0.5
    min_step: float = 1e-6
    max_step: float = 1.0
    max_iter: int = 200
    tol: float = 1e-3

    def validate(self) -> Self:
        self.check_positive(
            "step", "increase", "decrease", "min_step", "max_step", "tol"
        )
        self.check_count("max_iter")
        if not self.decrease < 1.0 <= self.increase:
            raise ValueError(
                "RPROP: expected decrease < 1 <= increase; got "
                f"decrease={self.decrease!r}, increase={self.increase!r}."
            )
        if not self.min_step <= self.step <= self.max_step:
            raise ValueError(
                "RPROP: expected min_step <= step <= max_step; got "
                f"{self.min_step!r}, {self.step!r}, {self.max_step!r}."
            )
        if not self.min_step < self.tol:
            raise ValueError(
                "RPROP: tol must exceed min_step, or no step can ever pass it; got "
                f"tol={self.tol!r}, min_step={self.min_step!r}."
            )
        return self

    def _minimize(
        self, problem: BoundedProblem, previous: OptimizeResult | None = None
    ) -> OptimizeResult:
        x = problem.start
        _, gradient = problem.evaluate_start()
        gradient = problem.projected_gradient(x, gradient)
        steps = np.full_like(x, self.step)
        n_bad = 0
        for nit in range(self.max_iter + 1):
            if not gradient.any():
                return problem.result(nit, CONVERGED, "The projected gradient is zero.")
            if self._all_small(steps, gradient):
                # Steps that shrank before values that are not finite prove nothing.
                if problem.n_not_finite > n_bad:
                    return problem.result(nit, *STUCK)
                return problem.result(nit, CONVERGED, "All steps are below tol.")
            if nit == self.max_iter:
                break
            n_bad = problem.n_not_finite
            x, new_gradient, steps = self._advance(problem, x, gradient, steps)
            steps = self._adapt(steps, gradient, new_gradient)
            gradient = new_gradient
        return problem.result(nit, *LIMIT)

    def _all_small(self, steps: Array, gradient: Array) -> bool:
        # An entry without a gradient does not move: its step says nothing.
        return bool((steps[gradient != 0.0] < self.tol).all())

    def _advance(
        self, problem: BoundedProblem, x: Array, gradient: Array, steps: Array
    ) -> tuple[Array, Array, Array]:
        """Next point, its projected gradient, and the steps, cut until it is finite."""
        while True:
            new = problem.project(x - np.sign(gradient) * steps)
            _, new_gradient, finite = problem.evaluate(new)
            if finite:
                return new, problem.projected_gradient(new, new_gradient), steps
            if self._all_small(steps, gradient):
                return x, gradient, steps
            steps = np.maximum(self.decrease * steps, self.min_step)

    def _adapt(self, steps: Array, old: Array, new: Array) -> Array:
        agreement = np.sign(old) * np.sign(new)
        longer = np.minimum(self.increase * steps, self.max_step)
        shorter = np.maximum(self.decrease * steps, self.min_step)
        return np.where(
            agreement > 0.0, longer, np.where(agreement < 0.0, shorter, steps)
        )
