"""Errors that say where in a table something is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any


class ColumnWarning(UserWarning):
    """A column is not used, or text that looks like numbers is taken for categories."""


class DataError(ValueError):
    """An error in one line, with file, column and row if they are known.

    Parameters
    ----------
    message : str
    path : path of the file, optional
    column : str, optional
    row : int, optional
        Counted from one, without the header.
    """

    def __init__(
        self,
        message: str,
        *,
        path: Path | str | None = None,
        column: str | None = None,
        row: int | None = None,
    ):
        self.message, self.path, self.column, self.row = message, path, column, row
        super().__init__(message)

    def at(self, path: Path) -> DataError:
        """Return the same error with the path of the file, unless it has one."""
        known = self.path if self.path is not None else path
        return DataError(self.message, path=known, column=self.column, row=self.row)

    def of(self, column: str) -> DataError:
        """Return the same error with the name of the column, unless it has one."""
        known = self.column if self.column is not None else column
        return DataError(self.message, path=self.path, column=known, row=self.row)

    def advised(self, hint: str) -> DataError:
        """Return the same error with another sentence at its end, if there is one."""
        said = f"{self.message} {hint}".rstrip()
        return DataError(said, path=self.path, column=self.column, row=self.row)

    def __str__(self) -> str:
        place = [
            None if self.path is None else str(self.path),
            None if self.column is None else f"column {self.column!r}",
            None if self.row is None else f"data row {self.row}",
        ]
        where = ", ".join(filter(None, place))
        said = " ".join(self.message.split())
        return f"{where}: {said}" if where else said


def pandas() -> Any:
    """Import pandas, which is optional."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "Reading tables needs pandas, which is not installed: pip install pandas"
        ) from error
    return pandas


def listed(names: Iterable[object], most: int = 20) -> str:
    """The first names in quotation marks, and dots if there are more."""
    shown = [repr(str(name)) for name in names]
    return ", ".join([*shown[:most], *(["..."] if len(shown) > most else [])])


def no_column(name: str, names: Iterable[object]) -> str:
    """Say that there is no such column, which there are, and which may be meant."""
    known = [str(one) for one in names]
    near = similar(name, known)
    hint = "" if near is None else f" Did you mean {near!r}?"
    return f"there is no column {name!r}; there are {listed(known)}.{hint}"


def similar(name: str, names: Iterable[str]) -> str | None:
    """The most similar name, whatever its case; None if none is similar."""
    folded = {one.strip().casefold(): one for one in names}
    near = get_close_matches(name.strip().casefold(), folded, n=1)
    return folded[near[0]] if near else None
