"""The types of columns: numbers, dates, categories, or nothing that can be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bisvm.core.types import Array, UserData
from bisvm.tables.errors import DataError, listed, pandas

if TYPE_CHECKING:
    from pandas import DataFrame, Series

NUMBER, DATE, CATEGORY = "number", "date", "category"
# The category of missing cells.
NOTHING = "(missing)"
# What pandas calls the ISO format: with or without a time of the day, a zone, and parts
# of a second. It would take years and other numbers for dates, too.
ISO, ISO_DATE = "ISO8601", r"\d{4}-\d{2}-\d{2}([ T].*)?"
# Formats of dates, tried in this order; the first that fits all cells is used.
DATE_FORMATS = (
    *("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"),
    *("%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y/%m/%d"),
    *("%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d.%m.%y"),
    *("%d/%m/%Y", "%m/%d/%Y", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"),
    *("%d/%m/%y", "%m/%d/%y", "%d/%m/%y %H:%M", "%m/%d/%y %H:%M"),
    *("%d-%m-%Y", "%d %b %Y", "%d %B %Y", ISO),
)
# A text column identifies the rows if it has more different values than this and than
# half the rows, or if all values differ in this many rows or more.
FEW_CATEGORIES, FEW_NAMES = 30, 10
# Whole numbers count the rows if they grow from row to row, in this many rows or more,
# by this much per row at most.
MANY_ROWS, MEAN_STEP = 20, 20
# The square of a larger number overflows, or nearly so.
LARGEST = 1e150
MICROSECONDS = 86_400_000_000  # of a day
# Whole years that fit into 64 bits of nanoseconds before and after 1970.
NANOSECOND_YEARS = (1678, 2261)
# A column with at least this share of numbers is numeric; other cells are errors.
MOSTLY = 0.9


class ColumnTypes(TransformerMixin, BaseEstimator):
    """Detect the types of columns and convert them to numbers and categories.

    Numbers stay, dates become days since 1970, and categories become text, "(missing)"
    for missing cells. Columns without information are dropped: empty and constant ones,
    and names or numbers of rows.

    Parameters
    ----------
    categorical : names of columns that are categories although they look like numbers
    drop : names of columns to ignore
    keep : names of columns to use although they look like names or numbers of rows
    dates : pairs (name, format) of columns of dates whose format is known

    Attributes
    ----------
    kinds_ : dict from the name of a column to "number", "date" or "category"
    formats_ : dict from the name of a column of dates to its format
    dropped_ : dict from the name of a dropped column to the reason
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

    def fit(self, X: UserData, y: object = None) -> Self:
        """Detect the types of the columns of a data frame.

        Parameters
        ----------
        X : data frame
        y : ignored

        Returns
        -------
        self : object
        """
        frame = _as_frame(X)
        self._check_names(frame)
        self.feature_names_in_ = np.array([str(n) for n in frame.columns], dtype=object)
        self.n_features_in_ = frame.shape[1]
        self.kinds_: dict[str, str] = {}
        self.formats_: dict[str, str] = {}
        self.dropped_: dict[str, str] = {}
        for name in frame.columns:
            try:
                self._inspect(str(name), frame[name])
            except DataError as error:
                raise error.of(str(name)) from None
        if not self.kinds_:
            raise DataError(
                "no column can be used: "
                + "; ".join(f"{k!r} {why}" for k, why in self.dropped_.items())
                + "."
            )
        return self

    def transform(self, X: UserData) -> DataFrame:
        """Convert the columns of a data frame.

        Parameters
        ----------
        X : data frame with the columns of `fit`

        Returns
        -------
        frame : data frame
            Numbers, dates as days since 1970, and categories as text; without the
            dropped columns.
        """
        check_is_fitted(self)
        frame = _as_frame(X)
        absent = [name for name in self.kinds_ if name not in frame.columns]
        if absent:
            raise DataError(
                "the model needs this column, but the table does not have it; it has "
                f"{listed(frame.columns)}.",
                column=absent[0],
            )
        columns = {
            name: self._values(name, kind, frame[name])
            for name, kind in self.kinds_.items()
        }
        return pandas().DataFrame(columns, index=frame.index)

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Return the names of the columns that are kept; input names are ignored."""
        check_is_fitted(self)
        return np.array(list(self.kinds_), dtype=object)

    def _check_names(self, frame: DataFrame) -> None:
        known = {str(name) for name in frame.columns}
        for name in (*self.categorical, *self.drop, *self.keep):
            if name not in known:
                raise DataError(
                    f"there is no column {name!r}; there are {listed(sorted(known))}."
                )

    def _inspect(self, name: str, column: Series) -> None:
        if name in self.drop:
            self.dropped_[name] = "was dropped on request"
            return
        cells = column.dropna()
        if not len(cells):
            self.dropped_[name] = "is empty"
            return
        kind, form = self._kind_of(name, column)
        values = texts(cells) if kind == CATEGORY else column_numbers(name, cells, form)
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

    def _kind_of(self, name: str, column: Series) -> tuple[str, str | None]:
        pd = pandas()
        if name in self.categorical or pd.api.types.is_bool_dtype(column):
            return CATEGORY, None
        if pd.api.types.is_datetime64_any_dtype(column):
            return DATE, ""
        if pd.api.types.is_numeric_dtype(column):
            return NUMBER, None
        cells = texts(column.dropna())
        numbers = pd.to_numeric(cells, errors="coerce").notna()
        if numbers.mean() >= MOSTLY:
            return NUMBER, None
        form = dict(self.dates).get(name) or date_format(cells)
        return (CATEGORY, None) if form is None else (DATE, form)

    def _values(self, name: str, kind: str, column: Series) -> Array:
        known = column.notna().to_numpy()
        if kind == CATEGORY:
            out = np.full(len(column), NOTHING, dtype=object)
            out[known] = texts(column[known]).to_numpy(dtype=object)
        else:
            out = np.full(len(column), np.nan)
            out[known] = column_numbers(name, column[known], self.formats_.get(name))
        return out


def _are_names(count: int, column: Series) -> bool:
    """Whether all, or most, values are different: identifiers of the rows."""
    n = len(column)
    return (count == n and n >= FEW_NAMES) or count > max(FEW_CATEGORIES, n / 2)


def _count_rows(values: Series, column: Series) -> bool:
    """Whether the column numbers the rows: 1, 2, 3, ..., maybe with gaps.

    If the rows are sorted by class, such a column would give the class away.
    """
    numbers = values.to_numpy(dtype=float)
    if len(numbers) < max(len(column), MANY_ROWS) or (numbers % 1 != 0).any():
        return False
    steps = np.diff(numbers)
    return bool((steps > 0).all() and steps.mean() <= MEAN_STEP)


def column_numbers(name: str, cells: Series, form: str | None) -> Series:
    """Cells as floats, dates as days; raises an error for the first other cell."""
    pd = pandas()
    if form is not None:
        return _days(name, cells, form)
    if pd.api.types.is_datetime64_any_dtype(cells):
        raise DataError("found dates; expected numbers.", column=name)
    values = pd.to_numeric(cells, errors="coerce").astype(float)
    numbers = values.to_numpy()
    wrong = ~(np.abs(numbers) <= LARGEST)
    if wrong.any():
        place = int(np.argmax(wrong))
        what = "too large a" if np.isfinite(numbers[place]) else "not a finite"
        raise DataError(
            f"{str(cells.iloc[place])[:60]!r} is {what} number, but the column is "
            "numeric: correct it, declare it a missing value by --missing, or the "
            "column one of categories by --categorical.",
            column=name,
            row=_row(cells, place),
        )
    return values


def _days(name: str, cells: Series, form: str) -> Series:
    """Days since 1970; a format of "" means a column that has the type of dates.

    If such a column comes as text later, it must have the ISO format.
    """
    pd = pandas()
    text = not pd.api.types.is_datetime64_any_dtype(cells)
    moments = _moments(texts(cells) if text else cells, (form or ISO) if text else None)
    wrong = np.isnat(moments)
    if wrong.any():
        place = int(np.argmax(wrong))
        like = f" of the form {form or 'YYYY-MM-DD (ISO 8601)'}"
        raise DataError(
            f"{str(cells.iloc[place])[:60]!r} is not a date{like}.",
            column=name,
            row=_row(cells, place),
        )
    return pd.Series(moments.astype(np.int64) / MICROSECONDS, index=cells.index)


def _moments(cells: Series, form: str | None) -> Array:
    """Cells as numpy.datetime64, up to the first that is none: that one is NaT.

    Nanoseconds end in 2262; microseconds reach the year 9999, often used for "never".
    pandas before version 3 reads text as nanoseconds.
    """
    dates = pandas().to_datetime(cells, format=form, errors="coerce", utc=True)
    moments: Array = dates.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    for place in np.flatnonzero(np.isnat(moments)):
        moments[place] = _far_moment(cells.iloc[place], form)
        if np.isnat(moments[place]):
            break
    return moments


def _far_moment(cell: object, form: str | None) -> np.datetime64:
    """A date that has no nanoseconds, or NaT."""
    try:
        found = (
            datetime.fromisoformat(str(cell))
            if form == ISO
            else datetime.strptime(str(cell), form or "")
        )
        if found.tzinfo is not None:
            found = found.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return np.datetime64("NaT", "us")
    far = not NANOSECOND_YEARS[0] <= found.year <= NANOSECOND_YEARS[1]
    return np.datetime64(found if far else "NaT", "us")


def date_format(cells: Series) -> str | None:
    """The first format in which every cell is a date, or None."""
    head = cells.head(50)
    for form in DATE_FORMATS:
        if form == ISO and not cells.str.fullmatch(ISO_DATE).all():
            continue
        for part in (head, cells):
            if np.isnat(_moments(part, form)).any():
                break
        else:
            return form
    return None


def texts(cells: Series) -> Series:
    """Cells as text; whole numbers have no decimal point."""
    pd = pandas()
    if pd.api.types.is_bool_dtype(cells):
        return cells.astype(str).astype(object)
    return cells.map(_text).astype(object)


def _text(cell: object) -> str:
    if isinstance(cell, (list, dict, set, tuple, np.ndarray, bytes)):
        raise DataError(
            f"a cell is of type {type(cell).__name__}; expected numbers, dates or "
            "text. Use --drop to ignore the column."
        )
    if isinstance(cell, (float, np.floating)) and float(cell).is_integer():
        return str(int(cell))
    return str(cell)


def _row(cells: Series, place: int) -> int:
    """The number of a row in the file, counted from one."""
    label = cells.index[place]
    return int(label) + 1 if isinstance(label, (int, np.integer)) else place + 1


def _as_frame(X: UserData) -> DataFrame:
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
