"""What commands share: the data, the pipeline and the scores."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile, is_zipfile

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from bisvm.cli.arguments import did_you_mean
from bisvm.cli.kinds import TargetKind, kind_of
from bisvm.cli.output import say
from bisvm.core.types import Array, UserData
from bisvm.estimators.class_inputs import MANY_CLASSES
from bisvm.estimators.importance import Importance
from bisvm.search.checkpoint import Difference, OtherFitError
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
from bisvm.tables.reading import OTHERS, SUFFIXES

if TYPE_CHECKING:
    from bisvm.tables import TableFormat

# Rows of a class that a fold can hold out one of, and one more for a test row.
LEAST_ROWS = 2
# Shares of test rows that are tried if the one given does not work.
SHARES = tuple(percent / 100 for percent in range(5, 65, 5))
# Options by the arguments of the estimators.
OPTION_OF = {
    "class_weight": "--class-weight",
    "criterion": "--criterion",
    "cv": "--cv",
    "kernel": "--kernel",
    "random_state": "--seed",
    "threshold": "--threshold",
}


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
    _check_is_table(options)
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


def is_model_file(path: Path) -> bool:
    """Whether a file looks like one that `bisvm tune --save` has written."""
    return "schema.json" in _zipped(path)


def _zipped(path: Path) -> list[str]:
    """Names of the files in a ZIP archive; none if it is another file, or damaged."""
    try:
        if path.is_file() and is_zipfile(path):
            with ZipFile(path) as archive:
                return archive.namelist()
    # A damaged archive raises errors of many kinds; it is refused where it is read.
    except Exception:
        return []
    return []


def _check_is_table(options: Namespace) -> None:
    """Refuse a model, and archives that are neither Excel files nor arrays."""
    path = options.data
    if is_model_file(path):
        usual = "the model comes first, then the table: bisvm predict MODEL TABLE"
        if options.command != "predict":
            usual = f"to predict with it, use bisvm predict {path} TABLE"
        raise DataError(f"this is a model file, not a table; {usual}", path=path)
    suffix = path.suffix.lower()
    excel = "excel" in (options.format, SUFFIXES.get(suffix))
    inside = [] if excel or suffix in OTHERS else _zipped(path)
    if "xl/workbook.xml" in inside:
        raise DataError("this is an Excel file: let its name end in .xlsx.", path=path)
    if any(not name.endswith(".npy") for name in inside):
        raise DataError(
            "this is a ZIP archive, not a table: unpack it first.", path=path
        )


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
    _check_class_options(options, task)
    parts_of = f"{len(train)} training rows and {len(test)} test rows"
    d, counted = rest.frame.shape[1], task.kind.counted(y, name)
    say(f"{table.path}: {len(y)} rows ({parts_of}), {d} columns, {counted}.")
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


def _check_class_options(options: Namespace, task: Task) -> None:
    """Refuse options that do not fit the classes, before any work is done.

    The class of interest of two is the rarer one, if none was given.
    """
    if task.kind.task != "classification":
        return
    classes, counts = np.unique(task.y, return_counts=True)
    if options.threshold and len(classes) != 2:
        raise DataError(
            f"--threshold is for two classes, and {task.target!r} has {len(classes)}. "
            "For rare classes use --class-weight balanced, or --criterion "
            "balanced_auto.",
            path=task.table.path,
        )
    for option, given in {
        "--threshold": _classes_in(options.threshold),
        "--class-weight": _classes_in(options.class_weight),
        "--positive": [] if options.positive is None else [options.positive],
    }.items():
        for name in given:
            _check_class(option, name, classes, task)
    weights = dict(one for one in options.class_weight if not isinstance(one, str))
    if sum(weights.get(str(name), 1.0) > 0 for name in classes) < 2:
        raise DataError(
            "--class-weight: a class of weight 0 is left out, and two or more are "
            "needed.",
            path=task.table.path,
        )
    if options.positive is None and "f1" in options.threshold:
        # As in the report, the second one if both have the same number of rows.
        options.positive = str(classes[int(counts[1] <= counts[0])])
        say(f"note: --threshold f1 is F1 of class {options.positive!r} (--positive).")


def _classes_in(given: Iterable[str | tuple[str, float]]) -> list[str]:
    """The classes that an option names, as CLASS=NUMBER."""
    return [one[0] for one in given if not isinstance(one, str)]


def _check_class(option: str, name: str, classes: Array, task: Task) -> None:
    if name in classes:
        return
    known = [str(one) for one in classes]
    shown = " and ".join(map(repr, known)) if len(known) == 2 else listed(known)
    raise DataError(
        f"{option}: there is no class {name!r} in {task.target!r}; there are {shown}."
        f"{did_you_mean(name, known)}",
        path=task.table.path,
    )


def _split(
    rest: Table, y: Array, options: Namespace, name: str, groups: Array | None
) -> tuple[Array, Array]:
    share, seed = options.test_size, options.seed
    numbers = y.dtype.kind == "f"
    if not numbers:
        _check_not_too_many(rest, y, share, name)
    try:
        train, test = hold_out(y, share, seed, groups)
    except ValueError:
        raise DataError(
            _too_few_in_words(y, share, seed, groups), path=rest.path, column=name
        ) from None
    if numbers:
        return train, test
    unseen = [one for one in np.unique(y[train]) if one not in y[test]]
    if len(test) and unseen:
        shown = ", ".join(repr(str(one)[:60]) for one in unseen[:5])
        more = f" and {len(unseen) - 5} more" if len(unseen) > 5 else ""
        say(
            f"note: no row of class {shown}{more} is a test row, since there are too "
            "few; the accuracy on the test rows does not cover them."
        )
    return train, test


def _check_not_too_many(rest: Table, y: Array, share: float, name: str) -> None:
    """Refuse a target with many classes that have hardly a row each."""
    classes = np.unique(y)
    least = LEAST_ROWS + (share > 0)
    if len(classes) <= MANY_CLASSES or len(y) >= least * len(classes):
        return
    usual = "Choose another --target, or merge classes."
    if all(map(_is_number, classes)):
        usual = "If they are numbers to predict, use --task regression."
    raise DataError(
        f"there are too many classes: {len(classes)} in {len(y)} rows, on "
        f"average fewer than {least} rows for each. {usual}",
        path=rest.path,
        column=name,
    )


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _too_few_in_words(y: Array, share: float, seed: int, groups: Array | None) -> str:
    """Say that there are too few rows for test rows, and which share works."""
    kinds = "" if y.dtype.kind == "f" else f" of {len(np.unique(y))} classes"
    said = f"{len(y)} rows{kinds} are too few for --test-size {share:g}."
    for other in sorted(SHARES, key=lambda one: abs(one - share)):
        try:
            test = hold_out(y, other, seed, groups)[1]
        except ValueError:
            continue
        if len(test):
            return f"{said} --test-size {other:g} works."
    return (
        f"{said} Use --test-size 0: without test rows, cross-validation estimates how "
        "good the model is."
    )


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


def other_run_in_words(error: Exception) -> str | None:
    """Say which options differ from those of the run that --resume names.

    None for other errors.
    """
    if not isinstance(error, OtherFitError):
        return None
    settings = {one.name: one for one in error.differences if one.part == "settings"}
    said = [
        f"{one.name} was {one.was} and is now {one.now}"
        for one in error.differences
        if one.part == "versions"
    ]
    if "estimator" in settings:
        # Its other arguments are different, too.
        said.append("--kernel or --task was different")
    else:
        said += [
            _changed(OPTION_OF[name], one)
            for name, one in settings.items()
            if name in OPTION_OF
        ]
    if not said:
        said.append(
            "the table was another one, or other rows or columns of it were used"
        )
    return (
        f"{error.path}: this file is of another run: {', '.join(said)}. Use the same "
        "command, or another file for --resume."
    )


def _changed(option: str, one: Difference) -> str:
    was, now = (
        "not given" if text in (None, "None") else str(text).strip("'\"")
        for text in (one.was, one.now)
    )
    if any(sign in f"{was}{now}" for sign in "[{"):
        return f"{option} was different"
    return f"{option} was {was} and is now {now}"


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
            say(f"note: column {name!r} {why}: not used (--keep {name!r}).")


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
