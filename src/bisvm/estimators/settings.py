"""From the arguments of an estimator to `Settings`: every name resolved, once."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import _ovr_decision_function

from bisvm.criteria import Criterion, get_criterion
from bisvm.criteria.priors import get_prior
from bisvm.estimators.grouping import own_grouping, own_penalty
from bisvm.kernels import Kernel
from bisvm.losses import get_loss
from bisvm.machines.approximation import CHOICES
from bisvm.machines.model import Model
from bisvm.optimizers import Optimizer, get_optimizer
from bisvm.search.descent import DescentMethod
from bisvm.search.resuming import check_resumable
from bisvm.search.settings import Settings
from bisvm.solvers import get_solver

_POSITIVE = Interval(Real, 0, None, closed="right")

# Settings that all estimators have, and what they may be; parts (kernel, loss,
# criterion, optimizer, ...) are checked where their names are resolved.
COMMON: dict[str, list[Any]] = {
    "multi_class": [StrOptions({"ovr", "ovo"})],
    "shared": ["boolean"],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "time_limit": [_POSITIVE, None],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "callback": [callable, None],
    "random_state": ["random_state"],
}
CLASSIFIER: dict[str, list[Any]] = {
    **COMMON,
    "intercept": [StrOptions({"free", "penalized", "none"})],
    "refit": [StrOptions({"rescaled", "same"}), _POSITIVE],
    "ensemble": ["boolean", Interval(Integral, 1, None, closed="left")],
}
KERNEL_CLASSIFIER: dict[str, list[Any]] = {
    **CLASSIFIER,
    "approximation": [StrOptions(set(CHOICES))],
    "max_memory": [_POSITIVE, None],
}


def settings_of(
    estimator: Any,
    kernel: Kernel,
    *,
    open_kernel: bool = False,
    pairwise: bool = False,
) -> Settings:
    """All that an estimator's arguments mean; refuses what can be refused at once.

    kernel : the kernel named, or the richest candidate where it is left open
    """
    estimator._validate_params()
    criterion = get_criterion(estimator.criterion)
    loss = get_loss(estimator.loss)
    solver = get_solver(estimator.solver, loss)
    solver.check(loss)
    optimizer = optimizer_of(estimator)
    check_resumable(estimator.checkpoint, estimator.random_state, optimizer)
    return Settings(
        model=Model(
            kernel=kernel,
            penalty=own_penalty(estimator),
            C=_start_of_C(estimator.C, criterion),
            loss=loss,
            intercept=estimator.intercept,
        ),
        criterion=criterion,
        prior=get_prior(estimator.prior),
        solver=solver,
        optimizer=optimizer,
        cv=estimator.cv,
        learn=estimator.learn,
        starts=estimator.starts,
        multi_class=estimator.multi_class,
        shared=estimator.shared,
        class_weight=estimator.class_weight,
        threshold=estimator.threshold,
        refit=estimator.refit,
        approximation=getattr(estimator, "approximation", "none"),
        max_memory=getattr(estimator, "max_memory", None),
        tol=estimator.tol,
        max_iter=estimator.max_iter,
        time_limit=estimator.time_limit,
        n_jobs=estimator.n_jobs,
        verbose=int(estimator.verbose),
        checkpoint=estimator.checkpoint,
        open_kernel=open_kernel,
        pairwise=pairwise,
        grouping=own_grouping(estimator),
        chosen_optimizer=_is_auto(estimator.optimizer),
        method=_method(estimator.cv, optimizer, criterion),
        arguments=estimator.get_params(deep=False),
        estimator=type(estimator).__name__,
    )


def _start_of_C(C: Any, criterion: Criterion) -> Any:
    """As given; a criterion on the training problem leaves C as it is, at 1."""
    natural = isinstance(C, str) and C == "scale"
    return 1.0 if natural and criterion.on_training else C


def _is_auto(given: Any) -> bool:
    return isinstance(given, str) and given == "auto"


def _method(
    cv: Any, optimizer: Optimizer, criterion: Criterion
) -> DescentMethod | None:
    """How a splitter or an optimizer descends, if it brings its own way."""
    for part in (cv, optimizer):
        own = getattr(part, "descent_method", None)
        method = None if own is None else own(criterion)
        if method is not None:
            return method
    return None


def optimizer_of(estimator: Any) -> Optimizer:
    """A name stands for the optimizer at the estimator's tol and max_iter."""
    optimizer = get_optimizer(estimator.optimizer)
    if isinstance(estimator.optimizer, str):
        optimizer = optimizer.within(estimator.tol, estimator.max_iter)
    return optimizer.validate()


def decisions(scores: np.ndarray, n_classes: int, multi_class: str) -> np.ndarray:
    """(n,) for two classes, (n, n_classes) for more, from the scores of class tasks."""
    if n_classes == 2:
        return scores[:, 0]
    if multi_class == "ovo":
        return _ovr_decision_function(scores < 0, -scores, n_classes)
    return scores


def chosen(decision: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class of every decision."""
    if decision.ndim == 1:
        return classes[(decision > 0).astype(int)]
    return classes[decision.argmax(axis=1)]
