"""bisvm predict: a class for every row of a table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from bisvm.cli.output import one_line, say, write_rows
from bisvm.cli.tasks import read
from bisvm.io.files import load
from bisvm.tables import ColumnTypes, DataError
from bisvm.tables.format import remembered
from bisvm.tables.preparing import unseen_categories


def run(options: Any) -> int:
    model = load_pipeline(options.model)
    with of_a_file(options.model):
        form = remembered(model)
        width = width_of(model)
    if form is None:
        say(
            f"note: {options.model} does not say how its table was written (it comes "
            f"from Python, or from an older version): the format of {options.data} is "
            "guessed."
        )
    table = read(options, n_features=width, like=form)
    if table.is_sparse == isinstance(model[0], ColumnTypes):
        kind = "a table of columns" if not table.is_sparse else "a sparse matrix"
        raise DataError(
            f"the file is {kind}, and the model was trained on the other kind.",
            path=table.path,
        )
    with of_a_file(options.model):
        try:
            unseen = unseen_categories(model, table.frame)
            classes = model.predict(table.frame)
            scores = model.decision_function(table.frame) if options.scores else None
        except DataError as error:
            raise error.at(table.path) from None
        rows = _rows(classes, scores, [str(name) for name in model.classes_])
    for name, one in unseen.items():
        say(
            f"note: column {one_line(name)!r} has categories that were not learned "
            f"from, such as {one_line(one)[:60]!r}."
        )
    if options.output is None:
        write_rows(rows, separator=",")
    else:
        with options.output.open("w", newline="", encoding="utf-8") as file:
            write_rows(rows, file, separator=",")
        say(f"{len(classes)} classes written to {options.output}.")
    sys.stdout.flush()
    return 0


@contextmanager
def of_a_file(path: Any) -> Iterator[None]:
    """What goes wrong inside a model from a file is a fault of the file.

    A tree of a model may be whole and make no sense; it is then found out by use.
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


def load_pipeline(path: Any) -> Pipeline:
    """A model that `bisvm tune` has saved, or a ValueError."""
    model = load(path)
    with of_a_file(path):
        machine = model[-1] if isinstance(model, Pipeline) and len(model) else None
    if not hasattr(machine, "certificate_") or not hasattr(machine, "classes_"):
        raise DataError(
            f"the file holds a {type(model).__name__}, and no pipeline that `bisvm "
            "tune` has saved: use it in Python, bisvm.load(path).",
            path=path,
        )
    return model


def width_of(model: Pipeline) -> int | None:
    """Columns of a sparse matrix; those of a table have names."""
    first = model[0]
    if isinstance(first, ColumnTypes):
        numbered = all(str(name).isdigit() for name in first.feature_names_in_)
        return len(first.feature_names_in_) if numbered else None
    return int(first.n_features_in_)


def _rows(classes: Any, scores: Any, names: list[str]) -> list[list[Any]]:
    if scores is None:
        return [["prediction"], *([str(one)] for one in classes)]
    scores = scores[:, None] if scores.ndim == 1 else scores
    shown = names[1:] if scores.shape[1] == 1 else names
    head = ["prediction", *(f"score {name}" for name in shown)]
    body = (
        [str(one), *(repr(float(s)) for s in row)]
        for one, row in zip(classes, np.asarray(scores), strict=True)
    )
    return [head, *body]
