"""Table 1 and figure 1: accuracy, C and time of bilevel-SGD and SGD+DCD, five folds.

The paper runs both methods for 150 iterations from C = 1e-4 and reports the accuracy on
the folds held out, the last C, and the time. Beside them stand this library's method,
`FoldNewton`, and the C at which H, the mean held-out hinge, is lowest: from the
regularisation path on cancer and pima, from a grid of exactly trained machines on the
others. What a C is worth is told by H of machines trained exactly at it, in per cent
above that lowest H.

Two more tables: machines trained exactly at the published C of SGD+DCD, which tell what
is due to C and what to the training; and figure 1 in numbers, the means over the seeds
of accuracy and H after 10 iterations and at the end, and from which iteration on H is
within a tenth of the lowest.

Not known: how many runs were averaged, if any, whether there is an intercept, and how
connect-4 is coded; both variants of `data` are run. The listing of algorithm 1 visits
one dual coordinate an iteration ("single"), section 5 all ("sweep"). Here a seed draws
the folds and the run; seeds start at 200, since the settings of `FoldNewton` were
chosen on cancer and pima with smaller ones. The two xerostomia sets are not used: they
hold the records of patients.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bisvm.published import SGDDCD, BilevelSGD, FoldNewton, LinearFolds
from experiments.common import Context, Result, Spread, Table
from experiments.seed001.data import (
    INTERCEPT,
    PUBLISHED,
    SETS,
    VARIANTS,
    Sample,
    folds_of,
    load,
    sample_of,
)
from experiments.seed001.exact import (
    Trained,
    accuracy,
    curve,
    lowest_on_grid,
    lowest_on_path,
    train,
)
from experiments.seed001.profiles import Panel, draw, profile

TITLE = "Table 1: bilevel-SGD and SGD+DCD, and the optimum"

SINGLE, SWEEP, BILEVEL = "SGD+DCD, single", "SGD+DCD, sweep", "bilevel-SGD"
OURS, OPTIMUM = "FoldNewton", "optimum"
METHODS: dict[str, Any] = {
    BILEVEL: BilevelSGD(),
    SINGLE: SGDDCD("single"),
    SWEEP: SGDDCD("sweep"),
    OURS: FoldNewton(),
}
FIRST_SEED = 200
# At most so many seeds where one takes long.
SEEDS = {"magic04": 10, "connect-4": 3}
# Exponents of 2, first, last and step, with which the grid of C starts; sets without
# one have a path.
GRIDS = {
    "svmguide1": (-6.0, 8.0, 0.5),
    "connect-4": (-3.0, 1.0, 1.0),
    "magic04": (-5.0, 5.0, 0.5),
}
# On how many seeds the grid is checked against the path.
CHECKED = {"cancer": 3, "pima": 3, "svmguide1": 1}
REQUIRED = 0.1
# On how many seeds machines are trained at the published C.
AT_PUBLISHED = 6
# Figure 1 in numbers: the early iteration that is reported, and the share of the lowest
# H within which a method has arrived.
EARLY = 10
ARRIVED = 0.1

# Accuracy in per cent, C and seconds, as published.
TABLE_1 = {
    "cancer": {BILEVEL: (94.29, 1.24, 0.30), SWEEP: (95.02, 0.16, 0.49)},
    "pima": {BILEVEL: (65.58, 0.38, 0.33), SWEEP: (76.53, 0.21, 0.91)},
    "svmguide1": {BILEVEL: (72.81, 1.06, 1.21), SWEEP: (84.88, 0.29, 2.43)},
    "connect-4": {BILEVEL: (72.77, 0.0001, 89.36), SWEEP: (83.68, 0.06, 148.39)},
    "magic04": {BILEVEL: (66.97, 0.26, 22.80), SWEEP: (78.55, 0.54, 47.39)},
}


@dataclass(frozen=True)
class Outcome:
    """One method on one draw of the folds.

    accuracy : of the weights that the method ends with, in per cent
    exact : machines trained exactly at its C
    gap : H of these above the lowest, in per cent
    steps : iterations, or evaluations of H
    profile : (2, iterations), where there are iterations
    """

    accuracy: float
    exact: Trained
    gap: float
    seconds: float
    steps: int = 0
    profile: np.ndarray | None = None


Outcomes = list[dict[str, Outcome]]


def run(context: Context) -> Result:
    compile_all()
    found = {
        (variant, name): outcomes(name, load(name, variant), _seeds(name, context))
        for variant in VARIANTS
        for name in SETS
    }
    shown = {name: found[PUBLISHED, name] for name in SETS}
    at_published = {name: at_published_C(name, len(shown[name])) for name in SETS}
    tables = [
        _main_table(shown, f"Table 1, {PUBLISHED}: no intercept"),
        _main_table(
            {name: found[INTERCEPT, name] for name in SETS},
            f"Table 1, {INTERCEPT}; connect-4 in 42 columns",
            name="intercept",
        ),
        _price_table(found),
        _published_C_table(shown, at_published),
        _iterations_table(shown),
    ]
    panels = {name: _panel(runs) for name, runs in shown.items()}
    notes = _notes(found, grid_above_path(), at_published)
    return Result(tables, {"figure_1": draw(panels)}, notes)


def _seeds(name: str, context: Context) -> range:
    count = min(context.splits, SEEDS.get(name, context.splits))
    return range(FIRST_SEED, FIRST_SEED + count)


# --- runs -----------------------------------------------------------------------------


def compile_all() -> None:
    """A small problem first: what is measured is not the compiler."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (60, 3))
    sample = sample_of(X, np.where(X[:, 0] + X[:, 1] > 0.2, 1.0, -1.0), PUBLISHED)
    folds = folds_of(sample, 0)
    for name in METHODS:
        _timed(name, folds, 0)


def outcomes(name: str, sample: Sample, seeds: range) -> Outcomes:
    """By seed, every method and the optimum."""
    return [_outcomes(name, folds_of(sample, seed), seed) for seed in seeds]


def _outcomes(name: str, folds: LinearFolds, seed: int) -> dict[str, Outcome]:
    runs = {method: _timed(method, folds, seed) for method in METHODS}
    trained = {method: train(folds, result.C) for method, (result, _) in runs.items()}
    began = time.perf_counter()
    lowest = optimum(name, folds)
    seconds = time.perf_counter() - began
    # A grid may miss what one of the methods has found.
    lowest = min(lowest, *trained.values(), key=lambda one: one.H)
    found = {
        method: _outcome(folds, result, trained[method], lowest.H, taken)
        for method, (result, taken) in runs.items()
    }
    found[OPTIMUM] = Outcome(lowest.accuracy, lowest, 0.0, seconds)
    return found


def optimum(name: str, folds: LinearFolds) -> Trained:
    if name in GRIDS:
        return lowest_on_grid(partial(train, folds), *GRIDS[name])
    return lowest_on_path(folds)


def _outcome(
    folds: LinearFolds, result: Any, trained: Trained, lowest: float, seconds: float
) -> Outcome:
    return Outcome(
        accuracy=accuracy(folds, folds.labels * (folds.X @ result.coef)),
        exact=trained,
        gap=100.0 * (trained.H / lowest - 1.0),
        seconds=seconds,
        steps=result.nit,
        profile=profile(folds, result.coefs) if "coefs" in result else None,
    )


def _timed(method: str, folds: LinearFolds, seed: int) -> tuple[Any, float]:
    """The result, and the shortest of three times unless they are long."""
    options = {} if method == OURS else {"record": True}
    times: list[float] = []
    while len(times) < 3 and sum(times) < 1.0:
        began = time.perf_counter()
        result = METHODS[method].alternate(folds, seed=seed, **options)
        times.append(time.perf_counter() - began)
    return result, min(times)


def grid_above_path() -> dict[str, float]:
    """By how much the grid's lowest H is above the path's, in per cent, at worst.

    Where the path is long only the stretch around the grid's C is walked, once.
    """
    worst = {}
    for name in CHECKED:
        sample, gaps = load(name), []
        for seed in range(FIRST_SEED, FIRST_SEED + CHECKED[name]):
            folds = folds_of(sample, seed)
            grid = lowest_on_grid(partial(train, folds), *GRIDS["svmguide1"])
            around = (grid.C / 4, 4 * grid.C) if name in GRIDS else (1e-3, 1e3)
            gaps.append(100.0 * (grid.H / curve(folds, *around).best()[1] - 1.0))
        worst[name] = max(gaps)
    return worst


def at_published_C(name: str, seeds: int) -> list[float]:
    """Accuracies of machines trained exactly at the published C of SGD+DCD."""
    sample, C = load(name), TABLE_1[name][SWEEP][1]
    chosen = range(FIRST_SEED, FIRST_SEED + min(seeds, AT_PUBLISHED))
    return [train(folds_of(sample, seed), C).accuracy for seed in chosen]


# --- tables ---------------------------------------------------------------------------


def _main_table(found: dict[str, Outcomes], title: str, name: str = "") -> Table:
    rows = [
        [
            data,
            method,
            *_cells([run[method] for run in runs]),
            *_published(data, method),
        ]
        for data, runs in found.items()
        for method in runs[0]
    ]
    columns = {
        "data set": "",
        "method": "",
        "accuracy %": ".2f",
        "trained at its C": ".2f",
        "C": ".3g",
        "seconds": ".4f",
        "H above the lowest, %": ".2f",
        "published accuracy": ".2f",
        "published C": "g",
        "published seconds": ".2f",
    }
    return Table(title, columns, rows, name=name)


def _cells(outcomes: list[Outcome]) -> list[Any]:
    """Means with deviations; C and seconds are medians."""
    return [
        Spread.of(one.accuracy for one in outcomes),
        Spread.of(one.exact.accuracy for one in outcomes),
        float(np.median([one.exact.C for one in outcomes])),
        float(np.median([one.seconds for one in outcomes])),
        Spread.of(one.gap for one in outcomes),
    ]


def _published(data: str, method: str) -> tuple[float | None, ...]:
    """Both readings stand beside the published SGD+DCD."""
    column = SWEEP if method == SINGLE else method
    return TABLE_1.get(data, {}).get(column, (None, None, None))


def _price_table(found: dict[tuple[str, str], Outcomes]) -> Table:
    rows = []
    for (variant, data), runs in found.items():
        gaps = np.array([run[OURS].gap for run in runs])
        rows.append(
            [
                variant,
                data,
                float(np.median([run[OURS].steps for run in runs])),
                *(_ratio(runs, method) for method in (SWEEP, SINGLE, BILEVEL)),
                float(np.median(gaps)),
                float(gaps.max()),
                f"{np.sum(gaps < REQUIRED)} of {len(gaps)}",
            ]
        )
    columns = {
        "variant": "",
        "data set": "",
        "evaluations of H": "g",
        "time / SGD+DCD, sweep": ".3f",
        "time / single": ".3f",
        "time / bilevel-SGD": ".3f",
        "H above the lowest, %": ".3f",
        "at worst": ".3f",
        f"seeds below {REQUIRED}%": "",
    }
    title = "FoldNewton in units of 150 published iterations; medians over the seeds"
    return Table(title, columns, rows, name="price")


def _ratio(runs: Outcomes, method: str) -> float:
    return float(np.median([run[OURS].seconds / run[method].seconds for run in runs]))


def _published_C_table(
    found: dict[str, Outcomes], at_published: dict[str, list[float]]
) -> Table:
    """The same seeds in every column."""
    rows: list[list[Any]] = []
    for data, accuracies in at_published.items():
        runs = [run[SWEEP] for run in found[data][: len(accuracies)]]
        published, C, _ = TABLE_1[data][SWEEP]
        rows.append(
            [
                data,
                len(runs),
                published,
                Spread.of(run.accuracy for run in runs),
                Spread.of(run.exact.accuracy for run in runs),
                float(np.median([run.exact.C for run in runs])),
                Spread.of(accuracies),
                C,
            ]
        )
    columns = {
        "data set": "",
        "seeds": "",
        "published accuracy": ".2f",
        "accuracy %": ".2f",
        "trained at its C": ".2f",
        "C": ".3g",
        "trained at the published C": ".2f",
        "published C": "g",
    }
    title = "SGD+DCD, sweep, and machines trained exactly at the published C"
    return Table(title, columns, rows, name="published_C")


def _iterations_table(found: dict[str, Outcomes]) -> Table:
    rows: list[list[Any]] = []
    for data, runs in found.items():
        lowest = float(np.mean([run[OPTIMUM].exact.H for run in runs]))
        for method in (BILEVEL, SINGLE, SWEEP):
            accuracies, losses = np.mean([run[method].profile for run in runs], axis=0)
            early = EARLY - 1
            rows.append(
                [
                    data,
                    method,
                    *(accuracies[early], accuracies[-1], losses[early], losses[-1]),
                    lowest,
                    arrival(losses, (1.0 + ARRIVED) * lowest),
                ]
            )
    columns = {
        "data set": "",
        "method": "",
        f"accuracy % after {EARLY}": ".2f",
        "accuracy % at the end": ".2f",
        f"H after {EARLY}": ".4f",
        "H at the end": ".4f",
        "lowest H": ".4f",
        f"iterations until H stays within {100 * ARRIVED:.0f}%": "",
    }
    title = "Figure 1 in numbers: means over the seeds; - if H does not get so low"
    return Table(title, columns, rows, name="iterations")


def arrival(losses: np.ndarray, bound: float) -> int | None:
    """The iteration, from 1 on, from which no loss exceeds the bound."""
    above = np.flatnonzero(losses > bound)
    first = int(above[-1]) + 2 if len(above) else 1
    return first if first <= len(losses) else None


def _panel(runs: Outcomes) -> Panel:
    ends = [(run[OURS].exact.accuracy, run[OURS].exact.H) for run in runs]
    profiles = {
        method: np.array([run[method].profile for run in runs])
        for method in METHODS
        if method != OURS
    }
    steps = float(np.median([run[OURS].steps for run in runs]))
    at_end, H = np.mean(ends, axis=0)
    return Panel(profiles, steps, (float(at_end), float(H)))


# --- notes ----------------------------------------------------------------------------


def _notes(
    found: dict[tuple[str, str], Outcomes],
    above_path: dict[str, float],
    at_published: dict[str, list[float]],
) -> list[str]:
    gaps = [run[OURS].gap for runs in found.values() for run in runs]
    ratios = [_ratio(runs, SWEEP) for runs in found.values()]
    seeds = ", ".join(f"{len(found[PUBLISHED, name])} ({name})" for name in SETS)
    checked = ", ".join(f"{gap:.3f}% ({name})" for name, gap in above_path.items())
    return [
        "That the published accuracies are those of machines without an intercept is "
        "inferred, from the program and from the agreement; (5) has one. SGD+DCD, all "
        f"coordinates an iteration: {_against(found, SWEEP)}.",
        "One coordinate an iteration, as the listing says, does not get there: "
        f"{_against(found, SINGLE)}.",
        f"Bilevel-SGD: {_against(found, BILEVEL)}. The larger class has "
        + ", ".join(f"{majority(name):.2f}% ({name})" for name in SETS)
        + ": an accuracy near it is that of one class for all. In connect-4 these are "
        "the wins; the paper prints 72.77%, and its C there, 1e-4, is the start.",
        *_why_lower(found, at_published),
        "That connect-4 has 84 columns, two a square, is inferred: the paper itself "
        "prints 42 columns, but 42, o = -1, blank = 0, x = 1, without an intercept "
        f"give {forty_two_columns():.1f}% by SGD+DCD. The program at "
        "github.com/Antongz/SVM-SGD-DCD leaves out the draws, codes so, and has no "
        "intercept.",
        "Where an intercept is of use the published machines lose by its absence: "
        + "; ".join(_gain(found, name) for name in SETS)
        + " (optimum, without and with; connect-4 is coded otherwise too).",
        f"Required of FoldNewton: H within {REQUIRED}% of the lowest, in less time "
        "than 150 published iterations. H is so near in "
        f"{np.sum(np.array(gaps) < REQUIRED)} of {len(gaps)} runs, and at worst "
        f"{max(gaps):.2f}% above; the time is {min(ratios):.3f} to {max(ratios):.3f} "
        "of that of 150 sweeps. Iterations of one coordinate, or of one point, are "
        "cheaper on small sets, and 150 of them do not train a machine.",
        "The lowest H is exact on cancer and pima, by the path. Elsewhere it is that "
        "of the best machine on a grid of C, or of a method where that is lower. "
        "Checked against the path, on a few seeds, the grid's is too high by "
        f"{checked}. The more rows, the smoother H.",
        f"Seeds: {seeds}, from {FIRST_SEED} on; the settings of FoldNewton were chosen "
        "on cancer and pima with the folds of seeds 0 to 4 and 10 to 15. A run is "
        "timed in one "
        "process, compiled, the shortest of three.",
        "Figure 1: means over the seeds and bands of one standard deviation. The "
        "dotted line is where FoldNewton ends, the diamond after how many evaluations "
        "of H; an evaluation trains all folds, and is not as cheap as an iteration. "
        "The paper's figure has two panels more, of the xerostomia sets.",
        "The two xerostomia sets (551 and 146 patients, 943 features) are private, and "
        "left out.",
    ]


def _against(found: dict[tuple[str, str], Outcomes], method: str) -> str:
    """Accuracies without and with intercept, and the published ones."""
    texts = []
    for name in SETS:
        without, with_one = (
            np.mean([run[method].accuracy for run in found[variant, name]])
            for variant in VARIANTS
        )
        published = _published(name, method)[0]
        texts.append(
            f"{name} {without:.1f} (with one {with_one:.1f}; published {published})"
        )
    return ", ".join(texts)


def majority(name: str) -> float:
    """Share of the larger class, in per cent."""
    share = 100.0 * float(np.mean(load(name).y > 0))
    return max(share, 100.0 - share)


def _why_lower(
    found: dict[tuple[str, str], Outcomes], at_published: dict[str, list[float]]
) -> list[str]:
    """Where sweeps end below the published accuracy: because of C, or the training?"""
    notes = []
    for name, accuracies in at_published.items():
        runs = [run[SWEEP] for run in found[PUBLISHED, name][: len(accuracies)]]
        published, C, _ = TABLE_1[name][SWEEP]
        reached, exact = (
            float(np.mean(values))
            for values in zip(
                *((run.accuracy, run.exact.accuracy) for run in runs), strict=True
            )
        )
        if reached >= published:
            continue
        at_C = float(np.mean(accuracies))
        # What a better C adds, against what exact training at the same C adds.
        cause = "C" if at_C - exact > exact - reached else "the training"
        notes.append(
            f"{name}: SGD+DCD ends {published - reached:.2f} points below the "
            f"published {published}%, at a median C of "
            f"{np.median([run.exact.C for run in runs]):.3g}; published is {C:g}. "
            f"Machines trained exactly at its own C have {exact:.2f}%, at the "
            f"published C {min(accuracies):.2f} to {max(accuracies):.2f}% (seeds "
            f"{FIRST_SEED} to {FIRST_SEED + len(runs) - 1}): the cause is {cause}."
        )
    return notes


def _gain(found: dict[tuple[str, str], Outcomes], name: str) -> str:
    values = (
        np.mean([run[OPTIMUM].accuracy for run in found[variant, name]])
        for variant in VARIANTS
    )
    return f"{name} " + " and ".join(f"{value:.1f}%" for value in values)


def forty_two_columns() -> float:
    """SGD+DCD on connect-4 with one column a square and no intercept."""
    X = load("connect-4", INTERCEPT).X[:, :-1]
    sample = Sample(np.ascontiguousarray(X), load("connect-4").y, intercept=False)
    folds = folds_of(sample, FIRST_SEED)
    coef = METHODS[SWEEP].alternate(folds, seed=FIRST_SEED).coef
    return accuracy(folds, folds.labels * (folds.X @ coef))
