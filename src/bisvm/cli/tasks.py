"""What commands share: the data, the pipeline and the scores."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from bisvm.cli.kinds import TargetKind, kind_of
from bisvm.cli.output import say
from bisvm.core.types import Array, UserData
from bisvm.estimators.importance import Importance
from bisvm.search.history import Progress
from bisvm.tables import (
    ColumnTypes,
    ColumnWarning,
    DataError,
    Table,
    TableWarning,
    check_columns,
    check_table,
    hold_out,
    pipeline_for,
    read_table,
    split_target,
    take_groups,
)
from bisvm.tables.dates import TIME
from bisvm.tables.errors import listed

if TYPE_CHECKING:
    from bisvm.tables import TableFormat


@dataclass(frozen=True)
class Task:
    """Training rows, held-out rows, and the name of the target.

    groups : of the training rows, which belong together
    warnings : doubts about the table
    """

    table: Table
    X: UserData
    y: Array
    X_test: UserData
    y_test: Array
    target: str
    groups: Array | None = None
    warnings: tuple[TableWarning, ...] = ()

    @property
    def kind(self) -> TargetKind:
        """Whether the target holds classes or numbers."""
        return kind_of(self.y)


def reading_options(options: Namespace) -> dict[str, Any]:
    """The arguments of `read_table` that the command line has."""
    return {
        "format": options.format,
        "separator": options.separator,
        "header": None if options.header is None else options.header == "yes",
        "missing": options.missing,
        "decimal": options.decimal,
        "first_index": options.first_index,
        "skip_lines": options.skip_lines,
        "sheet": options.sheet,
        "encoding": options.encoding,
        "skip_last": options.skip_last,
    }


def read(
    options: Namespace,
    *,
    labels: str = "y",
    n_features: int | None = None,
    like: TableFormat | None = None,
) -> Table:
    """Read the table of a command, and say what was guessed."""
    table = read_table(
        options.data,
        labels=labels,
        n_features=n_features,
        like=like,
        **reading_options(options),
    )
    if table.notes:
        say("Guessed (options in brackets override it):")
    for note in table.notes:
        say(f"  - {note}")
    return table


def read_task(options: Namespace) -> Task:
    """Read a table with its target, and split it."""
    table = read(options, labels=options.target or "y")
    rest, y, name, notes = split_target(
        table,
        options.target,
        options.task,
        options.merge_labels,
        options.keep_label,
    )
    for note in notes:
        say(f"note: {note}.")
    groups = None
    if options.groups is not None:
        rest, groups = take_groups(rest, options.groups)
    train, test = _split(rest, y, options, name, groups)
    rows = rest.frame if rest.is_sparse else rest.frame.iloc
    own = None if groups is None else groups[train]
    doubts = _doubts(rest, y, test, options)
    parts = rows[train], y[train], rows[test], y[test]
    task = Task(rest, *parts, name, own, doubts)
    _check_positive(options, task)
    n, d = table.frame.shape[0], rest.frame.shape[1]
    say(f"{table.path}: {n} rows, {d} columns, {task.kind.counted(task.y, name)}.")
    return task


def _doubts(
    rest: Table, y: Array, test: Array, options: Namespace
) -> tuple[TableWarning, ...]:
    """Warn of possible problems of the table."""
    grouped = options.groups is not None
    found = check_table(
        rest.frame,
        y,
        test=test,
        grouped=grouped,
        ignored=options.drop,
        categorical=options.categorical,
    )
    for one in found:
        say(f"warning: {one}")
    return tuple(found)


def _check_positive(options: Namespace, task: Task) -> None:
    if options.positive is not None and options.positive not in task.y:
        raise DataError(
            f"there is no class {options.positive!r} for --positive; there are "
            f"{listed(np.unique(task.y))}.",
            path=task.table.path,
            column=task.target,
        )


def _split(
    rest: Table, y: Array, options: Namespace, name: str, groups: Array | None
) -> tuple[Array, Array]:
    try:
        train, test = hold_out(y, options.test_size, options.seed, groups)
    except ValueError as error:
        raise DataError(str(error), path=rest.path, column=name) from None
    if y.dtype.kind == "f":
        return train, test
    unseen = [one for one in np.unique(y[train]) if one not in y[test]]
    if len(test) and unseen:
        shown = ", ".join(repr(str(one)[:60]) for one in unseen[:5])
        more = f" and {len(unseen) - 5} more" if len(unseen) > 5 else ""
        say(
            f"note: no row of class {shown}{more} is held out, since there are too "
            "few; the accuracy does not cover them."
        )
    return train, test


def machine_of(
    options: Namespace,
    kind: TargetKind,
    callback: Callable[[Progress], object] | None = None,
    checkpoint: Path | None = None,
) -> BaseEstimator:
    """The unfitted estimator that the options describe."""
    settings = dict(
        cv=options.cv,
        time_limit=options.time_limit,
        n_jobs=options.n_jobs,
        callback=callback,
        checkpoint=checkpoint,
        random_state=options.seed,
    )
    return kind.machine(options.kernel, {**settings, **_of_classes(options, kind)})


def _of_classes(options: Namespace, kind: TargetKind) -> dict[str, object]:
    """Arguments by options that are for classes; refused with a target of numbers."""
    settings = dict(
        criterion=options.criterion,
        class_weight=by_class(options.class_weight, "--class-weight"),
        threshold=threshold_of(options),
    )
    if kind.task == "classification":
        return settings
    given = {name for name, value in settings.items() if value not in (None, "auto")}
    if given or options.positive is not None:
        names = sorted(given) or ["positive"]
        raise DataError(
            f"--{names[0].replace('_', '-')} is for classes, and the target holds "
            "numbers. Leave it out, or use --task classification."
        )
    return {}


def by_class(
    given: Sequence[str | tuple[str, float]], option: str
) -> str | dict[str, float] | None:
    """A word, or numbers by class, as an option was given; None if it was not."""
    words = [one for one in given if isinstance(one, str)]
    if not words:
        return dict(one for one in given if not isinstance(one, str)) or None
    if len(given) > 1:
        raise DataError(
            f"{option} was given {len(given)} times: expected one word, or "
            "CLASS=NUMBER for one or more classes."
        )
    return words[0]


def threshold_of(options: Namespace) -> object:
    """The argument `threshold`; F1 is that of the class of interest."""
    goal = by_class(options.threshold, "--threshold")
    if goal == "f1" and options.positive is not None:
        return ("f1", options.positive)
    return goal


def prepared(options: Namespace, task: Task, machine: BaseEstimator | None) -> Pipeline:
    """An unfitted pipeline that encodes the columns and ends with the machine."""
    columns = dict(
        categorical=options.categorical,
        drop=options.drop,
        keep=options.keep,
        dates=options.date,
        numeric=options.numeric,
    )
    try:
        if not task.table.is_sparse:
            check_columns(task.table, **columns)
            # Check all cells before any work is done, including held-out rows. They may
            # also decide which number of a date is the month.
            types = ColumnTypes(**columns).fit(task.table.frame)
            types.transform(task.table.frame)
            known = [(name, form) for name, form in types.formats_.items() if form]
            columns["dates"] = known
        with warnings.catch_warnings():
            # `say_how_columns_were_read` and `check_table` say it with options.
            warnings.simplefilter("ignore", ColumnWarning)
            return pipeline_for(
                task.X, machine, histograms=options.kernel == "chi2", **columns
            )
    except DataError as error:
        raise error.at(task.table.path) from None


def say_how_columns_were_read(model: Pipeline) -> None:
    """Say which columns are dates, times or codes, and which are not used."""
    types = model[0]
    if not isinstance(types, ColumnTypes):
        return
    for name, form in types.formats_.items():
        say(f"note: column {name!r} holds {_dates_in_words(name, form, types)}.")
    for name, one in types.codes_.items():
        say(
            f"note: column {name!r} holds codes such as {one!r}, which are taken for "
            f"categories (--numeric {name!r})."
        )
    for name, why in types.dropped_.items():
        if name not in types.drop:
            say(f"note: column {name!r} {why}: not used.")


def _dates_in_words(name: str, form: str, types: ColumnTypes) -> str:
    if form == TIME:
        return f"times, counted in hours (--categorical {name!r})"
    if not form:
        return f"dates, counted in days (--categorical {name!r})"
    other = types.unclear_.get(name)
    also = "" if other is None else f"; {other} fits, too"
    option = f"--date {name!r}={other or 'FORMAT'}"
    return f"dates, read as {form} and counted in days{also} ({option})"


def importances(found: Importance | None) -> dict[str, dict[str, float]] | None:
    """By how much accuracy falls without a column, with its 95% interval."""
    if found is None:
        return None
    low, high = found.interval()
    rows = zip(found.names, found.values, low, high, strict=True)
    return {name: {"value": v, "low": a, "high": b} for name, v, a, b in rows}
