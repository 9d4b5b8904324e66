"""bisvm explain: what a model has learned, in words."""

from __future__ import annotations

from typing import Any

from bisvm.cli.output import one_line, write_json
from bisvm.cli.predicting import load_pipeline, of_a_file
from bisvm.cli.tasks import expected
from bisvm.reporting.words import (
    certificate_in_words,
    certificates_of,
    expected_in_words,
    in_words,
)
from bisvm.tables import ColumnTypes
from bisvm.tables.preparing import columns_of, relevances_by_column

SHOWN = 20
BAR = 30


def run(options: Any) -> int:
    model = load_pipeline(options.model)
    with of_a_file(options.model):
        said = facts(model) if options.json else words(model)
    if isinstance(said, dict):
        write_json(said)
    else:
        print("\n".join(said))
    return 0


def facts(model: Any) -> dict[str, Any]:
    machine = model[-1]
    return {
        "classes": list(machine.classes_),
        "kernel": one_line(repr(machine.kernel_)),
        "kernel_choice": chosen_in_words(machine),
        "hyperparameters": machine.hyperparameters_,
        "inputs": columns_of(model),
        "relevance": relevances_by_column(model),
        "left_out": dict(getattr(model[0], "dropped_", {})),
        "loss": machine.criterion_value_,
        "expected": expected(machine),
        "certificates": [vars(one) for one in certificates_of(machine)],
    }


def words(model: Any) -> list[str]:
    """Lines for people."""
    return [
        *_about(model),
        "",
        *_hyperparameters(model),
        "",
        *_relevance(model),
        "",
        *_certificate(model[-1]),
    ]


def _about(model: Any) -> list[str]:
    machine = model[-1]
    classes = [one_line(str(name)) for name in machine.classes_]
    shown = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
    vectors = getattr(machine, "support_", None)
    of = "" if vectors is None else f", made of {len(vectors)} support vectors"
    promised = getattr(machine, "expected_score_", None)
    return [
        f"A classifier of {len(classes)} classes: {shown}.",
        f"{machine.n_features_in_} inputs{_kinds(model)}{of}.",
        *([] if promised is None else [expected_in_words(promised)]),
    ]


def _kinds(model: Any) -> str:
    if not isinstance(model[0], ColumnTypes):
        return ""
    kinds = list(model[0].kinds_.values())
    plural = {"category": "categories", "date": "dates", "number": "numbers"}
    counted = [f"{kinds.count(kind)} of {plural[kind]}" for kind in sorted(set(kinds))]
    return f" from {len(kinds)} columns ({', '.join(counted)})"


def _hyperparameters(model: Any) -> list[str]:
    machine = model[-1]
    lines = [*chosen_in_words(machine), "Learned on held-out rows:"]
    for name, value in machine.hyperparameters_.items():
        lines.append(f"  {in_words(name, value)}")
    return lines


def chosen_in_words(machine: Any) -> list[str]:
    """What kernel="auto" chose, and why; nothing where the kernel was given."""
    choice = getattr(machine, "kernel_choice_", None)
    return [] if choice is None else str(choice).splitlines()


def _relevance(model: Any) -> list[str]:
    shares = relevances_by_column(model)
    if not shares:
        return ["This kernel has no relevances of columns."]
    names = [one_line(name) for name in list(shares)[:SHOWN]]
    width = min(max(map(len, names)), 40)
    most = max(max(shares.values()), 1e-300)
    lines = ["Columns by their share in what the decision depends on:"]
    for name, share in zip(names, shares.values(), strict=False):
        bar = "#" * round(BAR * share / most)
        lines.append(f"  {name[:width]:<{width}}  {share:6.1%}  {bar}".rstrip())
    if len(shares) > SHOWN:
        rest = sum(list(shares.values())[SHOWN:])
        lines.append(f"  {f'the other {len(shares) - SHOWN}':<{width}}  {rest:6.1%}")
    for name, why in getattr(model[0], "dropped_", {}).items():
        lines.append(f"  (column {one_line(name)!r} {why}: left out)")
    return lines


def _certificate(machine: Any) -> list[str]:
    every = [certificate_in_words(one) for one in certificates_of(machine)]
    return [line for first, *rest in every for line in (one_line(first), *rest)]
