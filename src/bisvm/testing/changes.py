"""Changes of data or of the way of working, and fits of one estimator on them.

Each change is a function of `Fits` that returns the largest difference between the
answers with and without it. `invariances.py` has the table of what is promised.
"""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

from bisvm.core.types import Array, Matrix, UserData
from bisvm.data.splits import Split

# Factors that change the units of X, of its columns and of sample weights.
UNITS = (1e-6, 1e-3, 1e3, 1e6)
# Evaluations after which a fit is interrupted, to be resumed.
INTERRUPTED_AFTER = 3


class NotApplicable(Exception):
    """An estimator cannot be checked for an invariance; the message says why."""


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
    return _changed(fits, lambda X: plain(X[:, order]))


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


def plain(X: UserData) -> Matrix:
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
