"""What the columns of a table hold: numbers, dates, categories, or nothing of use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bisvm.tables.errors import DataError, pandas

NUMBER, DATE, CATEGORY = "number", "date", "category"
# The category of what is missing.
NOTHING = "(missing)"
# Dates are tried in this order; one that fits all cells of a column is its own.
DATE_FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d-%m-%Y",
    "%d %b %Y",
    "%d %B %Y",
)
# A column of text with more different ones than this, and more than half as many as
# there are rows, is one of names or numbers of rows: nothing to learn from.
FEW_CATEGORIES = 30
# In this many rows or more, a text that is another in every row is its name.
FEW_NAMES = 10
# Whole numbers that grow from row to row, in this many rows or more, and by this much a
# row at most, count the rows.
MANY_ROWS, MEAN_STEP = 20, 20
# The square of a larger number is infinite, or nearly so.
LARGEST = 1e150
MICROSECONDS = 86_400_000_000  # of a day
# With at least this share of numbers a column is one of numbers, and what else is in it
# an error.
MOSTLY = 0.9


class ColumnTypes(TransformerMixin, BaseEstimator):
    """Columns of text or numbers as numbers and categories.

    Numbers stay, dates become days since 1970, categories text, "(missing)" where there
    is none; columns that say nothing are left out: empty or constant ones, and those of
    names or numbers of rows.

    Parameters
    ----------
    categorical : names of columns that are categories though they look like numbers
    drop : names of columns to leave out
    keep : names of columns to learn from though they look like names or numbers of rows
    dates : pairs (name, format) of columns of dates whose format is known; that of the
        others is guessed

    Attributes
    ----------
    kinds_ : dict from name to "number", "date" or "category", of columns that stay
    formats_ : dict from the name of a column of dates to its format
    dropped_ : dict from name to the reason, of columns that do not
    """

    def __init__(
        self,
        categorical: Sequence[str] = (),
        drop: Sequence[str] = (),
        keep: Sequence[str] = (),
        dates: Sequence[tuple[str, str]] = (),
    ):
        self.categorical = categorical
        self.drop = drop
        self.keep = keep
        self.dates = dates

    def fit(self, X: Any, y: Any = None) -> Self:
        frame = _as_frame(X)
        self._check_names(frame)
        self.feature_names_in_ = np.array([str(n) for n in frame.columns], dtype=object)
        self.n_features_in_ = frame.shape[1]
        self.kinds_: dict[str, str] = {}
        self.formats_: dict[str, str] = {}
        self.dropped_: dict[str, str] = {}
        for name in frame.columns:
            try:
                self._look_at(str(name), frame[name])
            except DataError as error:
                raise error.of(str(name)) from None
        if not self.kinds_:
            raise DataError(
                "no column is left to learn from: "
                + "; ".join(f"{k!r} {why}" for k, why in self.dropped_.items())
                + "."
            )
        return self

    def transform(self, X: Any) -> Any:
        check_is_fitted(self)
        frame = _as_frame(X)
        absent = [name for name in self.kinds_ if name not in frame.columns]
        if absent:
            have = ", ".join(repr(str(name)) for name in list(frame.columns)[:20])
            raise DataError(
                f"the model needs this column, and the table has none of that name; it "
                f"has {have}.",
                column=absent[0],
            )
        columns = {
            name: self._values(name, kind, frame[name])
            for name, kind in self.kinds_.items()
        }
        return pandas().DataFrame(columns, index=frame.index)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        check_is_fitted(self)
        return np.array(list(self.kinds_), dtype=object)

    def _check_names(self, frame: Any) -> None:
        known = {str(name) for name in frame.columns}
        for name in (*self.categorical, *self.drop, *self.keep):
            if name not in known:
                raise DataError(
                    f"there is no column {name!r}; there are "
                    + ", ".join(repr(one) for one in sorted(known)[:20])
                    + "."
                )

    def _look_at(self, name: str, column: Any) -> None:
        if name in self.drop:
            self.dropped_[name] = "was to be left out"
            return
        cells = column.dropna()
        if not len(cells):
            self.dropped_[name] = "is empty"
            return
        kind, form = self._kind_of(name, column)
        values = (
            _texts(cells) if kind == CATEGORY else column_numbers(name, cells, form)
        )
        count = values.nunique()
        if count == 1 and len(cells) == len(column):
            self.dropped_[name] = "has one value only"
        elif name not in self.keep and kind == CATEGORY and _are_names(count, column):
            self.dropped_[name] = f"has {count} different texts in {len(column)} rows"
        elif name not in self.keep and kind == NUMBER and _count_rows(values, column):
            self.dropped_[name] = "counts the rows"
        else:
            self.kinds_[name] = kind
            if form is not None:
                self.formats_[name] = form

    def _kind_of(self, name: str, column: Any) -> tuple[str, str | None]:
        pd = pandas()
        if name in self.categorical or pd.api.types.is_bool_dtype(column):
            return CATEGORY, None
        if pd.api.types.is_datetime64_any_dtype(column):
            return DATE, ""
        if pd.api.types.is_numeric_dtype(column):
            return NUMBER, None
        cells = _texts(column.dropna())
        numbers = pd.to_numeric(cells, errors="coerce").notna()
        if numbers.mean() >= MOSTLY:
            return NUMBER, None
        form = dict(self.dates).get(name) or date_format(cells)
        return (CATEGORY, None) if form is None else (DATE, form)

    def _values(self, name: str, kind: str, column: Any) -> Any:
        if kind == CATEGORY:
            out = np.full(len(column), NOTHING, dtype=object)
            there = column.notna().to_numpy()
            out[there] = _texts(column[there]).to_numpy(dtype=object)
            return out
        out = np.full(len(column), np.nan)
        there = column.notna().to_numpy()
        out[there] = column_numbers(name, column[there], self.formats_.get(name))
        return out


def _are_names(count: int, column: Any) -> bool:
    """Texts that every row has one of its own of, or nearly every one of many rows."""
    n = len(column)
    return (count == n and n >= FEW_NAMES) or count > max(FEW_CATEGORIES, n / 2)


def _count_rows(values: Any, column: Any) -> bool:
    """Numbers of rows, as tables have them in front: 1, 2, 3, some left out.

    They say nothing, or too much: where rows are sorted by class, all.
    """
    numbers = values.to_numpy(dtype=float)
    if len(numbers) < max(len(column), MANY_ROWS) or (numbers % 1 != 0).any():
        return False
    steps = np.diff(numbers)
    return bool((steps > 0).all() and steps.mean() <= MEAN_STEP)


def column_numbers(name: str, cells: Any, form: str | None) -> Any:
    """Cells as floats, dates as days; the first that is neither is an error."""
    pd = pandas()
    if form is not None:
        return _days(name, cells, form)
    if pd.api.types.is_datetime64_any_dtype(cells):
        raise DataError("there are dates, and numbers are expected.", column=name)
    values = pd.to_numeric(cells, errors="coerce").astype(float)
    numbers = values.to_numpy()
    wrong = ~(np.abs(numbers) <= LARGEST)
    if wrong.any():
        place = int(np.argmax(wrong))
        too = "too large a" if np.isfinite(numbers[place]) else "no finite"
        raise DataError(
            f"{str(cells.iloc[place])[:60]!r} is {too} number, and the column is "
            "one of numbers: correct it; or say --missing for a word that stands for "
            "nothing, or --categorical for a column of categories.",
            column=name,
            row=_row(cells, place),
        )
    return values


def _days(name: str, cells: Any, form: str) -> Any:
    """Days since 1970; a format of "" stands for dates that are dates already.

    Where these come as text later, the order of day and month is not guessed.
    """
    pd = pandas()
    text = not pd.api.types.is_datetime64_any_dtype(cells)
    dates = pd.to_datetime(
        _texts(cells) if text else cells,
        format=(form or "ISO8601") if text else None,
        errors="coerce",
        utc=True,
    )
    wrong = dates.isna().to_numpy()
    if wrong.any():
        place = int(np.argmax(wrong))
        like = f" of the form {form or 'YYYY-MM-DD (ISO 8601)'}"
        raise DataError(
            f"{str(cells.iloc[place])[:60]!r} is no date{like}.",
            column=name,
            row=_row(cells, place),
        )
    # Microseconds reach beyond the year 9999, which stands for "never"; pandas' own
    # nanoseconds end in 2262.
    moments = dates.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    return pd.Series(moments.astype(np.int64) / MICROSECONDS, index=cells.index)


def date_format(cells: Any) -> str | None:
    """The first format in which every cell is a date, or None."""
    pd = pandas()
    head = cells.head(50)
    for form in DATE_FORMATS:
        for part in (head, cells):
            if pd.to_datetime(part, format=form, errors="coerce").isna().any():
                break
        else:
            return form
    return None


def _texts(cells: Any) -> Any:
    """Cells as text; whole numbers without a decimal point."""
    pd = pandas()
    if pd.api.types.is_bool_dtype(cells):
        return cells.astype(str).astype(object)
    return cells.map(_text).astype(object)


def _text(cell: Any) -> str:
    if isinstance(cell, (list, dict, set, tuple, np.ndarray, bytes)):
        raise DataError(
            f"a cell is of type {type(cell).__name__}; expected numbers, dates or "
            "text. Say --drop to leave the column out."
        )
    if isinstance(cell, (float, np.floating)) and float(cell).is_integer():
        return str(int(cell))
    return str(cell)


def _row(cells: Any, place: int) -> int:
    """The number of a row in the file, from one."""
    label = cells.index[place]
    return int(label) + 1 if isinstance(label, (int, np.integer)) else place + 1


def _as_frame(X: Any) -> Any:
    pd = pandas()
    if isinstance(X, pd.DataFrame):
        return X.rename(columns=str)
    if hasattr(X, "to_pandas"):
        return X.to_pandas().rename(columns=str)
    if isinstance(X, Mapping):
        return pd.DataFrame(X)
    raise TypeError(
        f"Expected a data frame with the columns of the table, got {type(X).__name__}."
    )
