"""How the file is written that a model was trained on.

`read_table` finds it out, `bisvm tune --save` stores it with the model, and `bisvm
predict` reads other files by it. Nothing is guessed a second time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bisvm.tables.columns import NUMBER, ColumnTypes
from bisvm.tables.errors import DataError

VERSION = 1
# The attribute of a pipeline that holds its format.
ATTRIBUTE = "table_format_"


@dataclass(frozen=True)
class TableFormat:
    """How a file is written.

    Parameters
    ----------
    kind : {"text", "parquet", "libsvm", "npz"}
    columns : names of all columns in the order of the file, the target among them;
        empty for a sparse matrix
    named : whether the file has names for its columns; they are numbered otherwise
    n_features : number of features of a LIBSVM file
    first_index : 0 or 1, the number of the first feature of a LIBSVM file
    sparse : whether the features are a sparse matrix
    separator : character between the fields of a text file
    decimal : decimal sign, None if the file has whole numbers only
    thousands : thousands sign, None if the file has none
    numbers : columns whose numbers are written with these signs
    missing : words for missing values, in lower case
    target : the column to predict, None if the labels are stored apart
    labels : the classes, as the file spells them
    like_labels : columns without a name whose cells are labels as well
    used : columns that the model takes its inputs from
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
    version: int = VERSION

    def __post_init__(self) -> None:
        signs = (None, ".", ",")
        lists = (
            *(self.columns, self.numbers, self.missing),
            *(self.labels, self.like_labels, self.used),
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
            or not all(isinstance(one, tuple) for one in lists)
            or not all(isinstance(text, str) for one in lists for text in one)
            or not isinstance(self.target, (str, type(None)))
        ):
            raise ValueError(f"this is no format of a table: {self!r:.200}")

    @property
    def features(self) -> tuple[str, ...]:
        """All columns but the target."""
        return tuple(name for name in self.columns if name != self.target)


def remember(model: Any, form: TableFormat) -> None:
    """Store with a fitted pipeline how its file is written."""
    kinds = model[0].kinds_ if isinstance(model[0], ColumnTypes) else {}
    numbers = set(form.numbers)
    if form.decimal != ",":
        # Where the decimal sign is a comma, `form.numbers` has every such column; other
        # numbers of the file have a point and are left as they are.
        numbers.update(name for name, kind in kinds.items() if kind == NUMBER)
    known = replace(
        form,
        used=tuple(kinds),
        numbers=tuple(name for name in kinds if name in numbers),
    )
    setattr(model, ATTRIBUTE, known)


def remembered(model: Any) -> TableFormat | None:
    """The format stored with a model; None if it has none (older or made in Python)."""
    stored = getattr(model, ATTRIBUTE, None)
    if stored is None:
        return None
    version = getattr(stored, "version", None)
    if version != VERSION:
        raise DataError(
            f"the model stores version {version!r} of how its file is written, and "
            f"this bisvm knows version {VERSION}: update bisvm, or tune again."
        )
    # All fields are read and checked: the file may be damaged.
    return TableFormat(**vars(stored))
