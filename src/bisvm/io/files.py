"""Models in files that run no code when they are read.

The format is that of skops: a zip archive of arrays and of a tree of JSON that names
the types. Only known types are created: scikit-learn's estimators, NumPy's and SciPy's
arrays, and the parts and estimators of this library. One more entry, `bisvm.json`, has
the version that wrote the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import TypeVar
from zipfile import BadZipFile, ZipFile

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bisvm import __version__
from bisvm.core.files import whole_file
from bisvm.core.optional import optional_module
from bisvm.core.types import Matrix
from bisvm.io.limits import check_sizes

# Modules and packages of the classes in a fitted model. Their constructors only store
# their arguments: a file may call them.
TRUSTED_HOMES = (
    "criteria",
    "estimators",
    "images",
    "kernels",
    "losses",
    "machines.landmarks",
    "machines.regularization",
    "optimizers",
    "published.alternating",
    "published.bilinear",
    "published.bundle",
    "published.convolutional_linear",
    "published.fold_newton",
    "published.gradient",
    "published.ipopt",
    "published.pegasos",
    "published.rprop",
    "published.single_loop",
    "published.slp_filter",
    "published.swapping",
    "search.calibration",
    "search.history",
    "search.kernel_choice",
    "search.reasons",
    "search.task_choice",
    "selection",
    "solvers",
    "tables",
    "transforms",
)
# Classes of others that skops does not know, by the module they are in.
TRUSTED_ELSEWHERE = {
    "numpy": ("dtype",),
    "scipy.optimize._optimize": ("OptimizeResult",),
    "scipy.sparse._csr": ("csr_array", "csr_matrix"),
    "sklearn.compose._column_transformer": ("make_column_selector",),
    "sklearn.model_selection._split": (
        "GroupKFold",
        "GroupShuffleSplit",
        "KFold",
        "LeaveOneGroupOut",
        "LeaveOneOut",
        "LeavePGroupsOut",
        "LeavePOut",
        "PredefinedSplit",
        "RepeatedKFold",
        "RepeatedStratifiedKFold",
        "ShuffleSplit",
        "StratifiedGroupKFold",
        "StratifiedKFold",
        "StratifiedShuffleSplit",
        "TimeSeriesSplit",
    ),
}
# The entry that skops does not write, and the version of this layout.
HEADER = "bisvm.json"
LAYOUT = 2

Result = TypeVar("Result")


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model, or a pipeline with one, to a file; `bisvm.load` reads it.

    All numbers come back bit for bit. An existing file, or the target of a symbolic
    link, is replaced once the new one is complete. A new file gets the permissions of
    the umask.

    Parameters
    ----------
    model : fitted estimator
    path : path of the file, as a rule `something.skops`

    Returns
    -------
    path : Path

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import bisvm
    >>> X, y = load_iris(return_X_y=True)
    >>> model = bisvm.BilevelSVC(random_state=0).fit(X, y)
    >>> path = bisvm.save(model, "iris.skops")                      # doctest: +SKIP
    >>> bisvm.load(path).predict(X)                                 # doctest: +SKIP
    """
    io, path = _skops(), _path(path)
    check_is_fitted(model)
    _check_savable(model)
    header = {"bisvm": __version__, "layout": LAYOUT, "model": type(model).__name__}
    folder = path.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {str(folder)!r} to write to.")
    archive = BytesIO(io.dumps(model))
    with ZipFile(archive, "a") as entries:
        entries.writestr(HEADER, json.dumps(header))
    with whole_file(path) as file:
        file.write(archive.getbuffer())
    return path


def load(
    path: str | os.PathLike[str], trusted: Iterable[str | type] = ()
) -> BaseEstimator:
    """Read a model that `bisvm.save` has written, without running code of the file.

    Parameters
    ----------
    path : path of the file
    trusted : names of types, or types, optional
        Further types that may be created, such as your own kernel,
        "my_kernels.Stump"; their modules are imported.

    Returns
    -------
    model : the fitted estimator or pipeline

    Raises
    ------
    ValueError
        If the file is not a model, is damaged, comes from a later version, asks for far
        more memory than its size, or has unknown types, which are named.
    """
    io, path = _skops(), _path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    asked = {_type_name(one) for one in trusted}
    with _opened(path) as archive:
        _guarded(path, lambda: check_sizes(archive, path.stat().st_size))
        _check_header(path, archive)
    found = _guarded(path, lambda: io.get_untrusted_types(file=path))
    unknown = [name for name in found if name not in asked and not _is_ours(name)]
    if unknown:
        raise ValueError(
            f"{str(path)!r} has types that bisvm does not know: {', '.join(unknown)}. "
            "Making them would run their code. If you know where the file comes from, "
            f"and have their modules, pass trusted={unknown!r}."
        )
    model = _guarded(path, lambda: io.load(path, trusted=found))
    _guarded(path, lambda: _check_machines(model))
    return model


def _skops() -> ModuleType:
    return optional_module("skops.io", "Model files", "skops")


def _guarded(path: Path, read: Callable[[], Result]) -> Result:
    """Call `read`; any error becomes a ValueError about the file."""
    try:
        return read()
    except MemoryError:
        raise ValueError(
            f"{str(path)!r} is damaged, or larger than memory: it asks for more than "
            "there is."
        ) from None
    except Exception as error:
        said = str(error).strip().splitlines() or [""]
        raise ValueError(
            f"{str(path)!r} is not a model file, or is damaged: {type(error).__name__}"
            f"{': ' if said[0] else ''}{said[0][:200]}. Save the model again."
        ) from None


def _path(given: object) -> Path:
    if isinstance(given, (str, os.PathLike)) and os.fspath(given):
        return Path(given)
    raise TypeError(
        f"path must be the name of a file, such as 'model.skops'; got {given!r}."
    )


def _opened(path: Path) -> ZipFile:
    """Open an archive, and refuse what is none."""
    try:
        return ZipFile(path)
    except (BadZipFile, ValueError, OSError, EOFError):
        raise _no_model(path) from None
    except Exception as error:
        raise _damaged(path, error) from None


def _no_model(path: Path) -> ValueError:
    return ValueError(
        f"{str(path)!r} is not a model file: expected one that bisvm.save, or "
        "`bisvm tune --save`, has written."
    )


def _damaged(path: Path, error: Exception) -> ValueError:
    return ValueError(
        f"{str(path)!r} is damaged: {type(error).__name__}. Save the model again."
    )


def _check_header(path: Path, archive: ZipFile) -> None:
    """Refuse what a later version has written."""
    try:
        raw = archive.read(HEADER) if HEADER in archive.namelist() else b"{}"
        header = json.loads(raw)
        layout, version = int(header.get("layout", LAYOUT)), str(header.get("bisvm"))
    except (BadZipFile, ValueError, TypeError, AttributeError, OSError, EOFError):
        raise _no_model(path) from None
    except Exception as error:
        raise _damaged(path, error) from None
    if layout > LAYOUT:
        raise ValueError(
            f"{str(path)!r} was written by bisvm {version}, and this is {__version__}, "
            "which does not know its layout: pip install --upgrade bisvm."
        )


def _is_ours(name: str) -> bool:
    """Whether a type may be created: a class that a trusted module defines."""
    module_name, _, class_name = name.rpartition(".")
    if class_name in TRUSTED_ELSEWHERE.get(module_name, ()):
        return True
    package, _, inside = module_name.partition(".")
    homes = [home for home in TRUSTED_HOMES if f"{inside}.".startswith(f"{home}.")]
    if package != "bisvm" or not homes:
        return False
    try:
        found = getattr(import_module(module_name), class_name, None)
    except ImportError:
        return False
    return (
        isinstance(found, type)
        and found.__module__ == module_name
        and (issubclass(found, BaseEstimator) or is_dataclass(found))
    )


def _type_name(given: object) -> str:
    if isinstance(given, type):
        return f"{given.__module__}.{given.__qualname__}"
    if isinstance(given, str):
        return given
    raise TypeError(
        f"trusted lists types, or their names such as 'my_kernels.Stump'; got {given!r}"
        "."
    )


def _check_savable(model: BaseEstimator) -> None:
    from bisvm.hinge import IncrementalSVC

    for part in _steps(model):
        if isinstance(part, IncrementalSVC):
            raise TypeError(
                "IncrementalSVC changes with every point, and a file would not "
                "restore its matrices safely. It is exact: save X and y, and fit again."
            )
        if getattr(part, "callback", None) is not None:
            raise TypeError(
                f"{type(part).__name__} has a callback, which is code, and a model "
                "file has none: model.set_params(callback=None) removes it."
            )
        if getattr(part, "_skl_callbacks", None):
            raise TypeError(
                f"{type(part).__name__} has callbacks, which are code, and a model "
                "file has none: model.set_callbacks() removes them."
            )


def _steps(model: BaseEstimator) -> list[BaseEstimator]:
    """The model, and the steps of a pipeline, at any depth."""
    steps = getattr(model, "steps", None)
    if not isinstance(steps, (list, tuple)):
        return [model]
    return [model, *(part for _, step in steps for part in _steps(step))]


def _machines(model: BaseEstimator) -> list[BaseEstimator]:
    """The estimators of this library that a model is made of."""
    try:
        parts = _steps(model)
    except (TypeError, ValueError, RecursionError):
        raise ValueError("The file's pipeline has no steps: it is damaged.") from None
    inner = [getattr(part, "machine_", None) for part in parts]
    machines = [part for part in (*parts, *inner) if hasattr(part, "multi_class_")]
    return [one for machine in machines for one in _members(machine)]


def _members(machine: BaseEstimator) -> list[BaseEstimator]:
    """The machines that predict: those of an ensemble, and the mean of linear ones."""
    members = getattr(machine, "estimators_", None)
    if members is None:
        return [machine]
    known = isinstance(members, list) and len(members) > 0
    if not known or any(type(one) is not type(machine) for one in members):
        raise ValueError("estimators_ is not a list of machines")
    if any(getattr(one, "estimators_", None) is not None for one in members):
        raise ValueError("a member of estimators_ is an ensemble itself")
    return [machine, *members] if machine._linear else members


def _check_machines(model: BaseEstimator) -> None:
    for part in _machines(model):
        _check_machine(part)


def _check_machine(model: BaseEstimator) -> None:
    """Check the shapes of arrays: compiled loops do not check their indices."""
    n, k = int(model.n_features_in_), len(model.intercept_)
    if getattr(model, "_linear", True):
        shapes = {"coef_": (k, n)}
    else:
        count = len(model.support_)
        width = 1 if model._predicts_from_gram else n
        shapes = {"support_vectors_": (count, width), "dual_coef_": (k, count)}
    for name, expected in shapes.items():
        given = np.shape(getattr(model, name))
        if given != expected:
            raise ValueError(f"{name} has shape {given}, expected {expected}")
    _check_sparse(getattr(model, "support_vectors_", None))
    _check_folds(model)
    if np.ndim(model.classes_) != 1 or len(model.classes_) < 2:
        raise ValueError("classes_ is not a list of two or more classes")


def _check_folds(model: BaseEstimator) -> None:
    """Check the machines of the splits, by which sets are predicted."""
    folds = getattr(model, "_folds", None)
    if folds is None:
        return
    machines, held_out = folds.machines, folds.held_out
    m, q = np.shape(machines.coef)
    wrong = q != len(machines.intercept) or q != folds.n_splits * len(model.intercept_)
    if machines.vectors is not None:
        wrong |= np.shape(machines.vectors) != (m, int(model.n_features_in_))
    elif machines.support is not None:
        wrong |= np.shape(machines.support) != (m,)
    else:
        wrong |= m != int(model.n_features_in_)
    lengths = {len(one) for one in vars(held_out).values()}
    if wrong or len(lengths) != 1:
        raise ValueError("the machines of the splits do not fit together")
    _check_sparse(machines.coef)
    _check_sparse(machines.vectors)


def _check_sparse(matrix: Matrix | None) -> None:
    if isinstance(matrix, (sparse.csr_array, sparse.csr_matrix)):
        matrix.check_format(full_check=True)
