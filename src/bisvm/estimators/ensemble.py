"""An ensemble: the mean of machines that were tuned on splits drawn anew.

    f(x) = 1/M sum_m f_m(x)

The splits are the only chance in a search: theta fits those that it saw. Machines of
other splits differ by that, and their mean by less. The first member is the machine
that `ensemble=False` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from math import ceil
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.utils import check_random_state

from bisvm.criteria import get_criterion
from bisvm.data.pieces import Pieces
from bisvm.estimators.data import in_pieces

# Members that `ensemble=True` has.
MEMBERS = 5
# What predicts in a single kernel machine; the mean of several has no such arrays.
_SINGLE = (
    "support_",
    "support_vectors_",
    "dual_coef_",
    "coef_",
    "intercept_",
    "_kernels",
)


def n_members(estimator: Any) -> int:
    """How many machines are asked for; 1 is no ensemble."""
    given = estimator.ensemble
    if isinstance(given, (bool, np.bool_)):
        return MEMBERS if given else 1
    if isinstance(given, Integral) and int(given) >= 1:
        return int(given)
    raise ValueError(
        "ensemble must be False, True, or a number of members of at least 1; got "
        f"{given!r}."
    )


def fit_members(estimator: Any, X: Any, *given: Any) -> Any:
    """Fit all members, and make the estimator their mean."""
    _refuse_what_cannot_be_drawn(estimator)
    X = in_pieces(X)
    apart = estimator.callback is None and not isinstance(X, Pieces)
    jobs = effective_n_jobs(estimator.n_jobs) if apart else 1
    members = _members(estimator, jobs)
    if apart:
        fits = (delayed(_fitted)(member, X, *given) for member in members)
        members = Parallel(n_jobs=estimator.n_jobs, prefer="threads")(fits)
    else:
        members = _one_by_one(estimator, members, X, *given)
    _settle(estimator, members)
    return estimator


def mean_scores(members: Sequence[Any], X: Any) -> np.ndarray:
    """Decision values of every class task, (n, n_tasks), mean over the members."""
    total = members[0]._scores(X)
    for member in members[1:]:
        total = total + member._scores(X)
    return total / len(members)


# --- members --------------------------------------------------------------------------


def _members(estimator: Any, jobs: int) -> list[Any]:
    """Unfitted copies that differ in their seeds, files and seconds.

    jobs : how many are fitted at a time; a time limit is for all of them together
    """
    count, seed = n_members(estimator), estimator.random_state
    seeds = check_random_state(seed).randint(np.iinfo(np.int32).max, size=count)
    rounds = ceil(count / max(jobs, 1))
    members = []
    for number, own in enumerate(seeds.tolist()):
        # Parts are shared: they never change, and a callback may have no copy.
        given = estimator.get_params(deep=False)
        member = type(estimator)(**{**given, "ensemble": False, "n_jobs": None})
        # A number gives the first member the splits that a single machine has.
        member.set_params(random_state=seed if _is_first(number, seed) else own)
        if number:
            member.set_params(cv=_drawn_anew(estimator.cv, own))
        if estimator.time_limit is not None:
            member.set_params(time_limit=estimator.time_limit / rounds)
        if estimator.checkpoint is not None and number:
            path = estimator.checkpoint
            member.set_params(checkpoint=f"{_text(path)}.{number}")
        members.append(member)
    return members


def _is_first(number: int, seed: Any) -> bool:
    return number == 0 and isinstance(seed, Integral)


def _text(path: Any) -> str:
    path = path if isinstance(path, (str, bytes)) else path.__fspath__()
    return path.decode() if isinstance(path, bytes) else str(path)


def _drawn_anew(cv: Any, seed: int) -> Any:
    """The same rule with another seed; an int draws by the member's own."""
    if not hasattr(cv, "split"):
        return cv
    again = copy(cv)
    again.random_state = seed
    return again


def _refuse_what_cannot_be_drawn(estimator: Any) -> None:
    cv = estimator.cv
    if get_criterion(estimator.criterion).on_training:
        raise ValueError(
            f"ensemble={estimator.ensemble!r} needs splits: members are tuned on other "
            f"ones. criterion={estimator.criterion!r} holds no points out, and all "
            "members would be the same."
        )
    drawn = hasattr(cv, "random_state") and getattr(cv, "shuffle", True)
    if not isinstance(cv, Integral) and not drawn:
        raise ValueError(
            f"ensemble={estimator.ensemble!r} draws splits anew for every member, and "
            "these cannot be: cv must be a number of folds, or a splitter with a "
            "random_state that shuffles."
        )
    if getattr(estimator, "_skl_callbacks", None):
        raise ValueError(
            "scikit-learn's callbacks watch one fit, and an ensemble has several. Use "
            "callback=, which is told of the evaluations of all members, or "
            "ensemble=False."
        )


def _fitted(member: Any, X: Any, *given: Any) -> Any:
    return member.fit(X, *given)


def _one_by_one(
    estimator: Any, members: Sequence[Any], X: Any, *given: Any
) -> list[Any]:
    """In this process, one after the other; a callback that stops begins no other."""
    asked: list[bool] = []
    found = []
    for member in members:
        if estimator.callback is not None:
            member.callback = _heard(estimator.callback, asked)
        found.append(member.fit(X, *given))
        member.callback = estimator.callback
        if asked:
            break
    return found


def _heard(callback: Callable[..., Any], asked: list[bool]) -> Callable[..., bool]:
    def tell(progress: Any) -> bool:
        stop = bool(callback(progress))
        if stop:
            asked.append(True)
        return stop

    return tell


# --- the mean -------------------------------------------------------------------------


def _settle(estimator: Any, members: list[Any]) -> None:
    """What was learned is the first member's, what can be averaged is the mean."""
    first = members[0]
    # With kernel="auto" some may be linear, and others not.
    linear = all(one._linear for one in members)
    settings = {*estimator.get_params(deep=False), "_skl_callbacks"}
    own = {name: one for name, one in vars(first).items() if name not in settings}
    for name in _SINGLE:
        vars(estimator).pop(name, None)
        if not linear:
            own.pop(name, None)
    vars(estimator).update(own)
    estimator._linear = linear
    estimator.estimators_ = members
    if linear:
        # The mean of linear functions is one.
        estimator.coef_ = np.mean([one.coef_ for one in members], axis=0)
        estimator.intercept_ = np.mean([one.intercept_ for one in members], axis=0)
    if first.relevance_ is not None:
        estimator.relevance_ = np.mean([one.relevance_ for one in members], axis=0)
    estimator.criterion_value_ = _mean(members, "criterion_value_")
    estimator.threshold_ = _mean(members, "threshold_")
    estimator.certificate_ = [
        one for member in members for one in _listed(member.certificate_)
    ]
    estimator.n_svm_evaluations_ = sum(one.n_svm_evaluations_ for one in members)
    scores = [one.expected_score_ for one in members]
    if all(score is not None for score in scores):
        # Members hold out the same rows: several know no more than one.
        estimator.expected_score_ = replace(
            scores[0],
            value=float(np.mean([score.value for score in scores])),
            n_effective=float(np.mean([score.n_effective for score in scores])),
        )
        estimator.generalization_gap_ = _mean(members, "generalization_gap_")


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


def _mean(members: Sequence[Any], name: str) -> float:
    return float(np.mean([getattr(one, name) for one in members]))
