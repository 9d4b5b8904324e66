"""Invariances of estimators: changes of the input that must not change the answer.

    answer(fit(change(X, y)), change(rows)) = answer(fit(X, y), rows)

A change of rows (their order, copies) leaves the rows to be predicted as they are; a
change of columns or units applies to them as well. The answer is what is predicted for
the rows of X (decision values, or else predicted numbers or classes, or kept features),
and the validation loss, if the estimator has one.
"""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.validation import has_fit_parameter

from bisvm.core.types import Array, ArrayLike, Matrix, UserData
from bisvm.data.splits import Split

# Factors that change the units of X, of its columns and of sample weights.
UNITS = (1e-6, 1e-3, 1e3, 1e6)
# Evaluations after which a fit is interrupted, to be resumed.
INTERRUPTED_AFTER = 3
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


class NotApplicable(Exception):
    """An estimator cannot be checked for an invariance; the message says why."""


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


# --- fits of one estimator ------------------------------------------------------------


@dataclass(frozen=True)
class Fits:
    """The estimator, its training data, and its answer on them as they are.

    Parameters
    ----------
    estimator : estimator
        With a fixed `random_state`; it is not fitted itself.
    X, y : array or CSR matrix (n_samples, n_features), and array (n_samples,)
    weight : array of shape (n_samples,)
        Weights for the invariances of weights.
    splits : list of (train, validation) or None
        Given to the estimator as `cv`, unless None.
    """

    estimator: BaseEstimator
    X: Matrix
    y: Array
    weight: Array
    splits: Sequence[Split] | None

    @cached_property
    def answer(self) -> Array:
        """The answer that all changes are compared with."""
        return answer(self.fit(), self.X)

    @cached_property
    def weighted_answer(self) -> Array:
        """The same for a fit with weights."""
        return answer(self.fit(weight=self.weight), self.X)

    def fit(
        self,
        X: UserData = None,
        y: Array | None = None,
        weight: Array | None = None,
        splits: Sequence[Split] | None = None,
        **arguments: Any,
    ) -> Any:
        """Fit a clone; what is not given is as it is."""
        model = self.unfitted(splits, **arguments)
        return self.fit_model(model, X, y, weight)

    def unfitted(
        self, splits: Sequence[Split] | None = None, **arguments: Any
    ) -> BaseEstimator:
        """A clone with these arguments."""
        splits = self.splits if splits is None else splits
        if splits is not None:
            arguments["cv"] = splits
        return clone(self.estimator).set_params(**arguments)

    def fit_model(
        self,
        model: Any,
        X: UserData = None,
        y: Array | None = None,
        weight: Array | None = None,
    ) -> Any:
        """Fit this model, without warnings of searches that end early."""
        given = {} if weight is None else {"sample_weight": weight}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(
                self.X if X is None else X, self.y if y is None else y, **given
            )

    def require(self, *arguments: str) -> None:
        """Refuse the check unless the estimator has these arguments."""
        missing = set(arguments) - set(self.estimator.get_params())
        if missing:
            raise NotApplicable(f"it has no argument {', '.join(sorted(missing))}")

    def require_classes(self) -> None:
        if is_regressor(self.estimator):
            raise NotApplicable("its y holds numbers")

    def require_numbers(self) -> None:
        if not is_regressor(self.estimator):
            raise NotApplicable("its y holds classes")

    def require_weights(self) -> None:
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise NotApplicable("its fit takes no sample_weight")

    def apart(self, changed: Array) -> float:
        """How far an answer is from the one on the data as they are."""
        return difference(changed, self.answer)


def answer(model: Any, X: UserData) -> Array:
    """What a fitted estimator says of the rows of X, and of itself, in columns.

    The first columns belong to the classes, in their order; the last one holds the
    validation loss in every row.
    """
    values, loss = _by_class(model, X), getattr(model, "criterion_value_", 0.0)
    return np.column_stack([values, np.full(len(values), float(loss))])


def _by_class(model: Any, X: UserData) -> Array:
    """Decision values, (n, n_classes); else what is predicted; else kept features."""
    if hasattr(model, "decision_function"):
        values = np.asarray(model.decision_function(X), dtype=float)
        return np.column_stack([-values, values]) if values.ndim == 1 else values
    if is_regressor(model):
        return np.asarray(model.predict(X), dtype=float).reshape(X.shape[0], -1)
    if hasattr(model, "predict"):
        hit: Array = np.asarray(model.predict(X))[:, None] == model.classes_
        return hit.astype(float)
    return _kept(model, X)


def _kept(selector: Any, X: UserData) -> Array:
    """Sums over the kept features, each in units of its largest entry, by row."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    kept = X[:, selector.get_support()]
    size = np.max(np.abs(kept), axis=0, initial=0.0)
    total: Array = np.sum(kept / np.where(size > 0.0, size, 1.0), axis=1)
    return total[:, None]


def difference(changed: Array, expected: Array) -> float:
    """Largest difference, relative to the largest expected entry; inf for NaN."""
    if changed.shape != expected.shape:
        return np.inf
    apart = float(np.max(np.abs(changed - expected), initial=0.0))
    size = float(np.max(np.abs(expected), initial=0.0))
    return np.inf if np.isnan(apart) else apart / (size if size > 0.0 else 1.0)


# --- rows and columns -----------------------------------------------------------------


def row_order(fits: Fits) -> float:
    """Permute the rows, and the folds alike."""
    order = np.random.default_rng(0).permutation(len(fits.y))
    place = np.argsort(order)
    splits = fits.splits and [(place[a], place[b]) for a, b in fits.splits]
    model = fits.fit(fits.X[order], fits.y[order], splits=splits)
    return fits.apart(answer(model, fits.X))


def column_order(fits: Fits) -> float:
    """Permute the columns."""
    order = np.roll(np.arange(fits.X.shape[1])[::-1], 1)
    return _changed(fits, lambda X: _plain(X[:, order]))


def duplicated_rows(fits: Fits) -> float:
    """Give every second row twice, in the same folds, instead of with weight 2."""
    fits.require_weights()
    count = 1 + np.arange(len(fits.y)) % 2
    rows = np.repeat(np.arange(len(fits.y)), count)
    splits = fits.splits and [
        (np.flatnonzero(np.isin(rows, a)), np.flatnonzero(np.isin(rows, b)))
        for a, b in fits.splits
    ]
    weighted = fits.fit(weight=count.astype(float))
    repeated = fits.fit(fits.X[rows], fits.y[rows], splits=splits)
    return difference(answer(repeated, fits.X), answer(weighted, fits.X))


def _changed(fits: Fits, change: Callable[[Matrix], UserData]) -> float:
    """Change X, in training and in prediction."""
    X = change(fits.X)
    return fits.apart(answer(fits.fit(X), X))


# --- units ----------------------------------------------------------------------------


def units_of_X(fits: Fits) -> float:
    """Multiply X by one number."""
    return max(_in_units(fits, np.full(fits.X.shape[1], f)) for f in UNITS)


def units_of_columns(fits: Fits) -> float:
    """Multiply every column by a number of its own."""
    factors = np.geomspace(UNITS[0], UNITS[-1], fits.X.shape[1])
    return max(_in_units(fits, f) for f in (factors, factors[::-1]))


def _in_units(fits: Fits, factors: Array) -> float:
    """Multiply the columns by these factors."""
    if sparse.issparse(fits.X):
        return _changed(fits, lambda X: sparse.csr_array(X @ sparse.diags(factors)))
    return _changed(fits, lambda X: X * factors)


def units_of_weights(fits: Fits) -> float:
    """Multiply all sample weights by one number."""
    fits.require_weights()
    found = [answer(fits.fit(weight=f * fits.weight), fits.X) for f in UNITS]
    return max(difference(one, fits.weighted_answer) for one in found)


# --- types and layouts ----------------------------------------------------------------


def dense_or_sparse(fits: Fits) -> float:
    """Give X as a CSR matrix; a CSR matrix as an array."""
    if sparse.issparse(fits.X):
        return _changed(fits, sparse.csr_array.toarray)
    return _changed(fits, sparse.csr_array)


def single_precision(fits: Fits) -> float:
    """Give X as float32."""
    return _changed(fits, lambda X: X.astype(np.float32))


def memory_layout(fits: Fits) -> float:
    """Give X in Fortran order, read-only and spaced; a CSR matrix as CSC and COO."""
    dense = (np.asfortranarray, _locked, _spaced)
    compressed = (sparse.csc_array, sparse.coo_array)
    layouts = compressed if sparse.issparse(fits.X) else dense
    return max(_changed(fits, layout) for layout in layouts)


def _locked(X: Array) -> Array:
    X = X.copy()
    X.setflags(write=False)
    return X


def _spaced(X: Array) -> Array:
    """Every second entry of a larger array, in both directions."""
    wide = np.zeros((2 * X.shape[0], 2 * X.shape[1]), dtype=X.dtype)
    wide[::2, ::2] = X
    return wide[::2, ::2]


def _plain(X: UserData) -> Matrix:
    """X as float64: an array in C order, or a CSR matrix."""
    if sparse.issparse(X):
        return sparse.csr_array(X, dtype=np.float64)
    return np.ascontiguousarray(X, dtype=np.float64)


# --- labels ---------------------------------------------------------------------------


def labels_renamed(fits: Fits) -> float:
    """Give the classes other names, in the same order."""
    fits.require_classes()
    names = np.array([f"class {k:03d}" for k in range(len(np.unique(fits.y)))])
    return fits.apart(answer(fits.fit(y=names[_codes(fits.y)]), fits.X))


def classes_reversed(fits: Fits) -> float:
    """Give the classes names in the opposite order."""
    fits.require_classes()
    changed = answer(fits.fit(y=-_codes(fits.y)), fits.X)
    changed[:, :-1] = changed[:, :-1][:, ::-1]
    return fits.apart(changed)


def units_of_y(fits: Fits) -> float:
    """Multiply numbers to be predicted by one number, which may be negative."""
    fits.require_numbers()
    found = []
    for factor in (*UNITS, -1.0):
        changed = answer(fits.fit(y=factor * fits.y), fits.X)
        changed[:, :-1] /= factor
        found.append(fits.apart(changed))
    return max(found)


def origin_of_y(fits: Fits) -> float:
    """Add a number to those to be predicted."""
    fits.require_numbers()
    shift = 10.0 * float(np.ptp(fits.y))
    changed = answer(fits.fit(y=fits.y + shift), fits.X)
    changed[:, :-1] -= shift
    return fits.apart(changed)


def _codes(y: Array) -> Array:
    return np.unique(y, return_inverse=True)[1]


# --- how the work is done -------------------------------------------------------------


def two_jobs(fits: Fits) -> float:
    """Fit with n_jobs=2 instead of n_jobs=1."""
    fits.require("n_jobs")
    one, two = (answer(fits.fit(n_jobs=n), fits.X) for n in (1, 2))
    return max(fits.apart(one), fits.apart(two))


def dask_workers(fits: Fits) -> float:
    """Run the jobs on a Dask cluster, through joblib."""
    fits.require("n_jobs")
    with _cluster():
        return fits.apart(answer(fits.fit(n_jobs=2), fits.X))


def dask_array(fits: Fits) -> float:
    """Give X as a Dask array in three blocks."""
    _require_package("dask")
    if sparse.issparse(fits.X):
        raise NotApplicable("X is sparse")
    dask = import_module("dask.array")
    blocks = dask.from_array(fits.X, chunks=(-(-len(fits.X) // 3), -1))
    return fits.apart(answer(fits.fit(blocks), fits.X))


@contextmanager
def _cluster() -> Any:
    """Threads of this process as Dask workers, for joblib."""
    _require_package("distributed")
    distributed = import_module("distributed")
    local = {"processes": False, "dashboard_address": None, "silence_logs": 50}
    with (
        distributed.Client(n_workers=1, threads_per_worker=2, **local),
        joblib.parallel_config("dask"),
    ):
        yield


def _require_package(name: str) -> None:
    if find_spec(name) is None:
        raise NotApplicable(f"{name} is not installed")


def checkpointed(fits: Fits) -> float:
    """Fit with a checkpoint."""
    fits.require("checkpoint")
    with tempfile.TemporaryDirectory() as folder:
        model = fits.fit(checkpoint=str(Path(folder, "run.checkpoint")))
        return fits.apart(answer(model, fits.X))


def resumed(fits: Fits) -> float:
    """Interrupt a fit with a checkpoint, and begin it again."""
    fits.require("checkpoint", "callback")
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "run.checkpoint"))
        for most in (INTERRUPTED_AFTER, 2 * INTERRUPTED_AFTER):
            with suppress(_Interrupted):
                fits.fit(checkpoint=file, callback=_Interruption(most))
                raise NotApplicable(f"a fit has fewer than {most} evaluations")
        model = fits.fit(checkpoint=file, callback=_Interruption(None))
        return fits.apart(answer(model, fits.X))


class _Interrupted(Exception):
    """Raised in the middle of a fit."""


class _Interruption:
    """A callback that interrupts the fit after some evaluations."""

    def __init__(self, most: int | None) -> None:
        self.left = most

    def __call__(self, progress: object) -> bool:
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                raise _Interrupted
        return False


# --- models and fits ------------------------------------------------------------------


def saved_and_loaded(fits: Fits) -> float:
    """Write the fitted model to a file with `bisvm.save`, and load it."""
    _require_package("skops")
    from bisvm.io.files import load, save

    model = fits.fit()
    with tempfile.TemporaryDirectory() as folder:
        path = save(model, Path(folder, "model.skops"))
        return fits.apart(answer(load(path, trusted=[type(model)]), fits.X))


def pickled(fits: Fits) -> float:
    """Pickle and unpickle the fitted model."""
    model = pickle.loads(pickle.dumps(fits.fit()))
    return fits.apart(answer(model, fits.X))


def fitted_twice(fits: Fits) -> float:
    """Fit the same object again."""
    model = fits.fit_model(fits.fit())
    return fits.apart(answer(model, fits.X))


def fitted_after_others(fits: Fits) -> float:
    """Fit the object to other columns and labels before."""
    model = fits.unfitted()
    fits.fit_model(model, *_other_data(fits))
    return fits.apart(answer(fits.fit_model(model), fits.X))


def beside_another_fit(fits: Fits) -> float:
    """Fit in a thread while another one fits other data."""
    with warnings.catch_warnings(), ThreadPoolExecutor(2) as pool:
        # The filters of warnings belong to all threads.
        warnings.simplefilter("ignore")
        other = pool.submit(fits.fit_model, fits.unfitted(), *_other_data(fits))
        model = pool.submit(fits.fit).result()
        other.result()
    return fits.apart(answer(model, fits.X))


def _other_data(fits: Fits) -> tuple[Matrix, Array]:
    """The columns in another order and unit, and the classes with other names."""
    return 3.0 * fits.X[:, ::-1], -_codes(fits.y)


# --- the table ------------------------------------------------------------------------


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
    "row order": Invariance(row_order, _ROUNDED),
    "column order": Invariance(column_order, _ROUNDED),
    "units of X": Invariance(units_of_X, _ROUNDED),
    "units of columns": Invariance(units_of_columns, _ROUNDED),
    "units of weights": Invariance(units_of_weights, _ROUNDED),
    "duplicated rows": Invariance(duplicated_rows, _ROUNDED),
    "dense or sparse": Invariance(dense_or_sparse, _ROUNDED),
    "float32": Invariance(single_precision, _DIGITS),
    "memory layout": Invariance(memory_layout),
    "labels renamed": Invariance(labels_renamed),
    "classes reversed": Invariance(classes_reversed, _ROUNDED),
    "units of y": Invariance(units_of_y, _ROUNDED),
    "origin of y": Invariance(origin_of_y, _ROUNDED),
    "two jobs": Invariance(two_jobs),
    "Dask workers": Invariance(dask_workers),
    "Dask array": Invariance(dask_array, _ROUNDED),
    "checkpoint": Invariance(checkpointed),
    "resumed": Invariance(resumed),
    "saved and loaded": Invariance(saved_and_loaded),
    "pickled": Invariance(pickled),
    "fitted twice": Invariance(fitted_twice),
    "fitted after others": Invariance(fitted_after_others),
    "beside another fit": Invariance(beside_another_fit),
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
    X, y = _plain(X), np.asarray(y)
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
