"""Sentences about a fitted model, for the report and the command line."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.base import BaseEstimator, is_regressor

from bisvm.core.types import Array, ArrayLike
from bisvm.estimators.quality import NO_BETTER, Quality
from bisvm.search.history import Certificate
from bisvm.selection.comparison import Entry, disagreement

# What hyperparameters mean, for readers who have not met them.
MEANINGS: Mapping[str, str] = {
    "C": "weight of training errors against a smooth decision",
    "epsilon": "residuals below this size count little; in units of the target",
    "gamma": "how quickly similarity falls with distance",
    "offset": "weight of the lower powers of the polynomial",
    "weights": "weights of the added kernels",
    "scale": "factors of the inputs",
    "filters": "patterns that the convolution responds to",
    "lambda_w": "penalty on the weights of the feature maps",
    "lambda_f": "penalty on the filters",
}
# Powers of the distance in kernels that have a width for every input.
POWERS = {"RBF": 2, "Laplacian": 1}
# Choices of kernel="auto" whose widths are the same for all standardised inputs.
ONE_WIDTH = ("rbf", "laplacian")
# C below or above these is called small or large.
SMALL_C, LARGE_C = 0.1, 10.0


def hyperparameters_of(machine: BaseEstimator) -> dict[str, ArrayLike]:
    """All learned values by name."""
    values = getattr(machine, "hyperparameters_", None)
    if values is not None:
        return dict(values)
    return {name: getattr(machine, f"{name}_") for name in ("lambda_w", "lambda_f")}


def learned_in_words(machine: BaseEstimator) -> list[str]:
    """A line for every hyperparameter; widths are told in standardised units."""
    return [
        _widths(machine, name, value) or in_words(name, value, is_regressor(machine))
        for name, value in hyperparameters_of(machine).items()
    ]


def _widths(machine: BaseEstimator, name: str, value: ArrayLike) -> str | None:
    """gamma of every input times its standard deviation (squared if Gaussian)."""
    given = getattr(machine, "feature_scale_", None)
    power = POWERS.get(type(getattr(machine, "kernel_", None)).__name__)
    if name != "gamma" or given is None or power is None:
        return None
    scale = np.asarray(given, dtype=float)
    if np.shape(value) != scale.shape or not (scale > 0).any():
        return None
    standard = (np.asarray(value, dtype=float) * scale**power)[scale > 0]
    choice = getattr(machine, "kernel_choice_", None)
    count = f", for {len(standard)} inputs"
    if choice is not None and choice.name in ONE_WIDTH:
        standard = np.exp(np.mean(np.log(standard), keepdims=True))
        count = f", the same for all {len(scale)} inputs"
    text = _range(standard).partition(" (")[0]
    meaning = MEANINGS["gamma"] + _remark("gamma", standard)
    return f"gamma = {text}{count}, in units of their standard deviations: {meaning}"


def in_words(name: str, value: ArrayLike, regression: bool = False) -> str:
    """One hyperparameter: its value or range, its meaning, and a remark.

    C of a regression is in units of the target: none is large or small by itself.
    """
    values = np.asarray(value, dtype=float)
    last = name.split("__")[-1]
    meaning = MEANINGS.get(last, "a parameter of the kernel")
    if regression and last == "C":
        meaning = "weight of training errors against a smooth function"
        return f"{name} = {_range(values)}: {meaning}, in units of the target"
    return f"{name} = {_range(values)}: {meaning}{_remark(last, values)}"


def _range(values: Array) -> str:
    if values.size == 1:
        return f"{values.item():.4g}"
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    if low == high:
        return f"{low} ({values.size} equal values)"
    return f"{low} to {high} ({values.size} values)"


def _remark(name: str, values: Array) -> str:
    if name == "C":
        typical = float(np.exp(np.mean(np.log(np.maximum(values, 1e-300)))))
        if typical < SMALL_C:
            return " (small: a smooth decision)"
        return " (large: the training rows are fitted closely)" * (typical > LARGE_C)
    if name == "gamma" and values.size > 1 and values.max() > 100 * values.min():
        return " (inputs with a small value hardly matter)"
    return ""


def share_in_words(value: float, low: float, high: float, level: int = 95) -> str:
    """A share with its interval: 80.1% (95% interval 73.3-85.8%)."""
    return f"{value:.1%} ({level}% interval {100 * low:.1f}-{high:.1%})"


def expected_in_words(machine: BaseEstimator) -> str | None:
    """The accuracy to expect on new data, if the search could estimate it."""
    score = getattr(machine, "expected_score_", None)
    if score is None:
        return None
    low, high = score.interval()
    words = share_in_words(score.value, low, high, 90)
    return f"Expected accuracy on new data, estimated from the training rows: {words}."


def expected_fit_in_words(machine: BaseEstimator) -> str | None:
    """R^2 and error to expect on new data, if the search could estimate them."""
    score = machine.expected_score_
    if score is None:
        return None
    (low, high), (least, most) = score.interval(), score.rmse_interval()
    return (
        f"Expected on new data: R^2 {score.value:.3f} (90% interval {low:.3f} to "
        f"{high:.3f}), root mean squared error {score.rmse:.4g} ({least:.4g} to "
        f"{most:.4g})."
    )


def fit_verdict(value: float, low: float) -> str:
    """Whether numbers can be predicted, by R^2 and the lower end of its interval."""
    if low > 0:
        return "Yes"
    return "Hardly" if value > 0 else "No better than always predicting the mean"


def verdict_in_words(better: bool, chance: bool) -> str:
    """Whether the model is better than another method."""
    if chance:
        return "no difference beyond chance"
    return "bisvm is better" if better else "better than bisvm"


def answer(held_out: Quality | None, test: Quality | None) -> str | None:
    """Whether the classes can be predicted, and how well; None if nothing is known.

    held_out : on the held-out rows of the search; the verdict comes from these
    test : on rows that were held out from the search, if there are any
    """
    shown = test or held_out
    if shown is None:
        return None
    verdict = held_out or shown
    if verdict.no_better_than_guessing:
        return f"{NO_BETTER}: {shown.figures}."
    one = shown.measure
    word = "Yes" if one.low > one.guess else "Slightly better than guessing"
    return f"{word}: {shown.figures}."


def threshold_in_words(machine: BaseEstimator) -> str | None:
    """What the threshold of balanced accuracy would change, if one class is rare.

    By the held-out rows of the search, which know its decision values at any threshold.
    """
    quality, held = getattr(machine, "quality_", None), machine._decisions
    moved = machine.threshold is not None or held is None
    if moved or quality is None or not quality.unbalanced:
        return None
    if quality.no_better_than_guessing:
        # Its remarks say so already.
        return None
    threshold = machine.best_threshold("balanced_accuracy")
    rare = int(quality.rows.argmin())
    is_rare = held.positive == bool(rare)

    def share(rows: Array, limit: float) -> float:
        """Share of these rows that are predicted to be of the rare class."""
        called = (held.values[rows] > limit) == bool(rare)
        return float(np.average(called, weights=held.weight[rows]))

    if share(is_rare, threshold) <= share(is_rare, 0.0):
        return None
    return (
        f"--threshold balanced_accuracy would find {share(is_rare, threshold):.0%} of "
        f"class {str(machine.classes_[rare])!r} instead of {share(is_rare, 0.0):.0%}, "
        f"and mistake {share(~is_rare, threshold):.0%} of the others for it instead of "
        f"{share(~is_rare, 0.0):.0%}."
    )


def difference_in_words(own: Entry, other: Entry) -> str | None:
    """On which held-out rows bisvm and another method are right."""
    if own.scores is None or other.scores is None:
        return None
    gained, lost, chance = disagreement(own.scores, other.scores)
    n, name = len(own.scores), other.method
    if not gained + lost:
        return f"bisvm and {name} are right on the same {own.scores.sum()} of {n} rows."
    better = "bisvm" if gained > lost else name
    verdict = "this may be chance" if chance else f"{better} is better"
    return (
        f"Of {n} held-out rows, only bisvm is right on {gained} and only {name} on "
        f"{lost}: {verdict}."
    )


def certificates_of(machine: BaseEstimator) -> list[Certificate]:
    given = machine.certificate_
    return list(given) if isinstance(given, list) else [given]
