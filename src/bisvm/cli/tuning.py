"""bisvm tune: learn a classifier, or a regression, from a table."""

from __future__ import annotations

import webbrowser
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from math import isfinite
from statistics import median

from sklearn.pipeline import Pipeline

from bisvm.cli.describing import (
    importance_of,
    page,
    remember_findings,
)
from bisvm.cli.output import (
    exit_code,
    message_of,
    say,
    write_json,
    write_lines,
    write_pairs,
)
from bisvm.cli.tasks import (
    Task,
    importances,
    machine_of,
    prepared,
    read_task,
    reading_options,
    say_how_columns_were_read,
)
from bisvm.core.interrupts import ending_on_signals
from bisvm.core.progress import ProgressLine
from bisvm.estimators.importance import Importance
from bisvm.io.files import save
from bisvm.reporting import report
from bisvm.reporting.importances import column_importance
from bisvm.reporting.words import certificates_of, spread_of
from bisvm.reporting.writing import check_can_report
from bisvm.search.history import Progress
from bisvm.tables import DataError
from bisvm.tables.checks import TableWarning
from bisvm.tables.format import remember
from bisvm.tables.preparing import relevances_by_column

# Evaluations that searches have taken, for a rough guess: with kernel="auto" on tables
# of tools/first_hour.py. That of one kernel is not measured.
EVALUATIONS = (59, 65, 86, 116, 130, 160, 162, 212, 216, 338, 579)
EVALUATIONS_OF_ONE_KERNEL = (40,)
# Warnings about a table that are shown next to the answer, the gravest first.
GRAVE = ("leak", "entity")
# Evaluations after which the time of the others is guessed.
FIRST_GUESS = 10


def run(options: Namespace) -> int:
    if options.save is not None and not options.save.resolve().parent.is_dir():
        raise DataError("there is no such folder.", path=options.save.parent)
    if options.report is not None:
        check_can_report(options.report, options.details)
    task = read_task(options)
    step = ProgressLine("")
    with _ending_with_a_model(options, step) as signals:
        model, seconds = tuned(options, task, step)
        of_test = task.kind.quality(model, task.X_test, task.y_test, task.y)
        importance = None if signals else _importance(task, model)
        remember(model, task.table.form)
        inputs = model[:-1].transform(task.X)
        said = task.kind.said(model[-1], of_test, task.y, task.y_test)
        spread = spread_of(model[-1], inputs)
        found = importance, of_test, spread, doubts(task.warnings), said
        remember_findings(model, *found)
        saved = options.save is None or _written(lambda: _save(options, model))
        interrupted = next(iter(signals), None)
    test = {"test": task.kind.figures(of_test), "seconds": seconds}
    result = {**summary(task, model), **test}
    if options.save is not None and saved:
        result["saved"] = str(options.save)
    reported = True
    if options.report is not None and interrupted is not None:
        say("note: no report, since the command was interrupted.")
    elif options.report is not None:
        reported = _written(lambda: write_report(options, task, model, seconds))
        if reported:
            result["report"] = str(options.report)
    _write(options, model, result)
    if interrupted is not None:
        return exit_code(interrupted)
    return 0 if saved and reported else 1


def _importance(task: Task, model: Pipeline) -> Importance | None:
    with ProgressLine("shuffling columns"):
        return column_importance(model, task.X, task.X_test, task.y_test, task.groups)


def _write(options: Namespace, model: Pipeline, result: dict[str, object]) -> None:
    """Write the result for people, or for machines."""
    if options.json:
        write_json(result)
    elif options.tsv:
        write_pairs(result)
    else:
        write_lines(page(model))


def _save(options: Namespace, model: Pipeline) -> None:
    save(model, options.save)
    say(
        f"Model: {options.save}, trained on the training rows. Use it by `bisvm "
        f"predict {options.save} FILE`."
    )


def _written(write: Callable[[], None]) -> bool:
    """Whether a file could be written; if not, say why, and go on with the rest.

    What was learned is printed in any case, even if the disk is full.
    """
    try:
        write()
    except OSError as error:
        say(f"bisvm: {message_of(error)}")
        return False
    return True


def _ending_with_a_model(
    options: Namespace, step: ProgressLine
) -> AbstractContextManager[list[int]]:
    """A context in which a signal ends the search, if there is a file for its model."""
    if options.save is None:
        return nullcontext([])

    def notify() -> None:
        step.text = "stopping after this evaluation (again: at once)"

    return ending_on_signals(notify)


def tuned(options: Namespace, task: Task, step: ProgressLine) -> tuple[Pipeline, float]:
    """A fitted pipeline, and the seconds it took."""
    done = count(1)

    def show(progress: Progress) -> None:
        number, seconds = next(done), progress.record.seconds
        loss, began = f"loss {progress.best_value:.4f}", step.seconds

        def detail() -> str:
            # The clock goes on during a long evaluation.
            given = number, seconds, options.kernel, options.time_limit
            left = time_left(*given, waited=step.seconds - began)
            said = (f"evaluation {number}", loss, left)
            return ", ".join(one for one in said if one)

        step.detail = detail

    # Errors of options and cells come before a line of progress.
    machine = machine_of(options, task.kind, show, options.resume)
    model = prepared(options, task, machine)
    given = {} if task.groups is None else {"machine__groups": task.groups}
    step.text = what = f"tuning on {len(task.y)} rows"
    with step:
        say_how_columns_were_read(model.fit(task.X, task.y, **given))
        seconds = step.seconds
        machine = model[-1].set_params(callback=None, checkpoint=None)
        trained, loss = machine.n_svm_evaluations_, machine.criterion_value_
        step.text = what
        step.detail = f"{trained} SVMs trained"
        if isfinite(loss):
            step.detail += f", cross-validated loss {loss:.4f}"
    return model, seconds


def time_left(
    number: int, seconds: float, kernel: str, limit: float | None, waited: float = 0.0
) -> str:
    """Say how long the search may still take; nothing if that cannot be guessed.

    It is taken to end where the median ends of those searches that have gone on longer.

    Parameters
    ----------
    number : int
        Evaluations so far.
    seconds : float
        Time from the beginning of the search to the end of the last of these.
    kernel : str
        The kernel; "auto" tries several.
    limit : float, optional
        The time limit.
    waited : float
        Time since then.
    """
    ends = EVALUATIONS if kernel == "auto" else EVALUATIONS_OF_ONE_KERNEL
    longer = [end for end in ends if end > number]
    known = number >= FIRST_GUESS and longer
    guess = (median(longer) - number) * seconds / number - waited if known else 0.0
    guessed = [guess] if guess > 0 else []
    limits = [] if limit is None else [max(limit - seconds - waited, 0.0)]
    if not guessed + limits:
        return ""
    left = min(guessed + limits)
    shown = f"{left:.0f} s" if left < 100 else f"{left / 60:.0f} min"
    return f"{shown} left at most" if [left] == limits else f"about {shown} left"


def doubts(warnings: Sequence[TableWarning]) -> list[str]:
    """Say, next to the answer, what may make it worthless."""
    grave = [one for kind in GRAVE for one in warnings if one.kind == kind]
    return [f"But: {one}" for one in grave[:1]]


def summary(task: Task, model: Pipeline) -> dict[str, object]:
    """The results, for standard output."""
    machine = model[-1]
    choice = getattr(machine, "kernel_choice_", None)
    return {
        "file": str(task.table.path),
        "target": task.target,
        "task": task.kind.task,
        **task.kind.facts(task.y),
        "rows": len(task.y) + len(task.y_test),
        "inputs": machine.n_features_in_,
        "kernel": str(machine.kernel_).split("(")[0],
        **({} if choice is None else {"kernel_choice": choice.name}),
        "hyperparameters": dict(machine.hyperparameters_),
        "importance": importances(importance_of(model)),
        "relevance": relevances_by_column(model),
        "loss": machine.criterion_value_,
        "train": task.kind.scores(model, task.X, task.y),
        "held_out": task.kind.held_out(machine),
        "expected": task.kind.expected(machine),
        "warnings": [str(one) for one in task.warnings],
        "converged": all(one.converged for one in certificates_of(machine)),
        "evaluations": len(machine.history_),
    }


# --- the report -----------------------------------------------------------------------


def write_report(
    options: Namespace, task: Task, model: Pipeline, seconds: float
) -> None:
    held_out = len(task.y_test) > 0
    with ProgressLine(f"writing {options.report}") as step:

        def show(text: str) -> None:
            step.detail = text

        report(
            model,
            task.X,
            task.y,
            options.report,
            X_test=task.X_test if held_out else None,
            y_test=task.y_test if held_out else None,
            groups=task.groups,
            title=f"Can we predict '{task.target}'?",
            details=options.details,
            warnings=[str(one) for one in task.warnings],
            positive=options.positive,
            importance=importance_of(model),
            asked={
                "file": str(options.data),
                "target": task.target,
                "held out": f"{options.test_size:.0%} of the rows, seed {options.seed}",
            },
            seconds=seconds,
            data_lines=data_lines(options, task),
            progress=show,
        )
        step.detail = ""
    say(f"Report: {options.report}. Open it in a browser.")
    if options.open and not webbrowser.open(options.report.resolve().as_uri()):
        say("note: no browser was found; open the report yourself.")


def data_lines(options: Namespace, task: Task) -> list[str]:
    """Python code that reads the table and holds out the same rows."""
    given = {**reading_options(options), "labels": options.target}
    more = [f"{name}={v!r}" for name, v in given.items() if v not in (None, [])]
    n_test, grouped = len(task.y_test), task.groups is not None
    names = ["read_table", "split_target"]
    names += ["hold_out"] * bool(n_test) + ["take_groups"] * grouped
    merge = ", merge=True" if options.merge_labels else ""
    merge += f", keep={options.keep_label!r}" if options.keep_label else ""
    lines = [
        f"from bisvm.tables import {', '.join(sorted(names))}",
        "",
        f"table = read_table({', '.join([repr(str(options.data)), *more])})",
        f"rest, y, *_ = split_target(table, {options.target!r}{merge})",
    ]
    if grouped:
        lines.append(f"rest, groups = take_groups(rest, {options.groups!r})")
    lines.append("X = rest.frame")
    return [*lines, *_held_out_lines(options, task)] if n_test else lines


def _held_out_lines(options: Namespace, task: Task) -> list[str]:
    rows = "X[{0}]" if task.table.is_sparse else "X.iloc[{0}]"
    grouped = task.groups is not None
    also = ", groups=groups" if grouped else ""
    seed = f"random_state={options.seed}"
    return [
        f"train, test = hold_out(y, {options.test_size}, {seed}{also})",
        f"X_test, y_test = {rows.format('test')}, y[test]",
        f"X, y = {rows.format('train')}, y[train]",
        *(["groups = groups[train]"] if grouped else []),
        "",
    ]
