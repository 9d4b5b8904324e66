"""Reading a file into a table, whatever its format."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bisvm.tables.errors import DataError, pandas
from bisvm.tables.format import TableFormat
from bisvm.tables.matching import as_like, check_target, names_by_place, read_text_like
from bisvm.tables.text import missing_words, read_text, without_words

FORMATS = ("csv", "tsv", "parquet", "libsvm", "npz")
SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".data": "csv",
    ".dat": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".npz": "npz",
}
# A line of LIBSVM's format: a label, and number:value pairs.
LIBSVM_LINE = re.compile(
    r"\s*[^\s:]+(\s+qid:\d+)?(\s+\d+:[^\s:]+)*\s*(#.*)?", flags=re.ASCII
)
# A sparse matrix of fewer entries is made a table of columns; and no matrix has more
# columns than that.
DENSE_ENTRIES = 4_000_000
MOST_FEATURES = 5_000_000


@dataclass(frozen=True)
class Table:
    """What a file holds.

    frame : data frame, or a CSR matrix that is too large for one
    form : how the file is written
    labels : those that the format itself has (LIBSVM, NPZ), else None
    notes : what was guessed, in words
    cells : data frame of a text file with all cells as they are written, else None
    missing : words for missing values that were asked for; they apply to the target
    """

    path: Path
    frame: Any
    form: TableFormat
    labels: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    cells: Any = None
    missing: tuple[str, ...] = ()

    @property
    def is_sparse(self) -> bool:
        return not hasattr(self.frame, "columns")


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
) -> Table:
    """The table in a file; a DataError says what is wrong with it.

    Parameters
    ----------
    path : path of the file
    format : {"csv", "tsv", "parquet", "libsvm", "npz"}, optional
        By default what the file begins with, and its name, say.
    separator : one character, optional; guessed by default
    header : bool, optional
        Whether the first line has the names of the columns; guessed by default.
    missing : further words that stand for nothing, such as "unknown"
        They apply to the target, too; the usual ones ("NA", "none", "-") do not.
    decimal : {".", ","}, optional
        The decimal sign, for text; the other one is the thousands sign. Guessed by
        default.
    first_index : {0, 1}, optional
        The number of the first feature, for LIBSVM's format. By default 0 if a feature
        has that number, and 1 otherwise.
    n_features : width of the matrix, for LIBSVM's format
    labels : name of the labels in an NPZ archive
    like : TableFormat, optional
        `model.table_format_` of a model that `bisvm tune` has saved, or `table.form`
        of another table. What is not given is taken from it instead of guessed; a file
        that cannot be read so is refused.
    """
    path = Path(path)
    _check_there(path)
    asked = tuple(one.strip().lower() for one in missing)
    kind = _kind_of(path, format, like)
    separator = "\t" if kind == "tsv" and separator is None else separator
    text: dict[str, Any] = dict(
        separator=separator, header=header, missing=asked, decimal=decimal
    )
    try:
        if kind in ("csv", "tsv") and like is not None:
            frame, notes = read_text_like(path, like, **text)
            return Table(path, frame, like, notes=tuple(notes))
        if kind in ("csv", "tsv"):
            frame, cells, form, notes = read_text(path, **text)
            return Table(path, frame, form, None, tuple(notes), cells, asked)
        if kind == "libsvm":
            return _read_libsvm(path, n_features, first_index, like)
        table = _read_parquet(path) if kind == "parquet" else _read_npz(path, labels)
        if like is not None:
            return _table_like(table, like, asked, decimal)
        form = replace(table.form, missing=missing_words(asked, ("",)))
        frame = without_words(table.frame, asked)
        return replace(table, frame=frame, form=form, missing=asked)
    except MemoryError:
        raise DataError("the table does not fit in memory.", path=path) from None


def _kind_of(path: Path, format: str | None, like: TableFormat | None) -> str:
    """The format of a file; one that the model cannot read is an error."""
    kind = format or _format_of(path, like)
    own = "text" if kind in ("csv", "tsv") else kind
    if like is None or own == like.kind or (like.named and own != "libsvm"):
        return kind
    shown = {"text": "CSV", "parquet": "Parquet", "libsvm": "LIBSVM", "npz": "NPZ"}
    raise DataError(
        f"this is a {shown[own]} file, and the model was trained on a "
        f"{shown[like.kind]} file; one of them has no names of columns by which they "
        "could be matched. Convert it, or say --format if it is of another format.",
        path=path,
    )


def _table_like(
    table: Table, like: TableFormat, missing: Sequence[str], decimal: str | None
) -> Table:
    """Columns that have types already, named and read as the model does."""
    frame, path = table.frame, table.path
    if not like.named:
        frame = frame.set_axis(list(names_by_place(frame.shape[1], like, path)), axis=1)
    notes = check_target(frame, like, by_name=True, path=path)
    frame = as_like(frame, like, missing, decimal, path)
    return replace(table, frame=frame, notes=tuple(notes), form=like)


def _check_there(path: Path) -> None:
    if path.is_dir():
        raise DataError("this is a folder; expected a file.", path=path)
    if not path.exists():
        raise DataError("there is no such file.", path=path)
    if path.is_file() and path.stat().st_size == 0:
        raise DataError("the file is empty; expected a table.", path=path)


def _format_of(path: Path, like: TableFormat | None) -> str:
    """By the first bytes, and then by the name, and then by the model's file."""
    with path.open("rb") as file:
        head = file.read(4096)
    suffix = path.suffix.lower()
    if head.startswith(b"PAR1"):
        return "parquet"
    if suffix in (".xlsx", ".xls", ".ods"):
        raise DataError("spreadsheets are not read: save it as CSV.", path=path)
    if head.startswith(b"PK"):
        return "npz"
    if head.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")):
        raise DataError("the file is compressed: unpack it first.", path=path)
    if suffix in SUFFIXES and SUFFIXES[suffix] != "csv":
        return SUFFIXES[suffix]
    if like is not None and like.kind in ("text", "libsvm"):
        return "csv" if like.kind == "text" else "libsvm"
    line = head.split(b"\n", 1)[0].decode("latin-1").strip()
    return "libsvm" if ":" in line and LIBSVM_LINE.fullmatch(line) else "csv"


def _read_parquet(path: Path) -> Table:
    pd = pandas()
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise ImportError(
            "Parquet files need pyarrow, which is not installed: pip install bisvm[cli]"
        ) from None
    except MemoryError:
        raise
    except Exception as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        if "Multiple matches for FieldRef" in said:
            raise DataError("two columns have the same name.", path=path) from None
        raise DataError(
            f"this is no Parquet file, or it is damaged: {said[:200]}", path=path
        ) from None
    frame = frame.reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
    if len(set(frame.columns)) < frame.shape[1]:
        raise DataError("two columns have the same name.", path=path)
    form = TableFormat("parquet", tuple(frame.columns))
    return _not_empty(Table(path, frame, form))


def _read_npz(path: Path, labels: str) -> Table:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except MemoryError:
        raise
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError) as error:
        pickled = "allow_pickle" in str(error)
        why = "it has Python objects, which are not read" if pickled else str(error)
        raise DataError(
            f"this is no NPZ file of numbers, or it is damaged: {why[:200]}", path=path
        ) from None
    except Exception as error:
        raise DataError(
            f"this is no NPZ file, or it is damaged: {type(error).__name__}", path=path
        ) from None
    if not isinstance(arrays.get("X"), np.ndarray) or arrays["X"].ndim != 2:
        have = ", ".join(f"{k} {v.shape}" for k, v in arrays.items()) or "nothing"
        raise DataError(
            f"an NPZ archive needs a matrix X (and labels y); it has {have}.", path=path
        )
    X, y = arrays["X"], arrays.get(labels)
    if X.dtype.kind not in "iufb":
        raise DataError(f"X must hold numbers; it is of type {X.dtype}.", path=path)
    if y is not None and y.shape != (len(X),):
        raise DataError(
            f"{labels} must have one label for each of {len(X)} rows; its shape is "
            f"{y.shape}.",
            path=path,
        )
    names = _given_names(arrays.get("feature_names"), X.shape[1])
    named = names is not None
    names = names or [f"x{number}" for number in range(1, X.shape[1] + 1)]
    frame = pandas().DataFrame(X.astype(float), columns=names)
    form = TableFormat("npz", tuple(names), named)
    return _not_empty(Table(path, frame, form, y))


def _given_names(given: Any, count: int) -> list[str] | None:
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
    from sklearn.datasets import load_svmlight_file

    lowest, highest = _check_lines(path)
    if like is not None:
        first_index = like.first_index if first_index is None else first_index
        n_features = like.n_features
    first = first_index
    if first is None:
        first = 0 if lowest == 0 else 1
    _check_indices(path, lowest, highest, first, like)
    try:
        X, y = load_svmlight_file(
            str(path), n_features=n_features, zero_based=first == 0
        )
    except MemoryError:
        raise
    except Exception as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"this is no file of LIBSVM's format: {said[:200]}", path=path
        ) from None
    if X.shape[1] > MOST_FEATURES:
        raise DataError(
            f"feature number {X.shape[1]} is too large; at most {MOST_FEATURES}.",
            path=path,
        )
    if not np.all(np.isfinite(X.data)):
        row = int(
            np.searchsorted(X.indptr, np.flatnonzero(~np.isfinite(X.data))[0] + 1)
        )
        raise DataError("a value is not finite.", path=path, row=row)
    large = X.shape[0] * X.shape[1] > DENSE_ENTRIES
    form = TableFormat(
        "libsvm",
        named=False,
        n_features=X.shape[1],
        first_index=first,
        sparse=large if like is None else like.sparse,
    )
    guessed = first_index is None and first == 0
    notes = ("features are numbered from 0",) if guessed else ()
    table = Table(path, X, form, y, notes)
    if not form.sparse:
        names = [str(number) for number in range(1, X.shape[1] + 1)]
        frame = pandas().DataFrame(X.toarray(), columns=names)
        form = replace(form, columns=tuple(names))
        table = replace(table, frame=frame, form=form)
    return _not_empty(table)


def _check_indices(
    path: Path,
    lowest: int | None,
    highest: int | None,
    first: int,
    like: TableFormat | None,
) -> None:
    """Refuse features that the numbering, or the model, does not have."""
    if lowest is None or highest is None:
        return
    if lowest < first:
        whose = ""
        if like is not None and like.first_index == first:
            whose = " in the file that the model was trained on"
        raise DataError(
            f"there is a feature number {lowest}, and features are numbered from "
            f"{first}{whose}: say --first-index 0 if this file numbers them from 0.",
            path=path,
        )
    if like is not None and highest - first >= like.n_features:
        raise DataError(
            f"there is a feature number {highest}, and the file that the model was "
            f"trained on has {like.n_features}, numbered from {like.first_index}: say "
            "--first-index if this file numbers them from another number; leave out "
            "features that the model does not know.",
            path=path,
        )


def _check_lines(path: Path) -> tuple[int | None, int | None]:
    """Name the first line that is not of the format, before others read on.

    Returns the lowest and the highest number of a feature.
    """
    row = 0
    lowest: int | None = None
    highest: int | None = None
    with path.open("r", encoding="latin-1", newline="\n") as file:
        for line in file:
            if not line.split("#", 1)[0].strip():
                continue
            row += 1
            if not LIBSVM_LINE.fullmatch(line.rstrip("\r\n")):
                raise DataError(
                    f"expected 'label number:value number:value ...', got "
                    f"{line.strip()[:60]!r}.",
                    path=path,
                    row=row,
                )
            # Without the comment, in which anything may stand.
            for index in re.findall(r"\s(\d+):", line.split("#", 1)[0]):
                if len(index) > 9 or int(index) > MOST_FEATURES:
                    raise DataError(
                        f"feature number {index[:20]} is too large; at most "
                        f"{MOST_FEATURES}.",
                        path=path,
                        row=row,
                    )
                number = int(index)
                lowest = number if lowest is None else min(lowest, number)
                highest = number if highest is None else max(highest, number)
    return lowest, highest


def _not_empty(table: Table) -> Table:
    n, d = table.frame.shape
    if not n or not d:
        raise DataError(f"the table has {n} rows and {d} columns.", path=table.path)
    return table
