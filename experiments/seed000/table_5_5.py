"""Table 5.5 and figure 5.9: the seeds data, one gamma per feature and class.

Three one-vs-rest kernel machines without bias, each with a c and seven gammas of its
own, learned on five folds of 150 points; 60 points are for testing (150 and 60 are the
sizes that the published rates imply). Starts are random, c in [5, 15] and gamma in
[0.5, 1.5]. Split and scaling were not published: here every split is random, and
features are scaled to [-1, 1] on its training part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bisvm import BilevelSVC, datasets
from bisvm.optimizers import Optimizer
from bisvm.published import RPROP
from experiments.common import (
    Context,
    Result,
    Spread,
    Table,
    binary,
    drawing,
    random_splits,
)
from experiments.seed000.fits import (
    LOG_LBFGS,
    LOWER,
    MEASURES,
    Part,
    Scores,
    dots,
    fitted,
    kernel_machine,
    rate,
    scores,
    spread,
    to_range,
)

TITLE = "Table 5.5, figure 5.9: seeds, one γ per feature, three one-vs-rest machines"

SIZES = (150, 60)
CLASSES = (1, 2, 3)
FEATURES = (
    "area",
    "perimeter",
    "compactness",
    "length",
    "width",
    "asymmetry",
    "groove",
)
# The published 501 evaluations are a limit: 100 times five folds, and the last machine.
OPTIMIZERS: dict[str, Optimizer] = {"LBFGS-B": LOG_LBFGS, "RPROP": RPROP(max_iter=99)}

PUBLISHED = {
    ("LBFGS-B", 1): Scores(0.1145, 0.0154, 100.0, 0.1037, 93.33, 441),
    ("LBFGS-B", 2): Scores(0.0374, 0.0144, 100.0, 0.0407, 100.0, 366),
    ("LBFGS-B", 3): Scores(0.0766, 0.0257, 100.0, 0.0703, 96.67, 331),
    ("RPROP", 1): Scores(0.1099, 0.0208, 99.33, 0.1075, 93.33, 501),
    ("RPROP", 2): Scores(0.0383, 0.0161, 100.0, 0.0406, 100.0, 501),
    ("RPROP", 3): Scores(0.0798, 0.0251, 100.0, 0.0699, 96.67, 501),
}
DEFAULTS = "bisvm defaults"


def run(context: Context) -> Result:
    X, y = datasets.load("seeds", return_X_y=True)
    runs = [
        one_split(to_range(X, train), y, train, test, number)
        for number, (train, test) in enumerate(random_splits(y, SIZES, context.splits))
    ]
    gammas = np.array([gamma for _, _, gamma in runs])
    return Result(
        tables=[
            _table([one for one, _, _ in runs]),
            _three_classes([accuracy for _, accuracy, _ in runs]),
            _widths(gammas),
        ],
        figures={"figure_5_9": _figure_5_9(gammas)},
        notes=_notes(context.splits),
    )


def one_split(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, number: int
) -> tuple[dict[Any, Scores], dict[str, float], np.ndarray]:
    """Scores by (optimizer, class), accuracies, and the gammas of figure 5.9."""
    rng = np.random.default_rng([5, number])
    found: dict[Any, Scores] = {}
    decisions: dict[str, list[np.ndarray]] = {name: [] for name in OPTIMIZERS}
    for label in CLASSES:
        of_train, of_test = (
            Part(X[rows], binary(y[rows], label)) for rows in (train, test)
        )
        c, gamma = rng.uniform(5, 15), rng.uniform(0.5, 1.5, X.shape[1])
        for name, optimizer in OPTIMIZERS.items():
            machine = kernel_machine(c, gamma, optimizer, random_state=number)
            fitted(machine, of_train)
            found[name, label] = scores(machine, of_train, of_test)
            decisions[name].append(machine.decision_function(of_test.X))
            if (name, label) == ("LBFGS-B", 2):
                figure_5_9 = machine.kernel_.gamma
    accuracies = {
        name: _accuracy(np.stack(d, 1), y[test]) for name, d in decisions.items()
    }
    defaults, accuracies[DEFAULTS] = _defaults(X, y, train, test, number)
    return {**found, **defaults}, accuracies, figure_5_9


def _defaults(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, number: int
) -> tuple[dict[Any, Scores], float]:
    """The estimator as it comes: one set of hyperparameters for the three classes."""
    machine = BilevelSVC(kernel="ard", multi_class="ovr", random_state=number)
    fitted(machine, Part(X[train], y[train]))
    on_train, on_test = (machine.decision_function(X[rows]) for rows in (train, test))
    rates = {
        (DEFAULTS, label): Scores(
            train_CR=rate(on_train[:, k], binary(y[train], label)),
            test_CR=rate(on_test[:, k], binary(y[test], label)),
        )
        for k, label in enumerate(CLASSES)
    }
    return rates, _accuracy(on_test, y[test])


def _accuracy(decision: np.ndarray, y: np.ndarray) -> float:
    return 100.0 * float(np.mean(np.array(CLASSES)[decision.argmax(axis=1)] == y))


def _table(runs: list[dict[Any, Scores]]) -> Table:
    rows: list[tuple[Any, ...]] = []
    for name in (*OPTIMIZERS, DEFAULTS):
        for label in CLASSES:
            who = f"{name}, {label} vs. rest"
            if (name, label) in PUBLISHED:
                rows.append((who, "published", *PUBLISHED[name, label].cells()))
                who = ""
            ours = spread([one[name, label] for one in runs])
            rows.append((who, f"{len(runs)} splits", *ours))
    return Table(TITLE, {"classifier": "", "from": "", **MEASURES}, rows)


def _three_classes(accuracies: list[dict[str, float]]) -> Table:
    rows = [
        (name, Spread.of(one[name] for one in accuracies))
        for name in (*OPTIMIZERS, DEFAULTS)
    ]
    return Table(
        "The three machines together: the class of the largest decision value",
        {"machines": "", "test CR %": ".2f"},
        rows,
        "three_classes",
    )


def _widths(gammas: np.ndarray) -> Table:
    low, median, high = np.quantile(gammas, [0.25, 0.5, 0.75], axis=0)
    at_bound = np.mean(gammas < 1.5 * LOWER, axis=0)
    return Table(
        "Figure 5.9: γ of each feature, 2 vs. rest, LBFGS-B",
        {
            "feature": "",
            "median": ".3f",
            "quartile": ".3f",
            "to": ".3f",
            "at bound": ".0%",
        },
        list(zip(FEATURES, median, low, high, at_bound, strict=True)),
        "figure_5_9",
    )


def _figure_5_9(gammas: np.ndarray) -> Any:
    with drawing() as plt:
        figure, axes = plt.subplots(figsize=(5.2, 3.2))
        dots(axes, gammas, FEATURES)
        axes.axhline(LOWER, color="0.5", linestyle=":", zorder=0)
        axes.set(
            ylabel="γ of the feature, scaled to [-1, 1]",
            title="Seeds, 2 vs. rest: learned widths",
        )
    return figure


def _notes(splits: int) -> list[str]:
    return [
        f"Mean ± standard deviation over {splits} stratified random splits: 150 points "
        "for training (five folds), 60 for testing. H is in the thesis's units, half "
        "the mean squared error; H_min is its mean over the folds.",
        "The scaling was not published: features are scaled to [-1, 1] on the training "
        "part. Standardised, raw or [0, 1] features give the same H and rates within "
        "the spread (tried on 15 splits); only the sizes of γ change.",
        "Evaluations are lower-level solves, folds included, and the final machine. "
        "RPROP's published 501 are its limit of 100 rounds; ours stops when all steps "
        "are below 0.001.",
        "The last three rows are BilevelSVC(kernel='ard', multi_class='ovr'), with its "
        f"own criterion ({BilevelSVC().criterion!r}), a free intercept, a prior, its "
        "own starts, and one set of hyperparameters for the three classes.",
    ]
