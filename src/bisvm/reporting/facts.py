"""Everything that a report states, collected before the page is written."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import Pipeline

from bisvm.core.types import Array, UserData, UserVector
from bisvm.data.matrices import RowBlocks
from bisvm.estimators.inputs import in_blocks
from bisvm.plots import relevance_data
from bisvm.reporting import pictures
from bisvm.reporting.code import rebuild_lines, relearn_lines
from bisvm.reporting.pictures import Picture
from bisvm.reporting.scores import (
    Reliability,
    losses_of,
    quality_of,
    reliability_of,
    share_of,
)
from bisvm.reporting.summary import describe
from bisvm.reporting.words import (
    answer,
    certificates_of,
    difference_in_words,
    expected_in_words,
    learned_in_words,
)
from bisvm.search.history import Certificate
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


def gather(
    model: BaseEstimator,
    X: UserData,
    y: Array,
    X_test: UserData,
    y_test: Array | None,
    *,
    asked: Mapping[str, str],
    seconds: float | None,
    compare: bool,
    landscape: bool,
    max_seconds: float,
    fit_params: Mapping[str, UserVector],
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Collect what the template states, by the names that it uses.

    entries : the compared methods, the model itself (`own`) last
    not_compared : why there are no other methods, or None
    budget : seconds that the grid search was given
    confusion : counts, labels, and on which rows; or None
    pictures : by name; a text is the reason why there is no picture
    """
    machine = model[-1] if isinstance(model, Pipeline) else model
    rows = _rows(model, machine, X, y, X_test, y_test, fit_params)
    if seconds is None:
        seconds = max((record.seconds for record in machine.history_), default=0.0)
    budget, entries = min(seconds, max_seconds), []
    reason = _why_not(machine, rows) if compare else "compare=False"
    if not reason:
        progress("fitting a default SVC")
        entries.append(default_entry(rows))
        progress(f"grid search for {budget:.1f} s")
        entries.append(grid_entry(rows, seconds=budget))
    progress("cross-validating the learned values")
    own = own_entry(machine, rows, seconds)
    progress("drawing plots")
    counted = _confusion(machine, rows)
    reliable = None if y_test is None else reliability_of(machine, rows.X_test, y_test)
    shares = _relevances(model, machine)
    certificates = certificates_of(machine)
    held_out = getattr(machine, "quality_", None)
    on_test = None if y_test is None else quality_of(machine, rows.X_test, y_test)
    return dict(
        machine=machine,
        answer=answer(held_out, on_test),
        quality=on_test or held_out,
        guessing=held_out is not None and held_out.no_better_than_guessing,
        data=describe(model, machine, X, y, y_test),
        settings=_settings(machine, asked, len(rows.folds), own),
        own=own,
        entries=[*entries, own],
        differences=[difference_in_words(own, other) for other in entries],
        not_compared=reason,
        budget=budget,
        seconds=seconds,
        expected=expected_in_words(machine),
        train=share_of(np.asarray(machine.predict(rows.X) == y)),
        test=None if own.right is None else share_of(own.right),
        losses=None if y_test is None else losses_of(machine, rows.X_test, y_test),
        confusion=counted,
        reliability=reliable,
        learned=learned_in_words(machine),
        relevances=shares,
        pictures={
            **_pictures(machine, shares, counted, reliable),
            **_search_pictures(machine, rows, _rename(model), landscape, fit_params),
        },
        certificates=[(one, _certificate_terms(one)) for one in certificates],
        relearn=relearn_lines(model, list(fit_params)),
        rebuild=rebuild_lines(model, list(fit_params)),
        versions=_versions(),
    )


def _pictures(
    machine: BaseEstimator,
    shares: dict[str, float] | None,
    counted: tuple[Array, list[str], str] | None,
    reliable: Reliability | None,
) -> dict[str, Picture | str]:
    found: dict[str, Picture | str] = {}
    if shares:
        found["relevance"] = pictures.relevance(shares)
    if counted:
        found["confusion"] = pictures.confusion(*counted)
    if reliable:
        found["reliability"] = pictures.reliability(reliable)
    if getattr(machine, "group_names_", None) is not None:
        found["groups"] = pictures.group_weights(machine)
    with suppress(ValueError):  # Most machines have no filters.
        found["filters"], found["responses"] = pictures.filters(machine)
    return found


def _search_pictures(
    machine: BaseEstimator,
    rows: Rows,
    rename: Callable[[str], str],
    landscape: bool,
    fit_params: Mapping[str, UserVector],
) -> dict[str, Picture | str]:
    if not machine.history_:
        return {}
    makers: dict[str, Callable[[], Picture]] = {
        "convergence": partial(pictures.convergence, machine),
        "paths": partial(pictures.paths, machine, rename),
    }
    if landscape:
        makers["landscape"] = partial(
            pictures.landscape, machine, rows.X, rows.y, rename, **fit_params
        )
    return {name: pictures.attempt(make) for name, make in makers.items()}


def _rows(
    model: BaseEstimator,
    machine: BaseEstimator,
    X: UserData,
    y: Array,
    X_test: UserData,
    y_test: Array | None,
    fit_params: Mapping[str, UserVector],
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
        folds_of(machine, own, y, fit_params.get("groups")),
        fit_params.get("sample_weight"),
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


def _settings(
    machine: BaseEstimator, asked: Mapping[str, str], n_folds: int, own: Entry
) -> dict[str, object]:
    kernel = getattr(machine, "kernel", "linear")
    choice = getattr(machine, "kernel_choice_", None)
    tasks = getattr(machine, "multi_class_choice_", None)
    members = getattr(machine, "estimators_", None)
    settings = {
        **asked,
        "estimator": type(machine).__name__,
        "kernel": kernel if isinstance(kernel, str) else _short(repr(kernel)),
        "chosen kernel": None if choice is None else choice.words,
        "reason": None if choice is None else " ".join(choice.reasons),
        "chosen class tasks": None if tasks is None else tasks.words,
        "reason for class tasks": None if tasks is None else tasks.reason,
        "folds": n_folds,
        "criterion": machine.criterion,
        "learned hyperparameters": own.tuned,
        "ensemble": None
        if members is None
        else f"{len(members)} machines, each tuned on its own folds; the mean of their "
        "decision values decides. Hyperparameters and search are those of the first.",
        "duration": f"{own.seconds:.2f} s, {len(machine.history_)} evaluations",
        "report written": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %z"),
    }
    return {name: value for name, value in settings.items() if value is not None}


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 160 else text[:159] + "…"


def _certificate_terms(one: Certificate) -> dict[str, str]:
    terms = {
        "residual of the final machine": f"{one.final_residual:.1e}",
        "residual of the machines on the folds": f"{one.lower_residual:.1e}",
        "gradient of the validation loss": f"{one.upper_gradient:.1e} of its value",
        "error of the loss by the residuals": f"{one.criterion_error:.1e} of its value",
    }
    more = len(one.at_bounds) - 5
    bounds = [*one.at_bounds[:5], *([f"and {more} more"] if more > 0 else [])]
    return {**terms, "at bounds": "; ".join(bounds)} if bounds else terms


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
