"""Losses with corners: a nearly optimal dual, made exact on its margin set.

A sum of hinges max(0, p - s f), as the hinge (p = 1, s = y) and the tube of the SVR
(p = s y - epsilon, s = 1 and -1) are, has the dual

    max over alpha of  p'alpha - 1/2 beta'K beta,    0 <= alpha_i <= W_i,

beta the sum of s alpha of every point, and 1'beta = 0 for a free intercept. A linear
machine has the kernel sum_d x_d z_d / rho_d, a penalised intercept adds 1 / rho to
either.

A solver of this family first computes an approximate solution, each in its own way; a
path of breakpoints leads from there to the exact one (`bisvm.hinge`). The tangent holds
the sets: slope S = -beta, and an infinite curvature on the margin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy import sparse

from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import Inputs, RowBlocks, each
from bisvm.hinge.active_set import MARGIN, ActiveSet
from bisvm.hinge.gram import DenseGram, Gram, LinearGram, RepeatedGram
from bisvm.hinge.libsvm import dual_of, libsvm
from bisvm.hinge.solution import solve
from bisvm.losses import Loss
from bisvm.machines import Coefficients, KernelMachine, LinearMachine, Machine, Tangent
from bisvm.solvers.base import Solution, Solver
from bisvm.solvers.dcd import dual_coordinate_descent
from bisvm.solvers.newton import Newton

JACOBIANS = ("exact", "published")
# Corners of smooth losses: each is half as wide as the previous one (with a quarter,
# Newton's method takes many times as many steps), until the points inside are not many
# more than can be on the margin; the path does the rest.
_WIDEST, _SHARPER, _SHARPEST = 2.0, 0.5, 1e-5
# Residual with smooth losses: only the sets of the points are needed.
_NEAR_TOL = 1e-4
# Above this residual, in units of the margin, a solution counts as not converged.
_ACCEPTABLE = 1e-4


@dataclass(frozen=True)
class DualForm:
    """The dual of a machine: its kernel, and whether 1'beta = 0.

    features : (n, p), for a linear kernel, which is the product of its rows
    """

    gram: DenseGram | LinearGram
    bias: bool
    features: Inputs | None = None

    @classmethod
    def of(cls, machine: Machine) -> DualForm:
        """Return the dual of a kernel machine or of a linear one."""
        bias = machine.intercept == "free"
        constant = machine.intercept == "penalized"
        if isinstance(machine, KernelMachine):
            gram = machine.gram + 1.0 if constant else machine.gram
            return cls(DenseGram(gram), bias)
        if not isinstance(machine, LinearMachine):
            raise ValueError(f"{type(machine).__name__} has no dual form here.")
        X = features(machine)
        return cls(LinearGram(X), bias, X)

    def repeated(self, times: int) -> Gram:
        """Return the Gram matrix of points with this many hinges each."""
        if times == 1:
            return self.gram
        return RepeatedGram(self.gram, np.tile(np.arange(len(self.gram)), times))


def features(machine: LinearMachine) -> Inputs:
    """Return rows whose products are the machine's kernel, with regulariser |w|^2.

    x_d / sqrt(rho_d), and the constant 1 / sqrt(rho) of a penalised intercept.
    """
    if machine.precision.ndim > 1:
        raise ValueError("A dual needs one precision a feature, not a matrix of them.")
    scale = 1.0 / np.sqrt(machine.precision)
    if machine.intercept != "penalized":
        inputs: Inputs = each(lambda rows: _scaled(rows, scale), machine.X)
        return inputs
    if isinstance(machine.X, RowBlocks):
        raise ValueError(
            "Data in chunks get no column of ones; use fit_intercept=False, or another "
            "optimizer."
        )
    rows = _scaled(machine.X, scale)
    one = 1.0 / np.sqrt(machine.penalized_intercept_precision)
    constant = np.full((rows.shape[0], 1), one)
    if sparse.issparse(rows):
        return sparse.csr_array(sparse.hstack([rows, constant]))
    return np.hstack([rows, constant])


def _scaled(rows: Matrix, scale: Array) -> Matrix:
    if sparse.issparse(rows):
        return sparse.csr_array(rows @ sparse.diags_array(scale))
    return np.ascontiguousarray(rows * scale)


@dataclass(eq=False, repr=False)
class DualSolver(Solver):
    """Solve the dual: a subclass approximates, this class makes it exact.

    Parameters
    ----------
    jacobian : {"exact", "published"}
        What the hypergradient takes for the derivative of alpha. "exact": points on
        the margin move so that they stay there. "published": only points at their
        bound move (Jiang and Siddiqui, equation 23), which leaves out the margin's
        reaction; for machines without a free intercept.

    Notes
    -----
    Solutions are exact whatever `tol` is, up to rounding, which grows with C times the
    squares of the features. If the residual is not small the status is "max_iter", and
    the certificate of an estimator says that it has not converged.
    """

    needs_curvature = False
    # Corners of a loss that the approximation can deal with.
    most_hinges: ClassVar[int] = 2

    jacobian: str = "exact"

    def validate(self) -> Self:
        if self.jacobian not in JACOBIANS:
            raise ValueError(
                f"jacobian={self.jacobian!r} is not known; expected 'exact', or "
                "'published' for the rule of Jiang and Siddiqui."
            )
        return self

    def check(self, loss: Loss) -> None:
        """Refuse a loss that is not a sum of hinges, or of too many."""
        self.validate()
        if not loss.n_hinges:
            raise ValueError(
                f"{type(self).__name__} solves the dual of the exact hinge and of the "
                f"exact tube, and {loss!r} is neither: use loss='hinge', for numbers "
                "'epsilon_insensitive', or solver='newton'."
            )
        if loss.n_hinges > self.most_hinges:
            raise ValueError(
                f"{type(self).__name__} is for the exact hinge, and {loss!r} has "
                f"{loss.n_hinges} corners; use solver='auto'."
            )

    def solve(
        self, machine: Machine, start: Array | None = None, tol: float = 1e-8
    ) -> Solution:
        """Approximate alpha of every column, then make it exact."""
        self.check(machine.loss)
        form = DualForm.of(machine)
        if form.bias and self.jacobian == "published":
            raise ValueError(
                "jacobian='published' is for machines without a free intercept, like "
                "those of Jiang and Siddiqui; use fit_intercept='penalized' or False."
            )
        approximate = self._approximate(machine, form, start)
        gram, n_hinges = form.repeated(machine.loss.n_hinges), machine.loss.n_hinges
        columns, breakpoints = [], 0
        for k, alpha in enumerate(approximate):
            signs, targets = machine.loss.hinges(machine.labels[:, k])
            weights = np.tile(machine.weights[:, k], n_hinges)
            try:
                sets, passed = solve(
                    gram,
                    signs.reshape(-1),
                    weights,
                    alpha,
                    form.bias,
                    targets.reshape(-1),
                )
            except RuntimeError as error:
                # The search treats this theta as a failed step.
                raise np.linalg.LinAlgError(str(error)) from error
            columns.append(sets)
            breakpoints += passed
        return _solution(machine, columns, breakpoints, self.jacobian == "exact")

    def _approximate(
        self, machine: Machine, form: DualForm, start: Array | None
    ) -> list[Array]:
        """Return alpha of every column, approximately: (n_hinges n,)."""
        raise NotImplementedError


class SMO(DualSolver):
    """Sequential minimal optimization, by LIBSVM: kernels with a free intercept.

    Parameters
    ----------
    jacobian : {"exact", "published"}
        See `DualSolver`.
    """

    def _approximate(
        self, machine: Machine, form: DualForm, start: Array | None
    ) -> list[Array]:
        if not form.bias or not isinstance(form.gram, DenseGram):
            raise ValueError(
                "SMO trains kernel machines with a free intercept; use solver='auto' "
                "or 'dcd' for others."
            )
        return [
            libsvm(form.gram, *machine.loss.hinges(y), c)
            for y, c in zip(machine.labels.T, machine.weights.T, strict=True)
        ]


@dataclass(eq=False, repr=False)
class DCD(DualSolver):
    """Dual coordinate descent, with random permutations and shrinking.

    For the exact hinge and machines without a free intercept, linear (dense or CSR) or
    with a kernel.

    Parameters
    ----------
    tol : float, default=1e-4
        Spread of projected gradients at which the path takes over.
    max_sweeps : int, default=300
    seed : int, default=0
    jacobian : {"exact", "published"}
        See `DualSolver`.
    """

    most_hinges: ClassVar[int] = 1

    tol: float = 1e-4
    max_sweeps: int = 300
    seed: int = 0

    def validate(self) -> Self:
        self.check_positive("tol")
        self.check_count("max_sweeps")
        return super().validate()

    def _approximate(
        self, machine: Machine, form: DualForm, start: Array | None
    ) -> list[Array]:
        if form.bias:
            raise ValueError(
                "Dual coordinate descent has no free intercept (its constraint ties "
                "the coordinates together); use fit_intercept='penalized' or False, or "
                "solver='auto'."
            )
        X = form.gram.array if isinstance(form.gram, DenseGram) else form.features
        return [
            dual_coordinate_descent(
                X,
                y,
                c,
                precomputed=form.features is None,
                tol=self.tol,
                max_sweeps=self.max_sweeps,
                seed=self.seed,
            ).alpha
            for y, c in zip(machine.labels.T, machine.weights.T, strict=True)
        ]


class Sharpening(DualSolver):
    """Newton's method on smooth losses whose corners get ever sharper.

    For machines with any intercept. The cost of a step does not depend on C.

    Parameters
    ----------
    jacobian : {"exact", "published"}
        See `DualSolver`.
    """

    def _approximate(
        self, machine: Machine, form: DualForm, start: Array | None
    ) -> list[Array]:
        few = 20 + 2 * (0 if form.features is None else form.features.shape[1])
        eps, newton = _WIDEST, Newton()
        while True:
            smooth = machine.with_loss(machine.loss.rounded(eps))
            found = newton.solve(smooth, start, _NEAR_TOL)
            start = found.fitted
            inside = (found.tangent.curvature > 0).sum(axis=0).max(initial=0)
            if inside <= few or eps <= _SHARPEST:
                break
            eps *= _SHARPER
        return [
            dual_of(machine.loss.hinges(y)[0], -slope)
            for y, slope in zip(machine.labels.T, found.tangent.slope.T, strict=True)
        ]


class Dual(DualSolver):
    """Choose the solver of this family by the machine.

    Sharpening for a linear machine; for a kernel SMO with a free intercept. Without
    one it is dual coordinate descent for the hinge, and sharpening for a tube.

    Parameters
    ----------
    jacobian : {"exact", "published"}
        See `DualSolver`.
    """

    def _approximate(
        self, machine: Machine, form: DualForm, start: Array | None
    ) -> list[Array]:
        several = machine.loss.n_hinges > 1
        own: DualSolver = SMO() if form.bias else DCD()
        if form.features is not None or (several and not form.bias):
            own = Sharpening()
        return own._approximate(machine, form, start)


def _solution(
    machine: Machine, columns: list[ActiveSet], breakpoints: int, exact: bool
) -> Solution:
    shape = machine.loss.n_hinges, len(machine.labels)
    hinges = [(sets.y * sets.alpha).reshape(shape) for sets in columns]
    beta = np.stack([own.sum(axis=0) for own in hinges], axis=1)
    x = Coefficients(beta, _intercepts(machine, columns, beta))
    if isinstance(machine, LinearMachine):
        x = Coefficients(machine.riesz(beta).coef, x.intercept)
    fitted = machine.fit_values(x)
    states = [(sets.state == MARGIN).reshape(shape) for sets in columns]
    on_margin = np.stack([own.any(axis=0) for own in states], axis=1)
    # The published rule: points on the margin do not move at all.
    slope = -beta if exact else np.where(on_margin, 0.0, -beta)
    tangent = Tangent(
        fitted,
        machine.tangent(fitted).losses,
        slope,
        np.where(on_margin & exact, np.inf, 0.0),
    )
    residual = np.array(
        [
            replace(
                sets, gap=sets.y * np.tile(fitted[:, k], shape[0]) - sets.p
            ).residual()
            for k, sets in enumerate(columns)
        ]
    )
    status = "converged" if residual.max() <= _ACCEPTABLE else "max_iter"
    return Solution(x, tangent, residual, breakpoints, status)


def _intercepts(machine: Machine, columns: list[ActiveSet], beta: Array) -> Array:
    if machine.intercept == "penalized":
        return np.asarray(beta.sum(axis=0) / machine.intercept_precision)
    return np.array([sets.b for sets in columns])
