"""Validation of the arguments of `fit`.

This file checks X, weights and groups; `class_inputs` and `number_inputs` check y.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
)
from sklearn.utils.validation import _check_sample_weight, validate_data

from bisvm.core.types import Array, Matrix, UserData, UserVector
from bisvm.data.chunks import Chunks
from bisvm.data.matrices import RowBlocks
from bisvm.estimators.group_labels import first_names, group_labels, refuse_missing
from bisvm.kernels import Precomputed
from bisvm.search.settings import Data, Settings

# What is asked of inputs, in fit and in predict.
INPUTS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "order": "C"}
# A memory-mapped array of more bytes than this, as float64, is read block by block.
MAPPED_LIMIT = 2**28
# Blocks of no more rows than this are read into memory by a kernel machine, if they
# take no more bytes than that: its search would be on a sample of half of them.
READ_ROWS = 40_000
# The largest absolute value in X, and one over the least spread: the squares of both
# have to be numbers between 1e-308 and 1e308.
LARGEST_INPUT = 1e152
# The largest sample weight, and one over it: sums of weights have to be numbers.
LARGEST_WEIGHT = 1e300
# The largest decimal exponent of a squared entry of X times a weight.
LARGEST_EXPONENT = 302


class Prepare(Protocol):
    """Makes validated data of the arguments of `fit`, whose vectors are in memory."""

    def __call__(
        self,
        estimator: BaseEstimator,
        given: Given,
        settings: Settings,
        random_state: np.random.RandomState,
    ) -> Data: ...


class Given(NamedTuple):
    """The arguments of `fit`."""

    X: UserData
    y: UserVector = None
    sample_weight: UserVector = None
    groups: UserVector = None
    sample_groups: UserVector = None

    def in_memory(self) -> Given:
        """Compute the vectors that are Dask collections."""
        return Given(self.X, *map(_in_memory, self[1:]))


def validate(
    estimator: BaseEstimator,
    given: Given,
    settings: Settings,
    random_state: np.random.RandomState,
    prepare: Prepare,
) -> Data:
    """Validate the arguments of `fit`, and draw the splits; nothing is written.

    Parameters
    ----------
    estimator : BaseEstimator
        Named in scikit-learn's messages.
    prepare : callable
        `class_inputs.class_data` or `number_inputs.number_data`, by what y holds.
    """
    X = in_blocks(given.X) if _reads_blocks(settings) else given.X
    _check_readable(X, settings)
    read = given._replace(X=X).in_memory()
    data = prepare(estimator, read, settings, random_state)
    if settings.pairwise:
        return _precomputed(data, np.shape(given.y)[0])
    if not settings.model.linear and _is_small(data.X):
        data = replace(data, X=data.X[np.arange(len(data.y))])
    check_range(data.X, data.weight)
    return data


@dataclass(frozen=True, eq=False)
class Checked:
    """The arguments of `fit`, all rows, as scikit-learn validates them.

    X : dense, CSR with sorted indices, or in blocks of rows
    y : (n,), or (n, n_outputs) for numbers
    sample_weight : (n,), none negative
    groups : (n,), labels of groups that splits keep together, or None
    sample_groups : as they were given
    n_features, feature_names : of the X that was given
    """

    X: Matrix | RowBlocks
    y: Array
    sample_weight: Array
    groups: Array | None
    sample_groups: UserVector
    n_features: int
    feature_names: list[str] | None

    @classmethod
    def of(
        cls,
        estimator: BaseEstimator,
        given: Given,
        rules: Mapping[str, Any] = MappingProxyType({}),
    ) -> Checked:
        """Validate X, y, weights and groups.

        scikit-learn notes the features of X on an estimator. Here that is a copy, so
        that a fit that fails changes nothing.

        rules : what is asked of y, in scikit-learn's words
        """
        seen = type(estimator)(**estimator.get_params(deep=False))
        X, y = _inputs_and_targets(seen, given, rules)
        X = _sorted_csr(X)
        groups = given.groups
        return cls(
            X=X,
            y=y,
            sample_weight=_sample_weight(given, X),
            groups=None if groups is None else group_labels(groups, X, "groups"),
            sample_groups=given.sample_groups,
            n_features=seen.n_features_in_,
            feature_names=_names(seen),
        )


def check_range(X: Matrix | RowBlocks, weight: Array) -> None:
    """Refuse inputs whose squares overflow or underflow: distances need them.

    The natural unit of C is one over a squared size of X times a weight.
    """
    if isinstance(X, RowBlocks):
        return
    if sparse.issparse(X):
        largest = spread = float(np.max(np.abs(X.data), initial=0.0))
    else:
        low, high = X.min(axis=0), X.max(axis=0)
        largest = float(max(np.max(high), -np.min(low)))
        with np.errstate(over="ignore"):
            spread = float(np.max(high - low))
    if largest > LARGEST_INPUT:
        wrong = (
            f"The largest absolute value in X is {largest:.3g}: its square overflows"
        )
    elif 0.0 < spread < 1.0 / LARGEST_INPUT:
        wrong = f"The entries of X differ by {spread:.3g} at most: its square is zero"
    elif spread > 0.0 and _exponent(spread, float(weight.max())) > LARGEST_EXPONENT:
        wrong = (
            f"The entries of X differ by {spread:.3g} at most, and the largest sample "
            f"weight is {weight.max():.3g}: the square of one times the other is no "
            "number"
        )
    else:
        return
    raise ValueError(
        f"{wrong} in floating point. Multiply X by a constant, or standardise its "
        "features, for example with sklearn.preprocessing.StandardScaler."
    )


def _exponent(size: float, weight: float) -> float:
    """|log10 (size^2 weight)|"""
    return abs(2.0 * math.log10(size) + math.log10(weight))


def require_weight(weight: Array) -> None:
    """Refuse weights that are all zero."""
    if not weight.any():
        raise ValueError("All sample weights are zero: there is nothing to fit.")


def check_weights(weight: Array) -> None:
    """Refuse weights whose sums, or the inverses of these, overflow."""
    require_weight(weight)
    largest = float(weight.max())
    if not 1.0 / LARGEST_WEIGHT <= largest <= LARGEST_WEIGHT:
        raise ValueError(
            f"The largest sample weight is {largest:.3g}, expected {1 / LARGEST_WEIGHT}"
            f" to {LARGEST_WEIGHT}. Multiply all weights by a constant: only their "
            "ratios matter."
        )


def _precomputed(data: Data, n_rows: int) -> Data:
    """With a precomputed kernel the inputs are row numbers of its matrix."""
    n = data.n_features
    if not isinstance(data.X, np.ndarray) or n_rows != n:
        raise ValueError(
            "kernel='precomputed' takes the dense square matrix k(x_i, x_j) as X; "
            f"got {n_rows} rows and {n} columns"
            + (", sparse." if sparse.issparse(data.X) else ".")
        )
    matrix = data.X[:, data.rows]
    Precomputed(matrix).validate()
    numbers = np.arange(float(len(data.rows)))[:, None]
    return replace(data, X=numbers, matrix=matrix)


# --- inputs ---------------------------------------------------------------------------


def _sorted_csr(X: Any) -> Any:
    if not sparse.issparse(X):
        return X
    X = sparse.csr_array(X)
    X.sort_indices()
    return X


def _sample_weight(given: Given, X: Matrix | RowBlocks) -> Array:
    _refuse_masked(given.sample_weight, "sample_weight", "Use 0 for rows without one")
    weight: Array = _check_sample_weight(
        given.sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    return weight


def _names(seen: Any) -> list[str] | None:
    """Names of the features that an estimator has seen."""
    names = getattr(seen, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def in_blocks(X: UserData) -> UserData:
    """Inputs that are not in memory as blocks of rows; others as they are.

    Dask's arrays and data frames, and large arrays that are memory-mapped.
    """
    if _is_dask(X):
        from bisvm.data.partitions import Partitions

        return Partitions(X)
    large = isinstance(X, np.memmap) and X.ndim == 2 and 8 * X.size > MAPPED_LIMIT
    return Chunks.of(X) if large else X


def _in_memory(y: UserVector) -> UserVector:
    if not _is_dask(y):
        return y
    from bisvm.data.partitions import vector

    return vector(y)


def _is_dask(given: object) -> bool:
    """By the name of its module: Dask is not imported to find out."""
    return type(given).__module__.partition(".")[0] in ("dask", "dask_expr")


def _reads_blocks(settings: Settings) -> bool:
    """Whether the machine can be trained on rows in blocks."""
    whole = settings.pairwise or settings.approximation == "none"
    return settings.model.loss.twice_differentiable and (
        settings.model.linear or not whole
    )


def _is_small(X: Matrix | RowBlocks) -> bool:
    """Whether rows in blocks are so few that a kernel machine reads them once."""
    small = X.shape[0] <= READ_ROWS and 8 * X.shape[0] * X.shape[1] <= MAPPED_LIMIT
    return isinstance(X, RowBlocks) and small


def _check_readable(X: UserData, settings: Settings) -> None:
    """Refuse blocks of rows where the machine needs all rows at once."""
    blocks = isinstance(X, RowBlocks) or _is_dask(X)
    if not blocks or _reads_blocks(settings):
        return
    model = settings.model
    if settings.pairwise:
        why = "A precomputed kernel"
        what = "Pass the matrix of the kernel as an array"
    elif not model.loss.twice_differentiable:
        why = f"A machine with the loss {model.loss!r}"
        what = "Use a smooth loss, such as loss='quartic'"
    else:
        why = "approximation='none', which is the whole Gram matrix,"
        what = "Use approximation='auto'"
    raise ValueError(
        f"{why} needs its training data in memory, not in blocks of rows. {what}, or "
        "some of the rows, X[rows] (X.compute() for Dask)."
    )


def validate_inputs(
    estimator: BaseEstimator, X: UserData, *, reset: bool = False
) -> Matrix | RowBlocks:
    """Validate X as scikit-learn does; blocks of rows by their first row.

    Their entries were checked when their rows were counted.
    """
    if isinstance(X, RowBlocks):
        validate_data(estimator, X.head, **INPUTS, reset=reset)
        return X
    found: Matrix = validated(estimator, X, **INPUTS, reset=reset)
    return found


def validated(
    estimator: BaseEstimator, X: UserData, *y: UserVector, **rules: Any
) -> Any:
    """X, or X and y, by `validate_data` of scikit-learn, with plain words for errors.

    Missing labels, masked entries and text in data frames are refused here: what other
    libraries say of them does not tell what to do.
    """
    _check_data(X)
    for labels in y:
        _check_labels(labels)
    try:
        return validate_data(estimator, X, *y, **rules)
    except ValueError as error:
        if "Input X contains NaN" in str(error):
            raise ValueError(_missing_values(estimator, X)) from None
        if "could not convert string to float" not in str(error):
            raise
        word = str(error).partition(": ")[2]
        raise ValueError(
            f"X has values that are not numbers, such as {word}. Encode them as "
            "numbers, for example with sklearn.preprocessing.OneHotEncoder."
            f"{_by_pipeline(estimator, X)}"
        ) from None


def _missing_values(estimator: BaseEstimator, X: UserData) -> str:
    """What to do about missing values in X."""
    way = _by_pipeline(estimator, X) or (
        " Impute them, for example with sklearn.impute.SimpleImputer, or drop their "
        "rows."
    )
    return (
        f"Input X contains NaN. {type(estimator).__name__} takes no missing values "
        f"itself.{way}"
    )


def _by_pipeline(estimator: BaseEstimator, X: UserData) -> str:
    """The pipeline that prepares columns; empty if X is not a table."""
    if not getattr(estimator, "_takes_tables", False) or sparse.issparse(X):
        return ""
    name = type(estimator).__name__
    frame = "" if hasattr(X, "columns") else ", with X = pandas.DataFrame(X),"
    return (
        f" bisvm.tables.pipeline_for(X, {name}()){frame} makes a pipeline that fills "
        "in missing values, encodes text and scales numbers: fit it, and predict with "
        "it."
    )


def _check_data(X: UserData) -> None:
    """Refuse masked entries, which would be used, columns that share a name, dates."""
    _refuse_masked(X, "X", "Impute them, or drop their rows")
    types: Any = getattr(X, "dtypes", None)
    typed = types.items() if hasattr(types, "items") else ()
    dates = [name for name, one in typed if getattr(one, "kind", "") in ("m", "M")]
    if dates:
        raise ValueError(
            f"X has columns of dates or times: {first_names(np.array(dates))}. Make "
            "them numbers, for example days since the first one."
        )
    counts = Counter(getattr(X, "columns", ()))
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise ValueError(
            f"X has several columns of one name: {first_names(np.array(twice))}. "
            "Rename them, or drop copies."
        )


def _check_labels(y: Any) -> None:
    """Refuse missing labels of types that scikit-learn cannot compare."""
    _refuse_masked(y, "y", "Drop these rows")
    if not hasattr(y, "dtype") or sparse.issparse(y):
        return
    labels = np.asarray(y)
    if labels.dtype.kind == "O" and labels.ndim == 1:
        refuse_missing(labels, "y", "drop these rows")


def _refuse_masked(given: Any, name: str, advice: str) -> None:
    """NumPy's functions would use what is under the mask."""
    masked = isinstance(given, np.ma.MaskedArray) and np.sum(given.mask)
    if masked:
        raise ValueError(
            f"{name} is a masked array, and {masked} of its entries are masked. "
            f"{advice}."
        )


def _inputs_and_targets(
    seen: BaseEstimator, given: Given, rules: Mapping[str, Any]
) -> tuple[Any, Array]:
    X, y = given.X, given.y
    if not isinstance(X, RowBlocks):
        found: tuple[Any, Array] = validated(seen, X, y, **INPUTS, **rules)
        return found
    validate_inputs(seen, X, reset=True)
    y = X.y if y is None else y
    if y is None:
        raise ValueError(
            f"{X!r} has no labels: pass them as y, or let every chunk be a pair (X, y)."
        )
    labels = (
        check_array(y, dtype=float, ensure_2d=False, input_name="y")
        if rules
        else column_or_1d(y, warn=True)
    )
    assert_all_finite(labels, input_name="y")
    check_consistent_length(X, labels)
    return X, labels
