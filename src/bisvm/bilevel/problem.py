"""A bilevel program with its data and its splits, before anything is evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bisvm.core.parts import Parameter
from bisvm.criteria import Criterion
from bisvm.criteria.priors import Prior
from bisvm.data.sample_groups import SampleGroups
from bisvm.data.splits import Columns, row_kinds
from bisvm.machines import Machine
from bisvm.machines.approximation import EXACT_ROWS, Approximation
from bisvm.machines.model import Frame, Model
from bisvm.solvers import Solver

# Rows from which on single precision is worth its errors.
SINGLE_ROWS = 500


@dataclass(frozen=True)
class Landmarks:
    """Rows to which a machine is restricted, and the theta they were chosen for."""

    rows: np.ndarray
    theta: np.ndarray


@dataclass(frozen=True)
class Problem:
    """A bilevel program with its data and its splits, ready to be evaluated.

    parameters : the hyperparameters, as the whole data suggest their starts and bounds
    X : inputs, inside the frame of a linear machine
    approximation : how rows are chosen to which a kernel machine may be restricted;
        None for the whole Gram matrix throughout
    groups : (n,), numbers of the observations that rows belong to; None if each is one
    sample_groups : the rows that have a C of their own, or None
    """

    model: Model
    parameters: tuple[Parameter, ...]
    X: Any
    frame: Frame | None
    sample_weight: np.ndarray
    columns: Columns
    criterion: Criterion
    prior: Prior | None
    solver: Solver
    learn: Any = "all"
    feature_names: Sequence[str] | None = None
    inner_tol: float = 1e-6
    approximation: Approximation | None = None
    groups: np.ndarray | None = None
    sample_groups: SampleGroups | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        X: Any,
        sample_weight: np.ndarray,
        columns: Columns,
        *,
        sample_groups: SampleGroups | None = None,
        **rest: Any,
    ) -> Problem:
        """The program on inputs as they were given."""
        rest["criterion"].check(columns.points)
        frame = model.frame(X, sample_weight)
        return cls(
            model=model,
            parameters=model.parameters(X, sample_weight, sample_groups),
            X=X if frame is None else frame.inside(X),
            frame=frame,
            sample_weight=sample_weight,
            columns=columns,
            sample_groups=sample_groups,
            **rest,
        )

    @property
    def row_kinds(self) -> np.ndarray:
        """(n,), what a sample of the rows must hold in its share: labels and groups."""
        kinds, groups = row_kinds(self.columns.labels), self.sample_groups
        return kinds if groups is None else kinds * len(groups) + groups.codes

    @cached_property
    def single(self) -> np.ndarray | None:
        """Inputs in single precision, for machines on all rows; None without a twin."""
        has_twin = self.model.loss.twin is not None
        if not has_twin or self.model.linear or len(self.sample_weight) < SINGLE_ROWS:
            return None
        return self.model.kernel.single(self.X)

    def machine(
        self, values: dict[str, Any], X: Any, landmarks: Landmarks | None = None
    ) -> Machine:
        """The machine at these hyperparameters, on all rows or on landmarks.

        X : the inputs, in double or single precision
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
        """Whether there is no machine but one on landmarks."""
        return self.approximation is not None and self.approximation.needed

    def subsample(self, rows: np.ndarray) -> Problem:
        """The same program on some of the rows; few have their whole Gram matrix."""
        columns = self.columns
        validation = columns.validation[rows]
        share = validation.sum(axis=0) * validation.shape[1]
        return replace(
            self,
            X=self.X[rows],
            approximation=None if len(rows) <= EXACT_ROWS else self.approximation,
            sample_weight=self.sample_weight[rows],
            groups=None if self.groups is None else self.groups[rows],
            sample_groups=None
            if self.sample_groups is None
            else self.sample_groups[rows],
            columns=replace(
                columns,
                labels=columns.labels[rows],
                train=columns.train[rows],
                validation=validation / np.where(share > 0, share, 1.0),
            ),
        )
