"""Validation of y that holds numbers: one output, or several."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from bisvm.core.types import Array
from bisvm.core.warning import warn_user
from bisvm.data.leave_one_out import is_leave_one_out, leave_one_out
from bisvm.data.splits import Folds, Split, draw_folds
from bisvm.data.targets import Numbers
from bisvm.estimators.inputs import Checked, Given, check_weights
from bisvm.estimators.training_rows import TrainingRows
from bisvm.search.settings import Data, Settings

# What is asked of y.
NUMBERS: dict[str, Any] = {"multi_output": True, "y_numeric": True}


def number_data(
    estimator: BaseEstimator,
    given: Given,
    settings: Settings,
    random_state: np.random.RandomState,
) -> Data:
    """Return validated data whose y holds numbers: one output, or several."""
    _check_numbers(given.y)
    checked = Checked.of(estimator, given, NUMBERS)
    check_weights(checked.sample_weight)
    kept = TrainingRows.of(checked, checked.sample_weight, settings.grouping)
    # Squares and differences of other types overflow, or have few digits.
    y = checked.y[kept.rows].astype(np.float64)
    weight = checked.sample_weight[kept.rows]
    outputs = y.reshape(len(y), -1)
    centred = settings.model.intercept == "free"
    targets = Numbers.of(outputs, weight, centred=centred)
    splits = _splits(settings.cv, kept, random_state)
    _warn_of_constant(outputs)
    return kept.data(
        y=y,
        weight=weight,
        held_weight=weight,
        tasks=targets.tasks(outputs, settings.task_kind),
        splits=splits,
        targets=targets,
        classes=np.empty(0),
        sample_groups=kept.spread if settings.grouping == "groups" else None,
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


def _splits(
    cv: Folds, kept: TrainingRows, random_state: np.random.RandomState
) -> list[Split]:
    """Index pairs into the rows of positive weight."""
    if hasattr(cv, "draw_splits"):
        raise ValueError(
            f"cv={cv!r} draws splits by classes. For regression use a number of folds, "
            "a splitter such as KFold, or index pairs."
        )
    if is_leave_one_out(cv):
        return leave_one_out(len(kept.rows), groups=kept.groups)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        return draw_folds(
            int(cv), len(kept.rows), kept.groups, kept.spread_codes, random_state
        )
    return kept.splits(cv, kept.given.y, random_state)
