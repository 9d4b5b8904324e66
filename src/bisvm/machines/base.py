"""Training problems, whatever their coefficients stand for.

A *machine* is a batch of q convex training problems, its columns, on the same n points:

    E_k(f) = 1/2 |f|^2 + rho/2 b^2 + sum_i W_ik loss(f(x_i), Y_ik),      k = 1..q.

A column is one split of one class task. All columns share the data (one Gram matrix)
and differ only by their labels Y and weights W: a point that is held out, or belongs
to neither class of a pair, has weight zero. C, class weights and sample weights are in
W.

Solvers and the adjoint only need the *linearisation* of a machine at fitted values F,
the weighted least-squares problem

    1/2 |f|^2 + rho/2 b^2 + sum_i S_ik (f_i - F_ik) + 1/2 D_ik (f_i - F_ik)^2

with S = W loss'(F, Y) and D = W loss''(F, Y). It depends on F alone, so a solve may
start from the fitted values of another machine: those of the previous hyperparameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import add
from typing import Literal, NamedTuple, Self, TypeVar

import numpy as np

from bisvm.core.types import Array
from bisvm.losses import Loss

Intercept = Literal["free", "penalized", "none"]

# Precision of a free intercept, as a share of the total weight: far below any effect,
# but it makes the solution unique where no point determines the intercept.
INTERCEPT_RIDGE = 1e-12


@dataclass(frozen=True)
class Coefficients:
    """A solution or direction: coef (m, q) and intercept (q,)."""

    coef: Array
    intercept: Array

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.coef, self.intercept

    def __sub__(self, other: Coefficients) -> Coefficients:
        return Coefficients(self.coef - other.coef, self.intercept - other.intercept)

    def step(self, direction: Coefficients, length: Array | float) -> Coefficients:
        """self + length * direction, with one length for each column."""
        return Coefficients(
            self.coef + length * direction.coef,
            self.intercept + length * direction.intercept,
        )

    def select(self, columns: Array | Sequence[int]) -> Coefficients:
        """Return these columns alone."""
        return _select(self, columns)

    def put(self, columns: Array, part: Coefficients) -> Coefficients:
        """Return a copy with these columns replaced."""
        return _put(self, columns, part)


@dataclass(frozen=True)
class Tangent:
    """Weighted losses at fitted values F, their slopes S and curvatures D: (n, q)."""

    fitted: Array
    losses: Array
    slope: Array
    curvature: Array

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.fitted, self.losses, self.slope, self.curvature

    @property
    def value(self) -> Array:
        """Summed loss of every column: (q,)."""
        total: Array = self.losses.sum(axis=0)
        return total

    @cached_property
    def total_slope(self) -> Array:
        """1'S of every column: (q,)."""
        total: Array = self.slope.sum(axis=0)
        return total

    @cached_property
    def total_curvature(self) -> Array:
        """1'D of every column: (q,)."""
        total: Array = self.curvature.sum(axis=0)
        return total

    def select(self, columns: Array | Sequence[int]) -> Tangent:
        """Return these columns alone."""
        return _select(self, columns)

    def put(self, columns: Array, part: Tangent) -> Tangent:
        """Return a copy with these columns replaced."""
        return _put(self, columns, part)


Record = TypeVar("Record", Coefficients, Tangent)


def _select(record: Record, columns: Array | Sequence[int]) -> Record:
    """These columns of every array of a record."""
    return type(record)(*[array[..., columns] for array in record.arrays])


def _put(record: Record, columns: Array, part: Record) -> Record:
    arrays = [array.copy() for array in record.arrays]
    for array, own in zip(arrays, part.arrays, strict=True):
        array[..., columns] = own
    return type(record)(*arrays)


class Parabola(NamedTuple):
    """1/2 |x + t d|^2 + rho/2 (b + t b_d)^2 along a direction d: arrays (q,).

    linear, quadratic : its derivative at t = 0, and its second derivative
    start : dE/dt at t = 0, losses included
    size : sum of the absolute values of the terms of E, which rounding is relative to
    """

    linear: Array
    quadratic: Array
    start: Array
    size: Array


@dataclass(frozen=True)
class Adjoint:
    """How the upper level reacts to a perturbation of the lower level's optimality.

    `function` is the adjoint function in the coefficients of the machine, and
    `values` (n, q) that function at the data points, intercept included. `pull` (n, q)
    is D times the values for an exact loss, where D is infinite on the margin, and the
    values are zero there.
    """

    function: Coefficients
    values: Array
    pull: Array | None = None


@dataclass(frozen=True)
class Sensitivity:
    """Derivative of the upper level with respect to the parts of a machine.

    weights : (n, q), d/d log W_ik
    precision : (d,), d/d log rho_d of a linear machine
    intercept_precision : d/d log rho of a penalised intercept
    kernel : d/d theta of the kernel
    loss : d/d log of the hyperparameters of the loss
    """

    weights: Array
    precision: Array | None = None
    intercept_precision: float = 0.0
    kernel: Array | None = None
    loss: tuple[float, ...] = ()

    def __add__(self, other: Sensitivity) -> Sensitivity:
        """Add another one; a part that one of them lacks is that of the other."""
        of_losses = tuple(map(add, self.loss, other.loss))
        return Sensitivity(
            self.weights + other.weights,
            _sum(self.precision, other.precision),
            self.intercept_precision + other.intercept_precision,
            _sum(self.kernel, other.kernel),
            of_losses or self.loss or other.loss,
        )


def _sum(first: Array | None, second: Array | None) -> Array | None:
    if first is None or second is None:
        return second if first is None else first
    total: Array = first + second
    return total


@dataclass(frozen=True)
class Leverages(ABC):
    """How far each row's own loss moves its fitted value, to second order.

    With G = (K^-1 + D)^-1, bordered by the intercept, a row's loss of slope s moves
    the fitted values by -s G e_i.

    own : (n, q), G_ii where it was asked for, 0 elsewhere
    rest : (n, q), 1 - D_i G_ii > 0 there, 1 elsewhere
    """

    own: Array
    rest: Array

    @abstractmethod
    def pullback(self, weights: Array) -> tuple[Array, Sensitivity]:
        """Differentiate sum_ik weights_ik G_iik.

        Returns the derivative by the curvatures D, (n, q), and that by the other parts
        of the machine at fixed D.
        """


class Linearization(ABC):
    """The least-squares problem that is tangent to a machine at fitted values F."""

    @abstractmethod
    def minimizer(self) -> Coefficients:
        """Minimise the model: the Newton point."""

    @abstractmethod
    def direction(self, x: Coefficients) -> Coefficients:
        """Return the direction to the minimiser from x, whose fitted values are F."""

    @abstractmethod
    def adjoint(self, cotangent: Array) -> Adjoint:
        """Return the adjoint for dH/dF = cotangent (n, q): one solve per column."""

    def leverages(self, where: Array) -> Leverages:
        """Return G_ii and 1 - D_i G_ii at these entries; where : mask (n, q)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Machine(ABC):
    """A batch of training problems; the module's docstring explains the notation."""

    labels: Array
    weights: Array
    loss: Loss
    intercept: Intercept

    @property
    def n_columns(self) -> int:
        """q, the number of problems: one for each task and fold."""
        return int(self.labels.shape[1])

    @property
    def has_intercept(self) -> bool:
        return self.intercept != "none"

    def select(self, columns: Array | Sequence[int]) -> Self:
        """Return the machine of these columns alone."""
        return replace(
            self,
            labels=self.labels[:, columns],
            weights=self.weights[:, columns],
        )

    @abstractmethod
    def fit_values(self, x: Coefficients) -> Array:
        """F = f(x_i), intercept included."""

    def precise_values(self, x: Coefficients) -> Array:
        """Return F as sums in double precision, whatever that of the machine."""
        return self.fit_values(x)

    @abstractmethod
    def inner(self, x: Coefficients, y: Coefficients, y_values: Array) -> Array:
        """<x, y> in the regulariser's inner product; y_values are y's fitted values."""

    @abstractmethod
    def loss_gradient(self, tangent: Tangent) -> Coefficients:
        """Gradient of the summed loss in the inner product of `metric`."""

    @abstractmethod
    def metric(self, x: Coefficients, x_values: Array) -> Array:
        """|x|^2 in the inner product of `loss_gradient` and `shrink`."""

    @abstractmethod
    def shrink(self, x: Coefficients, step: Array) -> Coefficients:
        """Proximal map of step * regulariser."""

    @abstractmethod
    def residual(self, x: Coefficients, tangent: Tangent) -> Array:
        """Distance from optimality, a number without units for every column."""

    @abstractmethod
    def linearize(self, tangent: Tangent) -> Linearization:
        """Return the least-squares problem that is tangent at F."""

    @abstractmethod
    def sensitivity(
        self, x: Coefficients, tangent: Tangent, adjoint: Adjoint, cotangent: Array
    ) -> Sensitivity:
        """Differentiate the upper level implicitly."""

    @abstractmethod
    def envelope(self, x: Coefficients, tangent: Tangent) -> Sensitivity:
        """Differentiate the optimum sum_k E_k itself.

        x is optimal, so the derivative of x does not enter.
        """

    def rounding(self, x: Coefficients) -> float:
        """Error of fitted values in single precision, roughly; 0 in double."""
        return 0.0

    def within(self, rtol: float) -> Self:
        """Return the machine with iterative solves to this relative residual.

        Factorised systems stay exact.
        """
        return self

    def with_loss(self, loss: Loss) -> Self:
        """Return the same machine with another loss."""
        return replace(self, loss=loss)

    def tangent(self, fitted: Array) -> Tangent:
        """W loss(F, Y), with its first two derivatives by F."""
        return Tangent(fitted, *self.loss.weighted(fitted, self.labels, self.weights))

    def along(
        self, x: Coefficients, tangent: Tangent, d: Coefficients, d_values: Array
    ) -> Parabola:
        """Return the regulariser on the line x + t d; d_values are d's fitted values.

        `tangent` is that at x.
        """
        linear = self.inner(x, d, d_values)
        size = column_dots(np.abs(tangent.slope), np.abs(tangent.fitted))
        return Parabola(
            linear,
            self.inner(d, d, d_values),
            linear + column_dots(tangent.slope, d_values),
            self.inner(x, x, tangent.fitted) + size,
        )

    def value(self, x: Coefficients, tangent: Tangent) -> Array:
        """E_k, the training objective of every column."""
        energy: Array = 0.5 * self.inner(x, x, tangent.fitted) + tangent.value
        return energy

    def cold_start(self) -> Array:
        """Fitted values where the loss is most curved.

        The first Newton point from there is the least-squares machine.
        """
        return self.loss.most_curved(self.labels)

    @cached_property
    def intercept_precision(self) -> Array:
        """rho of every column: (q,)."""
        if self.intercept == "penalized":
            return np.ones(self.n_columns)
        return INTERCEPT_RIDGE * self.total_weight

    @cached_property
    def total_weight(self) -> Array:
        """sum_i W_ik: (q,)."""
        total: Array = self.weights.sum(axis=0)
        return total

    def intercept_residual(self, x: Coefficients, slope: Array) -> Array:
        """|1'S + rho b| / sum W, for 1'S = slope."""
        balance = slope + self.intercept_precision * x.intercept
        out: Array = np.abs(balance) / self.total_weight
        return out

    def weights_envelope(self, x: Coefficients, tangent: Tangent) -> Array:
        """dE/d log W_ik = W_ik loss_ik, plus the ridge of a free intercept."""
        out = tangent.losses.copy()
        if self.intercept == "free":
            out += 0.5 * INTERCEPT_RIDGE * x.intercept**2 * self.weights
        return out

    def loss_envelope(self, tangent: Tangent) -> tuple[float, ...]:
        """dE/d log p = sum_ik W_ik dl_ik/d log p, for hyperparameters p of the loss."""
        at = tangent.fitted, self.labels, tangent.losses, tangent.slope
        return tuple(float(d.sum()) for d in self.loss.value_by_parameters(*at))

    def loss_sensitivity(self, tangent: Tangent, adjoint: Adjoint) -> tuple[float, ...]:
        """dH/d log p = -sum_ik lambda_ik dS_ik/d log p, linear in S and D."""
        at, values = (tangent.fitted, self.labels), adjoint.values
        if adjoint.pull is not None:
            terms = tangent.slope * values, adjoint.pull
            every = self.loss.slope_by_parameters(*at, *terms)
            return tuple(-float(np.sum(d)) for d in every)
        every = self.loss.slope_by_parameters(*at, tangent.slope, tangent.curvature)
        return tuple(-float(np.sum(values * d)) for d in every)

    def weights_sensitivity(
        self, x: Coefficients, tangent: Tangent, adjoint: Adjoint
    ) -> Array:
        """dH/d log W_ik = -S_ik lambda_ik, plus the ridge of a free intercept."""
        out: Array = -tangent.slope * adjoint.values
        if self.intercept == "free":
            pull = INTERCEPT_RIDGE * x.intercept * adjoint.function.intercept
            out -= pull * self.weights
        return out


def column_dots(A: Array, B: Array) -> Array:
    """a_k'b_k for every column k."""
    dots: Array = np.einsum("ik,ik->k", A, B)
    return dots
