"""The arguments of the estimators, and what they mean to a search.

scikit-learn finds the arguments of an estimator in the signature of its `__init__`.
Here they are fields of data classes, from which Python writes that `__init__`: each
argument stands once, with its type and its default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from bisvm.core.types import ArrayLike
from bisvm.core.warning import warn_user
from bisvm.criteria import (
    Criterion,
    PinballResidual,
    get_criterion,
    get_residual_criterion,
)
from bisvm.criteria.priors import Prior, Shrinkage, get_prior
from bisvm.data.leave_one_out import is_leave_one_out
from bisvm.data.splits import Folds
from bisvm.kernels import Kernel
from bisvm.losses import Loss, Pinball, ResidualLoss, get_loss, get_residual_loss
from bisvm.machines.approximation import CHOICES
from bisvm.machines.base import Intercept
from bisvm.machines.model import Model
from bisvm.machines.regularization import (
    PerGroup,
    Regularization,
    Shared,
    get_regularization,
)
from bisvm.optimizers import Optimizer, get_optimizer
from bisvm.search.checkpoint import check_resumable
from bisvm.search.descent import DescentMethod
from bisvm.search.history import Progress
from bisvm.search.settings import (
    Grouping,
    MultiClass,
    Settings,
    check_starts,
)
from bisvm.solvers import FISTA, Solver, get_solver

# What loss="auto" means, chosen by the table of docs/methods/regression.md.
USUAL_LOSS = "huber"
# Strength of a prior on the widths of a regression, chosen there too.
USUAL_STRENGTH = 0.01
# What is said of a C that `set_params` gives to an estimator that learns it.
LEARNED_C = (
    "C is learned: the value given is only where its search starts, so that a grid "
    "over C repeats the same search. Leave C out of the grid; or hold it, with "
    "learn=('gamma',), or learn=() to learn nothing."
)
# Machines of `ensemble=True`.
MEMBERS = 5

Goal: TypeAlias = (
    Literal["accuracy", "balanced_accuracy", "f1"]
    | tuple[str, object]
    | Mapping[object, float]
)
Callback: TypeAlias = Callable[[Progress], object]
RandomState: TypeAlias = int | np.random.RandomState | None


_POSITIVE = Interval(Real, 0, None, closed="right")
Constraints: TypeAlias = dict[str, list[Any]]

# What arguments may be. Parts (kernel, loss, criterion, optimizer, ...) are checked
# where their names are resolved.
SEARCH: Constraints = {
    "shared": ["boolean"],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "time_limit": [_POSITIVE, None],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "callback": [callable, None],
    "random_state": ["random_state"],
}
COMMON: Constraints = {**SEARCH, "multi_class": [StrOptions({"ovr", "ovo"})]}
MACHINE: Constraints = {
    **SEARCH,
    "fit_intercept": ["boolean", StrOptions({"penalized"})],
    "ensemble": ["boolean", Interval(Integral, 1, None, closed="left")],
}
KERNEL: Constraints = {
    "approximation": [StrOptions(set(CHOICES))],
    "max_memory": [_POSITIVE, None],
}
CLASSIFIER: Constraints = {
    **MACHINE,
    "multi_class": [StrOptions({"auto", "ovr", "ovo"})],
}
REGRESSOR: Constraints = {
    **MACHINE,
    "epsilon": [Interval(Real, 0, None, closed="neither"), StrOptions({"scale"})],
    "quantile": [Interval(Real, 0, 1, closed="neither"), None],
}
# What machines call the values of `fit_intercept`.
_INTERCEPTS: dict[bool | str, Intercept] = {
    True: "free",
    "penalized": "penalized",
    False: "none",
}


@dataclass(eq=False, repr=False, kw_only=True)
class SearchArguments(BaseEstimator):
    """Arguments of all estimators: what is searched, and within which limits."""

    loss: str | Loss = "quartic"
    criterion: str | Criterion = "auto"
    cv: Folds = 5
    learn: str | Sequence[str] | None = "all"
    optimizer: str | Optimizer = "auto"
    shared: bool = True
    tol: float = 1e-3
    max_iter: int = 100
    time_limit: float | None = None
    n_jobs: int | None = None
    verbose: int = 0
    callback: Callback | None = None
    checkpoint: str | PathLike[str] | None = None
    random_state: RandomState = None

    def _optimizer(self) -> Optimizer:
        """The optimizer; one given by name gets this estimator's tol and max_iter."""
        optimizer = get_optimizer(self.optimizer)
        if isinstance(self.optimizer, str):
            optimizer = optimizer.within(self.tol, self.max_iter)
        return optimizer.validate()


@dataclass(eq=False, repr=False, kw_only=True)
class ClassArguments(SearchArguments):
    """Arguments of all classifiers."""

    multi_class: MultiClass = "ovr"
    class_weight: Literal["balanced", "learn"] | Mapping[Any, float] | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class MachineArguments(SearchArguments):
    """Arguments of all machines that are trained by `bisvm.machines`."""

    C: Literal["scale"] | float | ArrayLike = "scale"
    regularization: Literal["shared", "per_feature", "per_group"] | Regularization = (
        "shared"
    )
    fit_intercept: bool | Literal["penalized"] = True
    prior: Literal["auto"] | Prior | None = "auto"
    solver: str | Solver = "auto"
    starts: Literal["auto"] | int | Sequence[Mapping[str, Any]] = "auto"
    ensemble: bool | int = False

    def set_params(self, **params: Any) -> Self:
        """Set arguments by name, as in scikit-learn.

        Warns if C is set although it is learned: the search only starts there, so a
        grid over C, such as that of `GridSearchCV`, repeats the same search.

        Parameters
        ----------
        **params
            Arguments by name.

        Returns
        -------
        self : object
        """
        super().set_params(**params)
        if isinstance(params.get("C"), Real) and self._learns_C:
            warn_user(LEARNED_C)
        return self

    @property
    def _learns_C(self) -> bool:
        # What was given is checked by `fit`, and may be anything until then.
        given: object = self.learn
        names = given if isinstance(given, (list, tuple, set)) else (given,)
        return any(isinstance(one, str) and one in ("all", "C") for one in names)

    @property
    def _intercept(self) -> Intercept:
        """What `fit_intercept` means to a machine."""
        return _INTERCEPTS[self.fit_intercept]

    @property
    def _n_members(self) -> int:
        """Number of machines of the ensemble; 1 without an ensemble."""
        if isinstance(self.ensemble, (bool, np.bool_)):
            return MEMBERS if self.ensemble else 1
        return int(self.ensemble)

    def _loss(self) -> Loss:
        """The loss of the lower level."""
        return get_loss(self.loss)

    def _criterion(self) -> Criterion:
        """The loss of the upper level."""
        return get_criterion(self.criterion)

    def _regularization(self) -> Regularization:
        """How C enters the machine."""
        return get_regularization(self.regularization)

    def _prior(self) -> Prior | None:
        """What pulls the entries of a vector of hyperparameters together."""
        return get_prior(self.prior)

    def _more_settings(self) -> dict[str, Any]:
        """Further fields of `Settings`, by what y holds."""
        return {}


@dataclass(eq=False, repr=False, kw_only=True)
class ClassifierArguments(MachineArguments, ClassArguments):
    """Arguments of `BilevelLinearSVC`; `BilevelSVC` adds its kernel."""

    multi_class: MultiClass = "auto"
    threshold: Goal | None = None

    @property
    def _learns_class_weight(self) -> bool:
        return _is(self.class_weight, "learn")

    def _regularization(self) -> Regularization:
        """How C enters the machine; classes whose weights are learned are groups."""
        regularization = get_regularization(self.regularization)
        if not self._learns_class_weight:
            return regularization
        if not isinstance(regularization, Shared):
            raise ValueError(
                "class_weight='learn' gives every class its own C: it does not go with "
                f"regularization={self.regularization!r}. Use regularization='shared'."
            )
        return PerGroup(regularization.C_bounds)

    def _more_settings(self) -> dict[str, Any]:
        more: dict[str, Any] = {
            "multi_class": self.multi_class,
            "class_weight": self.class_weight,
            "threshold": self.threshold,
        }
        return more | ({"grouping": "classes"} if self._learns_class_weight else {})


@dataclass(eq=False, repr=False, kw_only=True)
class RegressorArguments(MachineArguments):
    """Arguments of `BilevelLinearSVR`; `BilevelSVR` adds its kernel."""

    loss: str | Loss = "auto"
    epsilon: Literal["scale"] | float = "scale"
    quantile: float | None = None

    def _loss(self) -> ResidualLoss:
        """The loss, with the epsilon given; the pinball loss for a quantile."""
        loss = self._loss_by_name()
        if _is(self.epsilon, "scale"):
            return loss
        if "epsilon" not in loss.names:
            raise ValueError(
                f"epsilon={self.epsilon!r} is given, and {loss!r} has none. Use "
                "epsilon='scale', or a loss with a tube such as "
                "'epsilon_insensitive'."
            )
        return loss.replace(epsilon=float(self.epsilon)).validate()

    def _loss_by_name(self) -> ResidualLoss:
        automatic = _is(self.loss, "auto")
        if self.quantile is None:
            return get_residual_loss(USUAL_LOSS if automatic else self.loss)
        if automatic or _is(self.loss, "pinball"):
            return Pinball(float(self.quantile)).validate()
        raise ValueError(
            f"quantile={self.quantile!r} needs the pinball loss; got "
            f"loss={self.loss!r}. Use loss='auto', or quantile=None."
        )

    def _criterion(self) -> Criterion:
        criterion = get_residual_criterion(self.criterion)
        if self.quantile is None or not _is(self.criterion, "auto"):
            return criterion
        return PinballResidual(float(self.quantile)).validate()

    def _prior(self) -> Prior | None:
        """A weaker one: H of a good regression is far below that of a constant."""
        if _is(self.prior, "auto"):
            return Shrinkage(USUAL_STRENGTH)
        return get_prior(self.prior)

    def _more_settings(self) -> dict[str, Any]:
        return {"multi_class": "ovr"}


def settings_of(
    arguments: MachineArguments,
    kernel: Kernel,
    *,
    open_kernel: bool = False,
    pairwise: bool = False,
    **more: Any,
) -> Settings:
    """Resolve the arguments of an estimator, and refuse what can be refused at once.

    Parameters
    ----------
    arguments : MachineArguments
        The estimator.
    kernel : Kernel
        The kernel that is named, or the richest candidate of kernel="auto".
    open_kernel, pairwise : bool
        Whether the kernel is chosen by held-out rows, or precomputed.
    **more
        Further fields of `Settings`.
    """
    arguments._validate_params()
    criterion = arguments._criterion()
    loss = arguments._loss()
    solver = get_solver(arguments.solver, loss)
    solver.check(loss)
    if isinstance(solver, FISTA) and not loss.twice_differentiable:
        raise ValueError(
            f"solver='fista' does not find which points are on the margin of {loss!r}, "
            "and the gradient of H needs them; use solver='auto'."
        )
    optimizer = arguments._optimizer()
    if is_leave_one_out(arguments.cv):
        _check_leave_one_out(loss, optimizer, criterion)
    if arguments.checkpoint is not None:
        check_resumable(arguments.checkpoint, arguments.random_state, optimizer)
    regularization = arguments._regularization()
    # A criterion on the training problem does not learn C: it stays at 1.
    fixed = _is(arguments.C, "scale") and criterion.on_training
    by_group: Grouping | None = "groups" if regularization.by_group else None
    return Settings(
        model=Model(
            kernel=kernel,
            regularization=regularization,
            C=1.0 if fixed else arguments.C,
            loss=loss,
            intercept=arguments._intercept,
        ),
        criterion=criterion,
        prior=arguments._prior(),
        solver=solver,
        optimizer=optimizer,
        cv=arguments.cv,
        learn=arguments.learn,
        starts=check_starts(arguments.starts),
        shared=arguments.shared,
        tol=arguments.tol,
        max_iter=arguments.max_iter,
        time_limit=arguments.time_limit,
        n_jobs=arguments.n_jobs,
        verbose=int(arguments.verbose),
        checkpoint=arguments.checkpoint,
        open_kernel=open_kernel,
        pairwise=pairwise,
        chosen_optimizer=_is(arguments.optimizer, "auto"),
        method=_method(arguments.cv, optimizer, criterion),
        arguments=arguments.get_params(deep=False),
        estimator=type(arguments).__name__,
        **{"grouping": by_group, **arguments._more_settings(), **more},
    )


def _check_leave_one_out(
    loss: Loss, optimizer: Optimizer, criterion: Criterion
) -> None:
    """Refuse losses and optimizers that leave-one-out does not go with."""
    if not loss.twice_differentiable:
        raise ValueError(
            f"cv='loo' needs the curvature of the loss, and {loss!r} has none. Use the "
            f"same loss with rounded corners, {loss.rounded()!r}, or cv=5."
        )
    if not optimizer.any_machine or _method(None, optimizer, criterion) is not None:
        raise ValueError(
            f"{optimizer!r} works on folds, and cv='loo' has none. Use "
            "optimizer='auto', or cv=5."
        )


def _is(given: object, word: str) -> bool:
    """Whether an argument is this word; arrays do not compare as one."""
    return isinstance(given, str) and given == word


def _method(
    cv: object, optimizer: Optimizer, criterion: Criterion
) -> DescentMethod | None:
    """How a splitter or an optimizer descends, if it brings its own way."""
    for part in (cv, optimizer):
        own = getattr(part, "descent_method", None)
        method: DescentMethod | None = None if own is None else own(criterion)
        if method is not None:
            return method
    return None
