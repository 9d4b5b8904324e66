"""bisvm explain: what a model has learned, in words."""

from __future__ import annotations

from argparse import Namespace

from sklearn.base import BaseEstimator, is_regressor
from sklearn.pipeline import Pipeline

from bisvm.cli.describing import (
    answer_of,
    columns_in_words,
    importance_of,
    learned_of,
    quality_on_test,
    wrapped,
)
from bisvm.cli.kinds import kind_of_machine
from bisvm.cli.output import one_line, write_json, write_lines
from bisvm.cli.predicting import load_pipeline, naming_the_file
from bisvm.cli.tasks import importances
from bisvm.reporting.words import certificates_of
from bisvm.tables import ColumnTypes
from bisvm.tables.preparing import columns_of, relevances_by_column

# Columns that are listed.
SHOWN = 100
PLURAL = {"category": "categorical", "date": "of dates", "number": "numeric"}


def run(options: Namespace) -> int:
    model = load_pipeline(options.model)
    with naming_the_file(options.model):
        if options.json:
            write_json(facts(model))
        else:
            write_lines(words(model))
    return 0


def facts(model: Pipeline) -> dict[str, object]:
    machine = model[-1]
    return {
        **_target(machine),
        "kernel": one_line(repr(machine.kernel_)),
        "kernel_choice": kernel_choice(machine),
        "multi_class_choice": task_choice(machine),
        "hyperparameters": machine.hyperparameters_,
        "inputs": columns_of(model),
        "importance": importances(importance_of(model)),
        "relevance": relevances_by_column(model),
        "held_out": kind_of_machine(machine).held_out(machine),
        "test": kind_of_machine(machine).figures(quality_on_test(model)),
        "left_out": dict(getattr(model[0], "dropped_", {})),
        "loss": machine.criterion_value_,
        "expected": kind_of_machine(machine).expected(machine),
        "certificates": [vars(one) for one in certificates_of(machine)],
    }


def words(model: Pipeline) -> list[str]:
    """What the page of `bisvm tune` says, and what it leaves out."""
    machine = model[-1]
    certificates = certificates_of(machine)
    dropped = getattr(model[0], "dropped_", {})
    return [
        *answer_of(model),
        "",
        *columns_in_words(model, SHOWN, every=True),
        *(f"  (column {one_line(n)!r} {why}: not used)" for n, why in dropped.items()),
        "",
        *wrapped(_about(model)),
        *wrapped(kernel_choice(machine)),
        *wrapped(task_choice(machine)),
        "Learned:",
        *wrapped([f"  {one_line(text)}" for text in learned_of(model)]),
        "",
        "Certificate:",
        *wrapped([f"  {one_line(x)}" for one in certificates for x in _lines(one)]),
    ]


def _lines(text: object) -> list[str]:
    return str(text).splitlines()


def _about(model: Pipeline) -> list[str]:
    machine = model[-1]
    support = getattr(machine, "support_", None)
    vectors = "" if support is None else f"; {len(support)} support vectors"
    return [
        _predicts(machine),
        f"{machine.n_features_in_} inputs{_kinds(model)}{vectors}.",
    ]


def _target(machine: BaseEstimator) -> dict[str, object]:
    """What the machine predicts."""
    if is_regressor(machine):
        return {"task": "regression"}
    return {"classes": list(machine.classes_)}


def _predicts(machine: BaseEstimator) -> str:
    if is_regressor(machine):
        return "A regression: it predicts a number."
    classes = [one_line(str(name)) for name in machine.classes_]
    shown = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
    return f"A classifier of {len(classes)} classes: {shown}."


def _kinds(model: Pipeline) -> str:
    if not isinstance(model[0], ColumnTypes):
        return ""
    kinds = list(model[0].kinds_.values())
    counted = [f"{kinds.count(kind)} {PLURAL[kind]}" for kind in sorted(set(kinds))]
    return f" from {len(kinds)} columns ({', '.join(counted)})"


def kernel_choice(machine: BaseEstimator) -> list[str]:
    """What kernel="auto" chose, and what it tried; nothing if a kernel was given."""
    choice = getattr(machine, "kernel_choice_", None)
    if choice is None:
        return []
    return [f"Chosen: {choice.words}.", *(f"- {s}" for s in choice.reasons)]


def task_choice(machine: BaseEstimator) -> list[str]:
    """What multi_class="auto" chose, and why; nothing if it was given."""
    choice = getattr(machine, "multi_class_choice_", None)
    return [] if choice is None else _lines(choice)
