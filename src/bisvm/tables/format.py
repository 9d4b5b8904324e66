"""The format of the file that a model was trained on.

`read_table` detects it, `bisvm tune --save` stores it with the model, and `bisvm
predict` reads other files by it. Nothing is guessed twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sklearn.pipeline import Pipeline

from bisvm.tables.columns import NUMBER, ColumnTypes
from bisvm.tables.errors import DataError

VERSION = 2
# Versions that can be read: the first had fewer fields.
READABLE = (1, 2)
# The attribute of a pipeline that holds its format.
ATTRIBUTE = "table_format_"


@dataclass(frozen=True)
class TableFormat:
    """The format of a file.

    Parameters
    ----------
    kind : {"text", "parquet", "libsvm", "npz"}
    columns : names of all columns in the order of the file, including the target; empty
        for a sparse matrix
    named : whether the file has names of columns; else they are numbered
    n_features : number of features of a LIBSVM file
    first_index : 0 or 1, the number of the first feature of a LIBSVM file
    sparse : whether the features are a sparse matrix
    separator : character between the fields of a text file
    decimal : decimal sign; None if the file has whole numbers only
    thousands : thousands sign; None if the file has none
    numbers : columns whose numbers are written with these signs
    others : those of them with the two signs exchanged
    grouped : those of these that have a thousands sign and no decimals
    negative : columns with negative numbers such as (1,234) or 1,234-
    missing : words for missing values, in lower case
    target : the column to predict; None if the labels are stored separately
    labels : the classes, as spelled in the file
    like_labels : columns without a name whose cells are labels, too
    used : columns that the model uses
    units : pairs (column, unit) of columns whose numbers have a unit
    head : number of rows with names and units, above the data
    second : pairs (column, cell) of the first row below the names, such as units
    version : of this list of fields
    """

    kind: str
    columns: tuple[str, ...] = ()
    named: bool = True
    n_features: int = 0
    first_index: int | None = None
    sparse: bool = False
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    numbers: tuple[str, ...] = ()
    missing: tuple[str, ...] = ("",)
    target: str | None = None
    labels: tuple[str, ...] = ()
    like_labels: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    units: tuple[tuple[str, str], ...] = ()
    others: tuple[str, ...] = ()
    grouped: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()
    head: int = 1
    second: tuple[tuple[str, str], ...] = ()
    version: int = VERSION

    def __post_init__(self) -> None:
        signs = (None, ".", ",")
        lists = (
            *(self.columns, self.numbers, self.missing),
            *(self.labels, self.like_labels, self.used, self.others),
            *(self.grouped, self.negative),
        )
        if (
            self.kind not in ("text", "parquet", "libsvm", "npz")
            or not all(isinstance(one, bool) for one in (self.named, self.sparse))
            or not isinstance(self.n_features, int)
            or self.n_features < 0
            or self.first_index not in (None, 0, 1)
            or self.separator not in (None, ",", ";", "\t", "|", " ")
            or self.decimal not in signs
            or self.thousands not in signs
            or self.head not in (0, 1, 2, 3)
            or not all(isinstance(one, tuple) for one in lists)
            or not all(isinstance(text, str) for one in lists for text in one)
            or not isinstance(self.target, (str, type(None)))
            or not all(
                isinstance(x, str) for pair in (*self.units, *self.second) for x in pair
            )
        ):
            raise ValueError(f"this is not a valid format of a table: {self!r:.200}")

    @property
    def features(self) -> tuple[str, ...]:
        """All columns but the target."""
        return tuple(name for name in self.columns if name != self.target)


def remember(model: Pipeline, form: TableFormat) -> None:
    """Store the format of its file with a fitted pipeline."""
    kinds = model[0].kinds_ if isinstance(model[0], ColumnTypes) else {}
    numbers = set(form.numbers)
    if form.decimal != ",":
        # With a decimal comma, `form.numbers` already has all such columns; numbers in
        # other columns have a point.
        numbers.update(name for name, kind in kinds.items() if kind == NUMBER)
    known = replace(
        form,
        used=tuple(kinds),
        numbers=tuple(name for name in kinds if name in numbers),
        others=tuple(name for name in kinds if name in form.others),
        negative=tuple(name for name in kinds if name in form.negative),
    )
    setattr(model, ATTRIBUTE, known)


def remembered(model: Pipeline) -> TableFormat | None:
    """The format stored with a model; None if it has none."""
    stored = getattr(model, ATTRIBUTE, None)
    if stored is None:
        return None
    version = getattr(stored, "version", None)
    if version not in READABLE:
        raise DataError(
            f"the model stores its file format in version {version!r}, but this bisvm "
            f"reads version {VERSION}: update bisvm, or tune again."
        )
    # The constructor checks all fields, since the file may be damaged.
    return TableFormat(**vars(stored))
