"""bisvm tune: learn a classifier from a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from bisvm.cli.demo import ProgressLine
from bisvm.cli.output import say, write_json, write_pairs
from bisvm.cli.reporting import show_report, write_report
from bisvm.cli.tasks import (
    Task,
    accuracy,
    expected,
    machine_of,
    prepared,
    read_task,
    say_how_columns_were_taken,
)
from bisvm.io.files import save
from bisvm.reporting.words import expected_in_words
from bisvm.reporting.writing import check_can_report
from bisvm.tables import DataError
from bisvm.tables.format import remember
from bisvm.tables.preparing import relevances_by_column


def run(options: Any) -> int:
    if options.save is not None and not options.save.resolve().parent.is_dir():
        raise DataError("there is no such folder.", path=options.save.parent)
    if options.report is not None:
        check_can_report(options.report)
    task = read_task(options)
    model, seconds = tuned(options, task)
    result = summary(task, model, seconds)
    if options.save is not None:
        remember(model, task.table.form)
        save(model, options.save)
        result["saved"] = str(options.save)
        say(f"Saved: {options.save}. `bisvm predict {options.save} FILE` uses it.")
    if options.report is not None:
        write_report(options, task, model, seconds)
        result["report"] = str(options.report)
        say(f"Report: {options.report}. Any browser opens it.")
        if options.open:
            show_report(options.report)
    (write_json if options.json else write_pairs)(result)
    promised = getattr(model[-1], "expected_score_", None)
    if promised is not None:
        say(expected_in_words(promised))
    _say(result)
    return 0


def tuned(options: Any, task: Task) -> tuple[Any, float]:
    """A fitted pipeline, and the seconds it took."""
    with ProgressLine(f"tuning on {len(task.y)} rows") as step:

        def show(progress: Any) -> None:
            record = progress.record
            step.detail = f"evaluation {record.number}, loss {progress.best_value:.4f}"
            if options.time_limit is not None:
                left = max(options.time_limit - record.seconds, 0.0)
                step.detail += f", {left:.0f} s left"

        # With several processors there is nobody to watch them.
        callback = show if options.n_jobs in (None, 1) else None
        machine = machine_of(options, callback, options.resume)
        model = prepared(options, task, machine)
        say_how_columns_were_taken(model.fit(task.X, task.y))
        seconds = step.seconds
        step.detail = done_in_words(model[-1])
    model[-1].set_params(callback=None, checkpoint=None)
    return model, seconds


def done_in_words(machine: Any) -> str:
    """Of the machine that was taken; with kernel="auto" there were others."""
    return f"{machine.n_svm_evaluations_} SVMs, loss {machine.criterion_value_:.4f}"


def summary(task: Task, model: Any, seconds: float) -> dict[str, Any]:
    """All that is worth knowing, in numbers and text."""
    machine = model[-1]
    counts = np.unique(task.y, return_counts=True)[1]
    certificates = np.atleast_1d(np.asarray(machine.certificate_, dtype=object))
    choice = getattr(machine, "kernel_choice_", None)
    return {
        "file": str(task.table.path),
        "target": task.target,
        "classes": len(machine.classes_),
        "rows": len(task.y) + len(task.y_test),
        "inputs": machine.n_features_in_,
        "kernel": str(machine.kernel_).split("(")[0],
        **({} if choice is None else {"kernel_choice": choice.name}),
        "hyperparameters": {
            name: value for name, value in machine.hyperparameters_.items()
        },
        "relevance": relevances_by_column(model),
        "loss": machine.criterion_value_,
        "train": accuracy(model, task.X, task.y),
        "test": accuracy(model, task.X_test, task.y_test),
        "expected": expected(machine),
        "largest_class": float(counts.max() / counts.sum()),
        "converged": all(one.converged for one in certificates),
        "evaluations": len(machine.history_),
        "seconds": seconds,
    }


def _say(result: dict[str, Any]) -> None:
    test = result["test"]
    if test is None:
        say("No rows were held out to see how good it is on new ones.")
        return
    say(
        f"On {test['rows']} rows that were held out, {test['accuracy']:.1%} are right "
        f"(95% interval {test['low']:.1%} to {test['high']:.1%}); always the largest "
        f"class would be {result['largest_class']:.1%}."
    )
