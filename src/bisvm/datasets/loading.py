"""`load(name)`: scikit-learn's bundled sets, then archives, then OpenML."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias, overload

import numpy as np

from bisvm.datasets.catalogue import ALIASES, BUNDLED, NAMES, OPENML, OpenML

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Array: TypeAlias = np.ndarray
Matrix: TypeAlias = "np.ndarray | csr_matrix"
VARIABLE = "BISVM_DATA"


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A data set, as it was published: not scaled, not imputed, not shuffled.

    Attributes
    ----------
    name, source : str
        Name of the data set, and where it was loaded from.
    X, y : array or CSR matrix of shape (n_samples, ...), array of shape (n_samples,)
        All samples, or those of the official training part if there is one.
    X_test, y_test : the same, or None
        The official test part.
    feature_names, target_names : list of str, or None
        Names of the features, and of the classes in the order of `np.unique(y)`.
    splits : list of (train, test) pairs of row numbers, or None
        Published splits of X; they may be passed as `cv=`.
    groups : array of shape (n_samples,), or None
        Group of each sample, such as the subject of a recording.
    details : mapping of str to array
        Other arrays stored with the data set.
    """

    name: str
    source: str
    X: Matrix
    y: Array
    X_test: Matrix | None = None
    y_test: Array | None = None
    feature_names: list[str] | None = None
    target_names: list[str] | None = None
    splits: list[tuple[Array, Array]] | None = None
    groups: Array | None = None
    details: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    def __repr__(self) -> str:
        sizes = [" x ".join(map(str, self.X.shape))]
        sizes.append(f"{len(np.unique(self.y))} classes")
        if self.X_test is not None:
            sizes.append(f"{self.X_test.shape[0]} test")
        if self.splits is not None:
            sizes.append(f"{len(self.splits)} splits")
        return f"Dataset({self.name!r}: {', '.join(sizes)}; from {self.source})"


@overload
def load(name: str, *, return_X_y: Literal[False] = False) -> Dataset: ...
@overload
def load(name: str, *, return_X_y: Literal[True]) -> tuple[Matrix, Array]: ...
def load(name: str, *, return_X_y: bool = False) -> Dataset | tuple[Matrix, Array]:
    """Load a data set by name.

    `load` looks for it among the sets bundled with scikit-learn, then for an archive
    `<name>.npz` in the directory named by the environment variable `BISVM_DATA`, then
    on OpenML (which needs the network once; scikit-learn keeps a copy). Data are
    returned as they were published: standardize them yourself.

    Parameters
    ----------
    name : str
        One of the names in `available()`, or a usual alias such as "heart".
    return_X_y : bool, default=False
        Return only `(X, y)`.

    Returns
    -------
    Dataset, or (X, y) if `return_X_y`

    Raises
    ------
    ValueError
        If there is no data set of this name.
    FileNotFoundError
        If the name is known, but the data are not available.

    Examples
    --------
    >>> from bisvm.datasets import load
    >>> load("wine")
    Dataset('wine': 178 x 13, 3 classes; from scikit-learn)
    """
    name = _canonical(name)
    if name in BUNDLED:
        data = _load_bundled(name)
    elif (path := _archives().get(name)) is not None:
        data = _read_archive(path)
    elif name in OPENML:
        data = _fetch_openml(name, OPENML[name])
    else:
        raise FileNotFoundError(_out_of_reach(name))
    return (data.X, data.y) if return_X_y else data


def available() -> dict[str, str]:
    """List the names that `load` accepts, without aliases, and their sources.

    Nothing is read or fetched.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> available()["iris"]
    'scikit-learn'
    """
    archives = _archives()

    def origin(name: str) -> str:
        if name in BUNDLED:
            return "scikit-learn"
        if name in archives:
            return str(archives[name])
        if name in OPENML:
            return f"OpenML {OPENML[name].data_id} (network)"
        return f"out of reach (set {VARIABLE})"

    return {name: origin(name) for name in sorted({*NAMES, *archives})}


def _key(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _canonical(name: str) -> str:
    """The name of a data set, from an alias or another spelling."""
    names = sorted({*NAMES, *_archives()})
    if name in names:
        return name
    keys = {_key(alias): target for alias, target in ALIASES.items()}
    keys.update({_key(known): known for known in names})
    if _key(name) in keys:
        return keys[_key(name)]
    near = get_close_matches(_key(name), keys, n=1)
    hint = f" Did you mean {keys[near[0]]!r}?" if near else ""
    raise ValueError(
        f"Unknown data set {name!r}.{hint} Valid names: {', '.join(names)}."
    )


def _out_of_reach(name: str, failure: Exception | None = None) -> str:
    directory = os.environ.get(VARIABLE)
    if not directory:
        state = "which is not set"
    elif not Path(directory).expanduser().is_dir():
        state = f"{directory!r}, which is not a directory"
    else:
        state = f"{directory!r}, where it is not"
    looked = f"looked for {name}.npz in the directory {VARIABLE} ({state})"
    remedy = f"set {VARIABLE} to a directory that holds {name}.npz"
    if name in OPENML:
        looked += f", and for data set {OPENML[name].data_id} on OpenML ({failure})"
        remedy += ", or connect to the network"
    return f"Data set {name!r} is out of reach: {looked}. To load it, {remedy}."


def _load_bundled(name: str) -> Dataset:
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, f"load_{name}")()
    return Dataset(
        name=name,
        source="scikit-learn",
        X=bunch.data,
        y=bunch.target,
        feature_names=_strings(bunch.feature_names),
        target_names=_strings(bunch.target_names),
    )


def _archives() -> dict[str, Path]:
    """The archives in the directory `BISVM_DATA`, by name."""
    directory = os.environ.get(VARIABLE)
    if not directory:
        return {}
    return {path.stem: path for path in Path(directory).expanduser().glob("*.npz")}


def _read_archive(path: Path) -> Dataset:
    """Read arrays X, y (or a CSR matrix in parts, and y) and what comes with them."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive)
    held = ", ".join(arrays)
    X = _pop_matrix(arrays, "")
    y = arrays.pop("y", None)
    if X is None or y is None:
        raise ValueError(
            f"{path} is not a data set: it holds {held or 'nothing'}; expected "
            "y, and either X or a CSR matrix as data, indices, indptr, shape."
        )
    return Dataset(
        name=path.stem,
        source=str(path),
        X=X,
        y=y,
        X_test=_pop_matrix(arrays, "test"),
        y_test=arrays.pop("y_test", None),
        feature_names=_strings(arrays.pop("feature_names", None)),
        target_names=_strings(arrays.pop("class_names", None)),
        splits=_pop_splits(arrays),
        groups=arrays.pop("subject", None),
        details=arrays,
    )


def _pop_matrix(arrays: dict[str, Array], part: str) -> Matrix | None:
    """An array, or a CSR matrix stored as data, indices, indptr and shape."""
    dense = f"X_{part}" if part else "X"
    if dense in arrays:
        return arrays.pop(dense)
    prefix = f"{part}_" if part else ""
    fields = [prefix + field for field in ("data", "indices", "indptr", "shape")]
    if not all(field in arrays for field in fields):
        return None
    from scipy.sparse import csr_matrix

    data, indices, indptr, shape = (arrays.pop(field) for field in fields)
    return csr_matrix((data, indices, indptr), shape=tuple(shape))


def _pop_splits(
    arrays: dict[str, Array],
) -> list[tuple[Array, Array]] | None:
    """Published splits: rows of `train_idx` and `test_idx`, or the numbers `fold`."""
    if "train_idx" in arrays and "test_idx" in arrays:
        train, test = arrays.pop("train_idx"), arrays.pop("test_idx")
        return list(zip(train.astype(np.intp), test.astype(np.intp), strict=True))
    if "fold" in arrays:
        fold = arrays.pop("fold")
        return [
            (np.flatnonzero(fold != k), np.flatnonzero(fold == k))
            for k in np.unique(fold)
        ]
    return None


def _fetch_openml(name: str, entry: OpenML) -> Dataset:
    from sklearn.datasets import fetch_openml

    # The pandas parser is fast, but leaves nominal features as strings.
    fast = find_spec("pandas") is not None and not entry.nominal
    try:
        bunch = fetch_openml(
            data_id=entry.data_id,
            as_frame=False,
            parser="auto" if fast else "liac-arff",
            n_retries=1,
        )
    except (OSError, HTTPException) as failure:
        raise FileNotFoundError(_out_of_reach(name, failure)) from failure

    names = _strings(bunch.feature_names)
    dropped = {column.lower() for column in entry.drop}
    keep = [j for j, column in enumerate(names or []) if column.lower() not in dropped]
    X = bunch.data[:, keep] if entry.drop else bunch.data
    if not entry.sparse and hasattr(X, "toarray"):
        X = X.toarray()
    if entry.image_shape:
        X = X.reshape(-1, *entry.image_shape).astype(np.uint8)
    else:
        X = X.astype(np.float64)
    y = _labels(bunch.target)
    n_train, n_test = entry.parts or (X.shape[0], 0)
    test = slice(n_train, n_train + n_test)
    return Dataset(
        name=name,
        source=f"OpenML {entry.data_id}",
        X=X[:n_train],
        y=y[:n_train],
        X_test=X[test] if n_test else None,
        y_test=y[test] if n_test else None,
        feature_names=[names[j] for j in keep] if names else None,
    )


def _labels(y: Array) -> Array:
    """Integers if the labels are whole numbers, otherwise floats or strings."""
    try:
        numbers = np.asarray(y).astype(np.float64)
        whole = numbers.astype(np.int64)
    except ValueError:
        return np.asarray(y).astype(str)
    return whole if np.array_equal(whole, numbers) else numbers


def _strings(names: Iterable[object] | None) -> list[str] | None:
    return None if names is None else [str(name) for name in names]
