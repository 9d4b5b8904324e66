"""Table 4.2 and figures 4.7 to 4.9: what lambda and the step do to the filter.

Polynomial kernel of degree two, structural risk with DFO_1, 25 constant steps of eta;
trained on the 3s and 5s of the first 5,000 images, judged on those of the next 5,000.
The figures follow |f|^2 for several lambda with the regularisers |f|^2 and DFO_2, at
eta = 1 as in the thesis; its lambdas are not given.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from experiments.common import Context, Result, Spread, Table, drawing
from experiments.seed002.mnist_kernels import (
    ITERATIONS,
    Digits,
    Fit,
    convolution,
    draw_filter,
    filter_of,
    fit,
    polynomial,
    published,
)

TITLE = "Table 4.2: MNIST, 3 against 5, the strength of the regulariser and the step"

SIZE = 5000
MAX_STARTS = 5
STRENGTHS = (0.01, 0.1, 1.0)
STEPS = (0.01, 0.1, 1.0)
PUBLISHED = {
    (0.01, 0.01): Spread(97.73, 0.10),
    (0.01, 0.1): Spread(97.95, 0.05),
    (0.01, 1.0): Spread(97.95, 0.04),
    (0.1, 0.01): Spread(97.83, 0.0),
    (0.1, 0.1): Spread(97.89, 0.06),
    (0.1, 1.0): Spread(98.01, 0.15),
    (1.0, 0.01): Spread(97.99, 0.06),
    (1.0, 0.1): Spread(98.01, 0.041),
    (1.0, 1.0): Spread(97.83, 0.20),
}
"""By step and strength."""

FIGURE_STRENGTHS = (0.001, 0.01, 0.1, 0.3)
FIGURE_STEP = 1.0
REGULARIZERS = {"squared_l2": "4.7: λ |f|²", "dfo_2": "4.8: λ max(0, |f| - 1)²"}

Cell = tuple[float, float]


def run(context: Context) -> Result:
    digits = Digits.mnist()
    starts = min(context.splits, MAX_STARTS)
    cells = {
        (step, strength): [
            one(digits, "dfo_1", strength, step, seed) for seed in range(starts)
        ]
        for step, strength in product(STEPS, STRENGTHS)
    }
    paths = {
        regularizer: {
            strength: squared_norms(one(digits, regularizer, strength, FIGURE_STEP))
            for strength in FIGURE_STRENGTHS
        }
        for regularizer in REGULARIZERS
    }
    return Result(
        tables=[_table(cells), _norms(paths)],
        figures={
            "figures_4_7_and_4_8": _paths(paths),
            "figure_4_9": _filters(cells),
        },
        notes=_notes(digits, cells, starts),
    )


# --- fits -----------------------------------------------------------------------------


def one(
    digits: Digits, regularizer: str, strength: float, step: float, seed: int = 0
) -> Fit:
    train, validation = digits.first(SIZE)
    kernel = polynomial(2) @ convolution(seed, digits.shape, positive=True)
    return fit(published(kernel, train, regularizer, strength, step), train, validation)


def squared_norms(found: Fit) -> np.ndarray:
    """|f|^2 at every step."""
    thetas = np.array([record.theta for record in found.model.history_])
    return np.sum(thetas[: ITERATIONS + 1] ** 2, axis=1)


def swings(found: Fit) -> bool:
    """Whether the last step ends higher than one on the way."""
    values = [record.value for record in found.model.history_[: ITERATIONS + 1]]
    return not values[-1] <= 1.001 * min(values)


def best_step(cells: dict[Cell, list[Fit]], strength: float) -> float:
    return max(
        STEPS,
        key=lambda step: np.mean([one.validation for one in cells[step, strength]]),
    )


# --- tables and figures ---------------------------------------------------------------


def _table(cells: dict[Cell, list[Fit]]) -> Table:
    rows = []
    for step in STEPS:
        row: list[Any] = [step]
        for strength in STRENGTHS:
            row += [
                PUBLISHED[step, strength],
                Spread.of(one.validation for one in cells[step, strength]),
            ]
        rows.append(row)
    columns = {"η": "g"}
    for strength in STRENGTHS:
        columns |= {
            f"λ = {strength:g}, published %": ".2f",
            f"ours, {strength:g}": ".2f",
        }
    return Table(TITLE, columns, rows)


def _norms(paths: dict[str, dict[float, np.ndarray]]) -> Table:
    rows = [
        (strength, *(by_strength[strength][-1] for by_strength in paths.values()))
        for strength in FIGURE_STRENGTHS
    ]
    columns = {"λ": "g", "squared norm": ".3f", "DFO₂": ".3f"}
    title = f"Figures 4.7 and 4.8: |f|² after {ITERATIONS} steps of {FIGURE_STEP:g}"
    return Table(title, columns, rows, "norms")


def _paths(paths: dict[str, dict[float, np.ndarray]]) -> Any:
    styles = ("k-o", "k--s", "k:^", "k-.D")
    with drawing() as plt:
        figure, row = plt.subplots(1, len(paths), figsize=(8, 3.2), sharey=True)
        for axes, (regularizer, by_strength) in zip(row, paths.items(), strict=True):
            for (strength, path), style in zip(
                by_strength.items(), styles, strict=True
            ):
                axes.plot(path, style, markevery=4, label=f"λ = {strength:g}")
            axes.set_yscale("log")
            axes.set_xlabel("step")
            axes.set_title(REGULARIZERS[regularizer])
        row[0].set_ylabel("|f|²")
        row[-1].legend()
    return figure


def _filters(cells: dict[Cell, list[Fit]]) -> Any:
    with drawing() as plt:
        figure, row = plt.subplots(1, len(STRENGTHS), figsize=(6, 2.4))
        for axes, strength in zip(row, STRENGTHS, strict=True):
            step = best_step(cells, strength)
            found = cells[step, strength][0].model
            draw_filter(axes, filter_of(found), f"λ = {strength:g}, η = {step:g}")
    return figure


def _notes(digits: Digits, cells: dict[Cell, list[Fit]], starts: int) -> list[str]:
    train, validation = digits.first(SIZE)
    means = [np.mean([one.validation for one in some]) for some in cells.values()]
    swinging = [
        f"η = {step:g}, λ = {strength:g}"
        for (step, strength), some in cells.items()
        if any(map(swings, some))
    ]
    return [
        f"Mean ± standard deviation over {starts} starts; "
        f"{len(train.y)} images to train on, {len(validation.y)} to validate: one "
        f"image is {100 / len(validation.y):.2f} points.",
        f"All cells lie between {min(means):.2f} and {max(means):.2f}%: λ and η matter "
        "little, as the thesis found.",
        "The filter is that of the last step. Where steps are too long the risk was "
        f"lower on the way: {'; '.join(swinging) or 'nowhere'}.",
        "Figure 4.9: one start each, at the best step; minus signs mark negative "
        "entries.",
    ]
