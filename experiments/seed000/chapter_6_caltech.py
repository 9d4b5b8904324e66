"""Figures 6.1 and 6.2: visual words of Caltech-101 images.

The thesis describes images by dense SIFT at several scales, 400 visual words and
spatial histograms (VLFeat), and learns machines one against the rest, from 30 images a
class for training and validation (five folds) and with 15 a class for testing:

- figure 6.1: five classes, the bilevel kernel machine with the RBF and with the
  exponential chi-square kernel; the latter is better;
- figure 6.2: ten classes, the chi-square kernel, bilevel against a grid search over
  c and gamma in {0.5, 1, 1.5, 2}: 82.67 against 78.67 per cent.

Section 6.2 adds a linear machine on the explicit map of the additive chi-square kernel,
against a grid over c in {1, 10, 100, 1000}, on Graz02. Those images are not to be had;
the same machines are learned on the Caltech images instead.

Our images are 64 x 64 pixels, a centre of the published ones, and of other classes:
neither the background class is among them, nor the classes with few images. The figures
are not comparable with the published ones, only with each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.feature_selection import VarianceThreshold
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.svm import LinearSVC

from bisvm import BilevelLinearSVC, BilevelSVC, datasets
from bisvm.images import BagOfVisualWords
from experiments.common import Context, Result, Spread, Table, drawing, inverse
from experiments.seed000.image_fits import (
    MEASURES,
    THESIS,
    Data,
    Outcome,
    RememberedChi2,
    cells,
    draw_confusion,
    fit,
    grid_search,
    grid_search_chi2,
    mean_confusion,
    rows_per_class,
)

TITLE = "Figures 6.1 and 6.2: visual words, Caltech-101"
SIZES = (30, 15)
MOST_SPLITS = 5
CLASSES = (5, 10)

# The number of words is the published one; for the others see the notes.
WORDS: dict[str, Any] = {
    "n_words": 400,
    "scales": (2, 3, 4, 6),
    "step": 3,
    "grids": ((1, 1), (2, 2)),
}
PUBLISHED_GRID = {"C": inverse([0.5, 1, 1.5, 2]), "gamma": [0.5, 1.0, 1.5, 2.0]}
WIDE_GRID = {"C": np.logspace(-1, 3, 9), "gamma": np.logspace(-1, 1.5, 6)}
LINEAR_GRID = {"C": inverse([1.0, 10.0, 100.0, 1000.0])}

RBF, CHI2 = "bilevel, RBF", "bilevel, exponential χ²"
AS_PUBLISHED = "bilevel, exponential χ², as in the thesis"
GRID = "grid 4 x 4 of the thesis, exponential χ²"
WIDE = "grid 9 x 6, exponential χ²"
LINEAR, LINEAR_4 = "bilevel, linear, explicit χ² map", "grid 4, linear, explicit χ² map"
PUBLISHED = {(10, AS_PUBLISHED): 82.67, (10, GRID): 78.67}

Outcomes = dict[str, list[Outcome]]


def run(context: Context) -> Result:
    images = datasets.load("caltech101_subset")
    splits = min(context.splits, MOST_SPLITS)
    found = {
        count: on_splits(images.X, images.y, count, splits, WORDS) for count in CLASSES
    }
    return report(found, images.target_names or [])


def report(found: dict[int, Outcomes], names: list[str]) -> Result:
    figures = {
        "figure_6_1": _figure(found[5], (RBF, CHI2), names[:5]),
        "figure_6_2": _figure(found[10], (CHI2, GRID), names),
    }
    return Result([_table(found)], figures, _notes(found, names))


# --- fits -----------------------------------------------------------------------------


def on_splits(
    X: np.ndarray, y: np.ndarray, n_classes: int, n_splits: int, words: dict[str, Any]
) -> Outcomes:
    """All machines on random splits of the images of the first classes."""
    found: Outcomes = {}
    chosen = np.isin(y, np.unique(y)[:n_classes])
    for number in range(n_splits):
        data = histograms(X[chosen], y[chosen], number, words)
        for name, outcome in one_split(data, number).items():
            found.setdefault(name, []).append(outcome)
    return found


def histograms(
    X: np.ndarray, y: np.ndarray, number: int, words: dict[str, Any]
) -> Data:
    """One split, the words found among its training images."""
    rng = np.random.default_rng([61, number])
    train, test = rows_per_class(y, SIZES, rng)
    bag = BagOfVisualWords(**words, random_state=number).fit(X[train])
    return Data(X[train], y[train], X[test], y[test]).mapped(bag.transform)


def one_split(data: Data, number: int) -> dict[str, Outcome]:
    kernel = RememberedChi2()
    # Words that no training image has would blur the RBF kernel's start.
    occurring = data.mapped(VarianceThreshold().fit(data.X).transform)
    explicit = data.mapped(AdditiveChi2Sampler().fit(data.X).transform)
    start = {"kernel": RememberedChi2(1.0), "C": inverse(0.5)}
    return {
        RBF: fit(BilevelSVC("rbf", random_state=number), occurring),
        CHI2: fit(BilevelSVC(kernel, random_state=number), data),
        AS_PUBLISHED: fit(BilevelSVC(**start, **THESIS, random_state=number), data),
        GRID: grid_search_chi2(data, **PUBLISHED_GRID, seed=number),
        WIDE: grid_search_chi2(data, **WIDE_GRID, seed=number),
        LINEAR: fit(BilevelLinearSVC(random_state=number), explicit),
        LINEAR_4: grid_search(LinearSVC(), LINEAR_GRID, explicit, number),
    }


# --- tables and figures ---------------------------------------------------------------


def _table(found: dict[int, Outcomes]) -> Table:
    rows = [
        (
            f"{count} classes" if number == 0 else "",
            name,
            PUBLISHED.get((count, name)),
            *cells(outcomes),
        )
        for count, machines in found.items()
        for number, (name, outcomes) in enumerate(machines.items())
    ]
    columns = {"": "", "machine": "", "published %": ".2f", **MEASURES}
    return Table("Caltech-101, 30 images a class to learn from", columns, rows)


def _figure(machines: Outcomes, pair: tuple[str, str], names: list[str]) -> Any:
    side = 1.6 + 0.36 * len(names)
    with drawing() as plt:
        figure, row = plt.subplots(1, 2, figsize=(2 * side, side), sharey=True)
        for axes, name in zip(row, pair, strict=True):
            draw_confusion(axes, mean_confusion(machines[name]), names, name)
    return figure


def _notes(found: dict[int, Outcomes], names: list[str]) -> list[str]:
    ten = found[10]
    return [
        "Not comparable with the published figures: these are other classes "
        f"({', '.join(names)}; the first five where there are five), without the "
        "background class and without classes of few images, which were the hard ones, "
        "and images of 64 x 64 pixels. Compare the machines with each other.",
        f"Mean ± standard deviation over {len(ten[CHI2])} random splits; in a split "
        f"one test image is {100 / (10 * SIZES[1]):.2f} points of ten classes.",
        f"χ² against RBF, paired over the splits: {_gain(found[5], CHI2, RBF)} points "
        f"with five classes, {_gain(ten, CHI2, RBF)} with ten. As in the thesis, χ² "
        "is the better kernel for histograms.",
        "Bilevel against grid search with the same kernel, ten classes: "
        f"{_gain(ten, CHI2, GRID)} points against the grid of the thesis, "
        f"{_gain(ten, CHI2, WIDE)} against the wide one; as in the thesis (below) "
        f"{_gain(ten, AS_PUBLISHED, GRID)}. The published gain of four points is not "
        "seen: these differences are within one deviation.",
        "'As in the thesis': no intercept, mean squared error, C and γ of its own for "
        "every class, from c = 0.5 and γ = 1 by L-BFGS-B. The start is that of section "
        "6.2; none is published for Caltech. The other bilevel machines are the "
        "library's defaults.",
        "Grids are searched by accuracy on five folds in scikit-learn's SVC, one "
        "against the rest. The thesis took 'the best performing' point of its grid, "
        "and does not say on which images.",
        "Figures 6.3 and 6.4 (Graz02) are not recomputed: the images are not to be "
        "had. Their machines are the last two rows, learned on the Caltech images.",
        "Words are found among the training images of each split. Scales, step and "
        "grids were chosen once among six settings (86.1 to 88.7%), by "
        "cross-validation on the training images of three other splits. Some of "
        "those are test images here, since there are only 100 a class: the level may "
        "be a little too good, for all machines alike.",
        "Seconds are of one of two cores that others used too, without the words; "
        "distances are remembered, so that the second bilevel χ² machine has them for "
        "nothing.",
    ]


def _gain(machines: Outcomes, name: str, other: str) -> str:
    """By how many points one machine is better than another, split by split."""
    pairs = zip(machines[name], machines[other], strict=True)
    return f"{Spread.of(a.rate - b.rate for a, b in pairs):+.2f}".replace("± +", "± ")
