"""All that a report tells, gathered before a word of it is written."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from bisvm.estimators.data import in_pieces
from bisvm.plots.confusion import ConfusionData, counted
from bisvm.reporting import pictures
from bisvm.reporting.code import rebuild_lines, relearn_lines
from bisvm.reporting.comparison import (
    Entry,
    Rows,
    default_entry,
    folds_of,
    grid_entry,
    own_entry,
    predicted_on_folds,
    why_not,
)
from bisvm.reporting.pictures import Picture, attempt
from bisvm.reporting.scores import Losses, Share, losses_of, share_of
from bisvm.reporting.summary import DataSummary, describe
from bisvm.reporting.words import hyperparameters_of
from bisvm.tables import ColumnTypes
from bisvm.tables.preparing import relevances_by_column

PACKAGES = ("bisvm", "numpy", "scipy", "scikit-learn", "numba", "pandas", "matplotlib")


@dataclass(frozen=True)
class Asked:
    """What the caller wants, beside model and data.

    words : what was asked, by name, as the report is to repeat it
    data_lines : Python that makes X and y
    """

    title: str
    words: Mapping[str, Any]
    seconds: float | None
    compare: bool
    landscape: bool
    max_seconds: float
    data_lines: Sequence[str]
    fit: Mapping[str, Any]
    progress: Callable[[str], None]


@dataclass(frozen=True)
class Facts:
    """What is told. A picture that could not be drawn is the reason why.

    folds : number of splits
    entries : the comparison, the machine itself last
    given : seconds that the grid was given
    confusion : counts, and where they were taken
    """

    asked: Asked
    model: Any
    machine: Any
    data: DataSummary
    folds: int
    hyperparameters: dict[str, Any]
    relevances: dict[str, float] | None
    entries: list[Entry]
    not_compared: str | None
    given: float
    seconds: float
    train: Share
    test: Share | None
    losses: Losses | None
    confusion: tuple[ConfusionData, str] | None
    pictures: dict[str, Picture | str]
    relearn: list[str]
    rebuild: list[str] | None
    versions: dict[str, str] = field(default_factory=dict)
    written: str = ""

    @property
    def own(self) -> Entry:
        return self.entries[-1]

    @property
    def tuned(self) -> int:
        return len(getattr(self.machine, "coordinates_", ()))


def gather(
    model: Any, X: Any, y: np.ndarray, X_test: Any, y_test: Any, asked: Asked
) -> Facts:
    machine = model[-1] if isinstance(model, Pipeline) else model
    data = describe(model, machine, X, y, y_test)
    rows = _rows(model, machine, X, y, X_test, y_test, asked)
    seconds = asked.seconds
    if seconds is None:
        seconds = max((record.seconds for record in machine.history_), default=0.0)
    entries, reason, given = _compared(machine, rows, seconds, asked)
    right = entries[-1].right
    asked.progress("pictures")
    confusion = _confusion(machine, rows, y_test)
    shares = _relevances(model, machine)
    return Facts(
        asked=asked,
        model=model,
        machine=machine,
        data=data,
        folds=len(rows.folds),
        hyperparameters=hyperparameters_of(machine),
        relevances=shares,
        entries=entries,
        not_compared=reason,
        given=given,
        seconds=seconds,
        train=share_of(np.asarray(machine.predict(rows.X) == y)),
        test=None if right is None else share_of(right),
        losses=None if y_test is None else losses_of(machine, rows.X_test, y_test),
        confusion=confusion,
        pictures=_pictures(machine, rows, shares, confusion, asked, _names_of(model)),
        relearn=relearn_lines(model, list(asked.fit)),
        rebuild=rebuild_lines(model, list(asked.fit)),
        versions=_versions(),
        written=_now(),
    )


def _rows(
    model: Any, machine: Any, X: Any, y: Any, X_test: Any, y_test: Any, asked: Asked
) -> Rows:
    """Inputs as the machine sees them, behind the pipeline, one row a sample."""

    def inputs(X: Any) -> Any:
        if isinstance(model, Pipeline) and len(model) > 1:
            X = model[:-1].transform(X)
        shape = np.shape(X) if isinstance(X, np.ndarray) else ()
        return X.reshape(shape[0], -1) if len(shape) > 2 else in_pieces(X)

    own = inputs(X)
    return Rows(
        own,
        y,
        None if y_test is None else inputs(X_test),
        y_test,
        folds_of(machine, own, y, asked.fit.get("groups")),
        asked.fit.get("sample_weight"),
    )


def _compared(
    machine: Any, rows: Rows, seconds: float, asked: Asked
) -> tuple[list[Entry], str | None, float]:
    """All methods, the machine last; why there are no others; the grid's seconds."""
    reason = None if asked.compare else "it was not asked for"
    reason = reason or why_not(machine, rows.X, len(rows.y))
    given = min(seconds, asked.max_seconds)
    entries = []
    if reason is None:
        asked.progress("an SVC as it comes")
        entries.append(default_entry(rows))
        asked.progress(f"a grid search of {given:.1f} s")
        entries.append(grid_entry(rows, given))
    asked.progress("the learned values on the folds")
    tuned = len(getattr(machine, "coordinates_", ()))
    return [*entries, own_entry(machine, rows, seconds, tuned)], reason, given


def _confusion(
    machine: Any, rows: Rows, y_test: Any
) -> tuple[ConfusionData, str] | None:
    """On held-out rows, or else on the folds."""
    if y_test is not None:
        known = np.isin(y_test, machine.classes_)
        predicted = np.asarray(machine.predict(rows.X_test))[known]
        return counted(y_test[known], predicted, machine.classes_), "on held-out rows"
    by_others = predicted_on_folds(machine, rows)
    if by_others is None:
        return None
    where = "each row predicted by a machine that was not trained on it"
    return counted(rows.y, by_others, machine.classes_), where


def _relevances(model: Any, machine: Any) -> dict[str, float] | None:
    if isinstance(model, Pipeline) and isinstance(model[0], ColumnTypes):
        return relevances_by_column(model)
    return pictures.shares_of(model, machine)


def _names_of(model: Any) -> Callable[[str], str]:
    """Without the name of the step that a column of a table went through."""
    if not (isinstance(model, Pipeline) and isinstance(model[0], ColumnTypes)):
        return str
    steps = re.compile(r"\[(?:numbers|categories)__")
    return lambda name: steps.sub("[", name, count=1)


def _pictures(
    machine: Any,
    rows: Rows,
    shares: dict[str, float] | None,
    confusion: tuple[ConfusionData, str] | None,
    asked: Asked,
    called: Callable[[str], str],
) -> dict[str, Picture | str]:
    """Every picture that this machine has, by name.

    called : what hyperparameters are called on the page
    """
    out: dict[str, Picture | str] = {}
    if shares:
        out["relevance"] = pictures.relevance(shares)
    if getattr(machine, "group_names_", None) is not None:
        out["groups"] = attempt(lambda: pictures.group_weights(machine))
    if machine.history_:
        out["convergence"] = attempt(lambda: pictures.convergence(machine))
        out["paths"] = attempt(lambda: pictures.paths(machine, called))
        if asked.landscape:
            out["landscape"] = attempt(
                lambda: pictures.landscape(machine, rows.X, rows.y, called, **asked.fit)
            )
    try:
        out["filters"], out["responses"] = pictures.filters(machine)
    except ValueError:
        pass  # A machine without filters.
    if confusion is not None:
        out["confusion"] = pictures.confusion(*confusion)
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


def _now() -> str:
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %z")
