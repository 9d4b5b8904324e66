"""Invariances of estimators: changes of the input that must not change the answer.

    answer(fit(change(X, y)), change(rows)) = answer(fit(X, y), rows)

A change of rows (their order, copies) leaves the rows to be predicted as they are; a
change of columns or units applies to them as well. The answer is what is predicted for
the rows of X (decision values, or else predicted numbers or classes, or kept features),
and the validation loss, if the estimator has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.model_selection import KFold, StratifiedKFold

from bisvm.core.types import Array, ArrayLike, UserData
from bisvm.data.splits import Split
from bisvm.testing import changes
from bisvm.testing.changes import Fits, NotApplicable, plain

# Where answers need not be exact, they may differ by this times sqrt(tol). A search
# ends where a step would lower H by less than tol: its minimum is found to the square
# root of tol, and rounding errors decide where. Chosen by the table of
# docs/invariances.md: the largest difference there is 1.0, without those of landing in
# another minimum, for which no tolerance holds.
SEARCH_FACTOR = 3.0
# tol of an estimator that has no such argument.
USUAL_TOL = 1e-3
# Folds that are given to an estimator with an argument `cv`.
FOLDS = 3

Status: TypeAlias = Literal[
    "exact", "within tolerance", "violated", "not promised", "not checked"
]


@dataclass(frozen=True)
class InvarianceResult:
    """What the check of one invariance has found.

    Parameters
    ----------
    name : str
        What was changed.
    status : str
        "exact" (bit for bit), "within tolerance", "violated", "not promised" or "not
        checked", such as for want of an optional package.
    difference : float
        Largest difference between the answers, relative to the largest entry.
    tolerance : float
        Largest difference that is allowed; 0 if the answers must agree bit for bit.
    reason : str
        Why the answers may differ, why the invariance is not promised, or the error
        that the changed input raised.
    """

    name: str
    status: Status
    difference: float = np.nan
    tolerance: float = 0.0
    reason: str = ""

    def __str__(self) -> str:
        if self.status in ("not promised", "not checked"):
            return self.status
        if self.status == "exact":
            return "exact"
        return f"{self.difference:.0e} of {self.tolerance:.0e}"


@dataclass(frozen=True)
class Invariance:
    """A change that must not change the answer.

    check : returns the largest difference between the answers
    reason : why the answers are not the same bit for bit; empty if they are
    """

    check: Callable[[Fits], float]
    reason: str = ""

    def allowed(self, estimator: BaseEstimator) -> float:
        """Largest difference that is allowed; 0 means bit for bit."""
        tol = estimator.get_params().get("tol", USUAL_TOL)
        return SEARCH_FACTOR * float(np.sqrt(tol)) if self.reason else 0.0


_ROUNDED = "rounding errors decide where a search ends within its tol"
_DIGITS = "float32 has seven digits, and decides where a search ends within its tol"

#: All invariances by name.
INVARIANCES: dict[str, Invariance] = {
    "row order": Invariance(changes.row_order, _ROUNDED),
    "column order": Invariance(changes.column_order, _ROUNDED),
    "units of X": Invariance(changes.units_of_X, _ROUNDED),
    "units of columns": Invariance(changes.units_of_columns, _ROUNDED),
    "units of weights": Invariance(changes.units_of_weights, _ROUNDED),
    "duplicated rows": Invariance(changes.duplicated_rows, _ROUNDED),
    "dense or sparse": Invariance(changes.dense_or_sparse, _ROUNDED),
    "float32": Invariance(changes.single_precision, _DIGITS),
    "memory layout": Invariance(changes.memory_layout),
    "labels renamed": Invariance(changes.labels_renamed),
    "classes reversed": Invariance(changes.classes_reversed, _ROUNDED),
    "units of y": Invariance(changes.units_of_y, _ROUNDED),
    "origin of y": Invariance(changes.origin_of_y, _ROUNDED),
    "two jobs": Invariance(changes.two_jobs),
    "Dask workers": Invariance(changes.dask_workers),
    "Dask array": Invariance(changes.dask_array, _ROUNDED),
    "checkpoint": Invariance(changes.checkpointed),
    "resumed": Invariance(changes.resumed),
    "saved and loaded": Invariance(changes.saved_and_loaded),
    "pickled": Invariance(changes.pickled),
    "fitted twice": Invariance(changes.fitted_twice),
    "fitted after others": Invariance(changes.fitted_after_others),
    "beside another fit": Invariance(changes.beside_another_fit),
}


def measure_invariances(
    estimator: BaseEstimator,
    X: UserData,
    y: ArrayLike,
    *,
    splits: Sequence[Split] | Literal["fixed"] | None = "fixed",
    only: Iterable[str] | None = None,
    not_promised: Mapping[str, str] | None = None,
) -> list[InvarianceResult]:
    """Measure how far changes of the input change the answer of an estimator.

    Parameters
    ----------
    estimator : estimator
        A classifier, a regressor, or a selector of features, with a fixed
        `random_state`. It is cloned, not fitted. Give a search a small `tol`, such as
        1e-6: rounding errors decide where it ends within its tolerance.
    X : array or sparse matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    splits : list of (train, validation), None or "fixed", default="fixed"
        Index pairs for the estimator's argument `cv`, permuted along with the rows.
        "fixed" draws three folds, if there is such an argument; None leaves it alone.
    only : names, optional
        Invariances to check, of `INVARIANCES`; by default all.
    not_promised : dict from name to reason, optional
        Invariances that the estimator does not have.

    Returns
    -------
    results : list of InvarianceResult

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> only = ["column order", "units of columns"]
    >>> for found in measure_invariances(SVC(), X, y, only=only):
    ...     print(found.name, found.status)
    column order within tolerance
    units of columns violated
    """
    X, y = plain(X), np.asarray(y)
    names = list(INVARIANCES) if only is None else list(only)
    left_out = {} if not_promised is None else not_promised
    _check_names(names, left_out)
    if isinstance(splits, str):
        splits = _fixed(estimator, y)
    weight = np.linspace(0.5, 2.0, len(y))
    fits = Fits(estimator, X, y, weight, splits)
    return [_result(name, fits, left_out.get(name)) for name in names]


def check_invariances(
    estimator: BaseEstimator, X: UserData, y: ArrayLike, **settings: Any
) -> None:
    """Check that changes of the input do not change the answer of an estimator.

    Parameters
    ----------
    estimator, X, y, **settings
        As in `measure_invariances`.

    Raises
    ------
    AssertionError
        If an invariance is violated; the message names all that are, and by how much.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bisvm import BilevelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BilevelSVC("rbf", starts=1, tol=1e-6, random_state=0)
    >>> check_invariances(model, X, y, only=["row order", "fitted twice"])
    """
    results = measure_invariances(estimator, X, y, **settings)
    wrong = [one for one in results if one.status == "violated"]
    if wrong:
        raise AssertionError(
            f"{estimator!r} is not invariant:\n" + "\n".join(map(_told, wrong))
        )


def _told(result: InvarianceResult) -> str:
    change = (INVARIANCES[result.name].check.__doc__ or "").strip()
    if np.isnan(result.difference):
        return f"- {result.name} ({change}): {result.reason}"
    return (
        f"- {result.name} ({change}): off by {result.difference:.3g}, at most "
        f"{result.tolerance:.3g} is allowed."
    )


def _check_names(*given: Iterable[str]) -> None:
    unknown = sorted({name for names in given for name in names} - set(INVARIANCES))
    if unknown:
        raise ValueError(
            f"Unknown invariances {unknown}; expected some of {list(INVARIANCES)}."
        )


def _fixed(estimator: BaseEstimator, y: Array) -> list[Split] | None:
    """Three folds, if the estimator takes folds."""
    if "cv" not in estimator.get_params():
        return None
    kind = KFold if is_regressor(estimator) else StratifiedKFold
    folds = kind(FOLDS, shuffle=True, random_state=0)
    return list(folds.split(np.zeros(len(y)), y))


def _result(name: str, fits: Fits, not_promised: str | None) -> InvarianceResult:
    """Check one invariance, unless it is not promised."""
    if not_promised is not None:
        return InvarianceResult(name, "not promised", reason=not_promised)
    known = INVARIANCES[name]
    allowed = known.allowed(fits.estimator)
    result = InvarianceResult(name, "violated", np.nan, allowed, known.reason)
    try:
        found = known.check(fits)
    except NotApplicable as why:
        return InvarianceResult(name, "not checked", reason=str(why))
    except Exception as error:
        return replace(result, reason=f"{type(error).__name__}: {error}")
    return replace(result, status=_status(found, allowed), difference=found)


def _status(found: float, allowed: float) -> Status:
    if found == 0.0:
        return "exact"
    return "within tolerance" if found <= allowed else "violated"
