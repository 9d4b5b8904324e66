"""The contents of a file: a data frame, and what is known about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from bisvm.core.types import Array, UserData
from bisvm.tables.errors import DataError, no_column
from bisvm.tables.format import TableFormat

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, repr=False)
class Table:
    """The contents of a file. Its data frame is `frame`.

    path : path of the file
    frame : data frame, or a CSR matrix that is too large for one
    form : format of the file
    labels : labels that the format stores separately (LIBSVM, NPZ), else None
    notes : what was detected, in words
    cells : data frame of all cells as spelled in a text file, else None
    missing : words for missing values that were given; they apply to the target, too
    roles : pairs (column, what it is) of columns that were split off, as the target
    separator_hint : a sentence, if another separator fits better than the one given
    """

    path: Path
    frame: UserData
    form: TableFormat
    labels: Array | None = None
    notes: tuple[str, ...] = ()
    cells: UserData = None
    missing: tuple[str, ...] = ()
    roles: tuple[tuple[str, str], ...] = ()
    separator_hint: str = ""

    @property
    def is_sparse(self) -> bool:
        """Whether `frame` is a sparse matrix."""
        return not hasattr(self.frame, "columns")

    def to_pandas(self) -> DataFrame:
        """Return `frame`, for what takes any data frame."""
        if self.is_sparse:
            raise TypeError("Expected a data frame, got a sparse matrix of a Table.")
        return self.frame

    def __repr__(self) -> str:
        rows, columns = self.frame.shape
        return (
            f"<Table {str(self.path)!r}: {rows} rows x {columns} columns; .frame is "
            f"{self._kind()}>"
        )

    # A table is often taken for a data frame: say where that is.

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            said = f"{type(self).__name__!r} object has no attribute {name!r}"
            # Copies and pickles look for attributes before there are any.
            frame = vars(self).get("frame")
            if frame is not None and not name.startswith("_") and hasattr(frame, name):
                said += f": use .frame.{name}; .frame is {self._kind()}"
            raise AttributeError(said, name=name, obj=self)

    def __getitem__(self, key: object) -> NoReturn:
        raise TypeError(self._refused("has no rows or columns to take"))

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise TypeError(self._refused("is not an array"))

    def _refused(self, why: str) -> str:
        return f"a Table {why}: use .frame, {self._kind()}."

    def _kind(self) -> str:
        return "a sparse matrix" if self.is_sparse else "a pandas DataFrame"


def check_columns(
    table: Table,
    *,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    dates: Sequence[tuple[str, str]] = (),
    numeric: Sequence[str] = (),
) -> None:
    """Refuse names of columns that are no features of the table.

    Parameters
    ----------
    table : Table
    categorical, drop, keep, dates, numeric : see `ColumnTypes`

    Raises
    ------
    DataError
        If there is no such column, or if it is the target or has the groups.
    """
    options = {
        "categorical": categorical,
        "drop": drop,
        "keep": keep,
        "date": [name for name, _ in dates],
        "numeric": numeric,
    }
    names, roles = [str(name) for name in table.frame.columns], dict(table.roles)
    for option, asked in options.items():
        for name in asked:
            if name in names:
                continue
            if name in roles:
                raise DataError(
                    f"this is {roles[name]}, not a feature: leave it out of "
                    f"--{option}.",
                    path=table.path,
                    column=name,
                )
            raise DataError(no_column(name, names), path=table.path)
