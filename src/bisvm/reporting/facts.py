"""Everything that a report states, collected before the page is written."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import Pipeline

from bisvm.core.types import Array, UserData, UserVector
from bisvm.data.matrices import RowBlocks
from bisvm.estimators.importance import Importance
from bisvm.estimators.inputs import in_blocks
from bisvm.estimators.pipelines import inputs_of_last_step, last_step
from bisvm.estimators.quality import Quality
from bisvm.plots import relevance_data
from bisvm.reporting import pictures
from bisvm.reporting.code import rebuild_lines, relearn_lines
from bisvm.reporting.curves import thresholds_of
from bisvm.reporting.dependence import dependences
from bisvm.reporting.importances import (
    coefficients,
    column_importance,
    most_important,
)
from bisvm.reporting.pictures import Picture
from bisvm.reporting.scores import (
    losses_of,
    measured,
    quality_of,
    reliability_of,
    share_of,
)
from bisvm.reporting.summary import describe
from bisvm.reporting.words import (
    TEST_ROWS,
    TRAINING_ROWS,
    answer,
    beats_guessing,
    certificates_of,
    difference_in_words,
    expected_in_words,
    free_values,
    learned_in_words,
    remarks_on,
    spread_of,
    standing,
    threshold_in_words,
    verdict_beside_guessing,
    verdict_in_words,
)
from bisvm.search.history import Certificate
from bisvm.selection.comparison import (
    GUESSING,
    Entry,
    Rows,
    balanced_difference,
    disagreement,
    fixed,
    folds_of,
    grid_entry,
    own_entry,
    predicted_on_folds,
    rival_entry,
    rows_for,
)
from bisvm.tables import ColumnTypes
from bisvm.tables.preparing import relevances_by_column

PACKAGES = ("bisvm", "numpy", "scipy", "scikit-learn", "numba", "pandas", "matplotlib")
# With more rows a single SVC takes too long for a report.
MOST_ROWS = 10_000
# Sections of the page, by the names of their anchors.
CLASS_SECTIONS = {
    "short": "In short",
    "methods": "Other methods",
    "classes": "Classes",
    "thresholds": "Thresholds",
    "probabilities": "Probabilities",
    "columns": "Columns",
    "details": "Technical details",
}
# Bins of probabilities that show a relation; one or two say little.
LEAST_BINS = 3
# Columns whose partial dependence is shown.
DEPENDENCES = 3


class Asked(NamedTuple):
    """What a report was asked for, in addition to the model and its data.

    settings : further settings to show
    warnings : doubts about the table
    positive : the class of interest of two
    importance : of the columns, if it is known already
    details : whether to compute what takes long: a grid search and the landscape
    """

    settings: Mapping[str, str]
    compare: bool
    details: bool
    max_seconds: float
    warnings: Sequence[str] = ()
    positive: str | None = None
    importance: Importance | None = None


class Gathered(NamedTuple):
    """What is known of a model before a page is written.

    asked : what the report was asked for
    rows : inputs as the machine sees them
    own, entries : results of the model, and of other methods
    seconds, budget : duration of the tuning, and of a grid search
    not_compared : why there are no other methods, or None
    spread : of the inputs, to which one width of all is relative
    """

    model: BaseEstimator
    machine: BaseEstimator
    X: UserData
    asked: Asked
    rows: Rows
    own: Entry
    entries: list[Entry]
    seconds: float
    budget: float
    not_compared: str | None
    spread: Array | None
    fit_params: Mapping[str, UserVector]
    progress: Callable[[str], None]


def gather(
    model: BaseEstimator,
    X: UserData,
    y: Array,
    X_test: UserData,
    y_test: Array | None,
    *,
    asked: Asked,
    seconds: float | None,
    fit_params: Mapping[str, UserVector],
    progress: Callable[[str], None],
) -> Gathered:
    """Fit other methods, and collect what all pages need."""
    machine = last_step(model)
    rows = _rows(model, machine, X, y, X_test, y_test, fit_params)
    if seconds is None:
        seconds = max((record.seconds for record in machine.history_), default=0.0)
    reason = _why_not(machine, rows) if asked.compare else "compare=False"
    budget = min(seconds, asked.max_seconds)
    entries = [] if reason else _entries(rows, budget, asked.details, progress)
    progress("predicting test rows")
    spread = spread_of(machine, rows.X, rows.sample_weight)
    own = own_entry(machine, rows, seconds)
    own = replace(own, tuned=free_values(machine, spread))
    return Gathered(
        *(model, machine, X, asked, rows, own, entries, seconds, budget, reason),
        spread,
        fit_params,
        progress,
    )


def class_facts(found: Gathered, X_test: UserData) -> dict[str, Any]:
    """Collect what the page on classes states, by the names that it uses.

    bars : the compared methods with intervals, and whether they differ from the model
    confusion : counts, labels, and on which rows; or None
    """
    machine, rows, own, asked = found.machine, found.rows, found.own, found.asked
    held_out, y_test = getattr(machine, "quality_", None), rows.y_test
    on_test = None if y_test is None else quality_of(machine, rows.X_test, y_test)
    quality = on_test or held_out
    thresholds = None
    if y_test is not None:
        thresholds = thresholds_of(machine, rows.X_test, y_test, asked.positive)
    judged = None if y_test is None else reliability_of(machine, rows.X_test, y_test)
    if judged is not None and len(judged.rows) < LEAST_BINS:
        judged = None
    confusion, every = _confusion(machine, rows), [*found.entries, own]
    bars = _bars(every, own, rows, quality, beats_guessing(held_out, on_test))
    shown = {
        "methods": len(bars) > 1 or found.not_compared,
        "classes": quality or confusion,
        "thresholds": thresholds,
        "probabilities": judged,
    }
    return {
        **common_facts(found, X_test),
        "contents": contents(CLASS_SECTIONS, {k: bool(v) for k, v in shown.items()}),
        "answer": answer(held_out, on_test),
        "remarks": remarks_on(held_out, on_test),
        "threshold_words": None
        if getattr(machine, "threshold", None) is None
        else threshold_in_words(machine),
        "quality": quality,
        "in_folds": own.cross_validated if held_out is None else held_out.accuracy,
        "guessing": held_out is not None and held_out.no_better_than_guessing,
        "bars": bars,
        "standing": standing_of(bars),
        "differences": [
            difference_in_words(own, other, not (quality and quality.balanced))
            for other in found.entries
        ],
        "expected": expected_in_words(machine),
        "train": share_of(np.asarray(machine.predict(rows.X) == rows.y)),
        "test": None if own.scores is None else share_of(own.scores),
        "losses": None if y_test is None else losses_of(machine, rows.X_test, y_test),
        "confusion": confusion,
        "thresholds": thresholds,
        "reliability": judged,
    }


def common_facts(found: Gathered, X_test: UserData) -> dict[str, Any]:
    """Collect what all pages state.

    entries : the compared methods, the model itself (`own`) last
    pictures : by name; a text is the reason why there is no picture
    """
    model, machine, X, asked = found.model, found.machine, found.X, found.asked
    rows, progress, fit_params = found.rows, found.progress, found.fit_params
    importance = asked.importance
    if importance is None:
        progress("shuffling columns")
        importance = column_importance(
            model, X, X_test, rows.y_test, fit_params.get("groups")
        )
    progress("changing columns")
    first = [] if importance is None else list(importance.names[:DEPENDENCES])
    certificates = certificates_of(machine)
    return dict(
        machine=machine,
        warnings=list(asked.warnings),
        data=describe(model, machine, X, rows.y, rows.y_test),
        settings=_settings(machine, asked.settings, len(rows.folds), found.own),
        own=found.own,
        entries=[*found.entries, found.own],
        on_folds=_on_folds(found),
        threshold_words=None,
        not_compared=found.not_compared,
        budget=found.budget,
        seconds=found.seconds,
        importance=importance,
        most_important=None if importance is None else most_important(importance),
        coefficients=_coefficients(model, machine),
        dependences=dependences(model, X, first, asked.positive),
        learned=learned_in_words(machine, found.spread),
        relevances=_relevances(model, machine),
        pictures=_pictures(model, machine, rows, asked.details, fit_params, progress),
        certificates=[(one, _certificate_terms(one)) for one in certificates],
        relearn=relearn_lines(model, list(fit_params)),
        splits_matter=_splits_matter(machine),
        rebuild=rebuild_lines(model, list(fit_params)),
        versions=_versions(),
    )


def _on_folds(found: Gathered) -> bool:
    """Whether methods can be compared on the folds, or are not compared at all."""
    others = [one.cross_validated is not None for one in found.entries]
    return any(others) or not others


def _splits_matter(machine: BaseEstimator) -> str:
    """What of a model depends on its folds, if `fixed` has others."""
    held = fixed(machine)
    if held is None or getattr(held, "cv", None) == getattr(machine, "cv", None):
        return ""
    if hasattr(machine, "predict_proba"):
        return "Probabilities"
    return "Prediction intervals" if hasattr(machine, "predict_interval") else ""


def contents(
    sections: Mapping[str, str], shown: Mapping[str, bool]
) -> list[tuple[str, str]]:
    """Return sections with their titles; those that `shown` does not name are shown."""
    return [pair for pair in sections.items() if shown.get(pair[0], True)]


def _entries(
    rows: Rows, budget: float, details: bool, progress: Callable[[str], None]
) -> list[Entry]:
    """Usual methods, and with details a grid search of the same duration."""
    progress("fitting usual methods")
    # Test rows are the fair comparison; folds take longer.
    alone = rows.y_test is None
    entries = [rival_entry(*pair, rows, alone) for pair in rows.rivals().items()]
    if details:
        progress(f"grid search for {budget:.1f} s")
        entries.append(grid_entry(rows, seconds=budget))
    return entries


class Bar(NamedTuple):
    """A method, its measure with a 95% interval, and how it compares with the model.

    low and high are None for cross-validated figures, whose rows are not independent.
    """

    method: str
    value: float
    low: float | None
    high: float | None
    verdict: str


def standing_of(bars: Sequence[Bar]) -> list[str]:
    """Which other methods are as good, if they are compared on the same rows."""
    return standing({one.method: one.verdict for one in bars if one.verdict})


def _bars(
    entries: Sequence[Entry],
    own: Entry,
    rows: Rows,
    quality: Quality | None,
    answered: bool,
) -> list[Bar]:
    """The methods by the measure that matters; `answered` is the answer of the page."""
    balanced = quality is not None and quality.balanced
    guess = next((one.scores for one in entries if one.method == GUESSING), None)
    found = []
    for one in entries:
        if one.scores is not None and rows.y_test is not None:
            share = measured(one.scores, rows.y_test, balanced)
            verdict = "" if one is own else _verdict(own, one, rows.y_test, balanced)
            low: float | None = share.low
            high: float | None = share.high
            # Another method may predict the same for all rows as guessing does.
            if one is not own and guess is not None and (one.scores == guess).all():
                verdict = verdict_beside_guessing(answered, verdict)
                # The balanced accuracy of one class for all rows is certain.
                low, high = (None, None) if balanced else (low, high)
            found.append(Bar(one.method, share.value, low, high, verdict))
        elif one.cross_validated is not None:
            found.append(Bar(one.method, one.cross_validated, None, None, ""))
    return found


def _verdict(own: Entry, other: Entry, y: Array, balanced: bool) -> str:
    assert own.scores is not None and other.scores is not None
    if balanced:
        change, chance = balanced_difference(own.scores, other.scores, y)
        return verdict_in_words(change > 0, chance)
    gained, lost, chance = disagreement(own.scores, other.scores)
    return verdict_in_words(gained > lost, chance)


def _coefficients(
    model: BaseEstimator, machine: BaseEstimator
) -> dict[str, float] | None:
    linear = hasattr(machine, "feature_scale_") and hasattr(machine, "coef_")
    return coefficients(model) if linear else None


def _pictures(
    model: BaseEstimator,
    machine: BaseEstimator,
    rows: Rows,
    details: bool,
    fit_params: Mapping[str, UserVector],
    progress: Callable[[str], None],
) -> dict[str, Picture | str]:
    """Pictures that matplotlib draws, which takes a second or more."""
    found: dict[str, Picture | str] = {}
    if getattr(machine, "group_names_", None) is not None:
        found["groups"] = pictures.group_weights(machine)
    with suppress(ValueError, ImportError):  # Most machines have no filters.
        found["filters"], found["responses"] = pictures.filters(machine)
    if not details or not machine.history_:
        return found
    progress("drawing the search")
    rename = _rename(model)
    makers: dict[str, Callable[[], Picture]] = {
        "convergence": partial(pictures.convergence, machine),
        "paths": partial(pictures.paths, machine, rename),
        "landscape": partial(
            pictures.landscape, machine, rows.X, rows.y, rename, **fit_params
        ),
    }
    return {**found, **{name: pictures.attempt(make) for name, make in makers.items()}}


def _rows(
    model: BaseEstimator,
    machine: BaseEstimator,
    X: UserData,
    y: Array,
    X_test: UserData,
    y_test: Array | None,
    fit_params: Mapping[str, UserVector],
) -> Rows:
    """Inputs as the machine sees them, after the pipeline, one row for each sample."""

    def inputs(X: UserData) -> UserData:
        X = inputs_of_last_step(model, X)
        shape = np.shape(X) if isinstance(X, np.ndarray) else ()
        return X.reshape(shape[0], -1) if len(shape) > 2 else in_blocks(X)

    own = inputs(X)
    return rows_for(machine)(
        own,
        y,
        None if y_test is None else inputs(X_test),
        y_test,
        folds_of(machine, own, y, fit_params.get("groups")),
        fit_params.get("sample_weight"),
    )


def _why_not(machine: BaseEstimator, rows: Rows) -> str | None:
    """Why no other methods can be tried, or None."""
    if getattr(machine, "_pairwise", False):
        return "the kernel is precomputed"
    if isinstance(rows.X, RowBlocks):
        return "the rows are not in memory"
    if len(rows.y) > MOST_ROWS:
        return f"an SVM would take too long on {len(rows.y):,} rows"
    return None


def _confusion(
    machine: BaseEstimator, rows: Rows
) -> tuple[Array, list[str], str] | None:
    """Counts on test rows, or else in cross-validation."""
    labels = [str(label) for label in machine.classes_]
    y, where = rows.y_test, f"on {TEST_ROWS}"
    predicted: Array | None
    if y is not None:
        known = np.isin(y, machine.classes_)
        y, predicted = y[known], machine.predict(rows.X_test)[known]
    else:
        y, predicted = rows.y, predicted_on_folds(machine, rows)
        where = f"on {TRAINING_ROWS}"
    if predicted is None:
        return None
    return confusion_matrix(y, predicted, labels=machine.classes_), labels, where


def _relevances(
    model: BaseEstimator, machine: BaseEstimator
) -> dict[str, float] | None:
    """Relevances by column, the largest first; inputs of one name are added up."""
    if isinstance(model, Pipeline) and isinstance(model[0], ColumnTypes):
        return relevances_by_column(model)
    if getattr(machine, "relevance_", None) is None:
        return None
    data = relevance_data(model)
    shares: dict[str, float] = {}
    for name, value in zip(data.names, data.values, strict=True):
        shares[name] = shares.get(name, 0.0) + value
    return dict(sorted(shares.items(), key=lambda pair: -pair[1]))


def _rename(model: BaseEstimator) -> Callable[[str], str]:
    """Remove the names of the pipeline's steps from names of hyperparameters."""
    if not (isinstance(model, Pipeline) and isinstance(model[0], ColumnTypes)):
        return str
    steps = re.compile(r"\[(?:numbers|categories)__")
    return lambda name: steps.sub("[", name, count=1)


def _settings(
    machine: BaseEstimator, asked: Mapping[str, str], n_folds: int, own: Entry
) -> dict[str, object]:
    kernel = getattr(machine, "kernel", "linear")
    choice = getattr(machine, "kernel_choice_", None)
    tasks = getattr(machine, "multi_class_choice_", None)
    members = getattr(machine, "estimators_", None)
    settings = {
        **asked,
        "estimator": type(machine).__name__,
        "kernel": kernel if isinstance(kernel, str) else _short(repr(kernel)),
        "chosen kernel": None if choice is None else choice.words,
        "kernels tried": None
        if choice is None or not choice.steps
        else " ".join(choice.reasons),
        "chosen class tasks": None if tasks is None else tasks.words,
        "reason for class tasks": None if tasks is None else tasks.reason,
        "folds": n_folds,
        "criterion": machine.criterion,
        "learned hyperparameters": _learned(own.tuned, machine),
        "ensemble": None
        if members is None
        else f"{len(members)} machines, each tuned on its own folds; the mean of their "
        "decision values decides. Hyperparameters and search are those of the first.",
        "duration": f"{own.seconds:.2f} s, {len(machine.history_)} evaluations",
        "report written": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %z"),
    }
    return {name: value for name, value in settings.items() if value is not None}


def _learned(free: int, machine: BaseEstimator) -> str:
    """How many values were learned, and how many were searched if these are more."""
    searched = len(getattr(machine, "coordinates_", ()))
    return str(free) if free == searched else f"{free} ({searched} searched)"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 160 else text[:159] + "…"


def _certificate_terms(one: Certificate) -> dict[str, str]:
    terms = {
        "why the search ended": one.reason,
        "residual of the final machine": f"{one.final_residual:.1e}",
        "residual of the machines on the folds": f"{one.lower_residual:.1e}",
        "gradient of the validation loss": f"{one.upper_gradient:.1e} of its value",
        "error of the loss by the residuals": f"{one.criterion_error:.1e} of its value",
    }
    more = len(one.at_bounds) - 5
    bounds = [*one.at_bounds[:5], *([f"and {more} more"] if more > 0 else [])]
    return {**terms, "at bounds": "; ".join(bounds)} if bounds else terms


def _versions() -> dict[str, str]:
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["processors"] = str(os.cpu_count())
    return found
