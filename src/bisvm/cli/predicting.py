"""bisvm predict: a class or a number for every row of a table."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TypeAlias

from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline

from bisvm.cli.arguments import did_you_mean
from bisvm.cli.output import (
    json_of,
    one_line,
    rounded,
    safe_for_spreadsheets,
    say,
    write_json,
    write_rows,
)
from bisvm.cli.tasks import is_model_file, read
from bisvm.core.files import whole_file
from bisvm.core.types import Array, UserData
from bisvm.io.files import load
from bisvm.reporting.words import threshold_probability
from bisvm.tables import ColumnTypes, DataError, Table
from bisvm.tables.errors import listed
from bisvm.tables.format import remembered
from bisvm.tables.preparing import unlike_training, unseen_categories

# How an empty set of classes is written.
EMPTY = "(none)"

# Values of all rows, by the name of their column.
Columns: TypeAlias = dict[str, Sequence[object]]


def run(options: Namespace) -> int:
    _check_files(options)
    model = load_pipeline(options.model)
    with naming_the_file(options.model):
        form = remembered(model)
        width = width_of(model)
    if form is None:
        say(
            f"note: {options.model} does not store the format of its table (it comes "
            "from Python or from an older version), so the format of "
            f"{options.data} is guessed."
        )
    _check_options(model, options)
    _say_threshold(model)
    table = read(options, n_features=width, like=form)
    if table.is_sparse == isinstance(model[0], ColumnTypes):
        kinds = "a table of columns", "a sparse matrix"
        given, wanted = kinds[::-1] if table.is_sparse else kinds
        raise DataError(
            f"the file holds {given}, but the model was trained on {wanted}.",
            path=table.path,
        )
    copied = _copied(table, options)
    with naming_the_file(options.model):
        try:
            unseen = unseen_categories(model, table.frame)
            unlike = unlike_training(model, table.frame)
            found = (_numbers if is_regressor(model[-1]) else _classes)(
                model, table.frame, options
            )
        except DataError as error:
            raise error.at(table.path) from None
    for name, one in unseen.items():
        say(
            f"note: column {one_line(name)!r} has categories that are not in the "
            f"training data, such as {one_line(one)[:60]!r}."
        )
    for note in unlike:
        say(f"note: {one_line(note)}.")
    _write(copied, found, options)
    sys.stdout.flush()
    return 0


def _check_files(options: Namespace) -> None:
    """Refuse files that were exchanged, and an output that cannot be written."""
    model, output = options.model, options.output
    exchanged = is_model_file(options.data)
    # A damaged model has a message of its own.
    other = model.is_file() and not is_model_file(model)
    if other and (exchanged or model.suffix.lower() != ".skops"):
        usual = f"{options.data} {model}" if exchanged else "MODEL TABLE"
        raise DataError(
            "this is not a model file. The model comes first, then the table: bisvm "
            f"predict {usual}",
            path=model,
        )
    if output is not None and output.is_dir():
        raise DataError("this is a folder; expected the name of a file.", path=output)
    if output is not None and not output.resolve().parent.is_dir():
        raise DataError("there is no such folder.", path=output.parent)


def _check_options(model: Pipeline, options: Namespace) -> None:
    """Refuse to write what the model does not have."""
    regression = is_regressor(model[-1])
    for_classes = {
        "--proba": options.proba,
        "--scores": options.scores,
        "--set": options.set is not None,
    }
    asked = [name for name, given in for_classes.items() if given]
    if regression and asked:
        raise DataError(
            f"the model predicts numbers, and {asked[0]} is for classes. Use "
            "--interval 0.9 for intervals.",
            path=options.model,
        )
    if options.interval is not None and not regression:
        raise DataError(
            "the model predicts classes, and --interval is for numbers. Use --set 0.9 "
            "for sets of classes.",
            path=options.model,
        )
    if options.interval is not None and not hasattr(model[-1], "predict_interval"):
        raise DataError(
            "the model has no intervals: it was tuned without cross-validation. Leave "
            "out --interval, or tune it again.",
            path=options.model,
        )
    if options.proba and not hasattr(model, "predict_proba"):
        raise DataError(
            "the model has no probabilities: it was tuned without cross-validation. "
            "Leave out --proba, or tune it with another --criterion.",
            path=options.model,
        )
    if options.set is not None and not hasattr(model[-1], "predict_set"):
        raise DataError(
            "the model has no prediction sets: it was tuned without cross-validation, "
            "or by an older version. Leave out --set, or tune it again.",
            path=options.model,
        )


@contextmanager
def naming_the_file(path: Path) -> Iterator[None]:
    """Turn errors inside a model into errors that name its file.

    A damaged model may load without an error and fail when it is used.
    """
    try:
        yield
    except (DataError, MemoryError, ImportError, OSError):
        raise
    except Exception as error:
        raise DataError(
            f"the model is damaged, or does not fit these data: {type(error).__name__}"
            f": {str(error)[:200]}",
            path=path,
        ) from error


def load_pipeline(path: Path) -> Pipeline:
    """Load a model that `bisvm tune` has saved."""
    if path.is_dir():
        raise DataError("this is a folder; expected a file.", path=path)
    if not path.exists():
        raise DataError("there is no such file.", path=path)
    model = load(path)
    with naming_the_file(path):
        machine = model[-1] if isinstance(model, Pipeline) and len(model) else None
    if not hasattr(machine, "certificate_"):
        raise DataError(
            f"the file holds a {type(model).__name__}; expected a pipeline saved by "
            "`bisvm tune`. Use this model in Python: bisvm.load(path).",
            path=path,
        )
    return model


def width_of(model: Pipeline) -> int | None:
    """Number of features if they are numbered; None if they have names."""
    first = model[0]
    if isinstance(first, ColumnTypes):
        numbered = all(str(name).isdigit() for name in first.feature_names_in_)
        return len(first.feature_names_in_) if numbered else None
    return int(first.n_features_in_)


def _say_threshold(model: Pipeline) -> None:
    """Say that the model does not predict the class of the highest probability."""
    found = threshold_probability(model[-1])
    if found is not None and round(found[1], 2) < 0.5:
        name, share = found
        say(
            f"note: the model predicts {one_line(str(name))!r} from a probability of "
            f"{share:.3g} on, by the --threshold that it was tuned with."
        )


def _copied(table: Table, options: Namespace) -> Columns:
    """The columns of the table that are asked for."""
    asked = list(dict.fromkeys(options.copied))
    if not asked and not options.copy_all:
        return {}
    if table.is_sparse:
        raise DataError(
            "a sparse matrix has no columns to write: leave out --with.",
            path=table.path,
        )
    names = [str(name) for name in table.frame.columns]
    for name in asked:
        if name not in names:
            raise DataError(
                f"--with: there is no column {name!r}; there are {listed(names)}."
                f"{did_you_mean(name, names)}",
                path=table.path,
            )
    frame = table.frame[names if options.copy_all else asked]
    return {
        str(name): [
            None if gone else one for one, gone in zip(cells, empty, strict=True)
        ]
        for name, cells, empty in (
            (name, frame[name].tolist(), frame[name].isna()) for name in frame
        )
    }


def _numbers(model: Pipeline, rows: UserData, options: Namespace) -> Columns:
    """Predicted numbers, with the bounds of their intervals if they are asked for."""
    found: Columns = {"prediction": model.predict(rows).tolist()}
    if options.interval is not None:
        inputs = model[:-1].transform(rows) if len(model) > 1 else rows
        low, high = model[-1].predict_interval(inputs, options.interval).T
        found |= {"lower": low.tolist(), "upper": high.tolist()}
    return found


def _classes(model: Pipeline, rows: UserData, options: Namespace) -> Columns:
    """Predicted classes, with what else is asked for."""
    names = [str(name) for name in model.classes_]
    found: Columns = {"prediction": [str(one) for one in model.predict(rows)]}
    for what, values in _added(model, rows, options).items():
        # One score of two classes is that of the second.
        own = names[-values.shape[1] :]
        found |= {f"{what} {n}": v.tolist() for n, v in zip(own, values.T, strict=True)}
    if options.set is not None:
        sets = _sets(model, rows, options, names)
        mark = "[]" if options.json else _mark_of_empty(names)
        _say_empty(sets, mark)
        found["set"] = sets if options.json else [";".join(s) or mark for s in sets]
    return found


def _added(model: Pipeline, rows: UserData, options: Namespace) -> dict[str, Array]:
    """Decision values and probabilities, as far as they are asked for."""
    added = {}
    if options.scores:
        scores = model.decision_function(rows)
        added["score"] = scores[:, None] if scores.ndim == 1 else scores
    if options.proba:
        added["probability"] = model.predict_proba(rows)
    return added


def _sets(
    model: Pipeline, rows: UserData, options: Namespace, names: Sequence[str]
) -> list[list[str]]:
    """The classes in the set of every row."""
    inputs = model[:-1].transform(rows) if len(model) > 1 else rows
    if model[-1].threshold is not None:
        say(
            "note: sets do not depend on the --threshold that the model was tuned with."
        )
    member = model[-1].predict_set(inputs, options.set, options.by_class)
    return [[n for n, own in zip(names, row, strict=True) if own] for row in member]


def _say_empty(sets: Sequence[Sequence[str]], mark: str) -> None:
    """Say how many sets are empty, and what that means."""
    count = sum(not one for one in sets)
    are, these = ("is", "this row is") if count == 1 else ("are", "these rows are")
    if count:
        say(
            f"note: {count} of {len(sets)} sets {are} empty, written as {mark}: "
            f"{these} less typical of every class than most rows in cross-validation "
            "are of theirs."
        )


def _mark_of_empty(names: Sequence[str]) -> str:
    """What is written for an empty set, and is not the name of a class."""
    mark = EMPTY
    while mark in names:
        mark = f"({mark})"
    return mark


# --- writing --------------------------------------------------------------------------


def _write(copied: Columns, found: Columns, options: Namespace) -> None:
    """Write columns of the table and those found, as CSV or as one JSON object."""
    # A column of the table may have the name of one that is added.
    names = [f"{name} (table)" if name in found else name for name in copied]
    copied = dict(zip(names, copied.values(), strict=True))
    count = len(found["prediction"])
    if options.json:
        columns = {**copied, **found}
        rows = zip(*columns.values(), strict=True)
        told = {"predictions": [dict(zip(columns, row, strict=True)) for row in rows]}
        if options.output is None:
            write_json(told)
            return
        text = f"{json_of(told)}\n"
    else:
        lines = _lines(copied, found)
        if options.output is None:
            write_rows(lines, separator=",")
            return
        stream = StringIO(newline="")
        write_rows(lines, stream, separator=",")
        text = stream.getvalue()
    with whole_file(options.output) as file:
        file.write(text.encode("utf-8"))
    say(f"{count} predictions written to {options.output}.")


def _lines(copied: Columns, found: Columns) -> list[list[str]]:
    """A head, and a line for every row; only numbers that were found are rounded."""
    texts = [
        *([name, *map(_exact, values)] for name, values in copied.items()),
        *([name, *map(_rounded, values)] for name, values in found.items()),
    ]
    safe = [[safe_for_spreadsheets(one) for one in column] for column in texts]
    pairs = (
        (a, b)
        for old, new in zip(texts, safe, strict=True)
        for a, b in zip(old, new, strict=True)
    )
    changed = next((old for old, new in pairs if new != old), None)
    if changed is not None:
        say(
            f"note: cells such as {one_line(changed)[:60]!r} are written with an "
            "apostrophe before them: a spreadsheet would take them for formulas."
        )
    return [list(line) for line in zip(*safe, strict=True)]


def _exact(value: object) -> str:
    return "" if value is None else str(value)


def _rounded(value: object) -> str:
    return rounded(value) if isinstance(value, float) else str(value)
