"""How C enters: one for all, or one for each feature or group of samples."""

import numpy as np
import pytest

from bisvm.data.columns import SampleGroups
from bisvm.machines import Sensitivity
from bisvm.machines.regularization import (
    PerFeature,
    PerGroup,
    Shared,
    get_regularization,
)
from bisvm.testing import check_part

X = np.random.default_rng(0).normal(size=(30, 3)) * [1.0, 10.0, 0.1]


def parameter(regularization, C=1.0, *, linear=True, intercept="free"):
    (found,) = regularization.parameters(C, X, None, linear=linear, intercept=intercept)
    return found


@pytest.mark.parametrize(
    "regularization",
    [Shared(), PerFeature(), PerGroup(), Shared(C_bounds=(0.1, 1.0))],
    ids=repr,
)
def test_regularizations_are_value_objects(regularization):
    check_part(regularization)


def test_one_c_multiplies_the_summed_loss():
    train = np.array([[1.0, 0.0], [0.5, 2.0]])
    np.testing.assert_allclose(Shared().weights(3.0, train), 3.0 * train)
    precision, for_intercept = Shared().precision(3.0, 3)
    np.testing.assert_array_equal(precision, 1.0)
    assert for_intercept == 1.0


def test_one_c_per_feature_divides_the_penalties():
    train = np.ones((2, 1))
    C = np.array([1.0, 2.0, 4.0, 8.0])
    np.testing.assert_array_equal(PerFeature().weights(C, train), train)
    precision, for_intercept = PerFeature().precision(C, 3)
    np.testing.assert_allclose(precision, [1.0, 0.5, 0.25])
    assert for_intercept == 0.125


def test_one_c_per_group_multiplies_the_losses_of_its_samples():
    groups = SampleGroups.of(["b", "a", "b"])
    train = np.array([[1.0, 0.0], [0.5, 2.0], [1.0, 3.0]])
    C = np.array([2.0, 10.0])
    np.testing.assert_allclose(
        PerGroup().weights(C, train, groups), [[10.0, 0.0], [1.0, 4.0], [10.0, 30.0]]
    )
    sensitivity = Sensitivity(weights=np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    np.testing.assert_array_equal(
        PerGroup().pullback(C, sensitivity, groups), [7.0, 14.0]
    )
    for missing in (PerGroup().weights, PerGroup().pullback):
        with pytest.raises(ValueError, match="sample_groups"):
            missing(C, train)


def test_the_natural_unit_of_c_is_one_over_the_variance_of_a_linear_machine():
    variance = X.var(axis=0)
    assert parameter(Shared()).unit == pytest.approx(1.0 / variance.mean())
    assert parameter(Shared(), linear=False).unit == 1.0
    np.testing.assert_allclose(parameter(PerFeature()).unit, 1.0 / variance)


def test_bounds_are_in_natural_units_and_contain_the_start():
    found = parameter(Shared(), linear=False)
    assert found.bounds == (1e-4, 1e5)
    assert parameter(Shared(), 1e9, linear=False).bounds[1] == 1e9
    assert parameter(Shared(C_bounds=(0.5, 2.0))).bounds == (0.5, 2.0)


def test_a_penalised_intercept_has_a_c_of_its_own():
    assert parameter(PerFeature(), intercept="penalized").size == 4
    for intercept in ("free", "none"):
        assert parameter(PerFeature(), intercept=intercept).size == 3


def test_one_number_stands_for_all_features():
    np.testing.assert_array_equal(parameter(PerFeature(), 2.0).value, [2.0, 2.0, 2.0])


def test_pullbacks_collect_what_moves_with_log_c():
    sensitivity = Sensitivity(
        weights=np.array([[1.0, 2.0], [3.0, 4.0]]),
        precision=np.array([1.0, -2.0, 3.0]),
        intercept_precision=5.0,
    )
    np.testing.assert_array_equal(Shared().pullback(1.0, sensitivity), [10.0])
    np.testing.assert_array_equal(
        PerFeature().pullback(np.ones(3), sensitivity), [-1.0, 2.0, -3.0]
    )
    np.testing.assert_array_equal(
        PerFeature().pullback(np.ones(4), sensitivity), [-1.0, 2.0, -3.0, -5.0]
    )


@pytest.mark.parametrize(
    "regularization, C, message",
    [
        (Shared(), [1.0, 2.0], "regularization='per_feature'"),
        (Shared(), 0.0, "positive and finite"),
        (Shared(), -1.0, "positive and finite"),
        (Shared(), np.nan, "positive and finite"),
        (Shared(), "big", "C must be"),
        (PerFeature(), [1.0, 2.0], "expected one number or 3"),
        (Shared(C_bounds="wide"), 1.0, "C_bounds"),
        (Shared(C_bounds=(1.0, 2.0, 3.0)), 1.0, "C_bounds"),
    ],
)
def test_a_c_that_makes_no_sense_is_refused(regularization, C, message):
    with pytest.raises(ValueError, match=message):
        parameter(regularization, C)


def test_one_c_per_feature_is_for_linear_machines():
    with pytest.raises(ValueError, match="kernel='ard'"):
        parameter(PerFeature(), linear=False)


def test_names_stand_for_regularizations():
    assert get_regularization("shared") == Shared()
    assert get_regularization("per_feature") == PerFeature()
    assert get_regularization("per_group") == PerGroup()
    with pytest.raises(ValueError, match="'shared', 'per_feature'"):
        get_regularization("per_sample")
