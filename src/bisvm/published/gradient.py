"""Projected gradients: constant step, Armijo's rule, spectral steps.

The methods of generalised multiple kernel learning: Varma and Babu (2009) with
Armijo's rule, Jain, Vishwanathan and Varma (2012) with spectral steps, and the constant
step of Sugg (2018), algorithm 5.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.core.types import Array
from bisvm.optimizers.base import (
    ABNORMAL,
    CONVERGED,
    LIMIT,
    STUCK,
    BoundedProblem,
    Optimizer,
    backtrack,
)

_CONVERGED = "The projected gradient is below tol."
# Sufficient decrease, as a share of what the slope promises.
_DECREASE = 1e-4
# A step that moves no entry by more than this is not tried.
_SHORTEST = 1e-10
_TINY = 1e-300


class _ProjectedGradient(Optimizer):
    """x_{k+1} = P(x_k - s_k g_k), P the projection onto bounds and balls."""

    projects = True

    step: float
    max_iter: int
    tol: float
    loose: float | None
    tighten: float

    def validate(self) -> Self:
        self.check_positive("step", "tol", "tighten")
        self.check_count("max_iter")
        if self.loose is not None:
            self.check_positive("loose")
        return self

    def within(self, tol: float, max_iter: int) -> Self:
        return self.replace(tol=0.1 * tol, max_iter=max_iter)

    def loosened(self, factor: float, of_gradient: float | None = None) -> Self:
        return self.replace(tol=factor * self.tol)

    def accuracy(self, evaluation: int) -> float | None:
        return None if self.loose is None else self.loose * self.tighten**evaluation

    def _small(
        self, problem: BoundedProblem, x: Array, value: float, gradient: Array
    ) -> bool:
        """Return whether the projected gradient of log H is at most tol."""
        relative = gradient / max(abs(value), np.finfo(float).tiny)
        move = problem.project(x - relative) - x
        return bool(np.max(np.abs(move), initial=0.0) <= self.tol)


@dataclass(eq=False, repr=False)
class GradientDescent(_ProjectedGradient):
    """Constant steps, optionally with Nesterov's momentum.

    v_{k+1} = m v_k - s g(x_k + m v_k),  x_{k+1} = P(x_k + v_{k+1})

    Parameters
    ----------
    step : float, default=0.1
        s, the learning rate.
    momentum : float, default=0.0
        m; 0.9 is usual.
    max_iter : int, default=100
    tol : float, default=1e-5
        Stop where the projected gradient, relative to the value, is at most this.
    batch_size : int, optional
        Rows drawn for every step. The last point is then the answer: values on
        different rows cannot be compared.
    loose : float, optional
        Relative error of the value that an oracle is asked for at the first step; None
        for the usual one.
    tighten : float, default=0.7
        Factor by which this error decreases from step to step.
    """

    step: float = 0.1
    momentum: float = 0.0
    max_iter: int = 100
    tol: float = 1e-5
    batch_size: int | None = None
    loose: float | None = None
    tighten: float = 0.7

    def validate(self) -> Self:
        super().validate()
        if not 0.0 <= self.momentum < 1.0:
            raise ValueError(
                f"momentum must be at least 0 and below 1, got {self.momentum!r}."
            )
        if self.batch_size is not None:
            self.check_count("batch_size")
        return self

    def _minimize(
        self, problem: BoundedProblem, previous: OptimizeResult | None = None
    ) -> OptimizeResult:
        x, step = problem.start, self.step
        velocity = np.zeros_like(x)
        value, gradient = problem.evaluate_start()
        (status, message), nit = LIMIT, 0
        while nit < self.max_iter:
            nit += 1
            if self._small(problem, x, value, gradient):
                status, message = CONVERGED, _CONVERGED
                break
            new = problem.project(x + self.momentum * velocity - step * gradient)
            velocity, x = new - x, new
            ahead = problem.project(x + self.momentum * velocity)
            value, gradient, finite = problem.evaluate(ahead)
            if not finite:
                status, message = STUCK
                break
        last = {} if self.batch_size is None else {"x": x}
        return problem.result(nit, status, message, **last)


def nesterov() -> GradientDescent:
    """Return gradient descent with the usual momentum."""
    return GradientDescent(momentum=0.9)


@dataclass(eq=False, repr=False)
class ArmijoGradient(_ProjectedGradient):
    """Steps that are halved until they lower the objective by Armijo's rule.

    The first trial of a step is twice the last one that was taken.

    Parameters
    ----------
    step : float, default=1.0
        How far the first trial moves the entry with the steepest slope.
    max_iter, tol, loose, tighten :
        As for `GradientDescent`.
    """

    step: float = 1.0
    max_iter: int = 100
    tol: float = 1e-5
    loose: float | None = None
    tighten: float = 0.7

    def _memory(self) -> int:
        return 1

    def _minimize(
        self, problem: BoundedProblem, previous: OptimizeResult | None = None
    ) -> OptimizeResult:
        x = problem.start
        value, gradient = problem.evaluate_start()
        recent = deque([value], maxlen=self._memory())
        length = self.step / max(float(np.max(np.abs(gradient), initial=0.0)), _TINY)
        for nit in range(self.max_iter):
            if self._small(problem, x, value, gradient):
                return problem.result(nit, CONVERGED, _CONVERGED)
            n_bad = problem.n_not_finite
            found = self._search(problem, x, gradient, length, max(recent))
            if found is None:
                if problem.n_not_finite > n_bad:
                    return problem.result(nit, *STUCK)
                return problem.result(
                    nit, ABNORMAL, "The line search found no decrease."
                )
            new, value, new_gradient, taken = found
            length = self._next(new - x, new_gradient - gradient, taken)
            x, gradient = new, new_gradient
            recent.append(value)
        return problem.result(self.max_iter, *LIMIT)

    def _search(
        self,
        problem: BoundedProblem,
        x: Array,
        gradient: Array,
        length: float,
        reference: float,
    ) -> tuple[Array, float, Array, float] | None:
        """Return a low enough point on the projected ray, and the step to it."""

        def attempt(
            length: float,
        ) -> tuple[tuple[Array, float, Array, float] | None, float]:
            new = problem.project(x - length * gradient)
            value, new_gradient, finite = problem.evaluate(new)
            promised = float(gradient @ (x - new))
            if finite and value <= reference - _DECREASE * promised:
                return (new, value, new_gradient, length), 1.0
            return None, 0.5

        steepest = max(float(np.max(np.abs(gradient))), _TINY)
        return backtrack(attempt, length, shortest=_SHORTEST / steepest)

    def _next(self, moved: Array, turned: Array, taken: float) -> float:
        return 2.0 * taken


@dataclass(eq=False, repr=False)
class SpectralGradient(ArmijoGradient):
    """Steps of the length that the last change of the gradient suggests.

    s = |dx|^2 / dx'dg (Barzilai and Borwein), and the objective need only fall below
    the highest of the last few values (Birgin, Martinez and Raydan 2000).

    Parameters
    ----------
    memory : int, default=10
        How many of the last values the next one is compared with.
    step, max_iter, tol, loose, tighten :
        As for `ArmijoGradient`.
    """

    memory: int = 10

    def validate(self) -> Self:
        super().validate()
        self.check_count("memory")
        return self

    def _memory(self) -> int:
        return self.memory

    def _next(self, moved: Array, turned: Array, taken: float) -> float:
        curvature = float(moved @ turned)
        if curvature <= 0.0:
            return 10.0 * taken
        return float((moved @ moved) / curvature)
