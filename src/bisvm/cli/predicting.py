"""bisvm predict: a class or a number for every row of a table."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import numpy as np
from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline

from bisvm.cli.output import one_line, safe_for_spreadsheets, say, write_rows
from bisvm.cli.tasks import read
from bisvm.core.files import whole_file
from bisvm.core.types import Array, UserData
from bisvm.io.files import load
from bisvm.tables import ColumnTypes, DataError
from bisvm.tables.format import remembered
from bisvm.tables.preparing import unlike_training, unseen_categories


def run(options: Namespace) -> int:
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
    table = read(options, n_features=width, like=form)
    if table.is_sparse == isinstance(model[0], ColumnTypes):
        kinds = "a table of columns", "a sparse matrix"
        given, wanted = kinds[::-1] if table.is_sparse else kinds
        raise DataError(
            f"the file holds {given}, but the model was trained on {wanted}.",
            path=table.path,
        )
    with naming_the_file(options.model):
        try:
            unseen = unseen_categories(model, table.frame)
            unlike = unlike_training(model, table.frame)
            rows = (_numbers if is_regressor(model[-1]) else _classes)(
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
    if options.output is None:
        write_rows(rows, separator=",")
    else:
        text = StringIO(newline="")
        write_rows(rows, text, separator=",")
        with whole_file(options.output) as file:
            file.write(text.getvalue().encode("utf-8"))
        say(f"{len(rows) - 1} predictions written to {options.output}.")
    sys.stdout.flush()
    return 0


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
    if options.interval is not None and not hasattr(model[-1], "predict_interval"):
        raise DataError(
            "the model has no intervals: it predicts classes, or no rows were held out "
            "when it was tuned. Leave out --interval; --set is for classes.",
            path=options.model,
        )
    if options.proba and not hasattr(model, "predict_proba"):
        raise DataError(
            "the model has no probabilities: no rows were held out when it was tuned. "
            "Leave out --proba, or tune it with another criterion.",
            path=options.model,
        )
    if options.set is not None and not hasattr(model[-1], "predict_set"):
        raise DataError(
            "the model has no prediction sets: no rows were held out when it was "
            "tuned, or an older version has tuned it. Leave out --set, or tune it "
            "again.",
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


def _numbers(model: Pipeline, rows: UserData, options: Namespace) -> list[list[str]]:
    """Predicted numbers, with the bounds of their intervals if they are asked for."""
    columns, head = [model.predict(rows)], ["prediction"]
    if options.interval is not None:
        inputs = model[:-1].transform(rows) if len(model) > 1 else rows
        columns += list(model[-1].predict_interval(inputs, options.interval).T)
        head += ["lower", "upper"]
    body = ([repr(float(x)) for x in row] for row in zip(*columns, strict=True))
    return [head, *body]


def _classes(model: Pipeline, rows: UserData, options: Namespace) -> list[list[str]]:
    """Predicted classes, with what else is asked for."""
    classes = model.predict(rows)
    added = _added(model, rows, options)
    found = _rows(classes, added, [str(name) for name in model.classes_])
    if options.set is None:
        return found
    return _with_sets(found, model, rows, options.set)


def _added(model: Pipeline, rows: UserData, options: Namespace) -> dict[str, Array]:
    """Decision values and probabilities, as far as they are asked for."""
    added = {}
    if options.scores:
        scores = model.decision_function(rows)
        added["score"] = scores[:, None] if scores.ndim == 1 else scores
    if options.proba:
        added["probability"] = model.predict_proba(rows)
    return added


def _rows(
    classes: Array, added: Mapping[str, Array], names: list[str]
) -> list[list[str]]:
    safe = {name: safe_for_spreadsheets(name) for name in names}
    changed = next((name for name in names if safe[name] != name), None)
    if changed is not None:
        say(
            f"note: predictions such as {changed[:60]!r} are written with an "
            "apostrophe before them: a spreadsheet would take them for formulas."
        )
    # One score of two classes is that of the second.
    head = [
        f"{what} {name}"
        for what, values in added.items()
        for name in names[-values.shape[1] :]
    ]
    numbers = np.hstack([np.empty((len(classes), 0)), *added.values()])
    body = (
        [safe[str(one)], *(repr(float(number)) for number in row)]
        for one, row in zip(classes, numbers, strict=True)
    )
    return [["prediction", *head], *body]


def _with_sets(
    rows: list[list[str]], model: Pipeline, inputs: UserData, coverage: float
) -> list[list[str]]:
    """Add the names of the classes in each set, joined by semicolons."""
    if len(model) > 1:
        inputs = model[:-1].transform(inputs)
    sets = model[-1].predict_set(inputs, coverage)
    names = np.array([str(name) for name in model.classes_], dtype=object)
    cells = [safe_for_spreadsheets(";".join(names[own])) for own in sets]
    return [[*row, cell] for row, cell in zip(rows, ["set", *cells], strict=True)]
