"""The types of columns: numbers, dates, categories, or nothing that can be used."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bisvm.core.types import Array, UserData
from bisvm.tables.dates import (
    COMPACT,
    ISO,
    ISO_DATE,
    PATTERNS,
    TIME,
    date_format,
    exchanged,
    hours,
    moments,
)
from bisvm.tables.errors import DataError, listed, no_column, pandas, similar
from bisvm.tables.units import parts_of

if TYPE_CHECKING:
    from pandas import DataFrame, Series

NUMBER, DATE, CATEGORY = "number", "date", "category"
# The category of missing cells.
NOTHING = "(missing)"
# A text column identifies the rows if it has more different values than this and than
# half the rows, or if all values differ in this many rows or more.
FEW_CATEGORIES, FEW_NAMES = 30, 10
# Whole numbers count the rows if they grow from row to row, in this many rows or more,
# by this much per row at most.
MANY_ROWS, MEAN_STEP = 20, 20
# Why such a column is dropped.
COUNTER = "counts the rows"
# The square of a larger number overflows, or nearly so.
LARGEST = 1e150
MICROSECONDS = 86_400_000_000  # of a day
# A column with at least this share of numbers is numeric; other cells are errors.
MOSTLY = 0.9
# Whole numbers that are no quantities: 01067, +4930123456, and those with more digits
# than a float.
CODE, DIGITS = r"0\d{2,}|\+\d{7,}", 15
# Whole numbers that may be dates.
FIRST_DAY, LAST_DAY = 1900_01_01, 2099_12_31
# Names that programs give to a column of numbers of rows.
UNNAMED = re.compile(r"column 1|unnamed: 0|index|", re.IGNORECASE)


class ColumnTypes(TransformerMixin, BaseEstimator):
    """Detect the types of columns and convert them to numbers and categories.

    Numbers stay, dates become days since 1970, times of a day become hours, and
    categories become text, "(missing)" for missing cells. Columns without information
    are dropped: empty and constant ones, and names or numbers of rows.

    Parameters
    ----------
    categorical : names of columns that are categories although they look like numbers
    drop : names of columns to ignore
    keep : names of columns to use although they look like names or numbers of rows
    dates : pairs (name, format) of columns of dates whose format is known
    numeric : names of columns that are numbers although they look like codes

    Attributes
    ----------
    kinds_ : dict from the name of a column to "number", "date" or "category"
    formats_ : dict from the name of a column of dates or times to its format
    dropped_ : dict from the name of a dropped column to the reason
    codes_ : dict from the name of a column of codes, such as 01067, to one of them
    unclear_ : dict from the name of a column of dates to another format that fits
    ranges_ : (k, 2), lowest and highest number or date of the columns of `kinds_`; NaN
        for categories
    spellings_ : dict from the name of a column of few categories to these, by their
        text in lower case
    """

    # Models of earlier versions have none.
    numeric: Sequence[str] = ()

    def __init__(
        self,
        categorical: Sequence[str] = (),
        drop: Sequence[str] = (),
        keep: Sequence[str] = (),
        dates: Sequence[tuple[str, str]] = (),
        numeric: Sequence[str] = (),
    ):
        self.categorical = categorical
        self.drop = drop
        self.keep = keep
        self.dates = dates
        self.numeric = numeric

    def fit(self, X: UserData, y: object = None) -> Self:
        """Detect the types of the columns of a data frame.

        Parameters
        ----------
        X : data frame, or Table
        y : ignored

        Returns
        -------
        self : object
        """
        frame = as_frame(X)
        self._check_names(frame)
        self.feature_names_in_ = np.array([str(n) for n in frame.columns], dtype=object)
        self.n_features_in_ = frame.shape[1]
        self.kinds_: dict[str, str] = {}
        self.formats_: dict[str, str] = {}
        self.dropped_: dict[str, str] = {}
        self.codes_: dict[str, str] = {}
        self.unclear_: dict[str, str] = {}
        self.spellings_: dict[str, dict[str, str]] = {}
        ranges: dict[str, tuple[float, float]] = {}
        for name in frame.columns:
            try:
                self._inspect(str(name), frame[name], ranges)
            except DataError as error:
                raise error.of(str(name)) from None
        if not self.kinds_:
            raise DataError(
                "no column can be used: "
                + "; ".join(f"{k!r} {why}" for k, why in self.dropped_.items())
                + "."
            )
        unknown = (np.nan, np.nan)
        self.ranges_ = np.array([ranges.get(name, unknown) for name in self.kinds_])
        return self

    def transform(self, X: UserData) -> DataFrame:
        """Convert the columns of a data frame.

        Parameters
        ----------
        X : data frame, or Table, with the columns of `fit`

        Returns
        -------
        frame : data frame
            Numbers, dates as days since 1970, and categories as text; without the
            dropped columns.
        """
        check_is_fitted(self)
        frame = as_frame(X)
        absent = [name for name in self.kinds_ if name not in frame.columns]
        if absent:
            # A column that the model knows is no other one with a new name.
            others = [n for n in frame.columns if n not in self.feature_names_in_]
            near = similar(absent[0], others)
            hint = "" if near is None else f" Did you mean {near!r}? Then rename it."
            raise DataError(
                "the model needs this column, but the table does not have it; it has "
                f"{listed(frame.columns)}.{hint}",
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
        dates = [name for name, _ in self.dates]
        for name in (*self.categorical, *self.drop, *self.keep, *self.numeric, *dates):
            if name not in known:
                raise DataError(no_column(name, frame.columns))

    def _inspect(
        self, name: str, column: Series, ranges: dict[str, tuple[float, float]]
    ) -> None:
        """Find out what a column holds; add lowest and highest number to `ranges`."""
        if name in self.drop:
            self.dropped_[name] = "was dropped on request"
            return
        cells = column.dropna()
        if not len(cells):
            self.dropped_[name] = "is empty"
            return
        kind, form = self._kind_of(name, cells)
        try:
            numbers = kind != CATEGORY
            values = column_numbers(name, cells, form) if numbers else texts(cells)
        except DataError as error:
            # `bisvm predict` has no such option.
            more = f" If the column has categories: --categorical {name}."
            raise DataError(error.message + more, column=name, row=error.row) from None
        count = values.nunique()
        if count == 1 and len(cells) == len(column):
            self.dropped_[name] = "has one value only"
        elif name not in self.keep and kind == CATEGORY and _are_names(count, column):
            shown = f", such as {str(values.iloc[0])[:30]!r}"
            self.dropped_[name] = (
                f"has {count} different texts in {len(column)} rows{shown}"
            )
        elif name not in self.keep and kind == NUMBER and _count_rows(values, column):
            self.dropped_[name] = COUNTER
        else:
            self._remember(name, kind, form, values, cells)
            if kind != CATEGORY:
                ranges[name] = (float(values.min()), float(values.max()))

    def _remember(
        self, name: str, kind: str, form: str | None, values: Series, cells: Series
    ) -> None:
        """Keep what new rows are read and compared by."""
        self.kinds_[name] = kind
        if form is not None:
            self.formats_[name] = form
        other = exchanged(texts(cells), form) if form else None
        if other is not None and name not in dict(self.dates):
            self.unclear_[name] = other
        if kind != CATEGORY:
            return
        if name not in self.categorical and are_codes(values):
            self.codes_[name] = str(values.iloc[0])
        known = {str(one).casefold(): str(one) for one in values.unique()}
        if len(known) == values.nunique() <= FEW_CATEGORIES:
            self.spellings_[name] = known

    def _kind_of(self, name: str, cells: Series) -> tuple[str, str | None]:
        types = pandas().api.types
        if name in self.categorical or types.is_bool_dtype(cells):
            return CATEGORY, None
        if types.is_datetime64_any_dtype(cells):
            return DATE, ""
        if types.is_timedelta64_dtype(cells):
            return NUMBER, TIME
        known = dict(self.dates).get(name)
        if known is not None:
            return (NUMBER if known == TIME else DATE), known
        if name in self.numeric:
            return NUMBER, None
        if types.is_numeric_dtype(cells):
            return (DATE, COMPACT) if _are_days(cells) else (NUMBER, None)
        return self._kind_of_text(texts(cells))

    def _kind_of_text(self, cells: Series) -> tuple[str, str | None]:
        form = _date_of_digits(cells)
        if form is not None:
            return DATE, form
        if are_codes(cells):
            return CATEGORY, None
        if pandas().to_numeric(cells, errors="coerce").notna().mean() >= MOSTLY:
            return NUMBER, None
        form = date_format(cells)
        return (CATEGORY if form is None else NUMBER if form == TIME else DATE), form

    def _values(self, name: str, kind: str, column: Series) -> Array:
        known = column.notna().to_numpy()
        if kind == CATEGORY:
            out = np.full(len(column), NOTHING, dtype=object)
            # Models of earlier versions have no spellings.
            spelled = getattr(self, "spellings_", {}).get(name, {})
            found = texts(column[known])
            if spelled:
                found = found.map(lambda one: _spelled(one, spelled))
            out[known] = found.to_numpy(dtype=object)
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
    least = FEW_NAMES if UNNAMED.fullmatch(str(column.name)) else MANY_ROWS
    if len(numbers) < max(len(column), least) or (numbers % 1 != 0).any():
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
        raise DataError(
            f"{str(cells.iloc[place])[:60]!r} "
            f"{_no_number(cells.iloc[place], numbers[place])}, or declare it a missing "
            "value by --missing.",
            column=name,
            row=_row(cells, place),
        )
    return values


def _no_number(cell: object, number: float) -> str:
    """What is wrong with a cell of a numeric column, and what to do."""
    unit = (parts_of(cell) or ("", ""))[1]
    if unit:
        return f"has the unit {unit!r}, unlike other cells of the column: convert it"
    what = "too large a" if np.isfinite(number) else "not a finite"
    return f"is {what} number, but the column is numeric: correct it"


def _days(name: str, cells: Series, form: str) -> Series:
    """Days since 1970, or hours; a format of "" means a column of the type of dates.

    If such a column comes as text later, it must have the ISO format. Dates in that
    format are clear, and read in any column of dates.
    """
    pd = pandas()
    if pd.api.types.is_timedelta64_dtype(cells):
        return cells / pd.Timedelta(hours=1)
    spelled = texts(cells)
    if form == TIME:
        values = hours(spelled)
        wrong = np.isnan(values)
        like = ", such as 1:30 or 1:30:00"
    else:
        typed = pd.api.types.is_datetime64_any_dtype(cells)
        iso = not typed and spelled.str.fullmatch(ISO_DATE).all()
        own = None if typed else ISO if iso else form or ISO
        found = moments(cells if typed else spelled, own)
        values, wrong = found.astype(np.int64) / MICROSECONDS, np.isnat(found)
        like = f" of the form {form or 'YYYY-MM-DD (ISO 8601)'}"
    if wrong.any():
        place = int(np.argmax(wrong))
        what = "time" if form == TIME else "date"
        raise DataError(
            f"{str(cells.iloc[place])[:60]!r} is not a {what}{like}: correct it, or "
            "declare it a missing value by --missing.",
            column=name,
            row=_row(cells, place),
        )
    return pd.Series(values, index=cells.index)


def _date_of_digits(cells: Series) -> str | None:
    """The format of dates that look like numbers: 20241231, or 12.2024."""
    for form in (COMPACT, "%m.%Y"):
        first = re.fullmatch(PATTERNS[form], str(cells.iloc[0]))
        if first and cells.str.fullmatch(PATTERNS[form]).all():
            return date_format(cells)
    return None


def _are_days(numbers: Series) -> bool:
    """Whether whole numbers are dates such as 20241231."""
    if not pandas().api.types.is_integer_dtype(numbers):
        return False
    likely = numbers.between(FIRST_DAY, LAST_DAY).all()
    return bool(likely) and _date_of_digits(texts(numbers)) is not None


def are_codes(cells: Series) -> bool:
    """Whether text of digits is no quantity: 01067, or too long for a float."""
    first = str(cells.iloc[0]).removeprefix("+")
    if not first.isdecimal() or not cells.str.fullmatch(r"\+?\d+").all():
        return False
    if cells.str.fullmatch(CODE).any():
        return True
    return bool((cells.str.len() > DIGITS).any()) and (
        cells.astype(float).nunique() < cells.nunique()
    )


def _spelled(cell: str, known: Mapping[str, str]) -> str:
    """A category as it was spelled where it was learned; others stay."""
    return cell if cell in known.values() else known.get(cell.casefold(), cell)


def texts(cells: Series) -> Series:
    """Cells as text; whole numbers have no decimal point."""
    pd = pandas()
    if pd.api.types.is_bool_dtype(cells):
        return cells.astype(str).astype(object)
    if isinstance(cells.dtype, pd.StringDtype):
        return cells.astype(object)
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


def as_frame(X: UserData) -> DataFrame:
    """A pandas data frame with text as names of columns."""
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
