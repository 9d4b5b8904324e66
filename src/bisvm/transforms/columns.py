"""Some of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from bisvm.transforms.base import Transform, TransformGradient


class Columns(Transform):
    """z = x[columns].

    Parameters
    ----------
    columns : sequence of int, sequence of str, slice, or boolean mask
        Which columns, in this order. Names are those of the data frame given to `fit`.
    """

    def __init__(self, columns: Any):
        self.columns = columns

    @property
    def linear(self) -> bool:
        return True

    def validate(self) -> Self:
        if not isinstance(self.columns, slice) and self._given().dtype != bool:
            _check_distinct(self._given())
        return self

    def bind(self, feature_names: Sequence[str] | None) -> Self:
        if isinstance(self.columns, slice) or self._given().dtype.kind not in "UO":
            return self
        known = [] if feature_names is None else list(feature_names)
        missing = [name for name in self._given().tolist() if name not in known]
        if missing:
            have = ", ".join(map(repr, known[:20])) if known else "no names at all"
            raise ValueError(
                f"There is no column {missing[0]!r}: X has {have}"
                f"{', ...' if len(known) > 20 else ''}. Pass a data frame with named "
                "columns, or give columns by their numbers."
            )
        return self.replace(columns=tuple(known.index(name) for name in self._given()))

    def trace(self, columns: Sequence[Any]) -> Sequence[Any]:
        return [columns[j] for j in self._indices(len(columns))]

    def apply(self, X: Any) -> Any:
        return X[:, self._indices(X.shape[1])]

    def pullback(
        self, X: Any, cotangent: np.ndarray, *, inputs: bool = True
    ) -> TransformGradient:
        if not inputs:
            return TransformGradient(np.empty(0))
        back = np.zeros(X.shape)
        back[:, self._indices(X.shape[1])] = cotangent
        return TransformGradient(np.empty(0), back)

    def _given(self) -> np.ndarray:
        if isinstance(self.columns, str):
            return np.array([self.columns])
        return np.atleast_1d(np.asarray(self.columns))

    def _indices(self, n: int) -> np.ndarray:
        """Column numbers of an X with n columns."""
        if isinstance(self.columns, slice):
            return _check_distinct(np.arange(n)[self.columns])
        given = self._given()
        if given.dtype == bool:
            if len(given) != n:
                raise ValueError(f"A mask of {len(given)} columns, but X has {n}.")
            return _check_distinct(np.flatnonzero(given))
        if given.dtype.kind in "UO":
            raise ValueError(
                f"Columns {given.tolist()!r} are names, and here columns have none: "
                "pass a data frame to `fit` (behind a scikit-learn transformer: with "
                "set_output(transform='pandas')), or give columns by their numbers."
            )
        if given.dtype.kind not in "iu":
            raise ValueError(
                f"Columns must be whole numbers, names or a mask; got {given.tolist()}."
            )
        outside = given[(given < -n) | (given >= n)]
        if len(outside):
            raise ValueError(f"There is no column {outside[0]}: X has {n} columns.")
        return _check_distinct(given % n)


def _check_distinct(columns: np.ndarray) -> np.ndarray:
    """At least one column, and none twice."""
    if not len(columns):
        raise ValueError("No columns were given: a kernel needs at least one.")
    values, counts = np.unique(columns, return_counts=True)
    if counts.max() > 1:
        raise ValueError(f"Column {values[counts.argmax()].item()!r} is given twice.")
    return columns
