"""Table 5.6, figures 5.10 and 5.11: the heart data, five bilevel machines.

190 of the 270 points are for training (five folds), 80 for testing:

- multiple gamma: a kernel machine without bias, one gamma per feature; features whose
  gamma ends at its lower bound 0.01 are removed, and it is learned again;
- bikernel: one gamma;
- multiple c: a linear machine, one c per feature and one for the bias;
- bilinear: one c, and a free bias.

Starts are random, c in [5, 15] and gamma in [0.5, 1.5]. Neither split nor scaling were
published, but the figures tell: the first 190 rows of the Statlog file against the last
80, scaled to [-1, 1] as in LIBSVM's `heart_scale`, give the published rates. Every
machine is therefore learned twice: on that split, with different starts and folds, and
on random splits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from bisvm import BilevelLinearSVC, BilevelSVC, datasets
from experiments.common import (
    Context,
    Result,
    Table,
    binary,
    drawing,
    inverse,
    random_splits,
)
from experiments.seed000.fits import (
    LOG_LBFGS,
    LOWER,
    MEASURES,
    NaturalLBFGS,
    Part,
    Scores,
    dots,
    fitted,
    kernel_machine,
    linear_machine,
    rate,
    scores,
    spread,
    to_range,
)

TITLE = "Table 5.6, figures 5.10 and 5.11: heart, five bilevel machines"

SIZES = (190, 80)
FEATURES = (
    "age",
    "sex",
    "chest pain",
    "blood pressure",
    "cholesterol",
    "blood sugar",
    "electrocard.",
    "heart rate",
    "angina",
    "oldpeak",
    "slope",
    "vessels",
    "thal",
)
REMOVED = ("age", "cholesterol", "blood sugar", "slope")
"""The features that the thesis removed."""

BEFORE, AFTER = "multiple γ, before selection", "multiple γ, after selection"
BIKERNEL, MULTIPLE_C, BILINEAR = "bikernel", "multiple c", "bilinear"
PUBLISHED = {
    BEFORE: Scores(0.2450, 0.2215, 84.74, 0.2276, 88.75, 281),
    AFTER: Scores(0.2438, 0.2131, 84.74, 0.2444, 86.25, 306),
    BIKERNEL: Scores(0.2864, 0.2492, 82.11, 0.2325, 86.25, 201),
    MULTIPLE_C: Scores(0.2536, 0.2442, 84.74, 0.2335, 87.50, 176),
    BILINEAR: Scores(0.2835, 0.2605, 82.63, 0.2253, 85.00, 56),
}
FILE, RANDOM = "file's split", "random splits"
# How gamma and c are searched: themselves, as in the thesis, or their logarithms.
NATURAL, LOG = "c, γ", "logarithms"
DEFAULTS = {
    "bisvm defaults, one γ per feature": BilevelSVC(kernel="ard"),
    "bisvm defaults, one γ": BilevelSVC("rbf"),
    "bisvm defaults, linear": BilevelLinearSVC(),
}


@dataclass(frozen=True)
class Fits:
    """All that was learned on one split, by machine and search."""

    scores: dict[Any, Scores] = field(default_factory=dict)
    gamma: dict[Any, np.ndarray] = field(default_factory=dict)
    c: dict[Any, np.ndarray] = field(default_factory=dict)


def run(context: Context) -> Result:
    X, y = datasets.load("heart_statlog", return_X_y=True)
    y = binary(y, np.max(y))
    fits = {
        FILE: [on_file_split(X, y, number) for number in range(context.splits)],
        RANDOM: [
            one_split(to_range(X, train), y, train, test, number)
            for number, (train, test) in enumerate(
                random_splits(y, SIZES, context.splits)
            )
        ],
    }
    return Result(
        tables=[_table(fits), _removed(fits), _penalties(fits)],
        figures={
            "figure_5_10": _figure_5_10(fits[FILE]),
            "figure_5_11": _figure_5_11(fits),
        },
        notes=_notes(fits, context.splits),
    )


# --- fits -----------------------------------------------------------------------------


def on_file_split(X: np.ndarray, y: np.ndarray, number: int) -> Fits:
    """First 190 rows against the last 80; `number` decides on starts and folds."""
    rows = np.arange(len(y))
    return one_split(to_range(X), y, rows[: SIZES[0]], rows[SIZES[0] :], number)


def one_split(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, number: int
) -> Fits:
    """All machines of the table on one split."""
    rng = np.random.default_rng([6, number])
    parts = Part(X[train], y[train]), Part(X[test], y[test])
    c, gamma = rng.uniform(5, 15), rng.uniform(0.5, 1.5, X.shape[1])
    c_each = rng.uniform(5, 15, X.shape[1] + 1)
    fits = Fits()
    for search, by_gamma, by_c in (
        (LOG, LOG_LBFGS, LOG_LBFGS),
        (NATURAL, NaturalLBFGS(), NaturalLBFGS(n_C=len(c_each))),
    ):
        kept = np.ones(X.shape[1], dtype=bool)
        for name in (BEFORE, AFTER):
            machine = kernel_machine(c, gamma[kept], by_gamma, random_state=number)
            part = [one.columns(kept) for one in parts]
            fits.scores[name, search] = scores(fitted(machine, part[0]), *part)
            fits.gamma[name, search] = _placed(machine.kernel_.gamma, kept)
            fits.c[name, search] = inverse(machine.C_)
            kept = ~at_bound(fits.gamma[name, search])
        machine = linear_machine(c_each, by_c, random_state=number)
        fits.scores[MULTIPLE_C, search] = scores(fitted(machine, parts[0]), *parts)
        fits.c[MULTIPLE_C, search] = inverse(machine.C_)
    for name, machine in (
        (BIKERNEL, kernel_machine(c, float(gamma[0]), random_state=number)),
        (BILINEAR, linear_machine(c, random_state=number)),
    ):
        fits.scores[name, LOG] = scores(fitted(machine, parts[0]), *parts)
    for name, estimator in DEFAULTS.items():
        fits.scores[name, LOG] = _rates(estimator, parts, number)
    return fits


def at_bound(gamma: np.ndarray) -> np.ndarray:
    """Where gamma is 0.01 to two digits: its lower bound, as the thesis read it off."""
    return gamma < 1.5 * LOWER


def _placed(values: np.ndarray, kept: np.ndarray) -> np.ndarray:
    placed = np.full(len(kept), np.nan)
    placed[kept] = values
    return placed


def _rates(estimator: Any, parts: tuple[Part, Part], number: int) -> Scores:
    machine = clone(estimator).set_params(random_state=number)
    fitted(machine, parts[0])
    train_CR, test_CR = (rate(machine.decision_function(p.X), p.y) for p in parts)
    return Scores(train_CR=train_CR, test_CR=test_CR)


# --- tables ---------------------------------------------------------------------------


def _table(fits: dict[str, list[Fits]]) -> Table:
    rows: list[tuple[Any, ...]] = []
    for name in (*PUBLISHED, *DEFAULTS):
        who = name
        if name in PUBLISHED:
            rows.append((who, "published", "", *PUBLISHED[name].cells()))
            who = ""
        for where, runs in fits.items():
            for search in (NATURAL, LOG):
                if (name, search) in runs[0].scores:
                    ours = spread([one.scores[name, search] for one in runs])
                    rows.append((who, where, search, *ours))
                    who = ""
    return Table(TITLE, {"machine": "", "from": "", "searched": "", **MEASURES}, rows)


def _removed(fits: dict[str, list[Fits]]) -> Table:
    """How often each feature's gamma ended at its lower bound."""
    settings = [(where, search) for where in fits for search in (NATURAL, LOG)]
    shares = [
        np.mean([at_bound(one.gamma[BEFORE, search]) for one in fits[where]], axis=0)
        for where, search in settings
    ]
    names = [f"{where}, {search}" for where, search in settings]
    rows = [
        (
            f"{d + 1} {name}",
            "removed" if name in REMOVED else "",
            *(s[d] for s in shares),
        )
        for d, name in enumerate(FEATURES)
    ]
    return Table(
        "Figure 5.10: share of the runs in which the feature's γ ended at its bound",
        {"feature": "", "published": "", **dict.fromkeys(names, ".0%")},
        rows,
        "figure_5_10",
    )


def _penalties(fits: dict[str, list[Fits]]) -> Table:
    """Medians of c_d, and how often each was the smallest."""
    columns: dict[str, str] = {}
    cells = []
    for where, runs in fits.items():
        c = np.array([one.c[MULTIPLE_C, LOG] for one in runs])
        smallest = np.bincount(c.argmin(axis=1), minlength=c.shape[1]) / len(c)
        cells += [np.median(c, axis=0), smallest]
        columns |= {f"c, {where}": ".3g", f"smallest, {where}": ".0%"}
    names = [f"{d + 1} {name}" for d, name in enumerate((*FEATURES, "bias"))]
    return Table(
        "Figure 5.11: median of c of each feature, and how often it is the smallest",
        {"feature": "", **columns},
        list(zip(names, *cells, strict=True)),
        "figure_5_11",
    )


# --- figures --------------------------------------------------------------------------


def _figure_5_10(runs: list[Fits]) -> Any:
    with drawing() as plt:
        figure, grid = plt.subplots(
            2, 2, figsize=(8.6, 5.2), sharex=True, sharey=True, squeeze=False
        )
        for row, search in zip(grid, (NATURAL, LOG), strict=True):
            for axes, name in zip(row, (BEFORE, AFTER), strict=True):
                dots(
                    axes, np.array([one.gamma[name, search] for one in runs]), FEATURES
                )
                axes.axhline(LOWER, color="0.5", linestyle=":", zorder=0)
                axes.set_title(name)
            row[0].set_ylabel(f"γ, searched in {search}")
        figure.suptitle("Heart, the file's split: one dot a start, a bar at the median")
    return figure


def _figure_5_11(fits: dict[str, list[Fits]]) -> Any:
    with drawing() as plt:
        figure, row = plt.subplots(1, 2, figsize=(8.6, 3.4), sharey=True)
        for axes, (where, runs) in zip(row, fits.items(), strict=True):
            dots(
                axes,
                np.array([one.c[MULTIPLE_C, LOG] for one in runs]),
                (*FEATURES, "bias"),
            )
            axes.axvspan(
                len(FEATURES) - 0.5, len(FEATURES) + 0.5, color="0.92", zorder=0
            )
            axes.axhline(LOWER, color="0.5", linestyle=":", zorder=0)
            axes.set_title(f"Heart, {where}")
        row[0].set_ylabel("c of the feature, scaled to [-1, 1]")
    return figure


def _notes(fits: dict[str, list[Fits]], splits: int) -> list[str]:
    bias = {
        where: np.mean(
            [one.c[MULTIPLE_C, LOG].argmin() == len(FEATURES) for one in runs]
        )
        for where, runs in fits.items()
    }
    c = {
        search: np.median([one.c[BEFORE, search] for one in fits[FILE]])
        for search in (NATURAL, LOG)
    }
    return [
        f"Mean ± standard deviation over {splits} runs. File's split: the first 190 "
        "rows of the Statlog file for training, the last 80 for testing, features "
        "scaled to [-1, 1] on all rows; starts and folds are random. Random splits: "
        "stratified, features scaled to [-1, 1] on the training part.",
        "Neither split nor scaling were published. We tried the file's order with four "
        "scalings (none, mean and variance, [0, 1], [-1, 1]): with the last one the "
        "bikernel, multiple c and bilinear machines have the published training and "
        "test rates to about one point in 190 and 80, the published H on both, and the "
        "bias's c at its bound. It is most likely what the thesis used. Its test part "
        "is an easy one: all machines do worse on random splits.",
        "H is in the thesis's units, half the mean squared error; H_min is its mean "
        "over the folds. Evaluations are lower-level solves, folds included, and the "
        "final machine.",
        "'searched c, γ': L-BFGS-B in c and γ themselves, as in the thesis. It stays "
        f"near its start (median c {c[NATURAL]:.3g} on the file's split). In "
        "logarithms, the library's coordinates, it goes further (median c "
        f"{c[LOG]:.3g}), to a lower H_min and a worse test rate: 14 hyperparameters "
        "over-fit the validation loss of 190 points. The defaults guard against it by "
        "a prior, and by one γ for all until the gain is beyond doubt.",
        "Removed are features whose γ is below 0.015, that is 0.01 to two digits.",
        "The bias's c is the smallest of the fourteen in "
        f"{bias[FILE]:.0%} of the runs on the file's split, and in {bias[RANDOM]:.0%} "
        "on random splits. In most of the others fasting blood sugar, which is -1 in "
        "85% of the rows, takes the bias's place.",
        "The last rows are the estimators with no other argument: their own criterion "
        f"({BilevelSVC().criterion!r}), a free intercept, a prior, their own starts.",
    ]
