"""Validation of y that holds classes, class weights, and the splits of classes."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from bisvm.core.types import Array
from bisvm.core.warning import warn_user
from bisvm.criteria import Criterion
from bisvm.data.columns import SampleGroups
from bisvm.data.leave_one_out import is_leave_one_out, leave_one_out
from bisvm.data.matrices import keep
from bisvm.data.splits import Folds, Split, freeze_splits
from bisvm.data.targets import ClassLabels, class_tasks
from bisvm.estimators.group_labels import first_names, warn_of_one_class
from bisvm.estimators.inputs import Checked, Given, check_weights, require_weight
from bisvm.estimators.training_rows import TrainingRows
from bisvm.search.settings import Data, Grouping, Settings, TaskKind

# Up to this many different numbers are taken for classes, however rare they are. More
# are a scale, such as years, or quantities in whole units.
MANY_CLASSES = 20

ClassWeight = Literal["balanced", "learn"] | Mapping[Any, float] | None


def class_data(
    estimator: BaseEstimator,
    given: Given,
    settings: Settings,
    random_state: np.random.RandomState,
) -> Data:
    """Return validated data whose y holds classes."""
    return prepare_classes(
        estimator,
        given,
        random_state,
        criterion=settings.criterion,
        cv=settings.cv,
        multi_class=settings.task_kind,
        class_weight=settings.class_weight,
        grouping=settings.grouping,
    )


def prepare_classes(
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
    """Return validated data.

    Parameters
    ----------
    given : Given
        With vectors in memory.
    cv : int, splitter, list of pairs or None
        None draws no splits: all rows are for training.
    grouping : {"groups", "classes"}, optional
        What has its own C.
    """
    checked = Checked.of(estimator, given)
    check_class_labels(checked.y)
    sample_weight = checked.sample_weight
    classes, codes = np.unique(checked.y, return_inverse=True)
    _check_classes(classes, codes, sample_weight)

    def weighted(by: ClassWeight) -> Array:
        factors = class_factors(by, classes, codes, sample_weight)
        product: Array = sample_weight * factors[codes]
        return product

    weight = weighted(None if grouping == "classes" else class_weight)
    costs = criterion.class_weight
    held_weight = weight if costs is None else weighted(costs)
    _check_classes(classes, codes, weight)
    check_weights(weight)
    kept = TrainingRows.of(checked, weight, grouping)
    rows = kept.rows
    classes, codes = _with_weight(classes, codes, rows)
    y = codes[rows]
    if grouping == "groups" and kept.spread is not None:
        warn_of_one_class(kept.spread, y)
    own = SampleGroups(classes, y) if grouping == "classes" else None
    return kept.data(
        y=y,
        weight=weight[rows],
        held_weight=held_weight[rows],
        tasks=class_tasks(y, len(classes), multi_class),
        splits=_splits(cv, classes, codes, kept, random_state),
        targets=ClassLabels(len(classes)),
        classes=classes,
        sample_groups=kept.spread if grouping == "groups" else own,
    )


def check_class_labels(
    y: Array, instead: str = "use BilevelSVR or BilevelLinearSVR"
) -> None:
    """Refuse y that holds no classes, and say what to do.

    instead : for regression
    """
    labels = np.ravel(y)
    if labels.dtype.kind == "S":
        raise ValueError(
            "Unknown label type: y holds bytes. Make them text, np.char.decode(y)."
        )
    if labels.dtype == object and not all(isinstance(one, str) for one in labels):
        kinds = sorted({type(one).__name__ for one in labels})
        raise ValueError(
            f"Unknown label type: y holds Python objects ({', '.join(kinds)}). Make "
            "them all text, y.astype(str), or all whole numbers, y.astype(int)."
        )
    try:
        check_classification_targets(y)
    except ValueError as error:
        if not type_of_target(y).startswith("continuous"):
            raise
        raise ValueError(
            f"{error} y holds numbers such as {labels[0]}: for regression {instead}; "
            "for classes, make it text or whole numbers."
        ) from None


def _check_are_classes(classes: Array, codes: Array, folds: int) -> None:
    """Refuse numbers most of which are too rare to be classes in this many folds."""
    members = np.bincount(codes)
    rare = int(np.sum(members < folds))
    # Booleans and text are never numbers to be predicted, nor are codes 0, 1, 2, ...
    numbers = classes.dtype.kind in "iuf"
    # As floats: the difference of two integers may be none of their type.
    numbers = numbers and float(classes[-1]) - float(classes[0]) >= len(classes)
    if not numbers or len(classes) <= MANY_CLASSES or 2 * rare <= len(classes):
        return
    raise ValueError(
        f"y has {len(classes)} different numbers in {len(codes)} rows, and {rare} of "
        f"them are in fewer rows than there are folds ({folds}): too few to be "
        "classes. For regression use BilevelSVR or BilevelLinearSVR. If they are "
        "classes, make them text, y.astype(str)."
    )


def _check_classes(classes: Array, codes: Array, weight: Array) -> None:
    """Require two classes among the rows of positive weight."""
    require_weight(weight)
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
            f"All rows of class {first_names(gone)} have weight zero: the class is "
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


def _splits(
    cv: Folds | None,
    classes: Array,
    codes: Array,
    kept: TrainingRows,
    random_state: np.random.RandomState,
) -> list[Split]:
    """Index pairs into the rows of positive weight.

    codes : numbers of the classes, of all rows
    """
    y = codes[kept.rows]
    if cv is None:
        return [(np.arange(len(y)), np.arange(0))]
    if isinstance(cv, (int, np.integer)):
        _check_are_classes(classes, y, int(cv))
    own = getattr(cv, "draw_splits", None)
    if own is not None:
        drawn: list[Split] = own(
            classes[y], kept.groups, kept.spread_codes, random_state
        )
        return drawn
    if is_leave_one_out(cv):
        return leave_one_out(len(y), y, classes, kept.groups)
    if not isinstance(cv, (int, np.integer)):
        return kept.splits(cv, codes, random_state)
    return freeze_splits(
        cv,
        keep(kept.given.X, kept.rows),
        y,
        groups=kept.groups,
        random_state=random_state,
        names=classes,
        spread=kept.spread_codes,
        numbers=kept.rows,
    )
