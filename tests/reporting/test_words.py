"""Hyperparameters in words."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from bisvm import BilevelSVC
from bisvm.kernels import RBF, Laplacian
from bisvm.reporting.words import in_words, learned_in_words
from bisvm.search.history import Comparison, PairedDifference
from bisvm.search.kernel_choice import NOT_GAUSSIAN, KernelChoice
from bisvm.search.refinement import NESTED, SEPARATE


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


def test_one_width_is_told_as_one_in_standardised_units():
    X, y = make_moons(80, noise=0.2, random_state=0)
    model = BilevelSVC("auto", cv=3, random_state=0).fit(X * [1.0, 100.0], y)
    gamma, scale = model.hyperparameters_["gamma"], model.feature_scale_
    _, text = learned_in_words(model)
    standard = np.atleast_1d(gamma) * scale**2
    if model.kernel_choice_.name == "rbf":
        assert f"gamma = {standard[0]:.4g}, the same for all 2 inputs" in text
    else:
        assert f"{standard.min():.3g} to {standard.max():.3g}, for 2 inputs" in text
    assert "in units of their standard deviations" in text


def test_a_gain_that_a_later_check_refused_says_so():
    gained = PairedDifference(0.1, 0.02)
    lost = PairedDifference(-0.1, 0.02)
    steps = Comparison(SEPARATE, gained, 4.0), Comparison(NESTED, lost, 0.0)
    refused = KernelChoice("rbf", RBF(), steps)
    assert refused.reasons[0].endswith("A later check refused it.")
    kept = KernelChoice("ard", RBF(per_feature=True), steps[:1])
    assert "refused" not in str(kept)
    # Widths that were confirmed, of a kernel that another one has replaced.
    confirmed = steps[0], Comparison(NESTED, gained, 0.5)
    replaced = Comparison(NOT_GAUSSIAN, gained, 0.0), *steps
    other = KernelChoice("laplacian", Laplacian(), (*confirmed, *replaced))
    told = [reason.endswith("refused it.") for reason in other.reasons]
    assert told == [False, False, False, True, False]
