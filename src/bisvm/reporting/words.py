"""Sentences about a fitted model, for the report and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, is_regressor

from bisvm.core.types import Array, ArrayLike, UserData, UserVector
from bisvm.data.matrices import RowBlocks, column_scale
from bisvm.estimators.number_quality import NumberQuality
from bisvm.estimators.quality import NO_BETTER, Quality, share_in_words
from bisvm.search.history import Certificate
from bisvm.search.kernel_choice import (
    LAPLACIAN,
    ONE,
)
from bisvm.selection.comparison import Entry, disagreement

# What hyperparameters mean, for readers who have not met them.
MEANINGS: Mapping[str, str] = {
    "C": "the larger, the more closely the training rows are fitted",
    "epsilon": "errors smaller than this hardly count; in units of the target",
    "gamma": "the larger, the more local the influence of a training row",
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
ONE_WIDTH = (ONE, LAPLACIAN)
# Widths that differ by less, relatively, are the same.
SAME_WIDTH = 1e-3
# Level of the intervals of what is measured, and of what is expected on new data. One
# standard error is the other level at which errors are compared with expected ones.
LEVEL, ONE_ERROR = 0.95, 0.6827
# What rows are called on which a model is measured.
TEST_ROWS, TRAINING_ROWS = "test rows", "training rows in cross-validation"
# Rows of a class that say little about how many of them are found.
FEW = 30
# Verdicts on another method.
NO_DIFFERENCE, WORSE, BETTER = (
    "no difference beyond chance",
    "bisvm is better",
    "better than bisvm",
)


def decimals(value: float, digits: int) -> str:
    """A number with this many decimals, and no minus sign before zeros."""
    return f"{round(float(value), digits) + 0.0:.{digits}f}"


def hyperparameters_of(machine: BaseEstimator) -> dict[str, ArrayLike]:
    """All learned values by name."""
    values = getattr(machine, "hyperparameters_", None)
    if values is not None:
        return dict(values)
    return {name: getattr(machine, f"{name}_") for name in ("lambda_w", "lambda_f")}


def learned_in_words(machine: BaseEstimator, spread: Array | None = None) -> list[str]:
    """A line for every hyperparameter; widths are told in standardised units.

    spread : `spread_of` the training rows, if they are known
    """
    return [
        _widths(machine, name, value, spread)
        or in_words(name, value, is_regressor(machine))
        for name, value in hyperparameters_of(machine).items()
    ]


def spread_of(
    machine: BaseEstimator, X: UserData, sample_weight: UserVector = None
) -> Array | None:
    """The scale to which one width of all inputs is relative, as the kernel has it.

    None for a machine that has no widths for single inputs.
    """
    values = hyperparameters_of(machine).get("gamma")
    if values is None or _standard(machine, values, None) is None:
        return None
    weight = None if sample_weight is None else np.asarray(sample_weight)
    whole = sparse.issparse(X) or isinstance(X, RowBlocks)
    return column_scale(X if whole else np.asarray(X, dtype=float), weight)


def _standard(
    machine: BaseEstimator, value: ArrayLike, scale: Array | None
) -> Array | None:
    """gamma_d s_d^p of the inputs that vary; None if inputs have no gamma of their own.

    p is 2 for a Gaussian kernel and 1 for a Laplacian; s are the standard deviations,
    unless another scale is given.
    """
    deviation = getattr(machine, "feature_scale_", None)
    power = POWERS.get(type(getattr(machine, "kernel_", None)).__name__)
    if deviation is None or power is None:
        return None
    deviation = np.asarray(deviation, dtype=float)
    if np.shape(value) != deviation.shape or not (deviation > 0).any():
        return None
    unit = deviation if scale is None else np.asarray(scale, dtype=float)
    standard: Array = (np.asarray(value, dtype=float) * unit**power)[deviation > 0]
    return standard


def _is_same(values: Array | None) -> bool:
    """Whether all widths are the same, but for rounding errors."""
    if values is None or not values.min() > 0:
        return False
    return bool(values.max() <= (1.0 + SAME_WIDTH) * values.min())


def _has_one_width(
    machine: BaseEstimator, value: ArrayLike, spread: Array | None
) -> bool:
    choice = getattr(machine, "kernel_choice_", None)
    if choice is not None and choice.name in ONE_WIDTH:
        return True
    return spread is not None and _is_same(_standard(machine, value, spread))


def free_values(machine: BaseEstimator, spread: Array | None = None) -> int:
    """Number of hyperparameters of the final machine that are not tied to others.

    Widths of single inputs may have been searched, and refused: they are one then.
    """
    names = [str(name) for name, _ in getattr(machine, "coordinates_", ())]
    widths = sum(name.startswith("gamma[") for name in names)
    value = getattr(machine, "hyperparameters_", {}).get("gamma", 0.0)
    if widths < 2 or not _has_one_width(machine, value, spread):
        return len(names)
    return len(names) - widths + 1


def _widths(
    machine: BaseEstimator, name: str, value: ArrayLike, spread: Array | None
) -> str | None:
    """gamma of every input in standardised units, or the one that all share."""
    standard = _standard(machine, value, None) if name == "gamma" else None
    if standard is None:
        return None
    meaning = MEANINGS["gamma"]
    one, count = _has_one_width(machine, value, spread), len(standard)
    shared = None if spread is None else _standard(machine, value, spread)
    if one and shared is not None and _is_same(shared):
        return (
            f"gamma = {shared[0]:.4g} for all {count} inputs, in units of their usual "
            "spread (standard deviation, or interquartile range / 1.349 if smaller): "
            f"{meaning}"
        )
    text = _range(standard).partition(" (")[0]
    own = "in units of their standard deviations"
    if one and _is_same(standard):
        return f"gamma = {text} for all {count} inputs, {own}: {meaning}"
    why = " (one width for all, relative to their usual spread)" if one else ""
    meaning += _remark("gamma", standard)
    return f"gamma = {text} for {count} inputs, {own}{why}: {meaning}"


def in_words(name: str, value: ArrayLike, regression: bool = False) -> str:
    """One hyperparameter: its value or range, its meaning, and a remark."""
    values = np.asarray(value, dtype=float)
    last = name.split("__")[-1]
    meaning = MEANINGS.get(last, "a parameter of the kernel")
    if regression and last == "C":
        return f"{name} = {_range(values)} (in units of the target): {meaning}"
    return f"{name} = {_range(values)}: {meaning}{_remark(last, values)}"


def _range(values: Array) -> str:
    if values.size == 1:
        return f"{values.item():.4g}"
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    if low == high:
        return f"{low} ({values.size} equal values)"
    return f"{low} to {high} ({values.size} values)"


def _remark(name: str, values: Array) -> str:
    if name == "gamma" and values.size > 1 and values.max() > 100 * values.min():
        return " (inputs with a small value hardly matter)"
    return ""


def expected_in_words(machine: BaseEstimator) -> str | None:
    """What to expect on new data, if the search could estimate it.

    If accuracy says little, this is the balanced accuracy in cross-validation; it has
    no correction for the choice of hyperparameters.
    """
    score = getattr(machine, "expected_score_", None)
    if score is None:
        return None
    quality = getattr(machine, "quality_", None)
    if quality is not None and quality.balanced:
        one = quality.measure
        words = share_in_words(one.value, one.low, one.high)
        n = round(float(quality.rows.sum()))
        doubt = "is slightly too high, since the hyperparameters were"
        if machine.threshold is not None:
            doubt = "may be several points too high, since the threshold was"
        return (
            f"In cross-validation on the {n:,} training rows: {one.name} {words}. It "
            f"{doubt} chosen on these rows."
        )
    words = share_in_words(score.value, *score.interval(level=LEVEL))
    return f"Expected accuracy on new data, by cross-validation: {words}."


def expected_fit_in_words(machine: BaseEstimator) -> str | None:
    """R^2 and error to expect on new data, if the search could estimate them."""
    score = machine.expected_score_
    if score is None:
        return None
    low, high = score.interval(level=LEVEL)
    least, most = score.rmse_interval(level=LEVEL)
    return (
        "Expected on new data, by cross-validation: R^2 "
        f"{decimals(score.value, 3)} ({LEVEL:.0%} interval {decimals(low, 3)} to "
        f"{decimals(high, 3)}), root mean squared error {score.rmse:.4g} ({least:.4g} "
        f"to {most:.4g})."
    )


def held_out_verdict(
    machine: BaseEstimator, y: Array, y_test: Array, r2: float, rmse: float
) -> tuple[bool | None, str] | None:
    """Whether errors on test rows are as expected, and why R^2 may not be.

    Returns
    -------
    good : whether there is no sign of overfitting; None if there are too few rows
    text : sentences that say so
    """
    score = getattr(machine, "expected_score_", None)
    if score is None:
        return None
    n = len(y_test)
    least, most = score.rmse_interval(n, LEVEL)
    _, usual = score.rmse_interval(n, ONE_ERROR)
    expected = (
        f"the root mean squared error on the {n:,} test rows is {rmse:.4g}, and "
        f"cross-validation predicts {least:.4g} to {most:.4g} for so many rows (95% "
        "interval)."
    )
    if rmse > most:
        text = "The search overfits the training rows, or the test rows are different"
        return False, f"{text}: {expected}"
    if not score.value > 0:
        # There is nothing to overfit: no better than the mean was expected.
        return None
    if rmse > usual:
        text = f"Too few test rows to tell overfitting from chance: {expected}"
    else:
        text = f"No sign of overfitting: {expected}"
    text += _why_r2_differs(score.interval(level=LEVEL), y, y_test, r2)
    return (None if rmse > usual else True), text


def _why_r2_differs(
    interval: tuple[float, float], y: Array, y_test: Array, r2: float
) -> str:
    """A sentence if R^2 differs because the target varies less, or more."""
    (low, high), own, usual = interval, float(y_test.std()), float(y.std())
    spread = f"(standard deviation {own:.4g} against {usual:.4g})"
    if r2 < low and own < usual:
        return (
            " R^2 is lower than expected mainly because the test rows vary less than "
            f"the training rows {spread}."
        )
    if r2 > high and own > usual:
        return (
            " R^2 is higher than expected mainly because the test rows vary more than "
            f"the training rows {spread}."
        )
    return ""


def fit_verdict(value: float, low: float) -> str:
    """Whether numbers can be predicted, by R^2 and the lower end of its interval."""
    if low > 0:
        return "Yes"
    return "Unclear" if value > 0 else "No better than guessing"


def answer_on_numbers(quality: NumberQuality, where: str) -> str:
    """Whether numbers can be predicted, and how well, on the rows named `where`."""
    return f"{fit_verdict(quality.r2, quality.low)}: {quality.figures_on(where)}."


def verdict_in_words(better: bool, chance: bool) -> str:
    """Whether the model is better than another method."""
    if chance:
        return NO_DIFFERENCE
    return WORSE if better else BETTER


def verdict_beside_guessing(answered: bool, verdict: str) -> str:
    """The verdict on what needs no columns: that of the answer, not a second one.

    answered : whether the answer is "Yes"
    verdict : by a comparison row by row
    """
    if answered:
        return WORSE
    return NO_DIFFERENCE if verdict == WORSE else verdict


def standing(verdicts: Mapping[str, str]) -> list[str]:
    """Which other methods are better on the same rows, and which are not worse.

    verdicts : of the other methods by name
    """
    said = []
    better, equal = (
        [name for name, own in verdicts.items() if own == verdict]
        for verdict in (BETTER, NO_DIFFERENCE)
    )
    if better:
        listed, verb = listing(better), "is" if len(better) == 1 else "are"
        listed = f"{listed[0].upper()}{listed[1:]}"
        said.append(f"{listed} {verb} better than bisvm on these rows.")
    if equal:
        said.append(f"No difference from bisvm beyond chance: {listing(equal)}.")
    if not said and verdicts:
        return ["On these rows, bisvm is better than every other method."]
    return said


def listing(names: Sequence[str]) -> str:
    """a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def answer(held_out: Quality | None, test: Quality | None) -> str | None:
    """Whether the classes can be predicted, and how well; None if nothing is known.

    held_out : in cross-validation on the training rows
    test : on test rows, if there are any
    """
    shown = test or held_out
    if shown is None:
        return None
    words = shown.figures_on(TEST_ROWS if test is shown else TRAINING_ROWS)
    if (held_out or shown).no_better_than_guessing:
        gain = None if held_out is None else held_out.gain_over_constant
        if test is None or gain is None or not _is_above_guessing(test):
            return f"{NO_BETTER}: {words}."
        return (
            f"Unclear: {words}. But in cross-validation, the loss is not lower than "
            f"that of guessing beyond chance ({gain:.1f} standard errors)."
        )
    if beats_guessing(held_out, test):
        return f"Yes: {words}."
    where = TEST_ROWS if test is shown else "rows"
    return f"Unclear: {words}. {_why_unclear(shown, held_out, where)}".rstrip()


def _is_above_guessing(shown: Quality) -> bool:
    """Whether these rows alone show that predictions are better than guessing."""
    above = shown.measure.low > shown.measure.guess
    return above and not shown.no_better_than_guessing


def _why_unclear(shown: Quality, held_out: Quality | None, where: str) -> str:
    """What speaks for a model, and what does not; "" if nothing speaks for it."""
    gain = None if held_out is None else held_out.gain_over_constant
    if gain is None:
        return ""
    name = "accuracy" if shown.constant is not None else shown.measure.name
    rarest = int(np.where(shown.rows > 0, shown.rows, np.inf).argmin())
    few, rare = shown.rows[rarest], str(shown.classes[rarest])
    count = f"; only {few:.0f} {where} are of class {rare!r}" if few < FEW else ""
    return (
        "Probabilities are better than guessing: in cross-validation, the loss is "
        f"lower by {gain:.1f} standard errors. But {name} is not clearly higher{count}."
    )


def remarks_on(held_out: Quality | None, test: Quality | None) -> list[str]:
    """What `answer` needs to be understood."""
    shown = test or held_out
    if shown is None:
        return []
    return shown.on_balance + (held_out or shown).on_ranking


def beats_guessing(held_out: Quality | None, test: Quality | None) -> bool:
    """Whether the answer is yes: also the lower end of the interval is above guessing.

    held_out, test : as for `answer`
    """
    shown = test or held_out
    if shown is None or (held_out or shown).no_better_than_guessing:
        return False
    return shown.measure.low > shown.measure.guess


def threshold_in_words(machine: BaseEstimator) -> str | None:
    """The threshold, if one was asked for; what one would change, if a class is rare.

    By cross-validation, which knows decision values of the training rows.
    """
    quality, held = getattr(machine, "quality_", None), machine._decisions
    if machine.threshold is not None:
        return _threshold_used(machine)
    if held is None or quality is None or not quality.unbalanced:
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
        "--threshold balanced_accuracy would find more of class "
        f"{str(machine.classes_[rare])!r}: in cross-validation about "
        f"{share(is_rare, threshold):.0%} instead of {share(is_rare, 0.0):.0%}, with "
        f"{share(~is_rare, threshold):.0%} of the other rows mistaken for it instead "
        f"of {share(~is_rare, 0.0):.0%}."
    )


def threshold_probability(machine: BaseEstimator) -> tuple[object, float] | None:
    """The class that is predicted from a probability below 1/2 on, and that number.

    None unless the machine has two classes, probabilities and a `threshold`.
    """
    moved = getattr(machine, "threshold", None) is not None
    if not moved or getattr(machine, "calibration_", None) is None:
        return None
    first, second = np.exp(machine._log_proba_of(np.zeros(1)))[0]
    classes = machine.classes_
    return (classes[0], float(first)) if first < second else (classes[1], float(second))


def _threshold_used(machine: BaseEstimator) -> str | None:
    """From which probability a class is predicted, and by which goal."""
    found = threshold_probability(machine)
    if found is None:
        return None
    goal, (name, limit), where = machine.threshold, found, "in cross-validation"
    by = "the lowest cost"
    if not isinstance(goal, Mapping):
        # F1 of a class is the pair of both.
        measure = goal if isinstance(goal, str) else goal[0]
        by = f"the best {'F1' if measure == 'f1' else measure.replace('_', ' ')}"
    if limit == 0.5:
        return f"The threshold stays at a probability of 50%: it has {by}, {where}."
    return (
        f"Class {str(name)!r} is predicted from a probability of {limit:.1%} on, not "
        f"50%: this has {by}, {where}."
    )


def difference_in_words(own: Entry, other: Entry, judged: bool = True) -> str | None:
    """On which held-out rows bisvm and another method are right.

    judged : whether to say which is better; not if accuracy is not what matters
    """
    if own.scores is None or other.scores is None:
        return None
    gained, lost, chance = disagreement(own.scores, other.scores)
    n, name = len(own.scores), other.method
    if not gained + lost:
        return f"bisvm and {name} are right on the same {own.scores.sum()} of {n} rows."
    better = "bisvm" if gained > lost else name
    verdict = "this may be chance" if chance else f"{better} is better"
    counts = f"bisvm alone is right on {gained}, and {name} alone on {lost}"
    return f"Of {n} test rows, {counts}{f': {verdict}' * judged}."


def certificates_of(machine: BaseEstimator) -> list[Certificate]:
    given = machine.certificate_
    return list(given) if isinstance(given, list) else [given]
