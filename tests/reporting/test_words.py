"""Hyperparameters in words."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from bisvm import BilevelSVC
from bisvm.data.matrices import column_scale
from bisvm.estimators.importance import Importance
from bisvm.estimators.quality import NO_BETTER, Quality
from bisvm.kernels import RBF, Laplacian
from bisvm.reporting.importances import most_important
from bisvm.reporting.words import (
    BETTER,
    NO_DIFFERENCE,
    WORSE,
    answer,
    decimals,
    difference_in_words,
    free_values,
    in_words,
    learned_in_words,
    remarks_on,
    spread_of,
    standing,
    verdict_beside_guessing,
)
from bisvm.search.history import Comparison, PairedDifference
from bisvm.search.kernel_choice import NOT_GAUSSIAN, KernelChoice
from bisvm.search.refinement import NESTED, SEPARATE
from bisvm.selection.comparison import Entry

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize(
    "value, shown",
    [
        (0.07491, "gamma = 0.07491:"),
        (np.full(13, 0.0749), "gamma = 0.0749 (13 equal values):"),
        (np.array([0.01, 0.5]), "gamma = 0.01 to 0.5 (2 values):"),
    ],
)
def test_a_range_is_told_where_there_is_one(value, shown):
    assert in_words("gamma", value).startswith(shown)


def heavy_tailed():
    """Two moons, the second of them in other units and with outliers."""
    X, y = make_moons(80, noise=0.2, random_state=0)
    X[::20, 1] *= 20.0
    return X * [1.0, 100.0], y


@pytest.fixture(scope="module")
def one_width():
    """A machine with one width, relative to the scale of every input."""
    X, y = heavy_tailed()
    gamma = 0.3 / column_scale(X) ** 2
    kernel = RBF(gamma=gamma, per_feature=True)
    return BilevelSVC(kernel, learn=(), cv=3, random_state=0).fit(X, y)


def test_one_width_is_told_in_the_units_that_it_has(one_width):
    X, _ = heavy_tailed()
    assert column_scale(X)[1] < 0.5 * X[:, 1].std()
    spread = spread_of(one_width, X)
    np.testing.assert_array_equal(spread, column_scale(X))
    _, text = learned_in_words(one_width, spread)
    assert text.startswith("gamma = 0.3 for all 2 inputs, in units of their usual")
    assert "interquartile range / 1.349 if smaller" in text


def test_without_the_scale_the_range_in_standard_deviations_is_told(one_width):
    X, _ = heavy_tailed()
    standard = one_width.hyperparameters_["gamma"] * X.std(axis=0) ** 2
    _, text = learned_in_words(one_width)
    assert f"{standard.min():.3g} to {standard.max():.3g} for 2 inputs, in" in text
    assert "in units of their standard deviations: the" in text


def test_widths_that_were_refused_do_not_count(one_width):
    X, y = heavy_tailed()
    searched = BilevelSVC("ard", cv=3, random_state=0, max_iter=5).fit(X, y)
    assert len(searched.coordinates_) == 3
    spread = spread_of(searched, X)
    widths = searched.hyperparameters_["gamma"] * column_scale(X) ** 2
    one = np.ptp(widths) < 1e-3 * widths.min()
    assert free_values(searched, spread) == (2 if one else 3)
    searched.hyperparameters_["gamma"] = one_width.hyperparameters_["gamma"]
    assert free_values(searched, spread) == 2
    searched.hyperparameters_["gamma"] = np.array([1.0, 2.0])
    assert free_values(searched, spread) == 3
    plain = BilevelSVC("rbf", cv=3, random_state=0, max_iter=2).fit(X, y)
    assert spread_of(plain, X) is None and free_values(plain) == 2


def test_c_is_neither_large_nor_small_by_itself():
    told = in_words("C", 1e4)
    assert (
        told == "C = 1e+04: the larger, the more closely the training rows are fitted"
    )


def test_other_methods_that_are_not_worse_are_named():
    better, same, worse = "better than bisvm", NO_DIFFERENCE, "bisvm is better"
    told = standing({"guessing": worse, "logistic regression": same, "SVC": same})
    assert told == [
        "No difference from bisvm beyond chance: logistic regression and SVC."
    ]
    told = standing({"random forest": better, "boosting": same})
    assert told[0] == "Random forest is better than bisvm on these rows."
    assert told[1] == "No difference from bisvm beyond chance: boosting."
    assert "better than every other method" in standing({"guessing": worse})[0]
    assert standing({}) == []


def test_rows_are_counted_without_a_verdict_if_accuracy_does_not_matter():
    one, other = np.ones(30, bool), np.arange(30) < 10
    own, rival = Entry("a", 0, "", None, one, 0.0), Entry("b", 0, "", None, other, 0.0)
    counts = "Of 30 test rows, bisvm alone is right on 20, and b alone on 0"
    assert difference_in_words(own, rival) == f"{counts}: bisvm is better."
    assert difference_in_words(own, rival, judged=False) == f"{counts}."


def test_the_verdict_on_guessing_is_that_of_the_answer():
    for answered, verdict, expected in (
        (True, NO_DIFFERENCE, WORSE),
        (True, BETTER, WORSE),
        (False, WORSE, NO_DIFFERENCE),
        (False, BETTER, BETTER),
    ):
        assert verdict_beside_guessing(answered, verdict) == expected


def importance(measure, values, errors):
    size, names = len(values), tuple("abc"[: len(values)])
    figures = np.array(values), np.array(errors), np.zeros(size), np.zeros(size)
    return Importance(names, *figures, measure, 100)


def test_the_most_important_column_may_be_none():
    clear = importance("accuracy", [0.2, 0.01], [0.01, 0.01])
    assert most_important(clear) == (
        "a matters beyond chance: accuracy falls by 20.0 percentage points if it is "
        "shuffled (95% interval 18.0 to 22.0)."
    )
    unclear = importance("accuracy", [0.012, 0.01], [0.01, 0.01])
    assert most_important(unclear) == (
        "No column is certain to matter. a comes first: accuracy falls by 1.2 "
        "percentage points if it is shuffled, but that may be chance (95% interval "
        "-0.8 to 3.2)."
    )
    of_numbers = importance("R^2", [0.179], [0.01])
    assert "R^2 falls by 0.179 if it is shuffled" in most_important(of_numbers)
    several = importance("accuracy", [0.2, 0.1, 0.01], [0.01, 0.01, 0.01])
    assert most_important(several).startswith("a and b matter beyond chance. a comes")


def test_zero_has_no_sign():
    assert decimals(-0.0004, 3) == "0.000" and decimals(-0.04, 1) == "0.0"
    assert decimals(-0.05, 2) == "-0.05" and decimals(np.float64(1.25), 2) == "1.25"


def test_rows_of_folds_are_not_called_held_out(one_width):
    X, y = heavy_tailed()
    model = BilevelSVC("rbf", cv=3, random_state=0, max_iter=2).fit(X, y)
    folds = answer(model.quality_, None)
    assert "on 80 training rows in cross-validation; guessing (always" in folds
    assert "on 80 test rows; guessing (always" in answer(model.quality_, model.quality_)


def quality(hits, misses, **given):
    """Of two classes, with as many rows that are right and wrong in each."""
    (a, b), (c, d) = hits, misses
    counts = np.array([[a, c], [d, b]], dtype=float)
    return Quality(np.array(["no", "yes"]), counts, **given)


def test_rows_that_do_not_show_it_are_no_yes():
    good = quality((180, 20), (7, 7), gain_over_constant=3.8)
    few = quality((62, 2), (4, 7))
    assert answer(good, good).startswith("Yes: balanced accuracy ")
    unclear = answer(good, few)
    assert unclear.startswith("Unclear: balanced accuracy ")
    assert "on 75 test rows; guessing (always 'no') gives 50.0%. Prob" in unclear
    assert "lower by 3.8 standard errors. But balanced accuracy is not" in unclear
    assert "only 9 test rows are of class 'yes'" in unclear
    assert answer(few, few).startswith(NO_BETTER)
    # Test rows alone may show what the loss does not.
    doubtful = quality((180, 20), (7, 7), gain_over_constant=1.1)
    mixed = answer(doubtful, good)
    assert mixed.startswith("Unclear") and "(1.1 standard errors)" in mixed
    assert answer(doubtful, few).startswith(NO_BETTER)
    # Figures of the test rows, and advice by cross-validation.
    assert remarks_on(good, few) == few.on_balance


def test_the_measure_is_what_a_threshold_was_moved_for():
    plain, alike = (
        quality((37, 13), (10, 3), gain_over_constant=5.0, alike=own)
        for own in (False, True)
    )
    assert answer(plain, plain).startswith("Unclear: accuracy 79.4%")
    assert answer(alike, alike).startswith("Yes: balanced accuracy 80.0%")
    assert "Accuracy is 79.4%" in " ".join(alike.remarks)


def test_kernels_that_were_tried_say_against_what():
    lower, higher = PairedDifference(0.1, 0.08), PairedDifference(-0.1, 0.02)
    steps = (
        Comparison(SEPARATE, lower, 4.0, 500),
        Comparison(NOT_GAUSSIAN, higher, 0.0),
        Comparison("rbf", lower, 1.0),
    )
    assert KernelChoice("rbf", RBF(), steps).reasons == [
        "A Gaussian kernel with one width for all features instead of a linear "
        "machine: yes. In this comparison, the cross-validated loss is lower by 0.1 "
        "(1.2 standard errors; more than 1 needed).",
        "In this kernel, one width for each feature instead of one for all: no. In "
        "this comparison, the cross-validated loss is lower by 0.1 (1.2 standard "
        "errors; more than 4 needed, on a sample of 500 rows).",
        "A Laplacian kernel instead of a Gaussian one: no. In this comparison, the "
        "cross-validated loss is higher by 0.1 (5.0 standard errors).",
    ]


def test_a_gain_that_a_later_check_refused_says_so():
    gained = PairedDifference(0.1, 0.02)
    lost = PairedDifference(-0.1, 0.02)
    steps = Comparison(SEPARATE, gained, 4.0), Comparison(NESTED, lost, 0.0)
    refused = KernelChoice("rbf", RBF(), steps)
    assert refused.reasons[0].endswith("Nested cross-validation refused it later.")
    kept = KernelChoice("ard", RBF(per_feature=True), steps[:1])
    assert "refused" not in str(kept)
    # Widths that were confirmed, of a kernel that another one has replaced.
    confirmed = steps[0], Comparison(NESTED, gained, 0.5)
    replaced = Comparison(NOT_GAUSSIAN, gained, 0.0), *steps
    other = KernelChoice("laplacian", Laplacian(), (*confirmed, *replaced))
    told = [reason.endswith("refused it later.") for reason in other.reasons]
    assert told == [False, False, False, True, False]
