"""From what a user passes to `fit` to data that need no further questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from bisvm.criteria import Criterion
from bisvm.data.chunks import Chunks
from bisvm.data.pieces import Pieces, keep
from bisvm.data.sample_groups import SampleGroups
from bisvm.data.splits import Split, class_tasks, freeze_splits
from bisvm.estimators.grouping import (
    check_groups,
    check_sample_groups,
    warn_of_small_groups,
)
from bisvm.kernels import Precomputed
from bisvm.machines.model import Model
from bisvm.search.data import Data
from bisvm.search.settings import Settings

# What is asked of inputs, in fit and in predict.
INPUTS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "order": "C"}
# A memory-mapped array of more bytes than this, as float64, stays where it is.
MAPPED_LIMIT = 2**28


def validate(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    groups: Any,
    sample_groups: Any,
    settings: Settings,
    random_state: np.random.RandomState,
) -> Data:
    """Validate all that `fit` is given, and draw the splits; nothing is written."""
    model = settings.model
    if model.linear or not isinstance(X, np.memmap):
        X = in_pieces(X)
    check_readable(X, model)
    data = prepare(
        estimator,
        X,
        in_memory(y),
        in_memory(sample_weight),
        in_memory(groups),
        in_memory(sample_groups),
        random_state,
        criterion=settings.criterion,
        grouping=settings.grouping,
    )
    return _precomputed(data, y) if settings.pairwise else data


def _precomputed(data: Data, y: Any) -> Data:
    """With a precomputed kernel the inputs are row numbers of its matrix."""
    n, n_rows = data.n_features, len(y)
    if sparse.issparse(data.X) or n_rows != n:
        raise ValueError(
            "kernel='precomputed' takes the dense square matrix k(x_i, x_j) as X; "
            f"got {n_rows} rows and {n} columns"
            + (", sparse." if sparse.issparse(data.X) else ".")
        )
    matrix = data.X[:, data.rows]
    Precomputed(matrix).validate()
    numbers = np.arange(float(len(data.rows)))[:, None]
    return replace(data, X=numbers, matrix=matrix)


def prepare(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    groups: Any,
    sample_groups: Any,
    random_state: np.random.RandomState,
    *,
    criterion: Criterion,
    grouping: str | None = None,
    split: bool = True,
) -> Data:
    """Validated data.

    grouping : "groups" or "classes" if these have a C of their own
    split : whether splits are drawn; if not, all rows are for training
    """
    X, y, seen = _validated(estimator, X, y)
    check_classification_targets(y)
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        X.sort_indices()
    classes, codes = np.unique(y, return_inverse=True)
    groups = check_groups(groups, X)
    given = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    _check_classes(classes, codes, given)
    class_weight = None if grouping == "classes" else estimator.class_weight
    weight = given * class_factors(class_weight, classes, codes, given)[codes]
    costs = criterion.class_weight
    held_weight = (
        weight
        if costs is None
        else given * class_factors(costs, classes, codes, given)[codes]
    )
    rows = np.flatnonzero(weight > 0)
    _check_classes(classes, codes, weight)
    spread = check_sample_groups(sample_groups, X, rows, grouping)
    if grouping == "groups":
        warn_of_small_groups(spread, codes[rows])
    by_class = SampleGroups(classes, codes[rows]) if grouping == "classes" else None
    names = getattr(seen, "feature_names_in_", None)
    return Data(
        X=keep(X, rows),
        y=codes[rows],
        rows=rows,
        weight=weight[rows],
        sample_weight=given[rows],
        held_weight=held_weight[rows],
        tasks=class_tasks(codes[rows], len(classes), estimator.multi_class),
        splits=_splits(
            estimator.cv, classes, X, codes, rows, groups, spread, random_state
        )
        if split
        else [(np.arange(len(rows)), np.arange(0))],
        classes=classes,
        n_features=seen.n_features_in_,
        feature_names=None if names is None else [str(name) for name in names],
        groups=(
            None if groups is None else np.unique(groups[rows], return_inverse=True)[1]
        ),
        sample_groups=spread if grouping == "groups" else by_class,
    )


def in_pieces(X: Any) -> Any:
    """What is not in memory in pieces; anything else as it is.

    Dask's arrays and data frames, and large arrays that are memory-mapped.
    """
    if _is_dask(X):
        from bisvm.data.partitions import Partitions

        return Partitions(X)
    large = isinstance(X, np.memmap) and X.ndim == 2 and 8 * X.size > MAPPED_LIMIT
    return Chunks.of(X) if large else X


def in_memory(y: Any) -> Any:
    """A vector of Dask's computed; anything else as it is."""
    if not _is_dask(y):
        return y
    from bisvm.data.partitions import vector

    return vector(y)


def _is_dask(given: Any) -> bool:
    """By the name of its module: Dask is not imported to find out."""
    return type(given).__module__.partition(".")[0] in ("dask", "dask_expr")


def check_readable(X: Any, model: Model) -> None:
    """Refuse chunks where the machine needs all rows at once."""
    by_rows = model.linear and model.loss.twice_differentiable
    if isinstance(X, Pieces) and not by_rows:
        raise ValueError(
            f"A machine with {model.kernel!r} and {model.loss!r} needs its training "
            "data in memory, not in chunks. Use a linear machine with a smooth loss "
            "(BilevelLinearSVC), or some of the rows, X[rows] (X.compute() for Dask)."
        )


def validate_inputs(estimator: Any, X: Any, *, reset: bool = False) -> Any:
    """As scikit-learn validates X; the first row speaks for a matrix in pieces.

    Its entries were checked when its rows were counted.
    """
    if isinstance(X, Pieces):
        validate_data(estimator, X.head, **INPUTS, reset=reset)
        return X
    return validate_data(estimator, X, **INPUTS, reset=reset)


def _validated(estimator: Any, X: Any, y: Any) -> tuple[Any, np.ndarray, Any]:
    """X and y as scikit-learn validates them, and what it keeps of X.

    It keeps that on an estimator: here on a copy, so that a fit that fails leaves
    nothing behind.
    """
    seen = type(estimator)(**estimator.get_params(deep=False))
    if not isinstance(X, Pieces):
        return *validate_data(seen, X, y, **INPUTS), seen
    X = validate_inputs(seen, X, reset=True)
    y = X.y if y is None else y
    if y is None:
        raise ValueError(
            f"{X!r} has no labels: pass them as y, or let every chunk be a pair (X, y)."
        )
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_consistent_length(X, y)
    return X, y, seen


def _check_classes(classes: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> None:
    """Two classes at least, among the points that count."""
    if not weight.any():
        raise ValueError("All sample weights are zero: there is nothing to fit.")
    present = np.unique(codes[weight > 0])
    if len(present) < 2:
        without = (
            "" if len(classes) < 2 else " after points of weight zero are left out"
        )
        raise ValueError(
            f"y has one class only{without}, {classes[present[0]]!s}; "
            "a classifier needs two."
        )


def class_factors(
    class_weight: Any, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """One factor a class; "balanced" gives all classes the same total weight."""
    n_classes = len(classes)
    if class_weight is None:
        return np.ones(n_classes)
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(
                f"class_weight={class_weight!r} is not known; expected None, "
                "'balanced', a dict from class to weight, or, for BilevelSVC and "
                "BilevelLinearSVC, 'learn'."
            )
        total = np.bincount(codes, weight, minlength=n_classes)
        return weight.sum() / (n_classes * np.where(total > 0, total, 1.0))
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight={class_weight!r} is not understood; expected a dict from "
            f"class to weight, such as {dict.fromkeys(classes.tolist()[:2], 1.0)}."
        )
    unknown = set(class_weight) - set(classes.tolist())
    if unknown:
        raise ValueError(
            "class_weight names classes that y does not have: "
            f"{sorted(unknown, key=str)}; y has {classes.tolist()}."
        )
    given = class_weight.values()
    if not all(isinstance(one, Real) and 0.0 <= float(one) < np.inf for one in given):
        raise ValueError(
            "class_weight must have finite numbers that are not negative, got "
            f"{class_weight}."
        )
    return np.array([float(class_weight.get(c, 1.0)) for c in classes.tolist()])


def _splits(
    cv: Any,
    classes: np.ndarray,
    X: Any,
    codes: np.ndarray,
    rows: np.ndarray,
    groups: Any,
    spread: SampleGroups | None,
    random_state: np.random.RandomState,
) -> list[Split]:
    """Index pairs into the rows of positive weight.

    An int or a splitter divides those rows alone; given index pairs speak of all.
    """
    drawn_by_itself = getattr(cv, "draw_splits", None)
    if drawn_by_itself is not None:
        groups = None if groups is None else groups[rows]
        together = None if spread is None else spread.codes
        return drawn_by_itself(classes[codes[rows]], groups, together, random_state)
    by_rule = hasattr(cv, "split") and not isinstance(cv, str)
    if isinstance(cv, (int, np.integer)) or by_rule:
        groups = None if groups is None else groups[rows]
        return freeze_splits(
            cv,
            keep(X, rows),
            codes[rows],
            groups=groups,
            random_state=random_state,
            names=classes,
            spread=None if spread is None else spread.codes,
            numbers=rows,
        )
    pairs = freeze_splits(cv, X, codes, random_state=random_state)
    place = np.full(len(codes), -1)
    place[rows] = np.arange(len(rows))
    return [
        (_present(place[train]), _present(place[validation]))
        for train, validation in pairs
    ]


def _present(places: np.ndarray) -> np.ndarray:
    return places[places >= 0]
