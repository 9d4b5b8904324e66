"""Optimizers that move the C of a linear hinge machine by steps on both levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.core.types import Array, Matrix
from bisvm.data.matrices import RowBlocks
from bisvm.losses import Hinge, Loss
from bisvm.machines import LinearMachine
from bisvm.published.both_levels import BothLevels, Levels
from bisvm.solvers.dual import features
from bisvm.solvers.rows import as_matrix, as_rows, check_finite, squares


@dataclass(frozen=True)
class LinearFolds:
    """Linear training problems, one per column.

    X : (n, d), an array or a sparse matrix, which become float64 in C order or CSR; or
        chunks, for methods that read them
    labels : (n, q), +1 or -1
    train : (n, q), relative weight of a point's training loss, 0 where it is held out
    validation : (n, q), weight of a point's validation loss, 0 where it is trained on
    intercept : whether the last column of X is the constant one; its weight is the
        intercept, and is penalised like all others
    """

    X: Matrix | RowBlocks
    labels: Array
    train: Array
    validation: Array
    intercept: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.X, RowBlocks):
            object.__setattr__(self, "X", as_matrix(self.X))
            check_finite("X", self.X)
        shape = np.shape(self.labels)
        if len(shape) != 2 or shape[0] != self.X.shape[0] or shape[1] == 0:
            raise ValueError(
                f"labels have shape {shape}; expected ({self.X.shape[0]}, q), one row "
                "for every row of X and one column for every training problem."
            )
        if not np.isin(self.labels, (-1.0, 1.0)).all():
            raise ValueError(
                "labels must hold +1 and -1 only; map the classes to them first."
            )
        _check_weights("train", self.train, shape)
        _check_weights("validation", self.validation, shape)
        if self.n_features < 1:
            raise ValueError(
                f"X has {self.X.shape[1]} columns, intercept={self.intercept}; "
                "expected at least one feature besides the constant column."
            )

    @property
    def n_features(self) -> int:
        """p, the number of features without the constant one."""
        return int(self.X.shape[1]) - int(self.intercept)


def _check_weights(name: str, weights: Array, shape: tuple[int, ...]) -> None:
    if np.shape(weights) != shape:
        raise ValueError(
            f"{name} has shape {np.shape(weights)}; expected {shape}, that of labels."
        )
    if not (np.isfinite(weights).all() and np.min(weights, initial=0.0) >= 0.0):
        raise ValueError(
            f"{name} holds weights that are negative or not finite; expected finite "
            "ones of at least 0. Use 0 for a point that has no part."
        )
    empty = np.flatnonzero(~np.any(np.asarray(weights) > 0, axis=0))
    if empty.size:
        raise ValueError(
            f"{name} has no positive weight in column {empty[0]}; every column needs "
            "points to train on and points to validate on. Leave the column out."
        )


class Arrays(NamedTuple):
    """`LinearFolds` as compiled loops want them: a training problem is a row.

    rows : those of X (`bisvm.solvers.rows`)
    sizes : (n,), |x_i|^2
    labels, train, validation : (q, n)
    trained, checked : points of positive weight, those of column k between the
        starts k and k + 1
    """

    rows: Any
    sizes: Array
    labels: Array
    train: Array
    validation: Array
    trained: Array
    trained_starts: Array
    checked: Array
    checked_starts: Array


def arrays_of(folds: LinearFolds) -> Arrays:
    X = as_matrix(folds.X)
    rows = as_rows(X)
    train, validation = _by_problem(folds.train), _by_problem(folds.validation)
    return Arrays(
        rows,
        squares(rows, X.shape[0]),
        _by_problem(folds.labels),
        train,
        validation,
        *_positive(train),
        *_positive(validation),
    )


def _by_problem(columns: Array) -> Array:
    return np.ascontiguousarray(np.asarray(columns, dtype=np.float64).T)


def _positive(weights: Array) -> tuple[Array, Array]:
    """Points of positive weight, problem after problem, and where each begins."""
    problem, points = np.nonzero(weights > 0)
    return points, np.searchsorted(problem, np.arange(len(weights) + 1))


class Alternating(BothLevels):
    """Moves the C of a linear machine by steps on both levels.

    Parameters
    ----------
    C_min, C_max : float
        Bounds of C.
    """

    # It has its own start.
    uses_start = False
    # Losses of the lower level that it can step on.
    losses: ClassVar[tuple[type[Loss], ...]] = (Hinge,)

    C_min: Any
    C_max: Any

    def validate(self) -> Self:
        self.check_positive("C_min", "C_max")
        if not self.C_min <= self.C_max:
            raise ValueError(
                f"{type(self).__name__}: expected C_min <= C_max; got "
                f"C_min={self.C_min!r}, C_max={self.C_max!r}."
            )
        return self

    def search(self, levels: Levels, x0: Array) -> OptimizeResult:
        folds = folds_of(levels, repr(self), self.losses)
        return self.for_loss(levels.loss).alternate(folds, seed=levels.seed)

    def alternate(
        self,
        folds: LinearFolds,
        C: float | None = None,
        seed: int = 0,
        *,
        record: bool = False,
    ) -> OptimizeResult:
        """Return the C to which steps on both levels lead.

        Parameters
        ----------
        folds : LinearFolds
        C : float, optional
            The start, clipped to [C_min, C_max]; the method chooses one by default.
        seed : int
            Of all draws. One seed, one answer.
        record : bool
            Whether a single loop also returns the weights after every iteration, as
            `coefs` (iterations, d, q).

        Returns
        -------
        OptimizeResult
            `x`, the array [log C], `C`, `C_path` from the start to the end, `coef`
            (d, q) after the last step, `nit`, `status`, `success`, `message`.
        """
        self.validate()
        if C is not None and not 0.0 < C < math.inf:
            raise ValueError(
                f"C = {C!r}; expected a positive, finite start, C and not log C."
            )
        return self._alternate(folds, C, np.random.default_rng(seed), record)

    def _alternate(
        self,
        folds: LinearFolds,
        C: float | None,
        rng: np.random.Generator,
        record: bool,
    ) -> OptimizeResult:
        raise NotImplementedError

    def within(self, tol: float, max_iter: int) -> Self:
        return self

    def for_loss(self, loss: Loss) -> Self:
        """Return this optimizer for one of the losses that it can step on."""
        return self


def folds_of(
    levels: Levels, method: str, losses: tuple[type[Loss], ...]
) -> LinearFolds:
    """Return the training problems as plain arrays.

    Parameters
    ----------
    levels : Levels
    method : str
        Name of the optimizer, for messages.
    losses : tuple of classes
        Losses of the lower level that it can step on.
    """
    problem, names = levels.objective.problem, levels.objective.names
    model = problem.model
    levels.require(
        f"{method} is for a linear machine with the hinge on both levels and one C: "
        "BilevelLinearSVC(loss='hinge', criterion='hinge', "
        "fit_intercept='penalized' or False, regularization='shared', learn='C')",
        (f"the kernel {model.kernel!r}", model.linear),
        (f"the loss {model.loss!r}", isinstance(model.loss, losses)),
        ("a free intercept", model.intercept != "free"),
        (f"{len(names)} hyperparameters", names == ["C"]),
    )
    machine = model.machine(
        levels.objective.space.values(np.zeros(1)),
        problem.X,
        problem.columns.labels,
        problem.columns.train,
        frame=problem.frame,
        sample_groups=problem.sample_groups,
    )
    assert isinstance(machine, LinearMachine)
    return LinearFolds(
        features(machine),
        problem.columns.labels,
        problem.columns.train,
        problem.columns.validation,
        intercept=model.intercept == "penalized",
    )
