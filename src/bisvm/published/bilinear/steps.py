"""Half steps: a linear SVM in the maps, or in the filters, by a solver with a name.

    SVM(machine)  ->  argmin over (w, b) of  lambda/2 |w|^2 + sum_i W_i loss(y_i F_i)

A *step* gets the linear machine of one half and returns its coefficients.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from bisvm.core.parts import Part, resolve
from bisvm.core.types import Array
from bisvm.losses import Hinge, Loss, SquaredHinge
from bisvm.machines import LinearMachine
from bisvm.published.pegasos import pegasos
from bisvm.solvers import Newton


class HalfStep(Part):
    """Solves the linear SVM of one half.

    losses : types of the losses that it can minimise; the first is its own choice
    """

    losses: ClassVar[tuple[type[Loss], ...]] = (Loss,)

    def check(self, loss: Loss) -> None:
        if not isinstance(loss, self.losses):
            known = " or ".join(one.__name__ for one in self.losses)
            raise ValueError(
                f"{type(self).__name__} minimises {known}, not {loss!r}: change the "
                "loss, or use solver='newton', which takes every smooth one."
            )

    def solve(
        self, machine: LinearMachine, fitted: Array | None, seed: int
    ) -> tuple[Array, float]:
        """Coefficients and intercept; `fitted` are decision values to start from."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class NewtonStep(HalfStep):
    """Newton's method on the active set, for every twice differentiable loss."""

    tol: float = 1e-7

    def check(self, loss: Loss) -> None:
        Newton().check(loss)

    def solve(
        self, machine: LinearMachine, fitted: Array | None, seed: int
    ) -> tuple[Array, float]:
        start = None if fitted is None else fitted[:, None]
        x = Newton().solve(machine, start, self.tol).x
        return x.coef[:, 0], float(x.intercept[0])


@dataclass(eq=False, repr=False)
class PegasosStep(HalfStep):
    """Pegasos, from scratch every time, as Sugg (2018) does.

    Parameters
    ----------
    n_iter : int
        Steps of one solve; Sugg takes 1e5.
    projection : bool
        The optional projection, which Sugg includes.
    """

    losses = (Hinge,)

    n_iter: int = 100_000
    projection: bool = True

    def solve(
        self, machine: LinearMachine, fitted: Array | None, seed: int
    ) -> tuple[Array, float]:
        return pegasos(
            features(machine),
            machine.labels[:, 0],
            float(machine.precision[0]),
            self.n_iter,
            self.projection,
            seed,
            sample_weight=machine.weights[:, 0],
        )[:2]


@dataclass(eq=False, repr=False)
class LiblinearStep(HalfStep):
    """scikit-learn's LinearSVC: dual coordinate descent on the exact hinge.

    LIBLINEAR penalises the intercept. A constant feature of size `intercept_scaling`
    makes that penalty small, and after the solve the intercept is moved to where the
    sum of the losses is least, for the coefficients found.

    Parameters
    ----------
    tol, max_iter : as in LinearSVC
    intercept_scaling : float
    """

    losses = (Hinge, SquaredHinge)

    tol: float = 1e-4
    max_iter: int = 2000
    intercept_scaling: float = 10.0

    def solve(
        self, machine: LinearMachine, fitted: Array | None, seed: int
    ) -> tuple[Array, float]:
        X, y = features(machine), machine.labels[:, 0]
        hinge = isinstance(machine.loss, Hinge)
        weights = machine.weights[:, 0]
        svm = LinearSVC(
            loss="hinge" if hinge else "squared_hinge",
            C=float(weights.mean() / machine.precision[0]),
            dual=True,
            tol=self.tol,
            max_iter=self.max_iter,
            intercept_scaling=self.intercept_scaling,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            svm.fit(X, y, sample_weight=weights / weights.mean())
        w = svm.coef_[0]
        return w, best_intercept(machine, X @ w, float(svm.intercept_[0]))


def features(machine: LinearMachine) -> Array:
    """The machine's rows as one array, (n, positions) at the most."""
    if isinstance(machine.X, Array):
        return machine.X
    return np.ascontiguousarray(machine.X[:])


def best_intercept(machine: LinearMachine, scores: Array, start: float) -> float:
    """argmin over b of sum_i W_i loss(y_i (scores_i + b)), by bisection on its slope.

    The slope falls from positive to negative as b falls; the bracket grows from
    `start`. Where it is zero on an interval, any point of it is a minimum.
    """
    labels, weights = machine.labels[:, 0], machine.weights[:, 0]

    def slope(b: float) -> float:
        return float(weights @ machine.loss.evaluate(scores + b, labels)[1])

    width, limit = 1e-3, 2.0 * (1.0 + float(np.abs(scores).max()))
    low = high = start
    while slope(low) > 0 and low > -limit:
        low, width = low - width, 2 * width
    while slope(high) < 0 and high < limit:
        high, width = high + width, 2 * width
    while high - low > 1e-12 * max(1.0, abs(low), abs(high)):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return 0.5 * (low + high)


STEPS: dict[str, Callable[[], HalfStep]] = {
    "newton": NewtonStep,
    "pegasos": PegasosStep,
    "liblinear": LiblinearStep,
}


def get_step(step: str | HalfStep) -> HalfStep:
    """Return the step of that name, or the object given.

    >>> get_step("newton")
    NewtonStep()
    """
    resolved: HalfStep = resolve("solver", step, STEPS, HalfStep)
    return resolved


def own_loss(step: HalfStep) -> Loss:
    """Return the loss that a step minimises by default."""
    return Hinge().rounded() if step.losses == (Loss,) else step.losses[0]()
