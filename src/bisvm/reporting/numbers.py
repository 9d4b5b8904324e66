"""What a report states of a model that predicts numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import r2_score

from bisvm.core.types import Array, UserData
from bisvm.estimators.number_quality import NumberQuality
from bisvm.estimators.quality import NORMAL
from bisvm.reporting.axes import Axis
from bisvm.reporting.facts import (
    Bar,
    Gathered,
    common_facts,
    contents,
    standing_of,
)
from bisvm.reporting.words import (
    TEST_ROWS,
    TRAINING_ROWS,
    answer_on_numbers,
    expected_fit_in_words,
    held_out_verdict,
    verdict_beside_guessing,
    verdict_in_words,
)
from bisvm.selection.comparison import (
    MEAN,
    Entry,
    paired_difference,
    predicted_on_folds,
)

SECTIONS = {
    "short": "In short",
    "methods": "Other methods",
    "predictions": "Predictions",
    "columns": "Columns",
    "details": "Technical details",
}
# Levels of the intervals, and the one that is drawn.
LEVELS, DRAWN = (0.8, 0.9, 0.95), 0.9
# Bars of R^2 are drawn from here at the lowest; an arrow marks what is cut off.
LOWEST = -1.0
# Points and intervals that are drawn.
POINTS, BARS = 400, 50


class Coverage(NamedTuple):
    """Share of rows in intervals of one level, and the median width of these.

    scaled_covered, scaled_width : of locally scaled intervals; None if there are none
    """

    level: float
    covered: float
    width: float
    scaled_covered: float | None
    scaled_width: float | None


class Chart(NamedTuple):
    """Points between axes from 0 to 1, with a dashed line and upright bars.

    x_ticks, y_ticks : places on the axes, and what is written there
    line : heights of the dashed line at both ends
    bars : (x, low, high)
    """

    name: str
    caption: str
    x_label: str
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    points: list[tuple[float, float]]
    line: tuple[float, float] | None = None
    bars: Sequence[tuple[float, float, float]] = ()


def number_facts(found: Gathered, X_test: UserData) -> dict[str, Any]:
    """Collect what the page on numbers states, by the names that it uses.

    fit : on the test rows, or else in cross-validation; `where` says which
    bars : the compared methods with intervals, and whether they differ from the model
    lowest : where their axis begins
    verdict : whether errors on test rows are those expected, and a text; or None
    coverage : of the intervals on test rows
    plots : frames of predictions, residuals and intervals
    folds : R^2 in cross-validation, if it is known
    """
    machine, rows, own = found.machine, found.rows, found.own
    several = rows.y.ndim > 1
    judged = None if several else _judged(machine, found)
    fit = None if judged is None else NumberQuality.of(*judged, float(rows.y.mean()))
    y_test = None if several else rows.y_test
    bounds = None if y_test is None else _bounds(machine, rows.X_test)
    bars = [] if several else _bars([*found.entries, own], found, fit)
    plots = [] if judged is None else _plots(*judged, bounds)
    coverage = []
    if bounds is not None and y_test is not None:
        coverage = [_coverage(machine, rows.X_test, y_test, p) for p in LEVELS]
    shown = {
        "methods": bool(len(bars) > 1 or found.not_compared),
        "predictions": bool(plots),
    }
    where, verdict = TRAINING_ROWS if rows.y_test is None else TEST_ROWS, None
    if fit is not None and y_test is not None:
        verdict = held_out_verdict(machine, rows.y, y_test, fit.r2, fit.rmse)
    return {
        **common_facts(found, X_test),
        "contents": contents(SECTIONS, shown),
        "answer": None if fit is None else answer_on_numbers(fit, where),
        "fit": fit,
        "where": where,
        "bars": bars,
        "lowest": _lowest(bars),
        "standing": standing_of(bars),
        "verdict": verdict,
        "expected": expected_fit_in_words(machine),
        "train": float(r2_score(rows.y, machine.predict(rows.X))),
        "coverage": coverage,
        "plots": plots,
        "folds": getattr(machine, "quality_", None),
        "target": _target(rows.y, rows.y_test),
        "target_range": (float(rows.y.min()), float(rows.y.max())),
    }


def _judged(machine: BaseEstimator, found: Gathered) -> tuple[Array, Array] | None:
    """y and predictions of test rows, or else of rows by machines without them."""
    rows = found.rows
    if rows.y_test is not None:
        return rows.y_test, machine.predict(rows.X_test)
    predicted = predicted_on_folds(machine, rows)
    return None if predicted is None else (rows.y, predicted)


def _bars(
    entries: Sequence[Entry], found: Gathered, fit: NumberQuality | None
) -> list[Bar]:
    rows, own, bars = found.rows, found.own, []
    for one in entries:
        if one.scores is not None and own.scores is not None:
            n = len(one.scores)
            error = float(one.scores.std(ddof=1)) / n**0.5 if n > 1 else 0.0
            value = float(one.scores.mean())
            low, high = value - NORMAL * error, min(value + NORMAL * error, 1.0)
            text = "" if one is own else _verdict(own.scores, one.scores)
            if one.method == MEAN and fit is not None:
                text = verdict_beside_guessing(fit.low > 0, text)
            bars.append(Bar(one.method, value, low, high, text))
        elif one.cross_validated is not None and rows.y_test is None:
            bars.append(Bar(one.method, one.cross_validated, None, None, ""))
    return bars


def _lowest(bars: Sequence[Bar]) -> float:
    """Where the axis of the bars begins: at 0, or at a tenth below all of them."""
    ends = [one.value if one.low is None else one.low for one in bars]
    least = float(np.floor(10.0 * min(ends, default=0.0)) / 10.0)
    return min(max(least, LOWEST), 0.0)


def _verdict(own: Array, other: Array) -> str:
    change, chance = paired_difference(own, other)
    return verdict_in_words(change > 0, chance)


def _bounds(machine: BaseEstimator, X: UserData) -> tuple[Array, Array] | None:
    """Lower and upper bounds; None for a machine without held-out rows."""
    if not hasattr(machine, "predict_interval"):
        return None
    low, high = machine.predict_interval(X, DRAWN).T
    return low, high


def _coverage(machine: BaseEstimator, X: UserData, y: Array, level: float) -> Coverage:
    plain = _held(machine.predict_interval(X, level), y)
    try:
        scaled: Sequence[float | None]
        scaled = _held(machine.predict_interval(X, level, scaled=True), y)
    except ValueError:
        scaled = (None, None)
    return Coverage(level, *plain, *scaled)


def _held(bounds: Array, y: Array) -> tuple[float, float]:
    low, high = bounds.T
    return float(np.mean((low <= y) & (y <= high))), float(np.median(high - low))


def _plots(
    y: Array, predicted: Array, bounds: tuple[Array, Array] | None
) -> list[Chart]:
    rows = np.random.default_rng(0).permutation(len(y))[:POINTS]
    found = [_against(y[rows], predicted[rows]), _residuals(y[rows], predicted[rows])]
    if bounds is not None:
        some = rows[:BARS]
        low, high = bounds
        found.append(_intervals(y[some], predicted[some], low[some], high[some]))
    return found


def _pairs(x: Array, y: Array) -> list[tuple[float, float]]:
    return list(zip(x.tolist(), y.tolist(), strict=True))


def _against(y: Array, predicted: Array) -> Chart:
    axis = Axis.of(y, predicted)
    return Chart(
        "Predicted and true numbers",
        "True numbers (vertical) over predicted ones. On the dashed line, they are "
        "equal.",
        "predicted",
        axis.ticks,
        axis.ticks,
        _pairs(axis.place(predicted), axis.place(y)),
        line=(0.0, 1.0),
    )


def _residuals(y: Array, predicted: Array) -> Chart:
    across, up = Axis.of(predicted), Axis.of(y - predicted, np.zeros(1))
    zero = float(up.place(np.zeros(1))[0])
    return Chart(
        "Errors of the predictions",
        "Residuals (true minus predicted) over predicted numbers. A trend would be "
        "something that the model has missed.",
        "predicted",
        across.ticks,
        up.ticks,
        _pairs(across.place(predicted), up.place(y - predicted)),
        line=(zero, zero),
    )


def _intervals(y: Array, predicted: Array, low: Array, high: Array) -> Chart:
    order = np.argsort(predicted, kind="stable")
    up = Axis.of(y, low, high)
    x = (np.arange(len(y)) + 0.5) / len(y)
    bars = zip(x, up.place(low[order]), up.place(high[order]), strict=True)
    count = f"{len(y)} rows" if len(y) == BARS else f"all {len(y)} rows"
    return Chart(
        f"{DRAWN:.0%} intervals",
        f"{DRAWN:.0%} prediction intervals of {count}, with their true numbers.",
        "rows, ordered by prediction",
        [],
        up.ticks,
        _pairs(x, up.place(y[order])),
        bars=[(float(a), float(b), float(c)) for a, b, c in bars],
    )


def _target(y: Array, y_test: Array | None) -> dict[str, str]:
    """The numbers in short."""
    found = {"training rows": _range(y)}
    return found if y_test is None else {**found, "test rows": _range(y_test)}


def _range(y: Array) -> str:
    return (
        f"{y.min():.4g} to {y.max():.4g}, mean {y.mean():.4g}, standard deviation "
        f"{y.std():.4g}"
    )
