"""bisvm tune --report: what the report is told of the command."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any

from bisvm.cli.demo import ProgressLine
from bisvm.cli.output import say
from bisvm.cli.tasks import Task
from bisvm.reporting import report


def write_report(options: Any, task: Task, model: Any, seconds: float) -> None:
    held_out = len(task.y_test) > 0
    with ProgressLine(f"report to {options.report}") as step:

        def show(text: str) -> None:
            step.detail = text

        report(
            model,
            task.X,
            task.y,
            options.report,
            X_test=task.X_test if held_out else None,
            y_test=task.y_test if held_out else None,
            title=f"{task.target} in {options.data.name}",
            asked={
                "file": str(options.data),
                "to predict": task.target,
                "held out": f"{options.test_size:.0%} of the rows, seed {options.seed}",
            },
            seconds=seconds,
            data_lines=data_lines(options, task),
            progress=show,
        )
        step.detail = ""


def show_report(path: Path) -> None:
    """Hand the report to the browser of whoever sits there."""
    if not webbrowser.open(path.resolve().as_uri()):
        say("note: no browser is known here: open the report yourself.")


def data_lines(options: Any, task: Task) -> list[str]:
    """Python that reads the table and holds out the same rows."""
    given = {
        "format": options.format,
        "separator": options.separator,
        "header": None if options.header is None else options.header == "yes",
        "missing": options.missing or None,
        "decimal": options.decimal,
        "first_index": options.first_index,
        "labels": options.target,
    }
    more = [f"{name}={value!r}" for name, value in given.items() if value is not None]
    n_test = len(task.y_test)
    names = ["hold_out", "read_table", "split_target"][0 if n_test else 1 :]
    lines = [
        f"from bisvm.tables import {', '.join(names)}",
        "",
        f"table = read_table({', '.join([repr(str(options.data)), *more])})",
        f"rest, y, *_ = split_target(table, {options.target!r})",
        "X = rest.frame",
    ]
    if not n_test:
        return lines
    rows = "X[{0}]" if task.table.is_sparse else "X.iloc[{0}]"
    return [
        *lines,
        f"train, test = hold_out(y, {options.test_size}, random_state={options.seed})",
        f"X_test, y_test = {rows.format('test')}, y[test]",
        f"X, y = {rows.format('train')}, y[train]",
        "",
    ]
