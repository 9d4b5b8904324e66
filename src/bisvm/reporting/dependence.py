"""Partial dependence: predicted probabilities as one column takes other values.

With x_i^{c=v} the row x_i whose column c has the value v, the curve is

    p_c(v) = mean over i of  p(x_i^{c=v}),

over a sample of rows (Friedman 2001).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from bisvm.core.types import Array, UserData
from bisvm.tables import ColumnTypes
from bisvm.tables.columns import CATEGORY, NUMBER

# Rows of the sample, values of a number, categories and classes that are shown.
ROWS, VALUES, CATEGORIES, CLASSES = 100, 15, 8, 5


class Dependence(NamedTuple):
    """Mean probabilities at some values of a column.

    labels : the values, as text
    places : where they stand on the axis, from 0 to 1
    curves : class and its mean probability at every value
    is_number : whether the values are numbers
    """

    name: str
    labels: list[str]
    places: list[float]
    curves: list[tuple[str, list[float]]]
    is_number: bool


def dependences(
    model: BaseEstimator, X: UserData, names: Sequence[str], positive: str | None = None
) -> list[Dependence]:
    """Return the partial dependence of these columns; empty without probabilities.

    Parameters
    ----------
    model : fitted classifier, or pipeline
    X : data frame or array; others have no columns to change
    names : of columns, or numbers of columns of an array
    positive : the class of two that is shown
    """
    if not hasattr(model, "predict_proba") or not _has_columns(model, X):
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
    means = np.array([p.mean(axis=0) for p in _predicted(model, sample, name, values)])
    axis = np.array(numbers or range(len(values)), dtype=float)
    return Dependence(
        str(name),
        [f"{one:.4g}" for one in numbers] or [str(one) for one in values],
        ((axis - axis[0]) / (axis[-1] - axis[0])).tolist(),
        [
            (str(model.classes_[k]), means[:, k].tolist())
            for k in _shown(model.classes_, means, positive)
        ],
        bool(numbers),
    )


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


def _predicted(
    model: BaseEstimator, sample: UserData, name: str, values: Sequence[object]
) -> Iterator[Array]:
    for value in values:
        if hasattr(sample, "iloc"):
            yield model.predict_proba(sample.assign(**{name: value}))
        else:
            changed = sample.copy()
            changed[:, int(name)] = value
            yield model.predict_proba(changed)


def _shown(classes: Array, means: Array, positive: str | None) -> list[int]:
    """The class of interest of two, or those whose probability changes most."""
    if len(classes) == 2:
        return [0 if positive is not None and str(classes[0]) == positive else 1]
    change = means.max(axis=0) - means.min(axis=0)
    return sorted(np.argsort(-change, kind="stable")[:CLASSES].tolist())
