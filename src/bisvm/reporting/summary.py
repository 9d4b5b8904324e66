"""The data in short: classes, columns, and missing values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from bisvm.core.types import Array, UserData
from bisvm.tables.columns import DATE, NUMBER, ColumnTypes

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Columns that are described one by one.
SHOWN = 200


@dataclass(frozen=True)
class ColumnSummary:
    """The type of a column, its number of missing values, and its range."""

    name: str
    kind: str
    missing: int
    values: str


@dataclass(frozen=True)
class DataSummary:
    """The data in short.

    classes : label, training rows, held-out rows; none for numbers
    dropped : columns without information, and why
    more : number of columns that are not described
    """

    n_rows: int
    n_test: int
    n_columns: int
    n_inputs: int
    classes: list[tuple[str, int, int]]
    columns: list[ColumnSummary]
    dropped: Mapping[str, str]
    more: int
    note: str = ""

    @property
    def largest(self) -> float:
        """Share of the largest class among the training rows."""
        counts = [count for _, count, _ in self.classes]
        return max(counts) / sum(counts)


def describe(
    model: BaseEstimator,
    machine: BaseEstimator,
    X: UserData,
    y: Array,
    y_test: Array | None,
) -> DataSummary:
    first = model[0] if hasattr(model, "steps") else None
    types = first if isinstance(first, ColumnTypes) else None
    shape = getattr(X, "shape", (len(y), machine.n_features_in_))
    n_described, columns, note = _columns(X, types)
    held_out = y[:0] if y_test is None else y_test
    return DataSummary(
        n_rows=len(y),
        n_test=len(held_out),
        n_columns=int(np.prod(shape[1:])),
        n_inputs=int(machine.n_features_in_),
        classes=[
            (str(label), int(np.sum(y == label)), int(np.sum(held_out == label)))
            for label in getattr(machine, "classes_", ())
        ],
        columns=columns,
        dropped={} if types is None else types.dropped_,
        more=max(n_described - len(columns), 0),
        note=note,
    )


def _columns(
    X: UserData, types: ColumnTypes | None
) -> tuple[int, list[ColumnSummary], str]:
    """Number of columns that could be described, the first of them, and a note."""
    if sparse.issparse(X):
        share = X.nnz / max(X.shape[0] * X.shape[1], 1)
        return 0, [], f"A sparse matrix: {share:.2%} of its entries are not zero."
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        kinds = {} if types is None else types.kinds_
        read = None if types is None else types.transform(X)
        names = list(X.columns)
        shown = [_of_frame(X[n], str(n), kinds, read) for n in names[:SHOWN]]
        return len(names), shown, ""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fiub":
        return 0, [], ""
    shown = [
        ColumnSummary(f"x{k}", NUMBER, int(np.isnan(x).sum()), _range(x))
        for k, x in enumerate(np.asarray(X[:, :SHOWN], dtype=float).T)
    ]
    return X.shape[1], shown, ""


def _of_frame(
    column: Series, name: str, kinds: Mapping[str, str], read: DataFrame | None
) -> ColumnSummary:
    """One column of a frame, as numbers if the pipeline reads it so."""
    missing = int(column.isna().sum())
    kind = kinds.get(name) or ("dropped" if kinds else "")
    if read is not None and kind in (NUMBER, DATE):
        values = read[name].to_numpy(dtype=float)
        shown = _range(values, dates=kind == DATE)
        return ColumnSummary(name, kind, int(np.isnan(values).sum()), shown)
    if getattr(column.dtype, "kind", "O") in "fiub":
        values = column.to_numpy(dtype=float, na_value=np.nan)
        return ColumnSummary(name, kind or NUMBER, missing, _range(values))
    counts = column.value_counts()
    most = f", most often {str(counts.index[0])[:60]}" if len(counts) > 1 else ""
    different = f"{len(counts)} different values{most}"
    return ColumnSummary(name, kind or "text", missing, different)


def _range(values: Array, dates: bool = False) -> str:
    """Range and median; `dates` are days since 1970."""
    values = values[np.isfinite(values)]
    if not len(values):
        return "none"
    if dates:
        first, last = np.array([values.min(), values.max()]).astype("datetime64[D]")
        return f"{first} to {last}"
    low, middle, high = np.quantile(values, [0.0, 0.5, 1.0])
    return f"{low:.4g} to {high:.4g}, median {middle:.4g}"
