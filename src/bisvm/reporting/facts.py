"""Everything that a report states, collected before the page is written."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import Pipeline

from bisvm.core.types import Array, ArrayLike, UserData, UserVector
from bisvm.data.matrices import RowBlocks
from bisvm.estimators.data import in_blocks
from bisvm.plots import relevance_data
from bisvm.reporting import pictures
from bisvm.reporting.code import rebuild_lines, relearn_lines
from bisvm.reporting.pictures import Picture, attempt
from bisvm.reporting.scores import Losses, Share, losses_of, share_of
from bisvm.reporting.summary import DataSummary, describe
from bisvm.reporting.words import hyperparameters_of
from bisvm.selection.comparison import (
    Entry,
    Rows,
    default_entry,
    folds_of,
    grid_entry,
    own_entry,
    predicted_on_folds,
)
from bisvm.tables import ColumnTypes
from bisvm.tables.preparing import relevances_by_column

PACKAGES = ("bisvm", "numpy", "scipy", "scikit-learn", "numba", "pandas", "matplotlib")
# With more rows a single SVC takes too long for a report.
MOST_ROWS = 10_000


@dataclass(frozen=True)
class Request:
    """The arguments of `report`, beside model and data."""

    title: str
    settings: Mapping[str, str]
    seconds: float | None
    compare: bool
    landscape: bool
    max_seconds: float
    data_lines: Sequence[str]
    fit_params: Mapping[str, UserVector]
    progress: Callable[[str], None]


@dataclass(frozen=True)
class Facts:
    """What the report states.

    entries : the compared methods, the model itself last
    not_compared : why there are no other methods, or None
    budget : seconds that the grid search was given
    seconds : time of the tuning
    confusion : counts, labels, and on which rows; or None
    pictures : by name; a text is the reason why there is no picture
    """

    request: Request
    machine: BaseEstimator
    data: DataSummary
    n_folds: int
    hyperparameters: dict[str, ArrayLike]
    relevances: dict[str, float] | None
    entries: list[Entry]
    not_compared: str | None
    budget: float
    seconds: float
    train: Share
    test: Share | None
    losses: Losses | None
    confusion: tuple[Array, list[str], str] | None
    pictures: dict[str, Picture | str]
    relearn: list[str]
    rebuild: list[str] | None
    versions: dict[str, str]
    written: str

    @property
    def own(self) -> Entry:
        return self.entries[-1]


def gather(
    model: BaseEstimator,
    X: UserData,
    y: Array,
    X_test: UserData,
    y_test: Array | None,
    request: Request,
) -> Facts:
    machine = model[-1] if isinstance(model, Pipeline) else model
    rows = _rows(model, machine, X, y, X_test, y_test, request)
    seconds = request.seconds
    if seconds is None:
        seconds = max((record.seconds for record in machine.history_), default=0.0)
    reason = None if request.compare else "compare=False"
    reason = reason or _why_not(machine, rows)
    budget = min(seconds, request.max_seconds)
    entries = [] if reason else _other_methods(rows, budget, request)
    request.progress("cross-validating the learned values")
    own = own_entry(machine, rows, seconds)
    request.progress("drawing plots")
    counted = _confusion(machine, rows)
    shares = _relevances(model, machine)
    names = list(request.fit_params)
    return Facts(
        request=request,
        machine=machine,
        data=describe(model, machine, X, y, y_test),
        n_folds=len(rows.folds),
        hyperparameters=hyperparameters_of(machine),
        relevances=shares,
        entries=[*entries, own],
        not_compared=reason,
        budget=budget,
        seconds=seconds,
        train=share_of(np.asarray(machine.predict(rows.X) == y)),
        test=None if own.right is None else share_of(own.right),
        losses=None if y_test is None else losses_of(machine, rows.X_test, y_test),
        confusion=counted,
        pictures={
            **_search_pictures(machine, rows, request, _rename(model)),
            **({"relevance": pictures.relevance(shares)} if shares else {}),
            **({"confusion": pictures.confusion(*counted)} if counted else {}),
            **_other_pictures(machine),
        },
        relearn=relearn_lines(model, names),
        rebuild=rebuild_lines(model, names),
        versions=_versions(),
        written=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %z"),
    )


def _rows(
    model: BaseEstimator,
    machine: BaseEstimator,
    X: UserData,
    y: Array,
    X_test: UserData,
    y_test: Array | None,
    request: Request,
) -> Rows:
    """Inputs as the machine sees them, after the pipeline, one row for each sample."""

    def inputs(X: UserData) -> UserData:
        if isinstance(model, Pipeline) and len(model) > 1:
            X = model[:-1].transform(X)
        shape = np.shape(X) if isinstance(X, np.ndarray) else ()
        return X.reshape(shape[0], -1) if len(shape) > 2 else in_blocks(X)

    own = inputs(X)
    return Rows(
        own,
        y,
        None if y_test is None else inputs(X_test),
        y_test,
        folds_of(machine, own, y, request.fit_params.get("groups")),
        request.fit_params.get("sample_weight"),
    )


def _why_not(machine: BaseEstimator, rows: Rows) -> str | None:
    """Why no other methods can be tried, or None."""
    if getattr(machine, "_pairwise", False):
        return "the kernel is precomputed"
    if isinstance(rows.X, RowBlocks):
        return "the rows are not in memory"
    if len(rows.y) > MOST_ROWS:
        return f"an SVC would take too long on {len(rows.y):,} rows"
    return None


def _other_methods(rows: Rows, budget: float, request: Request) -> list[Entry]:
    request.progress("fitting a default SVC")
    default = default_entry(rows)
    request.progress(f"grid search for {budget:.1f} s")
    return [default, grid_entry(rows, seconds=budget)]


def _confusion(
    machine: BaseEstimator, rows: Rows
) -> tuple[Array, list[str], str] | None:
    """Counts on held-out rows, or else on the folds."""
    labels = [str(label) for label in machine.classes_]
    y, where = rows.y_test, "on held-out rows"
    predicted: Array | None
    if y is not None:
        known = np.isin(y, machine.classes_)
        y, predicted = y[known], machine.predict(rows.X_test)[known]
    else:
        y, predicted = rows.y, predicted_on_folds(machine, rows)
        where = "on the folds, each row predicted by a machine trained without it"
    if predicted is None:
        return None
    return confusion_matrix(y, predicted, labels=machine.classes_), labels, where


def _relevances(
    model: BaseEstimator, machine: BaseEstimator
) -> dict[str, float] | None:
    """Relevances by column, the largest first; inputs of one name are added up."""
    if isinstance(model, Pipeline) and isinstance(model[0], ColumnTypes):
        return relevances_by_column(model)
    if getattr(machine, "relevance_", None) is None:
        return None
    data = relevance_data(model)
    shares: dict[str, float] = {}
    for name, value in zip(data.names, data.values, strict=True):
        shares[name] = shares.get(name, 0.0) + value
    return dict(sorted(shares.items(), key=lambda pair: -pair[1]))


def _rename(model: BaseEstimator) -> Callable[[str], str]:
    """Remove the names of the pipeline's steps from names of hyperparameters."""
    if not (isinstance(model, Pipeline) and isinstance(model[0], ColumnTypes)):
        return str
    steps = re.compile(r"\[(?:numbers|categories)__")
    return lambda name: steps.sub("[", name, count=1)


def _search_pictures(
    machine: BaseEstimator, rows: Rows, request: Request, rename: Callable[[str], str]
) -> dict[str, Picture | str]:
    if not machine.history_:
        return {}
    out = {
        "convergence": attempt(lambda: pictures.convergence(machine)),
        "paths": attempt(lambda: pictures.paths(machine, rename)),
    }
    if request.landscape:
        out["landscape"] = attempt(
            lambda: pictures.landscape(
                machine, rows.X, rows.y, rename, **request.fit_params
            )
        )
    return out


def _other_pictures(machine: BaseEstimator) -> dict[str, Picture | str]:
    out: dict[str, Picture | str] = {}
    if getattr(machine, "group_names_", None) is not None:
        out["groups"] = attempt(lambda: pictures.group_weights(machine))
    try:
        out["filters"], out["responses"] = pictures.filters(machine)
    except ValueError:
        pass  # Most machines have no filters.
    return out


def _versions() -> dict[str, str]:
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["processors"] = str(os.cpu_count())
    return found
