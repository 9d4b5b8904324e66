"""Priors on log-hyperparameters."""

import numpy as np
import pytest

from bisvm.criteria.priors import Shrinkage, get_prior
from bisvm.testing import check_gradient, check_part

V = np.array([0.3, -1.2, 2.0, 0.1])


def test_priors_are_value_objects():
    check_part(Shrinkage(0.3))


def test_shrinkage_is_the_variance_of_the_log_widths():
    value, _ = Shrinkage(0.1).evaluate(V)
    assert value == pytest.approx(0.1 * V.var())


def test_the_gradient_is_that_of_the_value():
    prior = Shrinkage(0.1)
    check_gradient(prior.evaluate(V)[1], lambda v: prior.evaluate(v)[0], V)


def test_a_common_size_costs_nothing():
    value, gradient = Shrinkage(0.1).evaluate(np.full(4, 7.0))
    assert value == 0.0
    np.testing.assert_array_equal(gradient, 0.0)
    assert Shrinkage(0.1).evaluate(V + 5.0)[0] == pytest.approx(
        Shrinkage(0.1).evaluate(V)[0]
    )


def test_a_negative_strength_is_refused():
    for strength in (-1.0, np.nan, np.inf, "strong", None, True):
        with pytest.raises(ValueError, match="must not be negative"):
            Shrinkage(strength).validate()


def test_names_stand_for_priors_and_none_for_no_prior():
    assert get_prior(None) is None
    assert get_prior("auto") == get_prior("shrinkage") == Shrinkage()
    assert get_prior(Shrinkage(2.0)).strength == 2.0
    with pytest.raises(ValueError, match="'auto', 'shrinkage'"):
        get_prior("gaussian")
