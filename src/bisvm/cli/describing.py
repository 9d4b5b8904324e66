"""A model in words: the page that `tune` and `explain` print."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.pipeline import Pipeline

from bisvm.cli.kinds import kind_of_machine
from bisvm.cli.output import one_line
from bisvm.core.types import Array
from bisvm.estimators.importance import Importance
from bisvm.estimators.quality import cut
from bisvm.reporting.importances import coefficients
from bisvm.reporting.words import TEST_ROWS, certificates_of, learned_in_words
from bisvm.search.history import Certificate
from bisvm.search.reasons import GUESSING, TIME_STOP, default_machine
from bisvm.tables.format import remembered
from bisvm.tables.preparing import relevances_by_column

# Lines of the page, of its classes and of its columns; a terminal shows 25.
MOST_LINES, CLASSES, COLUMNS = 25, 6, 6
# Characters of a line of prose.
WIDTH = 88
# The length of the longest bar, and of the longest name.
BAR, NAME = 20, 30
# A smaller loss of accuracy is shown as 0.0 points.
NO_EFFECT = 0.0005
# Attributes of a pipeline that hold what was found with its data.
IMPORTANCE, TEST_QUALITY, SPREAD = "importance_", "test_quality_", "spread_"
DOUBTS, SAID = "doubts_", "said_of_test_rows_"


def remember_findings(
    model: Pipeline,
    importance: Importance | None,
    test: object,
    spread: Array | None = None,
    doubts: Sequence[str] = (),
    said: Sequence[str] = (),
) -> None:
    """Store findings that need the data with a fitted pipeline.

    test : `TargetKind.quality` of the test rows
    doubts : what may make the answer worthless
    said : `TargetKind.said` of the test rows
    spread : `bisvm.reporting.words.spread_of` the inputs
    """
    setattr(model, IMPORTANCE, importance)
    setattr(model, TEST_QUALITY, test)
    setattr(model, SPREAD, spread)
    setattr(model, DOUBTS, list(doubts))
    setattr(model, SAID, list(said))


def importance_of(model: Pipeline) -> Importance | None:
    """The importances stored with a model, if there are any."""
    found: Importance | None = getattr(model, IMPORTANCE, None)
    return found


def quality_on_test(model: Pipeline) -> Any:
    """The quality on test rows stored with a model, if it is known."""
    return getattr(model, TEST_QUALITY, None)


def learned_of(model: Pipeline) -> list[str]:
    """The learned values, in units of the inputs if these are stored with a model."""
    return learned_in_words(model[-1], getattr(model, SPREAD, None))


def page(model: Pipeline) -> list[str]:
    """At most 25 lines: how good it is, what it uses, what was learned."""
    machine = model[-1]
    head = answer_of(model)
    tail = ["", *wrapped([*_learned(model), *_certificate(machine)])]
    # A blank line, two of the head of the columns, and two that may follow them.
    room = MOST_LINES - len(head) - len(tail) - 5
    return [*head, "", *columns_in_words(model, max(min(COLUMNS, room), 1)), *tail]


def answer_of(model: Pipeline) -> list[str]:
    """Whether the target can be predicted, and how well."""
    first, *others = [*_verdict(model), ""]
    doubts, said = (getattr(model, one, []) for one in (DOUBTS, SAID))
    return [*wrapped([first, *doubts, *others, *said]), *_quality(model)]


def wrapped(lines: Sequence[str]) -> list[str]:
    """Lines of prose that fit into a terminal."""
    return [
        part
        for line in lines
        for part in textwrap.wrap(
            line, WIDTH, subsequent_indent=_indent(line), break_on_hyphens=False
        )
    ]


def _verdict(model: Pipeline) -> list[str]:
    machine, form = model[-1], remembered(model)
    name = "the target" if form is None or form.target is None else repr(form.target)
    test, kind = quality_on_test(model), kind_of_machine(machine)
    said = kind.answer(machine, test)
    lines = [] if said is None else [f"Can {one_line(name)} be predicted? {said}"]
    if _is_default(machine):
        lines.append(f"Not tuned: {_ended(machine)[0].lower()}{_ended(machine)[1:]}")
    more = kind.threshold_words(machine), kind.expected_words(machine)
    remarks = kind.remarks(machine, test)
    return [*lines, *remarks, *(one for one in more if one is not None)]


def _indent(line: str) -> str:
    return "  " + line[: len(line) - len(line.lstrip())]


def _quality(model: Pipeline) -> list[str]:
    """Recall and precision of the classes, those with the lowest recall first."""
    machine = model[-1]
    test = quality_on_test(model)
    found = kind_of_machine(machine).by_class(machine, test)
    if found is None:
        return []
    rows = "rows" if test is None else TEST_ROWS
    head, *classes = [one_line_kept(line) for line in found.table(rows)]
    where = "the same rows" if test is None else f"the {TEST_ROWS}"
    summary = wrapped([found.summary(where)])
    if len(classes) <= CLASSES:
        return [head, *classes, *summary]
    recall = np.nan_to_num(found.recall, nan=np.inf)
    worst = np.argsort(recall, kind="stable")[: CLASSES - 1]
    more = f"  and {len(classes) - len(worst)} more classes with a higher recall"
    return [head, *(classes[k] for k in worst), more, *summary]


def one_line_kept(line: str) -> str:
    """A line without control characters; its spaces stay."""
    return "".join(c if c.isprintable() else " " for c in line)


def columns_in_words(model: Pipeline, most: int, every: bool = False) -> list[str]:
    """Columns with the importances that are known, or with their relevances.

    every : whether to show columns without an effect, too
    """
    found = importance_of(model)
    if found is None:
        return _relevances(model, most)
    if not found.values.any():
        return ["No prediction changes if a column is shuffled."]
    head = f"{found.meaning}:"
    low, high = found.interval()
    width = min(max(len(one_line(name)) for name in found.names[:most]), NAME)
    signs = _signs(model)
    lines = wrapped([head])
    # The first column is shown in any case.
    effects = np.abs(found.values) >= NO_EFFECT
    shown = min(most, len(effects) if every else max(int(np.sum(effects)), 1))
    figures = [
        [found.in_words(one) for one in (found.values[k], low[k], high[k])]
        for k in range(shown)
    ]
    widest = max(5, *(len(value) for value, _, _ in figures))
    for k, name in enumerate(found.names[:shown]):
        bar = "#" * round(BAR * max(found.values[k], 0.0) / max(found.values[0], 1e-9))
        value, a, b = figures[k]
        text = f"{value:>{widest}} ({a} to {b})"
        label, sign = cut(one_line(name), width), signs.get(name, "") * bool(effects[k])
        line = f"  {label:<{width}} {text:<{widest + 18}} {bar:<{BAR}} {sign}"
        lines.append(line.rstrip())
    more = len(found.names) - shown
    lines += _rest(more, "" if effects[shown:].any() else ", without effect")
    if not low.max() > 0:
        # Without this, the longest bar would look like a finding.
        lines.append("  Each of these falls may be chance: all intervals contain zero.")
    return lines


def _signs(model: Pipeline) -> dict[str, str]:
    """What higher values of a column mean, for linear machines."""
    found = coefficients(model)
    if found is None:
        return {}
    if is_regressor(model[-1]):
        words = {True: "more if higher", False: "less if higher"}
        return {name: words[value > 0] for name, value in found.items()}
    classes = [one_line(str(name)) for name in model[-1].classes_]
    return {name: f"{classes[value > 0]!r} if higher" for name, value in found.items()}


def _relevances(model: Pipeline, most: int) -> list[str]:
    shares = relevances_by_column(model)
    if not shares:
        return ["The relevance of columns is not known for this kernel."]
    names = [cut(one_line(name), NAME) for name in list(shares)[:most]]
    width, largest = max(map(len, names)), max(max(shares.values()), 1e-300)
    lines = ["Relevance of the columns (their share in the slope of the decision):"]
    for name, share in zip(names, shares.values(), strict=False):
        bar = "#" * round(BAR * share / largest)
        lines.append(f"  {name:<{width}}  {share:6.1%}  {bar}".rstrip())
    return lines + _rest(len(shares) - most)


def _rest(count: int, more: str = "") -> list[str]:
    return [f"  and {count} more column{'s' * (count > 1)}{more}"] if count > 0 else []


def _learned(model: Pipeline) -> list[str]:
    machine = model[-1]
    if _is_default(machine):
        return [f"Default: {one_line(text)}" for text in learned_of(model)[:2]]
    choice = getattr(machine, "kernel_choice_", None)
    kernel = [] if choice is None else [f"Chosen: {choice.words}."]
    learned = learned_of(model)
    more = [f"and {len(learned) - 2} more"] if len(learned) > 2 else []
    return [*kernel, *(f"Learned: {one_line(text)}" for text in learned[:2]), *more]


def _certificate(machine: BaseEstimator) -> list[str]:
    worst = _worst(machine)
    if worst.converged:
        at = [*worst.at_bounds[:1]]
        return [
            " ".join(["The search has converged", *(f"({one})" for one in at)]) + "."
        ]
    if _is_default(machine):
        return []
    if worst.why == GUESSING:
        return [
            "The loss is not lower than that of a constant beyond chance, so what was "
            "learned means little."
        ]
    return [f"The search has not converged: {_ended(machine)}"]


def _worst(machine: BaseEstimator) -> Certificate:
    certificates = certificates_of(machine)
    return next((one for one in certificates if not one.converged), certificates[0])


def _ended(machine: BaseEstimator) -> str:
    """Why the search ended, and what to do about it."""
    late = _worst(machine).why == TIME_STOP or _is_default(machine)
    return one_line(_worst(machine).reason) + " Raise --time-limit." * late


def _is_default(machine: BaseEstimator) -> bool:
    """Whether the time limit has left a machine with default values."""
    return _worst(machine).why in [default_machine(name) for name in ("SVC", "SVR")]
