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
from bisvm.tables.text import read_text

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
    labels : those that the format itself has (LIBSVM, NPZ), else None
    notes : what was guessed, in words
    """

    path: Path
    frame: Any
    labels: np.ndarray | None = None
    notes: tuple[str, ...] = ()

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
    n_features: int | None = None,
    labels: str = "y",
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
    n_features : width of the matrix, for LIBSVM's format
    labels : name of the labels in an NPZ archive
    """
    path = Path(path)
    _check_there(path)
    kind = format or _format_of(path)
    try:
        if kind == "parquet":
            return _read_parquet(path)
        if kind == "npz":
            return _read_npz(path, labels)
        if kind == "libsvm":
            return _read_libsvm(path, n_features)
        separator = "\t" if kind == "tsv" and separator is None else separator
        frame, notes = read_text(path, separator, header, missing)
        return Table(path, frame, None, tuple(notes))
    except MemoryError:
        raise DataError("the table does not fit in memory.", path=path) from None


def _check_there(path: Path) -> None:
    if path.is_dir():
        raise DataError("this is a folder; expected a file.", path=path)
    if not path.exists():
        raise DataError("there is no such file.", path=path)
    if path.is_file() and path.stat().st_size == 0:
        raise DataError("the file is empty; expected a table.", path=path)


def _format_of(path: Path) -> str:
    """By the first bytes, and then by the name."""
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
    return _not_empty(Table(path, frame))


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
    frame = pandas().DataFrame(X.astype(float), columns=names)
    return _not_empty(Table(path, frame, y))


def _given_names(given: Any, count: int) -> list[str]:
    if given is not None and np.shape(given) == (count,):
        names = [str(name) for name in given]
        if len(set(names)) == count:
            return names
    return [f"x{number}" for number in range(1, count + 1)]


def _read_libsvm(path: Path, n_features: int | None) -> Table:
    from sklearn.datasets import load_svmlight_file

    _check_lines(path)
    try:
        X, y = load_svmlight_file(str(path), n_features=n_features)
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
    table = Table(path, X, y)
    if X.shape[0] * X.shape[1] <= DENSE_ENTRIES:
        names = [str(number) for number in range(1, X.shape[1] + 1)]
        table = replace(table, frame=pandas().DataFrame(X.toarray(), columns=names))
    return _not_empty(table)


def _check_lines(path: Path) -> None:
    """Name the first line that is not of the format, before others read on."""
    row = 0
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
            for index in re.findall(r"\s(\d+):", line):
                if len(index) > 9 or int(index) > MOST_FEATURES:
                    raise DataError(
                        f"feature number {index[:20]} is too large; at most "
                        f"{MOST_FEATURES}.",
                        path=path,
                        row=row,
                    )


def _not_empty(table: Table) -> Table:
    n, d = table.frame.shape
    if not n or not d:
        raise DataError(f"the table has {n} rows and {d} columns.", path=table.path)
    return table
