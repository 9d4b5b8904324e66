"""Errors that say where in a table something is wrong."""

from __future__ import annotations

from typing import Any


class DataError(ValueError):
    """What is wrong, in one line, with file, column and row where they are known.

    Rows are counted from one, without a header.
    """

    def __init__(
        self,
        message: str,
        *,
        path: Any = None,
        column: Any = None,
        row: int | None = None,
    ):
        self.message, self.path, self.column, self.row = message, path, column, row
        super().__init__(message)

    def at(self, path: Any) -> DataError:
        """The same error, with the file's name."""
        known = self.path if self.path is not None else path
        return DataError(self.message, path=known, column=self.column, row=self.row)

    def of(self, column: Any) -> DataError:
        """The same error, with the column's name."""
        known = self.column if self.column is not None else column
        return DataError(self.message, path=self.path, column=known, row=self.row)

    def __str__(self) -> str:
        place = [
            *([] if self.path is None else [str(self.path)]),
            *([] if self.column is None else [f"column {self.column!r}"]),
            *([] if self.row is None else [f"row {self.row}"]),
        ]
        said = " ".join(self.message.split())
        return f"{', '.join(place)}: {said}" if place else said


def pandas() -> Any:
    """The one place where tables ask for pandas."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "Reading tables needs pandas, which is not installed: pip install "
            "bisvm[cli]"
        ) from error
    return pandas
