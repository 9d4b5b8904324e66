"""What a training problem is, whatever its coefficients stand for.

A *machine* is a batch of q convex training problems, its columns, on the same n points:

    E_k(f) = 1/2 |f|^2 + rho/2 b^2 + sum_i W_ik loss(Y_ik f(x_i)),      k = 1..q.

A column is one split of one class task. All columns share the data (one Gram matrix),
and differ by their labels Y and weights W alone: a point that is held out, or belongs
to neither class of a pair, has weight zero. C, class weights and sample weights are in
W.

Solvers and the adjoint need of a machine only its *linearisation* at fitted values F,
the weighted least-squares problem

    1/2 |f|^2 + rho/2 b^2 + sum_i S_ik (f_i - F_ik) + 1/2 D_ik (f_i - F_ik)^2

with S = W Y loss'(Y F) and D = W loss''(Y F). It depends on F alone, so that a solve
may start from the fitted values of another machine: those of the last hyperparameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

import numpy as np

from bisvm.losses import Loss
from bisvm.losses.pointwise import losses, step_lengths

Intercept = Literal["free", "penalized", "none"]

# A free intercept is penalised by this share of the total weight: far below any effect,
# but it makes the solution unique where no point holds the intercept in place.
INTERCEPT_RIDGE = 1e-12
# Rows that a line search looks at together.
BLOCK_ROWS = 2**16


@dataclass(frozen=True)
class Coefficients:
    """A solution or direction: coef (m, q) and intercept (q,)."""

    coef: np.ndarray
    intercept: np.ndarray

    def __sub__(self, other: Self) -> Self:
        return replace(
            self,
            coef=self.coef - other.coef,
            intercept=self.intercept - other.intercept,
        )

    def step(self, direction: Self, length: Any) -> Self:
        """self + length * direction, one length a column."""
        return replace(
            self,
            coef=self.coef + length * direction.coef,
            intercept=self.intercept + length * direction.intercept,
        )

    def select(self, columns: Any) -> Self:
        return _select(self, columns)

    def put(self, columns: Any, part: Self) -> Self:
        """A copy with these columns replaced."""
        return _put(self, columns, part)


@dataclass(frozen=True)
class Tangent:
    """Losses at fitted values F: value (q,), slope S and curvature D (n, q)."""

    fitted: np.ndarray
    value: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray

    def select(self, columns: Any) -> Self:
        return _select(self, columns)

    def put(self, columns: Any, part: Self) -> Self:
        return _put(self, columns, part)


def _select(record: Any, columns: Any) -> Any:
    """These columns of every array of a record."""
    arrays = {f.name: getattr(record, f.name) for f in fields(record)}
    return replace(record, **{name: a[..., columns] for name, a in arrays.items()})


def _put(record: Any, columns: Any, part: Any) -> Any:
    changed = {}
    for f in fields(record):
        changed[f.name] = getattr(record, f.name).copy()
        changed[f.name][..., columns] = getattr(part, f.name)
    return replace(record, **changed)


@dataclass(frozen=True)
class Adjoint:
    """How the upper level reacts to a disturbance of the lower level's optimality.

    `function` is the adjoint function in the coefficients of the machine, and
    `values` (n, q) that function at the data points, intercept included.
    """

    function: Coefficients
    values: np.ndarray


@dataclass(frozen=True)
class Sensitivity:
    """Derivative of the upper level with respect to what a machine is made of.

    weights : (n, q), d/d log W_ik
    precision : (d,), d/d log rho_d of a linear machine's penalties
    intercept_precision : d/d log rho of a penalised intercept
    kernel : d/d theta of the kernel
    """

    weights: np.ndarray
    precision: np.ndarray | None = None
    intercept_precision: float = 0.0
    kernel: np.ndarray | None = None


class Linearization(ABC):
    """The least-squares problem that touches a machine at fitted values F."""

    @abstractmethod
    def minimizer(self) -> Coefficients:
        """Where the model is least: the Newton point."""

    @abstractmethod
    def adjoint(self, cotangent: np.ndarray) -> Adjoint:
        """The adjoint function for dH/dF = cotangent (n, q): one solve a column."""


@dataclass(frozen=True)
class Machine(ABC):
    """A batch of training problems; see the module's text for the notation."""

    labels: np.ndarray
    weights: np.ndarray
    loss: Loss
    intercept: Intercept

    @property
    def n_columns(self) -> int:
        return self.labels.shape[1]

    @abstractmethod
    def select(self, columns: Any) -> Self:
        """The machine of these columns alone."""

    @abstractmethod
    def fit_values(self, x: Coefficients) -> np.ndarray:
        """F = f(x_i), intercept included."""

    @abstractmethod
    def inner(
        self, x: Coefficients, y: Coefficients, y_values: np.ndarray
    ) -> np.ndarray:
        """<x, y> in the regulariser's inner product; y_values are y's fitted values."""

    @abstractmethod
    def loss_gradient(self, tangent: Tangent) -> Coefficients:
        """Gradient of the summed loss in the inner product of `metric`."""

    @abstractmethod
    def metric(self, x: Coefficients, x_values: np.ndarray) -> np.ndarray:
        """Squared length of x in which `loss_gradient` and `shrink` are meant."""

    @abstractmethod
    def shrink(self, x: Coefficients, step: np.ndarray) -> Coefficients:
        """Proximal map of step * regulariser."""

    @abstractmethod
    def residual(self, x: Coefficients, tangent: Tangent) -> np.ndarray:
        """How far from optimal, a number without units for every column."""

    @abstractmethod
    def linearize(self, tangent: Tangent) -> Linearization: ...

    @abstractmethod
    def sensitivity(
        self, x: Coefficients, tangent: Tangent, adjoint: Adjoint, cotangent: np.ndarray
    ) -> Sensitivity:
        """The gradient of the upper level, by implicit differentiation."""

    @abstractmethod
    def envelope(self, x: Coefficients, tangent: Tangent) -> Sensitivity:
        """The gradient of the optimum sum_k E_k itself.

        x is optimal, so that its own movement does not count.
        """

    def rounding(self, x: Coefficients) -> float:
        """About how wrong fitted values are by single precision; 0 for double."""
        return 0.0

    def newton(
        self, start: np.ndarray, tol: float, max_iter: int
    ) -> tuple[Coefficients, int, bool] | None:
        """All of Newton's method, if it is compiled: x, its steps, and a limit hit.

        None where it is not, or meets what it cannot do; `solvers.Newton` then goes
        step by step.
        """
        return None

    def within(self, rtol: float) -> Self:
        """The machine with systems solved to this relative residual, if by iterations.

        Those that are factorised are exact.
        """
        return self

    def with_loss(self, loss: Loss) -> Self:
        return replace(self, loss=loss)

    def tangent(self, fitted: np.ndarray) -> Tangent:
        twin = self.loss.twin
        if twin is not None:
            value, slope, curvature = losses(twin, *self._contiguous(fitted))
            return Tangent(fitted, value, slope, curvature)
        value, slope, curvature = self.loss.evaluate(self.labels * fitted)
        value *= self.weights
        slope *= self.weights
        slope *= self.labels
        curvature *= self.weights
        return Tangent(fitted, value.sum(axis=0), slope, curvature)

    def _contiguous(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Arrays (n, q) with labels and weights, in the one layout that is compiled."""
        return tuple(map(np.ascontiguousarray, (*arrays, self.labels, self.weights)))

    def derivatives_along(
        self, fitted: np.ndarray, direction: np.ndarray, length: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """sum_i S_ik V_ik and sum_i D_ik V_ik^2 at fitted values F + length V.

        First and second derivative of the summed losses along V = direction. It goes by
        blocks of rows, so that a line search needs no arrays of its own for all rows.
        """
        first, second = np.zeros((2, self.n_columns))
        for start in range(0, len(fitted), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            labels, weights, V = self.labels[rows], self.weights[rows], direction[rows]
            margins = labels * (fitted[rows] + length * V)
            _, slope, curvature = self.loss.evaluate(margins)
            slope *= weights
            slope *= labels
            curvature *= weights
            first += np.einsum("ik,ik->k", slope, V)
            second += np.einsum("ik,ik->k", curvature, V**2)
        return first, second

    def step_lengths(
        self, fitted: np.ndarray, direction: np.ndarray, *parabola: np.ndarray
    ) -> np.ndarray | None:
        """Compiled line searches, if the loss has a compiled twin."""
        twin = self.loss.twin
        if twin is None:
            return None
        return step_lengths(twin, *self._contiguous(fitted, direction), *parabola)

    def value(self, x: Coefficients, tangent: Tangent) -> np.ndarray:
        """E_k, the training objective of every column."""
        return 0.5 * self.inner(x, x, tangent.fitted) + tangent.value

    def cold_start(self) -> np.ndarray:
        """Fitted values at the margin where the loss is most curved.

        The first Newton point is then the least-squares machine.
        """
        return self.loss.peak * self.labels

    @property
    def intercept_precision(self) -> np.ndarray:
        """rho, one a column."""
        if self.intercept == "penalized":
            return np.ones(self.n_columns)
        return INTERCEPT_RIDGE * self.weights.sum(axis=0)

    def weights_envelope(self, x: Coefficients, tangent: Tangent) -> np.ndarray:
        """dE/d log W_ik = W_ik loss(u_ik), and the ridge of a free intercept."""
        out = self.weights * self.loss.evaluate(self.labels * tangent.fitted)[0]
        if self.intercept == "free":
            out += 0.5 * INTERCEPT_RIDGE * x.intercept**2 * self.weights
        return out

    def weights_sensitivity(
        self, x: Coefficients, tangent: Tangent, adjoint: Adjoint
    ) -> np.ndarray:
        """dH/d log W_ik = -S_ik lambda_ik, and the ridge of a free intercept."""
        out = -tangent.slope * adjoint.values
        if self.intercept == "free":
            pull = INTERCEPT_RIDGE * x.intercept * adjoint.function.intercept
            out -= pull * self.weights
        return out
