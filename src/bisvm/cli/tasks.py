"""Data, pipeline and scores, as the commands share them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bisvm.cli.output import say
from bisvm.estimators import BilevelLinearSVC, BilevelSVC
from bisvm.reporting.scores import share_of
from bisvm.tables import (
    ColumnTypes,
    DataError,
    Table,
    hold_out,
    pipeline_for,
    read_table,
    split_target,
)


@dataclass(frozen=True)
class Task:
    """Rows to learn from and rows to be counted on, and the name of the target."""

    table: Table
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    target: str


def read(options: Any, **more: Any) -> Table:
    """The table of a command, with what was guessed said."""
    header = None if options.header is None else options.header == "yes"
    table = read_table(
        options.data,
        format=options.format,
        separator=options.separator,
        header=header,
        missing=options.missing,
        decimal=options.decimal,
        first_index=options.first_index,
        **more,
    )
    for note in table.notes:
        say(f"note: {note}.")
    return table


def read_task(options: Any) -> Task:
    """Data with their target, split once."""
    more = {} if options.target is None else {"labels": options.target}
    table = read(options, **more)
    rest, y, name, notes = split_target(table, options.target)
    for note in notes:
        say(f"note: {note}.")
    X, X_test, y, y_test = _split(rest, y, options, name)
    classes = len(np.unique(y))
    n, d = table.frame.shape[0], rest.frame.shape[1]
    say(f"{table.path}: {n} rows, {d} columns, {classes} classes of {name!r}.")
    return Task(rest, X, y, X_test, y_test, name)


def _split(rest: Table, y: np.ndarray, options: Any, name: str) -> Any:
    try:
        train, test = hold_out(y, options.test_size, options.seed)
    except ValueError as error:
        raise DataError(str(error), path=rest.path, column=name) from None
    unseen = [one for one in np.unique(y[train]) if one not in y[test]]
    if len(test) and unseen:
        shown = ", ".join(repr(str(one)[:60]) for one in unseen[:5])
        more = f" and {len(unseen) - 5} more" if len(unseen) > 5 else ""
        say(
            f"note: no row of {shown}{more} is held out: there are too few. How well "
            "they are told apart is not counted."
        )
    rows = (lambda X, k: X[k]) if rest.is_sparse else (lambda X, k: X.iloc[k])
    return rows(rest.frame, train), rows(rest.frame, test), y[train], y[test]


def machine_of(
    options: Any,
    callback: Callable[[Any], Any] | None = None,
    checkpoint: Path | None = None,
) -> Any:
    """The unfitted machine that the options stand for."""
    settings = dict(
        cv=options.cv,
        time_limit=options.time_limit,
        n_jobs=options.n_jobs,
        callback=callback,
        checkpoint=checkpoint,
        random_state=options.seed,
    )
    if options.kernel == "linear":
        return BilevelLinearSVC(**settings)
    return BilevelSVC(options.kernel, **settings)


def prepared(options: Any, task: Task, machine: Any) -> Any:
    """The pipeline in front of it; columns that are left out are named."""
    columns = dict(
        categorical=options.categorical, drop=options.drop, keep=options.keep
    )
    try:
        if not task.table.is_sparse:
            # All cells, before any work is done: those that are held out, too. They may
            # also tell which number of a date is the month.
            types = ColumnTypes(**columns).fit(task.table.frame)
            types.transform(task.table.frame)
            known = [(name, form) for name, form in types.formats_.items() if form]
            columns["dates"] = known
        return pipeline_for(
            task.X, machine, histograms=options.kernel == "chi2", **columns
        )
    except DataError as error:
        raise error.at(task.table.path) from None


def say_how_columns_were_taken(model: Any) -> None:
    """What was guessed of them, and which were left out."""
    for name, form in getattr(model[0], "formats_", {}).items():
        say(f"note: column {name!r} holds dates, read as {form}: days are counted.")
    for name, why in getattr(model[0], "dropped_", {}).items():
        if why != "was to be left out":
            say(f"note: column {name!r} {why}: left out.")


def expected(machine: Any) -> dict[str, float] | None:
    """Accuracy that the folds promise, less what the search made of them (90%)."""
    score = getattr(machine, "expected_score_", None)
    if score is None:
        return None
    low, high = score.interval()
    return {"accuracy": score.value, "low": low, "high": high}


def accuracy(model: Any, X: Any, y: np.ndarray) -> dict[str, Any] | None:
    """Share of rows that are right, with the interval of Wilson (95%)."""
    if not len(y):
        return None
    share = share_of(np.asarray(model.predict(X) == y))
    return dict(zip(("accuracy", "low", "high", "rows"), share, strict=True))
