"""What the data are: classes, columns, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bisvm.tables.columns import DATE, NUMBER, ColumnTypes

# Columns that are described one by one.
SHOWN = 200


@dataclass(frozen=True)
class ColumnSummary:
    """One column: what it holds, how many are missing, and its values in short."""

    name: str
    kind: str
    missing: int
    values: str


@dataclass(frozen=True)
class DataSummary:
    """The data in short.

    classes : label, rows to learn from, rows held out
    left_out : columns that say nothing, and why
    more : columns that are not described
    """

    n_rows: int
    n_test: int
    n_columns: int
    n_inputs: int
    classes: list[tuple[str, int, int]]
    columns: list[ColumnSummary]
    left_out: dict[str, str]
    more: int
    note: str = ""

    @property
    def largest(self) -> float:
        """Share of the largest class among the rows to learn from."""
        counts = [count for _, count, _ in self.classes]
        return max(counts) / sum(counts)


def describe(model: Any, machine: Any, X: Any, y: Any, y_test: Any) -> DataSummary:
    first = model[0] if hasattr(model, "steps") else None
    types = first if isinstance(first, ColumnTypes) else None
    shape = getattr(X, "shape", (len(y), machine.n_features_in_))
    names, columns, note = _columns(X, types)
    labels = machine.classes_
    return DataSummary(
        n_rows=len(y),
        n_test=0 if y_test is None else len(y_test),
        n_columns=int(np.prod(shape[1:])),
        n_inputs=int(machine.n_features_in_),
        classes=[
            (
                str(label),
                int(np.sum(y == label)),
                0 if y_test is None else int(np.sum(y_test == label)),
            )
            for label in labels
        ],
        columns=columns,
        left_out={} if types is None else dict(types.dropped_),
        more=max(names - len(columns), 0),
        note=note,
    )


def _columns(X: Any, types: Any) -> tuple[int, list[ColumnSummary], str]:
    """How many columns there are, the first of them in short, and a note."""
    if sparse.issparse(X):
        share = X.nnz / max(X.shape[0] * X.shape[1], 1)
        return 0, [], f"A sparse matrix: {share:.2%} of its entries are not zero."
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        every = list(X.columns)
        kinds = {} if types is None else types.kinds_
        read = None if types is None else types.transform(X)
        return (
            len(every),
            [_of_frame(X[name], str(name), kinds, read) for name in every[:SHOWN]],
            "",
        )
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fiub":
        return 0, [], ""
    described = [
        ColumnSummary(f"x{k}", "number", int(np.isnan(x).sum()), _range(x))
        for k, x in enumerate(np.asarray(X[:, :SHOWN], dtype=float).T)
    ]
    return X.shape[1], described, ""


def _of_frame(
    column: Any, name: str, kinds: dict[str, str], read: Any
) -> ColumnSummary:
    """One column of a frame, as numbers if it has been read as such."""
    missing = int(column.isna().sum())
    kind = kinds.get(name) or ("left out" if kinds else "")
    if read is not None and kind in (NUMBER, DATE):
        values = read[name].to_numpy(dtype=float)
        missing = int(np.isnan(values).sum())
        return ColumnSummary(
            name, kind, missing, (_days if kind == DATE else _range)(values)
        )
    if getattr(column.dtype, "kind", "O") in "fiub":
        values = column.to_numpy(dtype=float, na_value=np.nan)
        return ColumnSummary(name, kind or "number", missing, _range(values))
    counts = column.value_counts()
    most = f", most often {str(counts.index[0])[:60]}" if len(counts) > 1 else ""
    return ColumnSummary(
        name, kind or "text", missing, f"{len(counts)} different{most}"
    )


def _days(values: np.ndarray) -> str:
    """Days since 1970 as dates."""
    values = values[np.isfinite(values)]
    if not len(values):
        return "none"
    low, high = np.array([values.min(), values.max()]).astype("datetime64[D]")
    return f"{low} to {high}"


def _range(values: np.ndarray) -> str:
    values = values[np.isfinite(values)]
    if not len(values):
        return "none"
    low, middle, high = np.quantile(values, [0.0, 0.5, 1.0])
    return f"{low:.4g} to {high:.4g}, median {middle:.4g}"
