"""Partial dependence: predictions as one column takes other values.

With x_i^{c=v} the row x_i whose column c has the value v, the curve is

    p_c(v) = mean over i of  p(x_i^{c=v}),

over a sample of rows (Friedman 2001), with p the probability of a class, or a predicted
number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.pipeline import Pipeline

from bisvm.core.types import Array, UserData
from bisvm.reporting.axes import Axis
from bisvm.tables import ColumnTypes
from bisvm.tables.columns import CATEGORY, NUMBER

# Rows of the sample, values of a number, categories and classes that are shown.
ROWS, VALUES, CATEGORIES, CLASSES = 100, 15, 8, 5
# Where the axis of probabilities may end, and by how much they may exceed one.
TOPS, ROUNDING = (0.1, 0.2, 0.5, 1.0), 1e-9


class Dependence(NamedTuple):
    """Mean predictions at some values of a column.

    labels : the values, as text
    places : where they stand on the axis, from 0 to 1
    curves : class and its mean probability at every value; for numbers an empty name
        and the mean prediction
    is_number : whether the values are numbers
    limits : of the axis of predictions
    unit : what is predicted, "probability" or "number"
    """

    name: str
    labels: list[str]
    places: list[float]
    curves: list[tuple[str, list[float]]]
    is_number: bool
    limits: tuple[float, float] = (0.0, 1.0)
    unit: str = "probability"

    @property
    def what(self) -> str:
        return "probability of" if self.unit == "probability" else "mean prediction"

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places on the axis of predictions, from 0 to 1, and what is written there."""
        return Axis(*self.limits).ticks

    def height(self, value: float) -> float:
        """Where a prediction stands on its axis, from 0 to 1."""
        low, high = self.limits
        return (value - low) / (high - low)

    def said(self, values: Sequence[float]) -> str:
        """The ends of a curve, or the lowest and the highest of the categories."""
        if self.is_number:
            first, last = self.text(values[0]), self.text(values[-1])
            return f"{first} at the left, {last} at the right"
        low, high = int(np.argmin(values)), int(np.argmax(values))
        return " to ".join(
            f"{self.text(values[k])} for {self.labels[k]}" for k in (low, high)
        )

    def text(self, value: float) -> str:
        return f"{value:.1%}" if self.unit == "probability" else f"{value:.4g}"


def dependences(
    model: BaseEstimator, X: UserData, names: Sequence[str], positive: str | None = None
) -> list[Dependence]:
    """Return the partial dependence of these columns; empty without probabilities.

    Parameters
    ----------
    model : fitted classifier or regressor, or pipeline
    X : data frame or array; others have no columns to change
    names : of columns, or numbers of columns of an array
    positive : the class of two that is shown
    """
    possible = is_regressor(model) or hasattr(model, "predict_proba")
    if not possible or not _has_columns(model, X):
        return []
    rows = np.random.default_rng(0).permutation(len(X))[:ROWS]
    sample = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    found = (_dependence(model, X, sample, name, positive) for name in names)
    return [one for one in found if one is not None]


def _has_columns(model: BaseEstimator, X: UserData) -> bool:
    """Whether names are those of columns of X: a pipeline may have others inside."""
    if isinstance(model, Pipeline):
        return isinstance(model[0], ColumnTypes) and hasattr(X, "iloc")
    return hasattr(X, "iloc") or (isinstance(X, np.ndarray) and X.ndim == 2)


def _dependence(
    model: BaseEstimator, X: UserData, sample: UserData, name: str, positive: str | None
) -> Dependence | None:
    column, kind = _column(X, name), _kind(model, name)
    if column is None or kind not in (NUMBER, CATEGORY):
        return None
    numbers = _numbers(column) if kind == NUMBER else []
    values = numbers or (_categories(column) if kind == CATEGORY else [])
    if len(values) < 2:
        return None
    means = _means(model, sample, name, values)
    axis = np.array(numbers or range(len(values)), dtype=float)
    more: dict[str, Any] = {}
    if is_regressor(model):
        curves = [("", means[:, 0].tolist())]
        more = {"limits": _limits(model, sample, means), "unit": "number"}
    else:
        shown = _shown(model.classes_, means, positive)
        curves = [(str(model.classes_[k]), means[:, k].tolist()) for k in shown]
        highest = float(means[:, shown].max())
        more = {"limits": (0.0, next(top for top in TOPS if top >= highest - ROUNDING))}
    return Dependence(
        str(name),
        [f"{one:.4g}" for one in numbers] or [str(one) for one in values],
        ((axis - axis[0]) / (axis[-1] - axis[0])).tolist(),
        curves,
        bool(numbers),
        **more,
    )


def _limits(
    model: BaseEstimator, sample: UserData, means: Array
) -> tuple[float, float]:
    """From the 10th to the 90th percentile of predictions, and to all that is drawn."""
    middle = np.quantile(model.predict(sample), [0.1, 0.9])
    low, high = float(min(middle[0], means.min())), float(max(middle[1], means.max()))
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _column(X: UserData, name: str) -> Array | None:
    if hasattr(X, "iloc"):
        return X[name].to_numpy() if name in X else None
    return np.asarray(X[:, int(name)]) if str(name).isdigit() else None


def _kind(model: BaseEstimator, name: str) -> str | None:
    if isinstance(model, Pipeline) and isinstance(model[0], ColumnTypes):
        kind: str | None = model[0].kinds_.get(name)
        return kind
    return NUMBER


def _numbers(column: Array) -> list[float]:
    """Values from the 2nd to the 98th percentile, at equal distances."""
    try:
        numbers = np.array(column, dtype=float)
    except (TypeError, ValueError):
        return []
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return []
    low, high = np.quantile(numbers, [0.02, 0.98])
    few = np.unique(numbers)
    if len(few) <= VALUES:
        return [float(one) for one in few]
    return np.linspace(low, high, VALUES).tolist() if high > low else []


def _categories(column: Array) -> list[str]:
    known = [str(one) for one in column if isinstance(one, (str, bool, np.bool_, int))]
    names, counts = np.unique(known, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:CATEGORIES]
    return [str(names[k]) for k in order]


def _means(
    model: BaseEstimator, sample: UserData, name: str, values: Sequence[object]
) -> Array:
    """(values, outputs), all from one call: a pipeline prepares all columns each time.

    The sample is repeated for every value.
    """
    n, copies = len(sample), np.tile(np.arange(len(sample)), len(values))
    every = [value for value in values for _ in range(n)]
    if hasattr(sample, "iloc"):
        changed = sample.iloc[copies].assign(**{name: every})
    else:
        changed = sample[copies]
        changed[:, int(name)] = every
    predict = model.predict if is_regressor(model) else model.predict_proba
    predicted: Array = np.reshape(predict(changed), (len(values), n, -1))
    return np.asarray(predicted.mean(axis=1))


def _shown(classes: Array, means: Array, positive: str | None) -> list[int]:
    """The class of interest of two, or those whose probability changes most."""
    if len(classes) == 2:
        return [0 if positive is not None and str(classes[0]) == positive else 1]
    change = means.max(axis=0) - means.min(axis=0)
    return sorted(np.argsort(-change, kind="stable")[:CLASSES].tolist())
