"""A scikit-learn pipeline from the columns of a table to the inputs of a machine."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
)

from bisvm.core.types import UserData
from bisvm.tables.columns import DATE, ColumnTypes, as_frame
from bisvm.tables.doubtful import doubtful_columns
from bisvm.tables.errors import ColumnWarning
from bisvm.tables.table import Table, check_columns

# The rarest categories of a column beyond this number are merged into one.
MOST_CATEGORIES = 30
# Columns of new rows of which it is told that they are unlike the training data.
MOST_NOTES = 5
# How far outside of the training data a number or date is, in ranges of these.
FAR_NUMBER, FAR_DATE = 1.0, 0.1


def pipeline_for(
    frame: UserData,
    machine: BaseEstimator,
    *,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    dates: Sequence[tuple[str, str]] = (),
    numeric: Sequence[str] = (),
    histograms: bool = False,
) -> Pipeline:
    """Return an unfitted pipeline for tables like this one that ends with a machine.

    Missing numbers and dates are replaced by the median; then all are scaled to mean
    zero and variance one, or to [0, 1] for kernels of histograms. Each category becomes
    a column, and so do missing ones.

    Parameters
    ----------
    frame : data frame, `Table`, or sparse matrix
        Its columns are checked; nothing is learned from it.
    machine : classifier or regressor
    categorical, drop, keep, dates, numeric : see `ColumnTypes`
    histograms : whether the kernel needs numbers that are not negative

    Returns
    -------
    pipeline : Pipeline

    Warns
    -----
    ColumnWarning
        If a column is not used because it counts the rows, or if text that looks like
        numbers is not used, or taken for categories.
    """
    columns: dict[str, Any] = dict(
        categorical=list(categorical),
        drop=list(drop),
        keep=list(keep),
        dates=list(dates),
        numeric=list(numeric),
    )
    if isinstance(frame, Table):
        if not frame.is_sparse:
            check_columns(frame, **columns)
        frame = frame.frame
    if isinstance(frame, (str, Path)):
        raise TypeError(
            f"Expected a table, got the text {str(frame)!r}: read a file by read_table."
        )
    if not hasattr(frame, "columns") and not isinstance(frame, Mapping):
        return Pipeline([("scale", MaxAbsScaler()), ("machine", machine)])
    types = ColumnTypes(**columns)
    frame = as_frame(frame)
    for said in doubtful_columns(clone(types).fit(frame), frame):
        warnings.warn(said, ColumnWarning, stacklevel=2)
    scaler = MinMaxScaler(clip=True) if histograms else StandardScaler()
    # Selected by type, not by name: on a part of the rows a column may be dropped.
    encode = ColumnTransformer(
        [
            ("numbers", _numbers(scaler), make_column_selector(dtype_include="number")),
            (
                "categories",
                _categories(),
                make_column_selector(dtype_exclude="number"),
            ),
        ]
    )
    encode.set_output(transform="pandas")
    return Pipeline([("types", types), ("columns", encode), ("machine", machine)])


def _numbers(scaler: TransformerMixin) -> Pipeline:
    # A column that is empty in the training rows becomes zeros.
    fill = SimpleImputer(strategy="median", keep_empty_features=True)
    return Pipeline([("fill", fill), ("scale", scaler)])


def _categories() -> OneHotEncoder:
    return OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        drop="if_binary",
        max_categories=MOST_CATEGORIES,
        sparse_output=False,
    )


def columns_of(model: Pipeline) -> list[str]:
    """For each input of the machine, the column that it comes from."""
    machine = model[-1]
    if not isinstance(model[0], ColumnTypes):
        return [str(number) for number in range(1, machine.n_features_in_ + 1)]
    found: list[str] = []
    for name, transformer, columns in model[1].transformers_:
        if name == "categories":
            for number, column in enumerate(columns):
                found += [str(column)] * _width(transformer, number)
        elif name == "numbers":
            found += [str(column) for column in columns]
    return found


def unseen_categories(model: Pipeline, frame: UserData) -> dict[str, str]:
    """Columns with categories that are not in the training data, and one of each."""
    if not isinstance(model[0], ColumnTypes):
        return {}
    found = {}
    typed = model[0].transform(frame)
    for name, encode, columns in model[1].transformers_:
        if name != "categories" or not hasattr(encode, "categories_"):
            continue
        for column, known in zip(columns, encode.categories_, strict=True):
            new = sorted(set(typed[column]) - set(known))
            if new:
                found[str(column)] = str(new[0])
    return found


def unlike_training(model: Pipeline, frame: UserData) -> list[str]:
    """Notes on columns of new rows that are empty, or far from the training data.

    A number is far if it lies outside by more than the range, a date by a tenth of it.
    """
    if not isinstance(model[0], ColumnTypes):
        return []
    typed, notes = model[0].transform(frame), []
    # Models of earlier versions have no ranges.
    ranges = getattr(model[0], "ranges_", np.empty((0, 2)))
    for name, (low, high) in zip(model[0].kinds_, ranges, strict=False):
        if np.isnan(low):
            continue
        values = typed[name].to_numpy(dtype=float)
        if np.isnan(values).all():
            notes.append(f"column {name!r} is empty here, but not in the training data")
            continue
        dates = model[0].kinds_[name] == DATE
        width = (high - low) * (FAR_DATE if dates else FAR_NUMBER)
        far = np.flatnonzero((values < low - width) | (values > high + width))
        if len(far):
            cell = frame[name].iloc[far[0]]
            bounds = [_day(one) if dates else f"{one:g}" for one in (low, high)]
            notes.append(
                f"column {name!r}, data row {far[0] + 1}: {str(cell)[:30]!r} lies "
                f"outside of the training data ({' to '.join(bounds)}), where "
                "predictions are uncertain"
                f"{f'; so do {len(far) - 1} more' if len(far) > 1 else ''}"
            )
    more = len(notes) - MOST_NOTES
    return notes[:MOST_NOTES] + [f"{more} more columns are like that"] * (more > 0)


def _day(number: float) -> str:
    """A day as text, from its number since 1970."""
    return str(np.datetime64(int(np.floor(number)), "D"))


def _width(encode: OneHotEncoder, number: int) -> int:
    """Number of inputs that the categories of one column become."""
    count = len(encode.categories_[number])
    rare = getattr(encode, "infrequent_categories_", None)
    if rare is not None and rare[number] is not None:
        count -= len(rare[number]) - 1
    dropped = encode.drop_idx_
    return count - (dropped is not None and dropped[number] is not None)


def relevances_by_column(model: Pipeline) -> dict[str, float] | None:
    """Relevances of the columns, added up over their categories; the largest first."""
    relevance = getattr(model[-1], "relevance_", None)
    if relevance is None:
        return None
    shares = np.atleast_2d(relevance).mean(axis=0)
    total: dict[str, float] = {}
    for column, share in zip(columns_of(model), shares, strict=True):
        total[column] = total.get(column, 0.0) + float(share)
    return dict(sorted(total.items(), key=lambda item: -item[1]))
