"""The hyperparameter vector: names, bounds, coordinates."""

import numpy as np
import pytest

from bisvm.core.parts import Parameter
from bisvm.core.space import Space
from tests.problems import make_objective, toy_data

C = Parameter("C", 2.0, (0.1, 10.0))
GAMMA = Parameter(
    "gamma",
    np.array([0.5, 1.0, 4.0]),
    (np.full(3, 1e-2), np.full(3, 1e2)),
    unit=np.array([1.0, 2.0, 4.0]),
)
OFFSET = Parameter("offset", -1.5, (-2.0, 2.0), scale="linear")


def space(learn="all", names=None):
    return Space((C, GAMMA, OFFSET), learn, names)


def test_theta_holds_logarithms_where_the_scale_says_so():
    expected = [*np.log([2.0, 0.5, 1.0, 4.0]), -1.5]
    np.testing.assert_allclose(space().theta0, expected)
    np.testing.assert_allclose(space().bounds[0], np.log([0.1, 10.0]))
    np.testing.assert_allclose(space().bounds[-1], [-2.0, 2.0])
    assert space().bounds.shape == (5, 2)


def test_names_say_which_entry_belongs_to_which_feature():
    assert space().names == ["C", "gamma[0]", "gamma[1]", "gamma[2]", "offset"]
    assert space(names=["a", "b", "c"]).names[1:4] == [
        "gamma[a]",
        "gamma[b]",
        "gamma[c]",
    ]


def test_feature_names_may_be_an_array():
    assert space(names=np.array(["a", "b", "c"])).names[1] == "gamma[a]"


def test_an_entry_that_belongs_to_no_feature_has_a_name_of_its_own():
    per_feature = Parameter("C", np.ones(3), (0.1, 10.0), labels=(0, 1, "intercept"))
    assert Space([per_feature], "all", ["a", "b"]).names[-1] == "C[intercept]"


def test_the_intercept_has_its_name_where_features_have_none():
    X, y = toy_data(20)
    objective = make_objective(
        X, y, kernel="linear", regularization="per_feature", intercept="penalized"
    )
    assert objective.names == ["C[0]", "C[1]", "C[2]", "C[intercept]"]


def test_values_and_theta_are_inverse():
    theta = np.array([0.3, -1.0, 0.2, 1.1, 0.7])
    values = space().values(theta)
    assert isinstance(values["C"], float)
    assert values["gamma"].shape == (3,)
    np.testing.assert_allclose(space().theta(values), theta)


def test_values_are_copies():
    one = space()
    one.values(one.theta0)["gamma"][:] = 7.0
    np.testing.assert_allclose(one.values(one.theta0)["gamma"], GAMMA.value)
    one.theta0[:] = 7.0
    assert one.theta0[0] == pytest.approx(np.log(2.0))


def test_what_is_not_named_stays_at_its_start():
    np.testing.assert_allclose(
        space().theta({"C": 5.0}), [np.log(5.0), *space().theta0[1:]]
    )
    # One number for a vector counts for all its entries.
    np.testing.assert_allclose(space().theta({"gamma": 3.0})[1:4], np.log(3.0))


@pytest.mark.parametrize(
    "learn, names",
    [
        ("all", ["C", "gamma[0]", "gamma[1]", "gamma[2]", "offset"]),
        ("C", ["C"]),
        (("gamma",), ["gamma[0]", "gamma[1]", "gamma[2]"]),
        (["gamma[1]", "C"], ["C", "gamma[1]"]),
        ((), []),
        (None, []),
    ],
)
def test_any_subset_may_be_learned(learn, names):
    part = space(learn)
    assert part.names == names
    assert len(part.theta0) == len(part.bounds) == len(names)
    values = part.values(part.theta0)
    assert values["C"] == pytest.approx(2.0)
    np.testing.assert_allclose(values["gamma"], GAMMA.value)


def test_what_is_not_learned_stays_fixed():
    values = space(("gamma[1]",)).values(np.array([np.log(7.0)]))
    np.testing.assert_allclose(values["gamma"], [0.5, 7.0, 4.0])
    assert values["C"] == pytest.approx(2.0)


def test_a_gradient_by_parameter_becomes_that_of_theta():
    gradient = {"C": np.array([1.0]), "gamma": np.arange(3.0), "offset": -1.0}
    np.testing.assert_array_equal(
        space().restrict(gradient), [1.0, 0.0, 1.0, 2.0, -1.0]
    )
    np.testing.assert_array_equal(
        space(("C", "gamma[2]")).restrict(gradient), [1.0, 2.0]
    )


def test_vectors_are_the_learned_log_values_in_their_units():
    (kin,) = space(("C", "gamma[0]", "gamma[2]")).vectors
    np.testing.assert_array_equal(kin.entries, [1, 2])
    np.testing.assert_allclose(kin.log_unit, np.log([1.0, 4.0]))
    assert kin.tied
    # One entry has nothing to be compared with.
    assert space(("C", "gamma[0]")).vectors == []


def test_an_unknown_name_is_refused_with_the_valid_ones():
    with pytest.raises(
        ValueError, match="learn='gama'.*'all' or 'C', 'gamma', 'offset'"
    ):
        space("gama")
    with pytest.raises(ValueError, match=r"\['c'\]; there are 'C', 'gamma'"):
        space().theta({"c": 1.0})


def test_theta_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match=r"expected \(5,\): C, gamma\[0\]"):
        space().values(np.zeros(4))


def test_bounds_the_wrong_way_round_are_refused():
    with pytest.raises(
        ValueError, match=r"Bounds of C are the wrong way round: \(10, 1\)"
    ):
        Space([Parameter("C", 2.0, (10.0, 1.0))])


def test_a_start_outside_its_bounds_is_refused():
    with pytest.raises(
        ValueError, match=r"start C = 20 lies outside its bounds \(1, 10\)"
    ):
        Space([Parameter("C", 20.0, (1.0, 10.0))])


def test_messages_speak_natural_units_on_a_linear_scale_too():
    with pytest.raises(ValueError, match=r"start offset = 5 .*\(-2, 2\)"):
        Space([Parameter("offset", 5.0, (-2.0, 2.0), scale="linear")])


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_a_logarithm_needs_a_positive_value(value):
    with pytest.raises(ValueError, match="C must be positive"):
        Space([Parameter("C", value, (0.1, 1.0))])


def test_the_last_part_of_a_nested_name_will_do():
    parameters = [
        Parameter("k1__gamma", 1.0, (0.1, 10.0)),
        Parameter("k2__gamma", 2.0, (0.1, 10.0)),
        Parameter("t1__filters", np.ones((1, 2)), (-np.inf, np.inf), scale="linear"),
    ]
    assert Space(parameters, "gamma").names == ["k1__gamma", "k2__gamma"]
    assert Space(parameters, "k2__gamma").names == ["k2__gamma"]
    one = Space(parameters, ["filters[1]", "k1__gamma"])
    assert one.names == ["k1__gamma", "t1__filters[1]"]
    np.testing.assert_allclose(one.theta({}), [0.0, 1.0])


def test_starts_say_what_cannot_be_started():
    one = Space([Parameter("C", 1.0, (0.1, 10.0)), Parameter("a", 1.0, (1, 2))], "C")
    with pytest.raises(ValueError, match="a is not learned"):
        one.theta({"a": 1.5}, start=True)
    with pytest.raises(ValueError, match="outside its bounds"):
        one.theta({"C": 100.0}, start=True)
    with pytest.raises(ValueError, match="Did you mean 'C'|there are 'C', 'a'"):
        one.theta({"c": 1.0})


def test_no_two_hyperparameters_share_a_name():
    with pytest.raises(ValueError, match="Two hyperparameters are called 'C'"):
        Space([Parameter("C", 1.0, (0.1, 10.0))] * 2)
