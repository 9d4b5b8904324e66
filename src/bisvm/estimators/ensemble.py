"""An ensemble: the mean of machines that are tuned on different splits.

    f(x) = 1/M sum_m f_m(x)

The splits are the only random part of a search, and theta is tuned to them. The mean of
machines that are tuned on different splits depends less on any of these. The first
member is the machine of `ensemble=False`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from math import ceil
from numbers import Integral
from os import fsdecode
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.utils import check_random_state

from bisvm.data.matrices import RowBlocks
from bisvm.data.splits import Folds
from bisvm.estimators.arguments import Callback, MachineArguments
from bisvm.estimators.callbacks import fitted_state
from bisvm.estimators.fitted_machine import FittedMachine, mean_of
from bisvm.estimators.inputs import Given, in_blocks
from bisvm.search.history import Progress

# What predicts in a single machine.
_PREDICTS = (
    "support_",
    "support_vectors_",
    "n_support_",
    "dual_coef_",
    "coef_",
    "intercept_",
    "_kernels",
)

Member = TypeVar("Member", bound=FittedMachine)


def fit_members(estimator: Member, given: Given) -> list[Member]:
    """Fit all members; fewer if a callback stops the fit."""
    _check_drawable(estimator)
    given = given._replace(X=in_blocks(given.X))
    apart = estimator.callback is None and not isinstance(given.X, RowBlocks)
    jobs = effective_n_jobs(estimator.n_jobs) if apart else 1
    members = _members(estimator, jobs)
    if not apart:
        return _one_by_one(members, given)
    first: list[Member] = []
    if estimator._first_decides(given):
        first, members = _one_by_one(members[:1], given), members[1:]
    fixed = first[0]._fixed_by_first() if first else {}
    fits = (delayed(_fit_with)(member, fixed, given) for member in members)
    fitted: list[Member] = Parallel(n_jobs=estimator.n_jobs, prefer="threads")(fits)
    return [*first, *fitted]


def _fit_with(member: Member, fixed: Mapping[str, Any], given: Given) -> Member:
    """Fit with these arguments, and leave them as they were given."""
    asked = {name: getattr(member, name) for name in fixed}
    member.set_params(**fixed).fit(*given)
    member.set_params(**asked)
    return member


def _members(estimator: Member, jobs: int) -> list[Member]:
    """Unfitted copies that differ in their seeds, files and seconds.

    jobs : how many are fitted at a time; a time limit is for all of them together
    """
    count, seed = estimator._n_members, estimator.random_state
    seeds = check_random_state(seed).randint(np.iinfo(np.int32).max, size=count)
    rounds = ceil(count / max(jobs, 1))
    members = []
    for number, own in enumerate(seeds.tolist()):
        # Parts are shared: they never change, and a callback may have no copy.
        given = estimator.get_params(deep=False)
        member = type(estimator)(**{**given, "ensemble": False, "n_jobs": None})
        # A number gives the first member the splits of a single machine.
        first = number == 0 and isinstance(seed, Integral)
        member.set_params(random_state=seed if first else own)
        if number:
            member.set_params(cv=_other_splits(estimator.cv, own))
        if estimator.time_limit is not None:
            member.set_params(time_limit=estimator.time_limit / rounds)
        if estimator.checkpoint is not None and number:
            path = fsdecode(estimator.checkpoint)
            member.set_params(checkpoint=f"{path}.{number}")
        members.append(member)
    return members


def _other_splits(cv: Folds, seed: int) -> Folds:
    """The same splitter with another seed; an int draws by the member's own seed."""
    if not hasattr(cv, "split"):
        return cv
    other: Any = copy(cv)
    other.random_state = seed
    splitter: Folds = other
    return splitter


def _check_drawable(estimator: MachineArguments) -> None:
    """Refuse an ensemble whose members would all be the same."""
    cv = estimator.cv
    if estimator._criterion().on_training:
        raise ValueError(
            f"ensemble={estimator.ensemble!r} needs splits: every member is tuned on "
            f"its own. criterion={estimator.criterion!r} holds no points out: all "
            "members would be the same."
        )
    drawn = hasattr(cv, "random_state") and getattr(cv, "shuffle", True)
    if not isinstance(cv, Integral) and not drawn:
        raise ValueError(
            f"ensemble={estimator.ensemble!r} draws new splits for every member, which "
            "this cv cannot: use a number of folds, or a splitter that shuffles and "
            "has a random_state."
        )
    if getattr(estimator, "_skl_callbacks", None):
        raise ValueError(
            "scikit-learn's callbacks watch one fit, and an ensemble has several. Use "
            "callback=, which is told of the evaluations of all members, or "
            "ensemble=False."
        )


def _one_by_one(members: Sequence[Member], given: Given) -> list[Member]:
    """Fit one after the other; a callback that stops one also ends the ensemble."""
    stopped: list[bool] = []
    found: list[Member] = []
    for member in members:
        callback = member.callback
        if callback is not None:
            member.set_params(callback=_noted(callback, stopped))
        fixed = found[0]._fixed_by_first() if found else {}
        found.append(_fit_with(member, fixed, given).set_params(callback=callback))
        if stopped:
            break
    return found


def _noted(callback: Callback, stopped: list[bool]) -> Callback:
    """The callback; `stopped` gets an entry if it asks to stop."""

    def tell(progress: Progress) -> bool:
        stop = bool(callback(progress))
        if stop:
            stopped.append(True)
        return stop

    return tell


def mean_attributes(members: Sequence[FittedMachine]) -> dict[str, Any]:
    """Fitted attributes of the ensemble.

    Those of the first member, and means, sums or lists over all where that makes sense.
    """
    first = members[0]
    # With kernel="auto" some may be linear, and others not.
    linear = all(one._linear for one in members)
    found = fitted_state(first) | {"_linear": linear, "estimators_": list(members)}
    # Members have their own prediction sets.
    found["_folds"] = None
    if linear:
        # The mean of linear functions is linear.
        found["coef_"] = np.mean([one.coef_ for one in members], axis=0)
        found["intercept_"] = np.mean([one.intercept_ for one in members], axis=0)
    else:
        found = {k: v for k, v in found.items() if k not in _PREDICTS}
    relevances = [one.relevance_ for one in members if one.relevance_ is not None]
    if relevances:
        found["relevance_"] = np.mean(relevances, axis=0)
    found["criterion_value_"] = mean_of(members, "criterion_value_")
    certificates = [member.certificate_ for member in members]
    found["certificate_"] = [
        one for own in certificates for one in (own if isinstance(own, list) else [own])
    ]
    found["n_svm_evaluations_"] = sum(one.n_svm_evaluations_ for one in members)
    return found | type(first)._mean_attributes(members)
