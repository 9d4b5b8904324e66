"""A bilevel program with its data and its splits, and what one evaluation returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Required, TypedDict, Unpack

import numpy as np

from bisvm.core.parts import Parameter, Value
from bisvm.core.types import Array, Matrix
from bisvm.criteria import Criterion
from bisvm.criteria.priors import Prior
from bisvm.data.columns import FoldColumns, SampleGroups, equal_shares, row_kinds
from bisvm.data.matrices import Inputs, RowBlocks, dense_if_small
from bisvm.kernels import Precomputed
from bisvm.machines import Machine
from bisvm.machines.approximation import Approximation
from bisvm.machines.model import Frame, Model, RowFrame
from bisvm.solvers import Solver

# Rows of blocks from which starts and bounds of a kernel's parameters are computed.
SEEN_ROWS = 5000
# Rows from which on single precision is faster than its rounding errors cost.
SINGLE_ROWS = 500


@dataclass(frozen=True)
class Landmarks:
    """Rows to which a machine is restricted, and the theta they were chosen for."""

    rows: Array
    theta: Array


@dataclass(frozen=True)
class Evaluation:
    """H at one theta, and how it was computed.

    value : H, prior included
    gradient : dH/dtheta
    shares : contribution of every observation, a row or a group of rows, to the
        criterion
    share_weights : the observations' weights in it; they sum to one
    criterion : H without the prior
    residual : largest optimality residual of the lower level
    solves, iterations : lower-level problems solved, and the solver's steps in all
    error : first-order error of H by that residual; H has been corrected for it, so
        that the remaining error is smaller
    landmarks : rows to which the machines were restricted, or None
    held_out : decision values of held-out points, where `FoldColumns.outside` is true
    """

    theta: Array
    value: float
    gradient: Array
    shares: Array
    share_weights: Array
    criterion: float
    residual: float
    solves: int
    iterations: int
    converged: bool
    seconds: float
    error: float = 0.0
    landmarks: Landmarks | None = None
    held_out: Array = field(default_factory=lambda: np.empty(0))

    @property
    def accuracy(self) -> float:
        """The error relative to the size of H."""
        return self.error / max(abs(self.value), np.finfo(float).tiny)

    @property
    def relative_error(self) -> float:
        """Standard error of the criterion over observations, relative to its size."""
        total = float(self.shares.sum())
        spread = float(np.linalg.norm(self.shares - self.share_weights * total))
        return spread / max(abs(total), np.finfo(float).tiny)


class ProblemOptions(TypedDict, total=False):
    """Fields of a `Problem` that do not depend on the data."""

    criterion: Required[Criterion]
    prior: Prior | None
    solver: Solver
    learn: Iterable[str] | str | None
    feature_names: Sequence[str] | None
    inner_tol: float
    approximation: Approximation | None
    groups: Array | None


@dataclass(frozen=True)
class Problem:
    """A bilevel program with its data and its splits, ready for evaluation.

    parameters : the hyperparameters, with starts and bounds from all data
    X : inputs, in the coordinates `frame` of a linear machine; row numbers if that is
        trained as a kernel machine
    approximation : how landmarks are chosen; None for the whole Gram matrix throughout
    groups : (n,), number of the observation that a row belongs to; None if every row is
        one
    sample_groups : the groups of rows with one C each, or None
    """

    model: Model
    parameters: tuple[Parameter, ...]
    X: Inputs
    frame: Frame | RowFrame | None
    sample_weight: Array
    columns: FoldColumns
    criterion: Criterion
    prior: Prior | None
    solver: Solver
    learn: Iterable[str] | str | None = "all"
    feature_names: Sequence[str] | None = None
    inner_tol: float = 1e-6
    approximation: Approximation | None = None
    groups: Array | None = None
    sample_groups: SampleGroups | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        X: Inputs,
        sample_weight: Array,
        columns: FoldColumns,
        *,
        sample_groups: SampleGroups | None = None,
        **rest: Unpack[ProblemOptions],
    ) -> Problem:
        """Build the program from inputs in their original units."""
        rest["criterion"].check(columns.points)
        frame = model.frame(X, sample_weight)
        seen = _seen(model, X, sample_weight, sample_groups)
        return cls(
            model=model,
            parameters=model.parameters(*seen),
            X=X if frame is None else frame.scaled(X),
            frame=frame,
            sample_weight=sample_weight,
            columns=columns,
            sample_groups=sample_groups,
            **rest,
        )

    def by_rows(self, X: Matrix, tol: float) -> Problem:
        """Return the program of a linear machine with a coefficient for every row.

        X holds the inputs in their original units, and `tol` is the tolerance of a
        kernel machine, as `inner_tol`.
        """
        frame = RowFrame.of(X)
        model = replace(self.model, kernel=Precomputed(frame.gram()))
        numbers = np.arange(float(X.shape[0]))[:, None]
        return replace(self, model=model, X=numbers, frame=frame, inner_tol=tol)

    @property
    def row_kinds(self) -> Array:
        """(n,), the strata of a subsample: labels and groups of samples."""
        kinds, groups = row_kinds(self.columns.labels), self.sample_groups
        return kinds if groups is None else kinds * len(groups) + groups.codes

    @cached_property
    def single(self) -> Array | None:
        """Inputs in single precision; None where they are of no use."""
        loss = self.model.loss
        compiled = loss.compiled and loss.twice_differentiable
        if not compiled or self.model.linear or len(self.sample_weight) < SINGLE_ROWS:
            return None
        if isinstance(self.X, RowBlocks):
            return None
        return self.model.kernel.single(self.X)

    def machine(
        self,
        values: Mapping[str, Value],
        X: Inputs,
        landmarks: Landmarks | None = None,
    ) -> Machine:
        """Return the machine at these hyperparameters, on all rows or on landmarks.

        X holds the inputs in double or single precision.
        """
        return self.model.machine(
            values,
            X,
            self.columns.labels,
            self.columns.train,
            None if landmarks is None else landmarks.rows,
            self.frame,
            self.sample_groups,
        )

    @property
    def approximated(self) -> bool:
        """Whether all machines are restricted to landmarks."""
        return self.approximation is not None and self.approximation.needed

    @property
    def in_blocks(self) -> bool:
        """Whether features of landmarks are computed in blocks of rows."""
        return self.approximation is not None and self.approximation.in_blocks

    def subsample(self, rows: Array) -> Problem:
        """Return the program on some of the rows, without landmarks if they are few."""
        columns, rule = self.columns, self.approximation
        X = self.X[rows]
        return replace(
            self,
            X=dense_if_small(X) if self.model.linear else X,
            approximation=None if rule is None else rule.on_rows(len(rows)),
            sample_weight=self.sample_weight[rows],
            groups=None if self.groups is None else self.groups[rows],
            sample_groups=None
            if self.sample_groups is None
            else self.sample_groups[rows],
            columns=replace(
                columns,
                labels=columns.labels[rows],
                train=columns.train[rows],
                validation=equal_shares(columns.validation[rows]),
            ),
        )


def _seen(
    model: Model, X: Inputs, sample_weight: Array, groups: SampleGroups | None
) -> tuple[Inputs, Array, SampleGroups | None]:
    """The data from which starts and bounds are computed.

    For a kernel on blocks some of the rows, in memory: reading them all again and again
    would take as long as the search.
    """
    if model.linear or not isinstance(X, RowBlocks):
        return X, sample_weight, groups
    n = X.shape[0]
    rows = np.linspace(0, n - 1, min(n, SEEN_ROWS)).astype(int)
    return X[rows], sample_weight[rows], None if groups is None else groups[rows]
