"""From what a user passes to `fit` to data that need no further questions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
)
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, validate_data

from bisvm.core.types import Array, Matrix, UserData, UserVector
from bisvm.core.warning import warn_user
from bisvm.criteria import Criterion
from bisvm.data.chunks import Chunks
from bisvm.data.matrices import RowBlocks, keep
from bisvm.data.splits import Folds, SampleGroups, Split, draw_folds, freeze_splits
from bisvm.data.targets import ClassLabels, Numbers, class_tasks
from bisvm.kernels import Precomputed
from bisvm.machines.model import Model
from bisvm.search.settings import Data, Grouping, Settings, TaskKind

# What is asked of inputs, in fit and in predict.
INPUTS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "order": "C"}
# What is asked of y that holds numbers.
NUMBERS: dict[str, Any] = {"multi_output": True, "y_numeric": True}
# A memory-mapped array of more bytes than this, as float64, is read block by block.
MAPPED_LIMIT = 2**28
# The largest absolute value in X, and one over the least spread: the squares of both
# have to be numbers between 1e-308 and 1e308.
LARGEST_INPUT = 1e152
# The largest sample weight, and one over it: sums of weights have to be numbers.
LARGEST_WEIGHT = 1e300
# The largest decimal exponent of a squared entry of X times a weight.
LARGEST_EXPONENT = 302
# Names of groups that a message lists.
_FEW_NAMES = 5

ClassWeight = Literal["balanced", "learn"] | Mapping[Any, float] | None


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
        `class_data` or `number_data`, by what y holds.
    """
    model, X = settings.model, given.X
    if model.linear or not isinstance(X, np.memmap):
        X = in_blocks(X)
    _check_readable(X, model)
    read = given._replace(X=X).in_memory()
    data = prepare(estimator, read, settings, random_state)
    if settings.pairwise:
        return _precomputed(data, np.shape(given.y)[0])
    check_range(data.X, data.weight)
    return data


def check_range(X: Matrix | RowBlocks, weight: Array) -> None:
    """Refuse inputs whose squares are no numbers: distances and products need them.

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


def _check_weights(weight: Array) -> None:
    """Refuse weights whose sums, or one over them, are no numbers."""
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


def class_data(
    estimator: BaseEstimator,
    given: Given,
    settings: Settings,
    random_state: np.random.RandomState,
) -> Data:
    """Return validated data whose y holds classes."""
    return prepare(
        estimator,
        given,
        random_state,
        criterion=settings.criterion,
        cv=settings.cv,
        multi_class=settings.task_kind,
        class_weight=settings.class_weight,
        grouping=settings.grouping,
    )


def number_data(
    estimator: BaseEstimator,
    given: Given,
    settings: Settings,
    random_state: np.random.RandomState,
) -> Data:
    """Return validated data whose y holds numbers: one output, or several."""
    _check_numbers(given.y)
    X, y, seen = _validated(estimator, given.X, given.y, NUMBERS)
    X = _sorted_csr(X)
    groups = None if given.groups is None else group_labels(given.groups, X, "groups")
    weight = _sample_weight(given, X)
    if not weight.any():
        raise ValueError("All sample weights are zero: there is nothing to fit.")
    _check_weights(weight)
    rows = np.flatnonzero(weight > 0)
    grouping = settings.grouping
    spread = _sample_groups(given.sample_groups, X, rows, grouping)
    if grouping == "groups":
        _warn_of_small_groups(spread)
    own = y.reshape(len(y), -1)[rows]
    centred = settings.model.intercept == "free"
    targets = Numbers.of(own, weight[rows], centred=centred)
    splits = _number_splits(settings.cv, X, y, rows, groups, spread, random_state)
    _warn_of_constant(own)
    return Data(
        X=keep(X, rows),
        y=y[rows],
        rows=rows,
        weight=weight[rows],
        sample_weight=weight[rows],
        held_weight=weight[rows],
        tasks=targets.tasks(own, settings.task_kind),
        splits=splits,
        targets=targets,
        classes=np.empty(0),
        n_features=seen.n_features_in_,
        feature_names=_names(seen),
        groups=_numbered(groups, rows),
        sample_groups=spread if grouping == "groups" else None,
    )


def _check_numbers(y: Any) -> None:
    """Refuse text, which scikit-learn would say is in X."""
    values = np.asarray(y)
    if values.dtype.kind not in "OUS" or sparse.issparse(y):
        return
    try:
        values.astype(float)
    except (TypeError, ValueError):
        text = [one for one in values.ravel() if not isinstance(one, Real)]
        raise ValueError(
            f"y has values that are not numbers, such as {str(text[0])!r}. Regression "
            "needs numbers; for classes use BilevelSVC or BilevelLinearSVC."
        ) from None


def _warn_of_constant(y: Array) -> None:
    constant = np.ptp(y, axis=0) == 0
    if constant.any():
        which = "y" if y.shape[1] == 1 else f"Output {constant.argmax()} of y"
        warn_user(
            f"{which} is constant, {y[0, constant.argmax()]:g}: so are its "
            "predictions, and nothing can be learned from it."
        )


def prepare(
    estimator: BaseEstimator,
    given: Given,
    random_state: np.random.RandomState,
    *,
    criterion: Criterion,
    cv: Folds | None,
    multi_class: TaskKind,
    class_weight: ClassWeight,
    grouping: Grouping | None = None,
) -> Data:
    """Validated data.

    Parameters
    ----------
    given : Given
        With vectors in memory.
    cv : int, splitter, list of pairs or None
        None draws no splits: all rows are for training.
    grouping : {"groups", "classes"}, optional
        What has its own C.
    """
    X, y, seen = _validated(estimator, given.X, given.y)
    _check_class_labels(y)
    X = _sorted_csr(X)
    classes, codes = np.unique(y, return_inverse=True)
    groups = None if given.groups is None else group_labels(given.groups, X, "groups")
    sample_weight = _sample_weight(given, X)
    _check_classes(classes, codes, sample_weight)

    def weighted(by: ClassWeight) -> Array:
        factors = class_factors(by, classes, codes, sample_weight)
        product: Array = sample_weight * factors[codes]
        return product

    weight = weighted(None if grouping == "classes" else class_weight)
    costs = criterion.class_weight
    held_weight = weight if costs is None else weighted(costs)
    rows = np.flatnonzero(weight > 0)
    _check_classes(classes, codes, weight)
    _check_weights(weight)
    classes, codes = _with_weight(classes, codes, rows)
    spread = _sample_groups(given.sample_groups, X, rows, grouping)
    if grouping == "groups":
        _warn_of_small_groups(spread)
        _warn_of_one_class(spread, codes[rows])
    by_class = SampleGroups(classes, codes[rows]) if grouping == "classes" else None
    return Data(
        X=keep(X, rows),
        y=codes[rows],
        rows=rows,
        weight=weight[rows],
        sample_weight=sample_weight[rows],
        held_weight=held_weight[rows],
        tasks=class_tasks(codes[rows], len(classes), multi_class),
        splits=[(np.arange(len(rows)), np.arange(0))]
        if cv is None
        else _splits(cv, classes, X, codes, rows, groups, spread, random_state),
        targets=ClassLabels(len(classes)),
        classes=classes,
        n_features=seen.n_features_in_,
        feature_names=_names(seen),
        groups=_numbered(groups, rows),
        sample_groups=spread if grouping == "groups" else by_class,
    )


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


def _numbered(groups: Array | None, rows: Array) -> Array | None:
    """Numbers 0, 1, ... of the groups of these rows."""
    if groups is None:
        return None
    return np.unique(groups[rows], return_inverse=True)[1]


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


def _check_readable(X: UserData, model: Model) -> None:
    """Refuse blocks of rows where the machine needs all rows at once."""
    by_rows = model.linear and model.loss.twice_differentiable
    if isinstance(X, RowBlocks) and not by_rows:
        raise ValueError(
            f"A machine with {model.kernel!r} and {model.loss!r} needs its training "
            "data in memory, not in chunks. Use a linear machine with a smooth loss "
            "(BilevelLinearSVC), or some of the rows, X[rows] (X.compute() for Dask)."
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
        if "could not convert string to float" not in str(error):
            raise
        word = str(error).partition(": ")[2]
        raise ValueError(
            f"X has values that are not numbers, such as {word}. Encode them as "
            "numbers, for example with sklearn.preprocessing.OneHotEncoder."
        ) from None


def _check_data(X: UserData) -> None:
    """Refuse masked entries, which would be used, and columns that share a name."""
    _refuse_masked(X, "X", "Impute them, or drop their rows")
    counts = Counter(getattr(X, "columns", ()))
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise ValueError(
            f"X has several columns of one name: {_first_names(np.array(twice))}. "
            "Rename them, or drop copies."
        )


def _check_labels(y: Any) -> None:
    """Refuse missing labels of types that scikit-learn cannot compare."""
    _refuse_masked(y, "y", "Drop these rows")
    if not hasattr(y, "dtype") or sparse.issparse(y):
        return
    labels = np.asarray(y)
    if labels.dtype.kind == "O" and labels.ndim == 1:
        _refuse_missing(labels, "y", "drop these rows")


def _refuse_masked(given: Any, name: str, advice: str) -> None:
    """NumPy's functions would use what is under the mask."""
    masked = isinstance(given, np.ma.MaskedArray) and np.sum(given.mask)
    if masked:
        raise ValueError(
            f"{name} is a masked array, and {masked} of its entries are masked. "
            f"{advice}."
        )


def _validated(
    estimator: BaseEstimator,
    X: UserData,
    y: UserVector,
    rules: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Any, Array, BaseEstimator]:
    """X and y as scikit-learn validates them, and an estimator that has seen X.

    scikit-learn notes the features of X on an estimator. Here that is a copy, so that
    a fit that fails changes nothing.

    rules : what is asked of y, in scikit-learn's words
    """
    seen = type(estimator)(**estimator.get_params(deep=False))
    if not isinstance(X, RowBlocks):
        return *validated(seen, X, y, **INPUTS, **rules), seen
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
    return X, labels, seen


# --- classes --------------------------------------------------------------------------


def _check_class_labels(y: Array) -> None:
    """Refuse continuous y, with what to use for it."""
    try:
        check_classification_targets(y)
    except ValueError as error:
        if not type_of_target(y).startswith("continuous"):
            raise
        raise ValueError(
            f"{error} y holds numbers such as {np.ravel(y)[0]}: for regression use "
            "BilevelSVR or BilevelLinearSVR; for classes, make it text or whole "
            "numbers."
        ) from None


def _check_classes(classes: Array, codes: Array, weight: Array) -> None:
    """Require two classes among the rows of positive weight."""
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


def _with_weight(classes: Array, codes: Array, rows: Array) -> tuple[Array, Array]:
    """Classes that have rows of positive weight, and the codes of `rows` among them.

    Rows of weight zero are left out, so a class that has no others is not there.
    """
    present = np.unique(codes[rows])
    if len(present) < len(classes):
        gone = np.delete(classes, present)
        warn_user(
            f"All rows of class {_first_names(gone)} have weight zero: the class is "
            "left out, and is not in classes_. Drop its rows, or give them a weight."
        )
    return classes[present], np.searchsorted(present, codes)


def class_factors(
    class_weight: ClassWeight, classes: Array, codes: Array, weight: Array
) -> Array:
    """One factor per class; "balanced" gives all classes the same total weight."""
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
        n_present = np.sum(total > 0)
        balanced: Array = weight.sum() / (n_present * np.where(total > 0, total, 1.0))
        return balanced
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


# --- groups ---------------------------------------------------------------------------


def _sample_groups(
    given: UserVector, X: Matrix | RowBlocks, rows: Array, grouping: Grouping | None
) -> SampleGroups | None:
    """The groups of these rows; a warning if they have no C of their own."""
    if given is None:
        if grouping == "groups":
            raise ValueError(
                "regularization='per_group' needs the group of every sample: "
                "fit(X, y, sample_groups=...), one label per sample."
            )
        return None
    labels = group_labels(given, X, "sample_groups")
    if grouping != "groups":
        warn_user(
            "sample_groups are given, but no group has a C of its own: they only "
            "decide how samples are spread over the folds. "
            "Use regularization='per_group'."
        )
    return SampleGroups.of(labels[rows])


def group_labels(given: UserVector, X: Matrix | RowBlocks, name: str) -> Array:
    """One label per sample, all of one type, none missing."""
    labels = np.asarray(given)
    if labels.ndim != 1:
        raise ValueError(
            f"{name} has shape {labels.shape}, expected one label per sample."
        )
    if len(labels) != X.shape[0]:
        raise ValueError(f"{name} has {len(labels)} labels for {X.shape[0]} samples.")
    _refuse_missing(labels, name, "give them their own group, or drop them")
    try:
        np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(
            f"{name} has labels of several types, {', '.join(kinds)}, which cannot be "
            "sorted: make them all text."
        ) from None
    return labels


def _refuse_missing(labels: Array, name: str, advice: str) -> None:
    missing = (
        np.array([_is_missing(label) for label in labels], dtype=bool)
        if labels.dtype == object
        else np.asarray(labels != labels)
    )
    if missing.any():
        raise ValueError(
            f"{name} has no label for {missing.sum()} samples, such as sample "
            f"{missing.argmax()}: {advice}."
        )


def _is_missing(label: object) -> bool:
    """None, NaN, and pandas' NA, which does not say whether it equals itself."""
    try:
        return label is None or not bool(label == label)
    except TypeError:
        return True


def _warn_of_small_groups(groups: SampleGroups | None) -> None:
    """Warn of groups whose learned C says little about how far to trust them."""
    assert groups is not None
    if len(groups) == 1:
        warn_user(
            f"sample_groups has one group only, {groups.names[0]!s}: its C is that of "
            "regularization='shared'."
        )
    members = np.bincount(groups.codes)
    alone = groups.names[members == 1]
    if len(alone):
        warn_user(
            f"Groups with one sample only: {_first_names(alone)}. Their C rests on it "
            "alone, and mostly on the prior; join small groups if they are alike."
        )


def _warn_of_one_class(groups: SampleGroups | None, y: Array) -> None:
    """Warn of groups whose C also weighs one class against the others."""
    assert groups is not None
    members = np.bincount(groups.codes)
    present = np.zeros((len(groups), y.max() + 1), dtype=bool)
    present[groups.codes, y] = True
    one_class = groups.names[(present.sum(axis=1) == 1) & (members > 1)]
    if len(one_class):
        warn_user(
            f"Groups with one class only: {_first_names(one_class)}. Their C also "
            "weighs that class against the others, and says less about the group."
        )


def _first_names(names: Array) -> str:
    more = len(names) - _FEW_NAMES
    listed = ", ".join(str(name) for name in names[:_FEW_NAMES])
    return f"{listed} and {more} more" if more > 0 else listed


# --- splits ---------------------------------------------------------------------------


def _number_splits(
    cv: Folds,
    X: Matrix | RowBlocks,
    y: Array,
    rows: Array,
    groups: Array | None,
    spread: SampleGroups | None,
    random_state: np.random.RandomState,
) -> list[Split]:
    """Index pairs into the rows of positive weight, for y that holds numbers."""
    if hasattr(cv, "draw_splits"):
        raise ValueError(
            f"cv={cv!r} draws splits by classes. For regression use a number of folds, "
            "a splitter such as KFold, or index pairs."
        )
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        together = None if groups is None else groups[rows]
        own = None if spread is None else spread.codes
        return draw_folds(int(cv), len(rows), together, own, random_state)
    return _given_splits(cv, X, y, rows, groups, random_state)


def _splits(
    cv: Folds,
    classes: Array,
    X: Matrix | RowBlocks,
    codes: Array,
    rows: Array,
    groups: Array | None,
    spread: SampleGroups | None,
    random_state: np.random.RandomState,
) -> list[Split]:
    """Index pairs into the rows of positive weight.

    An int or a splitter divides those rows alone; given index pairs refer to all rows.
    """
    together = None if groups is None else groups[rows]
    spread_codes = None if spread is None else spread.codes
    own = getattr(cv, "draw_splits", None)
    if own is not None:
        labels = classes[codes[rows]]
        drawn: list[Split] = own(labels, together, spread_codes, random_state)
        return drawn
    if isinstance(cv, (int, np.integer)):
        return freeze_splits(
            cv,
            keep(X, rows),
            codes[rows],
            groups=together,
            random_state=random_state,
            names=classes,
            spread=spread_codes,
            numbers=rows,
        )
    return _given_splits(cv, X, codes, rows, groups, random_state)


def _given_splits(
    cv: Folds,
    X: Matrix | RowBlocks,
    y: Array,
    rows: Array,
    groups: Array | None,
    random_state: np.random.RandomState,
) -> list[Split]:
    """Index pairs of a splitter, or those given."""
    if hasattr(cv, "split") and not isinstance(cv, str):
        return freeze_splits(
            cv,
            keep(X, rows),
            y[rows],
            groups=None if groups is None else groups[rows],
            random_state=random_state,
            numbers=rows,
        )
    pairs = freeze_splits(cv, X, y, random_state=random_state)
    place = np.full(len(y), -1)
    place[rows] = np.arange(len(rows))
    places = [(place[train], place[held_out]) for train, held_out in pairs]
    return [(train[train >= 0], out[out >= 0]) for train, out in places]
