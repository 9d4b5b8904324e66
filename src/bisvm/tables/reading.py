"""Read a file of any supported format into a table."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from bisvm.core.types import Array, UserData
from bisvm.tables.errors import ColumnWarning, DataError, listed, pandas
from bisvm.tables.format import TableFormat
from bisvm.tables.lines import better_separator
from bisvm.tables.matching import (
    as_like,
    check_target,
    names_by_place,
    read_text_like,
    unknown_columns,
)
from bisvm.tables.numbers import read_numbers
from bisvm.tables.objects import of_json
from bisvm.tables.sources import (
    GZIP,
    Source,
    is_packed,
    of_spreadsheet,
    of_text,
    unpacked,
)
from bisvm.tables.table import Table
from bisvm.tables.text import read_text
from bisvm.tables.words import is_text, missing_words, without_words

# Endings of names that tell the format; all other text may be CSV or LIBSVM.
SUFFIXES = {
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".libsvm", ".svm", ".svmlight"), "libsvm"),
    **dict.fromkeys((".xlsx", ".xlsm"), "excel"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    ".npz": "npz",
}
# Files of other programs, by the endings of names and by their first bytes.
OTHERS = (
    *(".xls", ".xlsb", ".ods", ".numbers", ".sav", ".dta", ".sas7bdat", ".rds"),
    *(".rdata", ".arff", ".feather", ".arrow", ".orc", ".h5", ".hdf5", ".mat", ".pkl"),
    *(".sqlite", ".db", ".mdb", ".xml", ".html", ".htm", ".yaml", ".yml", ".pdf"),
    *(".doc", ".docx"),
)
FIRST_BYTES = {
    b"<?xml": "XML",
    b"<!doctype": "HTML",
    b"<html": "HTML",
    b"<table": "HTML",
    b"%pdf": "PDF",
    b"@relation": "ARFF",
    b"{\\rtf": "RTF",
    b"\xd0\xcf\x11\xe0": "old Excel",
    b"sqlite format": "SQLite",
    b"$fl2": "SPSS",
}
# Formats that are read as text.
TEXT = ("csv", "tsv", "excel", "jsonl")
# A line of LIBSVM's format: a label, and number:value pairs.
LIBSVM_LINE = re.compile(
    r"\s*[^\s:]+(\s+qid:\d+)?(\s+\d+:[^\s:]+)*\s*(#.*)?", flags=re.ASCII
)
# A sparse matrix with fewer entries, zeros included, becomes a data frame.
DENSE_ENTRIES = 4_000_000
# A LIBSVM file with more features is refused, since it is probably damaged.
MOST_FEATURES = 5_000_000
# Columns that the training file does not have, named in a warning.
MOST_NAMES = 5


def read_table(
    path: str | Path,
    *,
    format: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    missing: Sequence[str] = (),
    decimal: str | None = None,
    first_index: int | None = None,
    n_features: int | None = None,
    labels: str = "y",
    like: TableFormat | None = None,
    skip_lines: int | None = None,
    sheet: str | None = None,
    encoding: str | None = None,
    skip_last: int | None = None,
) -> Table:
    """Read a table from a file.

    Parameters
    ----------
    path : path of the file
    format : {"csv", "tsv", "excel", "jsonl", "parquet", "libsvm", "npz"}, optional
        By default detected from the first bytes and the name of the file.
    separator : one character, optional
        Detected by default.
    header : bool, optional
        Whether the first line has the names of the columns; detected by default.
    missing : words for missing values, such as "unknown"
        They apply to the target, too; the usual ones ("NA", "none", "-") do not.
    decimal : {".", ","}, optional
        The decimal sign of text; the other one is the thousands sign. Detected by
        default.
    first_index : {0, 1}, optional
        The number of the first feature of a LIBSVM file. By default 0 if a feature has
        that number, else 1.
    n_features : int, optional
        Number of features of a LIBSVM file.
    labels : name of the labels in an NPZ archive
    like : TableFormat, optional
        The format of another file: `model.table_format_` of a model saved by `bisvm
        tune`, or `table.form` of another table. It replaces detection, and a file of
        another format is refused.
    skip_lines : int, optional
        Lines above the header, such as a title; detected by default.
    sheet : str, optional
        Name of a sheet of an Excel file, or its number from one; by default the first
        one that is visible and has a table.
    encoding : str, optional
        Encoding of text, such as "cp1250"; by default UTF-8, or Windows-1252 if it is
        none.
    skip_last : int, optional
        Lines below the table, such as sums and footnotes; detected by default.

    Returns
    -------
    table : Table

    Raises
    ------
    DataError
        If the file cannot be read. The message names file, column and row.

    Warns
    -----
    ColumnWarning
        With `like`, of columns that the other file does not have.
    """
    path = Path(path)
    asked = tuple(one.strip().lower() for one in missing)
    try:
        _check_there(path)
        kind = _kind_of(path, format, like)
        if kind in TEXT:
            separator = "\t" if kind == "tsv" and separator is None else separator
            source = _source_of(path, kind, sheet, encoding)
            text = separator, header, asked, decimal, skip_lines, skip_last
            table = _read_text(path, source, like, *text)
        elif kind == "libsvm":
            table = _read_libsvm(path, n_features, first_index, like)
        else:
            parquet = kind == "parquet"
            table = _read_parquet(path) if parquet else _read_npz(path, labels)
            table = (
                _with_text_numbers(table, asked, decimal)
                if like is None
                else _table_like(table, like, asked, decimal)
            )
    except DataError as error:
        raise error.at(path) from None
    except MemoryError:
        raise DataError("the table does not fit in memory.", path=path) from None
    if like is not None:
        _warn_of_unknown(table.frame, like)
    return table


def _read_text(
    path: Path,
    source: Source,
    like: TableFormat | None,
    separator: str | None,
    header: bool | None,
    missing: Sequence[str],
    decimal: str | None,
    skip: int | None,
    skip_last: int | None,
) -> Table:
    """Read a text by its own format, or by that of another file."""
    text = separator, header, missing, decimal, skip, skip_last
    given = separator is not None and source.separator is None
    hint = better_separator(source.text, str(separator)) if given else ""
    try:
        if like is not None:
            frame, found = read_text_like(source, like, *text)
            return Table(path, frame, like, notes=tuple(found))
        frame, cells, form, found = read_text(source, *text)
    except DataError as error:
        raise error.advised(hint) from None
    notes = (f"{hint[0].lower()}{hint[1:-1]}", *found) if hint else tuple(found)
    return Table(
        path,
        frame,
        form,
        notes=notes,
        cells=cells,
        missing=tuple(missing),
        separator_hint=hint,
    )


def _warn_of_unknown(frame: UserData, like: TableFormat) -> None:
    """Warn of columns that the training file does not have."""
    unknown = unknown_columns(frame, like)
    if unknown:
        said = "column {} is ignored: the training file does not have it."
        if len(unknown) > 1:
            said = "columns {} are ignored: the training file does not have them."
        shown = listed(unknown, MOST_NAMES)
        warnings.warn(said.format(shown), ColumnWarning, stacklevel=3)


def _source_of(
    path: Path, kind: str, sheet: str | None, encoding: str | None
) -> Source:
    """The text of a file."""
    if kind == "excel":
        return of_spreadsheet(path, sheet)
    return of_json(path, encoding) if kind == "jsonl" else of_text(path, encoding)


def _with_text_numbers(
    table: Table, missing: Sequence[str], decimal: str | None
) -> Table:
    """Read missing values and numbers in columns that are stored as text."""
    frame = without_words(table.frame, missing)
    form = replace(table.form, missing=missing_words(missing, ("",)))
    texts = [name for name in frame if is_text(frame[name])]
    found = read_numbers(frame[texts], decimal, ",")
    if not (found.columns or found.units or found.negative):
        return replace(table, frame=frame, form=form, missing=tuple(missing))
    form = replace(
        form,
        decimal=found.decimal,
        thousands=found.thousands,
        numbers=found.columns,
        others=found.others,
        grouped=found.grouped,
        negative=found.negative,
        units=tuple((one.column, one.text) for one in found.units),
    )
    frame = frame.assign(**found.frame)
    notes = (*table.notes, *found.notes)
    return replace(table, frame=frame, form=form, missing=tuple(missing), notes=notes)


def _kind_of(path: Path, format: str | None, like: TableFormat | None) -> str:
    """The format of a file; an error if it does not fit the training file."""
    kind = format or _format_of(path, like)
    if kind not in ("csv", "tsv", "jsonl") and is_packed(path):
        raise DataError("the file is compressed: unpack it first.")
    own = "text" if kind in TEXT else kind
    if like is None or own == like.kind or (like.named and own != "libsvm"):
        return kind
    shown = {"text": "CSV", "parquet": "Parquet", "libsvm": "LIBSVM", "npz": "NPZ"}
    raise DataError(
        f"this is a {shown[own]} file, but the model was trained on a "
        f"{shown[like.kind]} file, and one of them has no names of columns to match "
        "them by. Convert it, or use --format if it has another format."
    )


def _table_like(
    table: Table, like: TableFormat, missing: Sequence[str], decimal: str | None
) -> Table:
    """Name and read typed columns as in the training file."""
    frame = table.frame
    if not like.named:
        frame = frame.set_axis(list(names_by_place(frame.shape[1], like)), axis=1)
    notes = check_target(frame, like, by_name=True)
    frame, more = as_like(frame, like, missing, decimal)
    return replace(table, frame=frame, notes=(*notes, *more), form=like)


def _check_there(path: Path) -> None:
    if path.is_dir():
        raise DataError("this is a folder; expected a file.")
    if not path.exists():
        raise DataError("there is no such file.")
    if path.is_file() and path.stat().st_size == 0:
        raise DataError("the file is empty; expected a table.")


def _format_of(path: Path, like: TableFormat | None) -> str:
    """Detect the format by the first bytes, the name, or the training file."""
    head = unpacked(path, 4096)
    packed = path.suffix.lower() == ".gz"
    suffix = Path(path.stem if packed else path.name).suffix.lower()
    if head.startswith(b"PAR1"):
        return "parquet"
    if suffix in OTHERS:
        raise DataError(
            f"{suffix} files cannot be read: save it as .xlsx or CSV. (If it is text, "
            "use --format csv.)"
        )
    if SUFFIXES.get(suffix) == "excel":
        return "excel"
    if head.startswith(b"PK"):
        return "npz"
    if head.startswith((GZIP, b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")):
        raise DataError("the file is compressed: unpack it first.")
    begin = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for first, name in FIRST_BYTES.items():
        if begin.startswith(first):
            raise DataError(f"this is a file of {name}: save it as CSV.")
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    line = head.split(b"\n", 1)[0].decode("latin-1").strip()
    if line.startswith(('{"', '[{"')) and ":" in line:
        return "jsonl"
    if like is not None and like.kind in ("text", "libsvm"):
        return "csv" if like.kind == "text" else "libsvm"
    return "libsvm" if ":" in line and LIBSVM_LINE.fullmatch(line) else "csv"


def _read_parquet(path: Path) -> Table:
    pd = pandas()
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise ImportError(
            "Parquet files need pyarrow, which is not installed: pip install pyarrow"
        ) from None
    except MemoryError:
        raise
    except Exception as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        if "Multiple matches for FieldRef" in said:
            raise DataError("two columns have the same name.") from None
        raise _damaged("a Parquet file", said) from None
    # pandas stores an index with a name as one of the columns of its file.
    named = any(name is not None for name in frame.index.names)
    try:
        frame = frame.reset_index(drop=not named)
    except ValueError:
        raise DataError("two columns have the same name.") from None
    frame.columns = [str(name) for name in frame.columns]
    if len(set(frame.columns)) < frame.shape[1]:
        raise DataError("two columns have the same name.")
    form = TableFormat("parquet", tuple(frame.columns))
    return _not_empty(Table(path, frame, form))


def _damaged(kind: str, why: str) -> DataError:
    return DataError(f"this is not {kind}, or it is damaged: {why[:200]}")


def _read_npz(path: Path, labels: str) -> Table:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except MemoryError:
        raise
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError) as error:
        pickled = "allow_pickle" in str(error)
        why = "it has Python objects, which are not read" if pickled else str(error)
        raise _damaged("an NPZ file of numbers", why) from None
    except Exception as error:
        raise _damaged("an NPZ file", type(error).__name__) from None
    if not isinstance(arrays.get("X"), np.ndarray) or arrays["X"].ndim != 2:
        have = ", ".join(f"{k} {v.shape}" for k, v in arrays.items()) or "nothing"
        raise DataError(
            f"expected an NPZ archive with a matrix X and labels y; it has {have}."
        )
    X, y = arrays["X"], arrays.get(labels)
    if X.dtype.kind not in "iufb":
        raise DataError(f"X must hold numbers; it is of type {X.dtype}.")
    if y is not None and y.shape != (len(X),):
        raise DataError(
            f"{labels} must have one label for each of {len(X)} rows; its shape is "
            f"{y.shape}."
        )
    names = _given_names(arrays.get("feature_names"), X.shape[1])
    named = names is not None
    names = names or [f"x{number}" for number in range(1, X.shape[1] + 1)]
    frame = pandas().DataFrame(X.astype(float), columns=names)
    form = TableFormat("npz", tuple(names), named)
    return _not_empty(Table(path, frame, form, y))


def _given_names(given: Array | None, count: int) -> list[str] | None:
    if given is not None and np.shape(given) == (count,):
        names = [str(name) for name in given]
        if len(set(names)) == count:
            return names
    return None


def _read_libsvm(
    path: Path,
    n_features: int | None,
    first_index: int | None,
    like: TableFormat | None,
) -> Table:
    lowest, highest = _check_lines(path, blank_allowed=like is None)
    given = first_index is not None
    if like is not None:
        first_index = like.first_index if first_index is None else first_index
        n_features = like.n_features
    first = first_index
    if first is None:
        first = 0 if lowest == 0 else 1
    _check_indices(lowest, highest, first, like)
    try:
        X, y = load_svmlight_file(
            str(path), n_features=n_features, zero_based=first == 0
        )
    except MemoryError:
        raise
    except Exception as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise _damaged("a LIBSVM file", said) from None
    if X.shape[1] > MOST_FEATURES:
        raise DataError(
            f"feature number {X.shape[1]} is too large; at most {MOST_FEATURES}."
        )
    if not np.all(np.isfinite(X.data)):
        row = int(
            np.searchsorted(X.indptr, np.flatnonzero(~np.isfinite(X.data))[0] + 1)
        )
        raise DataError("a value is not finite.", row=row)
    large = X.shape[0] * X.shape[1] > DENSE_ENTRIES
    form = TableFormat(
        "libsvm",
        named=False,
        n_features=X.shape[1],
        first_index=first,
        sparse=large if like is None else like.sparse,
    )
    notes: tuple[str, ...] = ()
    if not given and first == 0 and like is None:
        notes = ("features are numbered from 0 (--first-index 1)",)
    elif not given and first == 0 and lowest:
        notes = (
            f"no row has a feature number 0, the lowest is {lowest}; features are "
            "numbered from 0, as in the training file (--first-index 1)",
        )
    table = Table(path, X, form, y, notes)
    if not form.sparse:
        names = [str(number) for number in range(1, X.shape[1] + 1)]
        frame = pandas().DataFrame(X.toarray(), columns=names)
        form = replace(form, columns=tuple(names))
        table = replace(table, frame=frame, form=form)
    return _not_empty(table)


def _check_indices(
    lowest: int | None,
    highest: int | None,
    first: int,
    like: TableFormat | None,
) -> None:
    """Refuse numbers of features that cannot occur."""
    if lowest is None or highest is None:
        return
    if lowest < first:
        whose = ""
        if like is not None and like.first_index == first:
            whose = " in the training file"
        raise DataError(
            f"there is a feature number {lowest}, but features are numbered from "
            f"{first}{whose}: use --first-index 0 if this file numbers them from 0."
        )
    if like is not None and highest - first >= like.n_features:
        raise DataError(
            f"there is a feature number {highest}, but the training file has "
            f"{like.n_features} features, numbered from {like.first_index}: use "
            "--first-index if this file numbers them differently, or remove features "
            "that the model does not know."
        )


def _check_lines(path: Path, *, blank_allowed: bool) -> tuple[int | None, int | None]:
    """Check every line; return the lowest and the highest number of a feature.

    Blank lines and comments are skipped. Where blank lines are not allowed, those
    between rows are errors: predictions would be off by a line.
    """
    row = 0
    blank = 0
    lowest: int | None = None
    highest: int | None = None
    with path.open("r", encoding="latin-1", newline="\n") as file:
        for number, line in enumerate(file, 1):
            if not line.split("#", 1)[0].strip():
                blank = blank or (number if row and not line.strip() else 0)
                continue
            row += 1
            if blank and not blank_allowed:
                raise DataError(
                    f"line {blank} is blank, and the predictions of the rows below "
                    "would be off by a line: remove it."
                )
            if not LIBSVM_LINE.fullmatch(line.rstrip("\r\n")):
                raise DataError(
                    f"expected 'label number:value number:value ...', got "
                    f"{line.strip()[:60]!r}.",
                    row=row,
                )
            # The comment may contain anything.
            for index in re.findall(r"\s(\d+):", line.split("#", 1)[0]):
                if len(index) > 9 or int(index) > MOST_FEATURES:
                    raise DataError(
                        f"feature number {index[:20]} is too large; at most "
                        f"{MOST_FEATURES}.",
                        row=row,
                    )
                number = int(index)
                lowest = number if lowest is None else min(lowest, number)
                highest = number if highest is None else max(highest, number)
    return lowest, highest


def _not_empty(table: Table) -> Table:
    n, d = table.frame.shape
    if not n or not d:
        raise DataError(f"the table has {n} rows and {d} columns.")
    return table
