"""The input of a search: settings, data, and the bilevel problem that they define."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from bisvm.bilevel.problem import Problem
from bisvm.core.types import Array, Matrix
from bisvm.criteria import Criterion
from bisvm.criteria.priors import Prior
from bisvm.data.chunks import Chunks
from bisvm.data.columns import (
    FoldColumns,
    SampleGroups,
    split_columns,
    training_columns,
)
from bisvm.data.leave_one_out import dealt_folds
from bisvm.data.matrices import Inputs, RowBlocks
from bisvm.data.splits import Split
from bisvm.data.targets import Targets
from bisvm.kernels import Kernel, Precomputed
from bisvm.machines.approximation import (
    Approximation,
    Choice,
    n_in_memory,
    resolve_approximation,
)
from bisvm.machines.linear import DIRECT_LIMIT
from bisvm.machines.model import Model
from bisvm.machines.regularization import PerFeature
from bisvm.optimizers import Optimizer, Scan
from bisvm.search.descent import DescentMethod
from bisvm.solvers import Solver

Grouping = Literal["groups", "classes"]
# One machine for every class, or for every pair of classes.
TaskKind = Literal["ovr", "ovo"]
MultiClass = Literal["auto", "ovr", "ovo"]
# Chosen by the search, a number of starts, or their hyperparameters.
Starts: TypeAlias = Literal["auto"] | int | Sequence[Mapping[str, Any]]
# Linear machines are trained as kernel machines up to this number of rows, if there are
# so many times as many features: their Newton steps then are faster.
WIDE_ROWS = 2000
WIDE = 2
# Active rows of a regression relative to those with two classes: losses of residuals
# are curved at nearly all rows, the default loss of labels at 20 to 60% of them.
ACTIVE_RESIDUALS = 2.5
# An argument as the user gave it.
Argument: TypeAlias = Any


def check_starts(starts: object) -> Starts:
    """Return the starts, or raise a ValueError if no search can begin from them."""
    if isinstance(starts, str) and starts == "auto":
        return "auto"
    if isinstance(starts, (int, np.integer)) and not isinstance(starts, bool):
        if starts < 1:
            raise ValueError(f"starts={starts}: at least one start is needed.")
        return int(starts)
    if isinstance(starts, (list, tuple)) and len(starts):
        if all(isinstance(values, Mapping) for values in starts):
            return starts
    raise ValueError(
        f"starts={starts!r} is not understood; expected 'auto', a number, or a list of "
        "dicts such as [{'C': 1.0, 'gamma': 0.1}]."
    )


@dataclass(frozen=True, eq=False)
class Data:
    """Validated training data: rows of positive weight, classes as numbers.

    X : dense, CSR, or in blocks of rows; row numbers with a precomputed kernel
    y : (n,), numbers of the classes; (n,) or (n, n_outputs) for regression
    rows : number of each row in the X that was given
    weight : sample weight times class weight
    sample_weight : as it was given
    held_weight : weight of held-out points, with the class weights of the criterion
    tasks : (n, n_tasks), binary labels of every class task, 0 for rows outside of it;
        or scaled outputs of a regression
    splits : index pairs (train, validation) into the rows
    targets : what the tasks are
    classes : labels of the classes; none for regression
    n_features : of the X that was given
    feature_names : of the X that was given, or None
    groups : (n,), numbers of groups that splits keep together, or None
    sample_groups : groups that have their own C, or None
    matrix : values of a precomputed kernel between the rows, or None
    """

    X: Matrix | RowBlocks
    y: Array
    rows: Array
    weight: Array
    sample_weight: Array
    held_weight: Array
    tasks: Array
    splits: list[Split]
    targets: Targets
    classes: Array
    n_features: int
    feature_names: list[str] | None = None
    groups: Array | None = None
    sample_groups: SampleGroups | None = None
    matrix: Array | None = None

    def with_tasks(self, kind: TaskKind) -> Data:
        """Return the same data with one task for every class, or for every pair."""
        return replace(self, tasks=self.targets.tasks(self.y, kind))

    def split_columns(self, tasks: Array) -> FoldColumns:
        """One column for every split and each of these class tasks."""
        return split_columns(
            tasks, self.splits, self.weight, self.held_weight, self.targets
        )

    @property
    def leaves_one_out(self) -> bool:
        """Whether the only split is trained on all rows, which it holds out in turn."""
        if len(self.splits) != 1:
            return False
        ((train, held_out),) = self.splits
        return bool(np.isin(held_out, train).any())

    def in_folds(self) -> Data:
        """Return the data with folds in place of leave-one-out."""
        if not self.leaves_one_out:
            return self
        return replace(self, splits=dealt_folds(self.y))

    def subsample(self, rows: Array) -> Data:
        """Return some of the rows, with what is left of the splits."""
        place = np.full(len(self.y), -1)
        place[rows] = np.arange(len(rows))
        parts = [(place[train], place[held]) for train, held in self.splits]
        parts = [(train[train >= 0], held[held >= 0]) for train, held in parts]
        groups, own = self.groups, self.sample_groups
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            rows=self.rows[rows],
            weight=self.weight[rows],
            sample_weight=self.sample_weight[rows],
            held_weight=self.held_weight[rows],
            tasks=self.tasks[rows],
            splits=[(train, held) for train, held in parts if len(train) and len(held)],
            groups=None if groups is None else _numbered(groups[rows]),
            sample_groups=None if own is None else own[rows],
        )


def _numbered(groups: Array) -> Array:
    """Numbers 0, 1, ... of the groups that are left."""
    return np.unique(groups, return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class Settings:
    """All arguments of an estimator, resolved: what is searched, how, and how long.

    model : the machine; with an open kernel, its richest candidate
    open_kernel : whether held-out rows choose the kernel (kernel="auto")
    pairwise : whether X holds values of the kernel instead of features
    grouping : what has its own C: "groups", "classes", or None for neither
    optimizer : what moves theta
    chosen_optimizer : whether optimizer="auto" was given
    method : how an optimizer or a splitter descends, if it brings its own method
    arguments : as they were given, for messages and to tell one fit from another
    estimator : name of the estimator's class
    multi_class : "auto" until held-out rows have chosen
    separate : whether vectors of hyperparameters may get separate values
    target : H that the answer has to be below to be of use
    """

    model: Model
    criterion: Criterion
    prior: Prior | None
    solver: Solver
    optimizer: Optimizer
    cv: Argument = 5
    learn: Argument = "all"
    starts: Starts = "auto"
    multi_class: MultiClass = "auto"
    shared: bool = True
    class_weight: Argument = None
    threshold: Argument = None
    approximation: Choice = "none"
    max_memory: float | None = None
    tol: float = 1e-3
    max_iter: int = 100
    time_limit: float | None = None
    n_jobs: int | None = None
    verbose: int = 0
    checkpoint: Argument = None
    open_kernel: bool = False
    pairwise: bool = False
    grouping: Grouping | None = None
    chosen_optimizer: bool = False
    method: DescentMethod | None = None
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    estimator: str = ""
    separate: bool = True
    target: float = np.inf

    def with_kernel(self, kernel: Kernel) -> Settings:
        """Return the same settings with a kernel that is chosen."""
        model = replace(self.model, kernel=kernel)
        return replace(self, model=model, open_kernel=False)

    def with_tasks(self, kind: TaskKind) -> Settings:
        """Return the same settings with class tasks that are chosen."""
        return replace(self, multi_class=kind)

    @property
    def task_kind(self) -> TaskKind:
        """The class tasks; those that are tried first if they are still open."""
        return "ovr" if self.multi_class == "auto" else self.multi_class

    def for_data(self, data: Data) -> Settings:
        """Return settings with what the data decide.

        The values of a precomputed kernel, if there is one, the scale of y, and the
        criterion of a regression.
        """
        criterion = self.criterion.for_targets(data.tasks, data.weight)
        settings, scale = replace(self, criterion=criterion), data.targets.common_scale
        if scale != self.model.target_scale:
            model = replace(self.model, target_scale=scale)
            settings = replace(settings, model=model)
        if data.matrix is None:
            return settings
        return settings.with_kernel(Precomputed(data.matrix))

    def model_on(self, data: Data) -> Model:
        """Return the model with names of features replaced by their numbers."""
        names = data.feature_names
        return replace(self.model, kernel=self.model.kernel.bind(names))

    def optimizer_of(self, n_learned: int) -> Optimizer:
        """Return the optimizer for this number of hyperparameters.

        Along one hyperparameter of the exact hinge H has flat stretches and kinks,
        where a descent would stay: with optimizer="auto" it is scanned.
        """
        kinked = not self.model.loss.twice_differentiable
        if self.chosen_optimizer and kinked and n_learned == 1:
            return Scan().within(self.tol, self.max_iter).validate()
        return self.optimizer


def problem_of(
    settings: Settings,
    data: Data,
    tasks: Array,
    approximation: Approximation | None,
) -> Problem:
    """Return the bilevel problem of these class tasks, (n, n_tasks)."""
    model, criterion = settings.model_on(data), settings.criterion
    # The rule is that of a fit, whose kernel may still be open.
    approximation = None if model.linear else approximation
    on_training = criterion.on_training
    if data.leaves_one_out and not on_training:
        _check_leave_one_out(settings, data)
    columns = (
        training_columns(tasks, data.weight, data.targets)
        if on_training
        else data.split_columns(tasks)
    )
    problem = Problem.of(
        model,
        _rows_of(data.X, approximation),
        data.weight,
        columns,
        criterion=criterion,
        prior=None if on_training else settings.prior,
        solver=settings.solver,
        learn=_learned(settings, data) if on_training else settings.learn,
        feature_names=data.feature_names,
        groups=data.groups,
        sample_groups=data.sample_groups,
        approximation=approximation,
        # The residual of a linear machine is an average over points.
        inner_tol=(0.01 if model.linear else 1.0) * settings.tol,
    )
    if isinstance(data.X, RowBlocks) or not _by_rows(settings, data.X.shape):
        return problem
    return problem.by_rows(data.X, settings.tol)


def _check_leave_one_out(settings: Settings, data: Data) -> None:
    """Refuse data of which leave-one-out has no leverages."""
    if isinstance(data.X, RowBlocks):
        raise ValueError(
            "cv='loo' needs its training data in memory, not in chunks. Use cv=5: with "
            "so many rows folds say the same."
        )
    most, n_features = DIRECT_LIMIT, data.X.shape[1]
    many = settings.model.linear and n_features > most
    if many and not _by_rows(settings, data.X.shape):
        raise ValueError(
            f"cv='loo' factorises a matrix of features by features, and X has "
            f"{n_features} of them, more than {most}. Use cv=5."
        )


def _rows_of(X: Inputs, approximation: Approximation | None) -> Inputs:
    """The inputs, in blocks if features of all of them would not fit into memory."""
    blocks = approximation is not None and approximation.in_blocks
    return Chunks.of(X) if blocks and not isinstance(X, RowBlocks) else X


def _by_rows(settings: Settings, shape: tuple[int, ...]) -> bool:
    """Whether a linear machine is trained as a kernel machine: it has few rows."""
    model, (n, n_features) = settings.model, shape
    one_C = not isinstance(model.regularization, PerFeature)
    smooth = model.loss.twice_differentiable and model.intercept == "free"
    usual = settings.method is None and settings.optimizer.any_machine
    wide = WIDE * n < n_features and n <= WIDE_ROWS
    return model.linear and one_C and smooth and usual and wide


def _learned(settings: Settings, data: Data) -> Argument:
    """What is learned on the training problem itself: all but C and epsilon."""
    model, learn = settings.model_on(data), settings.learn
    weights = (*model.regularization.names, *model.loss.names)
    if isinstance(learn, str) and learn == "all":
        parameters = model.parameters(data.X, data.weight, data.sample_groups)
        return tuple(p.name for p in parameters if p.name not in weights)
    asked = (learn,) if isinstance(learn, str) else learn or ()
    asked = [str(name) for name in np.atleast_1d(np.asarray(asked, dtype=object))]
    if any(name.split("[")[0] in weights for name in asked):
        raise ValueError(
            "The structural risk is least at C = 0: it cannot tell what C should "
            f"be. Leave {' and '.join(map(repr, weights))} out of `learn`, or use a "
            "criterion on held-out points."
        )
    return learn


def approximation_of(
    settings: Settings, data: Data, n_tasks: int, jobs: int = 1
) -> Approximation | None:
    """Return how kernel machines are approximated.

    Called once in a fit: without `max_memory` the answer depends on the memory that is
    free, which `jobs` searches share.
    """
    model = settings.model
    if model.linear:
        return None
    return resolve_approximation(
        settings.approximation,
        len(data.weight),
        n_tasks * max(len(data.splits), 1),
        settings.max_memory,
        jobs=jobs,
        more_grams=_more_grams(model, data, n_tasks),
        active=_active_share(settings, data),
        possible=model.loss.twice_differentiable and not settings.pairwise,
        in_blocks=isinstance(data.X, RowBlocks),
    )


def searches_that_fit(
    settings: Settings, data: Data, n_tasks: int, rule: Approximation | None
) -> float:
    """Return how many searches fit into memory at a time."""
    model = settings.model
    if model.linear:
        return np.inf
    return n_in_memory(
        rule,
        len(data.weight),
        n_tasks * max(len(data.splits), 1),
        settings.max_memory,
        _more_grams(model, data, n_tasks),
    )


def _active_share(settings: Settings, data: Data) -> float:
    """Size of a machine's active set, relative to that with two classes, about.

    That of a pair has the rows of two of K classes. One class against the rest has its
    own rows and others near them: 2.2 n / K in the mean of 26 letters, 3 n / K here.
    """
    if not len(data.classes):
        return ACTIVE_RESIDUALS
    own = 2.0 if settings.task_kind == "ovo" else 3.0
    return min(1.0, own / max(len(data.classes), 1))


def _more_grams(model: Model, data: Data, n_tasks: int) -> int:
    """Matrices of the size of a Gram matrix that are held besides it.

    Leave-one-out has one for each task at most, and one of their weights.
    """
    own = n_tasks + 1 if data.leaves_one_out else 0
    return model.kernel.held_grams + own
